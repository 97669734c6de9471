/// @file
/// What a step's namespace may leave out.
#pragma once

#include "common/gemm/gemm.h"

namespace harness::step_defaults {

/// The activations that a step is built with besides gemm::Identity, what it is about first. Each is built with a bias too;
/// gemm::Identity among them stands for the bias alone.
using Activations = gemm::TypeList<>;

}  // namespace harness::step_defaults

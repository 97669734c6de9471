/// @file
/// The separate pass over C that a fused epilogue saves.
#pragma once

#include "common/harness/program/step.h"

namespace harness {

/// Starts the kernel that computes C = activation(C + bias) in place, each thread 16 bytes of a row where they are aligned: as fast
/// as device memory or the L2 cache allows, so that it is a fair opponent.
/// @param type of C's elements, and of the bias's  @param bias one for each column of C, in device memory; null for none
void launch_activation(DType type, const AnyMatrix& C, const Epilogue& epilogue, const void* bias);

}  // namespace harness

/// @file
/// Measures what the GPU at hand can do at most.
#pragma once

#include "common/harness/results/roofline.h"

namespace harness {

/// Copy bandwidth, multiply-adds of the CUDA cores, and of the tensor cores through mma.sync m16n8k16 on random operands: medians,
/// in about a second.
Ceilings measure_ceilings();

}  // namespace harness

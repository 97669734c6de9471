/// @file
/// Measures what the GPU at hand can do at most.
#pragma once

#include "common/harness/results/roofline.h"

namespace harness {

/// Copy bandwidth, multiply-adds of the CUDA cores, and of the tensor cores through mma.sync m16n8k16 and, from compute capability
/// 9.0, through wgmma m64n256k16, on random operands: medians, in about three seconds. The GPU slows down at its power limit, after
/// a tenth of a second of wgmma: those rates are of the time after that. Tensor cores before compute capability 8.0 know no bf16:
/// there it is the rate of the CUDA cores.
Ceilings measure_ceilings();

}  // namespace harness

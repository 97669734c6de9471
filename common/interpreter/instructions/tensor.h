/// @file
/// ldmatrix, stmatrix, mma and elect.sync, for common/device/ptx.cuh. Not inline, so that the return address names the place in the
/// kernel.
#pragma once

#include <cstdint>

#include "common/interpreter/instructions/mma_model.h"

namespace interpreter {

/// @param r `count` registers  @param row the lane's address; of the first 8 * count lanes
void ldmatrix(std::uint32_t* r, const void* row, int count, bool transposed);
/// The way back.
void stmatrix(void* row, const std::uint32_t* r, int count, bool transposed);
/// @param is_half a and b hold __half, else __nv_bfloat16
void mma_m16n8k16(float* d, const std::uint32_t* a, const std::uint32_t* b, bool is_half);
/// mma.sync of any form, m x 8 sums: `d`, `a` and `b` are the lane's registers, of 32 bits, or doubles.
void mma(const MmaForm& form, unsigned m, unsigned k, void* d, const void* a, const void* b);
/// @return whether the lane is the one that goes on
bool elect_sync();

}  // namespace interpreter

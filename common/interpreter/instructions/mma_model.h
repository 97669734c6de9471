/// @file
/// What a tensor core computes: products of 16-bit numbers, summed in float, rounded as the hardware does.
#pragma once

#include <cstdint>

namespace interpreter {

/// c + a · b for m16n8k16: `a` row by row, `b` column by column, `d` row by row; a and b hold __half if `is_half`, else
/// __nv_bfloat16.
void multiply_16x8x16(float (&d)[16][8], const std::uint16_t (&a)[16][16], const std::uint16_t (&b)[8][16], bool is_half);

}  // namespace interpreter

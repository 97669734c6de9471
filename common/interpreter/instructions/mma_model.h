/// @file
/// What a tensor core computes: products of a tile of A and a tile of B added to sums, rounded as the hardware does.
#pragma once

#include <cstdint>

namespace interpreter {

enum class Number : std::uint8_t { kF16, kBf16, kTf32, kE4m3, kE5m2, kS8, kU8, kF32, kS32, kF64 };

/// How many bytes one has.
constexpr unsigned bytes_of(Number type) {
  switch (type) {
    case Number::kF16:
    case Number::kBf16: return 2;
    case Number::kTf32:
    case Number::kF32:
    case Number::kS32: return 4;
    case Number::kF64: return 8;
    default: return 1;
  }
}

/// What mma.sync or wgmma multiplies.
struct MmaForm {
  Number a, b, sum;
  bool saturates = false;  ///< integers stay at the largest or smallest; else they wrap
  bool operator==(const MmaForm&) const = default;
};

/// c + a · b for 16 x 8 sums: `a` row by row, `b` column by column, 32 bytes each, of whatever type; `d` row by row, one sum a
/// word, halves in its low half. Of shorter rows the rest is zeros. @param of_warpgroup of wgmma, else of mma.sync: sums of bytes
/// that are floats differ
void multiply_tile(const MmaForm& form, bool of_warpgroup, std::uint32_t (&d)[16][8], const std::uint16_t (&a)[16][16],
                   const std::uint16_t (&b)[8][16]);

/// The same for m16n8k16 of 16-bit numbers, with sums of float: a and b hold __half if `is_half`, else __nv_bfloat16.
void multiply_16x8x16(float (&d)[16][8], const std::uint16_t (&a)[16][16], const std::uint16_t (&b)[8][16], bool is_half);

/// What an mma.sync that adds nothing, see Options::mma, adds to each of its float sums all the same: a number instead of a
/// product. 0 as a rule. Change it between launches.
float& added_without_product();

/// c + a · b of doubles, one sum; a and b are `k` numbers.
double multiply_doubles(double c, const double* a, const double* b, unsigned k);

}  // namespace interpreter

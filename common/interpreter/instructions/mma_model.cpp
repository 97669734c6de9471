// The tensor core's sums, found by comparing with an H200 (docs/results/h200/ptx): every result is reproduced bit by bit.
//
// One sum has 17 terms: 16 products and the accumulator. Products are exact. With e the largest exponent of the terms that are not
// zero, all terms are cut to multiples of 2^(e-25), the sum of these is exact, and its 24 leading bits are the result: toward zero,
// both times. A product's exponent is the sum of its factors' exponents, though its significand may reach 4; denormals keep the
// smallest normal exponent and are not flushed. Sums beyond the largest float are infinite; a zero is +0 whatever its terms' signs,
// also where a sum below the smallest denormal is cut to it; and a NaN is always 0x7fffffff.
#include "common/interpreter/instructions/mma_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace interpreter {
namespace {

constexpr int kKeptBits = 25;  // below the largest exponent

// ------------------------------------------------------------------------------------------------- any numbers, one by one
struct Term {
  bool negative, nan, infinite;
  std::int64_t significand;  // the value is significand * 2^unit
  int exponent, unit;
};

Term decode(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int field = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const std::int64_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const bool special = field == (1 << exponent_bits) - 1;
  Term term{};
  term.negative = bits >> (exponent_bits + mantissa_bits) & 1;
  term.nan = special && mantissa != 0, term.infinite = special && mantissa == 0;
  term.significand = field ? mantissa | std::int64_t(1) << mantissa_bits : mantissa;
  term.exponent = std::max(field, 1) - ((1 << (exponent_bits - 1)) - 1);
  term.unit = term.exponent - mantissa_bits;
  return term;
}

Term product(const Term& x, const Term& y) {
  Term p{};
  p.negative = x.negative != y.negative;
  p.nan = x.nan || y.nan || (x.infinite && y.significand == 0) || (y.infinite && x.significand == 0);
  p.infinite = !p.nan && (x.infinite || y.infinite);
  p.significand = x.significand * y.significand;
  p.exponent = x.exponent + y.exponent, p.unit = x.unit + y.unit;
  return p;
}

float sum_of(const Term (&terms)[17]) {
  bool nan = false, infinite[2] = {};
  for (const Term& t : terms) {
    nan |= t.nan;
    if (t.infinite) infinite[t.negative] = true;
  }
  if (nan || (infinite[0] && infinite[1])) return std::bit_cast<float>(0x7fffffffu);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (infinite[0] || infinite[1]) return infinite[0] ? kInfinity : -kInfinity;

  int largest = std::numeric_limits<int>::min();
  for (const Term& t : terms)
    if (t.significand) largest = std::max(largest, t.exponent);
  const int unit = largest - kKeptBits;
  std::int64_t sum = 0;
  for (const Term& t : terms) {
    if (!t.significand) continue;
    const int shift = t.unit - unit;
    const std::int64_t cut = shift >= 0 ? t.significand << shift : shift > -63 ? t.significand >> -shift : 0;
    sum += t.negative ? -cut : cut;
  }
  if (sum == 0) return 0;
  // A float's last bit is worth at least 2^-149.
  const std::int64_t magnitude = std::abs(sum);
  const int excess = std::max(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(magnitude))) - 24, -149 - unit);
  const std::int64_t kept = excess <= 0 ? magnitude : excess < 63 ? magnitude >> excess << excess : 0;
  if (kept == 0) return 0;
  const float result = static_cast<float>(std::ldexp(static_cast<double>(kept), unit));
  return sum < 0 ? -result : result;
}

// -------------------------------------------------------------------------------------------------------- usual numbers
// Eight numbers at a time, in vectors as GCC and clang have them. Where there is AVX2, they are one register.
#ifdef __x86_64__
#define COURSE_VECTOR_CODE __attribute__((target_clones("avx2", "default")))
#else
#define COURSE_VECTOR_CODE
#endif
#define COURSE_INLINE inline __attribute__((always_inline))  // into each of the two
using Halves = std::uint16_t __attribute__((vector_size(16)));
using Bits = std::uint32_t __attribute__((vector_size(32)));
using Ints = std::int32_t __attribute__((vector_size(32)));
using Floats = float __attribute__((vector_size(32)));
using Doubles = double __attribute__((vector_size(64)));
using LongBits = std::uint64_t __attribute__((vector_size(64)));

template <class Mask>
COURSE_INLINE bool any(const Mask& mask) {
  const Mask none{};
  return std::memcmp(&mask, &none, sizeof mask) != 0;
}

// Factors as floats, and the powers of two that are their exponents; 0 for 0.
struct Factors {
  Floats value, power;
};

COURSE_INLINE Factors factors(Halves bits, bool is_half) {
  const Bits wide = __builtin_convertvector(bits, Bits);
  if (!is_half) return {(Floats)(wide << 16), (Floats)(wide << 16 & 0x7f800000u)};
  const Floats magnitude = (Floats)((wide & 0x7fffu) << 13) * 0x1p112f;
  const Floats power = (Floats)((Bits)magnitude & 0x7f800000u), smallest = 0x1p-14f - Floats{};
  const Floats zero{};
  return {(Floats)((Bits)magnitude | (wide & 0x8000u) << 16), magnitude == zero ? zero : power > smallest ? power : smallest};
}

// Which of them are so large or small that products, or sums of powers of their exponents, leave float's normal range.
COURSE_INLINE auto unusual(Halves bits, bool is_half) {
  if (is_half) return (bits & 0x7c00) == 0x7c00;
  const Halves field = bits >> 7 & 0xff;
  return ((bits & 0x7fff) != 0) & ((field <= 127 - 48) | (field >= 127 + 48));
}

}  // namespace

COURSE_VECTOR_CODE void multiply_16x8x16(float (&d)[16][8], const std::uint16_t (&a)[16][16], const std::uint16_t (&b)[8][16],
                                         bool is_half) {
  const auto slow = [&](int i, int j) {
    const int exponent_bits = is_half ? 5 : 8, mantissa_bits = is_half ? 10 : 7;
    Term terms[17];
    for (int k = 0; k < 16; ++k)
      terms[k] = product(decode(a[i][k], exponent_bits, mantissa_bits), decode(b[j][k], exponent_bits, mantissa_bits));
    terms[16] = decode(std::bit_cast<std::uint32_t>(d[i][j]), 8, 23);
    return sum_of(terms);
  };

  Factors of_a[16][2], of_b[16];  // those of b by k, so that a vector lies along a row of d
  auto is_unusual = unusual(Halves{}, is_half);
  for (int i = 0; i < 16; ++i)
    for (int part = 0; part < 2; ++part) {
      Halves bits;
      std::memcpy(&bits, &a[i][8 * part], sizeof bits);
      is_unusual |= unusual(bits, is_half);
      of_a[i][part] = factors(bits, is_half);
    }
  for (int k = 0; k < 16; ++k) {
    const Halves bits = {b[0][k], b[1][k], b[2][k], b[3][k], b[4][k], b[5][k], b[6][k], b[7][k]};
    is_unusual |= unusual(bits, is_half);
    of_b[k] = factors(bits, is_half);
  }
  if (any(is_unusual)) {
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) d[i][j] = slow(i, j);
    return;
  }

  for (int i = 0; i < 16; ++i) {
    Floats accumulators;
    std::memcpy(&accumulators, d[i], sizeof accumulators);
    const Floats own = (Floats)((Bits)accumulators & 0x7f800000u), zero{}, smallest = 0x1p-126f - zero;
    Floats largest = ((accumulators != zero) & (own == zero)) ? smallest : own;  // 2 to the power of the largest exponent
    for (int k = 0; k < 16; ++k) {
      const Floats power = of_a[i][k / 8].power[k % 8] * of_b[k].power;
      largest = power > largest ? power : largest;
    }
    constexpr std::uint32_t kLeast = kKeptBits + 1, kMost = 254;
    Bits field = (Bits)largest >> 23;
    field = field < kLeast ? kLeast - Bits{} : field > kMost ? kMost - Bits{} : field;
    const Floats scale = (Floats)((2 * 127 + kKeptBits - field) << 23), unit = (Floats)((field - kKeptBits) << 23);
    Ints sum{};  // 16 products of less than 2^27 each, and a little less than that
    for (int k = 0; k < 16; ++k) sum += __builtin_convertvector(of_a[i][k / 8].value[k % 8] * of_b[k].value * scale, Ints);
    // Exact in a double; of its significand, the 24 leading bits are left.
    const Doubles all = __builtin_convertvector(sum, Doubles) +
                        __builtin_convertvector(__builtin_convertvector(accumulators * scale, Ints), Doubles);
    const auto kept = (Doubles)((LongBits)all & ~0x1fffffffull);
    const Floats result = __builtin_convertvector(kept, Floats) * unit;
    // Denormal results, or the accumulator is infinite or NaN.
    const Ints is_slow = (largest != zero) & ((largest < 0x1p-98f) | (largest > 0x1p127f));
    if (any(is_slow)) {
      for (int j = 0; j < 8; ++j) d[i][j] = is_slow[j] ? slow(i, j) : result[j];
    } else {
      std::memcpy(d[i], &result, sizeof result);
    }
  }
}

}  // namespace interpreter

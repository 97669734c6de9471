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
// Factors as floats, and the powers of two that are their exponents; 0 for 0.
struct Factor {
  float value, power;
};

Factor half_factor(std::uint16_t bits) {
  const float magnitude = std::bit_cast<float>(static_cast<std::uint32_t>(bits & 0x7fff) << 13) * 0x1p112f;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const float power = std::max(std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) & 0x7f800000u), 0x1p-14f);
  return {std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign), magnitude == 0 ? 0 : power};
}

Factor bfloat16_factor(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  return {std::bit_cast<float>(word), std::bit_cast<float>(word & 0x7f800000u)};
}

// Whether products, and sums of powers of their exponents, stay within float's normal range.
bool usual(std::uint16_t bits, bool is_half) {
  if (is_half) return (bits & 0x7c00) != 0x7c00;
  const int field = bits >> 7 & 0xff;
  return (bits & 0x7fff) == 0 || (field > 127 - 48 && field < 127 + 48);
}

}  // namespace

void multiply_16x8x16(float (&d)[16][8], const std::uint16_t (&a)[16][16], const std::uint16_t (&b)[8][16], bool is_half) {
  const auto slow = [&](int i, int j) {
    const int exponent_bits = is_half ? 5 : 8, mantissa_bits = is_half ? 10 : 7;
    Term terms[17];
    for (int k = 0; k < 16; ++k)
      terms[k] = product(decode(a[i][k], exponent_bits, mantissa_bits), decode(b[j][k], exponent_bits, mantissa_bits));
    terms[16] = decode(std::bit_cast<std::uint32_t>(d[i][j]), 8, 23);
    return sum_of(terms);
  };

  float value_a[16][16], power_a[16][16];
  alignas(32) float value_b[16][8], power_b[16][8];  // by k, so that the inner loops run along a row of d
  bool all_usual = true;
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 16; ++k) {
      all_usual &= usual(a[i][k], is_half);
      const Factor factor = is_half ? half_factor(a[i][k]) : bfloat16_factor(a[i][k]);
      value_a[i][k] = factor.value, power_a[i][k] = factor.power;
    }
  for (int j = 0; j < 8; ++j)
    for (int k = 0; k < 16; ++k) {
      all_usual &= usual(b[j][k], is_half);
      const Factor factor = is_half ? half_factor(b[j][k]) : bfloat16_factor(b[j][k]);
      value_b[k][j] = factor.value, power_b[k][j] = factor.power;
    }
  if (!all_usual) {
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) d[i][j] = slow(i, j);
    return;
  }

  for (int i = 0; i < 16; ++i) {
    float largest[8];  // 2 to the power of the largest exponent
    for (int j = 0; j < 8; ++j) {
      const float power = std::bit_cast<float>(std::bit_cast<std::uint32_t>(d[i][j]) & 0x7f800000u);
      largest[j] = d[i][j] != 0 && power == 0 ? 0x1p-126f : power;
    }
    for (int k = 0; k < 16; ++k)
      for (int j = 0; j < 8; ++j) {
        const float power = power_a[i][k] * power_b[k][j];
        largest[j] = power > largest[j] ? power : largest[j];
      }
    float scale[8];  // makes the unit 1
    for (int j = 0; j < 8; ++j) {
      const std::uint32_t field = std::clamp(std::bit_cast<std::uint32_t>(largest[j]) >> 23, kKeptBits + 1u, 254u);
      scale[j] = std::bit_cast<float>((2 * 127 + kKeptBits - field) << 23);
    }
    std::int32_t sum[8] = {};  // 16 products of less than 2^27 each, and a little less than that
    for (int k = 0; k < 16; ++k)
      for (int j = 0; j < 8; ++j) sum[j] += static_cast<std::int32_t>(value_a[i][k] * value_b[k][j] * scale[j]);
    for (int j = 0; j < 8; ++j) {
      const float power = largest[j];
      if (power == 0) {
        d[i][j] = 0;
      } else if (power < 0x1p-98f || power > 0x1p127f) {  // denormal results, or the accumulator is infinite or NaN
        d[i][j] = slow(i, j);
      } else {
        const std::int64_t all = sum[j] + static_cast<std::int64_t>(static_cast<std::int32_t>(d[i][j] * scale[j]));
        const std::int64_t magnitude = std::abs(all);
        const int excess = std::max(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(magnitude))) - 24, 0);
        const double kept = static_cast<double>(magnitude >> excess << excess) / static_cast<double>(scale[j]);
        d[i][j] = static_cast<float>(all < 0 ? -kept : kept);
      }
    }
  }
}

}  // namespace interpreter

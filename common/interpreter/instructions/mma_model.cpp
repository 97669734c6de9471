// The tensor core's sums, found by comparing with an H200 (docs/results/h200/ptx): every result is reproduced bit by bit.
//
// One sum has up to 33 terms: the products and the accumulator. Products are exact. With e the largest exponent of the terms that
// are not zero, all terms are cut to multiples of 2^(e-25), the sum of these is exact, and its 24 leading bits are the result:
// toward zero, both times. A product's exponent is the sum of its factors' exponents, though its significand may reach 4; denormals
// keep the smallest normal exponent and are not flushed. Sums beyond the largest float are infinite; a zero is +0 whatever its
// terms' signs, also where a sum below the smallest denormal is cut to it; and a NaN is always 0x7fffffff.
//
// Where the accumulators are halves, it is the same sum, rounded once, to the nearest half; a NaN is 0x7fff. Of a tf32 the 13 low
// bits are ignored. Bytes that are floats: wgmma keeps multiples of 2^(e-13), and 14 bits of the result; mma.sync gives what two
// sums as of halves would, of which the first begins with zero and the second one with the first one's result. Of each four bytes
// along k the first takes the first two. An addition to the accumulator follows, rounded to the nearest.
// Integers are exact before they wrap or stay at their limit. Doubles are a chain of fused multiply-adds in the order of k.
#include "common/interpreter/instructions/mma_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace interpreter {
namespace {

constexpr int kKeptBits = 25, kKeptBitsOfBytes = 13;  // below the largest exponent

struct Format {
  int exponent_bits, mantissa_bits;
  int ignored_bits = 0;      // low ones
  bool has_infinity = true;  // else one NaN, whose bits are all ones, and finite numbers beside it
};
constexpr Format format_of(Number type) {
  switch (type) {
    case Number::kF16: return {5, 10};
    case Number::kBf16: return {8, 7};
    case Number::kTf32: return {8, 10, 13};
    case Number::kE4m3: return {4, 3, 0, false};
    case Number::kE5m2: return {5, 2};
    default: return {8, 23};
  }
}
std::uint32_t byte_at(const std::uint16_t (&row)[16], unsigned k) { return row[k / 2] >> k % 2 * 8 & 0xff; }
// A row's number at `k`.
std::uint32_t number_at(const std::uint16_t (&row)[16], Number type, unsigned k) {
  switch (bytes_of(type)) {
    case 2: return row[k];
    case 4: return row[2 * k] | static_cast<std::uint32_t>(row[2 * k + 1]) << 16;
    default: return byte_at(row, k);
  }
}

// ------------------------------------------------------------------------------------------------- any numbers, one by one
struct Term {
  bool negative, nan, infinite;
  std::int64_t significand;  // the value is significand * 2^unit
  int exponent, unit;
};

Term decode(std::uint32_t bits, const Format& format) {
  const int exponent_bits = format.exponent_bits, mantissa_bits = format.mantissa_bits, largest = (1 << exponent_bits) - 1;
  bits >>= format.ignored_bits;
  const int field = static_cast<int>(bits >> mantissa_bits) & largest;
  const std::int64_t mantissa = bits & ((1u << mantissa_bits) - 1);
  Term term{};
  term.negative = bits >> (exponent_bits + mantissa_bits) & 1;
  term.nan = field == largest && (format.has_infinity ? mantissa != 0 : mantissa == (1 << mantissa_bits) - 1);
  term.infinite = field == largest && format.has_infinity && mantissa == 0;
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

// The bits of `sum` * 2^unit as `type`: of floats `leading_bits` are kept, toward zero; halves are the nearest.
std::uint32_t rounded(std::int64_t sum, int unit, Number type, int leading_bits) {
  if (sum == 0) return 0;
  const auto magnitude = static_cast<std::uint64_t>(std::abs(sum));
  const bool is_half = type == Number::kF16;
  const int least = is_half ? -24 : -149;  // the last bit is worth at least 2 to the power of this
  const int excess = std::max(static_cast<int>(std::bit_width(magnitude)) - leading_bits, least - unit);
  std::uint64_t kept = magnitude;
  if (excess > 0) {
    const std::uint64_t last = excess < 63 ? std::uint64_t(1) << excess : 0;
    kept = last ? magnitude & ~(last - 1) : 0;
    if (is_half && last) {
      const std::uint64_t rest = magnitude - kept, half = last / 2;
      if (rest > half || (rest == half && (kept & last))) kept += last;
    }
  }
  if (kept == 0) return 0;
  const double value = std::ldexp(static_cast<double>(kept), unit);
  if (!is_half) return std::bit_cast<std::uint32_t>(static_cast<float>(sum < 0 ? -value : value));
  const std::uint32_t sign = sum < 0 ? 0x8000 : 0;
  if (value >= 65536) return sign | 0x7c00;
  int exponent;
  std::frexp(value, &exponent);
  const int field = std::max(exponent + 14, 0);  // 0: denormal
  const auto significand = static_cast<std::uint32_t>(std::ldexp(value, field ? 25 - field : 24));
  return sign | ((static_cast<std::uint32_t>(field ? field - 1 : 0) << 10) + significand);
}

std::uint32_t sum_of(const Term* terms, int count, Number type, bool of_bytes) {
  bool nan = false, infinite[2] = {};
  for (int i = 0; i < count; ++i) {
    nan |= terms[i].nan;
    if (terms[i].infinite) infinite[terms[i].negative] = true;
  }
  const bool is_half = type == Number::kF16;
  if (nan || (infinite[0] && infinite[1])) return is_half ? 0x7fff : 0x7fffffff;
  if (infinite[0] || infinite[1]) return (is_half ? 0x7c00u : 0x7f800000u) | (infinite[1] ? is_half ? 0x8000u : 0x80000000u : 0);

  int largest = std::numeric_limits<int>::min();
  for (int i = 0; i < count; ++i)
    if (terms[i].significand) largest = std::max(largest, terms[i].exponent);
  const int unit = largest - (of_bytes ? kKeptBitsOfBytes : kKeptBits);
  std::int64_t sum = 0;
  for (int i = 0; i < count; ++i) {
    const Term& t = terms[i];
    if (!t.significand) continue;
    const int shift = t.unit - unit;
    const std::int64_t cut = shift >= 0 ? t.significand << shift : shift > -63 ? t.significand >> -shift : 0;
    sum += t.negative ? -cut : cut;
  }
  return rounded(sum, unit, type, is_half ? 11 : of_bytes ? kKeptBitsOfBytes + 1 : 24);
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

// Those of a tile; of b by k, so that a vector lies along a row of d.
struct TileFactors {
  Factors of_a[16][2], of_b[16];
  bool are_usual;
};

COURSE_INLINE void take(TileFactors& tile, const std::uint16_t (&a)[16][16], const std::uint16_t (&b)[8][16], bool is_half) {
  auto is_unusual = unusual(Halves{}, is_half);
  for (int i = 0; i < 16; ++i)
    for (int part = 0; part < 2; ++part) {
      Halves bits;
      std::memcpy(&bits, &a[i][8 * part], sizeof bits);
      is_unusual |= unusual(bits, is_half);
      tile.of_a[i][part] = factors(bits, is_half);
    }
  for (int k = 0; k < 16; ++k) {
    const Halves bits = {b[0][k], b[1][k], b[2][k], b[3][k], b[4][k], b[5][k], b[6][k], b[7][k]};
    is_unusual |= unusual(bits, is_half);
    tile.of_b[k] = factors(bits, is_half);
  }
  tile.are_usual = !any(is_unusual);
}

// A row's sums, exact, as multiples of `unit`. @param largest 2 to the power of the accumulators' exponents; then of all terms'
COURSE_INLINE void sum_row(Doubles& sums, Floats& unit, Floats& largest, const TileFactors& tile, int i,
                           const Floats& accumulators) {
  for (int k = 0; k < 16; ++k) {
    const Floats power = tile.of_a[i][k / 8].power[k % 8] * tile.of_b[k].power;
    largest = power > largest ? power : largest;
  }
  constexpr std::uint32_t kLeast = kKeptBits + 1, kMost = 254;
  Bits field = (Bits)largest >> 23;
  field = field < kLeast ? kLeast - Bits{} : field > kMost ? kMost - Bits{} : field;
  const Floats scale = (Floats)((2 * 127 + kKeptBits - field) << 23);
  unit = (Floats)((field - kKeptBits) << 23);
  Ints sum{};  // 16 products of less than 2^27 each, and a little less than that
  for (int k = 0; k < 16; ++k) sum += __builtin_convertvector(tile.of_a[i][k / 8].value[k % 8] * tile.of_b[k].value * scale, Ints);
  sums =
      __builtin_convertvector(sum, Doubles) + __builtin_convertvector(__builtin_convertvector(accumulators * scale, Ints), Doubles);
}

// One sum of 16-bit numbers, whatever they are.
std::uint32_t any_sum(std::uint32_t c, const std::uint16_t (&a)[16], const std::uint16_t (&b)[16], Number type, Number sum) {
  const Format format = format_of(type);
  Term terms[17];
  for (int k = 0; k < 16; ++k) terms[k] = product(decode(a[k], format), decode(b[k], format));
  terms[16] = decode(c, format_of(sum));
  return sum_of(terms, 17, sum, false);
}

// The same as multiply_16x8x16() for halves, with sums in halves: one in the low half of a word.
COURSE_VECTOR_CODE void multiply_with_half_sums(std::uint32_t (&d)[16][8], const std::uint16_t (&a)[16][16],
                                                const std::uint16_t (&b)[8][16]) {
  TileFactors tile;
  take(tile, a, b, true);
  for (int i = 0; i < 16; ++i) {
    Bits words;
    std::memcpy(&words, d[i], sizeof words);
    const Halves before = __builtin_convertvector(words, Halves);
    const Factors accumulators = factors(before, true);
    const auto is_slow = unusual(before, true);
    Bits result{};
    if (tile.are_usual) {
      Floats largest = accumulators.power, unit;
      Doubles sums;
      sum_row(sums, unit, largest, tile, i, accumulators.value);
      const Doubles all = sums * __builtin_convertvector(unit, Doubles), smallest = 0x1p-14 - Doubles{};
      // Adding and taking away 1.5 * 2^52 last bits of a half rounds to the nearest.
      const auto power = (Doubles)((LongBits)all & 0x7ff0000000000000u);
      const Doubles far = (power > smallest ? power : smallest) * 0x1.8p42;
      const Floats nearest = __builtin_convertvector(all + far - far, Floats), zero{}, too_large = 0x1p16f - zero;
      Floats magnitude = (Floats)((Bits)nearest & 0x7fffffffu);
      magnitude = magnitude > too_large ? too_large : magnitude;
      result = ((Bits)(magnitude * 0x1p-112f) >> 13) | ((Bits)nearest >> 16 & 0x8000u);
    }
    for (int j = 0; j < 8; ++j)
      d[i][j] = tile.are_usual && !is_slow[j] ? result[j] : any_sum(d[i][j], a[i], b[j], Number::kF16, Number::kF16);
  }
}

}  // namespace

COURSE_VECTOR_CODE void multiply_16x8x16(float (&d)[16][8], const std::uint16_t (&a)[16][16], const std::uint16_t (&b)[8][16],
                                         bool is_half) {
  const auto slow = [&](int i, int j) {
    return std::bit_cast<float>(
        any_sum(std::bit_cast<std::uint32_t>(d[i][j]), a[i], b[j], is_half ? Number::kF16 : Number::kBf16, Number::kF32));
  };
  TileFactors tile;
  take(tile, a, b, is_half);
  if (!tile.are_usual) {
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) d[i][j] = slow(i, j);
    return;
  }

  for (int i = 0; i < 16; ++i) {
    Floats accumulators, unit;
    std::memcpy(&accumulators, d[i], sizeof accumulators);
    const Floats own = (Floats)((Bits)accumulators & 0x7f800000u), zero{}, smallest = 0x1p-126f - zero;
    Floats largest = ((accumulators != zero) & (own == zero)) ? smallest : own;
    Doubles all;
    sum_row(all, unit, largest, tile, i, accumulators);
    const auto kept = (Doubles)((LongBits)all & ~0x1fffffffull);  // the 24 leading bits
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

// ---------------------------------------------------------------------------------------------------------- other forms
namespace {

std::uint32_t sum_of_integers(const MmaForm& form, std::uint32_t c, const std::uint16_t (&a)[16], const std::uint16_t (&b)[16]) {
  const auto value = [](Number type, std::uint32_t bits) {
    return type == Number::kS8 ? int{static_cast<std::int8_t>(bits)} : static_cast<int>(bits);
  };
  std::int64_t sum = static_cast<std::int32_t>(c);
  for (unsigned k = 0; k < 32; ++k) sum += value(form.a, byte_at(a, k)) * value(form.b, byte_at(b, k));
  using Limits = std::numeric_limits<std::int32_t>;
  if (form.saturates) sum = std::clamp<std::int64_t>(sum, Limits::min(), Limits::max());
  return static_cast<std::uint32_t>(sum);
}

// c + part, the nearest number: a NaN is the tensor core's.
std::uint32_t added(std::uint32_t c, std::uint32_t part, Number type) {
  const Format format = format_of(type);
  Term terms[] = {decode(c, format), decode(part, format)};
  if (type == Number::kF32) {
    const float sum = std::bit_cast<float>(c) + std::bit_cast<float>(part);
    return std::isnan(sum) ? 0x7fffffff : std::bit_cast<std::uint32_t>(sum);
  }
  // Of two halves all bits fit. Zeros keep a sign that both have.
  if (!terms[0].significand && !terms[1].significand) return c & part & 0x8000;
  for (const Term& t : terms)
    if (t.nan || t.infinite) return sum_of(terms, 2, type, false);
  std::int64_t sum = 0;
  for (const Term& t : terms) sum += (t.negative ? -t.significand : t.significand) << (t.unit + 24);
  return rounded(sum, -24, type, 11);
}

}  // namespace

void multiply_tile(const MmaForm& form, bool of_warpgroup, std::uint32_t (&d)[16][8], const std::uint16_t (&a)[16][16],
                   const std::uint16_t (&b)[8][16]) {
  if (form.sum == Number::kS32) {
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) d[i][j] = sum_of_integers(form, d[i][j], a[i], b[j]);
    return;
  }
  const unsigned bytes = bytes_of(form.a), count = 32 / bytes;
  if (bytes == 2 && form.sum == Number::kF32) {
    float sums[16][8];
    std::memcpy(sums, d, sizeof sums);
    multiply_16x8x16(sums, a, b, form.a == Number::kF16);
    std::memcpy(d, sums, sizeof sums);
    return;
  }
  if (bytes == 2) return multiply_with_half_sums(d, a, b);
  Term of_a[16][32], of_b[8][32];
  for (unsigned k = 0; k < count; ++k) {
    for (int i = 0; i < 16; ++i) of_a[i][k] = decode(number_at(a[i], form.a, k), format_of(form.a));
    for (int j = 0; j < 8; ++j) of_b[j][k] = decode(number_at(b[j], form.b, k), format_of(form.b));
  }
  const Format of_sum = format_of(form.sum);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      Term terms[33];
      if (bytes > 1 || of_warpgroup) {
        for (unsigned k = 0; k < count; ++k) terms[k] = product(of_a[i][k], of_b[j][k]);
        terms[count] = decode(d[i][j], of_sum);
        d[i][j] = sum_of(terms, static_cast<int>(count) + 1, form.sum, bytes == 1);
        continue;
      }
      std::uint32_t part = 0;
      for (unsigned first = 0; first < 4; first += 2) {
        for (unsigned k = 0; k < 16; ++k) {
          const unsigned at = k / 2 * 4 + first + k % 2;
          terms[k] = product(of_a[i][at], of_b[j][at]);
        }
        terms[16] = decode(part, of_sum);
        part = sum_of(terms, 17, form.sum, false);
      }
      d[i][j] = added(d[i][j], part, form.sum);
    }
}

float& added_without_product() {
  static float added = 0;
  return added;
}

double multiply_doubles(double c, const double* a, const double* b, unsigned k) {
  for (unsigned i = 0; i < k; ++i) {
    double sum = std::fma(a[i], b[i], c);
    // A NaN is the first one of b, c and a, made quiet; or, where none of them is one, has a payload of zeros.
    if (std::isnan(sum)) {
      std::uint64_t bits = 0xfff8000000000000;
      for (const double x : {a[i], c, b[i]})
        if (std::isnan(x)) bits = std::bit_cast<std::uint64_t>(x) | 0x0008000000000000;
      sum = std::bit_cast<double>(bits);
    }
    c = sum;
  }
  return c;
}

}  // namespace interpreter

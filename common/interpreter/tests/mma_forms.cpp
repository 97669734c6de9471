#include "common/interpreter/tests/mma_forms.h"

#include <cmath>
#include <cstring>

#include "common/interpreter/tests/random.h"

namespace mma_forms {
namespace {

using interpreter::Number, ptx_cases::Random;
using enum Number;

constexpr int kExponentBits[] = {5, 8, 8, 4, 5, 0, 0, 8, 0, 11};
constexpr int kMantissaBits[] = {10, 7, 23, 3, 2, 0, 0, 23, 0, 52};  // of tf32 as they lie in a register: 13 are to be ignored

struct Format {
  Number type;
  bool low_bits;  // of tf32: whether the 13 low ones are set at random
  int exponents() const { return kExponentBits[static_cast<int>(type)]; }
  int mantissas() const { return kMantissaBits[static_cast<int>(type)]; }
  int bias() const { return (1 << (exponents() - 1)) - 1; }
  int top() const { return (1 << exponents()) - 1; }
  // The largest exponent field of a number, least that of 2^n.
  int largest() const { return type == kE4m3 ? top() : top() - 1; }
  std::uint64_t pack(bool negative, int field, std::uint64_t mantissa) const {
    mantissa &= (1ull << mantissas()) - 1;
    if (type == kTf32 && !low_bits) mantissa &= ~0x1fffull;
    return (static_cast<std::uint64_t>(negative) << exponents() | static_cast<unsigned>(field)) << mantissas() | mantissa;
  }
  std::uint64_t number(Random& random, int field) const {
    field = field < 0 ? 0 : field > top() ? top() : field;
    const bool negative = random.below(2);
    std::uint64_t mantissa = random.bits();
    if (type == kE4m3 && field == top()) mantissa &= ~1ull;  // not NaN
    return pack(negative, field, mantissa);
  }
  std::uint64_t zero(Random& random) const { return pack(random.below(2), 0, 0); }
  std::uint64_t infinity(Random& random) const { return pack(random.below(2), top(), type == kE4m3 ? 6 : 0); }
  std::uint64_t nan(Random& random) const {
    if (type == kE4m3) return pack(random.below(2), top(), 7);
    const std::uint64_t mantissa = random.bits();
    const int bit = type == kTf32 ? 13 + random.below(10) : random.below(mantissas());
    return pack(random.below(2), top(), mantissa | 1ull << bit);
  }
  // +-2^exponent with the mantissa's upper bits, or the nearest denormal below.
  std::uint64_t power(bool negative, int exponent, std::uint64_t mantissa = 0) const {
    mantissa &= (1ull << mantissas()) - 1;
    const int field = exponent + bias();
    if (field >= 1) return pack(negative, field > largest() ? largest() : field, mantissa);
    const int shift = 1 - field, real = type == kTf32 ? 10 : mantissas();
    if (shift > real) return pack(negative, 0, 0);
    return pack(negative, 0, (mantissa | 1ull << mantissas()) >> shift);
  }
  std::uint64_t integer(Random& random, int limit) const {
    const int value = random.between(-limit, limit);
    if (value == 0) return zero(random);
    const unsigned magnitude = static_cast<unsigned>(std::abs(value));
    int exponent = 0;
    while (magnitude >> (exponent + 1)) ++exponent;
    return (static_cast<std::uint64_t>(value < 0) << exponents() | static_cast<unsigned>(exponent + bias())) << mantissas() |
           ((static_cast<std::uint64_t>(magnitude) << mantissas() >> exponent) & ((1ull << mantissas()) - 1));
  }
};

double decoded(Number type, std::uint64_t bits) {
  if (type == kS8) return static_cast<signed char>(bits);
  if (type == kU8) return static_cast<unsigned char>(bits);
  if (type == kS32) return static_cast<std::int32_t>(bits);
  if (type == kTf32) bits &= ~0x1fffull;
  const Format f{type, true};
  const int field = static_cast<int>(bits >> f.mantissas()) & f.top();
  const std::uint64_t mantissa = bits & ((1ull << f.mantissas()) - 1);
  const double sign = bits >> (f.exponents() + f.mantissas()) & 1 ? -1 : 1;
  if (type == kE4m3 ? field == 15 && mantissa == 7 : field == f.top()) return mantissa ? NAN : sign * INFINITY;
  const double m = std::ldexp(static_cast<double>(field ? mantissa | 1ull << f.mantissas() : mantissa), -f.mantissas());
  return sign * std::ldexp(m, (field ? field : 1) - f.bias());
}

// ============================================================================================================== problems
enum Family {
  kAboutOne,
  kAnyExponent,
  kSpecials,
  kDenormals,
  kZeros,
  kIntegers,
  kCancellation,
  kOverflow,
  kWideAccumulator,
  kOneProduct,
  kTwoProducts,
  kSmallResults,
  kMixed,
  kFamilies,
  kProbe = kFamilies,
  kWholeNumbers,  // of integers: any
  kExtremes,      // the largest and smallest, accumulators near the ends
  kAnyBits,
};

std::uint64_t element(Random& random, const Format& f, Number sum, int family, int k, int only, int also) {
  const bool narrow = f.exponents() <= 5;
  switch (family) {
    case kAboutOne:
    case kWideAccumulator: return f.number(random, f.bias() - random.below(4));
    case kAnyExponent: return f.number(random, random.below(f.largest() + 1));
    case kSpecials:
      if (random.one_in(24)) return random.one_in(2) ? f.infinity(random) : f.nan(random);
      return random.one_in(8) ? f.zero(random) : f.number(random, random.below(f.top()));
    case kDenormals: return random.one_in(4) ? f.number(random, random.between(1, 3)) : f.number(random, 0);
    case kZeros: return random.one_in(24) ? f.integer(random, 3) : f.zero(random);
    case kIntegers: {
      const int limit = sum == kF16 ? 4 : f.mantissas() >= 3 ? 16 : 8;
      return f.integer(random, limit);
    }
    case kCancellation: return f.number(random, f.bias() + random.between(-8, 8));
    case kOverflow:
      return narrow           ? f.number(random, f.largest() - random.below(2))
             : f.type == kF64 ? f.number(random, f.bias() + random.between(508, 514))
                              : f.number(random, f.bias() + random.between(60, 66));
    case kOneProduct: return k == only ? f.number(random, f.bias() + random.between(-9, 9)) : f.zero(random);
    case kTwoProducts: return k == only || k == also ? f.number(random, f.bias() + random.between(-9, 9)) : f.zero(random);
    case kSmallResults:
      return narrow           ? f.number(random, random.below(f.type == kE4m3 ? 4 : 6))
             : f.type == kF64 ? f.number(random, f.bias() - random.between(505, 530))
                              : f.number(random, f.bias() - random.between(55, 72));
    case kMixed: return random.one_in(2) ? f.number(random, 0) : f.number(random, f.largest() - random.below(4));
  }
  return 0;
}

std::uint64_t sum_before(Random& random, const Format& c, bool narrow, int family) {
  const bool half = c.type == kF16;
  const auto about = [&](int low, int high) {
    int field = c.bias() + random.between(low, high);
    if (half) field = field < 0 ? 0 : field > 30 ? 30 : field;
    return c.number(random, field);
  };
  switch (family) {
    case kAboutOne: return about(-3, 3);
    case kAnyExponent: return narrow && !half ? about(-60, 40) : c.number(random, random.below(c.top()));
    case kSpecials:
      if (random.one_in(8)) return random.one_in(2) ? c.infinity(random) : c.nan(random);
      return half ? about(-10, 10) : about(-30, 30);
    case kDenormals: return narrow && !half ? about(-60, -20) : c.number(random, random.below(3));
    case kZeros: return c.zero(random);
    case kIntegers: return c.integer(random, 1000);
    case kCancellation: return half ? about(-10, 10) : about(-20, 20);
    case kOverflow: return c.number(random, c.top() - random.between(1, half ? 4 : 14));
    case kWideAccumulator: return half ? about(-14, 15) : about(-40, 40);
    case kOneProduct: return half ? about(-14, 15) : about(-30, 30);
    case kTwoProducts: return random.one_in(2) ? c.zero(random) : half ? about(-14, 15) : about(-30, 30);
    case kSmallResults:
      return half ? c.number(random, random.below(6)) : narrow ? about(-60, -20) : c.number(random, random.below(30));
    case kMixed: return half ? about(-14, 15) : about(-12, 12);
  }
  return 0;
}

Problem random_problem(Number a, Number b, Number c, int m, int n, int k, int family, int number) {
  Random random(static_cast<std::uint64_t>(family) * 1000 + static_cast<unsigned>(number));
  const bool low_bits = number % 2;
  const Format fa{a, low_bits}, fb{b, low_bits}, fc{c, true};
  Problem p{family, {}, {}, {}};
  const int only = random.below(k), also = random.below(k);
  for (int i = 0; i < m; ++i)
    for (int l = 0; l < k; ++l) p.a.push_back(element(random, fa, c, family, l, only, also));
  for (int j = 0; j < n; ++j)
    for (int l = 0; l < k; ++l) p.b.push_back(element(random, fb, c, family, l, only, also));
  for (int i = 0; i < m * n; ++i) p.c.push_back(sum_before(random, fc, fa.exponents() <= 5, family));
  return p;
}

// Two large terms and small ones 2^-depth below them; the depth grows with the column and the problem's number.
Problem probe(Number a, Number b, Number c, int m, int n, int k, int number) {
  Random random(77000 + static_cast<unsigned>(number));
  const Format fa{a, false}, fb{b, false}, fc{c, true};
  Problem p{kProbe, std::vector<std::uint64_t>(static_cast<std::size_t>(m * k)),
            std::vector<std::uint64_t>(static_cast<std::size_t>(n * k)),
            std::vector<std::uint64_t>(static_cast<std::size_t>(m * n))};
  const auto large_exponent = [](const Format& f) { return f.type == kE5m2 ? 10 : f.type == kF64 ? 20 : 7; };
  const auto least = [](const Format& f) { return f.type == kE4m3 ? -9 : f.type == kE5m2 ? -16 : f.type == kF16 ? -24 : -100; };
  const int la = large_exponent(fa), lb = large_exponent(fb);
  const int depth = number % 4 * 8 * (a == kF64 ? 2 : 1);  // of column 0
  const bool fractions = number / 4 % 2;                   // whether numbers are no powers of two alone
  // The places: small ones, and the rest, of which each row takes two for its large ones.
  std::vector<bool> is_small(static_cast<std::size_t>(k));
  std::vector<int> large;
  const int share = random.between(1, 3);
  for (int l = 0; l < k; ++l) is_small[static_cast<std::size_t>(l)] = random.below(4) < share;
  is_small[static_cast<std::size_t>(random.below(k))] = true;
  for (int l = 0; l < k; ++l)
    if (!is_small[static_cast<std::size_t>(l)]) large.push_back(l);
  if (large.size() < 2) {
    large.clear();
    const int first = random.below(k), second = (first + 1 + random.below(k - 1)) % k;
    for (const int l : {first, second}) is_small[static_cast<std::size_t>(l)] = false, large.push_back(l);
  }
  std::vector<int> small;
  for (int l = 0; l < k; ++l)
    if (is_small[static_cast<std::size_t>(l)]) small.push_back(l);
  const int ea = la - depth < least(fa) ? least(fa) : la - depth, rest = ea - (la - depth);
  for (int j = 0; j < n; ++j)
    for (int l = 0; l < k; ++l)
      p.b[static_cast<std::size_t>(j * k + l)] = is_small[static_cast<std::size_t>(l)]
                                                     ? fb.power(false, lb - rest - j % 8, fractions ? random.bits() : 0)
                                                     : fb.power(false, lb);
  for (int i = 0; i < m; ++i) {
    const auto place = [&](int l) -> std::uint64_t& { return p.a[static_cast<std::size_t>(i * k + l)]; };
    const int role = random.below(6);
    const std::size_t at = static_cast<std::size_t>(random.below(static_cast<int>(large.size())));
    const int first = large[at],
              second = large[(at + 1 + static_cast<std::size_t>(random.below(static_cast<int>(large.size()) - 1))) % large.size()];
    const std::uint64_t mantissa = fractions ? random.bits() : 0;
    const bool negative = random.below(2);
    // 0 two cancel, 1 one and the accumulator cancel, 2 two cancel beside a small accumulator, 3 two of one sign, 4 as 0 with many
    // small ones, 5 the accumulator is large, many small products
    if (role != 5) place(first) = fa.power(negative, la, mantissa);
    if (role != 5 && role != 1) place(second) = fa.power(role == 3 ? negative : !negative, la, mantissa);
    for (int j = 0; j < n; ++j) {
      std::uint64_t& sum = p.c[static_cast<std::size_t>(i * n + j)];
      if (role == 1 || role == 5) {
        const double product = -decoded(a, fa.power(negative, la, mantissa)) * std::ldexp(1, lb);
        const Format& f = fc;
        int e;
        const double part = std::frexp(std::fabs(product), &e);  // exact: the mantissa is no longer than c's
        sum = f.power(product < 0, e - 1, static_cast<std::uint64_t>(std::ldexp(part * 2 - 1, f.mantissas())));
      }
      if (role == 2) {
        const std::uint64_t fraction = fractions ? random.bits() : 0;
        sum = fc.power(random.below(2), la + lb - depth - j % 8, fraction);
      }
    }
    const bool many = role >= 4;
    const int one = small[static_cast<std::size_t>(random.below(static_cast<int>(small.size())))];
    const bool sign = random.below(2);
    for (const int l : small) {
      if (many ? random.below(4) == 0 : l != one || role == 2) continue;
      const std::uint64_t fraction = fractions ? random.bits() : 0;
      place(l) = fa.power(many && random.one_in(4) ? !sign : sign, ea, fraction);
    }
  }
  return p;
}

Problem integer_problem(Number a, Number b, int m, int n, int k, int family, int number) {
  Random random(90000 + static_cast<unsigned>(family) * 1000 + static_cast<unsigned>(number));
  Problem p{family, {}, {}, {}};
  const auto number_of = [&](Number type) -> std::uint64_t {
    if (family != kExtremes) return random.bits() & 0xff;
    const unsigned ends[2][3] = {{0x80, 0x7f, 0x81}, {0xff, 0x00, 0xfe}};
    return random.one_in(6) ? random.bits() & 0xff : ends[type == kU8][random.below(type == kU8 && random.below(2) ? 1 : 3)];
  };
  for (int i = 0; i < m * k; ++i) p.a.push_back(number_of(a));
  for (int i = 0; i < n * k; ++i) p.b.push_back(number_of(b));
  for (int i = 0; i < m * n; ++i) {
    const auto any = static_cast<std::uint32_t>(random.bits());
    if (family == kExtremes)
      p.c.push_back((random.below(2) ? 0x7fffffffu - any % 600000 : 0x80000000u + any % 600000));
    else
      p.c.push_back(family == kWholeNumbers ? static_cast<std::uint32_t>(static_cast<std::int32_t>(any) >> 12) : any);
  }
  return p;
}

const char* name_of(int family) {
  static const char* const kNames[] = {
      "about one",    "any exponent",    "NaN and infinity", "denormals",   "signed zeros", "integers",
      "cancellation", "overflow",        "wide sums",        "one product", "two products", "small results",
      "mixed",        "large and small", "whole numbers",    "extremes",    "any bits"};
  return kNames[family];
}

}  // namespace

std::vector<Form> all() {
  std::vector<Form> forms;
  const auto add = [&](bool of_warpgroup, const std::string& shape, int m, int k, Number a, Number b, Number sum,
                       const std::string& more = "") {
    const int scale = of_warpgroup ? 0 : 16 / m;
    static const char* const kNames[] = {"f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8", "f32", "s32", "f64"};
    const auto name = [](Number type) { return std::string(kNames[static_cast<int>(type)]); };
    forms.push_back({(of_warpgroup ? "wgmma " : "mma ") + shape + " " + name(sum) + " " + name(a) + " " + name(b) + more,
                     of_warpgroup,
                     m,
                     8,
                     k,
                     {a, b, sum, more == " satfinite"},
                     more == " negative a" || more == " negative b",
                     more == " from zero",
                     of_warpgroup ? 2 : (sum == kS32 ? 8 : 6) * scale,
                     of_warpgroup ? 16 : 48 * scale});
    if (of_warpgroup && sum == kS32) forms.back().problems_of_family = 4;
  };
  const auto mma = [&](int m, int k, Number a, Number b, Number sum, const std::string& more = "") {
    add(false, "m" + std::to_string(m) + "n8k" + std::to_string(k), m, k, a, b, sum, more);
  };
  const auto wgmma = [&](Number a, Number b, Number sum, const std::string& more = "") {
    const int k = 32 / static_cast<int>(interpreter::bytes_of(a));
    add(true, "m64n8k" + std::to_string(k), 64, k, a, b, sum, more);
  };
  for (const int k : {8, 16}) {
    mma(16, k, kF16, kF16, kF32);
    mma(16, k, kF16, kF16, kF16);
    mma(16, k, kBf16, kBf16, kF32);
  }
  for (const int k : {4, 8}) mma(16, k, kTf32, kTf32, kF32);
  for (const Number a : {kE4m3, kE5m2}) {
    for (const Number b : {kE4m3, kE5m2}) mma(16, 32, a, b, kF32);
    mma(16, 16, a, a, kF32);
    mma(16, 32, a, a, kF16);
  }
  for (const Number a : {kS8, kU8})
    for (const Number b : {kS8, kU8})
      for (const char* const more : {"", " satfinite"}) {
        mma(8, 16, a, b, kS32, more);
        mma(16, 16, a, b, kS32, more);
        mma(16, 32, a, b, kS32, more);
        wgmma(a, b, kS32, more);
      }
  mma(8, 4, kF64, kF64, kF64);
  for (const int k : {4, 8, 16}) mma(16, k, kF64, kF64, kF64);
  for (const char* const more : {"", " negative a", " negative b", " negative both", " from zero"}) wgmma(kF16, kF16, kF32, more);
  wgmma(kBf16, kBf16, kF32);
  for (const char* const more : {"", " negative a", " from zero"}) {
    wgmma(kF16, kF16, kF16, more);
    wgmma(kTf32, kTf32, kF32, more);
    wgmma(kE4m3, kE4m3, kF32, more);
  }
  wgmma(kE4m3, kE5m2, kF32);
  wgmma(kE5m2, kE4m3, kF32);
  wgmma(kE5m2, kE5m2, kF32);
  wgmma(kE4m3, kE4m3, kF16);
  wgmma(kE4m3, kE5m2, kF16);
  wgmma(kE5m2, kE5m2, kF16);
  wgmma(kS8, kS8, kS32, " from zero");
  return forms;
}

std::vector<Problem> problems(const Form& f) {
  std::vector<Problem> all;
  const auto [a, b, sum, saturates] = f.types;
  if (sum == kS32) {
    for (const int family : {kWholeNumbers, kExtremes, kAnyBits})
      for (int i = 0; i < f.problems_of_family; ++i) all.push_back(integer_problem(a, b, f.m, f.n, f.k, family, i));
    return all;
  }
  for (int family = 0; family < kFamilies; ++family)
    for (int i = 0; i < f.problems_of_family; ++i) all.push_back(random_problem(a, b, sum, f.m, f.n, f.k, family, i));
  for (int i = 0; i < f.probes; ++i) all.push_back(probe(a, b, sum, f.m, f.n, f.k, i));
  return all;
}

std::vector<std::uint64_t> by_model(const Form& f, const Problem& p) {
  std::vector<std::uint64_t> d = p.c;
  const auto at = [&](int row, int column) -> std::uint64_t& { return d[static_cast<std::size_t>(row * f.n + column)]; };
  const auto k = static_cast<std::size_t>(f.k), bytes = static_cast<std::size_t>(interpreter::bytes_of(f.types.a));
  if (f.types.sum == kF64) {
    for (int row = 0; row < f.m; ++row)
      for (int column = 0; column < f.n; ++column) {
        double sum, a[16], b[16];
        std::memcpy(&sum, &at(row, column), sizeof sum);
        std::memcpy(a, &p.a[static_cast<std::size_t>(row) * k], k * sizeof *a);
        std::memcpy(b, &p.b[static_cast<std::size_t>(column) * k], k * sizeof *b);
        sum = interpreter::multiply_doubles(sum, a, b, static_cast<unsigned>(f.k));
        std::memcpy(&at(row, column), &sum, sizeof sum);
      }
    return d;
  }
  const auto put = [&](std::uint16_t(&row)[16], const std::uint64_t* from, std::uint64_t sign) {
    for (std::size_t l = 0; l < k; ++l) {
      const std::uint64_t bits = from[l] ^ sign;
      std::memcpy(reinterpret_cast<char*>(row) + l * bytes, &bits, bytes);
    }
  };
  for (int first = 0; first < f.m; first += 16) {
    const int rows = f.m < 16 ? f.m : 16;
    std::uint16_t a[16][16] = {}, b[8][16] = {};
    std::uint32_t sums[16][8] = {};
    for (int i = 0; i < rows; ++i)
      put(a[i], &p.a[static_cast<std::size_t>(first + i) * k], f.negates ? std::uint64_t{1} << (8 * bytes - 1) : 0);
    for (int j = 0; j < 8; ++j) put(b[j], &p.b[static_cast<std::size_t>(j) * k], 0);
    for (int i = 0; i < rows && !f.from_zero; ++i)
      for (int j = 0; j < 8; ++j) sums[i][j] = static_cast<std::uint32_t>(at(first + i, j));
    interpreter::multiply_tile(f.types, f.of_warpgroup, sums, a, b);
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < 8; ++j) at(first + i, j) = sums[i][j];
  }
  return d;
}

std::vector<ptx_cases::Result> results(const Form& form, const std::vector<Problem>& problems,
                                       const std::vector<std::vector<std::uint64_t>>& d) {
  std::vector<ptx_cases::Result> rows;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const std::string name = form.name + " " + name_of(problems[i].family);
    if (rows.empty() || rows.back().name != name) rows.push_back({name, {}, 4});
    for (const std::uint64_t bits : d[i]) {
      rows.back().words.push_back(static_cast<std::uint32_t>(bits));
      if (form.types.sum == kF64) rows.back().words.push_back(static_cast<std::uint32_t>(bits >> 32));
    }
  }
  return rows;
}

}  // namespace mma_forms

/// @file
/// Integer intrinsics: products, averages, dot products, and the SIMD functions on two or four integers in a word.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include <vector_types.h>

inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline long long __mul64hi(long long a, long long b) { return static_cast<long long>(static_cast<__int128>(a) * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline unsigned __sad(int a, int b, unsigned sum) { return sum + static_cast<unsigned>(std::llabs(static_cast<long long>(a) - b)); }
inline unsigned __usad(unsigned a, unsigned b, unsigned sum) { return sum + (a < b ? b - a : a - b); }
inline int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
inline int __rhadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return static_cast<unsigned>((static_cast<unsigned long long>(a) + b) >> 1); }
inline unsigned __urhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) + b + 1) >> 1);
}
inline unsigned long long __brevll(unsigned long long x) {
  unsigned long long reversed = 0;
  for (int i = 0; i < 64; ++i) reversed |= (x >> i & 1) << (63 - i);
  return reversed;
}
// Shifts of 32 and more give the whole other word.
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32 | low) << shift) >> 32);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> shift);
}
/// Position of the `offset`th set bit of `mask` from `base` on, upwards for a positive offset; ~0u if there is none.
inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  if (offset == 0) return mask >> base & 1 ? base : ~0u;
  const int step = offset > 0 ? 1 : -1;
  for (int at = static_cast<int>(base), left = std::abs(offset); at >= 0 && at < 32; at += step)
    if (mask >> at & 1 && --left == 0) return static_cast<unsigned>(at);
  return ~0u;
}

namespace interpreter {

/// `function` of the lanes of two words, each a `Lane`; the result's lanes have as many bits.
template <class Lane, class Function>
unsigned lanes(unsigned a, unsigned b, Function function) {
  constexpr int kBits = 8 * sizeof(Lane);
  unsigned result = 0;
  for (int shift = 0; shift < 32; shift += kBits) {
    const int value = function(static_cast<int>(static_cast<Lane>(a >> shift)), static_cast<int>(static_cast<Lane>(b >> shift)));
    result |= static_cast<unsigned>(static_cast<std::make_unsigned_t<Lane>>(value)) << shift;
  }
  return result;
}
/// The same of three words, with the lanes as they are.
template <class Lane, class Function>
unsigned lanes(unsigned a, unsigned b, unsigned c, Function function) {
  constexpr int kBits = 8 * sizeof(Lane);
  unsigned result = 0;
  for (int shift = 0; shift < 32; shift += kBits) {
    const Lane value = function(static_cast<Lane>(a >> shift), static_cast<Lane>(b >> shift), static_cast<Lane>(c >> shift));
    result |= static_cast<unsigned>(static_cast<std::make_unsigned_t<Lane>>(value)) << shift;
  }
  return result;
}
template <class Lane>
constexpr Lane wrapped_sum(Lane a, Lane b) {
  return static_cast<Lane>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}
template <class Lane>
constexpr int saturated(int value) {
  return std::clamp<int>(value, std::numeric_limits<Lane>::min(), std::numeric_limits<Lane>::max());
}

}  // namespace interpreter

// S and U are the signed and the unsigned lane.
#define INTERPRETER_SIMD(count, S, U)                                                                            \
  inline unsigned __vadd##count(unsigned a, unsigned b) {                                                        \
    return interpreter::lanes<U>(a, b, [](int x, int y) { return x + y; });                                      \
  }                                                                                                              \
  inline unsigned __vsub##count(unsigned a, unsigned b) {                                                        \
    return interpreter::lanes<U>(a, b, [](int x, int y) { return x - y; });                                      \
  }                                                                                                              \
  inline unsigned __vaddss##count(unsigned a, unsigned b) {                                                      \
    return interpreter::lanes<S>(a, b, [](int x, int y) { return interpreter::saturated<S>(x + y); });           \
  }                                                                                                              \
  inline unsigned __vaddus##count(unsigned a, unsigned b) {                                                      \
    return interpreter::lanes<U>(a, b, [](int x, int y) { return interpreter::saturated<U>(x + y); });           \
  }                                                                                                              \
  inline unsigned __vsubss##count(unsigned a, unsigned b) {                                                      \
    return interpreter::lanes<S>(a, b, [](int x, int y) { return interpreter::saturated<S>(x - y); });           \
  }                                                                                                              \
  inline unsigned __vsubus##count(unsigned a, unsigned b) {                                                      \
    return interpreter::lanes<U>(a, b, [](int x, int y) { return interpreter::saturated<U>(x - y); });           \
  }                                                                                                              \
  inline unsigned __vabs##count(unsigned a) {                                                                    \
    return interpreter::lanes<S>(a, 0, [](int x, int) { return std::abs(x); });                                  \
  }                                                                                                              \
  inline unsigned __vabsss##count(unsigned a) {                                                                  \
    return interpreter::lanes<S>(a, 0, [](int x, int) { return interpreter::saturated<S>(std::abs(x)); });       \
  }                                                                                                              \
  inline unsigned __vneg##count(unsigned a) {                                                                    \
    return interpreter::lanes<S>(a, 0, [](int x, int) { return -x; });                                           \
  }                                                                                                              \
  inline unsigned __vnegss##count(unsigned a) {                                                                  \
    return interpreter::lanes<S>(a, 0, [](int x, int) { return interpreter::saturated<S>(-x); });                \
  }                                                                                                              \
  inline unsigned __vabsdiffs##count(unsigned a, unsigned b) {                                                   \
    return interpreter::lanes<S>(a, b, [](int x, int y) { return std::abs(x - y); });                            \
  }                                                                                                              \
  inline unsigned __vabsdiffu##count(unsigned a, unsigned b) {                                                   \
    return interpreter::lanes<U>(a, b, [](int x, int y) { return std::abs(x - y); });                            \
  }                                                                                                              \
  inline unsigned __vavgs##count(unsigned a, unsigned b) {                                                       \
    return interpreter::lanes<S>(a, b, [](int x, int y) { return (x + y + (x + y >= 0)) >> 1; });                \
  }                                                                                                              \
  inline unsigned __vavgu##count(unsigned a, unsigned b) {                                                       \
    return interpreter::lanes<U>(a, b, [](int x, int y) { return (x + y + 1) >> 1; });                           \
  }                                                                                                              \
  inline unsigned __vhaddu##count(unsigned a, unsigned b) {                                                      \
    return interpreter::lanes<U>(a, b, [](int x, int y) { return (x + y) >> 1; });                               \
  }                                                                                                              \
  inline unsigned __vmaxs##count(unsigned a, unsigned b) {                                                       \
    return interpreter::lanes<S>(a, b, [](int x, int y) { return std::max(x, y); });                             \
  }                                                                                                              \
  inline unsigned __vmaxu##count(unsigned a, unsigned b) {                                                       \
    return interpreter::lanes<U>(a, b, [](int x, int y) { return std::max(x, y); });                             \
  }                                                                                                              \
  inline unsigned __vmins##count(unsigned a, unsigned b) {                                                       \
    return interpreter::lanes<S>(a, b, [](int x, int y) { return std::min(x, y); });                             \
  }                                                                                                              \
  inline unsigned __vminu##count(unsigned a, unsigned b) {                                                       \
    return interpreter::lanes<U>(a, b, [](int x, int y) { return std::min(x, y); });                             \
  }                                                                                                              \
  inline unsigned __vsads##count(unsigned a, unsigned b) {                                                       \
    unsigned sum = 0;                                                                                            \
    interpreter::lanes<S>(a, b, [&](int x, int y) { return sum += static_cast<unsigned>(std::abs(x - y)), 0; }); \
    return sum;                                                                                                  \
  }                                                                                                              \
  inline unsigned __vsadu##count(unsigned a, unsigned b) {                                                       \
    unsigned sum = 0;                                                                                            \
    interpreter::lanes<U>(a, b, [&](int x, int y) { return sum += static_cast<unsigned>(std::abs(x - y)), 0; }); \
    return sum;                                                                                                  \
  }                                                                                                              \
  INTERPRETER_SIMD_COMPARE(eq##count, U, ==)                                                                     \
  INTERPRETER_SIMD_COMPARE(ne##count, U, !=)                                                                     \
  INTERPRETER_SIMD_COMPARE(ges##count, S, >=)                                                                    \
  INTERPRETER_SIMD_COMPARE(geu##count, U, >=)                                                                    \
  INTERPRETER_SIMD_COMPARE(gts##count, S, >)                                                                     \
  INTERPRETER_SIMD_COMPARE(gtu##count, U, >)                                                                     \
  INTERPRETER_SIMD_COMPARE(les##count, S, <=)                                                                    \
  INTERPRETER_SIMD_COMPARE(leu##count, U, <=)                                                                    \
  INTERPRETER_SIMD_COMPARE(lts##count, S, <)                                                                     \
  INTERPRETER_SIMD_COMPARE(ltu##count, U, <)
// __vcmp gives all bits of a lane, __vset gives 1.
#define INTERPRETER_SIMD_COMPARE(name, Lane, operation)                                         \
  inline unsigned __vcmp##name(unsigned a, unsigned b) {                                        \
    return interpreter::lanes<Lane>(a, b, [](int x, int y) { return x operation y ? -1 : 0; }); \
  }                                                                                             \
  inline unsigned __vset##name(unsigned a, unsigned b) {                                        \
    return interpreter::lanes<Lane>(a, b, [](int x, int y) { return x operation y ? 1 : 0; });  \
  }
INTERPRETER_SIMD(2, std::int16_t, std::uint16_t)
INTERPRETER_SIMD(4, std::int8_t, std::uint8_t)
#undef INTERPRETER_SIMD
#undef INTERPRETER_SIMD_COMPARE

// DPX, for dynamic programming: maxima and minima of two or three, of sums, and with 0. Sums wrap around.
#define INTERPRETER_DPX(name, Word, Lane, expression)                                                      \
  inline Word name(Word a, Word b, Word c) {                                                               \
    return static_cast<Word>(interpreter::lanes<Lane>(static_cast<unsigned>(a), static_cast<unsigned>(b),  \
                                                      static_cast<unsigned>(c),                            \
                                                      [](Lane x, Lane y, Lane z) { return expression; })); \
  }
#define INTERPRETER_DPX_OF_TWO(name, Word, Lane, expression)                                                  \
  inline Word name(Word a, Word b) {                                                                          \
    return static_cast<Word>(interpreter::lanes<Lane>(static_cast<unsigned>(a), static_cast<unsigned>(b), 0u, \
                                                      [](Lane x, Lane y, Lane) { return expression; }));      \
  }
#define INTERPRETER_DPX_ALL(type, Word, Lane)                                                 \
  INTERPRETER_DPX(__vimax3_##type, Word, Lane, std::max({x, y, z}))                           \
  INTERPRETER_DPX(__vimin3_##type, Word, Lane, std::min({x, y, z}))                           \
  INTERPRETER_DPX(__viaddmax_##type, Word, Lane, std::max(interpreter::wrapped_sum(x, y), z)) \
  INTERPRETER_DPX(__viaddmin_##type, Word, Lane, std::min(interpreter::wrapped_sum(x, y), z))
#define INTERPRETER_DPX_SIGNED(type, Word, Lane)                                                               \
  INTERPRETER_DPX_ALL(type, Word, Lane)                                                                        \
  INTERPRETER_DPX_OF_TWO(__vimax_##type##_relu, Word, Lane, std::max({x, y, Lane{}}))                          \
  INTERPRETER_DPX_OF_TWO(__vimin_##type##_relu, Word, Lane, std::max(std::min(x, y), Lane{}))                  \
  INTERPRETER_DPX(__vimax3_##type##_relu, Word, Lane, std::max({x, y, z, Lane{}}))                             \
  INTERPRETER_DPX(__vimin3_##type##_relu, Word, Lane, std::max(std::min({x, y, z}), Lane{}))                   \
  INTERPRETER_DPX(__viaddmax_##type##_relu, Word, Lane, std::max({interpreter::wrapped_sum(x, y), z, Lane{}})) \
  INTERPRETER_DPX(__viaddmin_##type##_relu, Word, Lane, std::max(std::min(interpreter::wrapped_sum(x, y), z), Lane{}))
INTERPRETER_DPX_SIGNED(s32, int, int)
INTERPRETER_DPX_SIGNED(s16x2, unsigned, std::int16_t)
INTERPRETER_DPX_ALL(u32, unsigned, unsigned)
INTERPRETER_DPX_ALL(u16x2, unsigned, std::uint16_t)
#undef INTERPRETER_DPX_SIGNED
#undef INTERPRETER_DPX_ALL
#undef INTERPRETER_DPX_OF_TWO
#undef INTERPRETER_DPX
// The same, and whether it is the first one.
#define INTERPRETER_DPX_WHICH(type, Word, function, operation)        \
  inline Word __vib##function##_##type(Word a, Word b, bool* first) { \
    *first = a operation b;                                           \
    return std::function(a, b);                                       \
  }
#define INTERPRETER_DPX_WHICH_OF_HALVES(type, Lane, function, operation)                                 \
  inline unsigned __vib##function##_##type(unsigned a, unsigned b, bool* first_high, bool* first_low) {  \
    *first_low = static_cast<Lane>(a) operation static_cast<Lane>(b);                                    \
    *first_high = static_cast<Lane>(a >> 16) operation static_cast<Lane>(b >> 16);                       \
    return interpreter::lanes<Lane>(a, b, 0u, [](Lane x, Lane y, Lane) { return std::function(x, y); }); \
  }
INTERPRETER_DPX_WHICH(s32, int, max, >=)
INTERPRETER_DPX_WHICH(s32, int, min, <=)
INTERPRETER_DPX_WHICH(u32, unsigned, max, >=)
INTERPRETER_DPX_WHICH(u32, unsigned, min, <=)
INTERPRETER_DPX_WHICH_OF_HALVES(s16x2, std::int16_t, max, >=)
INTERPRETER_DPX_WHICH_OF_HALVES(s16x2, std::int16_t, min, <=)
INTERPRETER_DPX_WHICH_OF_HALVES(u16x2, std::uint16_t, max, >=)
INTERPRETER_DPX_WHICH_OF_HALVES(u16x2, std::uint16_t, min, <=)
#undef INTERPRETER_DPX_WHICH_OF_HALVES
#undef INTERPRETER_DPX_WHICH

// Dot products of four bytes, or of two 16-bit integers and two of four bytes.
inline int __dp4a(int a, int b, int sum) {
  for (int shift = 0; shift < 32; shift += 8) sum += static_cast<std::int8_t>(a >> shift) * static_cast<std::int8_t>(b >> shift);
  return sum;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
  for (int shift = 0; shift < 32; shift += 8) sum += (a >> shift & 0xff) * (b >> shift & 0xff);
  return sum;
}
inline int __dp4a(char4 a, char4 b, int sum) { return sum + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned sum) {
  return sum + static_cast<unsigned>(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w);
}
inline int __dp2a_lo(int a, int b, int sum) {
  return sum + static_cast<std::int16_t>(a) * static_cast<std::int8_t>(b) +
         static_cast<std::int16_t>(a >> 16) * static_cast<std::int8_t>(b >> 8);
}
inline int __dp2a_hi(int a, int b, int sum) { return __dp2a_lo(a, b >> 16, sum); }
inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned sum) {
  return sum + (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff);
}
inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned sum) { return __dp2a_lo(a, b >> 16, sum); }

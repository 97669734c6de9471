/// @file
/// Functions of __half and __nv_bfloat16 that CUDA's headers give to device code only.
///
/// Each result is the exact one, rounded once, except of functions such as hexp: those are computed in double and then rounded.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "common/interpreter/language/rounding.h"

namespace interpreter {

inline double to_double(__half x) { return static_cast<double>(__half2float(x)); }
inline double to_double(__nv_bfloat16 x) { return static_cast<double>(__bfloat162float(x)); }
template <class T>
T half_from(double x);
template <>
inline __half half_from<__half>(double x) {
  return __double2half(x);
}
template <>
inline __nv_bfloat16 half_from<__nv_bfloat16>(double x) {
  return __double2bfloat16(x);
}

/// a * b + c, rounded once. The product is exact in double. The sum may not be: then its last bit is made odd, so that the rounding
/// to 16 bits, which looks at far fewer, sees on which side of a half the sum lies.
template <class T>
T half_fma(T a, T b, T c) {
  const double product = to_double(a) * to_double(b), addend = to_double(c), sum = product + addend;
  if (!std::isfinite(sum)) return half_from<T>(sum);
  const double back = sum - product, error = (product - (sum - back)) + (addend - back);
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  if (error == 0 || bits & 1) return half_from<T>(sum);
  return half_from<T>(std::bit_cast<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1));
}
template <class T>
T half_relu(T x) {
  const double value = to_double(x);
  return value > 0 || std::isnan(value) ? x : half_from<T>(0);  // NaN stays NaN
}
template <class T>
T half_saturated(T x) {
  const double value = to_double(x);
  return half_from<T>(value > 1 ? 1 : value > 0 ? value : 0);  // NaN becomes 0
}

}  // namespace interpreter

#define INTERPRETER_HALF(T, T2, name)                                                                             \
  inline T __hfma(T a, T b, T c) { return interpreter::half_fma(a, b, c); }                                       \
  inline T __hfma_relu(T a, T b, T c) { return interpreter::half_relu(interpreter::half_fma(a, b, c)); }          \
  inline T __hfma_sat(T a, T b, T c) { return interpreter::half_saturated(interpreter::half_fma(a, b, c)); }      \
  inline T2 __hfma2(T2 a, T2 b, T2 c) { return T2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }                \
  inline T2 __hfma2_relu(T2 a, T2 b, T2 c) { return T2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)); } \
  inline T2 __hfma2_sat(T2 a, T2 b, T2 c) { return T2(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)); }    \
  /* A complex product and sum, of two steps each. */                                                             \
  inline T2 __hcmadd(T2 a, T2 b, T2 c) {                                                                          \
    return T2(__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y)));          \
  }                                                                                                               \
  INTERPRETER_HALF_FUNCTION(T, T2, sqrt, std::sqrt(x))                                                            \
  INTERPRETER_HALF_FUNCTION(T, T2, rsqrt, 1 / std::sqrt(x))                                                       \
  INTERPRETER_HALF_FUNCTION(T, T2, rcp, 1 / x)                                                                    \
  INTERPRETER_HALF_FUNCTION(T, T2, log, std::log(x))                                                              \
  INTERPRETER_HALF_FUNCTION(T, T2, log2, std::log2(x))                                                            \
  INTERPRETER_HALF_FUNCTION(T, T2, log10, std::log10(x))                                                          \
  INTERPRETER_HALF_FUNCTION(T, T2, exp, std::exp(x))                                                              \
  INTERPRETER_HALF_FUNCTION(T, T2, exp2, std::exp2(x))                                                            \
  INTERPRETER_HALF_FUNCTION(T, T2, exp10, std::pow(10.0, x))                                                      \
  INTERPRETER_HALF_FUNCTION(T, T2, sin, std::sin(x))                                                              \
  INTERPRETER_HALF_FUNCTION(T, T2, cos, std::cos(x))                                                              \
  INTERPRETER_HALF_FUNCTION(T, T2, tanh, std::tanh(x))                                                            \
  INTERPRETER_HALF_FUNCTION(T, T2, tanh_approx, std::tanh(x))                                                     \
  INTERPRETER_HALF_FUNCTION(T, T2, trunc, std::trunc(x))                                                          \
  INTERPRETER_HALF_FUNCTION(T, T2, ceil, std::ceil(x))                                                            \
  INTERPRETER_HALF_FUNCTION(T, T2, floor, std::floor(x))                                                          \
  INTERPRETER_HALF_FUNCTION(T, T2, rint, std::nearbyint(x))                                                       \
  INTERPRETER_HALF_TO(T, name, rn, kNearest)                                                                      \
  INTERPRETER_HALF_TO(T, name, rd, kDown)                                                                         \
  INTERPRETER_HALF_TO(T, name, ru, kUp)
#define INTERPRETER_HALF_FUNCTION(T, T2, name, expression) \
  inline T h##name(T h) {                                  \
    const double x = interpreter::to_double(h);            \
    return interpreter::half_from<T>(expression);          \
  }                                                        \
  inline T2 h2##name(T2 h) { return T2(h##name(h.x), h##name(h.y)); }
#define INTERPRETER_HALF_TO(T, name, suffix, rounding)                                                                 \
  inline int __##name##2int_##suffix(T h) { return INTERPRETER_HALF_INTEGER(int, rounding); }                          \
  inline short __##name##2short_##suffix(T h) { return INTERPRETER_HALF_INTEGER(short, rounding); }                    \
  inline unsigned __##name##2uint_##suffix(T h) { return INTERPRETER_HALF_INTEGER(unsigned, rounding); }               \
  inline unsigned short __##name##2ushort_##suffix(T h) { return INTERPRETER_HALF_INTEGER(unsigned short, rounding); } \
  inline long long __##name##2ll_##suffix(T h) { return INTERPRETER_HALF_INTEGER(long long, rounding); }               \
  inline unsigned long long __##name##2ull_##suffix(T h) { return INTERPRETER_HALF_INTEGER(unsigned long long, rounding); }
#define INTERPRETER_HALF_INTEGER(I, rounding) interpreter::to_integer<I>(interpreter::Rounding::rounding, interpreter::to_double(h))
INTERPRETER_HALF(__half, __half2, half)
INTERPRETER_HALF(__nv_bfloat16, __nv_bfloat162, bfloat16)
#undef INTERPRETER_HALF
#undef INTERPRETER_HALF_FUNCTION
#undef INTERPRETER_HALF_TO
#undef INTERPRETER_HALF_INTEGER

// Two roundings in one direction are one: to float, then to 16 bits.
#define INTERPRETER_BFLOAT16_FROM(suffix)                                                                                   \
  inline __nv_bfloat16 __int2bfloat16_##suffix(int i) { return __float2bfloat16_##suffix(__int2float_##suffix(i)); }        \
  inline __nv_bfloat16 __uint2bfloat16_##suffix(unsigned i) { return __float2bfloat16_##suffix(__uint2float_##suffix(i)); } \
  inline __nv_bfloat16 __short2bfloat16_##suffix(short i) { return __int2bfloat16_##suffix(i); }                            \
  inline __nv_bfloat16 __ushort2bfloat16_##suffix(unsigned short i) { return __int2bfloat16_##suffix(i); }                  \
  inline __nv_bfloat16 __ll2bfloat16_##suffix(long long i) { return __float2bfloat16_##suffix(__ll2float_##suffix(i)); }    \
  inline __nv_bfloat16 __ull2bfloat16_##suffix(unsigned long long i) { return __float2bfloat16_##suffix(__ull2float_##suffix(i)); }
INTERPRETER_BFLOAT16_FROM(rz)
INTERPRETER_BFLOAT16_FROM(rd)
INTERPRETER_BFLOAT16_FROM(ru)
#undef INTERPRETER_BFLOAT16_FROM

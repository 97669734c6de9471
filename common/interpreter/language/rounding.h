/// @file
/// Arithmetic that rounds as an instruction says: the intrinsics with _rn, _rz, _ru and _rd, and conversions to integers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace interpreter {

/// To nearest even, toward zero, up, down.
enum class Rounding { kNearest, kZero, kUp, kDown };

// Not inline: they switch the CPU's rounding mode, across which the compiler would move arithmetic that it sees.
float rounded_add(Rounding, float a, float b);
float rounded_mul(Rounding, float a, float b);
float rounded_div(Rounding, float a, float b);
float rounded_fma(Rounding, float a, float b, float c);
float rounded_sqrt(Rounding, float a);
double rounded_add(Rounding, double a, double b);
double rounded_mul(Rounding, double a, double b);
double rounded_div(Rounding, double a, double b);
double rounded_fma(Rounding, double a, double b, double c);
double rounded_sqrt(Rounding, double a);
float rounded_to_float(Rounding, double a);
float rounded_to_float(Rounding, long long a);
float rounded_to_float(Rounding, unsigned long long a);
double rounded_to_double(Rounding, long long a);
double rounded_to_double(Rounding, unsigned long long a);

template <class F>
F rounded_to_whole(Rounding rounding, F x) {
  switch (rounding) {
    case Rounding::kZero: return std::trunc(x);
    case Rounding::kUp: return std::ceil(x);
    case Rounding::kDown: return std::floor(x);
    case Rounding::kNearest: break;
  }
  return std::nearbyint(x);
}

/// As the GPU's conversion instructions: what does not fit becomes the nearest integer that does, and NaN becomes 0, or the
/// smallest number of a 64-bit type with a sign, or the largest one without.
template <class Integer, class F>
Integer to_integer(Rounding rounding, F x) {
  using Limits = std::numeric_limits<Integer>;
  if (std::isnan(x)) return sizeof(Integer) < 8 ? Integer(0) : std::is_signed_v<Integer> ? Limits::min() : Limits::max() / 2 + 1;
  const F whole = rounded_to_whole(rounding, x);
  // One more than the largest number is a power of two, which a floating-point number has exactly.
  if (whole >= std::ldexp(F(1), Limits::digits)) return Limits::max();
  if (whole <= static_cast<F>(Limits::min())) return Limits::min();
  return static_cast<Integer>(whole);
}

}  // namespace interpreter

namespace interpreter::rounded {

// To nearest is what the CPU does anyway: no call.
inline float add(Rounding r, float a, float b) { return r == Rounding::kNearest ? a + b : rounded_add(r, a, b); }
inline float mul(Rounding r, float a, float b) { return r == Rounding::kNearest ? a * b : rounded_mul(r, a, b); }
inline float div(Rounding r, float a, float b) { return r == Rounding::kNearest ? a / b : rounded_div(r, a, b); }
inline float fma(Rounding r, float a, float b, float c) {
  return r == Rounding::kNearest ? std::fma(a, b, c) : rounded_fma(r, a, b, c);
}
inline float sqrt(Rounding r, float a) { return r == Rounding::kNearest ? std::sqrt(a) : rounded_sqrt(r, a); }
inline double add(Rounding r, double a, double b) { return r == Rounding::kNearest ? a + b : rounded_add(r, a, b); }
inline double mul(Rounding r, double a, double b) { return r == Rounding::kNearest ? a * b : rounded_mul(r, a, b); }
inline double div(Rounding r, double a, double b) { return r == Rounding::kNearest ? a / b : rounded_div(r, a, b); }
inline double fma(Rounding r, double a, double b, double c) {
  return r == Rounding::kNearest ? std::fma(a, b, c) : rounded_fma(r, a, b, c);
}
inline double sqrt(Rounding r, double a) { return r == Rounding::kNearest ? std::sqrt(a) : rounded_sqrt(r, a); }

}  // namespace interpreter::rounded

#define INTERPRETER_ROUNDED(suffix, rounding)                                                                                    \
  inline float __fadd_##suffix(float a, float b) { return interpreter::rounded::add(rounding, a, b); }                           \
  inline float __fsub_##suffix(float a, float b) { return interpreter::rounded::add(rounding, a, -b); }                          \
  inline float __fmul_##suffix(float a, float b) { return interpreter::rounded::mul(rounding, a, b); }                           \
  inline float __fdiv_##suffix(float a, float b) { return interpreter::rounded::div(rounding, a, b); }                           \
  inline float __fmaf_##suffix(float a, float b, float c) { return interpreter::rounded::fma(rounding, a, b, c); }               \
  inline float __frcp_##suffix(float a) { return interpreter::rounded::div(rounding, 1.0f, a); }                                 \
  inline float __fsqrt_##suffix(float a) { return interpreter::rounded::sqrt(rounding, a); }                                     \
  inline float __double2float_##suffix(double a) { return interpreter::rounded_to_float(rounding, a); }                          \
  inline float __ll2float_##suffix(long long a) { return interpreter::rounded_to_float(rounding, a); }                           \
  inline float __ull2float_##suffix(unsigned long long a) { return interpreter::rounded_to_float(rounding, a); }                 \
  inline float __uint2float_##suffix(unsigned a) { return interpreter::rounded_to_float(rounding, static_cast<long long>(a)); }  \
  inline double __dadd_##suffix(double a, double b) { return interpreter::rounded::add(rounding, a, b); }                        \
  inline double __dsub_##suffix(double a, double b) { return interpreter::rounded::add(rounding, a, -b); }                       \
  inline double __dmul_##suffix(double a, double b) { return interpreter::rounded::mul(rounding, a, b); }                        \
  inline double __ddiv_##suffix(double a, double b) { return interpreter::rounded::div(rounding, a, b); }                        \
  inline double __fma_##suffix(double a, double b, double c) { return interpreter::rounded::fma(rounding, a, b, c); }            \
  inline double __drcp_##suffix(double a) { return interpreter::rounded::div(rounding, 1.0, a); }                                \
  inline double __dsqrt_##suffix(double a) { return interpreter::rounded::sqrt(rounding, a); }                                   \
  inline double __ll2double_##suffix(long long a) { return interpreter::rounded_to_double(rounding, a); }                        \
  inline double __ull2double_##suffix(unsigned long long a) { return interpreter::rounded_to_double(rounding, a); }              \
  inline int __float2int_##suffix(float a) { return interpreter::to_integer<int>(rounding, a); }                                 \
  inline unsigned __float2uint_##suffix(float a) { return interpreter::to_integer<unsigned>(rounding, a); }                      \
  inline long long __float2ll_##suffix(float a) { return interpreter::to_integer<long long>(rounding, a); }                      \
  inline unsigned long long __float2ull_##suffix(float a) { return interpreter::to_integer<unsigned long long>(rounding, a); }   \
  inline int __double2int_##suffix(double a) { return interpreter::to_integer<int>(rounding, a); }                               \
  inline unsigned __double2uint_##suffix(double a) { return interpreter::to_integer<unsigned>(rounding, a); }                    \
  inline long long __double2ll_##suffix(double a) { return interpreter::to_integer<long long>(rounding, a); }                    \
  inline unsigned long long __double2ull_##suffix(double a) { return interpreter::to_integer<unsigned long long>(rounding, a); } \
  inline float __int2float_##suffix(int a) { return interpreter::rounded_to_float(rounding, static_cast<long long>(a)); }
INTERPRETER_ROUNDED(rn, interpreter::Rounding::kNearest)
INTERPRETER_ROUNDED(rz, interpreter::Rounding::kZero)
INTERPRETER_ROUNDED(ru, interpreter::Rounding::kUp)
INTERPRETER_ROUNDED(rd, interpreter::Rounding::kDown)
#undef INTERPRETER_ROUNDED
inline float __frsqrt_rn(float a) { return static_cast<float>(1 / std::sqrt(static_cast<double>(a))); }
inline double __int2double_rn(int a) { return a; }
inline double __uint2double_rn(unsigned a) { return a; }

// ------------------------------------------------------------------------------------------------------- bits of a double
inline long long __double_as_longlong(double x) {
  long long bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline double __longlong_as_double(long long bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(
      static_cast<long long>(static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32 | static_cast<std::uint32_t>(low)));
}

/// @file
/// Mathematical functions that CUDA has and C++ has not. Those of C++ are the C library's; CUDA's differ from them by some units in
/// the last place (CUDA C++ Programming Guide, "Mathematical Functions").
#pragma once

#include <math.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace interpreter {

// Of x * pi: the remainder of x is exact, so that whole numbers and halves give exact results.
template <class F>
F sine_of_pi(F x) {
  const F r = std::remainder(x, F(2));
  if (r == std::trunc(r)) return std::copysign(F(0), x);
  if (std::fabs(r) == F(0.5)) return std::copysign(F(1), r);
  return std::sin(r * std::numbers::pi_v<F>);
}
template <class F>
F cosine_of_pi(F x) {
  const F r = std::fabs(std::remainder(x, F(2)));
  if (r == F(0.5)) return F(0);
  return std::cos(r * std::numbers::pi_v<F>);
}
double inverse_erfc(double x);

}  // namespace interpreter

// Each in double, and with an f in float, where the double result is rounded.
#define INTERPRETER_FUNCTION1(name, expression)       \
  inline double name(double x) { return expression; } \
  inline float name##f(float y) { return static_cast<float>(name(static_cast<double>(y))); }
#define INTERPRETER_FUNCTION(name, parameters, arguments_as_double, parameters_in_float, expression) \
  inline double name parameters { return expression; }                                               \
  inline float name##f parameters_in_float { return static_cast<float>(name arguments_as_double); }
INTERPRETER_FUNCTION1(sinpi, interpreter::sine_of_pi(x))
INTERPRETER_FUNCTION1(cospi, interpreter::cosine_of_pi(x))
INTERPRETER_FUNCTION1(rcbrt, 1 / std::cbrt(x))
INTERPRETER_FUNCTION1(normcdf, 0.5 * std::erfc(-x / std::numbers::sqrt2))
INTERPRETER_FUNCTION1(erfcinv, interpreter::inverse_erfc(x))
INTERPRETER_FUNCTION1(erfinv, x < 0 ? -interpreter::inverse_erfc(1 + x) : interpreter::inverse_erfc(1 - x))
INTERPRETER_FUNCTION1(normcdfinv, -std::numbers::sqrt2* interpreter::inverse_erfc(2 * x))
INTERPRETER_FUNCTION1(erfcx, std::erfc(x) > 1e-300 ? std::exp(x * x) * std::erfc(x) : 1 / (x * std::sqrt(std::numbers::pi)))
#ifndef __clang__
INTERPRETER_FUNCTION1(cyl_bessel_i0, std::cyl_bessel_i(0, std::fabs(x)))
INTERPRETER_FUNCTION1(cyl_bessel_i1, std::copysign(1.0, x) * std::cyl_bessel_i(1, std::fabs(x)))
#endif
INTERPRETER_FUNCTION(rhypot, (double x, double y), (double(x), double(y)), (float x, float y), 1 / std::hypot(x, y))
INTERPRETER_FUNCTION(norm3d, (double x, double y, double z), (double(x), double(y), double(z)), (float x, float y, float z),
                     std::hypot(x, y, z))
INTERPRETER_FUNCTION(rnorm3d, (double x, double y, double z), (double(x), double(y), double(z)), (float x, float y, float z),
                     1 / std::hypot(x, y, z))
INTERPRETER_FUNCTION(norm4d, (double x, double y, double z, double w), (double(x), double(y), double(z), double(w)),
                     (float x, float y, float z, float w), std::hypot(std::hypot(x, y), std::hypot(z, w)))
INTERPRETER_FUNCTION(rnorm4d, (double x, double y, double z, double w), (double(x), double(y), double(z), double(w)),
                     (float x, float y, float z, float w), 1 / std::hypot(std::hypot(x, y), std::hypot(z, w)))
#undef INTERPRETER_FUNCTION1
#undef INTERPRETER_FUNCTION

inline void sincospi(double x, double* sine, double* cosine) { *sine = sinpi(x), *cosine = cospi(x); }
inline void sincospif(float x, float* sine, float* cosine) { *sine = sinpif(x), *cosine = cospif(x); }
inline double fdivide(double x, double y) { return x / y; }
inline float fdividef(float x, float y) { return x / y; }

// The fast ones are the exact ones here.
inline void __sincosf(float x, float* sine, float* cosine) { *sine = std::sin(x), *cosine = std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
inline float __exp10f(float x) { return std::pow(10.0f, x); }

// Of integers, by name.
inline unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned umax(unsigned a, unsigned b) { return a < b ? b : a; }
inline long long llmin(long long a, long long b) { return a < b ? a : b; }
inline long long llmax(long long a, long long b) { return a < b ? b : a; }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return a < b ? b : a; }

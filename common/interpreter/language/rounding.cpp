#include "common/interpreter/language/rounding.h"

#include <cfenv>

namespace interpreter {
namespace {

constexpr int mode(Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero: return FE_TOWARDZERO;
    case Rounding::kUp: return FE_UPWARD;
    case Rounding::kDown: return FE_DOWNWARD;
    case Rounding::kNearest: break;
  }
  return FE_TONEAREST;
}

// A value that the compiler does not know: it can neither compute with it at compile time nor move what follows.
template <class T>
T hidden(T value) {
  const volatile T copy = value;
  return copy;
}

template <class Result, class Operation, class... Operands>
Result in_mode(Rounding rounding, Operation operation, Operands... operands) {
  if (rounding == Rounding::kNearest) return static_cast<Result>(operation(operands...));
  std::fesetround(mode(rounding));
  const Result result = hidden(static_cast<Result>(operation(hidden(operands)...)));
  std::fesetround(FE_TONEAREST);
  return result;
}

}  // namespace

#define INTERPRETER_ROUNDED(T)                                        \
  T rounded_add(Rounding r, T a, T b) {                               \
    return in_mode<T>(                                                \
        r, [](T x, T y) { return x + y; }, a, b);                     \
  }                                                                   \
  T rounded_mul(Rounding r, T a, T b) {                               \
    return in_mode<T>(                                                \
        r, [](T x, T y) { return x * y; }, a, b);                     \
  }                                                                   \
  T rounded_div(Rounding r, T a, T b) {                               \
    return in_mode<T>(                                                \
        r, [](T x, T y) { return x / y; }, a, b);                     \
  }                                                                   \
  T rounded_fma(Rounding r, T a, T b, T c) {                          \
    return in_mode<T>(                                                \
        r, [](T x, T y, T z) { return std::fma(x, y, z); }, a, b, c); \
  }                                                                   \
  T rounded_sqrt(Rounding r, T a) {                                   \
    return in_mode<T>(                                                \
        r, [](T x) { return std::sqrt(x); }, a);                      \
  }
INTERPRETER_ROUNDED(float)
INTERPRETER_ROUNDED(double)
#undef INTERPRETER_ROUNDED

float rounded_to_float(Rounding r, double a) {
  return in_mode<float>(
      r, [](double x) { return x; }, a);
}
float rounded_to_float(Rounding r, long long a) {
  return in_mode<float>(
      r, [](long long x) { return x; }, a);
}
float rounded_to_float(Rounding r, unsigned long long a) {
  return in_mode<float>(
      r, [](unsigned long long x) { return x; }, a);
}
double rounded_to_double(Rounding r, long long a) {
  return in_mode<double>(
      r, [](long long x) { return x; }, a);
}
double rounded_to_double(Rounding r, unsigned long long a) {
  return in_mode<double>(
      r, [](unsigned long long x) { return x; }, a);
}

}  // namespace interpreter

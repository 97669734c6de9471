/// @file
/// Activations and a bias as epilogues: functors on the sum in float, before it is rounded to C's type.
///
/// A new activation is one more such functor, and its place in AllActivations: names on command lines, kernels to compare with and
/// the verification follow. All of them pass NaN on (which rules out max(0, x): the maximum of 0 and NaN is 0), and at infinity
/// they have their limits. The exponential is the GPU's fast one, good to about |t| / 2^22.
#pragma once

#include <cmath>
#include <numbers>

#include "common/gemm/gemm.h"

namespace gemm {

/// What an activation gives in double precision, and how far its functor in float may be from that.
struct Exact {
  double value;
  double slope = 1;     ///< an error of x grows by no more than this
  double relative = 0;  ///< error of the functor, in parts of the value
  double absolute = 0;  ///< and besides
};
inline constexpr double kUlp = 0x1p-23;  ///< of a float, relative to it

namespace detail {

/// x / (1 + exp(-t)), the sigmoid of t times x; -0 for t < -87, where it is less than 2^-119 from 0 for the functions below.
/// Otherwise infinity / infinity would make NaN of the limit at minus infinity. Chosen after both are computed: a select, where a
/// branch would keep nvcc from computing several sums at the same time.
GEMM_HOST_DEVICE float times_sigmoid(float x, float t) {
#ifdef __CUDA_ARCH__
  const float y = __fdividef(x, 1 + __expf(-t));
#else
  const float y = x / (1 + std::exp(-t));
#endif
  return t < -87 ? -0.0f : y;
}

/// The same in double precision, with its limit at minus infinity. @param slope of the function of x that it is
inline Exact exact_times_sigmoid(double x, double t, double slope) {
  const double y = t == -INFINITY ? -0.0 : x / (1 + std::exp(-t));
  // Rounding t costs |t| ulps of the exponential, as the GPU's fast one does once more (CUDA C++ Programming Guide, section
  // "Intrinsic Functions"). Where the exponential is small beside 1, so are they.
  const double relative = kUlp * (8 + (t < 100 ? 3 * std::fabs(t) / (1 + std::exp(t)) : 0));
  return {y, slope, std::isfinite(y) && y != 0 ? relative : 0, 0x1p-119};  // what times_sigmoid() takes for 0
}

}  // namespace detail

/// x where x >= 0, else slope · x. -0 stays -0; minus infinity stays so for a slope above 0 (for 0 see Relu).
struct LeakyRelu {
  static constexpr char kName[] = "leaky_relu";                                        ///< on command lines and in results
  float slope = 0.01f;                                                                 ///< below zero
  GEMM_HOST_DEVICE float operator()(float x) const { return x >= 0 ? x : slope * x; }  ///< NaN for NaN
  /// In double precision, for an x that may be off by as much as the second parameter says; so in all of them.
  static Exact exact(double x, double) { return {x >= 0 ? x : double(LeakyRelu{}.slope) * x, 1, kUlp, 0x1p-149}; }
  /// Whatever the sum: see device::apply_epilogue().
  GEMM_HOST_DEVICE bool changes_nothing() const { return slope == 1; }
};

/// 0 where x < 0, else x. -0 stays -0.
struct Relu {
  static constexpr char kName[] = "relu";                                     ///< on command lines and in results
  GEMM_HOST_DEVICE float operator()(float x) const { return x < 0 ? 0 : x; }  ///< NaN for NaN
  static Exact exact(double x, double) { return {x < 0 ? 0 : x}; }            ///< see LeakyRelu
};

/// x · sigmoid(x) = x / (1 + exp(-x)). Minus infinity gives -0, plus infinity itself.
struct Silu {
  static constexpr char kName[] = "silu";                                                   ///< on command lines and in results
  GEMM_HOST_DEVICE float operator()(float x) const { return detail::times_sigmoid(x, x); }  ///< NaN for NaN
  static Exact exact(double x, double) { return detail::exact_times_sigmoid(x, x, 1.1); }   ///< see LeakyRelu
};

/// x / 2 · (1 + tanh(u)) with u = sqrt(2 / pi) · (x + 0.044715 · x³), the usual approximation of x · Phi(x) (D. Hendrycks, K.
/// Gimpel, Gaussian Error Linear Units, 2016). Written as x · sigmoid(2 u), which is the same and does not cancel where tanh(u) is
/// near -1. Minus infinity gives -0, plus infinity itself.
struct GeluTanh {
  static constexpr char kName[] = "gelu";                             ///< on command lines and in results
  GEMM_HOST_DEVICE float operator()(float x) const {                  ///< NaN for NaN
    constexpr float kLinear = 1.5957691216f, kCubic = 0.0713548163f;  // 2 sqrt(2 / pi), and that times 0.044715
    return detail::times_sigmoid(x, x * (kLinear + kCubic * (x * x)));
  }
  /// See LeakyRelu.
  static Exact exact(double x, double) {
    return detail::exact_times_sigmoid(x, 2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x), 1.13);
  }
};

/// All of them. The first is the one that stands where nothing is fused.
using AllActivations = TypeList<Identity, LeakyRelu, Relu, GeluTanh, Silu>;

/// activation(x + bias[column]). The sum gets the bias before it is rounded, so that both are rounded once.
template <class Activation, class T>
struct Biased {
  Activation activation;
  const T* bias = nullptr;  ///< one for each column of C, in device memory; null for none
  std::int64_t cols = 0;    ///< of C

  /// What it is in one column.
  struct Column {
    Activation activation;
    float bias;                                                                        ///< of this column
    GEMM_HOST_DEVICE float operator()(float x) const { return activation(x + bias); }  ///< of a sum
  };
  /// Loads the bias of a column. Beyond the last, and without a bias, it is -0: adding that changes nothing, not even -0.
  GEMM_HOST_DEVICE Column column(std::int64_t col) const {
    return {activation, bias && col < cols ? static_cast<float>(bias[col]) : -0.0f};
  }
};

/// What an epilogue is in one column: itself, unless it has a method `column` as Biased does.
template <class Epilogue>
GEMM_HOST_DEVICE auto in_column(const Epilogue& epilogue, [[maybe_unused]] std::int64_t col) {
  if constexpr (requires { epilogue.column(col); })
    return epilogue.column(col);
  else
    return epilogue;
}

}  // namespace gemm

/// @file
/// Activations and a bias as epilogues: functors on the sum in float, before it is rounded to C's type.
///
/// A new activation is one more such functor. All of them pass NaN on (which rules out max(0, x): the maximum of 0 and NaN is 0),
/// and at infinity they have their limits. The exponential is the GPU's fast one, good to about |t| / 2^22.
#pragma once

#include <cmath>

#include "common/gemm/gemm.h"

namespace gemm {

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

}  // namespace detail

/// x where x >= 0, else slope · x. -0 stays -0; minus infinity stays so for a slope above 0 (for 0 see Relu).
struct LeakyRelu {
  float slope = 0.01f;                                                                 ///< below zero
  GEMM_HOST_DEVICE float operator()(float x) const { return x >= 0 ? x : slope * x; }  ///< NaN for NaN
};

/// 0 where x < 0, else x. -0 stays -0.
struct Relu {
  GEMM_HOST_DEVICE float operator()(float x) const { return x < 0 ? 0 : x; }  ///< NaN for NaN
};

/// x · sigmoid(x) = x / (1 + exp(-x)). Minus infinity gives -0, plus infinity itself.
struct Silu {
  GEMM_HOST_DEVICE float operator()(float x) const { return detail::times_sigmoid(x, x); }  ///< NaN for NaN
};

/// x / 2 · (1 + tanh(u)) with u = sqrt(2 / pi) · (x + 0.044715 · x³), the usual approximation of x · Phi(x) (D. Hendrycks, K.
/// Gimpel, Gaussian Error Linear Units, 2016). Written as x · sigmoid(2 u), which is the same and does not cancel where tanh(u) is
/// near -1. Minus infinity gives -0, plus infinity itself.
struct GeluTanh {
  GEMM_HOST_DEVICE float operator()(float x) const {                  ///< NaN for NaN
    constexpr float kLinear = 1.5957691216f, kCubic = 0.0713548163f;  // 2 sqrt(2 / pi), and that times 0.044715
    return detail::times_sigmoid(x, x * (kLinear + kCubic * (x * x)));
  }
};

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

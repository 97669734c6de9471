/// @file
/// What a fused step does to a sum before it is rounded, chosen at run time; and what comes of it, in double precision.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/gemm/activation.h"

namespace harness {

/// The functors of common/gemm/activation.h, with their default parameters.
enum class Activation { kIdentity, kLeakyRelu, kRelu, kGelu, kSilu };
inline constexpr Activation kActivations[] = {Activation::kIdentity, Activation::kLeakyRelu, Activation::kRelu, Activation::kGelu,
                                              Activation::kSilu};  ///< all of them

/// The Activation of a functor.
template <class Functor>
inline constexpr Activation kActivation = Activation::kIdentity;
template <>
inline constexpr Activation kActivation<gemm::LeakyRelu> = Activation::kLeakyRelu;
template <>
inline constexpr Activation kActivation<gemm::Relu> = Activation::kRelu;
template <>
inline constexpr Activation kActivation<gemm::GeluTanh> = Activation::kGelu;
template <>
inline constexpr Activation kActivation<gemm::Silu> = Activation::kSilu;

/// "identity", "leaky_relu", "relu", "gelu", "silu".
std::string_view name(Activation a);
/// The activation of that name.
std::optional<Activation> activation_named(std::string_view text);

/// activation(x + bias[column]), or without the bias.
struct Epilogue {
  Activation activation = Activation::kIdentity;
  bool bias = false;

  bool operator==(const Epilogue&) const = default;  ///< both the same
  /// Whether it changes nothing.
  bool is_identity() const { return *this == Epilogue{}; }
};
/// "gelu", "bias + gelu", "bias".
std::string name(const Epilogue& e);
/// The epilogue of that name.
std::optional<Epilogue> epilogue_named(std::string_view text);

/// A value in double precision, and how far a result may be from it.
struct Expected {
  double value, tolerance;
};
/// What activation `a` gives for x, which may itself be off by `tolerance`; with the rounding errors of the functor in float.
Expected expected(Activation a, double x, double tolerance = 0);

/// Whether `got` is NaN, infinite or finite where `right` is, and no farther from it than allowed. Always false for a NaN that
/// should be none.
bool agrees(double got, const Expected& right);

}  // namespace harness

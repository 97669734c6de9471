/// @file
/// What a fused step does to a sum before it is rounded, chosen at run time; and what comes of it, in double precision.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "common/gemm/activation.h"

namespace harness {

/// One of gemm::AllActivations, by its place there.
enum class Activation : unsigned char {};

/// The place of a functor.
template <class Functor, class... All>
consteval Activation place_of(gemm::TypeList<All...>) {
  static_assert((std::is_same_v<Functor, All> || ...), "no activation of gemm::AllActivations");
  const bool is_it[] = {std::is_same_v<Functor, All>...};
  return Activation(std::find(std::begin(is_it), std::end(is_it), true) - std::begin(is_it));
}
/// The same.
template <class Functor>
inline constexpr Activation kActivation = place_of<Functor>(gemm::AllActivations{});
static_assert(kActivation<gemm::Identity> == Activation{});

/// All of them, in that order.
template <class... All>
consteval std::array<Activation, sizeof...(All)> places_of(gemm::TypeList<All...>) {
  return {kActivation<All>...};
}
/// The same.
inline constexpr auto kActivations = places_of(gemm::AllActivations{});

/// Calls `visit` with the functor that `a` stands for, with its default parameters. @return what that returns
template <class Visit, class First, class... Others>
auto with_functor(Activation a, const Visit& visit, gemm::TypeList<First, Others...>) {
  if constexpr (sizeof...(Others) > 0) {
    if (a != kActivation<First>) return with_functor(a, visit, gemm::TypeList<Others...>{});
  }
  return visit(First{});
}
/// The same of all activations.
template <class Visit>
auto with_functor(Activation a, const Visit& visit) {
  return with_functor(a, visit, gemm::AllActivations{});
}

/// "identity", "leaky_relu" ...: its kName.
std::string_view name(Activation a);
/// The activation of that name.
std::optional<Activation> activation_named(std::string_view text);
/// "identity, leaky_relu, ... or silu".
std::string names_of_activations();

/// activation(x + bias[column]), or without the bias.
struct Epilogue {
  Activation activation = kActivation<gemm::Identity>;
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

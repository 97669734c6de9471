#include "common/harness/problem/epilogue.h"

#include <cmath>

#include "common/harness/program/step.h"

namespace harness {

std::string_view name(Activation a) {
  return with_functor(a, [](auto functor) { return std::string_view(decltype(functor)::kName); });
}

std::optional<Activation> activation_named(std::string_view text) {
  for (const Activation a : kActivations)
    if (name(a) == text) return a;
  return std::nullopt;
}

std::string names_of_activations() {
  std::string text;
  for (const Activation a : kActivations)
    text += (a == kActivations.front() ? "" : a == kActivations.back() ? " or " : ", ") + std::string(name(a));
  return text;
}

std::string name(const Epilogue& e) {
  if (!e.bias) return std::string(name(e.activation));
  return e.activation == kActivation<gemm::Identity> ? "bias" : "bias + " + std::string(name(e.activation));
}

std::optional<Epilogue> epilogue_named(std::string_view text) {
  for (const Activation a : kActivations)
    for (const bool bias : {false, true})
      if (const Epilogue e{a, bias}; name(e) == text) return e;
  return std::nullopt;
}

Expected expected(Activation a, double x, double tolerance) {
  return with_functor(a, [&](auto functor) -> Expected {
    if constexpr (std::is_same_v<decltype(functor), gemm::Identity>) {
      return {x, tolerance};
    } else {
      const gemm::Exact y = functor.exact(x, tolerance);
      const double grown = y.slope * tolerance, rounded = y.relative ? y.relative * (std::fabs(y.value) + grown) : 0;
      return {y.value, grown + rounded + y.absolute};
    }
  });
}

bool agrees(double got, const Expected& right) {
  if (std::isnan(right.value)) return std::isnan(got);
  if (std::isinf(right.value)) return got == right.value;
  return std::fabs(got - right.value) <= right.tolerance;  // false if got is NaN
}

}  // namespace harness

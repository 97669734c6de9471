#include "common/harness/problem/epilogue.h"

#include <cmath>
#include <stdexcept>

#include "common/harness/problem/activation_kernel.h"
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

namespace {

const Fused* find(const Variant& v, const Epilogue& e) {
  for (const Fused& f : v.fused)
    if (f.activation == e.activation && (f.takes_bias || !e.bias)) return &f;
  return nullptr;
}

}  // namespace

bool Variant::has(const Epilogue& e) const { return (e.is_identity() && gemm) || unfused || find(*this, e); }

Variant without_fusing(const Variant& v) {
  Variant alone = v;
  alone.tile += ", unfused";
  alone.fused.clear();
  alone.unfused = true;
  return alone;
}

void Variant::run(const Epilogue& e, const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C, const void* bias) const {
  if (e.is_identity()) return gemm(A, B, C);
  if (unfused) {
    gemm(A, B, C);
    return launch_activation(out, C, e, bias);
  }
  const Fused* const f = find(*this, e);
  if (!f) throw std::invalid_argument(tile + " was not built with the epilogue " + name(e));
  f->gemm(A, B, C, e.bias ? bias : nullptr);
}

}  // namespace harness

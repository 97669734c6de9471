#include "common/harness/epilogue.h"

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "common/harness/activation_kernel.h"
#include "common/harness/step.h"

namespace harness {
namespace {

// x times the sigmoid of t, with its limit at minus infinity.
double times_sigmoid(double x, double t) { return t == -INFINITY ? -0.0 : x / (1 + std::exp(-t)); }

double gelu_argument(double x) { return 2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x); }

}  // namespace

std::string_view name(Activation a) {
  switch (a) {
    case Activation::kIdentity: return "identity";
    case Activation::kLeakyRelu: return "leaky_relu";
    case Activation::kRelu: return "relu";
    case Activation::kGelu: return "gelu";
    case Activation::kSilu: return "silu";
  }
  return "";
}

std::optional<Activation> activation_named(std::string_view text) {
  for (const Activation a : kActivations)
    if (name(a) == text) return a;
  return std::nullopt;
}

std::string name(const Epilogue& e) {
  if (!e.bias) return std::string(name(e.activation));
  return e.activation == Activation::kIdentity ? "bias" : "bias + " + std::string(name(e.activation));
}

std::optional<Epilogue> epilogue_named(std::string_view text) {
  for (const Activation a : kActivations)
    for (const bool bias : {false, true})
      if (const Epilogue e{a, bias}; name(e) == text) return e;
  return std::nullopt;
}

Expected expected(Activation a, double x, double tolerance) {
  constexpr double kUlp = 0x1p-23;           // of a float, relative to it
  constexpr double kSigmoidZero = 0x1p-119;  // what the functors take for 0
  // Slopes are at most these, so an error of x grows by no more.
  constexpr double kGeluSlope = 1.13, kSiluSlope = 1.1;
  const auto sigmoid = [&](double t, double slope) {
    const double y = times_sigmoid(x, t);
    // Rounding t costs |t| ulps of the exponential, as the GPU's fast one does once more (CUDA C++ Programming Guide, section
    // "Intrinsic Functions"). Where the exponential is small beside 1, so are they.
    const double relative = kUlp * (8 + (t < 100 ? 3 * std::fabs(t) / (1 + std::exp(t)) : 0));
    return Expected{
        y, slope * tolerance + (std::isfinite(y) && y != 0 ? relative * (std::fabs(y) + slope * tolerance) : 0) + kSigmoidZero};
  };
  switch (a) {
    case Activation::kIdentity: return {x, tolerance};
    case Activation::kLeakyRelu: {
      const double y = x >= 0 ? x : static_cast<double>(gemm::LeakyRelu{}.slope) * x;
      return {y, tolerance + kUlp * (std::fabs(y) + tolerance) + 0x1p-149};
    }
    case Activation::kRelu: return {x < 0 ? 0 : x, tolerance};
    case Activation::kGelu: return sigmoid(gelu_argument(x), kGeluSlope);
    case Activation::kSilu: return sigmoid(x, kSiluSlope);
  }
  return {x, tolerance};
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

bool Variant::has(const Epilogue& e) const { return e.is_identity() || unfused || find(*this, e); }

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

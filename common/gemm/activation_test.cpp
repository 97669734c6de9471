// Every activation, on the device, against double precision.
#include "common/gemm/activation.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "common/device/device.cuh"
#include "common/harness/problem/epilogue.h"

using harness::Activation, harness::agrees, harness::expected, harness::kActivation;

namespace {

template <class F>
__global__ void apply(F f, const float* x, float* y, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) y[i] = f(x[i]);
}

__global__ void apply_in_columns(gemm::Biased<gemm::LeakyRelu, float> epilogue, float x, float* y) {
  y[threadIdx.x] = gemm::in_column(epilogue, threadIdx.x)(x);
}

template <class F>
std::vector<float> on_device(const F& f, const std::vector<float>& x) {
  const device::Buffer<float> from(x, "x"), to(x.size(), "y");
  const int count = static_cast<int>(x.size());
  device::launch(apply<F>, static_cast<unsigned>(gemm::ceil_div(count, 128)), 128, 0, f, from.data(), to.data(), count);
  device::synchronize();
  return to.download();
}

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

// Zeros, both infinities, NaN; every power of two, which takes in the smallest and the largest; numbers in between; and a fine
// comb where the curves bend.
std::vector<float> inputs() {
  std::vector<float> all = {0.0f,  -0.0f, kInfinity, -kInfinity, kNaN, -kNaN, std::numeric_limits<float>::max(),
                            65504, 65520, 88.8f};
  std::minstd_rand random(1);
  for (int exponent = -149; exponent <= 127; ++exponent) {
    all.push_back(std::ldexp(1.0f, exponent));
    if (exponent > -126) all.push_back(std::ldexp(std::uniform_real_distribution<float>(1, 2)(random), exponent));
  }
  for (float x = 0; x < 130; x += x < 12 ? 1 / 32.f : 1 / 2.f) all.push_back(x + 1 / 77.f);
  const std::size_t positive = all.size();
  for (std::size_t i = 0; i < positive; ++i) all.push_back(-all[i]);
  return all;
}

// The inputs for which f is not activation `a`, as a text; empty if there are none.
template <class F>
std::string wrong(Activation a, const F& f) {
  const std::vector<float> x = inputs(), y = on_device(f, x);
  std::string text;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!agrees(y[i], expected(a, x[i])))
      text +=
          "f(" + std::to_string(x[i]) + ") = " + std::to_string(y[i]) + ", not " + std::to_string(expected(a, x[i]).value) + "; ";
  return text;
}

// Planted errors.
struct AddsOneFirst {
  GEMM_HOST_DEVICE float operator()(float x) const { return gemm::LeakyRelu{}(x + 1); }
};
struct AddsOneAfterwards {
  GEMM_HOST_DEVICE float operator()(float x) const { return gemm::LeakyRelu{}(x) + 1; }
};
struct LosesNaN {
  GEMM_HOST_DEVICE float operator()(float x) const { return x > 0 ? x : 0; }
};
struct NaNAtMinusInfinity {
  GEMM_HOST_DEVICE float operator()(float x) const { return x == -kInfinity ? x / kInfinity : gemm::Silu{}(x); }
};
struct TanhOfAThird {
  GEMM_HOST_DEVICE float operator()(float x) const {
    return gemm::detail::times_sigmoid(x, 1.5957691f * x * (1 + 0.0447f * x * x));
  }
};

}  // namespace

TEST_CASE("activations agree with double precision") {
  CHECK(wrong(kActivation<gemm::Identity>, gemm::Identity{}) == "");
  CHECK(wrong(kActivation<gemm::LeakyRelu>, gemm::LeakyRelu{}) == "");
  CHECK(wrong(kActivation<gemm::Relu>, gemm::Relu{}) == "");
  CHECK(wrong(kActivation<gemm::GeluTanh>, gemm::GeluTanh{}) == "");
  CHECK(wrong(kActivation<gemm::Silu>, gemm::Silu{}) == "");
}

TEST_CASE("planted errors are found") {
  CHECK(wrong(kActivation<gemm::LeakyRelu>, AddsOneFirst{}) != "");
  CHECK(wrong(kActivation<gemm::LeakyRelu>, AddsOneAfterwards{}) != "");
  CHECK(wrong(kActivation<gemm::LeakyRelu>, gemm::Relu{}) != "");
  CHECK(wrong(kActivation<gemm::LeakyRelu>, gemm::LeakyRelu{0.02f}) != "");
  CHECK(wrong(kActivation<gemm::Relu>, LosesNaN{}) != "");
  CHECK(wrong(kActivation<gemm::Silu>, NaNAtMinusInfinity{}) != "");
  CHECK(wrong(kActivation<gemm::GeluTanh>, gemm::Silu{}) != "");
  CHECK(wrong(kActivation<gemm::GeluTanh>, TanhOfAThird{}) != "");  // 0.0447 instead of 0.044715
}

TEST_CASE("signs of zero, and limits") {
  const std::vector<float> x = {0.0f, -0.0f, kInfinity, -kInfinity, -1e30f};
  const auto is = [](float a, float b) { return a == b && std::signbit(a) == std::signbit(b); };
  const auto check = [&](const auto& f, float at_minus_infinity, float at_minus_huge) {
    const std::vector<float> y = on_device(f, x);
    CHECK(is(y[0], 0.0f));
    CHECK(is(y[1], -0.0f));
    CHECK(y[2] == kInfinity);
    CHECK(is(y[3], at_minus_infinity));
    CHECK(is(y[4], at_minus_huge));
  };
  check(gemm::LeakyRelu{}, -kInfinity, -1e30f * 0.01f);
  check(gemm::Relu{}, 0.0f, 0.0f);
  check(gemm::GeluTanh{}, -0.0f, -0.0f);
  check(gemm::Silu{}, -0.0f, -0.0f);
}

TEST_CASE("the reference of GELU is the tanh form, in double precision") {
  for (double x = -6; x <= 6; x += 1 / 16.) {
    const double tanh_form = x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    CHECK(std::fabs(expected(kActivation<gemm::GeluTanh>, x).value - tanh_form) <= 1e-15 * (1 + std::fabs(x)));
  }
}

TEST_CASE("what says that it changes nothing does not") {
  CHECK_FALSE(gemm::LeakyRelu{}.changes_nothing());
  const gemm::LeakyRelu one{1};
  CHECK(one.changes_nothing());
  for (const float x : {-2.5f, -0.0f, 0.0f, 1e-45f, -INFINITY, INFINITY}) {
    CHECK(one(x) == x);
    CHECK(std::signbit(one(x)) == std::signbit(x));
  }
  CHECK(std::isnan(one(NAN)));
}

TEST_CASE("an error of the sum comes out with at most the curve's slope") {
  for (const Activation a : harness::kActivations)
    for (double x = -8; x <= 8; x += 1 / 64.)
      for (const double error : {0x1p-10, -0x1p-10, 0.125, -0.125}) {  // exact in a double
        INFO(harness::name(a) << " of " << x);
        CHECK(agrees(expected(a, x + error).value, expected(a, x, std::fabs(error))));
      }
}

TEST_CASE("a bias is added to its column; beyond the last, and without one, not even the sign of a zero changes") {
  const device::Buffer<float> bias(std::vector<float>{1, -2, 0.5f}, "bias");
  const auto columns = [&](const float* data, float x) {
    const device::Buffer<float> y(5, "y");
    device::launch(apply_in_columns, 1, 5, 0, gemm::Biased<gemm::LeakyRelu, float>{{}, data, 3}, x, y.data());
    device::synchronize();
    return y.download();
  };
  CHECK(columns(bias.data(), 1) == std::vector<float>{2, -0.01f, 1.5f, 1, 1});
  for (const float y : columns(nullptr, -0.0f)) CHECK((y == 0 && std::signbit(y)));
  for (const float y : columns(nullptr, 0.0f)) CHECK((y == 0 && !std::signbit(y)));
}

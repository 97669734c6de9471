#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "common/device/device.cuh"
#include "common/harness/conformance/conformance.h"
#include "common/harness/problem/activation_kernel.h"
#include "common/harness/problem/problem.h"
#include "common/harness/results/ncu.h"
#include "steps/07_fused_leaky_relu/gemm.cuh"

using namespace harness;

TEST_CASE("step 07_fused_leaky_relu conforms") { check_conformance(this_step()); }
TEST_CASE("step 07_fused_leaky_relu: each candidate is what it says, without bank conflicts") { check_candidates(this_step()); }
TEST_CASE("step 07_fused_leaky_relu: blocks that run at the same time are a square of tiles") {
  const step_07_fused_leaky_relu::TileOrder<8> order(16, 20);
  for (unsigned block = 0; block < 64; ++block) {
    CHECK(order.tile_of_block(block).m < 8);
    CHECK(order.tile_of_block(block).n < 8);
  }
  // The last group has three rows, and goes down its columns too.
  const step_07_fused_leaky_relu::TileOrder<8> ragged(19, 20);
  for (unsigned block = 16 * 20; block < 19 * 20; ++block) {
    CHECK(ragged.tile_of_block(block).m == 16 + (block - 320) % 3);
    CHECK(ragged.tile_of_block(block).n == (block - 320) / 3);
  }
}
TEST_CASE("step 07_fused_leaky_relu: the unit test of the lessons") { check_lesson_problem(this_step()); }

namespace {

const Variant& variant(DType type) {
  for (const Variant& v : this_step().variants)
    if (v.in == type && v.out == type) return v;
  throw std::logic_error("no such variant");
}

const Fused& leaky_relu(bool takes_bias) {
  for (const Fused& f : variant(DType::kF16).fused)
    if (f.activation == kActivation<gemm::LeakyRelu> && f.takes_bias == takes_bias) return f;
  throw std::logic_error("no such kernel");
}

// The tile in f16 with one fused epilogue, which says that it is LeakyReLU.
Variant planted(void (*gemm)(const AnyMatrix&, const AnyMatrix&, const AnyMatrix&, const void*)) {
  Variant v = variant(DType::kF16);
  v.fused = {{kActivation<gemm::LeakyRelu>, false, gemm}};
  return v;
}

// LeakyReLU of x + value, by the step's own kernel.
void with_constant_bias(const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C, double value) {
  TestMatrix bias("bias", DType::kF16, row_major(1, C.cols));
  bias.fill([&](std::int64_t, std::int64_t) { return value; });
  leaky_relu(true).gemm(A, B, C, bias.view().data);
  device::synchronize();
}

}  // namespace

TEST_CASE("step 07_fused_leaky_relu: what it is built with") {
  CHECK(this_step().activation == kActivation<gemm::LeakyRelu>);
  for (const Activation a : kActivations)
    for (const bool bias : {false, true}) CHECK(variant(DType::kF16).has({a, bias}));
  CHECK(variant(DType::kBF16).has({kActivation<gemm::LeakyRelu>, false}));
  CHECK(!variant(DType::kBF16).has({kActivation<gemm::GeluTanh>, false}));
  CHECK_THROWS_AS(variant(DType::kBF16).run({kActivation<gemm::GeluTanh>, false}, {}, {}, {}, nullptr), std::invalid_argument);
}

TEST_CASE("step 07_fused_leaky_relu: the suite finds planted errors") {
  CHECK(wrong_epilogue(planted(leaky_relu(false).gemm)) == "");
  // The same kernel as below, so that the errors there are those that were planted.
  CHECK(wrong_epilogue(planted([](const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C, const void*) {
          with_constant_bias(A, B, C, -0.0);
        })) == "");
  SUBCASE("x + 1 before the activation, as a published lesson had it") {
    CHECK(wrong_epilogue(planted([](const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C, const void*) {
            with_constant_bias(A, B, C, 1);
          })) != "");
  }
  SUBCASE("hardly more than rounding") {
    CHECK(wrong_epilogue(planted([](const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C, const void*) {
            with_constant_bias(A, B, C, 0x1p-8);
          })) != "");
  }
  SUBCASE("no activation") {
    CHECK(wrong_epilogue(planted([](const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C, const void*) {
            variant(DType::kF16).gemm(A, B, C);
          })) != "");
  }
  SUBCASE("activation twice") {
    CHECK(wrong_epilogue(planted([](const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C, const void*) {
            leaky_relu(false).gemm(A, B, C, nullptr);
            launch_activation(DType::kF16, C, {kActivation<gemm::LeakyRelu>, false}, nullptr);
          })) != "");
  }
  SUBCASE("ReLU") {
    CHECK(wrong_epilogue(planted([](const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C, const void*) {
            variant(DType::kF16).run({kActivation<gemm::Relu>, false}, A, B, C, nullptr);
          })) != "");
  }
}

#ifdef COURSE_ON_INTERPRETER
namespace {

// Of everything that `body` launches.
template <class Body>
interpreter::Counters counted(const Body& body) {
  interpreter::clear_profiles();
  body();
  interpreter::Counters total;
  for (const auto& profile : interpreter::profiles()) total += profile.total;
  return total;
}

std::map<std::string, double> named_metrics(const interpreter::Counters& counters) {
  std::map<std::string, double> all;
  for (const auto& metric : interpreter::metrics(counters)) all[metric.name] = metric.value;
  return all;
}

}  // namespace

TEST_CASE("step 07_fused_leaky_relu: the interpreter counts what ncu counted, unfused, of the separate kernel and fused") {
  for (const Epilogue& e : {Epilogue{kActivation<gemm::LeakyRelu>, false}, Epilogue{kActivation<gemm::GeluTanh>, true}}) {
    const std::string name = std::string(harness::name(e.activation)) + (e.bias ? "-bias" : "");
    const std::vector<NcuRow> rows =
        read_ncu_table("docs/results/h200/ncu-fused/07_fused_leaky_relu-256x256x256-f16-" + name + ".csv");
    REQUIRE(rows.size() == 3);
    Spec spec{256, 256, 256, DType::kF16, DType::kF16};
    spec.epilogue = e;
    const Problem p(spec);
    const Variant& v = variant(spec.in);
    const void* const bias = e.bias ? p.bias.view().data : nullptr;
    const interpreter::Counters each[] = {
        counted([&] { v.gemm(p.A.view(), p.B.view(), p.C.view()); }),
        counted([&] { launch_activation(spec.out, p.C.view(), e, bias); }),
        counted([&] { v.run(e, p.A.view(), p.B.view(), p.C.view(), bias); }),
    };
    for (std::size_t i = 0; i < rows.size(); ++i) {
      INFO(name << ", launch " << i);
      NcuRow ncu = rows[i];
      if (i == 1) ncu.erase("sm__inst_executed_pipe_tensor_op_hmma.sum");  // that pipe executes other instructions too
      CHECK(differences(ncu, named_metrics(each[i])) == "");
    }
  }
}

TEST_CASE("step 07_fused_leaky_relu: an activation moves nothing, a bias only itself, a separate pass C twice") {
  constexpr std::int64_t kSectorBytes = 32;
  for (const Spec& shape : {Spec{256, 256, 64}, Spec{200, 136, 40}}) {
    Spec spec = shape;
    spec.in = spec.out = DType::kF16, spec.epilogue.bias = true;
    const Problem p(spec);
    const Variant& v = variant(spec.in);
    const auto run = [&](const Epilogue& e) {
      return counted([&] { v.run(e, p.A.view(), p.B.view(), p.C.view(), p.bias.view().data); });
    };
    const interpreter::Counters identity = run({});
    CHECK(identity.global_load.requests == 0);  // A and B come by cp.async
    for (const Activation a : kActivations) {
      INFO(name(a));
      CHECK(named_metrics(run({a, false})) == named_metrics(identity));
      // A lane has 16 columns of its warp's 64; the 4 that lanes have at a time lie in one sector.
      interpreter::Counters biased = run({a, true});
      const auto blocks = gemm::ceil_div<std::int64_t>(spec.m, 128) * gemm::ceil_div<std::int64_t>(spec.n, 128);
      if (spec.n % 128 == 0) CHECK(static_cast<std::int64_t>(biased.global_load.requests) == 16 * 4 * blocks);
      CHECK(biased.global_load.requests <= static_cast<std::uint64_t>(16 * 4 * blocks));
      CHECK(biased.global_load.sectors == biased.global_load.requests);
      biased.global_load = {};
      CHECK(named_metrics(biased) == named_metrics(identity));

      const interpreter::Counters pass = counted([&] { launch_activation(spec.out, p.C.view(), {a, false}, nullptr); });
      const std::int64_t c_bytes = spec.m * spec.n * static_cast<std::int64_t>(bytes(spec.out));
      CHECK(static_cast<std::int64_t>(pass.global_load.sectors) * kSectorBytes == c_bytes);
      CHECK(static_cast<std::int64_t>(pass.global_store.sectors) * kSectorBytes == c_bytes);
    }
  }
}
#endif

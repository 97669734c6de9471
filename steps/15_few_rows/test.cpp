#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "common/device/device.cuh"
#include "common/harness/conformance/conformance.h"
#include "common/harness/problem/problem.h"
#ifdef COURSE_ON_INTERPRETER
#include "common/interpreter/interpreter.h"
#endif

namespace {

using harness::DType, harness::Problem, harness::Spec, harness::Variant;

// All of C after a launch.
std::vector<double> product(Problem& problem, const Variant& v) {
  problem.C.poison();
  v.gemm(problem.A.view(), problem.B.view(), problem.C.view());
  device::synchronize();
  REQUIRE(problem.C.fetch() == "");
  std::vector<double> elements;
  for (std::int64_t r = 0; r < problem.spec.m; ++r)
    for (std::int64_t c = 0; c < problem.spec.n; ++c) elements.push_back(problem.C.at(r, c));
  return elements;
}

}  // namespace

TEST_CASE("step 15_few_rows conforms") { harness::check_conformance(harness::this_step()); }
TEST_CASE("step 15_few_rows: the unit test of the lessons") { harness::check_lesson_problem(harness::this_step()); }
// Loads by an address of mapa() are generic to ncu: no instruction of shared memory, and it counts conflicts with other SMs' loads.
TEST_CASE("step 15_few_rows: the interpreter counts what ncu counted, but for loads of other blocks' sums") {
  harness::check_counters(harness::this_step(), 2,
                          {"smsp__inst_executed_op_shared_ld.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
                           "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"});
}

TEST_CASE("step 15_few_rows: the same bits in every run; shares of k that are empty, or longer than the ring") {
  for (const Spec& shape : {Spec{8, 136, 2056}, Spec{1, 64, 40}, Spec{70, 72, 1000}, Spec{130, 200, 136}}) {
    Spec spec = shape;
    spec.in = spec.out = DType::kF16;
    Problem problem(spec);
    for (const Variant& v : harness::this_step().variants) {
      if (v.in != spec.in || v.out != spec.out) continue;
      INFO(v.tile << ", " << spec.shape());
      const std::vector<double> first = product(problem, v);
      CHECK(problem.verify() == "");
#ifdef COURSE_ON_INTERPRETER
      for (const std::uint64_t seed : {0, 1}) {
        interpreter::options().order = seed ? interpreter::Order::kRandom : interpreter::Order::kReverse;
        interpreter::options().seed = seed;
        CHECK(product(problem, v) == first);
      }
      interpreter::options().order = interpreter::Order::kForward;
#else
      for (int run = 0; run < 100; ++run) REQUIRE(product(problem, v) == first);
#endif
    }
  }
}

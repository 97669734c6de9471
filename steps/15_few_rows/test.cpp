#include <doctest/doctest.h>

#include "common/harness/conformance/conformance.h"
#include "common/harness/problem/problem.h"

using harness::DType, harness::Problem, harness::Spec, harness::Variant;

TEST_CASE("step 15_few_rows conforms") { harness::check_conformance(harness::this_step()); }
TEST_CASE("step 15_few_rows: the unit test of the lessons") { harness::check_lesson_problem(harness::this_step()); }
// Where sums and tiles arrive, they are in the way of loads and stores: ncu counts that as conflicts.
TEST_CASE("step 15_few_rows: the interpreter counts what ncu counted, but for what arrives meanwhile") {
  harness::check_counters(
      harness::this_step(), 2,
      {"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
       "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"});
}

TEST_CASE("step 15_few_rows: the same bits in every run; shares of k that are empty, or longer than the ring") {
  for (const Spec& shape : {Spec{8, 136, 2056}, Spec{1, 64, 40}, Spec{70, 72, 1000}, Spec{130, 200, 136}}) {
    Spec spec = shape;
    spec.in = spec.out = DType::kF16;
    Problem problem(spec);
    for (const Variant& v : harness::this_step().variants) {
      if (v.in != spec.in || v.out != spec.out) continue;
      INFO(v.tile << ", " << spec.shape());
      harness::check_same_bits(problem, v);
    }
  }
}

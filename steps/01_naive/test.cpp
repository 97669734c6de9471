#include <doctest/doctest.h>

#include "common/harness/conformance/conformance.h"

TEST_CASE("step 01_naive conforms") { harness::check_conformance(harness::this_step()); }
TEST_CASE("step 01_naive: the unit test of the lessons") { harness::check_lesson_problem(harness::this_step()); }
TEST_CASE("step 01_naive: the interpreter counts what ncu counted") { harness::check_counters(harness::this_step(), 4); }
TEST_CASE("step 01_naive: the projection to an H200") {
  harness::check_projection(harness::this_step(), harness::DType::kF32, 0.18);
  harness::check_projection(harness::this_step(), harness::DType::kF16, 0.22);
}

#include <doctest/doctest.h>

#include "common/harness/conformance/conformance.h"

TEST_CASE("step 03_tensor_core conforms, and so does the fallback") { harness::check_conformance(harness::this_step(), true); }
TEST_CASE("step 03_tensor_core: the unit test of the lessons") { harness::check_lesson_problem(harness::this_step()); }
TEST_CASE("step 03_tensor_core: the interpreter counts what ncu counted") { harness::check_counters(harness::this_step(), 2); }
TEST_CASE("step 03_tensor_core: the projection to an H200") {
  harness::check_projection(harness::this_step(), harness::DType::kF16, 0.22);
}

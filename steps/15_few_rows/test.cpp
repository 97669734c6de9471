#include <doctest/doctest.h>

#include "common/harness/conformance/conformance.h"

TEST_CASE("step 15_few_rows conforms") { harness::check_conformance(harness::this_step()); }
TEST_CASE("step 15_few_rows: the unit test of the lessons") { harness::check_lesson_problem(harness::this_step()); }

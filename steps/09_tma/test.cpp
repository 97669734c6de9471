#include <doctest/doctest.h>

#include "common/harness/conformance/conformance.h"

TEST_CASE("step 09_tma conforms") { harness::check_conformance(harness::this_step()); }
TEST_CASE("step 09_tma: the unit test of the lessons") { harness::check_lesson_problem(harness::this_step()); }
TEST_CASE("step 09_tma: the interpreter counts what ncu counted") { harness::check_counters(harness::this_step(), 2); }

#include <doctest/doctest.h>

#include "common/device/device.cuh"
#include "common/harness/conformance/conformance.h"

TEST_CASE("step 13_ping_pong conforms, and with one SM a block has all tiles") {
  const device::FewMultiprocessors few(1);
  harness::check_conformance(harness::this_step());
}
TEST_CASE("step 13_ping_pong: the unit test of the lessons, whose tiles have all their columns; with two SMs") {
  const device::FewMultiprocessors few(2);
  harness::check_lesson_problem(harness::this_step());
}
TEST_CASE("step 13_ping_pong: the interpreter counts what ncu counted") { harness::check_counters(harness::this_step(), 2); }

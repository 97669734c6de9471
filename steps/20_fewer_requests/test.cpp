#include <doctest/doctest.h>

#include "common/device/device.cuh"
#include "common/harness/conformance/conformance.h"

TEST_CASE("step 20_fewer_requests conforms, and with one SM a block has all tiles") {
  const device::FewMultiprocessors few(1);
  harness::check_conformance(harness::this_step());
}
TEST_CASE("step 20_fewer_requests: the unit test of the lessons, whose tiles have all their columns; with two SMs") {
  const device::FewMultiprocessors few(2);
  harness::check_lesson_problem(harness::this_step());
}
TEST_CASE("step 20_fewer_requests: the interpreter counts what ncu counted") { harness::check_counters(harness::this_step(), 2); }
TEST_CASE("step 20_fewer_requests: launches in a row, each of which needs the one before") {
  harness::check_launches_in_a_row(harness::this_step());
}

#include <doctest/doctest.h>

#include "common/device/device.cuh"
#include "common/harness/conformance/conformance.h"

TEST_CASE("step 12_persistent conforms, and with one SM a block has all tiles") {
  device::most_multiprocessors() = 1;
  harness::check_conformance(harness::this_step());
  device::most_multiprocessors() = ~0u;
}
TEST_CASE("step 12_persistent: the unit test of the lessons, whose tiles have all their columns; with two SMs") {
  device::most_multiprocessors() = 2;
  harness::check_lesson_problem(harness::this_step());
  device::most_multiprocessors() = ~0u;
}

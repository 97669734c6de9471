#include <doctest/doctest.h>

#include <utility>

#include "common/device/device.cuh"
#include "common/harness/conformance/conformance.h"
#include "common/harness/problem/test_matrix.h"

namespace {

using harness::DType, harness::row_major, harness::TestMatrix;

#ifdef COURSE_ON_GPU
constexpr int kLaunches = 64;
#else
constexpr int kLaunches = 3;
#endif

}  // namespace

TEST_CASE("step 17_store_later conforms, and with one SM a block has all tiles") {
  const device::FewMultiprocessors few(1);
  harness::check_conformance(harness::this_step());
}
TEST_CASE("step 17_store_later: the unit test of the lessons, whose tiles have all their columns; with two SMs") {
  const device::FewMultiprocessors few(2);
  harness::check_lesson_problem(harness::this_step());
}
TEST_CASE("step 17_store_later: the interpreter counts what ncu counted") { harness::check_counters(harness::this_step(), 2); }

// Each launch reads what the one before has written, and overwrites what that one has read. B moves columns to the right, so the
// last product is known exactly.
TEST_CASE("step 17_store_later: launches in a row, each of which needs the one before") {
  constexpr std::int64_t kRows = 328, kColumns = 264, kShift = 3;
  const auto first = [](std::int64_t row, std::int64_t column) { return static_cast<double>((row * 7 + column) % 512); };
  for (const harness::Variant& v : harness::this_step().variants) {
    if (v.in != DType::kF16 || v.out != DType::kF16) continue;
    INFO(v.tile);
    TestMatrix x("x", v.in, row_major(kRows, kColumns)), y("y", v.in, row_major(kRows, kColumns));
    TestMatrix shift("shift", v.in, row_major(kColumns, kColumns));
    x.fill(first);
    shift.fill([](std::int64_t row, std::int64_t column) { return (row + kShift) % kColumns == column ? 1.0 : 0.0; });
    y.poison();
    TestMatrix *from = &x, *to = &y;
    for (int i = 0; i < kLaunches; ++i, std::swap(from, to)) v.gemm(from->view(), shift.view(), to->view());
#ifdef COURSE_ON_GPU
    CHECK(device::last_launch().dependent);
#endif
    device::synchronize();
    REQUIRE(from->fetch() == "");
    int wrong = 0;
    for (std::int64_t row = 0; row < kRows; ++row)
      for (std::int64_t column = 0; column < kColumns; ++column)
        wrong += from->at(row, (column + kShift * kLaunches) % kColumns) != first(row, column);
    CHECK(wrong == 0);
  }
}

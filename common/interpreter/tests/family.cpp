/// @file
/// Instructions of a family come back as instructions of a warp, each at its place, and each block begins anew.
#include "common/interpreter/tests/family.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "common/device/device.cuh"
#include "common/interpreter/tests/orders.h"

using device::launch;

namespace {

__global__ void mark_by_all() {
  family::mark(static_cast<int>(threadIdx.x));
  __syncthreads();
  family::mark(static_cast<int>(threadIdx.x) + 1000);
}

__global__ void mark_by_some() {
  if (threadIdx.x % 2 == 0) {
    family::mark(2);
    asm volatile("# even");  // or a compiler may make one call of what ends both branches
  } else {
    family::mark(1);
    asm volatile("# odd");
  }
  family::mark(3);
}

// One after the other, as each block saw them.
std::vector<family::Marked> sorted() {
  std::vector<family::Marked> all = family::marked();
  std::stable_sort(all.begin(), all.end(), [](const family::Marked& a, const family::Marked& b) { return a.block < b.block; });
  return all;
}

}  // namespace

TEST_CASE("a family's instruction that all lanes execute is one of each warp, on its side of the barrier") {
  in_all_orders([] {
    family::marked().clear();
    launch(mark_by_all, 2, 48, 0);
    const std::vector<family::Marked> all = sorted();
    REQUIRE(all.size() == 2 * 4);  // two warps, before and after the barrier
    for (std::size_t i = 0; i < all.size(); ++i) {
      const family::Marked& m = all[i];
      CHECK(m.block == i / 4);
      CHECK(m.number == i % 4 + 1);
      CHECK(m.lanes == (m.warp == 0 ? 0xffffffffu : 0xffffu));
      std::vector<int> tags(m.warp == 0 ? 32 : 16);
      std::iota(tags.begin(), tags.end(), static_cast<int>(32 * m.warp) + (i % 4 < 2 ? 0 : 1000));
      CHECK(m.tags == tags);
    }
  });
}

TEST_CASE("a family's instructions in two branches are two, and lanes meet again behind them") {
  in_all_orders([] {
    family::marked().clear();
    launch(mark_by_some, 1, 32, 0);
    const std::vector<family::Marked> all = sorted();
    REQUIRE(all.size() == 3);
    CHECK((all[0].lanes | all[1].lanes) == 0xffffffffu);
    CHECK((all[0].lanes & all[1].lanes) == 0);
    for (int i = 0; i < 2; ++i) CHECK(all[i].tags == std::vector<int>(16, all[i].lanes & 1 ? 2 : 1));
    CHECK(all[2].lanes == 0xffffffffu);
    CHECK(all[2].tags == std::vector<int>(32, 3));
  });
}

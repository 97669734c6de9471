#include <doctest/doctest.h>

#include <set>
#include <utility>
#include <vector>

#include "common/harness/conformance/conformance.h"
#include "steps/05_l2_swizzle/gemm.cuh"

TEST_CASE("step 05_l2_swizzle conforms") { harness::check_conformance(harness::this_step()); }
TEST_CASE("step 05_l2_swizzle: the unit test of the lessons") { harness::check_lesson_problem(harness::this_step()); }
TEST_CASE("step 05_l2_swizzle: the interpreter counts what ncu counted") { harness::check_counters(harness::this_step(), 2); }
TEST_CASE("step 05_l2_swizzle: the projection to an H200") {
  harness::check_projection(harness::this_step(), harness::DType::kF16, 0.22);
}

namespace {

using step_05_l2_swizzle::TileIndex;
using step_05_l2_swizzle::TileOrder;

template <int kGroupM>
TileOrder<kGroupM> order(std::int64_t tiles_m, std::int64_t tiles_n) {
  return {tiles_m, tiles_n};
}

// Tiles of A and B, kTiles along each of m, n and k, that the first `blocks` blocks need, each counted once.
template <int kGroupM>
std::size_t loaded_by_first(std::int64_t blocks, std::int64_t tiles) {
  std::set<std::int64_t> rows, cols;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const TileIndex tile = order<kGroupM>(tiles, tiles).tile_of_block(block);
    rows.insert(tile.m), cols.insert(tile.n);
  }
  return (rows.size() + cols.size()) * static_cast<std::size_t>(tiles);
}

template <int kGroupM>
void check_order() {
  for (std::int64_t tiles_m = 1; tiles_m <= 20; ++tiles_m)
    for (const std::int64_t tiles_n : {1, 2, 3, 7, 9, 16}) {
      std::set<std::pair<std::int64_t, std::int64_t>> seen;
      TileIndex before{-1, 0};
      for (std::int64_t block = 0; block < tiles_m * tiles_n; ++block) {
        const TileIndex tile = order<kGroupM>(tiles_m, tiles_n).tile_of_block(block);
        REQUIRE(tile.m >= 0);
        REQUIRE(tile.m < tiles_m);
        REQUIRE(tile.n >= 0);
        REQUIRE(tile.n < tiles_n);
        REQUIRE(seen.insert({tile.m, tile.n}).second);  // no tile twice: as many tiles as blocks, so none is left out
        // Down a column, or to the head of the next column, or of the next group; also in a last group with fewer rows.
        const std::int64_t first = tile.m / kGroupM * kGroupM, last = std::min(first + kGroupM, tiles_m) - 1;
        if (block > 0) {
          const bool down = tile.n == before.n && tile.m == before.m + 1 && tile.m > first;
          const bool next_column = tile.n == before.n + 1 && tile.m == first && before.m == last;
          const bool next_group = tile.n == 0 && tile.m == first && before.n == tiles_n - 1 && before.m == first - 1;
          REQUIRE((down || next_column || next_group));
        }
        before = tile;
      }
    }
}

}  // namespace

TEST_CASE("step 05_l2_swizzle: every tile once, down the columns of a group, ragged last groups too") {
  check_order<1>();
  check_order<2>();
  check_order<3>();
  check_order<8>();
  check_order<16>();
}

TEST_CASE("step 05_l2_swizzle: the largest grid, in 32 bits") {
  constexpr unsigned kMost = 2147483647;  // blocks along x
  const auto is = [](const TileIndex& tile, std::int64_t m, std::int64_t n) { return tile.m == m && tile.n == n; };
  CHECK(is(order<16>(1, kMost).tile_of_block(kMost - 1), 0, kMost - 1));
  CHECK(is(order<16>(kMost, 1).tile_of_block(kMost - 1), kMost - 1, 0));
  CHECK(is(order<16>(15, kMost / 15).tile_of_block(15 * (kMost / 15) - 1), 14, kMost / 15 - 1));
}
TEST_CASE("step 05_l2_swizzle: what the first nine blocks of a 9 x 9 grid load") {
  CHECK(loaded_by_first<1>(9, 9) == 90);  // row by row: a row of A, all columns of B
  CHECK(loaded_by_first<3>(9, 9) == 54);
  CHECK(loaded_by_first<2>(9, 9) == 63);
  CHECK(loaded_by_first<4>(9, 9) == 63);
  CHECK(loaded_by_first<8>(9, 9) == 90);  // nine blocks in a column of eight: as wide as it is long
}

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "common/harness/conformance/conformance.h"
#include "common/harness/tuning/tuning.h"
#include "steps/06_autotune/gemm.cuh"
#ifdef COURSE_ON_INTERPRETER
#include "common/harness/tuning/here.h"
#include "common/interpreter/count/gpus.h"
#endif

TEST_CASE("step 06_autotune conforms") { harness::check_conformance(harness::this_step()); }
TEST_CASE("step 06_autotune: each candidate is what it says, without bank conflicts") {
  harness::check_candidates(harness::this_step());
}
TEST_CASE("step 06_autotune: blocks that run at the same time are a square of tiles") {
  const step_06_autotune::TileOrder<8> order(16, 20);
  for (unsigned block = 0; block < 64; ++block) {
    CHECK(order.tile_of_block(block).m < 8);
    CHECK(order.tile_of_block(block).n < 8);
  }
  // The last group has three rows, and goes down its columns too.
  const step_06_autotune::TileOrder<8> ragged(19, 20);
  for (unsigned block = 16 * 20; block < 19 * 20; ++block) {
    CHECK(ragged.tile_of_block(block).m == 16 + (block - 320) % 3);
    CHECK(ragged.tile_of_block(block).n == (block - 320) / 3);
  }
}
TEST_CASE("step 06_autotune: the unit test of the lessons") { harness::check_lesson_problem(harness::this_step()); }

namespace {

using namespace step_06_autotune;

// Instantiated, a source of tiles checks whether a block's threads can copy them.
template <class Tile, Contiguous a, Contiguous b>
constexpr bool kCopies =
    sizeof(device::TileSource<device::TileLayout<Operand::kA, a, Tile::kBlockM, Tile::kBlockK>, Tile::kThreads, __half>) > 0 &&
    sizeof(device::TileSource<device::TileLayout<Operand::kB, b, Tile::kBlockN, Tile::kBlockK>, Tile::kThreads, __half>) > 0;

// The published spaces, as block_m, block_n, block_k, stages and warps; the warps' parts are ours.
template <int block_m, int block_n, int block_k, int num_stages, int warps, int warp_m, int warp_n>
constexpr bool expressible() {
  using enum Contiguous;
  using T = Tile<block_m, block_n, block_k, warp_m, warp_n, num_stages, 8, true>;
  static_assert(T::kThreads == 32 * warps);
  return kCopies<T, kK, kK> && kCopies<T, kK, kMN> && kCopies<T, kMN, kK> && kCopies<T, kMN, kMN>;
}
static_assert(expressible<128, 256, 64, 3, 8, 64, 64>() && expressible<64, 256, 32, 4, 4, 64, 64>() &&
              expressible<128, 128, 32, 4, 4, 64, 64>() && expressible<128, 64, 32, 4, 4, 64, 32>() &&
              expressible<64, 128, 32, 4, 4, 32, 64>() && expressible<64, 64, 32, 5, 2, 32, 64>() &&
              expressible<32, 64, 32, 5, 2, 32, 32>() && expressible<128, 256, 32, 3, 8, 64, 64>() &&
              expressible<256, 128, 32, 3, 8, 64, 64>() && expressible<256, 64, 32, 4, 4, 64, 64>() &&
              expressible<128, 32, 32, 4, 4, 32, 32>() && expressible<64, 32, 32, 5, 2, 32, 32>());

std::vector<const harness::Variant*> candidates(harness::DType in, harness::DType out) {
  std::vector<const harness::Variant*> found;
  for (const harness::Variant& v : harness::this_step().variants)
    if (v.in == in && v.out == out) found.push_back(&v);
  return found;
}

}  // namespace

TEST_CASE("step 06_autotune: no two candidates have the same name, and each knows its numbers") {
  for (const auto in : {harness::DType::kF16, harness::DType::kBF16}) {
    std::set<std::string> names;
    for (const harness::Variant* v : candidates(in, in)) {
      CHECK(names.insert(v->tile).second);
      const harness::TileNumbers& n = v->numbers;
      CHECK(n.threads == 32 * (n.block_m / n.warp_m) * (n.block_n / n.warp_n));
      CHECK(n.shared_bytes == static_cast<std::size_t>((n.block_m + n.block_n) * n.block_k * 2 * n.stages));
    }
    CHECK(names.size() >= 3);
  }
  CHECK(harness::this_step().tuned);
  CHECK(harness::this_step().kernel_version.size() == 16);
}

#ifdef COURSE_ON_INTERPRETER
TEST_CASE("step 06_autotune: every GPU has candidates for every layout and type, large ones and small ones") {
  for (const interpreter::Gpu& gpu : interpreter::gpus())
    for (const auto in : {harness::DType::kF16, harness::DType::kBF16})
      for (const auto out : {in, harness::DType::kF32})
        for (const bool a : {false, true})
          for (const bool b : {false, true}) {
            int small = 0, large = 0;
            for (const harness::Variant* v : candidates(in, out))
              if (harness::why_pruned(v->numbers, {}, {4096, 4096, 4096, in, out, a, b}, harness::limits_of(gpu)).empty())
                ++(v->numbers.block_m * v->numbers.block_n <= 64 * 64 ? small : large);
            INFO(gpu.name);
            CHECK(small >= 1);
            CHECK(large >= 2);
          }
}

namespace {

// Of a tile in a result file, which may have been a candidate once.
harness::TileNumbers numbers_of(const std::string& tile) {
  harness::TileNumbers n;
  int group = 0;
  REQUIRE(std::sscanf(tile.c_str(), "%dx%dx%d warp %dx%d s%d g%d", &n.block_m, &n.block_n, &n.block_k, &n.warp_m, &n.warp_n,
                      &n.stages, &group) == 7);
  n.threads = 32 * (n.block_m / n.warp_m) * (n.block_n / n.warp_n);
  n.shared_bytes = static_cast<std::size_t>((n.block_m + n.block_n) * n.block_k * 2 * n.stages);
  return n;
}

}  // namespace

TEST_CASE("step 06_autotune: the model beside what was measured on an H200") {
  const harness::GpuLimits h200 = harness::limits_of(interpreter::find_gpu("h200"));
  const std::vector<harness::Result> measured = harness::read_tuning("docs/results/h200/tuning-f16.json");
  REQUIRE(measured.size() >= 10);
  int times = 0, picked_best = 0;
  double tightest = 0;
  for (const harness::Result& r : measured) {
    double best = 1, expected = 1, least = 1;
    for (const harness::TunedTile& t : r.tuning) {
      if (!t.seconds) continue;
      INFO(r.spec.shape() << " " << t.tile);
      const harness::Prediction p = harness::predict(numbers_of(t.tile), r.spec, h200);
      CHECK(p.bound < *t.seconds);  // or a tile that would have won might be left out
      tightest = std::max(tightest, p.bound / *t.seconds);
      best = std::min(best, *t.seconds);
      if (p.seconds < least) least = p.seconds, expected = *t.seconds;
      ++times;
    }
    INFO(r.spec.shape());
    CHECK(expected <= best * (r.spec.m < 128 ? 1.4 : 1.15));  // a problem of one row of tiles is what the model knows least about
    picked_best += expected <= best * 1.01;
  }
  CHECK(times > 350);
  CHECK(picked_best >= 15);
  MESSAGE("of " << times << " times, the tightest bound is " << tightest << "; the model picks the best or one within 1 % for "
                << picked_best << " of " << measured.size() << " shapes");
}
#endif

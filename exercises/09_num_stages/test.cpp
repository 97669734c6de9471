#include <cstdint>
#include <utility>
#include <vector>

#include "common/exercise/coach.h"
#include "common/exercise/witness.h"

namespace exercise {

void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C, int num_stages);
int groups_left_under_way(int num_stages);

namespace {

constexpr double kTileBytes = 2 * 16 * 16 * 4;  // of A and of B

Counts multiply(const Coach& coach, Case c, int num_stages) {
  c.what = std::to_string(num_stages) + " stages";
  return coach.multiply(c, harness::kDType<float>, harness::kDType<float>,
                        [&](const Operands& o) { gemm(o.A<float>(), o.B<float>(), o.C<float>(), num_stages); });
}

Figure copies(double of) {
  return {"copies by cp.async, as a multiple of what is needed",
          [](const interpreter::Counters& c) { return static_cast<double>(c.copy_read.requests); },
          [of](const interpreter::Counters&) { return of; }};
}
// Zeros, too, which have nothing to read.
Figure bytes_copied(double of) {
  return {"bytes that cp.async write, zeros included, as a multiple of what is needed",
          [](const interpreter::Counters& c) { return static_cast<double>(c.copy_write.bytes); },
          [of](const interpreter::Counters&) { return of; }};
}

// Of `tiles` along k, how many are to be on their way while one is multiplied: `ahead`, as long as so many are behind it; the mean.
double mean_ahead(int ahead, std::int64_t tiles) {
  double sum = 0;
  for (std::int64_t tile = 0; tile + ahead < tiles; ++tile) sum += ahead;
  return sum / static_cast<double>(tiles);
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/04_pipelined_num_stages/README.md, \"Walk\"");
  // One tile along k, as many as stages, and more or less of them.
  for (const int num_stages : {2, 3, 4, 5})
    for (const std::int64_t k : {16, 32, 48, 65, 112}) multiply(coach, {16, 16, k}, num_stages);
  for (const int num_stages : {3, 4}) {
    for (const Case& c : {Case{33, 31, 60}, Case{1, 20, 70}, Case{20, 1, 7}, Case{1, 1, 1}}) multiply(coach, c, num_stages);
    multiply(coach, {.m = 18, .n = 35, .k = 50, .padding = 3}, num_stages);
  }

  for (const int num_stages : {2, 3, 4, 5}) {
    const int got = Asked(groups_left_under_way)(num_stages);
    coach.require(got == num_stages - 2,
                  "The result is right, but groups_left(" + std::to_string(num_stages) + ") is " + std::to_string(got) +
                      ", expected " + std::to_string(num_stages - 2) + ".\nWith " + std::to_string(num_stages) + " stages " +
                      std::to_string(num_stages - 1) +
                      " groups are under way. Only the oldest one is needed now. Whoever waits for the others, too, multiplies\n"
                      "while nothing is copied for later.");
  }
  for (const Case& c : coach.drawn({})) multiply(coach, c, static_cast<int>(coach.draw().between(2, 5)));
  coach.multiply_far_rows(Case{3, 3, 3}, harness::kDType<float>, harness::kDType<float>,
                          [](const Operands& o) { gemm(o.A<float>(), o.B<float>(), o.C<float>(), 3); });
  std::vector<std::pair<Case, int>> counted = {
      {Case{32, 32, 96}, 2}, {Case{32, 32, 96}, 4}, {coach.draw().tiles(32, 32, 16, 1), 3}, {coach.draw().tiles(32, 32, 16, 2), 5}};
  for (const Case& c : coach.draw().ragged(16, 16, 16)) counted.push_back({c, static_cast<int>(coach.draw().between(2, 5))});
  for (const auto& [c, num_stages] : counted) {
    // A warp copies two rows of a tile of A, and two of one of B; of the rows that do not exist it copies nothing.
    const double rounds = tiles(c, 16, 16, 16), blocks = tiles(c, 16, 16, c.k);
    const double loads = tiles(c, 2, 16, 16) + tiles(c, 16, 16, 2);
    const Counts counts = multiply(coach, c, num_stages);
    counts.at_least(copies(loads), 1, "A load waits, a cp.async goes on in the background. All tiles should be copied by cp.async.")
        .at_most(global_loads(loads), 1, "Each tile is copied once. Which tile has been copied before the loop, which in it?")
        .at_most(bytes_copied(rounds * kTileBytes), 1,
                 "A tile of A and one of B are 2,048 bytes. Is there a tile past the end of k? There the group is empty.")
        .at_most(shared_stores(loads), 0, "cp.async writes to shared memory. What is stored there besides?")
        .at_most(barriers(2 * rounds + 2 * blocks), 1,
                 "One barrier for each tile says both, that it is complete and that the tile before has been read.");
    for ([[maybe_unused]] const auto& launch : counts.launches())
      coach.require(
          launch.static_shared_bytes + launch.dynamic_shared_bytes >= static_cast<std::size_t>(num_stages) * 2 * 16 * 16 * 4,
          "The result is right, but a block of the kernel for " + std::to_string(num_stages) + " stages has " +
              std::to_string(launch.static_shared_bytes + launch.dynamic_shared_bytes) +
              " bytes of shared memory.\nA stage has a tile of A and one of B, 2048 bytes. Which kernel is started?");
    counts.at_least_copies_ahead(
        rounds / blocks - 1 < num_stages - 2 ? 0
                                             : 2 * static_cast<std::uint64_t>(num_stages - 2),  // of tiles that have so many behind
        "A tile is two cp.async of a thread. When a wait is over, the next kNumStages - 2 tiles should still be under way: who has "
        "started them, before the loop\nor in it? Is each tile one group, and does nothing else wait?");
    if (c.m % 16 || c.n % 16) continue;  // a thread whose element does not exist need not copy
    counts.at_least_bytes_at_loads(
        mean_ahead(num_stages - 1, static_cast<std::int64_t>(rounds / blocks)) * kTileBytes, kTileBytes,
        "While a tile is multiplied, the next kAhead = kNumStages - 1 tiles are on their way, as long as there are so many behind "
        "it, "
        "and that at\n"
        "each tile: the next copy starts before the products, and no wait but the one for this tile stands in the loop.");
  }

  constexpr int kStages = 4;
  coach.multiply_on_gpu(
      {.m = 2048,
       .n = 2048,
       .k = 2048,
       .what = "4 stages",
       .slow = "For which groups does a round wait before it multiplies? Copies for later should still be under way."},
      harness::kDType<float>, harness::kDType<float>,
      [](const Operands& o) { gemm(o.A<float>(), o.B<float>(), o.C<float>(), kStages); });
}

}  // namespace exercise

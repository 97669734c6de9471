#include <array>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/exercise/coach.h"
#include "common/exercise/posed.h"
#include "common/exercise/witness.h"

namespace exercise {

void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C, int blocks);

namespace {

// What a report of the interpreter cannot know of this exercise.
std::string meant(const std::string& report) {
  const auto says = [&](const char* words) { return report.find(words) != std::string::npos; };
  if (says("is touched while"))
    return "The sums are wgmma's until wait_group<0>: only then they are all there, and the thread's to store.";
  if (says("race on C"))
    return "Two blocks store the same tile of C. Block b has tiles b, b + gridDim.x, b + 2 gridDim.x, ... in both roles.";
  if (says("race on dynamic") && says("read by thread"))
    return "Each step's stage goes back once, when its products are over. The product that was issued last is still under way: "
           "wait_group<1>\nsays only that the one before is over.";
  if (says("deadlock") && says("__syncthreads"))
    return "__syncthreads() waits for the thread that copies, too. From one tile of C to the next, full and empty are enough.";
  if (says("deadlock") && !says(" of full "))
    return "Nobody multiplies any more, and the thread that copies still has a tile. Both roles have the same tiles of C, b, b + "
           "gridDim.x,\nb + 2 gridDim.x, ..., and all steps along k of each.";
  return "Stage and parity follow from `i`. It counts the steps of all tiles of C that the block has, in both roles, and begins\n"
         "once. Each step's stage goes back once, the last one of a tile of C, too.";
}

Counts multiply(const Coach& coach, Case c, int blocks) {
  const auto some = [](std::int64_t count, const std::string& name) {
    return std::to_string(count) + " " + name + (count == 1 ? "" : "s");
  };
  const auto of_c = static_cast<std::int64_t>(tiles(c, 64, 64, c.k));
  c.what = (c.what.empty() ? "C is " : c.what + "; C is ") + some(of_c, "tile") + (of_c == 1 ? " of " : ", each of ") +
           some((c.k + 63) / 64, "step") + " along k, for " + some(blocks, "block");
  c.meant = meant;
  c.hint =
      "Does each block compute all of its tiles of C? The first product of a tile sets the sums, the others add. Do both roles go\n"
      "through the same tiles in the same order?";
  return coach.multiply(c, harness::DType::kF16, harness::DType::kF32,
                        [&](const Operands& o) { gemm(o.A<__half>(), o.B<__half>(), o.C<float>(), blocks); });
}

// Block b stores the tiles b, b + gridDim.x and so on.
void require_tiles_of_blocks([[maybe_unused]] const Coach& coach) {
#ifdef COURSE_ON_INTERPRETER
  constexpr std::int64_t kM = 3, kN = 2, kBlocks = 4, kTile = 64;
  std::vector<std::array<std::int64_t, 2>> stored;  // a block and a tile
  coach.run("192 x 128 x 64 (m, n, k) in f16, nn, C is 6 tiles, each of 1 step along k, for 4 blocks", [&] {
    const std::unique_ptr<Posed> problem = posed(Case{kM * kTile, kN * kTile, 64}, harness::DType::kF16, harness::DType::kF32);
    const Operands o = problem->operands();
    stored = asked([&] {
      std::set<std::array<std::int64_t, 2>> found;
      interpreter::options().on_store = [&, first = o.C<float>().data](std::uint64_t block, const void* element) {
        const std::int64_t at = static_cast<const float*>(element) - first;
        if (at >= 0 && at < kM * kTile * kN * kTile)
          found.insert({static_cast<std::int64_t>(block), at / (kN * kTile) / kTile * kN + at % (kN * kTile) / kTile});
      };
      gemm(o.A<__half>(), o.B<__half>(), o.C<float>(), kBlocks);
      interpreter::options().on_store = {};
      return std::vector(found.begin(), found.end());
    });
  });
  for (const auto& [block, tile] : stored)
    coach.require(tile % kBlocks == block,
                  "The result is right, but of 3 x 2 tiles of C, which 4 blocks compute, block " + std::to_string(block) +
                      " stores tile " + std::to_string(tile) +
                      ", counted row by row from 0.\nBlock b has tiles b, b + gridDim.x, "
                      "b + 2 gridDim.x and so on, so that blocks which run at the same time have neighbours\nand share A's and B's "
                      "panels in the L2 cache.");
#endif
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/12_persistent/README.md, \"Walk\"");
  for (const auto& [c, blocks] : {std::pair{Case{64, 64, 64}, 1},
                                  {Case{128, 64, 64}, 1},
                                  {Case{128, 64, 128}, 1},
                                  {Case{64, 128, 320}, 1},
                                  {Case{192, 128, 192}, 4},
                                  {Case{72, 8, 40}, 8}})
    multiply(coach, c, blocks);
  Draw& draw = coach.draw();
  Case random{draw.between(65, 200), draw.between(65, 200), draw.between(1, 300)};
  random.padding = draw.padding(random.k, 8), random.padding_b = draw.padding(random.n, 8), random.drawn = draw.seed();
  multiply(coach, random, static_cast<int>(draw.between(1, 3)));
  Case much{8, 8, 8 * draw.between(120, 250)}, many{64 * draw.between(12, 20), 8, 8};  // steps; tiles of C
  for (Case* each : {&much, &many}) {
    each->drawn = draw.seed();
    multiply(coach, *each, 1);
  }

  Case drawn{64 * draw.between(2, 3), 128, 128};  // in all orders, for how much is under way depends on them
  drawn.what = "drawn at random: --seed " + std::to_string(draw.seed()) + " draws it again";
  for (const auto& [c, blocks] : {std::pair{Case{64, 256, 64}, 1}, std::pair{Case{64, 192, 256}, 1}, std::pair{drawn, 2}}) {
    const double of_c = tiles(c, 64, 64, c.k), panels = tiles(c, 64, 64, 64);
    const Counts counts = multiply(coach, c, blocks);
    for ([[maybe_unused]] const auto& launch : counts.launches(1, "All tiles of C are computed by one launch."))  // of more tiles
      coach.require(launch.grid.x * launch.grid.y * launch.grid.z == static_cast<unsigned>(blocks),
                    "The result is right, but the launch has " + std::to_string(launch.grid.x * launch.grid.y * launch.grid.z) +
                        " blocks, where " + std::to_string(blocks) + (blocks == 1 ? " is" : " are") +
                        " wanted.\nA block stays: it computes one tile of C after the other, " +
                        std::to_string(static_cast<int>(of_c) / blocks) + " here.");
    counts.at_least(wgmma(4 * panels), 1, "The products come from wgmma: four slices of each tile along k.")
        .at_most(wgmma(4 * panels), 1,
                 "Each slice is multiplied once, of the tiles that C has: " + std::to_string(static_cast<int>(of_c)) +
                     " here. Does a block multiply one more?")
        .at_least(boxes(2 * panels), 1, "Tiles come by the copy engine.")
        .at_most(boxes(2 * panels), 1, "Each panel is copied once for each tile of C.")
        .at_most(asked(panels), 0, "No thread loads elements of A or B: the engine brings them.")
        .at_most(shared_loads(panels), 0, "No thread reads the panels: wgmma does, out of shared memory.")
        .at_most(stores_asked(4.0 * static_cast<double>(c.m * c.n)), 1,
                 "Each tile of C is stored once, when all of its steps are over.")
        .at_most(barriers(blocks), 1, "full and empty are enough, from one tile of C to the next, too: no __syncthreads() there.")
        .at_most(&Teamwork::named_of_roles, 0,
                 "Who copies and those who use what comes meet at full and empty alone, whatever the name of another barrier is.")
        .at_least_copies_under_way(
            5,  // of 6: in one of the orders, the thread that copies comes first
            "The ring has 3 stages, and the next tile of C wants them too: its first copies begin while this one is "
            "multiplied\nand stored. What does the thread that copies wait for when a tile of C ends?")
        .at_least_copies_each_time(3,  // panels: a whole step's, and the one that begins
                                   "Copies run ahead at each step of each tile of C, not at the first ones alone. The thread that "
                                   "copies waits for an empty\n"
                                   "stage, and each goes back when its products are over.");
    if (c.k > 64)  // a tile of C has a step before the last one
      counts.at_least_groups_under_way(
          2,
          "When a step's products have been started, those of the step before need not be over. Only at the end of a tile of C\n"
          "all have to be.");
    counts.at_most_lonely_products(
        static_cast<std::uint64_t>(of_c),
        "At each step but the first of a tile of C, the products of the step before are still under way when the first of this\n"
        "one starts. Which wait in the loop over k is for all of them?");
  }
  require_tiles_of_blocks(coach);
  // Toy sizes: how fast it is, lesson 12 measures. There is no bar for the time.
}

}  // namespace exercise

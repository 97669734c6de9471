#include <vector>

#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C);

void check(Coach& coach) {
  coach.lesson("steps/04_pipelined_num_stages/README.md, \"Walk\"");
  const auto one = [](std::int64_t, std::int64_t) { return 1; };
  const auto number_of_tile = [](std::int64_t, std::int64_t k) { return 1 + k / 32; };
  const auto ask = [&](std::int64_t k, const char* hint) {
    coach.multiply<float, float>({.m = 32,
                                  .n = 32,
                                  .k = k,
                                  .a = number_of_tile,
                                  .b = one,
                                  .what = "tile 1, 2 ... of A is all 1, 2 ..., B is all ones",
                                  .hint = hint},
                                 gemm);
  };
  ask(32, "This is one tile along k: the sum is 32. rA and rB have to hold it before the first round.");
  ask(64,
      "These are two tiles: the sum is 32 · (1 + 2). 64 means that the first tile was multiplied twice, 32 that the second was "
      "zero.");
  ask(96, "These are three tiles: the sum is 32 · (1 + 2 + 3) = 192. Which tile was multiplied in which round?");
  // k is a multiple of 32; m and n are any.
  for (Case c : {Case{64, 32, 32}, Case{32, 96, 64}, Case{33, 31, 96}, Case{37, 70, 64}, Case{1, 40, 160}, Case{40, 1, 32},
                 Case{1, 1, 128}}) {
    c.hint =
        "The next tile of A is kTile columns to the right, that of B kTile rows below. All of k exists; the rows of A end with "
        "A.rows,\n"
        "and the columns of B with B.cols.";
    coach.multiply<float, float>(c, gemm);
  }
  coach.multiply<float, float>({.m = 35, .n = 45, .k = 96, .padding = 3}, gemm);

  for (const Case& c : coach.drawn({.k = 32})) coach.multiply<float, float>(c, gemm);
  coach.multiply_far_rows<float, float>(Case{3, 3, 64}, gemm);

  std::vector<Case> counted = {Case{64, 64, 128}, coach.draw().tiles(128, 64, 32, 1), coach.draw().tiles(64, 64, 32, 1)};
  for (Case& c : coach.draw().ragged(32, 32, 32)) {
    c.padding = 0, c.k = (c.k + 31) / 32 * 32;
    counted.push_back(c);
  }
  for (const Case& c : counted) {
    const double rounds = tiles(c, 32, 32, 32), blocks = tiles(c, 32, 32, c.k);
    coach.multiply<float, float>(c, gemm)
        .at_most(loaded(tile_bytes(c, 32, 32, harness::DType::kF32)), 1,
                 "Each block loads each element of its tiles once. What is loaded in the last round, when there is no next tile? "
                 "And what in "
                 "the first one, when this tile is there already?")
        .at_most(sectors_per_load(), 4, "32 neighbours of a row are 4 sectors.")
        .at_most(shared_stores(rounds * 8 * 8), 1, "Each block stores its tiles in shared memory once.")
        .at_most_straight_stores(
            blocks * 8 * 8,  // the first tiles: 8 warps, 4 rows of each matrix
            "Whoever stores what was just loaded waits for it. Only the first tiles go to shared memory like that: the next ones\n"
            "are loaded into rA and rB before the products of these, and stored behind them.")
        .at_most_late_loads(0,
                            "The next tiles are asked for before the products of these, or soon in them: what is multiplied before "
                            "hides nothing.")
        .at_most(barriers(2 * rounds + 2 * blocks), 1,
                 "Two barriers for each pair of tiles are enough. What do the others wait for?");
  }

  coach.multiply_on_gpu<float, float>(
      {.m = 2048, .n = 2048, .k = 2048, .slow = "When is the next tile asked for: before the products of this one, or after them?"},
      gemm);
}

}  // namespace exercise

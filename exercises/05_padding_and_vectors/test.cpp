#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C);

void check(Coach& coach) {
  coach.lesson("steps/02_tiled/README.md, \"Walk\"");
  for (const Case& c :
       {Case{64, 64, 8}, Case{64, 64, 40}, Case{65, 68, 9}, Case{50, 71, 33}, Case{1, 67, 40}, Case{67, 1, 5}, Case{1, 1, 1}})
    coach.multiply<float, float>(c, gemm);
  coach.multiply<float, float>({.m = 67, .n = 65, .k = 18, .padding = 3}, gemm);

  for (const Case& c : coach.drawn({})) coach.multiply<float, float>(c, gemm);
  coach.multiply_far_rows<float, float>(Case{3, 3, 3}, gemm);

  for (std::int64_t offset = 1; offset < 4; ++offset) {  // C's rows are vectors as far as their stride goes
    Case c = {coach.draw().length(70), 4 * coach.draw().between(1, 20), coach.draw().length(20)};
    c.padding_c = 0, c.c_offset = offset, c.drawn = coach.draw().seed();
    coach.multiply<float, float>(c, gemm);
  }

  // A warp does 32 x 16 products for each k, a thread 16 of them with 4 + 4 values.
  for (const Case& c : coach.draw().ragged(
           64, 64, 8, "nn", {Case{64, 128, 32}, coach.draw().tiles(128, 128, 8, 1), coach.draw().tiles(64, 128, 8, 1)})) {
    const bool is_whole = c.m % 64 == 0 && c.n % 64 == 0;  // else lanes that do not copy may read when others do not
    const double rounds = tiles(c, 64, 64, 8), blocks = tiles(c, 64, 64, c.k), products = rounds * 64 * 64 * 8;
    coach.multiply<float, float>(c, gemm)
        .at_most(loaded(tile_bytes(c, 64, 64, harness::DType::kF32)), 1,
                 "A block loads each sector of its tiles from global memory once. Which sectors does a warp load at the same time?")
        .at_most(shared_loads(products / (32 * 16) * 2), is_whole ? 1 : 1.5,
                 "For one k a thread needs 4 neighbours of sA and 4 of sB. A float4 is 4 neighbours: how many loads are these?")
        .at_most(
            wavefronts_of_ideal(), 1,
            "A warp stores 4 neighbours in each of 8 rows of sA. In which of the 32 banks do they lie? Rows are kBlockM + kPad "
            "words apart.")
        .at_most(shared_stores(products * (1. / 64 + 1. / 64) / 32), 1,
                 "A block stores each element of its tiles in shared memory once.")
        .at_most(barriers(2 * rounds + 2 * blocks), 1,
                 "Two barriers for each pair of tiles are enough. What do the others wait for?");
  }

  coach.multiply_on_gpu<float, float>(
      {.m = 2048,
       .n = 2048,
       .k = 2048,
       .slow = "How many loads from shared memory are there for 16 products, and do they conflict?"},
      gemm);
}

}  // namespace exercise

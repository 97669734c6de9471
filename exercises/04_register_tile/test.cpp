#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C);

void check(Coach& coach) {
  coach.lesson("steps/02_tiled/README.md, \"What changed\"");
  for (Case c :
       {Case{64, 64, 16}, Case{64, 64, 48}, Case{65, 63, 17}, Case{50, 70, 33}, Case{1, 67, 40}, Case{67, 1, 5}, Case{1, 1, 1}}) {
    c.hint =
        "rC[i][j] is the sum for one row and one column, and stored there. A row of A and a column of B with the same k belong to "
        "it:\nwhich elements of sA and sB are these, and are they those of the i and the j with which rC is stored?";
    coach.multiply<float, float>(c, gemm);
  }
  coach.multiply<float, float>({.m = 67, .n = 65, .k = 18, .padding = 3}, gemm);

  for (const Case& c : coach.drawn({})) coach.multiply<float, float>(c, gemm);
  coach.multiply_far_rows<float, float>(Case{3, 3, 3}, gemm);

  // A warp does 32 x 16 products for each k, a thread 16 of them with 4 + 4 values.
  for (const Case& c : coach.draw().ragged(
           64, 64, 16, "nn", {Case{64, 128, 32}, coach.draw().tiles(128, 128, 16, 1), coach.draw().tiles(64, 128, 16, 1)})) {
    const bool is_whole = c.m % 64 == 0 && c.n % 64 == 0;  // else lanes that do not copy may read when others do not
    const double rounds = tiles(c, 64, 64, 16), blocks = tiles(c, 64, 64, c.k), products = rounds * 64 * 64 * 16;
    coach.multiply<float, float>(c, gemm)
        .at_most(loaded(tile_bytes(c, 64, 64, harness::DType::kF32)), 1,
                 "A block loads each element of its tiles from global memory once. Its threads read it from shared memory.")
        .at_most(
            shared_loads(products / (32 * 16) * (4 + 4)), is_whole ? 1 : 1.5,
            "A thread needs 4 values of A and 4 of B for the 16 products of one k: 8 reads. Which of the three loops has to be the "
            "outer one, so that a value stays in a register until all of its products are done? And does the loop end where k "
            "ends?")
        .at_most(wavefronts_of_ideal(), 1,
                 "Lanes of a warp read and write at the same time. Which of them want different words of the same bank?")
        .at_most(stored(sector_bytes(c.m, c.n, harness::DType::kF32)), c.n % 4 == 0 ? 1 : 2,  // else vectors end in single elements

                 "Which elements of C does a warp store at the same time? Neighbours share a sector.")
        .at_most(shared_stores(products * (1. / 64 + 1. / 64) / 32), 1,
                 "A block stores each element of its tiles in shared memory once.")
        .at_most(barriers(2 * rounds + 2 * blocks), 1,
                 "Two barriers for each pair of tiles are enough, and a tile has 16 of k. Is kBlockK as it was? Else, what do the "
                 "others "
                 "wait for?");
  }

  coach.multiply_on_gpu<float, float>(
      {.m = 2048,
       .n = 2048,
       .k = 2048,
       .slow =
           "Do all 16 sums of a thread stay in registers? An index that is known only at run time puts them into local memory."},
      gemm);
}

}  // namespace exercise

#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C);

void check(Coach& coach) {
  coach.lesson("steps/01_naive/README.md, \"Measure\"");
  for (const Case& c : {Case{8, 32, 16}, Case{16, 64, 8}, Case{40, 96, 24}, Case{37, 101, 23}, Case{1, 70, 300}, Case{70, 1, 9}})
    coach.multiply<float, float>(c, gemm);
  coach.multiply<float, float>({.m = 33, .n = 65, .k = 17, .padding = 3}, gemm);

  for (const Case& c : coach.drawn({})) coach.multiply<float, float>(c, gemm);
  coach.multiply_far_rows<float, float>(Case{3, 3, 3}, gemm);

  for (const Case& c :
       coach.draw().ragged(8, 32, 8, "nn", {Case{64, 128, 64}, coach.draw().tiles(8, 32, 8, 4), coach.draw().tiles(8, 32, 8, 1)})) {
    const double of_a = tiles(c, 1, 32, 1), of_b = tiles(c, 1, 8, 1);  // sectors, for each row of C and each k
    const bool is_whole = c.m % 8 == 0 && c.n % 32 == 0;  // else a warp that lies across rows has more of B for the last ones
    coach.multiply<float, float>(c, gemm)
        .at_most(sectors_per_load(), 2.5,
                 "A warp is 32 threads with neighbouring threadIdx.x. Which elements of B do they ask for at the same time?")
        .at_most(sectors_per_store(), 4, "Which elements of C does a warp store at the same time?")
        .at_most(load_sectors(of_a + of_b), is_whole ? 1 : 1.15,
                 "For one k a warp needs 1 sector of A and 4 of B. What does it load besides, or again?")
        .at_most(stored(sector_bytes(c.m, c.n, harness::DType::kF32)), 1, "Each element of C is stored once.");
  }

  coach.multiply_on_gpu<float, float>(
      {.m = 2048,
       .n = 2048,
       .k = 2048,
       .bar = 2,  // which block is yours to choose
       .slow = "On the interpreter, 'tools/course check 1' counts how many sectors a warp asks for."},
      gemm);
}

}  // namespace exercise

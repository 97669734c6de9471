#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C);

void check(Coach& coach) {
  coach.lesson("steps/02_tiled/README.md, \"Walk\"");
  for (const Case& c :
       {Case{64, 64, 8}, Case{64, 64, 40}, Case{65, 68, 9}, Case{50, 71, 33}, Case{1, 67, 40}, Case{67, 1, 5}, Case{1, 1, 1}})
    coach.multiply<float, float>(c, gemm);
  coach.multiply<float, float>({.m = 67, .n = 65, .k = 18, .padding = 3}, gemm);

  // A warp does 32 x 16 products for each k, a thread 16 of them with 4 + 4 values.
  constexpr double kM = 64, kN = 128, kK = 32;
  coach.multiply<float, float>({64, 128, 32}, gemm)
      .at_most(loaded(4 * kK * kM * kN * (1. / 64 + 1. / 64)), 1,
               "A block loads each sector of its tiles from global memory once. Which sectors does a warp load at the same time?")
      .at_most(shared_loads(kM * kN * kK / (32 * 16) * 2), 1,
               "For one k a thread needs 4 neighbours of sA and 4 of sB. A float4 is 4 neighbours: how many loads are these?")
      .at_most(
          wavefronts_of_ideal(), 1,
          "A warp stores 4 neighbours in each of 8 rows of sA. In which of the 32 banks do they lie? Rows are kBlockM + kPad words "
          "apart.");

  coach.multiply_on_gpu<float, float>(
      {.m = 2048,
       .n = 2048,
       .k = 2048,
       .slow = "How many loads from shared memory are there for 16 products, and do they conflict?"},
      gemm);
}

}  // namespace exercise

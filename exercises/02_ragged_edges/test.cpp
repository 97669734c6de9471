#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C);

void check(Coach& coach) {
  coach.lesson("steps/01_naive/README.md, \"Walk\"");
  for (const Case& c : {Case{32, 32, 16}, Case{64, 96, 8}, Case{33, 32, 7}, Case{36, 33, 5}, Case{37, 101, 23}, Case{30, 31, 1},
                        Case{1, 70, 100}, Case{70, 1, 9}, Case{1, 1, 1}})
    coach.multiply<float, float>(c, gemm);
  coach.multiply<float, float>({.m = 35, .n = 65, .k = 17, .padding = 3}, gemm);

  // 4 warps lie along a row of C, a row of 13 sectors. 2 threads share a column: four elements and one.
  constexpr int kM = 5, kN = 104, kK = 24, kWarps = 4, kThreads = 2;
  coach.multiply<float, float>({kM, kN, kK}, gemm)
      .at_most(
          global_loads(kWarps * (kM + kThreads) * kK), 1,
          "C has 5 rows here. For one k and 32 columns, 5 loads of A and 2 of B are enough: two threads share a column. What do "
          "the others load, which nobody needs?")
      .at_most(stored(kM * kN * 4), 1,
               "Each element of C is stored once. Which are stored more often, or by more than one thread?");

  // The masks are what this is about: on a GPU there is no bar for the time.
}

}  // namespace exercise

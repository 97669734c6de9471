#include <cmath>

#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C);

void check(Coach& coach) {
  coach.lesson("steps/01_naive/README.md, \"Walk\"");
  for (const Case& c : {Case{32, 32, 16}, Case{64, 96, 8}, Case{33, 32, 7}, Case{36, 33, 5}, Case{37, 101, 23}, Case{30, 31, 1},
                        Case{1, 70, 100}, Case{70, 1, 9}, Case{1, 1, 1}})
    coach.multiply<float, float>(c, gemm);
  coach.multiply<float, float>({.m = 35, .n = 65, .k = 17, .padding = 3}, gemm);

  coach.multiply<float, float>({34, 7, 0}, gemm);
  for (const Case& c : coach.drawn({.empty_k = true})) coach.multiply<float, float>(c, gemm);
  coach.multiply_far_rows<float, float>(Case{3, 3, 3}, gemm);

  // Of 5 rows and 104 columns 4 warps lie along a row of C, a row of 13 sectors. 2 threads share a column: four elements and one.
  Draw& draw = coach.draw();
  const auto drawn = [&](int64_t m) {
    Case c = {m, 8 * draw.between(1, 16), draw.between(2, 20)};
    c.drawn = draw.seed();
    return c;
  };
  for (const Case& c : draw.ragged(32, 32, 16, "nn", {Case{5, 104, 24}, drawn(draw.between(1, 4)), drawn(draw.between(6, 70))})) {
    const int64_t warps = (c.n + 31) / 32, threads = (c.m + 3) / 4;
    const std::string rows = std::to_string(c.m), shared = std::to_string(threads);
    coach.multiply<float, float>(c, gemm)
        .at_most(atomics(1), 0,
                 "Each element of C has one thread, which stores it once. An atomic reads it, too, and adds to what is there.")
        .at_most(global_loads(static_cast<double>(warps * (c.m + threads) * c.k)), 1,
                 "C has " + rows + " rows here. For one k and 32 columns, " + rows + " loads of A and " + shared +
                     " of B are enough: so many threads share a column. What do the others load, which nobody needs?")
        .at_most(asked(static_cast<double>(c.n * (c.m + threads) * c.k) * 4), 1,
                 "Not all threads of the last warp have a column. What do the others load, which nobody needs?")
        .at_most(stored(sector_bytes(c.m, c.n, harness::DType::kF32)), 1,
                 "Each element of C is stored once. Which are stored more often, or by more than one thread?");
  }

  coach.multiply<float, float>({.m = 6,
                                .n = 7,
                                .k = 3,
                                .a = [](int64_t row, int64_t) { return row == 1 ? INFINITY : 1; },
                                .b = [](int64_t, int64_t col) { return col == 2 ? 0 : 1; },
                                .what = "row 1 of A is infinite, column 2 of B is all zeros",
                                .hint = "An infinity times 0 is no number, so it may not be left out."},
                               gemm);

  // The masks are what this is about: on a GPU there is no bar for the time.
}

}  // namespace exercise

#include <cmath>

#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C);

void check(Coach& coach) {
  coach.lesson("steps/02_tiled/README.md, \"Walk\"");
  for (Case c : {Case{32, 32, 32}, Case{32, 32, 96}, Case{64, 32, 64}, Case{33, 31, 32}, Case{32, 32, 33}, Case{37, 70, 45},
                 Case{1, 40, 70}, Case{40, 1, 7}, Case{1, 1, 1}}) {
    c.hint =
        "sA[i][j] is element (m_0 + i, k_0 + j) of A, sB[i][j] is element (k_0 + i, n_0 + j) of B, and each is 0 where its own "
        "matrix\n"
        "has no such element.";
    coach.multiply<float, float>(c, gemm);
  }
  coach.multiply<float, float>({.m = 35, .n = 65, .k = 50, .padding = 3}, gemm);

  for (const Case& c : coach.drawn({})) coach.multiply<float, float>(c, gemm);
  coach.multiply_far_rows<float, float>(Case{3, 3, 3}, gemm);

  // A is loaded once for each 32 columns of C, B once for each 32 rows.
  for (const Case& c : coach.draw().ragged(
           32, 32, 32, "nn", {Case{64, 96, 64}, coach.draw().tiles(64, 32, 32, 2), coach.draw().tiles(64, 96, 32, 1)})) {
    const bool is_whole = c.m % 32 == 0 && c.n % 32 == 0;  // else lanes that do not copy may read when others do not
    const double rounds = tiles(c, 32, 32, 32), blocks = tiles(c, 32, 32, c.k);
    coach.multiply<float, float>(c, gemm)
        .at_most(
            loaded(tile_bytes(c, 32, 32, harness::DType::kF32)), 1,
            "A block has a tile of C of 32 x 32, and loads each element of its tiles of A and B once: 1,024 threads, one element "
            "of\n"
            "each, neighbours in a row by neighbouring threads. Is kTile as it was? Who loads something else, or in another order?")
        .at_most(
            wavefronts_of_ideal(), 1,
            "The elements of a column of sA or sB are 32 words apart: they lie in one bank. Along what does a warp write and read?")
        .at_most(shared_stores(rounds * 2 * 32), 2,  // zeros first, and then what exists
                 "A thread stores one element of each tile. What is stored again?")
        .at_most(&Teamwork::loaded_by_warp, 2 * rounds / blocks * 2 * 32 * 4,
                 "All 32 warps of a block copy, one element of each tile for a thread. Which warp copies what others should, while "
                 "these wait?")
        .at_most(barriers(2 * rounds + 2 * blocks), 1,
                 "Two barriers for each pair of tiles are enough. What do the others wait for?")
        .at_most(shared_loads(rounds * 32 * 32 * 2), is_whole ? 1 : 2,
                 "A product reads one element of sA and one of sB. What is read besides? Is there a tile behind the end of k?");
  }

  coach.multiply<float, float>(
      {.m = 33,
       .n = 34,
       .k = 45,
       .a = [](int64_t row, int64_t col) { return row == 5 && col == 20 ? INFINITY : 1; },
       .b = [](int64_t row, int64_t col) { return row == 20 && col == 3 ? INFINITY : 1; },
       .what = "A and B are all ones, but for infinities in A[5, 20] and B[20, 3]",
       .hint =
           "The second tile has 13 values of k. Where it sticks out of A and B there have to be zeros in both: an infinity that is "
           "left\nfrom the first tile, times 0, is no number."},
      gemm);

  coach.multiply_on_gpu<float, float>({.m = 2048,
                                       .n = 2048,
                                       .k = 2048,
                                       .bar = 2,  // a loop that nvcc does not unroll is right, and slower
                                       .slow = "How often does a block load an element, and from where does a product take it?"},
                                      gemm);
}

}  // namespace exercise

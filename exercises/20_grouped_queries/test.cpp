#include "common/exercise/coach.h"

namespace exercise {

void project(Matrix<const __half> X, Matrix<const __half> W_k, Matrix<const __half> W_v, Matrix<__half> K, Matrix<__half> V);

namespace {

// The left half of a matrix's columns, or the right half.
template <class T>
Matrix<T> half_of(const Matrix<T>& m, bool right) {
  return {m.at(0, right ? m.cols / 2 : 0), m.rows, m.cols / 2, m.row_stride, m.col_stride};
}

// V is the left half of C, K is the right half: so W_v does not come after W_k in memory.
void project_halves(Matrix<const __half> A, Matrix<const __half> B, Matrix<__half> C) {
  project(A, half_of(B, true), half_of(B, false), half_of(C, true), half_of(C, false));
}

Case both(int64_t tokens, int64_t width, int64_t k, int64_t padding = 0) {
  return {.m = tokens,
          .n = 2 * width,
          .k = k,
          .layout = "nt",
          .padding = padding,
          .what = "where A is X, B is W_v and then W_k, C is V and then K",
          .hint = "Columns 0 to " + std::to_string(width - 1) + " of C are V, columns " + std::to_string(width) + " to " +
                  std::to_string(2 * width - 1) + " are K."};
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/06_autotune/README.md, \"Picture\", and steps/05_l2_swizzle/README.md, \"Walk\"");
  // Rows of A and columns of B begin at multiples of 8 elements: k and the padding together are one.
  for (const Case& c : {both(64, 64, 64), both(64, 128, 64), both(128, 64, 32), both(64, 80, 40), both(130, 20, 61, 3),
                        both(1, 72, 90, 6), both(70, 1, 8)})
    coach.multiply<__half, __half>(c, project_halves);

  constexpr int kM = 128, kWidth = 96, kK = 64, kTilesM = 2, kTilesN = 2 * 2;
  const double x_bytes = kM * kK * 2, w_bytes = 2 * kWidth * kK * 2, pieces = kTilesM * kTilesN * 4 * 8 * 4;
  const Counts counts = coach.multiply<__half, __half>(both(kM, kWidth, kK), project_halves);
  for (const interpreter::KernelProfile& launch :
       counts.launches(1, "The second kernel waits until the first one is done, and each of them alone is too small for the GPU."))
    coach.require(
        launch.grid.x * launch.grid.y * launch.grid.z >= kTilesM * kTilesN,
        "The kernel has " + std::to_string(launch.grid.x * launch.grid.y * launch.grid.z) +
            " blocks for X of 128 x 64 and weights of 64 x 96. K has 2 x 2 tiles of 64 x 64, and V has as many.\nHow many "
            "SMs could work at the same time?");
  counts.at_most(mma(pieces), 1, "K and V have 2 x 2 tiles each. 64 x 64 x 64 are 4 x 8 x 4 pieces, one mma.sync each.")
      .at_least(
          mma(kM / 16 * 2 * kWidth / 8 * kK / 16), 1,
          "The two products have 128 x 192 x 64: 8 x 24 x 4 pieces of 16 x 8 x 16. The tensor core should multiply all of them.")
      .at_most(loaded(kTilesN * x_bytes + kTilesM * w_bytes), 1,
               "A block's tile is one of K or one of V. It needs its rows of X, and columns of one of the two weights.");

  for (const std::int64_t tokens : {256, 4096}) {
    Case whole = both(tokens, 1024, 4096);
    whole.slow = "One launch has the tiles of K and of V. Do blocks that run together share rows of X?";
    coach.multiply_on_gpu<__half, __half>(whole, project_halves);
  }
}

}  // namespace exercise

/// @file
/// Exercise 30: two warpgroups take turns. One multiplies, while the other loads and stores.
#pragma once

#include "common/device/mbarrier.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using gemm::Matrix;

constexpr int kWarpgroup = 128;        ///< threads
constexpr int kBoth = 2 * kWarpgroup;  ///< threads of a block
constexpr int kRows = 64, kK = 16;     ///< of X_t
constexpr int kCols = 8;               ///< columns of a block

/// Two elements in one register.
__device__ __forceinline__ uint32_t pair(__half low, __half high) {
  return __half_as_ushort(low) | uint32_t{__half_as_ushort(high)} << 16;
}
/// The thread's part of X_t, for mma_m16n8k16: a warp has 16 of its rows.
__device__ __forceinline__ void load_x(uint32_t (&rX)[4], Matrix<const __half> X, int t) {
  const int g = threadIdx.x % 32 / 4, row_0 = t * kRows + threadIdx.x % kWarpgroup / 32 * 16;
  for (int i = 0; i < 4; ++i) {
    const int row = row_0 + g + i % 2 * 8, k = threadIdx.x % 4 * 2 + i / 2 * 8;
    rX[i] = pair(*X.at(row, k), *X.at(row, k + 1));
  }
}
/// The thread's part of the block's columns of W.
__device__ __forceinline__ void load_w(uint32_t (&rW)[2], Matrix<const __half> W, int col_0) {
  for (int i = 0; i < 2; ++i) {
    const int k = threadIdx.x % 4 * 2 + i * 8, col = col_0 + threadIdx.x % 32 / 4;
    rW[i] = pair(*W.at(k, col), *W.at(k + 1, col));
  }
}
/// Stores the thread's part of Y_t.
__device__ __forceinline__ void store_y(Matrix<float> Y, int t, int col_0, const float (&rY)[4]) {
  const int row_0 = t * kRows + threadIdx.x % kWarpgroup / 32 * 16;
  for (int i = 0; i < 4; ++i) {
    *Y.at(row_0 + threadIdx.x % 32 / 4 + i / 2 * 8, col_0 + threadIdx.x % 4 * 2 + i % 2) = rY[i];
  }
}
/// The number of the barrier at which a warpgroup waits for its turn. Number 0 is that of __syncthreads().
__device__ __forceinline__ uint32_t turn_of(int warpgroup) { return 1 + warpgroup; }

/// One block, kCols columns of all Y_t. Warpgroup 0 has the even t, warpgroup 1 the odd ones.
__global__ void recur_kernel(Matrix<const __half> X, Matrix<const __half> W, Matrix<float> Y, int steps) {
  __shared__ float sY[kWarpgroup][4];  // the last Y_t, as the threads of either warpgroup have it
  const int warpgroup = threadIdx.x / kWarpgroup, thread = threadIdx.x % kWarpgroup, col_0 = static_cast<int>(blockIdx.x) * kCols;
  uint32_t rW[2], rX[4];
  load_w(rW, W, col_0);
  // >>> Your turn: the first turn is warpgroup 0's. Who lets it begin?
  // <<<
  for (int t = warpgroup; t < steps; t += 2) {
    load_x(rX, X, t);  // needs no turn
    // >>> Your turn: wait for it.
    // <<<
    float rY[4];
    for (int i = 0; i < 4; ++i) {
      rY[i] = t > 0 ? sY[thread][i] / 2 : 0;
    }
    device::mma_m16n8k16<__half>(rY, rX, rW);
    for (int i = 0; i < 4; ++i) {
      sY[thread][i] = rY[i];
    }
    // >>> Your turn: it is the other one's now, if there is another step.
    // <<<
    store_y(Y, t, col_0, rY);
  }
}

/// Y_t = Y_(t-1) / 2 + X_t · W for each t, and Y_0 = X_0 · W. X has kRows rows for each t, one below the other, and kK columns; W
/// has a multiple of kCols columns.
void recur(Matrix<const __half> X, Matrix<const __half> W, Matrix<float> Y) {
  device::launch(recur_kernel, gemm::grid_size(W.cols / kCols), kBoth, 0, X, W, Y, static_cast<int>(X.rows / kRows));
}

}  // namespace exercise

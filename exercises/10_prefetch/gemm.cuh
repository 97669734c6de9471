/// @file
/// Exercise 10: prefetch. The next tiles are loaded into registers while these are multiplied.
#pragma once

#include "common/device/device.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using gemm::ceil_div, gemm::Matrix;

constexpr int kTile = 32;         ///< rows and columns of a block's tile of C, and of the tiles of A and B
constexpr int kThreadsM = 8;      ///< rows of threads in a block; each row has kTile threads, a warp
constexpr int kRowsOfThread = 4;  ///< of a tile, kThreadsM apart: what a thread loads and computes, in one column

/// Loads the thread's elements of a tile. @param g its first element  @param rows, cols of the tile that exist; the rest are zeros
__device__ __forceinline__ void load_tile(float (&r)[kRowsOfThread], const float* g, int64_t row_stride, int64_t rows,
                                          int64_t cols) {
  for (int i = 0; i < kRowsOfThread; ++i) {
    const int row = threadIdx.y + i * kThreadsM, col = threadIdx.x;
    r[i] = row < rows && col < cols ? g[row * row_stride + col] : 0;
  }
}
/// Stores what load_tile() has loaded in shared memory.
__device__ __forceinline__ void store_tile(float (&s)[kTile][kTile], const float (&r)[kRowsOfThread]) {
  for (int i = 0; i < kRowsOfThread; ++i) {
    s[threadIdx.y + i * kThreadsM][threadIdx.x] = r[i];
  }
}

/// One block, one kTile x kTile tile of C; one thread, kRowsOfThread elements of one column.
__global__ void gemm_kernel(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  __shared__ float sA[kTile][kTile];  // (m, k)
  __shared__ float sB[kTile][kTile];  // (k, n)
  const int64_t tiles_n = ceil_div<int64_t>(C.cols, kTile);
  const int64_t m_0 = blockIdx.x / tiles_n * kTile, n_0 = blockIdx.x % tiles_n * kTile;
  const int thread_m = threadIdx.y, thread_n = threadIdx.x;

  const float* gA = A.at(m_0, 0);  // the tiles that are loaded; k is a multiple of kTile, so no tile ends within k
  const float* gB = B.at(0, n_0);
  float rA[kRowsOfThread] = {}, rB[kRowsOfThread] = {}, rC[kRowsOfThread] = {};
  // >>> Your turn (1): what has to be in rA and rB before the first round?
  (void)gA, (void)gB;  // nobody uses them yet
  // <<<
  for (int64_t k_left = A.cols; k_left > 0; k_left -= kTile) {
    store_tile(sA, rA);
    store_tile(sB, rB);
    __syncthreads();  // the tiles are complete
    // >>> Your turn (2): load the next tiles into rA and rB. The products below do not need rA and rB, so they need not wait.
    // <<<
    for (int k = 0; k < kTile; ++k) {
      for (int i = 0; i < kRowsOfThread; ++i) {
        rC[i] += sA[thread_m + i * kThreadsM][k] * sB[k][thread_n];
      }
    }
    __syncthreads();  // everybody has read the tiles before they are overwritten
  }

  for (int i = 0; i < kRowsOfThread; ++i) {
    const int64_t row = m_0 + thread_m + i * kThreadsM, col = n_0 + thread_n;
    if (row < C.rows && col < C.cols) {
      *C.at(row, col) = rC[i];
    }
  }
}

/// C = A · B. All three are row-major, their rows may be longer than what they hold. k is a multiple of kTile; m and n are any.
void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kTile) * ceil_div<int64_t>(C.cols, kTile);
  device::launch(gemm_kernel, gemm::grid_size(tiles), dim3(kTile, kThreadsM), 0, A, B, C);
}

}  // namespace exercise

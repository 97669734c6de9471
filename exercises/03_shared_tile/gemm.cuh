/// @file
/// Exercise 03: a block loads tiles of A and B into shared memory, and all of its threads use them.
#pragma once

#include "common/device/device.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using gemm::ceil_div, gemm::Matrix;

constexpr int kTile = 32;  ///< rows and columns of a block's tile of C, and of the tiles of A and B

/// One thread, one element of C: kTile x kTile threads a block. threadIdx.x counts along a row.
__global__ void gemm_kernel(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  __shared__ float sA[kTile][kTile];  // (m, k)
  __shared__ float sB[kTile][kTile];  // (k, n)

  // The blocks lie row by row over C.
  const int64_t tiles_n = ceil_div<int64_t>(C.cols, kTile);
  const int64_t m_0 = blockIdx.x / tiles_n * kTile, n_0 = blockIdx.x % tiles_n * kTile;
  const int thread_m = threadIdx.y, thread_n = threadIdx.x;  // a warp lies along a row

  float rC = 0;
  for (int64_t k_0 = 0; k_0 < A.cols; k_0 += kTile) {
    // >>> Your turn: each thread copies one element of A and one of B into the tiles. What lies outside of a matrix is a zero.
    sA[thread_m][thread_n] = 0;
    sB[thread_m][thread_n] = 0;
    // <<<

    for (int k = 0; k < kTile; ++k) {
      rC += sA[thread_m][k] * sB[k][thread_n];
    }

    // >>> Your turn: may a thread go on to the next tiles at once?
    // <<<
  }

  const int64_t row = m_0 + thread_m, col = n_0 + thread_n;
  if (row < C.rows && col < C.cols) {
    *C.at(row, col) = rC;
  }
}

/// C = A · B. All three are row-major, their rows may be longer than what they hold.
void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kTile) * ceil_div<int64_t>(C.cols, kTile);
  device::launch(gemm_kernel, gemm::grid_size(tiles), dim3(kTile, kTile), 0, A, B, C);
}

}  // namespace exercise

/// @file
/// Exercise 04: a thread computes 4 x 4 elements of C, from values that it reads from shared memory once.
#pragma once

#include "common/device/device.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using gemm::ceil_div, gemm::Matrix;

/// A block's tile of C is kBlockM x kBlockN; it goes along k in slices of kBlockK.
constexpr int kBlockM = 64;
constexpr int kBlockN = 64;  ///< the same along n
constexpr int kBlockK = 16;  ///< the same along k
constexpr int kThreadM = 4;  ///< a thread's part of the tile is kThreadM x kThreadN
constexpr int kThreadN = 4;  ///< the same along n
/// The threads of a block lie in kThreadsM rows and kThreadsN columns.
constexpr int kThreadsM = kBlockM / kThreadM;
constexpr int kThreadsN = kBlockN / kThreadN;    ///< the same along n
constexpr int kThreads = kThreadsM * kThreadsN;  ///< threads of a block

/// Copies the part of `g` that begins at (row_0, col_0) into shared memory; zeros where it sticks out.
template <int kRows, int kCols>
__device__ void load_tile(float (&s)[kRows][kCols], const Matrix<const float>& g, int64_t row_0, int64_t col_0) {
  for (int i = threadIdx.x; i < kRows * kCols; i += kThreads) {
    const int64_t row = row_0 + i / kCols, col = col_0 + i % kCols;
    s[i / kCols][i % kCols] = row < g.rows && col < g.cols ? *g.at(row, col) : 0;
  }
}

/// One block, one kBlockM x kBlockN tile of C.
__global__ void gemm_kernel(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  __shared__ float sA[kBlockM][kBlockK];  // (m, k)
  __shared__ float sB[kBlockK][kBlockN];  // (k, n)

  // The blocks lie row by row over C.
  const int64_t tiles_n = ceil_div<int64_t>(C.cols, kBlockN);
  const int64_t m_0 = blockIdx.x / tiles_n * kBlockM, n_0 = blockIdx.x % tiles_n * kBlockN;
  // rC[i][j] is the element in row thread_m + i * kThreadsM and column thread_n + j * kThreadsN of the tile. So neighbouring
  // threads have neighbouring elements: they read from different banks, and store next to each other.
  const int thread_m = threadIdx.x / kThreadsN, thread_n = threadIdx.x % kThreadsN;

  float rC[kThreadM][kThreadN] = {};
  for (int64_t k_0 = 0; k_0 < A.cols; k_0 += kBlockK) {
    load_tile(sA, A, m_0, k_0);
    load_tile(sB, B, k_0, n_0);
    __syncthreads();  // the tiles are complete before anybody reads them

    // >>> Your turn: right, but two reads for each product, 32 for one k. How many different values are they?
    for (int i = 0; i < kThreadM; ++i) {
      for (int j = 0; j < kThreadN; ++j) {
        for (int k = 0; k < kBlockK; ++k) {
          rC[i][j] += sA[thread_m + i * kThreadsM][k] * sB[k][thread_n + j * kThreadsN];
        }
      }
    }
    // <<<
    __syncthreads();  // everybody has read the tiles before they are overwritten
  }

#pragma unroll
  for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
    for (int j = 0; j < kThreadN; ++j) {
      const int64_t row = m_0 + thread_m + i * kThreadsM, col = n_0 + thread_n + j * kThreadsN;
      if (row < C.rows && col < C.cols) {
        *C.at(row, col) = rC[i][j];
      }
    }
  }
}

/// C = A · B. All three are row-major, their rows may be longer than what they hold.
void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kBlockM) * ceil_div<int64_t>(C.cols, kBlockN);
  device::launch(gemm_kernel, gemm::grid_size(tiles), kThreads, 0, A, B, C);
}

}  // namespace exercise

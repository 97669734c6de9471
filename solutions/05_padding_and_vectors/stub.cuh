/// @file
/// Exercise 05: shared memory without bank conflicts, read 16 bytes at a time.
#pragma once

#include "common/device/device.cuh"
#include "common/device/vector_access.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using gemm::ceil_div, gemm::Matrix;

/// A block's tile of C is kBlockM x kBlockN; it goes along k in slices of kBlockK.
constexpr int kBlockM = 64;
constexpr int kBlockN = 64;                                          ///< the same along n
constexpr int kBlockK = 8;                                           ///< the same along k
constexpr int kThreadM = 4;                                          ///< a thread's part of the tile is kThreadM x kThreadN
constexpr int kThreadN = 4;                                          ///< the same along n
constexpr int kThreadsN = kBlockN / kThreadN;                        ///< threads that lie side by side in the tile
constexpr int kThreads = kBlockM * kBlockN / (kThreadM * kThreadN);  ///< threads of a block

// >>> Your turn: a row of sA is kPad floats longer than what it holds. With how many have a warp's stores no bank conflicts?
constexpr int kPad = 0;  ///< none
// <<<

/// One block, one kBlockM x kBlockN tile of C. `c_vectors`: the rows of C are aligned vectors.
__global__ void gemm_kernel(Matrix<const float> A, Matrix<const float> B, Matrix<float> C, bool c_vectors) {
  alignas(16) __shared__ float sA[kBlockK][kBlockM + kPad];  // (k, m): the values that a thread needs for one k are neighbours
  alignas(16) __shared__ float sB[kBlockK][kBlockN];         // (k, n)

  // The blocks lie row by row over C. A thread has 4 x 4 neighbours, from (thread_m, thread_n) of the tile on.
  const int64_t tiles_n = ceil_div<int64_t>(C.cols, kBlockN);
  const int64_t m_0 = blockIdx.x / tiles_n * kBlockM, n_0 = blockIdx.x % tiles_n * kBlockN;
  const int thread_m = threadIdx.x / kThreadsN * kThreadM, thread_n = threadIdx.x % kThreadsN * kThreadN;

  float rC[kThreadM][kThreadN] = {};
  for (int64_t k_0 = 0; k_0 < A.cols; k_0 += kBlockK) {
    // A is transposed on its way: a warp loads a sector, 8 neighbours along k, of each of 4 rows. It stores them to 8 rows of sA.
    for (int i = threadIdx.x; i < kBlockM * kBlockK; i += kThreads) {
      const int m = i / kBlockK, k = i % kBlockK;
      sA[k][m] = m_0 + m < A.rows && k_0 + k < A.cols ? *A.at(m_0 + m, k_0 + k) : 0;
    }
    for (int i = threadIdx.x; i < kBlockK * kBlockN; i += kThreads) {
      const int k = i / kBlockN, n = i % kBlockN;
      sB[k][n] = k_0 + k < B.rows && n_0 + n < B.cols ? *B.at(k_0 + k, n_0 + n) : 0;
    }
    __syncthreads();  // the tiles are complete before anybody reads them

#pragma unroll
    for (int k = 0; k < kBlockK; ++k) {
      float rA[kThreadM], rB[kThreadN];
      // >>> Your turn: read the four neighbours in sA with one load, and those in sB with another one.
      for (int i = 0; i < kThreadM; ++i) {
        rA[i] = sA[k][thread_m + i];
      }
      for (int j = 0; j < kThreadN; ++j) {
        rB[j] = sB[k][thread_n + j];
      }
      // <<<
#pragma unroll
      for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
        for (int j = 0; j < kThreadN; ++j) {
          rC[i][j] += rA[i] * rB[j];
        }
      }
    }
    __syncthreads();  // everybody has read the tiles before they are overwritten
  }

  const int64_t col = n_0 + thread_n;
#pragma unroll
  for (int i = 0; i < kThreadM; ++i) {
    const int64_t row = m_0 + thread_m + i;
    if (row < C.rows) {
      const float4 v = make_float4(rC[i][0], rC[i][1], rC[i][2], rC[i][3]);
      device::store4(C.at(row, col), C.col_stride, C.cols - col, c_vectors, v);  // what lies in C
    }
  }
}

/// C = A · B. All three are row-major, their rows may be longer than what they hold.
void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kBlockM) * ceil_div<int64_t>(C.cols, kBlockN);
  const bool c_vectors = device::vectors_aligned(C.data, C.col_stride, C.row_stride);
  device::launch(gemm_kernel, gemm::grid_size(tiles), kThreads, 0, A, B, C, c_vectors);
}

}  // namespace exercise

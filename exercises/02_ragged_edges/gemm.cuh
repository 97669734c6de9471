/// @file
/// Exercise 02: a thread computes four elements of C. Which of them exist?
#pragma once

#include "common/device/device.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using gemm::ceil_div, gemm::Matrix;

constexpr int kThreadM = 4;  ///< a thread's elements of C, below each other in a column
/// A block's part of C: kBlockM x kBlockN elements.
constexpr int kBlockM = 32;
constexpr int kBlockN = 32;                             ///< the same along n
constexpr int kThreads = kBlockM / kThreadM * kBlockN;  ///< threads of a block

/// One thread, kThreadM elements of C. A value of B that it has loaded serves all of them.
__global__ void gemm_kernel(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  // The blocks lie row by row over C.
  const int64_t tiles_n = ceil_div<int64_t>(C.cols, kBlockN);
  const int64_t m_0 = blockIdx.x / tiles_n * kBlockM, n_0 = blockIdx.x % tiles_n * kBlockN;
  // The thread's first element. A warp lies along a row.
  const int64_t row = m_0 + threadIdx.x / kBlockN * kThreadM;
  const int64_t col = n_0 + threadIdx.x % kBlockN;

  float rC[kThreadM] = {};
  // >>> Your turn: this is right as long as all elements (row + i, col) lie in C. What if some do not, or none?
  for (int64_t k = 0; k < A.cols; ++k) {
    const float rB = *B.at(k, col);
#pragma unroll
    for (int i = 0; i < kThreadM; ++i) {
      rC[i] += *A.at(row + i, k) * rB;
    }
  }
  // <<<

  // >>> Your turn: the same for the stores.
#pragma unroll
  for (int i = 0; i < kThreadM; ++i) {
    *C.at(row + i, col) = rC[i];
  }
  // <<<
}

/// C = A · B. All three are row-major, their rows may be longer than what they hold.
void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kBlockM) * ceil_div<int64_t>(C.cols, kBlockN);
  device::launch(gemm_kernel, gemm::grid_size(tiles), kThreads, 0, A, B, C);
}

}  // namespace exercise

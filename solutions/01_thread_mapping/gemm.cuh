/// @file
/// Exercise 01: which thread computes which element of C?
#pragma once

#include "common/device/device.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using gemm::ceil_div, gemm::Matrix;

/// A block's part of C: kBlockM x kBlockN elements, a thread each.
constexpr int kBlockM = 8;
constexpr int kBlockN = 32;  ///< the same along n

/// One thread, one element of C.
__global__ void gemm_kernel(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  // The blocks lie row by row over C.
  const int64_t tiles_n = ceil_div<int64_t>(C.cols, kBlockN);
  const int64_t m_0 = blockIdx.x / tiles_n * kBlockM, n_0 = blockIdx.x % tiles_n * kBlockN;

  // >>> Your turn: which element is this thread's? threadIdx.x goes from 0 to kBlockM * kBlockN - 1.
  const int64_t row = m_0 + threadIdx.x / kBlockN;
  const int64_t col = n_0 + threadIdx.x % kBlockN;  // a warp lies along a row
  // <<<

  if (row >= C.rows || col >= C.cols) return;  // blocks at the edge stick out of C
  float sum = 0;
  for (int64_t k = 0; k < A.cols; ++k) {
    sum += *A.at(row, k) * *B.at(k, col);
  }
  *C.at(row, col) = sum;
}

/// C = A · B. All three are row-major: neighbours in a row lie next to each other in memory.
void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kBlockM) * ceil_div<int64_t>(C.cols, kBlockN);
  device::launch(gemm_kernel, gemm::grid_size(tiles), kBlockM * kBlockN, 0, A, B, C);
}

}  // namespace exercise

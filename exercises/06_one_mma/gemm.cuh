/// @file
/// Exercise 06: one warp, one tensor core instruction. Which lane holds what?
#pragma once

#include "common/device/ptx.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using gemm::ceil_div, gemm::Matrix;

/// What one mma.sync multiplies: kMmaM x kMmaK of A and kMmaK x kMmaN of B.
constexpr int kMmaM = 16;
constexpr int kMmaN = 8;   ///< columns of B and C
constexpr int kMmaK = 16;  ///< columns of A, rows of B

/// Element (row, col), zero outside of the matrix.
__device__ __forceinline__ __half element(Matrix<const __half> matrix, int64_t row, int64_t col) {
  return row < matrix.rows && col < matrix.cols ? *matrix.at(row, col) : __half(0.0f);
}
/// Two elements in one register: `low` in the lower 16 bits, `high` in the upper ones.
__device__ __forceinline__ uint32_t pair(__half low, __half high) {
  return __half_as_ushort(low) | uint32_t{__half_as_ushort(high)} << 16;
}
/// Stores x as element (row, col), if there is one.
__device__ __forceinline__ void store(Matrix<float> C, int64_t row, int64_t col, float x) {
  if (row < C.rows && col < C.cols) *C.at(row, col) = x;
}

/// One block is one warp and computes kMmaM x kMmaN elements of C, with one mma.sync for each kMmaK of k.
__global__ void gemm_kernel(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C) {
  // The tiles lie row by row over C.
  const int64_t tiles_n = ceil_div<int64_t>(C.cols, kMmaN);
  const int64_t m_0 = blockIdx.x / tiles_n * kMmaM, n_0 = blockIdx.x % tiles_n * kMmaN;
  const int lane = threadIdx.x, g = lane / 4, t = lane % 4;  // as in the lesson's picture and in ptx.cuh

  float rC[4] = {};
  for (int64_t k_0 = 0; k_0 < A.cols; k_0 += kMmaK) {
    uint32_t rA[4], rB[2];
    // >>> Your turn: fill rA and rB. The tile's part of A begins at (m_0, k_0), that of B at (k_0, n_0).
    for (int i = 0; i < 4; ++i) {
      rA[i] = 0;
    }
    for (int i = 0; i < 2; ++i) {
      rB[i] = 0;
    }
    // <<<
    device::mma_m16n8k16<__half>(rC, rA, rB);
  }

  // >>> Your turn: store rC. The tile begins at (m_0, n_0).
  store(C, m_0 + g, n_0 + t, rC[0]);
  // <<<
}

/// C = A · B. All three are row-major, of any shape.
void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kMmaM) * ceil_div<int64_t>(C.cols, kMmaN);
  device::launch(gemm_kernel, gemm::grid_size(tiles), 32, 0, A, B, C);
}

}  // namespace exercise

/// @file
/// Exercise 07: fragments from shared memory by ldmatrix, without bank conflicts.
#pragma once

#include "common/device/chunk_access.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::kFragment, gemm::ceil_div, gemm::Matrix;

/// A block's part of C: kBlockM x kBlockN elements, in steps of kBlockK along k.
constexpr int kBlockM = 64;
constexpr int kBlockN = 32;              ///< the same along n
constexpr int kBlockK = 64;              ///< a row of a tile in shared memory: 128 bytes, all banks once
constexpr int kRowChunks = kBlockK / 8;  ///< chunks of a row: 8 elements each
constexpr int kThreads = 128;            ///< of a block: each of its 4 warps computes kFragment rows

/// Where a tile in shared memory has chunk `chunk` of row `row`: the number of the chunk's first element.
__device__ __forceinline__ int place(int row, int chunk) {
  // >>> Your turn (2): the same chunk of eight rows must lie in different banks.
  return row * kBlockK + chunk * 8;
  // <<<
}

/// Starts copying a tile of kRows rows, from (row_0, k_0) of `matrix` on; zeros where the matrix has ended.
template <int kRows>
__device__ __forceinline__ void copy_tile(__half* s, Matrix<const __half> matrix, int64_t row_0, int64_t k_0) {
  for (int i = threadIdx.x; i < kRows * kRowChunks; i += kThreads) {
    const int row = i / kRowChunks, chunk = i % kRowChunks;
    const int64_t k = k_0 + chunk * 8, left = row_0 + row < matrix.rows ? matrix.cols - k : 0;
    device::copy_chunk(s + place(row, chunk), matrix.at(row_0 + row, k), static_cast<int>(min(left, int64_t{8})));
  }
}

/// A fragment of A: 16 rows from `row_0` on, 16 elements along k from chunk `chunk_0` on.
__device__ __forceinline__ void load_a(uint32_t (&rA)[4], const __half* sA, int row_0, int chunk_0) {
  const int lane = threadIdx.x % 32;
  // >>> Your turn (1): which row and which chunk does this lane give the address of?
  const int row = row_0 + lane % 8;
  const int chunk = chunk_0;
  // <<<
  device::ldmatrix_x4(rA, sA + place(row, chunk));
}

/// Two fragments of B for mma.sync: 16 columns of B, rows in shared memory, from `row_0` on; k as of A.
__device__ __forceinline__ void load_b(uint32_t (&rB)[4], const __half* sB, int row_0, int chunk_0) {
  const int lane = threadIdx.x % 32;
  const int row = row_0 + lane / 16 * 8 + lane % 8;  // the third matrix is below the first
  const int chunk = chunk_0 + lane / 8 % 2;          // the second is to its right
  device::ldmatrix_x4(rB, sB + place(row, chunk));
}

/// One block, one kBlockM x kBlockN tile of C; one warp, kFragment rows of it. B_t is B transposed: k runs along its rows, as in A.
__global__ void gemm_kernel(Matrix<const __half> A, Matrix<const __half> B_t, Matrix<float> C) {
  alignas(128) __shared__ __half sA[kBlockM * kBlockK];  // (kBlockM, kBlockK)
  alignas(128) __shared__ __half sB[kBlockN * kBlockK];  // (kBlockN, kBlockK)
  const int64_t tiles_n = ceil_div<int64_t>(C.cols, kBlockN);
  const int64_t m_0 = blockIdx.x / tiles_n * kBlockM, n_0 = blockIdx.x % tiles_n * kBlockN;
  const int warp_m = threadIdx.x / 32 * kFragment, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;

  float rC[kBlockN / 8][4] = {};
  for (int64_t k_0 = 0; k_0 < A.cols; k_0 += kBlockK) {
    copy_tile<kBlockM>(sA, A, m_0, k_0);
    copy_tile<kBlockN>(sB, B_t, n_0, k_0);
    device::cp_async_wait_all();
    __syncthreads();  // the tiles are complete
    for (int chunk = 0; chunk < kRowChunks; chunk += 2) {
      uint32_t rA[4];
      load_a(rA, sA, warp_m, chunk);
      for (int j = 0; j < kBlockN / kFragment; ++j) {
        uint32_t rB[4];
        load_b(rB, sB, j * kFragment, chunk);
        device::mma_m16n8k16<__half>(rC[2 * j], rA, {rB[0], rB[1]});
        device::mma_m16n8k16<__half>(rC[2 * j + 1], rA, {rB[2], rB[3]});
      }
    }
    __syncthreads();  // everybody has read the tiles before they are overwritten
  }

  for (int i = 0; i < kBlockN / 8 * 4; ++i) {
    const int64_t row = m_0 + warp_m + g + i % 4 / 2 * 8, col = n_0 + i / 4 * 8 + 2 * t + i % 2;
    if (row < C.rows && col < C.cols) *C.at(row, col) = rC[i / 4][i % 4];
  }
}

/// C = A · B, of any shape. A and C are row-major, B is column-major. Rows of A and columns of B begin at multiples of 16 bytes.
void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kBlockM) * ceil_div<int64_t>(C.cols, kBlockN);
  device::launch(gemm_kernel, gemm::grid_size(tiles), kThreads, 0, A, B.transposed(), C);
}

}  // namespace exercise

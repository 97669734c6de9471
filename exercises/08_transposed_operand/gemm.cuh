/// @file
/// Exercise 08: an operand that lies column by column, transposed on its way into registers.
#pragma once

#include "common/device/chunk_access.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::kFragment, gemm::ceil_div, gemm::Matrix;

/// A block's part of C: kBlockM x kBlockN elements, in steps of kBlockK along k.
constexpr int kBlockM = 64;
constexpr int kBlockN = 32;           ///< the same along n
constexpr int kBlockK = 64;           ///< the same along k
constexpr int kRow = 64;              ///< elements of a row in shared memory: kBlockM of A, kBlockK of B
constexpr int kRowChunks = kRow / 8;  ///< chunks of a row
constexpr int kThreads = 128;         ///< of a block: each of its 4 warps computes kFragment rows

static_assert(kRow == kBlockM && kRow == kBlockK);

/// Where a tile in shared memory has chunk `chunk` of row `row`: the number of the chunk's first element. Swizzled.
__device__ __forceinline__ int place(int row, int chunk) { return row * kRow + (chunk ^ row % 8) * 8; }

/// Starts copying a tile of kRows rows, from (row_0, col_0) of `matrix` on; zeros where the matrix has ended.
template <int kRows>
__device__ __forceinline__ void copy_tile(__half* s, Matrix<const __half> matrix, int64_t row_0, int64_t col_0) {
  for (int i = threadIdx.x; i < kRows * kRowChunks; i += kThreads) {
    const int row = i / kRowChunks, chunk = i % kRowChunks;
    const int64_t col = col_0 + chunk * 8, left = row_0 + row < matrix.rows ? matrix.cols - col : 0;
    device::copy_chunk(s + place(row, chunk), matrix.at(row_0 + row, col), static_cast<int>(min(left, int64_t{8})));
  }
}

/// A fragment of A: 16 elements along m from `m` on, 16 along k from `k` on; both are multiples of 16. Rows of sA run along m.
__device__ __forceinline__ void load_a(uint32_t (&rA)[4], const __half* sA, int m, int k) {
  const int lane = threadIdx.x % 32;
  // >>> Your turn: load the fragment. mma.sync wants rA[0] as always: rows m + 0..7 of A, k + 0..7, neighbours along k in a
  // register.
  const int row = k + lane % 16;
  const int chunk = m / 8 + lane / 16;
  device::ldmatrix_x4(rA, sA + place(row, chunk));
  // <<<
}

/// Two fragments of B for mma.sync: 16 columns of B from `n` on, 16 elements along k from `k` on. Rows of sB run along k.
__device__ __forceinline__ void load_b(uint32_t (&rB)[4], const __half* sB, int n, int k) {
  const int lane = threadIdx.x % 32;
  const int row = n + lane / 16 * 8 + lane % 8;  // the third matrix has the next rows of sB
  const int chunk = k / 8 + lane / 8 % 2;        // the second has the next chunk
  device::ldmatrix_x4(rB, sB + place(row, chunk));
}

/// One block, one kBlockM x kBlockN tile of C; one warp, kFragment rows of it. A_t and B_t are A and B transposed: k x m and n x k.
/// Both have rows whose elements are neighbours in memory.
__global__ void gemm_kernel(Matrix<const __half> A_t, Matrix<const __half> B_t, Matrix<float> C) {
  alignas(128) __shared__ __half sA[kBlockK * kBlockM];  // (kBlockK, kBlockM)
  alignas(128) __shared__ __half sB[kBlockN * kBlockK];  // (kBlockN, kBlockK)
  const int64_t tiles_n = ceil_div<int64_t>(C.cols, kBlockN);
  const int64_t m_0 = blockIdx.x / tiles_n * kBlockM, n_0 = blockIdx.x % tiles_n * kBlockN;
  const int warp_m = threadIdx.x / 32 * kFragment, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;

  float rC[kBlockN / 8][4] = {};
  for (int64_t k_0 = 0; k_0 < A_t.rows; k_0 += kBlockK) {
    copy_tile<kBlockK>(sA, A_t, k_0, m_0);
    copy_tile<kBlockN>(sB, B_t, n_0, k_0);
    device::cp_async_wait_all();
    __syncthreads();  // the tiles are complete
    for (int k = 0; k < kBlockK; k += kFragment) {
      uint32_t rA[4];
      load_a(rA, sA, warp_m, k);
      for (int j = 0; j < kBlockN / kFragment; ++j) {
        uint32_t rB[4];
        load_b(rB, sB, j * kFragment, k);
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

/// C = A · B, of any shape. A and B are column-major, as in Fortran, C is row-major. Columns of A and B begin at multiples of 16
/// bytes.
void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kBlockM) * ceil_div<int64_t>(C.cols, kBlockN);
  device::launch(gemm_kernel, gemm::grid_size(tiles), kThreads, 0, A.transposed(), B.transposed(), C);
}

}  // namespace exercise

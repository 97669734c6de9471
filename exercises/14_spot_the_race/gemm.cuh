/// @file
/// Exercise 14: three kernels, each with one mistake. The interpreter's report says where it shows; you say where it is made.
#pragma once

#include "common/device/ptx.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using gemm::ceil_div, gemm::Matrix;

constexpr int kThreads = 256;    ///< of a block of row_sums_kernel
constexpr int kRowsOfBlock = 2;  ///< rows that it adds up, one after the other

/// One block, two rows of A. Its threads add up parts of a row, and then pairs of parts, until one is left.
__global__ void row_sums_kernel(Matrix<const float> A, float* sums) {
  __shared__ float sPart[kThreads];
  const int64_t row_0 = int64_t{blockIdx.x} * kRowsOfBlock;
  const int thread = threadIdx.x;

  for (int64_t row = row_0; row < A.rows && row < row_0 + kRowsOfBlock; ++row) {
    float rPart = 0;
    for (int64_t col = thread; col < A.cols; col += kThreads) {
      rPart += *A.at(row, col);
    }
    sPart[thread] = rPart;
    for (int left = kThreads / 2; left > 0; left /= 2) {
      // >>> Mistake 1 shows here: `left` threads add the second half of what is left to the first half.
      if (thread < left) {
        sPart[thread] += sPart[thread + left];
      }
      // <<<
    }
    if (thread == 0) {
      sums[row] = sPart[0];
    }
    __syncthreads();  // the sum is read before the next row's parts overwrite it
  }
}

/// sums[i] = sum of row i of A.
void row_sums(Matrix<const float> A, float* sums) {
  device::launch(row_sums_kernel, gemm::grid_size(ceil_div<int64_t>(A.rows, kRowsOfBlock)), kThreads, 0, A, sums);
}

constexpr int kTile = 16;  ///< rows and columns of a block's tile of C, and of the tiles of A and B

/// Starts copying the thread's element of a tile; zero where the matrix has ended.
__device__ __forceinline__ void copy_element(float* s, Matrix<const float> matrix, int64_t row, int64_t col) {
  const bool exists = row < matrix.rows && col < matrix.cols;
  device::cp_async_ca_4(s, exists ? matrix.at(row, col) : matrix.data, exists ? 4 : 0);
}

/// One thread, one element of C. Two stages: while one is multiplied, the next tiles are copied to the other one.
__global__ void gemm_kernel(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  __shared__ float sA[2][kTile][kTile];  // (stage, m, k)
  __shared__ float sB[2][kTile][kTile];  // (stage, k, n)
  const int thread_m = threadIdx.y, thread_n = threadIdx.x;
  const int64_t row = int64_t{blockIdx.y} * kTile + thread_m, col = int64_t{blockIdx.x} * kTile + thread_n;
  const int64_t tiles = ceil_div<int64_t>(A.cols, kTile);
  const auto copy = [&](int64_t tile) {  // past the last one zeros, and nothing is read
    copy_element(&sA[tile % 2][thread_m][thread_n], A, row, tile * kTile + thread_n);
    copy_element(&sB[tile % 2][thread_m][thread_n], B, tile * kTile + thread_m, col);
    device::cp_async_commit_group();
  };

  float rC = 0;
  copy(0);
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int stage = static_cast<int>(tile % 2);
    // >>> Mistake 2 shows here: the next tiles go to the other stage, and this tile's copies are waited for.
    copy(tile + 1);
    device::cp_async_wait_group<1>();  // all but the last group: this tile's copies
    __syncthreads();                   // everybody's copies of this tile are there
    // <<<
    for (int k = 0; k < kTile; ++k) {
      rC += sA[stage][thread_m][k] * sB[stage][k][thread_n];
    }
  }
  device::cp_async_wait_all();  // zeros are still on their way
  if (row < C.rows && col < C.cols) {
    *C.at(row, col) = rC;
  }
}

/// C = A · B. All three are row-major, their rows may be longer than what they hold.
void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  const dim3 grid(gemm::grid_size(ceil_div<int64_t>(C.cols, kTile)), gemm::grid_size(ceil_div<int64_t>(C.rows, kTile)));
  device::launch(gemm_kernel, grid, dim3(kTile, kTile), 0, A, B, C);
}

constexpr int kStripRows = 32;  ///< rows that a block of column_sums_kernel adds up
constexpr int kStripCols = 64;  ///< its columns, a thread each

/// One block, one strip of A. All strips of a column add to the same sum.
__global__ void column_sums_kernel(Matrix<const float> A, float* sums) {
  const int64_t col = int64_t{blockIdx.x} * kStripCols + threadIdx.x, row_0 = int64_t{blockIdx.y} * kStripRows;
  if (col >= A.cols) return;
  float rSum = 0;
  for (int64_t row = row_0; row < A.rows && row < row_0 + kStripRows; ++row) {
    rSum += *A.at(row, col);
  }
  // >>> Mistake 3 shows here: the strip's sum is added to the column's.
  sums[col] += rSum;
  // <<<
}

/// Adds the sum of column i of A to sums[i].
void column_sums(Matrix<const float> A, float* sums) {
  const dim3 grid(gemm::grid_size(ceil_div<int64_t>(A.cols, kStripCols)), gemm::grid_size(ceil_div<int64_t>(A.rows, kStripRows)));
  device::launch(column_sums_kernel, grid, kStripCols, 0, A, sums);
}

}  // namespace exercise

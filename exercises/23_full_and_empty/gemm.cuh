/// @file
/// Exercise 23: full and empty. One thread copies, others add, and two barriers for each stage are all that they say to each other.
#pragma once

#include "common/device/bulk_copy.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;

constexpr int kStages = 3;                    ///< of the ring, a tile each
constexpr int kRows = 8;                      ///< of A in a tile
constexpr int kCols = 64;                     ///< of A in a tile
constexpr int kAdding = kCols / 32;           ///< warps that add: a lane has a column. One more warp copies
constexpr int kThreads = 32 * (kAdding + 1);  ///< of a block

// >>> Your turn (1): tile 0 goes to stage 0, tile 1 to stage 1. Which parity has the phase in which a tile is there?
/// Where a tile lies in the ring. Tiles are counted from 0 on.
__host__ __device__ int stage_of(int /*tile*/) { return 0; }
/// The parity of the phase of `full` that ends when this tile is there.
__host__ __device__ uint32_t parity_of(int /*tile*/) { return 0; }
// <<<

/// One block, the sums of kCols columns: tile after tile, kRows rows each.
__global__ void sums_kernel(const __grid_constant__ TensorMap map, int tiles, int64_t cols, float* sums) {
  alignas(128) __shared__ float sRing[kStages][kRows][kCols];
  __shared__ Mbarrier full[kStages], empty[kStages];
  const int col_0 = static_cast<int>(blockIdx.x) * kCols;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      // >>> Your turn (2): how many arrivals end a phase of full[i], how many one of empty[i]?
      device::mbarrier_init(&full[i], 1);
      device::mbarrier_init(&empty[i], 1);
      // <<<
    }
    device::fence_mbarrier_init();
  }
  __syncthreads();  // the barriers exist before anybody waits for them

  if (warp == kAdding) {
    for (int tile = 0; tile < tiles && lane == 0; ++tile) {
      const int stage = stage_of(tile);
      // >>> Your turn (3): wait until the stage may be filled; say what comes.
      // <<<
      device::cp_async_bulk_tensor_2d(sRing[stage], &map, col_0, tile * kRows, &full[stage]);
    }
    return;
  }

  const int col = static_cast<int>(threadIdx.x);
  float sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = stage_of(tile);
    // >>> Your turn (4): wait until the tile is there.
    // <<<
    for (int row = 0; row < kRows; ++row) {
      sum += sRing[stage][row][col];
    }
    // >>> Your turn (5): give the stage back.
    // <<<
  }
  if (col_0 + col < cols) sums[col_0 + col] = sum;
}

/// sums[j] = A[0, j] + A[1, j] + ... Rows of A begin at multiples of 16 bytes.
void column_sums(Matrix<const float> A, float* sums) {
  const TensorMap map = device::make_tensor_map<float>({.data = A.data,
                                                        .rows = static_cast<std::uint64_t>(A.rows),
                                                        .columns = static_cast<std::uint64_t>(A.cols),
                                                        .row_stride = static_cast<std::uint64_t>(A.row_stride),
                                                        .box_rows = kRows,
                                                        .box_columns = kCols});
  device::launch(sums_kernel, gemm::grid_size(ceil_div<int64_t>(A.cols, kCols)), kThreads, 0, map,
                 static_cast<int>(ceil_div<int64_t>(A.rows, kRows)), A.cols, sums);
}

}  // namespace exercise

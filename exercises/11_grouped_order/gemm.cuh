/// @file
/// Exercise 11: in which order do blocks go over C, so that those that run together share operands?
#pragma once

#include "common/device/device.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using gemm::ceil_div, gemm::Matrix;

/// A block's part of C: kTile x kTile elements, a thread each.
constexpr int kTile = 16;
constexpr int kGroupM = 3;  ///< rows of tiles that blocks cross together

/// A tile of C, in tiles: the first one is (0, 0).
struct TileIndex {
  int64_t m;  ///< its row
  int64_t n;  ///< its column
};

/// The tile of block number `block` in a grid of tiles_m x tiles_n tiles. Blocks go over C in groups of group_m rows of tiles. In a
/// group they go down the first column, then down the second one, up to the last; then comes the next group. The last one may have
/// fewer rows.
__host__ __device__ TileIndex tile_of_block(int64_t block, int64_t tiles_m, int64_t tiles_n, int64_t group_m) {
  // >>> Your turn: which tile is it?
  return {block / tiles_n, block % tiles_n};  // row by row, without groups
  // <<<
}

/// One thread, one element of C.
__global__ void gemm_kernel(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  const TileIndex tile = tile_of_block(blockIdx.x, ceil_div<int64_t>(C.rows, kTile), ceil_div<int64_t>(C.cols, kTile), kGroupM);
  const int64_t row = tile.m * kTile + threadIdx.x / kTile, col = tile.n * kTile + threadIdx.x % kTile;
  if (row >= C.rows || col >= C.cols) return;  // tiles at the edge stick out of C
  float sum = 0;
  for (int64_t k = 0; k < A.cols; ++k) {
    sum += *A.at(row, k) * *B.at(k, col);
  }
  *C.at(row, col) = sum;
}

/// C = A · B, of any shape. All three are row-major.
void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kTile) * ceil_div<int64_t>(C.cols, kTile);
  device::launch(gemm_kernel, gemm::grid_size(tiles), kTile * kTile, 0, A, B, C);
}

}  // namespace exercise

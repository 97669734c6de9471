/// @file
/// Exercise 29: the copy engine stores C, panel by panel, out of two places that take turns.
#pragma once

#include "common/device/bulk_copy.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::TensorMap, gemm::ceil_div, gemm::Matrix;

constexpr int kRows = 16;      ///< of a block's strip of C
constexpr int kPanel = 32;     ///< columns of a panel: what the engine stores at once
constexpr int kPlaces = 2;     ///< panels in shared memory
constexpr int kThreads = 128;  ///< of a block

/// Computes the panel of C that begins at (row_0, col_0); zeros where C has ended.
__device__ __forceinline__ void fill_panel(float (&panel)[kRows][kPanel], Matrix<const float> a, Matrix<const float> b, int row_0,
                                           int col_0) {
  for (int i = threadIdx.x; i < kRows * kPanel; i += kThreads) {
    const int64_t row = row_0 + i / kPanel, col = col_0 + i % kPanel;
    panel[i / kPanel][i % kPanel] = row < a.rows && col < b.cols ? *a.at(row, 0) * *b.at(0, col) : 0;
  }
}

/// One block, a strip of kRows of C. While the engine stores a panel, the threads compute the next one in the other place.
__global__ void outer_kernel(const __grid_constant__ TensorMap map_c, Matrix<const float> a, Matrix<const float> b) {
  alignas(128) __shared__ float sC[kPlaces][kRows][kPanel];
  const int row_0 = static_cast<int>(blockIdx.x) * kRows, panels = static_cast<int>(ceil_div<int64_t>(b.cols, kPanel));

  for (int panel = 0; panel < panels; ++panel) {
    float(&place)[kRows][kPanel] = sC[panel % kPlaces];
    // >>> Your turn: wait until the engine has read what was in this place. Let the other place's panel be under way.
    __syncthreads();
    // <<<
    fill_panel(place, a, b, row_0, panel * kPanel);
    // >>> Your turn: have the engine store the panel, with its first element at row row_0, column panel * kPanel.
    __syncthreads();
    // <<<
  }

  // >>> Your turn: the block's shared memory ends with it. When may it end?
  // <<<
}

/// C = a · b, where a is a column and b a row: each element is one product. C has a multiple of 4 columns, and so has its row
/// stride.
void outer(Matrix<const float> a, Matrix<const float> b, Matrix<float> C) {
  const TensorMap map_c = device::make_tensor_map<float>(
      {C.data, static_cast<uint64_t>(C.rows), static_cast<uint64_t>(C.cols), static_cast<uint64_t>(C.row_stride), kRows, kPanel});
  device::launch(outer_kernel, gemm::grid_size(ceil_div<int64_t>(C.rows, kRows)), kThreads, 0, map_c, a, b);
}

}  // namespace exercise

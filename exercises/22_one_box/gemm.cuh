/// @file
/// Exercise 22: one box. The copy engine brings a part of a matrix, and zeros where there is nothing.
#pragma once

#include "common/device/bulk_copy.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;

/// A box: what one instruction copies, kBoxRows x kBoxCols elements.
constexpr int kBoxRows = 8;
constexpr int kBoxCols = 32;   ///< columns of a box
constexpr int kThreads = 128;  ///< of a block

/// What the copy engine knows of A. Rows of A begin at multiples of 16 bytes.
TensorMap map_of(Matrix<const float> A) {
  device::TensorLayout layout{};
  layout.data = A.data;
  // >>> Your turn (1): how large is A, how far apart are its rows, how large is a box? All of these count elements.
  layout.rows = layout.columns = 1;
  layout.row_stride = layout.box_rows = layout.box_columns = 4;
  // <<<
  return device::make_tensor_map<float>(layout);
}

/// One block, one box: W[r, c] = A[row_0 + r, col_0 + c], and 0 where A has no such element.
__global__ void window_kernel(const __grid_constant__ TensorMap map, int row_0, int col_0, Matrix<float> W) {
  alignas(128) __shared__ float sBox[kBoxRows][kBoxCols];
  __shared__ Mbarrier full;
  // The boxes lie row by row over W. This one begins at (row, col) of W, so at (row_0 + row, col_0 + col) of A.
  const int tiles_n = static_cast<int>(ceil_div<int64_t>(W.cols, kBoxCols));
  const int row = static_cast<int>(blockIdx.x) / tiles_n * kBoxRows, col = static_cast<int>(blockIdx.x) % tiles_n * kBoxCols;

  // >>> Your turn (2): make the barrier `full`, have one thread start the copy of one box, and let all threads wait for it.
  // <<<

  for (int i = static_cast<int>(threadIdx.x); i < kBoxRows * kBoxCols; i += kThreads) {
    const int r = i / kBoxCols, c = i % kBoxCols;
    if (row + r < W.rows && col + c < W.cols) *W.at(row + r, col + c) = sBox[r][c];
  }
}

/// W is what one sees of A through a window that begins at (row, col), which may lie outside of A. `col` is a multiple of 4.
void window(Matrix<const float> A, int row, int col, Matrix<float> W) {
  const int64_t boxes = ceil_div<int64_t>(W.rows, kBoxRows) * ceil_div<int64_t>(W.cols, kBoxCols);
  device::launch(window_kernel, gemm::grid_size(boxes), kThreads, 0, map_of(A), row, col, W);
}

}  // namespace exercise

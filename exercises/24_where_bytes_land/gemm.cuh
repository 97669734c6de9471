/// @file
/// Exercise 24: where the bytes of a box land. A swizzled panel, read element by element.
#pragma once

#include "common/device/bulk_copy.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Mbarrier, device::Swizzle, device::TensorMap, gemm::ceil_div, gemm::Matrix;

constexpr int kRows = 64;      ///< of a panel
constexpr int kThreads = 128;  ///< of a block

/// Where a byte of a panel lies, counted from the panel's first one.
/// @param byte of the row  @param width bytes of a row, 128, 64 or 32: as wide as the swizzle
__host__ __device__ int place_of(int row, int byte, int width) {
  // >>> Your turn (1): pieces of 16 bytes have changed places within their row.
  return row * width + byte;
  // <<<
}

/// One block, one panel of A, of kRows rows and `width` bytes: T is A's transpose.
__global__ void transpose_kernel(const __grid_constant__ TensorMap map, int width, Matrix<uint16_t> T) {
  alignas(1024) __shared__ unsigned char sPanel[kRows * 128];  // the pattern repeats every 1024 bytes at most
  __shared__ Mbarrier full;
  const int cols = width / static_cast<int>(sizeof(uint16_t));
  const int tiles_n = static_cast<int>(ceil_div<int64_t>(T.rows, cols));
  const int row_0 = static_cast<int>(blockIdx.x) / tiles_n * kRows, col_0 = static_cast<int>(blockIdx.x) % tiles_n * cols;  // of A
  if (threadIdx.x == 0) {
    device::mbarrier_init(&full, 1);
    device::fence_mbarrier_init();
    device::mbarrier_arrive_expect_tx(&full, kRows * width);
    device::cp_async_bulk_tensor_2d(sPanel, &map, col_0, row_0, &full);
  }
  __syncthreads();
  device::mbarrier_wait_parity(&full, 0);

  // The lanes of a warp have 32 rows of one column of A, for these are neighbours in a row of T.
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int i = warp; i < 2 * cols; i += kThreads / 32) {
    const int row = i % 2 * 32 + lane, col = i / 2;
    if (row_0 + row >= T.cols || col_0 + col >= T.rows) continue;
    // >>> Your turn (2): store element (row, col) of the panel.
    // <<<
  }
}

/// T = A's transpose, by panels that are swizzled `width` bytes wide. Rows of A begin at multiples of 16 bytes.
void transpose(Matrix<const uint16_t> A, Matrix<uint16_t> T, int width) {
  const int cols = width / static_cast<int>(sizeof(uint16_t));
  const TensorMap map = device::make_tensor_map<uint16_t>({.data = A.data,
                                                           .rows = static_cast<std::uint64_t>(A.rows),
                                                           .columns = static_cast<std::uint64_t>(A.cols),
                                                           .row_stride = static_cast<std::uint64_t>(A.row_stride),
                                                           .box_rows = kRows,
                                                           .box_columns = static_cast<unsigned>(cols),
                                                           .swizzle = static_cast<Swizzle>(width)});
  const int64_t panels = ceil_div<int64_t>(A.rows, kRows) * ceil_div<int64_t>(A.cols, cols);
  device::launch(transpose_kernel, gemm::grid_size(panels), kThreads, 0, map, width, T);
}

}  // namespace exercise

/// @file
/// Places of chunks in shared memory. Explained by lesson 03, steps/03_tensor_core/README.md; word for word as there.
#pragma once

#include "common/device/device.cuh"

namespace learnt {

/// Place of a chunk in a tile whose rows have kRow elements. Eight lanes of ldmatrix read the same chunk of eight rows: were these
/// below each other, all would want the same banks. XOR puts them into different ones, and no memory is lost.
template <int kRow>
__host__ __device__ constexpr int swizzled(int row, int chunk) {
  constexpr int kChunks = kRow / 8, kRowsPerLine = kChunks < 8 ? 8 / kChunks : 1;  // rows in the 128 bytes of all banks
  return row * kRow + (chunk ^ (row / kRowsPerLine % 8 & (kChunks - 1))) * 8;
}

}  // namespace learnt

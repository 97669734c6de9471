/// @file
/// The forms of ldmatrix and stmatrix by their numbers, for tests that try all of them.
#pragma once

#include "common/device/ptx.cuh"

namespace matrices {

template <int kCount, bool kTransposed>
__device__ __forceinline__ void load(uint32_t (&r)[kCount], const void* row) {
  if constexpr (kCount == 4 && kTransposed)
    device::ldmatrix_x4_trans(r, row);
  else if constexpr (kCount == 4)
    device::ldmatrix_x4(r, row);
  else if constexpr (kCount == 2 && kTransposed)
    device::ldmatrix_x2_trans(r, row);
  else if constexpr (kCount == 2)
    device::ldmatrix_x2(r, row);
  else if constexpr (kTransposed)
    device::ldmatrix_x1_trans(r, row);
  else
    device::ldmatrix_x1(r, row);
}

template <int kCount, bool kTransposed>
__device__ __forceinline__ void store(void* row, const uint32_t (&r)[kCount]) {
  if constexpr (kCount == 4 && kTransposed)
    device::stmatrix_x4_trans(row, r);
  else if constexpr (kCount == 4)
    device::stmatrix_x4(row, r);
  else if constexpr (kCount == 2 && kTransposed)
    device::stmatrix_x2_trans(row, r);
  else if constexpr (kCount == 2)
    device::stmatrix_x2(row, r);
  else if constexpr (kTransposed)
    device::stmatrix_x1_trans(row, r);
  else
    device::stmatrix_x1(row, r);
}

}  // namespace matrices

/// @file
/// A box of an operand, whichever way it lies in memory: its coordinates are those of its first row or column, and of its first k.
#pragma once

#include "common/device/bulk_copy.cuh"
#include "common/device/tensor_operand.h"

namespace device {

/// Has L2 fetch the box: cp_async_bulk_prefetch_tensor_2d().
template <Contiguous contiguous>
__device__ __forceinline__ void prefetch_box(const TensorMap* map, int mn, int k) {
  if constexpr (contiguous == Contiguous::kK)
    cp_async_bulk_prefetch_tensor_2d(map, k, mn);
  else
    cp_async_bulk_prefetch_tensor_2d(map, mn, k);
}
/// Starts copying the box, which nobody reads again: cp_async_bulk_tensor_2d_evict_first().
template <Contiguous contiguous>
__device__ __forceinline__ void copy_box_once(void* shared, const TensorMap* map, int mn, int k, Mbarrier* barrier) {
  if constexpr (contiguous == Contiguous::kK)
    cp_async_bulk_tensor_2d_evict_first(shared, map, k, mn, barrier);
  else
    cp_async_bulk_tensor_2d_evict_first(shared, map, mn, k, barrier);
}

}  // namespace device

/// @file
/// From a warpgroup's sums to C by the copy engine. Explained by lesson 12, steps/12_persistent/README.md; word for word as there.
#pragma once

#include "common/device/element.cuh"
#include "common/device/learnt/swizzle.cuh"
#include "common/device/learnt/wgmma_slice.cuh"

namespace learnt {

template <class Out>
constexpr int kStoreCols = 128 / int{sizeof(Out)};  ///< columns of a panel of C, which has 64 rows of 128 bytes

/// Stores a warpgroup's 64 rows of C from (row, col) on. Two panels in turn: the engine reads one while threads fill the other.
template <int kCols, class Out>
__device__ __forceinline__ void store_panels(const float (&d)[kCols / 2], char* sC, const TensorMap* map_c, int row, int col) {
  const int lane = threadIdx.x % 32, first_row = threadIdx.x % kWarpgroup / 32 * 16 + lane / 4,
            barrier = 1 + threadIdx.x / kWarpgroup;
#pragma unroll
  for (int panel = 0; panel < kCols / kStoreCols<Out>; ++panel) {
    char* const s = sC + panel % 2 * kPanel * 128;
    if (threadIdx.x % kWarpgroup == 0 && panel == 0) device::cp_async_bulk_wait_group_read<0>();  // the tile before may end in it
    if (threadIdx.x % kWarpgroup == 0 && panel > 0) device::cp_async_bulk_wait_group_read<1>();
    device::barrier_sync(barrier, kWarpgroup);  // the engine has read what was in this panel before
#pragma unroll
    for (int pair = 0; pair < kStoreCols<Out> / 4; ++pair) {  // neighbours in a row, then those 8 rows below
      const int r = first_row + 8 * (pair % 2), byte = (8 * (pair / 2) + lane % 4 * 2) * int{sizeof(Out)};
      const float* const sums = d + panel * kStoreCols<Out> / 2 + 2 * pair;
      *reinterpret_cast<device::Pair<Out>*>(s + 2 * swizzled<kPanel>(r, byte / 16) + byte % 16) = {
          device::from_float<Out>(sums[0]), device::from_float<Out>(sums[1])};
    }
    device::fence_proxy_async();                // the engine sees what this thread has written,
    device::barrier_sync(barrier, kWarpgroup);  // and all have written
    if (threadIdx.x % kWarpgroup == 0) {
      device::cp_async_bulk_tensor_2d_store(map_c, col + panel * kStoreCols<Out>, row, s);
      device::cp_async_bulk_commit_group();
    }
  }
}

}  // namespace learnt

/// @file
/// From a warpgroup's sums to C by the copy engine. Explained by lesson 12, steps/12_persistent/README.md; word for word as there.
#pragma once

#include "common/device/element.cuh"
#include "common/device/learnt/swizzle.cuh"
#include "common/device/learnt/wgmma_slice.cuh"

namespace learnt {

/// Stores a warpgroup's 64 rows of C from (row, col) on. Two panels in turn: the engine reads one while threads fill the other.
template <int kCols, class Out>
__device__ __forceinline__ void store_panels(const float (&d)[kCols / 2], char* sC, const TensorMap* map_c, int row, int col) {
  constexpr int kPanelCols = device::store_cols<kCols, Out>();
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, barrier = 1 + threadIdx.x / kWarpgroup;
#pragma unroll
  for (int c = 0; c < kCols; c += kPanelCols) {
    char* const s = sC + c / kPanelCols % 2 * kPanel * 128;
    if (warp == 0 && device::elect_sync()) {  // always the same lane, for the engine's groups are its own
      if (c == 0) {
        device::cp_async_bulk_wait_group_read<0>();  // all panels of the tile before
      } else {
        device::cp_async_bulk_wait_group_read<1>();  // all but the last one
      }
    }
    device::barrier_sync(barrier, kWarpgroup);  // the engine has read what was in this panel before
#pragma unroll
    for (int pair = 0; pair < kPanelCols / 4; ++pair) {  // neighbours in a row, then those 8 rows below
      const int r = warp * 16 + lane / 4 + 8 * (pair % 2), byte = (8 * (pair / 2) + lane % 4 * 2) * int{sizeof(Out)};
      *reinterpret_cast<device::Pair<Out>*>(s + 2 * swizzled<kPanel>(r, byte / 16) + byte % 16) = {
          device::from_float<Out>(d[c / 2 + 2 * pair]), device::from_float<Out>(d[c / 2 + 2 * pair + 1])};
    }
    device::fence_proxy_async();                // the engine sees what this thread has written,
    device::barrier_sync(barrier, kWarpgroup);  // and all have written
    if (warp == 0 && device::elect_sync()) {
      device::cp_async_bulk_tensor_2d_store(map_c, col + c, row, s);
      device::cp_async_bulk_commit_group();
    }
  }
}

}  // namespace learnt

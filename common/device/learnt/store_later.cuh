/// @file
/// One panel of a tile that waits in registers. Explained by lesson 17, steps/17_store_later/README.md; word for word as there.
#pragma once

#include "common/device/learnt/store_panels.cuh"

namespace learnt {

/// Stores panel number `panel` of a warpgroup's 64 rows of C from (row, col) on, of sums that are packed: store_panels() in parts.
template <int kCols, class Out>
__device__ __forceinline__ void store_panel(int panel, const uint32_t (&packed)[kCols / 4], char* s, const TensorMap* map_c,
                                            int row, int col) {
  constexpr int kPanelCols = device::store_cols<kCols, Out>();
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, barrier = 1 + threadIdx.x / kWarpgroup;
  if (warp == 0 && device::elect_sync()) device::cp_async_bulk_wait_group_read<1>();  // all panels but the last one
  device::barrier_sync(barrier, kWarpgroup);  // the engine has read what was in this panel before
#pragma unroll
  for (int pair = 0; pair < kPanelCols / 4; ++pair) {  // neighbours in a row, then those 8 rows below
    const int r = warp * 16 + lane / 4 + 8 * (pair % 2), byte = (8 * (pair / 2) + lane % 4 * 2) * int{sizeof(Out)};
    *reinterpret_cast<uint32_t*>(s + 2 * swizzled<kPanel>(r, byte / 16) + byte % 16) = packed[panel * kPanelCols / 4 + pair];
  }
  device::fence_proxy_async();                // the engine sees what this thread has written,
  device::barrier_sync(barrier, kWarpgroup);  // and all have written
  if (warp == 0 && device::elect_sync()) {
    device::cp_async_bulk_tensor_2d_store(map_c, col + panel * kPanelCols, row, s);
    device::cp_async_bulk_commit_group();
  }
}

}  // namespace learnt

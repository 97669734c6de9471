/// @file
/// Fragments from shared memory. Explained by lesson 03, steps/03_tensor_core/README.md; word for word as there.
#pragma once

#include "common/device/learnt/swizzle.cuh"
#include "common/device/tile_source.cuh"

namespace learnt {

using device::kFragment;

/// A lane's places for ldmatrix in the tiles of an operand: kCount fragments, from row `warp_mn` of A or column `warp_mn` of B on.
template <class Layout, int kCount, class In>
struct FragmentLoad {
  static constexpr int kRow = Layout::kRow, kOffsets = Layout::kAlongMN ? kCount : Layout::kBlockK / kFragment;
  __device__ __forceinline__ explicit FragmentLoad(int warp_mn) {  ///< the same for all tiles
    // Four matrices of 8 x 8, in the order in which mma.sync wants them: A's go down m first, B's along k.
    const int lane = threadIdx.x % 32, low = lane / 8 % 2, high = lane / 16;
    const int mn = warp_mn + 8 * (Layout::kIsA ? low : high) + (Layout::kAlongMN ? 0 : lane % 8);
    const int k = 8 * (Layout::kIsA ? high : low) + (Layout::kAlongMN ? lane % 8 : 0);
#pragma unroll
    for (int i = 0; i < kOffsets; ++i) {
      offset[i] = Layout::kAlongMN ? swizzled<kRow>(k, (mn + i * kFragment) / 8) : swizzled<kRow>(mn, (k + i * kFragment) / 8);
    }
  }
  /// Loads the fragments of one slice, kFragment of k, of tile s.
  __device__ __forceinline__ void load(uint32_t (&r)[kCount][4], const In* s, int slice) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if constexpr (Layout::kAlongMN) {
        device::ldmatrix_x4_trans(r[i], s + offset[i] + slice * kFragment * kRow);
      } else {
        device::ldmatrix_x4(r[i], s + offset[slice] + i * kFragment * kRow);
      }
    }
  }
  int offset[kOffsets];  // computed once, because the instruction's address cannot hold an XOR
};

}  // namespace learnt

/// @file
/// What one wgmma reads of a tile in shared memory. Explained by lesson 10, steps/10_wgmma/README.md; word for word as there.
#pragma once

#include "common/device/learnt/panels.cuh"
#include "common/device/wgmma.cuh"

namespace learnt {

constexpr int kWarpgroup = 128;  ///< threads
constexpr int kWgmmaK = 16;      ///< of k in one instruction

/// The descriptor of a slice, kWgmmaK of k, of the panels that begin at `s`.
template <Contiguous contiguous, class In>
__device__ __forceinline__ uint64_t slice_descriptor(const In* s, int slice) {
  constexpr int kPattern = 8 * 128;  // bytes: 8 rows, as wide as the swizzle
  constexpr int kSliceElements = contiguous == Contiguous::kK ? kWgmmaK : kWgmmaK * kPanel;
  return device::wgmma_descriptor(s + slice * kSliceElements, device::Swizzle::k128, kPanel * kPanel * sizeof(In), kPattern);
}

}  // namespace learnt

/// @file
/// Registers of specialised warpgroups. Explained by lesson 11, steps/11_warp_specialized/README.md; word for word as there.
#pragma once

#include <algorithm>

#include "common/device/learnt/wgmma_slice.cuh"

namespace learnt {

/// Registers of a thread. At the launch all have as many; then setmaxnreg moves them, by multiples of 8.
/// @param multiplying warpgroups; one more copies
template <int multiplying>
struct Registers {
  static constexpr int kThreads = (multiplying + 1) * kWarpgroup;
  static constexpr int kAtLaunch = 65536 / kThreads / 8 * 8;
  static constexpr int kToCopy = 40;
  static constexpr int kToMultiply = std::min(256, (kAtLaunch * (multiplying + 1) - kToCopy) / multiplying / 8 * 8);
};

}  // namespace learnt

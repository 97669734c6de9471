/// @file
/// Tiles of warpgroups that share one or take turns. Explained by lesson 13, steps/13_ping_pong/README.md; word for word as there.
#pragma once

#include "common/device/learnt/registers.cuh"

namespace learnt {

/// Whether the warpgroups that multiply share a tile, or each has its own and multiplies while the other one stores.
enum class Schedule { kCooperative, kPingPong };

/// What a block and a warpgroup compute of C, and what follows from it.
template <int block_m, int block_n, int num_stages, int group_m, Schedule schedule>
struct Tile {
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = kPanel;  // the block's tile of C, and its steps along k
  static constexpr int kNumStages = num_stages;                                 // tiles of A and B in shared memory
  static constexpr int kGroupM = group_m;                                       // rows of tiles that blocks cross together
  static constexpr bool kPingPong = schedule == Schedule::kPingPong;
  static constexpr int kTilesAtATime = kPingPong ? 2 : 1;
  static constexpr int kMultiplying = kTilesAtATime * kBlockM / kPanel;  // warpgroups; each multiplies one panel of A
  static constexpr int kThreads = Registers<kMultiplying>::kThreads;     // the last warpgroup copies
  static constexpr int kLastN = (kBlockN - 1) % kPanel + 1;              // columns of B's last panel
  static constexpr int kStageElements = (kBlockM + kBlockN - kLastN + kPanel) * kBlockK;  // a tile of A, then of B, in whole panels
  static constexpr int kCopiedBytes = (kBlockM + kBlockN) * kBlockK * 2;                  // into a stage
  static constexpr int kStoreBytes = 2 * kPanel * 128;  // two panels of C for each warpgroup that multiplies
  static constexpr auto kSharedBytes =
      device::ring(kNumStages, 2 * kBlockM * kBlockK, 2 * (kBlockN - kLastN + kPanel) * kBlockK, kPanel * 128)
          .each("warpgroup", kMultiplying, {"tile of C for storing", kStoreBytes, kPanel * 128})
          .barriers(kNumStages);
  static_assert(kSharedBytes <= 227 * 1024, "no GPU has more shared memory for a block");
  static_assert(kNumStages > 1 && kBlockN <= 256 && kBlockN % 8 == 0, "stages to fill and to multiply; wgmma's columns");
  static_assert(!kPingPong || kBlockM == kPanel, "two warpgroups take turns");
};

}  // namespace learnt

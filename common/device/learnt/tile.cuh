/// @file
/// A block's tile, and what follows from it.
///
/// Explained by lesson 06, steps/06_autotune/README.md; word for word as there.
#pragma once

#include "common/device/store_fragments.cuh"

namespace learnt {

using device::kFragment;

/// What a block and a warp compute of C, and what follows from it.
template <int block_m, int block_n, int block_k, int warp_m, int warp_n, int num_stages, int group_m, bool every_layout>
struct Tile {
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = block_k;  // the block's tile of C, and its steps along k
  static constexpr int kWarpM = warp_m, kWarpN = warp_n;                         // a warp's part of it
  static constexpr int kNumStages = num_stages;                                  // tiles of A and B in shared memory
  static constexpr int kGroupM = group_m;                                        // rows of tiles that blocks cross together
  // Else A and B as rows alone; EveryLayoutTile does the rest. Threads share columns of A if those are 2^i chunks.
  static constexpr bool kEveryLayout = every_layout && (kBlockM & (kBlockM - 1)) == 0;
  static constexpr int kWarpsM = kBlockM / kWarpM, kWarpsN = kBlockN / kWarpN;
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr int kBlocksPerSm = kThreads > 128 ? 1 : 256 / kThreads;  // as many as fit if each thread has 255 registers
  static constexpr int kStageElements = (kBlockM + kBlockN) * kBlockK;      // a tile of A, then one of B
  static constexpr auto kSharedBytes = device::ring(kNumStages, 2 * kBlockM * kBlockK, 2 * kBlockN * kBlockK);

  static_assert(kSharedBytes <= 227 * 1024, "no GPU has more shared memory for a block");
  static_assert(kThreads / 32 * device::kStoreFragmentsElements<kWarpN> * 4 <= kSharedBytes, "the epilogue uses the tiles' memory");
  static_assert(kWarpM % kFragment == 0 && kWarpN % kFragment == 0 && kBlockK % (2 * kFragment) == 0, "two sets of fragments");
  static_assert(kWarpsM * kWarpM == kBlockM && kWarpsN * kWarpN == kBlockN, "warps must tile the block");
};

}  // namespace learnt

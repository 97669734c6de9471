/// @file
/// Step 06: what a tile is, and the candidates.
#pragma once

#include "common/device/store_fragments.cuh"
#include "common/gemm/gemm.h"

namespace step_06_autotune {

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

/// What runs where a tile is not compiled for the operands' layout.
using EveryLayoutTile = Tile<128, 128, 64, 64, 64, 3, 8, true>;

/// Whether there is time to compile all candidates for all layouts.
#ifdef COURSE_EVERY_TILE
constexpr bool kEveryTile = true;
#else
constexpr bool kEveryTile = false;
#endif
/// A candidate for row-major A and B alone, unless all are compiled.
template <int block_m, int block_n, int block_k, int warp_m, int warp_n, int num_stages>
using RowTile = Tile<block_m, block_n, block_k, warp_m, warp_n, num_stages, 8, kEveryTile>;

// Large, middle and small, for every layout and type.
using Tiles = gemm::TypeList<EveryLayoutTile, Tile<128, 64, 64, 64, 32, 3, 8, true>, Tile<32, 64, 64, 16, 32, 6, 8, true>>;
using MoreTiles = gemm::TypeList<
    // As few loads for each product as registers allow.
    RowTile<256, 128, 64, 64, 64, 3>, RowTile<128, 256, 32, 64, 64, 4>,
    // Heights between those: where 128 rows leave most of the last wave of blocks empty, others may fill it.
    RowTile<224, 128, 64, 112, 32, 3>, RowTile<192, 128, 64, 48, 64, 3>, RowTile<160, 128, 64, 80, 32, 3>,
    RowTile<112, 128, 64, 112, 32, 3>, RowTile<96, 128, 64, 48, 64, 3>, RowTile<96, 128, 64, 48, 32, 4>,
    RowTile<96, 64, 64, 48, 32, 4>,
    // More warps, deeper rings or fewer barriers, for blocks that are alone on their SM.
    RowTile<128, 128, 64, 64, 32, 4>, RowTile<128, 64, 64, 64, 32, 4>, RowTile<128, 64, 128, 64, 32, 3>,
    RowTile<96, 64, 128, 48, 32, 4>, RowTile<64, 64, 64, 32, 32, 6>, RowTile<64, 64, 128, 32, 32, 4>,
#ifdef COURSE_EVERY_TILE  // what lessons for other GPUs publish
    RowTile<64, 256, 32, 32, 128, 4>, RowTile<128, 128, 32, 64, 64, 4>, RowTile<128, 64, 32, 64, 32, 4>,
    RowTile<64, 128, 32, 32, 64, 4>, RowTile<64, 64, 32, 32, 64, 5>, RowTile<32, 64, 32, 32, 32, 5>,
    RowTile<128, 256, 32, 64, 64, 3>, RowTile<256, 128, 32, 64, 64, 3>, RowTile<256, 64, 32, 64, 64, 4>,
    RowTile<128, 32, 32, 32, 32, 4>, RowTile<64, 32, 32, 32, 32, 5>,
#endif
    // For problems that have too few of those to fill a GPU.
    RowTile<64, 32, 128, 32, 16, 4>, RowTile<32, 64, 128, 16, 32, 4>, RowTile<32, 64, 256, 16, 32, 4>,
    RowTile<32, 32, 64, 16, 16, 6>, RowTile<32, 32, 128, 16, 16, 4>, RowTile<16, 32, 256, 16, 16, 4>>;

}  // namespace step_06_autotune

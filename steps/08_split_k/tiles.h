/// @file
/// Step 08: its tiles. They are as 06's, and say how many blocks share one.
#pragma once

#include "common/device/learnt/tile.cuh"
#include "common/gemm/gemm.h"

namespace step_08_split_k {

/// With more blocks than GPUs hold at the same time, nobody needs to share.
constexpr int64_t kMostBlocks = 1024;

/// What a block and a warp compute of C, what follows from it, and how many blocks share the k of a tile.
template <int block_m, int block_n, int block_k, int warp_m, int warp_n, int num_stages, bool every_layout, int split_k>
struct Tile : learnt::Tile<block_m, block_n, block_k, warp_m, warp_n, num_stages, 8, every_layout> {
  static constexpr int kSplitK = split_k;              // blocks that share a tile
  static constexpr int kLead = 2;                      // tiles along k that the last of them has more than the others
  static constexpr int kSums = block_m * block_n / 4;  // float4 that each of them leaves for the last

  /// How much of k each block of a tile has but the last, which has the rest. 0: too little to share, or nobody who needs it.
  static constexpr int64_t share_k(int64_t tiles_c, int64_t k) {
    const int64_t tiles_k = (gemm::ceil_div<int64_t>(k, block_k) - kLead) / kSplitK;
    return kSplitK > 1 && tiles_k >= kLead && tiles_c * kSplitK <= kMostBlocks ? tiles_k * block_k : 0;
  }

  static_assert(num_stages > 1, "one stage is multiplied while others are filled");
  static_assert((kSplitK - 1) * warp_m * warp_n / 128 <= 16, "a thread has all that was left for it in registers");
};

/// What runs where a tile is not compiled for the operands' layout.
using EveryLayoutTile = Tile<64, 64, 64, 32, 32, 6, true, 2>;

/// Whether there is time to compile all candidates for all layouts.
#ifdef COURSE_EVERY_TILE
constexpr bool kEveryTile = true;
#else
constexpr bool kEveryTile = false;
#endif
/// A candidate for row-major A and B alone, unless all are compiled.
template <int block_m, int block_n, int block_k, int warp_m, int warp_n, int num_stages, int split_k>
using RowTile = Tile<block_m, block_n, block_k, warp_m, warp_n, num_stages, kEveryTile, split_k>;

using Tiles = gemm::TypeList<EveryLayoutTile>;
using MoreTiles = gemm::TypeList<
    // Up to 16 rows. With thousands of columns there are enough tiles: nobody shares, or two.
    RowTile<16, 32, 128, 16, 16, 8, 1>, RowTile<16, 64, 64, 16, 16, 6, 1>, RowTile<16, 64, 128, 16, 16, 5, 2>,
    RowTile<16, 128, 64, 16, 32, 6, 3>,
    // With fewer columns, four or eight.
    RowTile<16, 32, 128, 16, 16, 8, 4>, RowTile<16, 64, 64, 16, 16, 10, 4>, RowTile<16, 64, 64, 16, 16, 6, 8>,
    // More rows: larger tiles, of which there are fewer.
    RowTile<32, 64, 128, 16, 32, 4, 2>, RowTile<64, 64, 128, 32, 32, 4, 2>, RowTile<64, 64, 128, 32, 32, 6, 2>,
    RowTile<128, 64, 128, 64, 32, 4, 2>>;

}  // namespace step_08_split_k

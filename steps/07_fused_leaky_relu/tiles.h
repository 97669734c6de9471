/// @file
/// Step 07: its tiles, as lesson 06 explains them. The candidates are most of those that won somewhere there.
#pragma once

#include "common/device/learnt/tile.cuh"
#include "common/gemm/gemm.h"

namespace step_07_fused_leaky_relu {

using learnt::Tile;

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

using Tiles = gemm::TypeList<EveryLayoutTile>;
using MoreTiles =
    gemm::TypeList<RowTile<128, 256, 32, 64, 64, 4>, RowTile<224, 128, 64, 112, 32, 3>, RowTile<192, 128, 64, 48, 64, 3>,
                   RowTile<160, 128, 64, 80, 32, 3>, RowTile<112, 128, 64, 112, 32, 3>, RowTile<96, 128, 64, 48, 64, 3>,
                   RowTile<96, 128, 64, 48, 32, 4>, RowTile<96, 64, 128, 48, 32, 4>, RowTile<128, 128, 64, 64, 32, 4>,
                   RowTile<128, 64, 128, 64, 32, 3>, RowTile<64, 64, 128, 32, 32, 4>, RowTile<32, 64, 64, 16, 32, 6>,
                   RowTile<32, 64, 128, 16, 32, 4>, RowTile<32, 32, 128, 16, 16, 4>, RowTile<16, 32, 256, 16, 16, 4>>;

}  // namespace step_07_fused_leaky_relu

/// @file
/// The order of the blocks. Explained by lesson 05, steps/05_l2_swizzle/README.md; word for word as there.
#pragma once

#include <cstdint>

#include "common/gemm/divisor.h"

namespace learnt {

/// A tile of C.
struct TileIndex {
  int64_t m, n;  // in tiles
};
/// The order of the blocks: group by group of kGroupM rows of tiles, the last one of what is left, and down the columns of a group.
template <int kGroupM>
struct TileOrder {
  /// @param m, n tiles of C, from 1 on; together as many as a grid has blocks
  TileOrder(int64_t m, int64_t n) : tiles_m(static_cast<unsigned>(m)), tiles_n(n), last_group_m((m - 1) % kGroupM + 1) {}
  /// The tile that block number `block` computes.
  GEMM_HOST_DEVICE TileIndex tile_of_block(unsigned block) const {
    const unsigned row = tiles_n.divide(block), first_m = row - row % kGroupM, in_group = block - first_m * tiles_n.value();
    const bool is_last = first_m + kGroupM >= tiles_m;
    const unsigned group_m = is_last ? last_group_m.value() : kGroupM;
    const unsigned n = is_last ? last_group_m.divide(in_group) : in_group / kGroupM;
    return {first_m + in_group - n * group_m, n};
  }
  unsigned tiles_m;
  gemm::Divisor tiles_n, last_group_m;  // the rows of the last group
};

}  // namespace learnt

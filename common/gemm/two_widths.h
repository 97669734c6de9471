/// @file
/// C in tiles of two widths, so that blocks that stay have equal shares of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/gemm/matrix.h"

namespace gemm {

/// How C is cut: from the top, rows of tiles that are all wide. In each row of tiles below them, wide tiles, and behind those
/// narrow ones. Wide tiles are computed first. So block 0 has the most of both, and tiles / blocks rounded up is how many it has.
struct TwoWidths {
  std::int64_t wide_rows;          ///< rows of tiles that are all wide
  std::int64_t left, right;        ///< in each row of tiles below: wide ones, and narrow ones
  std::int64_t wide_tiles, tiles;  ///< of C; and with the narrow ones
};

/// The cut with which block 0 has the fewest wide tiles, and no tile more than if all were wide; of such cuts, the one with the
/// fewest columns in all.
/// @param tiles_m rows of tiles  @param cols columns of C  @param wide, narrow columns of a tile; narrow = 0: there are none
/// @param blocks those that stay, from 1 on
inline TwoWidths in_two_widths(std::int64_t tiles_m, std::int64_t cols, int wide, int narrow, std::int64_t blocks) {
  constexpr std::int64_t kMost = 64;  // wide tiles that a row has narrow ones for; a row of more tiles has little to gain
  const std::int64_t all = ceil_div<std::int64_t>(cols, wide), places = ceil_div(tiles_m * all, blocks) * blocks;
  const auto cut = [&](std::int64_t wide_rows, std::int64_t left, std::int64_t right) {
    const std::int64_t wide_tiles = wide_rows * all + (tiles_m - wide_rows) * left;
    return TwoWidths{wide_rows, left, right, wide_tiles, wide_tiles + (tiles_m - wide_rows) * right};
  };
  const auto cost = [&](const TwoWidths& x) {
    return std::pair(ceil_div(x.wide_tiles, blocks), x.wide_tiles * wide + (x.tiles - x.wide_tiles) * narrow);
  };
  TwoWidths best = cut(tiles_m, all, 0);
  if (narrow == 0) return best;
  for (std::int64_t left = std::max<std::int64_t>(0, all - kMost); left < all; ++left) {
    const std::int64_t right = ceil_div(cols - left * wide, std::int64_t{narrow}), more = left + right - all;
    const std::int64_t too_many = std::max<std::int64_t>(0, tiles_m * (left + right) - places);  // if all rows had narrow ones
    const std::int64_t wide_rows = too_many > 0 ? ceil_div(too_many, more) : 0;
    if (const TwoWidths found = cut(wide_rows, left, right); wide_rows < tiles_m && cost(found) < cost(best)) best = found;
  }
  return best;
}

}  // namespace gemm

/// @file
/// Step 19's parts of C: rows of tiles that are all wide; and of those below, the wide tiles and the narrow ones.
#pragma once

#include "common/device/learnt/tile_order.cuh"
#include "common/gemm/two_widths.h"

namespace step_19_two_widths {

/// The element of C where a tile begins.
struct Corner {
  int row, col;
};

/// A rectangle of C, in tiles of one width.
template <int kGroupM>
struct Part {
  /// An empty part is asked for no tile, but an order has one at least.
  Part(std::int64_t first, std::int64_t row, std::int64_t col, std::int64_t tiles_m, std::int64_t tiles_n)
      : first(gemm::grid_size(first)),
        row(static_cast<int>(row)),
        col(static_cast<int>(col)),
        order(std::max<std::int64_t>(tiles_m, 1), std::max<std::int64_t>(tiles_n, 1)) {}

  unsigned first;                    ///< the number of its first tile
  int row, col;                      ///< where it begins
  learnt::TileOrder<kGroupM> order;  ///< of its tiles
};

/// Tiles of Tile::kBlockM rows by their numbers: first the wide ones, of Tile::kBlockN columns, then the narrow ones, of kNarrowN.
template <class Tile>
class Parts {
 public:
  /// @param rows, cols of C  @param multiprocessors how many blocks there are at most
  Parts(std::int64_t rows, std::int64_t cols, unsigned multiprocessors)
      : Parts(gemm::ceil_div<std::int64_t>(rows, Tile::kBlockM), gemm::ceil_div<std::int64_t>(cols, Tile::kBlockN),
              gemm::in_two_widths(gemm::ceil_div<std::int64_t>(rows, Tile::kBlockM), cols, Tile::kBlockN, Tile::kNarrowN,
                                  multiprocessors)) {}

  /// How many tiles are wide; those have the first numbers.
  GEMM_HOST_DEVICE unsigned wide_tiles() const { return right_.first; }
  /// How many there are.
  GEMM_HOST_DEVICE unsigned tiles() const { return tiles_; }

  /// Where tile number `t` begins.
  GEMM_HOST_DEVICE Corner corner_of(unsigned t) const {
    const Part<Tile::kGroupM>& part = t < left_.first ? top_ : t < right_.first ? left_ : right_;
    const learnt::TileIndex tile = part.order.tile_of_block(t - part.first);
    const int cols = t < right_.first ? Tile::kBlockN : Tile::kNarrowN;
    return {part.row + static_cast<int>(tile.m) * Tile::kBlockM, part.col + static_cast<int>(tile.n) * cols};
  }

 private:
  Parts(std::int64_t tiles_m, std::int64_t tiles_n, const gemm::TwoWidths& cut)
      : top_(0, 0, 0, cut.wide_rows, tiles_n),
        left_(cut.wide_rows * tiles_n, cut.wide_rows * Tile::kBlockM, 0, tiles_m - cut.wide_rows, cut.left),
        right_(cut.wide_tiles, cut.wide_rows * Tile::kBlockM, cut.left * Tile::kBlockN, tiles_m - cut.wide_rows, cut.right),
        tiles_(gemm::grid_size(cut.tiles)) {}

  Part<Tile::kGroupM> top_, left_, right_;
  unsigned tiles_;
};

}  // namespace step_19_two_widths

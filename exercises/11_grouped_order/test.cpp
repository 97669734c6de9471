#include <algorithm>
#include <array>
#include <iomanip>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/exercise/coach.h"
#include "common/exercise/posed.h"
#include "common/exercise/witness.h"

namespace exercise {

struct TileIndex {
  int64_t m;
  int64_t n;
};
TileIndex tile_of_block(int64_t block, int64_t tiles_m, int64_t tiles_n, int64_t group_m);
void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C);

namespace {

const Asked tile_of_block(exercise::tile_of_block);

struct Grid {
  int64_t m, n, group_m;  // tiles, tiles, rows of a group

  int64_t blocks() const { return m * n; }
  TileIndex tile(int64_t block) const { return tile_of_block(block, m, n, group_m); }
  bool has(const TileIndex& t) const { return t.m >= 0 && t.m < m && t.n >= 0 && t.n < n; }
  std::string words() const {
    return std::to_string(m) + " x " + std::to_string(n) + " tiles in groups of " + std::to_string(group_m);
  }
  // The number of the block that computes each tile, as a table.
  std::string table() const {
    std::ostringstream text;
    text << "\n\nYour order; a point is a tile that no block computes:\n";
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t col = 0; col < n; ++col) {
        int64_t block = 0;
        while (block < blocks() && (tile(block).m != row || tile(block).n != col)) ++block;
        text << std::setw(4) << (block < blocks() ? std::to_string(block) : ".");
      }
      if (row + 1 < m) text << "\n";
    }
    return text.str();
  }
};

std::string words(const TileIndex& t) { return "(" + std::to_string(t.m) + ", " + std::to_string(t.n) + ")"; }

// Every tile has one block.
void require_once(const Coach& coach, const Grid& grid) {
  std::set<std::pair<int64_t, int64_t>> seen;
  for (int64_t block = 0; block < grid.blocks(); ++block) {
    const TileIndex tile = grid.tile(block);
    const bool exists = grid.has(tile);
    if (exists && seen.emplace(tile.m, tile.n).second) continue;
    const int64_t last = grid.m % grid.group_m;
    const std::string which = grid.words() + ": block " + std::to_string(block) + " gets tile " + words(tile);
    const std::string ragged = last ? " Rows in the last group: " + std::to_string(last) + "." : "";
    coach.require(false, which + (exists ? ", as a block before it did." : ", which does not exist.") + ragged + grid.table());
  }
}

// The first blocks need few rows of A's tiles and few columns of B's.
void require_shared(const Coach& coach, const Grid& grid, int64_t blocks, size_t enough) {
  std::set<int64_t> rows, cols;
  for (int64_t block = 0; block < blocks; ++block) rows.insert(grid.tile(block).m), cols.insert(grid.tile(block).n);
  const size_t are = rows.size() + cols.size();
  const auto loads = [&](size_t panels) { return std::to_string(panels * static_cast<size_t>(grid.n)); };
  if (are > enough)
    coach.require(false, grid.words() + ": the first " + std::to_string(blocks) + " blocks need, of A's rows of tiles, " +
                             std::to_string(rows.size()) + ", and of B's columns of tiles " + std::to_string(cols.size()) +
                             ".\nWith " + std::to_string(grid.n) + " tiles along k these are " + loads(are) + " tiles to load. " +
                             loads(enough) + " are enough: which shape should these blocks have?" + grid.table());
}

// Group by group, and in each column by column. Up or down in a column is the same for what is shared.
void require_groups(const Coach& coach, const Grid& grid, int64_t block) {
  const TileIndex tile = grid.tile(block);
  const int64_t group = block / (grid.group_m * grid.n), first = group * grid.group_m;
  const int64_t rows = std::min(grid.group_m, grid.m - first), col = (block - first * grid.n) / rows;
  if (tile.m >= first && tile.m < first + rows && tile.n == col) return;
  const std::string which = grid.words() + ": block " + std::to_string(block) + " gets tile " + words(tile);
  const std::string table = grid.blocks() < 100 ? grid.table() : "";  // is long work
  if (tile.m < first || tile.m >= first + rows)
    coach.require(false, which + ", but it belongs to group " + std::to_string(group) + ", rows " + std::to_string(first) + " to " +
                             std::to_string(first + rows - 1) + "." + table);
  if (tile.n != col)
    coach.require(false, which + ", but it belongs to column " + std::to_string(col) +
                             ": the group's blocks complete a column before they begin the next one." + table);
}

// The kernel's blocks compute the tiles that tile_of_block() says, in groups of two rows at least. A tile is a square of 8, 16 or
// 32, as the number of blocks says.
void require_used([[maybe_unused]] const Coach& coach) {
#ifdef COURSE_ON_INTERPRETER
  constexpr int64_t kRows = 208, kCols = 80;
  std::map<int64_t, std::set<std::pair<int64_t, int64_t>>> tiles;  // of each block, in squares of 8
  coach.run("208 x 80 elements of C, k is 1", [&] {
    const std::unique_ptr<Posed> problem = posed(Case{kRows, kCols, 1}, harness::DType::kF32, harness::DType::kF32);
    const Operands o = problem->operands();
    const auto stored = asked([&] {
      std::set<std::array<int64_t, 3>> found;  // a block and its tile
      interpreter::options().on_store = [&, first = o.C<float>().data](uint64_t block, const void* element) {
        const int64_t at = static_cast<const float*>(element) - first;
        if (at >= 0 && at < kRows * kCols) found.insert({static_cast<int64_t>(block), at / kCols / 8, at % kCols / 8});
      };
      gemm(o.A<float>(), o.B<float>(), o.C<float>());
      interpreter::options().on_store = {};
      return std::vector(found.begin(), found.end());
    });
    tiles.clear();
    for (const auto& [block, m, n] : stored) tiles[block].insert({m, n});
  });
  const auto along = [](int64_t length, int64_t tile) { return (length + tile - 1) / tile; };
  int64_t tile = 16;
  for (const int64_t other : {8, 32})
    if (static_cast<int64_t>(tiles.size()) == along(kRows, other) * along(kCols, other)) tile = other;
  const Grid grid = {along(kRows, tile), along(kCols, tile), 1};
  const std::string of = std::to_string(grid.m) + " x " + std::to_string(grid.n) + " tiles of " + std::to_string(tile) + " x " +
                         std::to_string(tile) + " elements";
  coach.require(static_cast<int64_t>(tiles.size()) == grid.blocks(),
                "tile_of_block() is right, but " + std::to_string(tiles.size()) + " of the kernel's blocks store to C. For " + of +
                    " these are " + std::to_string(grid.blocks()) + ": each tile has one block.");
  int64_t agree = 0, group_m = 0;
  for (int64_t group = grid.m; group >= 1 && agree < grid.blocks(); --group) {  // a group higher than C is as high as C
    int64_t count = 0;
    for (int64_t block = 0; block < grid.blocks(); ++block) {
      const TileIndex t = tile_of_block(block, grid.m, grid.n, group);
      std::set<std::pair<int64_t, int64_t>> squares;
      for (int64_t m = t.m * tile / 8; m < std::min((t.m + 1) * tile, kRows) / 8; ++m)
        for (int64_t n = t.n * tile / 8; n < std::min((t.n + 1) * tile, kCols) / 8; ++n) squares.insert({m, n});
      count += tiles[block] == squares;
    }
    if (count > agree) agree = count, group_m = group;
  }
  coach.require(agree < grid.blocks() || group_m > 1,
                "tile_of_block() is right, but the kernel's blocks do not go by it in groups of two rows or more. They go row by "
                "row, as in\ngroups of one row: does the kernel call it, and is kGroupM two or more?");
  coach.require(agree == grid.blocks(), "tile_of_block() is right, but the kernel's " + std::to_string(grid.blocks()) +
                                            " blocks do not go by it: of " + of + ", at most " + std::to_string(agree) +
                                            " have the block that it says, for any groups" +
                                            (agree ? " (here of " + std::to_string(group_m) + " rows)" : std::string()) +
                                            ".\nDoes the kernel call it, with the tiles along m, those along n and kGroupM?");
#endif
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/05_l2_swizzle/README.md, \"Walk\"");
  coach.multiply<float, float>({96, 80, 16}, gemm);  // two whole groups
  coach.run("the order of the blocks, on the host", [&] {
    require_once(coach, {5, 7, 2});  // as in the README
    for (int64_t m = 1; m <= 9; ++m)
      for (int64_t n = 1; n <= 7; ++n)
        for (int64_t group_m = 1; group_m <= 5; ++group_m) require_once(coach, {m, n, group_m});
    require_shared(coach, {9, 9, 3}, 9, 6);
    require_shared(coach, {9, 9, 4}, 16, 8);
    require_shared(coach, {8, 7, 6}, 36, 12);
    for (int64_t m = 1; m <= 9; ++m)
      for (int64_t n = 1; n <= 7; ++n)
        for (int64_t group_m = 1; group_m <= 5; ++group_m)
          for (int64_t block = 0; block < m * n; ++block) require_groups(coach, {m, n, group_m}, block);
    for (const int64_t block : {int64_t{0}, int64_t{123'456'789}, int64_t{1'999'999'999}})
      require_groups(coach, {40'003, 50'000, 16}, block);
    for (const int64_t block : {int64_t{2'147'483'648}, int64_t{4'294'967'296}, int64_t{19'999'999'999}})
      require_groups(coach, {200'003, 100'000, 16}, block);
    require_once(coach, {5, 7, int64_t{1} << 31});  // one group, and a product of its rows that no int can hold
    require_once(coach, {5, 7, int64_t{1} << 40});
  });

  for (const Case& c : {Case{144, 144, 9}, Case{128, 48, 8}, Case{37, 101, 23}, Case{1, 70, 150}, Case{70, 1, 9}})
    coach.multiply<float, float>(c, gemm);
  coach.multiply<float, float>({.m = 65, .n = 33, .k = 17, .padding = 3}, gemm);

  for (const Case& c : coach.drawn({})) coach.multiply<float, float>(c, gemm);
  coach.multiply_far_rows<float, float>(Case{3, 3, 3}, gemm);
  Draw& draw = coach.draw();
  for (int i = 0; i < 40; ++i) {
    const Grid grid = {draw.between(1, 60), draw.between(1, 60), draw.between(1, 20)};
    require_once(coach, grid);
    for (int64_t block = 0; block < grid.blocks(); ++block) require_groups(coach, grid, block);
  }
  for (int i = 0; i < 60; ++i) {  // what neither an int nor a double can count: rows, tiles of a row, of a group, of C
    const int64_t m = draw.between(1 << 20, int64_t{1} << (31 + i % 10)), n = draw.between(1 << 20, int64_t{1} << (30 - i % 10));
    const Grid grid = {m, n, m / draw.between(1, 100) + 1};  // a loop over groups ends soon
    const int64_t group = grid.group_m * n, first = draw.between(0, grid.blocks() / group) * group;
    for (const int64_t block : {first, first - 1, draw.between(1, grid.blocks() - 1), grid.blocks() - 1}) {
      if (block < 1 || block >= grid.blocks()) continue;
      require_groups(coach, grid, block);
      const TileIndex tile = grid.tile(block), before = grid.tile(block - 1);
      coach.require(tile.m != before.m || tile.n != before.n, grid.words() + ": blocks " + std::to_string(block - 1) + " and " +
                                                                  std::to_string(block) + " get the same tile, " + words(tile) +
                                                                  ".");
    }
  }
  require_used(coach);

  // The order of the blocks is tested one by one, so there is no choice left that a bar for the time could judge.
}

}  // namespace exercise

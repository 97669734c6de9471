/// @file
/// A step's `Tile`, seen from outside: its name, its numbers, and matrices for its launcher. For those who instantiate a step.
#pragma once

#include <string>
#include <type_traits>

#include "common/gemm/gemm.h"
#include "common/harness/program/step.h"

namespace harness {

/// The matrix that `m` is, once its type is known.
template <class T>
gemm::Matrix<T> typed(const AnyMatrix& m) {
  return {static_cast<T*>(m.data), m.rows, m.cols, m.row_stride, m.col_stride};
}

/// The matrix without its type, as launchers in a list take it.
template <class T>
AnyMatrix untyped(const gemm::Matrix<T>& m) {
  return {const_cast<std::remove_const_t<T>*>(m.data), m.rows, m.cols, m.row_stride, m.col_stride};
}

/// Its kName. Tiles that are not named are called by their numbers: s3 has three stages, g8 groups of eight.
template <class Tile>
std::string tile_name() {
  if constexpr (requires { Tile::kName; }) {
    return Tile::kName;
  } else {
    const auto product = [](auto... extents) { return ((std::to_string(extents) + "x") + ...); };
    const auto name = [&](auto... extents) { return product(extents...).substr(0, product(extents...).size() - 1); };
    std::string text = name(Tile::kBlockM, Tile::kBlockN, Tile::kBlockK);
    if constexpr (requires { Tile::kThreadM; }) text += ", " + name(Tile::kThreadM, Tile::kThreadN) + " per thread";
    if constexpr (requires { Tile::kWarpM; }) text += " warp " + name(Tile::kWarpM, Tile::kWarpN);
    if constexpr (requires { Tile::kNumStages; }) text += " s" + std::to_string(Tile::kNumStages);
    if constexpr (requires { Tile::kGroupM; }) text += " g" + std::to_string(Tile::kGroupM);
    if constexpr (requires { Tile::kPingPong; }) text += Tile::kPingPong ? " ping-pong" : " cooperative";
    if constexpr (requires { Tile::kNarrowN; }) text += " narrow " + std::to_string(Tile::kNarrowN);
    if constexpr (requires { Tile::kCluster; }) {
      if (Tile::kCluster > Tile::kSharingA * Tile::kSharingB) text += " split " + std::to_string(Tile::kSplitK);
      text += " cluster " + std::to_string(Tile::kCluster);
      // Of tiles that blocks share, the larger one goes without saying.
      if (Tile::kSharingA > 1 && Tile::kBlockM <= Tile::kBlockN) text += " sharing A";
      if (Tile::kSharingB > 1 && Tile::kBlockM > Tile::kBlockN) text += " sharing B";
    } else if constexpr (requires { Tile::kSplitK; }) {
      text += " split " + std::to_string(Tile::kSplitK);
    }
    return text;
  }
}

/// Those of a tile whose blocks multiply together: it has kBlockM, kBlockN, kBlockK and kThreads at least. A tile that says nothing
/// of what a thread or a warp has is one of wgmma. Its warpgroups have 64 rows each; or, where the rows are no multiple of 64 and
/// where blocks share a tile, 64 columns of all rows.
template <class Tile>
constexpr TileNumbers numbers_of() {
  TileNumbers n;
  n.block_m = Tile::kBlockM, n.block_n = Tile::kBlockN, n.block_k = Tile::kBlockK, n.threads = Tile::kThreads;
  if constexpr (requires { Tile::kNumStages; }) n.stages = Tile::kNumStages;
  if constexpr (requires { Tile::kSharedBytes; }) n.shared_bytes = Tile::kSharedBytes;
  if constexpr (requires { Tile::kEveryLayout; }) n.every_layout = Tile::kEveryLayout;
  if constexpr (requires { Tile::kSplitK; }) n.splits = Tile::kSplitK;
  if constexpr (requires { Tile::kNarrowN; }) n.narrow_n = Tile::kNarrowN;
  if constexpr (requires { Tile::kSharingA; }) n.sharing_a = Tile::kSharingA, n.sharing_b = Tile::kSharingB;
  if constexpr (requires { Tile::kThreadM; }) {
    n.unit = Unit::kFma, n.warp_m = Tile::kThreadM, n.warp_n = Tile::kThreadN;
  } else if constexpr (requires { Tile::kWarpM; }) {
    n.unit = Unit::kMma, n.warp_m = Tile::kWarpM, n.warp_n = Tile::kWarpN;
  } else {
    constexpr bool kColumns = Tile::kBlockM % 64 != 0 || requires { Tile::kSharingA; };
    n.unit = Unit::kWgmma, n.warp_m = kColumns ? Tile::kBlockM : 64, n.warp_n = kColumns ? 64 : Tile::kBlockN;
    n.clusters = requires { Tile::kSplitK; };
    n.stays = requires { Tile::kStoreBytes; };  // memory for C besides that of the tiles
  }
  return n;
}

}  // namespace harness

/// @file
/// Stages of a ring in shared memory. Explained by lesson 04, steps/04_pipelined_num_stages/README.md; word for word as there.
#pragma once

#include "common/device/device.cuh"

namespace learnt {

/// Where a block stands in its ring of stages in shared memory, each a tile of A and one of B.
template <int kStages>
struct Ring {
  static constexpr int kAhead = kStages > 1 ? kStages - 1 : 1;  // tiles on their way while one is multiplied

  /// The stage of the next tile.
  __host__ __device__ constexpr int next() const { return stage + 1 < kStages ? stage + 1 : 0; }
  /// The stage of the tile before.
  __host__ __device__ constexpr int previous() const { return stage > 0 ? stage - 1 : kStages - 1; }

  int stage = 0;  // of the tile that is multiplied
};

}  // namespace learnt

/// @file
/// Tiles that the copy engine copies, and their ring. Explained by lesson 09, steps/09_tma/README.md; word for word as there.
#pragma once

#include "common/device/bulk_copy.cuh"
#include "common/device/tensor_operand.h"

namespace learnt {

using device::Contiguous, device::Mbarrier, device::TensorMap, gemm::Matrix;

/// Rows and columns of a panel: what one instruction copies of a tile. A row of it is as wide as the widest swizzle, 128 bytes.
constexpr int kPanel = 64;

/// The map of the operand's panels; k along its columns.
template <class In>
TensorMap panel_map(const Matrix<const In>& g, Contiguous contiguous) {
  device::TensorLayout layout = device::tensor_layout(g, contiguous);
  layout.box_rows = layout.box_columns = kPanel;
  layout.swizzle = device::Swizzle::k128;
  return device::make_tensor_map<In>(layout);
}

/// Starts copying a tile of an operand that has `extent` of m, or n: kBlockMN of them, and panel `tile_k` along k. For one thread.
template <Contiguous contiguous, int kBlockMN, class In>
__device__ __forceinline__ void copy_panels(In* s, const TensorMap* map, int mn, int64_t extent, int tile_k, Mbarrier* barrier) {
#pragma unroll
  for (int i = 0; i < kBlockMN; i += kPanel) {
    const bool along_k = contiguous == Contiguous::kK;
    const int k = tile_k * kPanel, at = mn + i < extent ? mn + i : 0;  // the first panel for one outside: zeros take longer
    device::cp_async_bulk_tensor_2d(s + i * kPanel, map, along_k ? k : at, along_k ? at : k, barrier);
  }
}

/// Where a tile lies in a ring of stages. Each stage has two barriers with the same phases: it is full, then empty, and full again.
template <int kStages>
struct RingPlace {
  __device__ __forceinline__ explicit RingPlace(int tile) : stage(tile % kStages), phase(tile / kStages % 2) {}  ///< its number
  int stage;
  uint32_t phase;  // parity
};

}  // namespace learnt

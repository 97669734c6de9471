/// @file
/// Exercise 18: attention values, a long sum and a narrow result for each head, all in one launch.
#pragma once

#include "common/device/learnt/fragment_load.cuh"
#include "common/device/learnt/tile_copy.cuh"
#include "common/device/store_fragments.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Contiguous, device::kFragment, device::Operand, gemm::ceil_div, gemm::Matrix;

/// Numbers for each token in a head: the n of its product.
constexpr int kHeadSize = 128;

// >>> Your turn (1): the block's tile of a head's O, and how the warps share it.
constexpr int kBlockM = 64;  ///< a block computes kBlockM x kBlockN elements
constexpr int kBlockN = 64;  ///< the same along n, at most kHeadSize
constexpr int kWarpsM = 2;   ///< warps that share the rows of the tile
constexpr int kWarpsN = 2;   ///< warps that share its columns
// <<<

constexpr int kBlockK = 64;                                      ///< steps along k
constexpr int kThreads = 32 * kWarpsM * kWarpsN;                 ///< of a block
constexpr int kWarpM = kBlockM / kWarpsM;                        ///< rows of a warp
constexpr int kWarpN = kBlockN / kWarpsN;                        ///< columns of a warp
constexpr int kFragmentsM = kWarpM / kFragment;                  ///< a warp's fragments of P for a slice
constexpr int kFragmentsN = kWarpN / kFragment;                  ///< a warp's fragments of V for a slice
constexpr int kStore = device::kStoreFragmentsElements<kWarpN>;  ///< elements that a warp needs to store its part
constexpr int kTiles = (kBlockM + kBlockN) * kBlockK;            ///< elements of a tile of P and one of V

static_assert(kHeadSize % kBlockN == 0 && kWarpM % kFragment == 0 && kWarpN % kFragment == 0, "tiles and fragments are whole");
static_assert(kThreads / 32 * kStore <= kTiles, "the epilogue uses the tiles' memory");

/// P's tiles: rows along k.
using TileP = device::TileLayout<Operand::kA, Contiguous::kK, kBlockM, kBlockK>;
/// V's tiles: rows along n.
using TileV = device::TileLayout<Operand::kB, Contiguous::kMN, kBlockN, kBlockK>;

/// One block, one kBlockM x kBlockN tile of one head's O. `chunks`: the rows of O are aligned chunks.
__global__ void values_kernel(Matrix<const __half> P, Matrix<const __half> V, Matrix<__half> O, bool chunks) {
  alignas(128) __shared__ __half sPV[kTiles];  // (kBlockM, kBlockK), then (kBlockK, kBlockN), swizzled
  __half* const sP = sPV;
  __half* const sV = sPV + kBlockM * kBlockK;
  const int64_t tiles_n = kHeadSize / kBlockN, tiles = ceil_div<int64_t>(O.rows, kBlockM) * tiles_n;  // of a head
  const int64_t head = blockIdx.x / tiles, tile = blockIdx.x - head * tiles;
  const int64_t m_0 = tile / tiles_n * kBlockM, n_0 = tile % tiles_n * kBlockN;

  // P has the heads one below the other, as S in exercise 17.
  const Matrix<const __half> P_h = {P.at(head * O.rows, 0), O.rows, P.cols, P.row_stride, 1};
  // >>> Your turn (2): V and O have the heads side by side, as Q and K in exercise 17.
  const Matrix<const __half> V_h = {V.at(0, 0), V.rows, kHeadSize, V.row_stride, 1};
  const Matrix<__half> O_h = {O.at(0, 0), head == 0 ? O.rows : 0, kHeadSize, O.row_stride, 1};  // the others have no rows
  // <<<

  const int warp = threadIdx.x / 32, warp_m = warp / kWarpsN * kWarpM, warp_n = warp % kWarpsN * kWarpN;
  device::TileSource<TileP, kThreads, __half> gP(P_h, m_0);
  device::TileSource<TileV, kThreads, __half> gV(V_h.transposed(), n_0);
  const learnt::FragmentLoad<TileP, kFragmentsM, __half> fragments_of_p(warp_m);
  const learnt::FragmentLoad<TileV, kFragmentsN, __half> fragments_of_v(warp_n);
  float rO[kFragmentsM][2 * kFragmentsN][4] = {};
  for (int64_t k_left = P.cols; k_left > 0; k_left -= kBlockK) {
    learnt::copy_tile(gP, sP, k_left);
    learnt::copy_tile(gV, sV, k_left);
    device::cp_async_wait_all();
    __syncthreads();  // the tiles are complete
#pragma unroll
    for (int slice = 0; slice < kBlockK / kFragment; ++slice) {
      uint32_t rP[kFragmentsM][4], rV[kFragmentsN][4];
      fragments_of_p.load(rP, sP, slice);
      fragments_of_v.load(rV, sV, slice);
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
        for (int j = 0; j < 2 * kFragmentsN; ++j) {
          device::mma_m16n8k16<__half>(rO[i][j], rP[i], {rV[j / 2][j % 2 * 2], rV[j / 2][j % 2 * 2 + 1]});
        }
      }
    }
    __syncthreads();  // everybody has read the tiles before they are overwritten
  }
  device::store_fragments(rO, sPV + warp * kStore, O_h, m_0 + warp_m, n_0 + warp_n, chunks, gemm::Identity());
}

/// O_h = P_h · V_h, for each head h. All three are row-major, rows of P and V begin at multiples of 16 bytes:
/// - P has the heads one below the other: row h * O.rows + i is query i of head h, with a column for each key;
/// - V has a row for each key, O one for each query; head h is columns h * kHeadSize to (h + 1) * kHeadSize - 1 of both.
void values(Matrix<const __half> P, Matrix<const __half> V, Matrix<__half> O) {
  const int64_t heads = O.cols / kHeadSize;
  const int64_t tiles = ceil_div<int64_t>(O.rows, kBlockM) * (kHeadSize / kBlockN);
  device::launch(values_kernel, gemm::grid_size(heads * tiles), kThreads, 0, P, V, O,
                 device::chunks_aligned(O.data, O.col_stride, O.row_stride));
}

}  // namespace exercise

/// @file
/// Exercise 17: attention scores, a product with a transposed operand for each head, all in one launch.
#pragma once

#include "common/device/learnt/fragment_load.cuh"
#include "common/device/learnt/tile_copy.cuh"
#include "common/device/store_fragments.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Contiguous, device::kFragment, device::Operand, gemm::ceil_div, gemm::Matrix;

/// Numbers for each token in a head: the k of its product.
constexpr int kHeadSize = 128;
/// A block's part of a head's scores: kBlockM x kBlockN. k is so short that its tiles of Q and K have all of it.
constexpr int kBlockM = 64;
constexpr int kBlockN = 64;                                      ///< the same along n
constexpr int kWarpsM = 2;                                       ///< warps that share the rows of the tile
constexpr int kWarpsN = 2;                                       ///< warps that share its columns
constexpr int kThreads = 32 * kWarpsM * kWarpsN;                 ///< of a block
constexpr int kWarpM = kBlockM / kWarpsM;                        ///< rows of a warp
constexpr int kWarpN = kBlockN / kWarpsN;                        ///< columns of a warp
constexpr int kFragmentsM = kWarpM / kFragment;                  ///< a warp's fragments of Q for a slice
constexpr int kFragmentsN = kWarpN / kFragment;                  ///< a warp's fragments of K for a slice
constexpr int kStore = device::kStoreFragmentsElements<kWarpN>;  ///< elements that a warp needs to store its part

/// Q's tiles: rows along k.
using TileQ = device::TileLayout<Operand::kA, Contiguous::kK, kBlockM, kHeadSize>;
/// K's tiles: rows along k as well, for the operand B is K transposed.
using TileK = device::TileLayout<Operand::kB, Contiguous::kK, kBlockN, kHeadSize>;

/// The epilogue: from a sum to a score.
struct Scale {
  /// x is a sum in f32, before it is rounded to f16.
  __device__ float operator()(float x) const {
    // >>> Your turn (2): a score is the sum divided by the square root of kHeadSize.
    return x * 0.0883883476f;
    // <<<
  }
};

/// One block, one kBlockM x kBlockN tile of one head's scores. `chunks`: the rows of S are aligned chunks.
__global__ void scores_kernel(Matrix<const __half> Q, Matrix<const __half> K, Matrix<__half> S, bool chunks) {
  alignas(128) __shared__ __half sQ[kBlockM * kHeadSize];  // (kBlockM, kHeadSize), swizzled
  alignas(128) __shared__ __half sK[kBlockN * kHeadSize];  // (kBlockN, kHeadSize), swizzled
  const int64_t tiles_n = ceil_div<int64_t>(K.rows, kBlockN), tiles = ceil_div<int64_t>(Q.rows, kBlockM) * tiles_n;  // of a head

  // >>> Your turn (1): which head is this block's, and which tile of it? Where do the head's Q, K and S begin?
  const int64_t head = blockIdx.x / tiles, tile = blockIdx.x - head * tiles;
  const Matrix<const __half> Q_h = {Q.at(0, head * kHeadSize), Q.rows, kHeadSize, Q.row_stride, 1};
  const Matrix<const __half> K_t = {K.at(0, head * kHeadSize), kHeadSize, K.rows, 1, K.row_stride};  // transposed: a view
  const Matrix<__half> S_h = {S.at(head * Q.rows, 0), Q.rows, K.rows, S.row_stride, 1};
  // <<<

  const int64_t m_0 = tile / tiles_n * kBlockM, n_0 = tile % tiles_n * kBlockN;
  const int warp = threadIdx.x / 32, warp_m = warp / kWarpsN * kWarpM, warp_n = warp % kWarpsN * kWarpN;
  device::TileSource<TileQ, kThreads, __half> gQ(Q_h, m_0);
  device::TileSource<TileK, kThreads, __half> gK(K_t.transposed(), n_0);
  const learnt::FragmentLoad<TileQ, kFragmentsM, __half> fragments_of_q(warp_m);
  const learnt::FragmentLoad<TileK, kFragmentsN, __half> fragments_of_k(warp_n);
  learnt::copy_tile(gQ, sQ, kHeadSize);
  learnt::copy_tile(gK, sK, kHeadSize);
  device::cp_async_wait_all();
  __syncthreads();  // the tiles are complete

  float rS[kFragmentsM][2 * kFragmentsN][4] = {};
#pragma unroll
  for (int slice = 0; slice < kHeadSize / kFragment; ++slice) {
    uint32_t rQ[kFragmentsM][4], rK[kFragmentsN][4];
    fragments_of_q.load(rQ, sQ, slice);
    fragments_of_k.load(rK, sK, slice);
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
      for (int j = 0; j < 2 * kFragmentsN; ++j) {
        device::mma_m16n8k16<__half>(rS[i][j], rQ[i], {rK[j / 2][j % 2 * 2], rK[j / 2][j % 2 * 2 + 1]});
      }
    }
  }
  __syncthreads();  // everybody has read the tiles: their memory is free for the epilogue
  device::store_fragments(rS, sQ + warp * kStore, S_h, m_0 + warp_m, n_0 + warp_n, chunks, Scale());
}

/// S_h = Q_h · K_h transposed / sqrt(kHeadSize), for each head h. All three are row-major, rows of Q and K begin at multiples of 16
/// bytes:
/// - Q has a row for each query, K one for each key; head h is columns h * kHeadSize to (h + 1) * kHeadSize - 1 of both;
/// - S has the heads one below the other: row h * Q.rows + i is query i of head h, with a column for each key.
void scores(Matrix<const __half> Q, Matrix<const __half> K, Matrix<__half> S) {
  const int64_t heads = Q.cols / kHeadSize;
  const int64_t tiles = ceil_div<int64_t>(Q.rows, kBlockM) * ceil_div<int64_t>(K.rows, kBlockN);
  device::launch(scores_kernel, gemm::grid_size(heads * tiles), kThreads, 0, Q, K, S,
                 device::chunks_aligned(S.data, S.col_stride, S.row_stride));
}

}  // namespace exercise

/// @file
/// Exercise 17: attention. Two products for each head: the scores, Q · K transposed, and the values, P · V. One function
/// multiplies, the views say what.
#pragma once

#include "common/device/learnt/fragment_load.cuh"
#include "common/device/learnt/tile_copy.cuh"
#include "common/device/store_fragments.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Contiguous, device::kFragment, device::Operand, gemm::ceil_div, gemm::Matrix;

/// Numbers for each token in a head: the k of its scores, and the n of its values.
constexpr int kHeadSize = 128;

/// A block computes block_m x block_n elements of a head's product, in steps of block_k along k. warps_m warps share the rows of
/// the tile, warps_n its columns.
template <int block_m, int block_n, int block_k, int warps_m, int warps_n>
struct Tile {
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = block_k, kWarpsN = warps_n;
  static constexpr int kThreads = 32 * warps_m * warps_n;                                   // of a block
  static constexpr int kWarpM = kBlockM / warps_m, kWarpN = kBlockN / warps_n;              // rows and columns of a warp
  static constexpr int kFragmentsM = kWarpM / kFragment, kFragmentsN = kWarpN / kFragment;  // a warp's, for a slice
  static constexpr int kStore = device::kStoreFragmentsElements<kWarpN>;                    // what a warp needs to store its part
  static constexpr int kTileA = kBlockM * kBlockK, kTiles = kTileA + kBlockN * kBlockK;     // elements in shared memory
  static_assert(kWarpM % kFragment == 0 && kWarpN % kFragment == 0, "a warp's fragments are whole");
  static_assert(kThreads / 32 * kStore <= kTiles, "the epilogue uses the tiles' memory");
};

/// One tile of one head's C = A · B. `chunks`: the rows of C are aligned chunks. A's rows lie along k; contiguous_b says which of
/// B's.
template <class Tile, Contiguous contiguous_b, class Epilogue>
__device__ void multiply(Matrix<const __half> A, Matrix<const __half> B, Matrix<__half> C, int64_t tile, bool chunks,
                         Epilogue epilogue) {
  using TileA = device::TileLayout<Operand::kA, Contiguous::kK, Tile::kBlockM, Tile::kBlockK>;
  using TileB = device::TileLayout<Operand::kB, contiguous_b, Tile::kBlockN, Tile::kBlockK>;
  alignas(128) __shared__ __half sAB[Tile::kTiles];  // (kBlockM, kBlockK), then (kBlockN, kBlockK), swizzled
  __half* const sA = sAB;
  __half* const sB = sAB + Tile::kTileA;
  const int64_t tiles_n = ceil_div<int64_t>(C.cols, Tile::kBlockN);
  const int64_t m_0 = tile / tiles_n * Tile::kBlockM, n_0 = tile % tiles_n * Tile::kBlockN;
  const int warp = threadIdx.x / 32;
  const int warp_m = warp / Tile::kWarpsN * Tile::kWarpM, warp_n = warp % Tile::kWarpsN * Tile::kWarpN;
  device::TileSource<TileA, Tile::kThreads, __half> gA(A, m_0);
  device::TileSource<TileB, Tile::kThreads, __half> gB(B.transposed(), n_0);
  const learnt::FragmentLoad<TileA, Tile::kFragmentsM, __half> fragments_of_a(warp_m);
  const learnt::FragmentLoad<TileB, Tile::kFragmentsN, __half> fragments_of_b(warp_n);
  float rC[Tile::kFragmentsM][2 * Tile::kFragmentsN][4] = {};
  for (int64_t k_left = A.cols; k_left > 0; k_left -= Tile::kBlockK) {
    learnt::copy_tile(gA, sA, k_left);
    learnt::copy_tile(gB, sB, k_left);
    device::cp_async_wait_all();
    __syncthreads();  // the tiles are complete
#pragma unroll
    for (int slice = 0; slice < Tile::kBlockK / kFragment; ++slice) {
      uint32_t rA[Tile::kFragmentsM][4], rB[Tile::kFragmentsN][4];
      fragments_of_a.load(rA, sA, slice);
      fragments_of_b.load(rB, sB, slice);
#pragma unroll
      for (int i = 0; i < Tile::kFragmentsM; ++i) {
#pragma unroll
        for (int j = 0; j < 2 * Tile::kFragmentsN; ++j) {
          device::mma_m16n8k16<__half>(rC[i][j], rA[i], {rB[j / 2][j % 2 * 2], rB[j / 2][j % 2 * 2 + 1]});
        }
      }
    }
    __syncthreads();  // everybody has read the tiles before they are overwritten
  }
  device::store_fragments(rC, sAB + warp * Tile::kStore, C, m_0 + warp_m, n_0 + warp_n, chunks, epilogue);
}

// --- scores ---

/// k is so short that one step has all of it.
using ScoresTile = Tile<64, 64, kHeadSize, 2, 2>;

/// The epilogue: from a sum to a score.
struct Scale {
  /// x is a sum in f32, before it is rounded to f16.
  __device__ float operator()(float x) const {
    // >>> Your turn (1): a score is the sum divided by the square root of kHeadSize.
    return x;
    // <<<
  }
};

/// One block, one tile of one head's scores.
__global__ void scores_kernel(Matrix<const __half> Q, Matrix<const __half> K, Matrix<__half> S, bool chunks) {
  const int64_t tiles =
      ceil_div<int64_t>(Q.rows, ScoresTile::kBlockM) * ceil_div<int64_t>(K.rows, ScoresTile::kBlockN);  // of a head
  const int64_t head = blockIdx.x / tiles, tile = blockIdx.x - head * tiles;
  // >>> Your turn (2): where do the head's Q, K and S begin, and which strides have they? scores() says how the heads lie.
  const Matrix<const __half> Q_h = {Q.at(0, 0), Q.rows, kHeadSize, Q.row_stride, 1};
  const Matrix<const __half> K_t = {K.at(0, 0), kHeadSize, K.rows, 1, K.row_stride};         // transposed: a view
  const Matrix<__half> S_h = {S.at(0, 0), head == 0 ? Q.rows : 0, K.rows, S.row_stride, 1};  // the others have no rows
  // <<<
  multiply<ScoresTile, Contiguous::kK>(Q_h, K_t, S_h, tile, chunks, Scale());
}

/// S_h = Q_h · K_h transposed / sqrt(kHeadSize), for each head h. All three are row-major, rows of Q and K begin at multiples of 16
/// bytes:
/// - Q has a row for each query, K one for each key; head h is columns h * kHeadSize to (h + 1) * kHeadSize - 1 of both;
/// - S has the heads one below the other: row h * Q.rows + i is query i of head h, with a column for each key.
void scores(Matrix<const __half> Q, Matrix<const __half> K, Matrix<__half> S) {
  const int64_t heads = Q.cols / kHeadSize;
  const int64_t tiles = ceil_div<int64_t>(Q.rows, ScoresTile::kBlockM) * ceil_div<int64_t>(K.rows, ScoresTile::kBlockN);
  device::launch(scores_kernel, gemm::grid_size(heads * tiles), ScoresTile::kThreads, 0, Q, K, S,
                 device::chunks_aligned(S.data, S.col_stride, S.row_stride));
}

// --- values ---

// >>> Your turn (3): the block's tile of a head's O. Rows, columns, steps along k; warps that share the rows, and the columns.
/// It decides how often P and V are read.
using ValuesTile = Tile<64, 64, 64, 2, 2>;
// <<<
static_assert(kHeadSize % ValuesTile::kBlockN == 0, "tiles end where a head ends");

/// One block, one tile of one head's O.
__global__ void values_kernel(Matrix<const __half> P, Matrix<const __half> V, Matrix<__half> O, bool chunks) {
  const int64_t tiles = ceil_div<int64_t>(O.rows, ValuesTile::kBlockM) * (kHeadSize / ValuesTile::kBlockN);  // of a head
  const int64_t head = blockIdx.x / tiles, tile = blockIdx.x - head * tiles;
  // >>> Your turn (4): where do the head's P, V and O begin, and which strides have they? values() says how the heads lie.
  const Matrix<const __half> P_h = {P.at(0, 0), O.rows, P.cols, P.row_stride, 1};
  const Matrix<const __half> V_h = {V.at(0, 0), V.rows, kHeadSize, V.row_stride, 1};
  const Matrix<__half> O_h = {O.at(0, 0), head == 0 ? O.rows : 0, kHeadSize, O.row_stride, 1};
  // <<<
  multiply<ValuesTile, Contiguous::kMN>(P_h, V_h, O_h, tile, chunks, gemm::Identity());
}

/// O_h = P_h · V_h, for each head h. All three are row-major, rows of P and V begin at multiples of 16 bytes:
/// - P has the heads one below the other, as S: row h * O.rows + i is query i of head h, with a column for each key;
/// - V has a row for each key, O one for each query; head h is columns h * kHeadSize to (h + 1) * kHeadSize - 1 of both.
void values(Matrix<const __half> P, Matrix<const __half> V, Matrix<__half> O) {
  const int64_t heads = O.cols / kHeadSize;
  const int64_t tiles = ceil_div<int64_t>(O.rows, ValuesTile::kBlockM) * (kHeadSize / ValuesTile::kBlockN);
  device::launch(values_kernel, gemm::grid_size(heads * tiles), ValuesTile::kThreads, 0, P, V, O,
                 device::chunks_aligned(O.data, O.col_stride, O.row_stride));
}

}  // namespace exercise

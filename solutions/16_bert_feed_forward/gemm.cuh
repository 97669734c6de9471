/// @file
/// Exercise 16: how the tiles of C fill the SMs of a GPU, and which tile is best for a shape.
#pragma once

#include <array>
#include <vector>

#include "common/device/learnt/fragment_load.cuh"
#include "common/device/learnt/tile_copy.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Contiguous, device::kFragment, device::Operand, gemm::ceil_div, gemm::Matrix;

/// Rows and columns of C that a block computes.
using TileSize = std::array<int, 2>;

/// The tiles that gemm() can choose from. 256 x 128 is the best one for large squares.
const std::vector<TileSize> kCandidates = {{256, 128}, {128, 128}, {128, 64}, {64, 64}};

/// Tiles of an m x n matrix, those that stick out of it included.
int64_t tile_count(int64_t m, int64_t n, TileSize tile) { return ceil_div<int64_t>(m, tile[0]) * ceil_div<int64_t>(n, tile[1]); }

// >>> Your turn (1): two short formulas. ceil_div(a, b) is a / b, rounded up.

/// Waves of `tiles` blocks, the last one included: all SMs together hold sms * blocks_per_sm blocks at the same time.
int64_t wave_count(int64_t tiles, int sms, int blocks_per_sm) { return ceil_div<int64_t>(tiles, int64_t{sms} * blocks_per_sm); }

/// Which share of the places for blocks the last wave uses: more than 0, at most 1.
double last_wave(int64_t tiles, int sms, int blocks_per_sm) {
  const int64_t places = int64_t{sms} * blocks_per_sm;
  return static_cast<double>(tiles - (wave_count(tiles, sms, blocks_per_sm) - 1) * places) / static_cast<double>(places);
}
// <<<

/// How many elements the SM with the most tiles computes. Tiles are dealt out evenly, and each is computed as a whole one.
int64_t busiest_sm(int64_t m, int64_t n, TileSize tile, int sms) {
  return ceil_div<int64_t>(tile_count(m, n, tile), sms) * tile[0] * tile[1];
}

/// The number of the best candidate: its busiest SM has the fewest elements. If several have, the largest tile of them: it loads
/// least for each element.
int choose(int64_t m, int64_t n, int sms, const std::vector<TileSize>& candidates) {
  int best = 0;
  for (int i = 1; i < static_cast<int>(candidates.size()); ++i) {
    const TileSize tile = candidates[i], before = candidates[best];
    const int64_t work = busiest_sm(m, n, tile, sms), work_before = busiest_sm(m, n, before, sms);
    const bool is_larger = tile[0] * tile[1] > before[0] * before[1];
    // >>> Your turn (2): is this candidate better than the best one before it?
    const bool is_better = work < work_before || (work == work_before && is_larger);
    // <<<
    if (is_better) best = i;
  }
  return best;
}

/// A block's tile of C and a warp's part of it.
template <int block_m, int block_n, int warp_m, int warp_n>
struct Tile {
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = 64, kWarpM = warp_m, kWarpN = warp_n;
  static constexpr int kWarpsN = kBlockN / kWarpN, kThreads = 32 * kBlockM / kWarpM * kWarpsN;
  static constexpr int kTileA = kBlockM * kBlockK, kTileB = kBlockN * kBlockK;  // elements in shared memory
  static constexpr auto kSharedBytes = device::ring(1, 2 * kTileA, 2 * kTileB);
};

/// One block, one tile of C.
template <class Tile>
__global__ __launch_bounds__(Tile::kThreads) void gemm_kernel(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C) {
  using TileA = device::TileLayout<Operand::kA, Contiguous::kK, Tile::kBlockM, Tile::kBlockK>;
  using TileB = device::TileLayout<Operand::kB, Contiguous::kMN, Tile::kBlockN, Tile::kBlockK>;
  constexpr int kFragmentsM = Tile::kWarpM / kFragment, kFragmentsN = Tile::kWarpN / kFragment;
  __half* const sA = device::dynamic_smem<__half>();  // (kBlockM, kBlockK), swizzled
  __half* const sB = sA + Tile::kTileA;               // (kBlockK, kBlockN), swizzled
  const int64_t tiles_n = ceil_div<int64_t>(C.cols, Tile::kBlockN);
  const int64_t m_0 = blockIdx.x / tiles_n * Tile::kBlockM, n_0 = blockIdx.x % tiles_n * Tile::kBlockN;
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int warp_m = warp / Tile::kWarpsN * Tile::kWarpM, warp_n = warp % Tile::kWarpsN * Tile::kWarpN;
  device::TileSource<TileA, Tile::kThreads, __half> gA(A, m_0);
  device::TileSource<TileB, Tile::kThreads, __half> gB(B.transposed(), n_0);
  const learnt::FragmentLoad<TileA, kFragmentsM, __half> fragments_of_a(warp_m);
  const learnt::FragmentLoad<TileB, kFragmentsN, __half> fragments_of_b(warp_n);

  float rC[kFragmentsM][2 * kFragmentsN][4] = {};
  for (int64_t k_left = A.cols; k_left > 0; k_left -= Tile::kBlockK) {
    learnt::copy_tile(gA, sA, k_left);
    learnt::copy_tile(gB, sB, k_left);
    device::cp_async_wait_all();
    __syncthreads();  // the tiles are complete
#pragma unroll
    for (int slice = 0; slice < Tile::kBlockK / kFragment; ++slice) {
      uint32_t rA[kFragmentsM][4], rB[kFragmentsN][4];
      fragments_of_a.load(rA, sA, slice);
      fragments_of_b.load(rB, sB, slice);
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
        for (int j = 0; j < 2 * kFragmentsN; ++j) {
          device::mma_m16n8k16<__half>(rC[i][j], rA[i], {rB[j / 2][j % 2 * 2], rB[j / 2][j % 2 * 2 + 1]});
        }
      }
    }
    __syncthreads();  // everybody has read the tiles before they are overwritten
  }

#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
    for (int j = 0; j < 2 * kFragmentsN; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int64_t row = m_0 + warp_m + i * kFragment + g + e / 2 * 8, col = n_0 + warp_n + j * 8 + 2 * t + e % 2;
        if (row < C.rows && col < C.cols) *C.at(row, col) = rC[i][j][e];
      }
    }
  }
}

/// Starts the kernel with this tile.
template <class Tile>
void launch(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, Tile::kBlockM) * ceil_div<int64_t>(C.cols, Tile::kBlockN);
  device::launch(gemm_kernel<Tile>, gemm::grid_size(tiles), Tile::kThreads, Tile::kSharedBytes, A, B, C);
}

/// C = A · B, all row-major, of any shape, with the tile that choose() finds for a GPU of `sms` SMs. Rows of A and of B begin at
/// multiples of 16 bytes.
void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C, int sms) {
  switch (choose(C.rows, C.cols, sms, kCandidates)) {
    case 0: return launch<Tile<256, 128, 64, 64>>(A, B, C);
    case 1: return launch<Tile<128, 128, 64, 64>>(A, B, C);
    case 2: return launch<Tile<128, 64, 64, 32>>(A, B, C);
    case 3: return launch<Tile<64, 64, 32, 32>>(A, B, C);
  }
}

}  // namespace exercise

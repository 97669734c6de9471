/// @file
/// Exercise 20: two narrow products side by side, in one launch.
#pragma once

#include "common/device/element.cuh"
#include "common/device/learnt/fragment_load.cuh"
#include "common/device/learnt/tile_copy.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Contiguous, device::kFragment, device::Operand, gemm::ceil_div, gemm::Matrix;
using learnt::copy_tile, learnt::FragmentLoad;

/// A block's part of K or V: kBlockM x kBlockN elements, in steps of kBlockK along k.
constexpr int kBlockM = 64;
constexpr int kBlockN = 64;                    ///< the same along n
constexpr int kBlockK = 64;                    ///< the same along k
constexpr int kWarp = 32;                      ///< rows and columns of a warp
constexpr int kFragments = kWarp / kFragment;  ///< a warp's fragments of X, and of the weights
constexpr int kThreads = 128;                  ///< of a block: 2 x 2 warps

/// X's tiles: rows along k.
using TileX = device::TileLayout<Operand::kA, Contiguous::kK, kBlockM, kBlockK>;
/// The weights' tiles: rows along k, too.
using TileW = device::TileLayout<Operand::kB, Contiguous::kK, kBlockN, kBlockK>;

/// One block, one tile of K = X · W_k or of V = X · W_v.
__global__ void project_kernel(Matrix<const __half> X, Matrix<const __half> W_k, Matrix<const __half> W_v, Matrix<__half> K,
                               Matrix<__half> V) {
  alignas(128) __shared__ __half sX[kBlockM * kBlockK];        // (kBlockM, kBlockK)
  alignas(128) __shared__ __half sW[kBlockN * kBlockK];        // (kBlockN, kBlockK)
  const int64_t tiles_n = ceil_div<int64_t>(K.cols, kBlockN);  // of K, and as many of V

  // >>> Your turn (1): is this block's tile one of K or one of V? Y = X · W is what it works for, (m_0, n_0) where its tile begins.
  const int64_t tile_m = blockIdx.x / (2 * tiles_n), tile_n = blockIdx.x % (2 * tiles_n);  // V's tiles to the right of K's
  const bool is_k = tile_n < tiles_n;
  const Matrix<const __half> W = is_k ? W_k : W_v;
  const Matrix<__half> Y = is_k ? K : V;
  const int64_t m_0 = tile_m * kBlockM, n_0 = (is_k ? tile_n : tile_n - tiles_n) * kBlockN;
  // <<<

  const int warp = threadIdx.x / 32, warp_m = warp / 2 * kWarp, warp_n = warp % 2 * kWarp;
  device::TileSource<TileX, kThreads, __half> gX(X, m_0);
  device::TileSource<TileW, kThreads, __half> gW(W.transposed(), n_0);
  const FragmentLoad<TileX, kFragments, __half> fragments_of_x(warp_m);
  const FragmentLoad<TileW, kFragments, __half> fragments_of_w(warp_n);
  float rY[kFragments][2 * kFragments][4] = {};
  for (int64_t k_left = X.cols; k_left > 0; k_left -= kBlockK) {
    copy_tile(gX, sX, k_left);
    copy_tile(gW, sW, k_left);
    device::cp_async_wait_all();
    __syncthreads();  // the tiles are complete
    for (int slice = 0; slice < kBlockK / kFragment; ++slice) {
      uint32_t rX[kFragments][4], rW[kFragments][4];
      fragments_of_x.load(rX, sX, slice);
      fragments_of_w.load(rW, sW, slice);
      for (int i = 0; i < kFragments; ++i) {
        for (int j = 0; j < 2 * kFragments; ++j) {
          device::mma_m16n8k16<__half>(rY[i][j], rX[i], {rW[j / 2][j % 2 * 2], rW[j / 2][j % 2 * 2 + 1]});
        }
      }
    }
    __syncthreads();  // everybody has read the tiles before they are overwritten
  }

  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int i = 0; i < kFragments; ++i) {
    for (int j = 0; j < 2 * kFragments * 4; ++j) {
      const int64_t row = m_0 + warp_m + i * kFragment + g + j % 4 / 2 * 8, col = n_0 + warp_n + j / 4 * 8 + 2 * t + j % 2;
      if (row < Y.rows && col < Y.cols) {
        *Y.at(row, col) = device::from_float<__half>(rY[i][j / 4][j % 4]);
      }
    }
  }
}

/// K = X · W_k and V = X · W_v. Both have the same shape. X, K and V are row-major, W_k and W_v are column-major. Rows of X and
/// columns of W_k and W_v begin at multiples of 16 bytes. All five lie anywhere in memory.
void project(Matrix<const __half> X, Matrix<const __half> W_k, Matrix<const __half> W_v, Matrix<__half> K, Matrix<__half> V) {
  const int64_t tiles = ceil_div<int64_t>(K.rows, kBlockM) * ceil_div<int64_t>(K.cols, kBlockN);  // of K, and as many of V
  // >>> Your turn (2): how many blocks?
  const unsigned blocks = gemm::grid_size(2 * tiles);
  // <<<
  device::launch(project_kernel, blocks, kThreads, 0, X, W_k, W_v, K, V);
}

}  // namespace exercise

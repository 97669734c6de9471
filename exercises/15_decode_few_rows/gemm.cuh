/// @file
/// Exercise 15: a tile for a product of few rows, as in decoding.
#pragma once

#include "common/device/learnt/fragment_load.cuh"
#include "common/device/learnt/tile_copy.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Contiguous, device::kFragment, device::Operand, gemm::ceil_div, gemm::Matrix;

// >>> Your turn (1): the tile of a block, and how its warps share the work.
constexpr int kBlockM = 128;  ///< a block's part of C: kBlockM x kBlockN elements, multiples of 16
constexpr int kBlockN = 128;  ///< the same along n
constexpr int kBlockK = 64;   ///< its steps along k
constexpr int kWarpsM = 2;    ///< so many warps share the rows of the tile,
constexpr int kWarpsN = 2;    ///< so many its columns,
constexpr int kWarpsK = 1;    ///< and so many the slices of a step, 16 of k each
// <<<

constexpr int kThreads = 32 * kWarpsM * kWarpsN * kWarpsK;  ///< of a block
constexpr int kWarpM = kBlockM / kWarpsM;                   ///< rows of a warp's part of the tile
constexpr int kWarpN = kBlockN / kWarpsN;                   ///< its columns
constexpr int kFragmentsM = kWarpM / kFragment;             ///< fragments of A for a slice
constexpr int kFragmentsN = kWarpN / kFragment;             ///< fragments of B for a slice
constexpr int kTileA = kBlockM * kBlockK;                   ///< elements of A's tile, B's comes behind it
constexpr int kTileB = kBlockN * kBlockK;                   ///< elements of B's tile
constexpr int kSums = kBlockM * kBlockN;                    ///< elements of C's tile
/// Tiles of A and B, and a tile of sums for each of the kWarpsK warps that share k.
constexpr auto kSharedBytes = device::ring(1, kTileA * 2, kTileB * 2).each("share of k", kWarpsK, {"sums", kSums * 4});

static_assert(kWarpM % kFragment == 0 && kWarpN % kFragment == 0, "a warp multiplies whole fragments");
static_assert(kBlockK % (kWarpsK * kFragment) == 0, "each warp has as many slices");

using TileA = device::TileLayout<Operand::kA, Contiguous::kK, kBlockM, kBlockK>;   ///< rows run along k
using TileB = device::TileLayout<Operand::kB, Contiguous::kMN, kBlockN, kBlockK>;  ///< rows run along n

/// One block, one kBlockM x kBlockN tile of C.
__global__ void gemm_kernel(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C) {
  __half* const sA = device::dynamic_smem<__half>();                    // (kBlockM, kBlockK), swizzled
  __half* const sB = sA + kTileA;                                       // (kBlockK, kBlockN), swizzled
  float* const sSums = reinterpret_cast<float*>(sA + kTileA + kTileB);  // (kWarpsK, kBlockM, kBlockN)
  const int64_t tiles_n = ceil_div<int64_t>(C.cols, kBlockN);
  const int64_t m_0 = blockIdx.x / tiles_n * kBlockM, n_0 = blockIdx.x % tiles_n * kBlockN;
  const int warp = threadIdx.x / 32, warp_k = warp / (kWarpsM * kWarpsN);
  const int warp_m = warp / kWarpsN % kWarpsM * kWarpM, warp_n = warp % kWarpsN * kWarpN;
  device::TileSource<TileA, kThreads, __half> gA(A, m_0);
  device::TileSource<TileB, kThreads, __half> gB(B.transposed(), n_0);
  const learnt::FragmentLoad<TileA, kFragmentsM, __half> fragments_of_a(warp_m);
  const learnt::FragmentLoad<TileB, kFragmentsN, __half> fragments_of_b(warp_n);

  float rC[kFragmentsM][2 * kFragmentsN][4] = {};  // of the warp's own slices alone
  for (int64_t k_left = A.cols; k_left > 0; k_left -= kBlockK) {
    learnt::copy_tile(gA, sA, k_left);
    learnt::copy_tile(gB, sB, k_left);
    device::cp_async_wait_all();
    __syncthreads();  // the tiles are complete
    for (int slice = warp_k; slice < kBlockK / kFragment; slice += kWarpsK) {
      uint32_t rA[kFragmentsM][4], rB[kFragmentsN][4];
      fragments_of_a.load(rA, sA, slice);
      fragments_of_b.load(rB, sB, slice);
      for (int i = 0; i < kFragmentsM; ++i) {
        for (int j = 0; j < 2 * kFragmentsN; ++j) {
          device::mma_m16n8k16<__half>(rC[i][j], rA[i], {rB[j / 2][j % 2 * 2], rB[j / 2][j % 2 * 2 + 1]});
        }
      }
    }
    __syncthreads();  // everybody has read the tiles before they are overwritten
  }

  // Each warp puts its sums into shared memory, in the tile of its warp_k.
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int i = 0; i < kFragmentsM; ++i) {
    for (int j = 0; j < 2 * kFragmentsN; ++j) {
      for (int e = 0; e < 4; ++e) {
        const int row = warp_m + i * kFragment + g + e / 2 * 8, col = warp_n + j * 8 + 2 * t + e % 2;
        sSums[warp_k * kSums + row * kBlockN + col] = rC[i][j][e];
      }
    }
  }
  __syncthreads();  // all sums are there
  for (int i = threadIdx.x; i < kSums; i += kThreads) {
    const int64_t row = m_0 + i / kBlockN, col = n_0 + i % kBlockN;
    // >>> Your turn (2): kWarpsK warps have each a part of this element's sum.
    const float sum = sSums[i];
    // <<<
    if (row < C.rows && col < C.cols) *C.at(row, col) = sum;
  }
}

/// C = A · B, all row-major, of any shape, made for few rows. Rows of A and of B begin at multiples of 16 bytes.
void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kBlockM) * ceil_div<int64_t>(C.cols, kBlockN);
  device::launch(gemm_kernel, gemm::grid_size(tiles), kThreads, kSharedBytes, A, B, C);
}

}  // namespace exercise

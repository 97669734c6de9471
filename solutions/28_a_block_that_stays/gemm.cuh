/// @file
/// Exercise 28: a block that stays. It computes one tile of C after the other, and its ring goes on over all of them.
#pragma once

#include "common/device/learnt/wgmma_slice.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Contiguous, device::Major, device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;
using learnt::kPanel, learnt::kWarpgroup, learnt::kWgmmaK, learnt::panel_map, learnt::RingPlace, learnt::slice_descriptor;

constexpr int kBlockM = 64, kBlockN = 64;                     ///< a tile of C: a panel of A and one of B for each 64 of k
constexpr int kStages = 3;                                    ///< of the ring, a panel of A and one of B each
constexpr int kStageElements = (kBlockM + kBlockN) * kPanel;  ///< A's, then B's
constexpr int kStageBytes = kStageElements * 2;
constexpr int kThreads = kWarpgroup + 32;  ///< a warpgroup multiplies, one more warp copies

/// Starts one product: a slice of k of a stage. `adds` to rC, or sets it.
__device__ __forceinline__ void multiply(float (&rC)[kBlockN / 2], const __half* sA, const __half* sB, int slice, bool adds) {
  device::wgmma_m64k16<__half, kBlockN, Major::kK, Major::kMN>(rC, slice_descriptor<Contiguous::kK>(sA, slice),
                                                               slice_descriptor<Contiguous::kMN>(sB, slice), adds);
}

/// Stores a thread's sums, as wgmma leaves them: 64 rows of C from m_0 on.
__device__ __forceinline__ void store(Matrix<float> C, const float (&rC)[kBlockN / 2], int m_0, int n_0) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = m_0 + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4, col = n_0 + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < kBlockN / 2; ++i) {
    const int r = row + i / 2 % 2 * 8, c = col + i / 4 * 8 + i % 2;
    if (r < C.rows && c < C.cols) *C.at(r, c) = rC[i];
  }
}

/// A block has the tiles blockIdx.x, blockIdx.x + gridDim.x, ... of the `tiles` of C. Each is `tiles_k` tiles along k.
__global__ __launch_bounds__(kThreads, 1) void gemm_kernel(const __grid_constant__ TensorMap map_a,
                                                           const __grid_constant__ TensorMap map_b, Matrix<float> C, int tiles_k,
                                                           int tiles) {
  __half* const sAB = device::dynamic_smem<__half>();
  __shared__ Mbarrier full[kStages], empty[kStages];  // empty: an arrival of each warp that multiplies
  const int tiles_n = static_cast<int>(ceil_div<int64_t>(C.cols, kBlockN));
  const auto first_row = [&](int tile) { return tile / tiles_n * kBlockM; };
  const auto first_col = [&](int tile) { return tile % tiles_n * kBlockN; };
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      device::mbarrier_init(&full[i], 1);
      device::mbarrier_init(&empty[i], kWarpgroup / 32);
    }
    device::fence_mbarrier_init();
  }
  __syncthreads();

  const auto copy = [&](int i, int tile, int tile_k) {  // `i` says where in the ring
    const RingPlace<kStages> place(i);
    __half* const s = sAB + place.stage * kStageElements;
    device::mbarrier_wait_parity(&empty[place.stage], place.phase ^ 1);
    device::mbarrier_arrive_expect_tx(&full[place.stage], kStageBytes);
    device::cp_async_bulk_tensor_2d(s, &map_a, tile_k * kPanel, first_row(tile), &full[place.stage]);
    device::cp_async_bulk_tensor_2d(s + kBlockM * kPanel, &map_b, first_col(tile), tile_k * kPanel, &full[place.stage]);
  };
  float rC[kBlockN / 2];
  const auto start_products = [&](int i, bool adds) {  // waits for the stage; a group, of which the first product adds or sets
    const RingPlace<kStages> place(i);
    const __half* const s = sAB + place.stage * kStageElements;
    device::mbarrier_wait_parity(&full[place.stage], place.phase);
    device::wgmma_fence();
    for (int slice = 0; slice < kPanel / kWgmmaK; ++slice) multiply(rC, s, s + kBlockM * kPanel, slice, adds || slice > 0);
    device::wgmma_commit_group();
  };
  const auto give_back = [&](int i) {
    if (threadIdx.x % 32 == 0) device::mbarrier_arrive(&empty[RingPlace<kStages>(i).stage]);
  };

  if (threadIdx.x / 32 == kWarpgroup / 32) {
    if (threadIdx.x % 32 == 0) {
      // >>> Your turn (1): copy all tiles along k, of all tiles of C that are this block's.
      int i = 0;
      for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
        for (int tile_k = 0; tile_k < tiles_k; ++tile_k) copy(i++, tile, tile_k);
      }
      // <<<
    }
    return;
  }

  // >>> Your turn (2): multiply the same tiles, give back each stage, store each tile of C.
  int i = 0;
  for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
    for (int tile_k = 0; tile_k < tiles_k; ++tile_k, ++i) {
      start_products(i, tile_k > 0);
      device::wgmma_wait_group<1>();
      if (tile_k > 0) give_back(i - 1);
    }
    device::wgmma_wait_group<0>();
    give_back(i - 1);  // the next tile of C wants this stage, too
    store(C, rC, first_row(tile), first_col(tile));
  }
  // <<<
}

/// C = A · B by `blocks` blocks, or by fewer where C has fewer tiles. Rows of A and B begin at multiples of 16 bytes.
void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C, int blocks) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kBlockM) * ceil_div<int64_t>(C.cols, kBlockN);
  device::launch(gemm_kernel, std::min(gemm::grid_size(tiles), static_cast<unsigned>(blocks)), kThreads, kStages * kStageBytes,
                 panel_map(A, Contiguous::kK), panel_map(B.transposed(), Contiguous::kMN), C,
                 static_cast<int>(ceil_div<int64_t>(A.cols, kPanel)), static_cast<int>(tiles));
}

}  // namespace exercise

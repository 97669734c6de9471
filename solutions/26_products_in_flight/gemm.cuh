/// @file
/// Exercise 26: products in flight. While one tile is multiplied, the next products are started and the stage before is given back.
#pragma once

#include "common/device/learnt/wgmma_slice.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Contiguous, device::Major, device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;
using learnt::kPanel, learnt::kWarpgroup, learnt::kWgmmaK, learnt::panel_map, learnt::RingPlace, learnt::slice_descriptor;

constexpr int kBlockM = 64, kBlockN = 64;                     ///< of C, a block's part: a panel of A and one of B for each 64 of k
constexpr int kStages = 3;                                    ///< of the ring, a panel of A and one of B each
constexpr int kStageElements = (kBlockM + kBlockN) * kPanel;  ///< A's, then B's
constexpr int kStageBytes = kStageElements * 2;
constexpr int kThreads = kWarpgroup + 32;  ///< a warpgroup multiplies, one more warp copies
constexpr int kSlices = kPanel / kWgmmaK;  ///< products of a tile

/// Starts one product: a slice of k of a stage. It runs in the background.
__device__ __forceinline__ void multiply(float (&rC)[kBlockN / 2], const __half* sA, const __half* sB, int slice) {
  device::wgmma_m64k16<__half, kBlockN, Major::kK, Major::kMN>(rC, slice_descriptor<Contiguous::kK>(sA, slice),
                                                               slice_descriptor<Contiguous::kMN>(sB, slice), true);
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

/// One block, kBlockM x kBlockN elements of C.
__global__ __launch_bounds__(kThreads) void gemm_kernel(const __grid_constant__ TensorMap map_a,
                                                        const __grid_constant__ TensorMap map_b, Matrix<float> C, int tiles) {
  __half* const sAB = device::dynamic_smem<__half>();
  __shared__ Mbarrier full[kStages], empty[kStages];  // full: one arrival, and bytes; empty: one of each warp that multiplies
  const int tiles_n = static_cast<int>(ceil_div<int64_t>(C.cols, kBlockN));
  const int m_0 = static_cast<int>(blockIdx.x) / tiles_n * kBlockM, n_0 = static_cast<int>(blockIdx.x) % tiles_n * kBlockN;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      device::mbarrier_init(&full[i], 1);
      device::mbarrier_init(&empty[i], kWarpgroup / 32);
    }
    device::fence_mbarrier_init();
  }
  __syncthreads();

  if (threadIdx.x >= kWarpgroup) {  // copies as far ahead as stages are empty
    for (int tile = 0; tile < tiles && threadIdx.x == kWarpgroup; ++tile) {
      const RingPlace<kStages> place(tile);
      __half* const s = sAB + place.stage * kStageElements;
      device::mbarrier_wait_parity(&empty[place.stage], place.phase ^ 1);
      device::mbarrier_arrive_expect_tx(&full[place.stage], kStageBytes);
      device::cp_async_bulk_tensor_2d(s, &map_a, tile * kPanel, m_0, &full[place.stage]);
      device::cp_async_bulk_tensor_2d(s + kBlockM * kPanel, &map_b, n_0, tile * kPanel, &full[place.stage]);
    }
    return;
  }

  float rC[kBlockN / 2] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    const RingPlace<kStages> place(tile);
    const __half* const sA = sAB + place.stage * kStageElements;
    const __half* const sB = sA + kBlockM * kPanel;
    device::mbarrier_wait_parity(&full[place.stage], place.phase);
    // >>> Your turn (1): start the products of this tile, a group. Wait for those of the tile before, and give back its stage.
    device::wgmma_fence();  // the products come after what threads did to rC
    for (int slice = 0; slice < kSlices; ++slice) multiply(rC, sA, sB, slice);
    device::wgmma_commit_group();
    device::wgmma_wait_group<1>();  // all but this tile's
    if (threadIdx.x % 32 == 0 && tile > 0) device::mbarrier_arrive(&empty[RingPlace<kStages>(tile - 1).stage]);
    // <<<
  }
  // >>> Your turn (2): when may rC be read?
  device::wgmma_wait_group<0>();
  // <<<
  store(C, rC, m_0, n_0);
}

/// C = A · B. All three are row-major; rows of A and B begin at multiples of 16 bytes.
void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kBlockM) * ceil_div<int64_t>(C.cols, kBlockN);
  device::launch(gemm_kernel, gemm::grid_size(tiles), kThreads, kStages * kStageBytes, panel_map(A, Contiguous::kK),
                 panel_map(B.transposed(), Contiguous::kMN), C, static_cast<int>(ceil_div<int64_t>(A.cols, kPanel)));
}

}  // namespace exercise

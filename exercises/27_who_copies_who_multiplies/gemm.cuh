/// @file
/// Exercise 27: who copies, who multiplies. Warpgroups with roles, registers that change hands, arrivals that add up.
#pragma once

#include "common/device/learnt/wgmma_slice.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Contiguous, device::Major, device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;
using learnt::kPanel, learnt::kWarpgroup, learnt::kWgmmaK, learnt::panel_map, learnt::RingPlace, learnt::slice_descriptor;

constexpr int kMultiplying = 2;                               ///< warpgroups, 64 rows of C each; one more copies
constexpr int kThreads = (kMultiplying + 1) * kWarpgroup;     ///< of a block
constexpr int kBlockM = kMultiplying * kPanel;                ///< of C, a block's part: two panels of A for each 64 of k
constexpr int kBlockN = 64;                                   ///< one panel of B
constexpr int kStages = 3;                                    ///< of the ring
constexpr int kStageElements = (kBlockM + kBlockN) * kPanel;  ///< A's, then B's
constexpr int kStageBytes = kStageElements * 2;
constexpr int kAtLaunch = 65536 / kThreads / 8 * 8;  ///< registers of a thread, 168: a block has kThreads times that, and no more

// >>> Your turn (1): registers of a thread that copies, and of one that multiplies, multiples of 8 from 24 to 256. Who copies needs
// few, 24 to 40. The others get what is left, and all together are no more than at the launch.
constexpr int kToCopy = kAtLaunch;      ///< of who copies
constexpr int kToMultiply = kAtLaunch;  ///< of who multiplies
// <<<

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
__global__ __launch_bounds__(kThreads, 1) void gemm_kernel(const __grid_constant__ TensorMap map_a,
                                                           const __grid_constant__ TensorMap map_b, Matrix<float> C, int tiles) {
  __half* const sAB = device::dynamic_smem<__half>();
  __shared__ Mbarrier full[kStages], empty[kStages];
  const int tiles_n = static_cast<int>(ceil_div<int64_t>(C.cols, kBlockN));
  const int m_0 = static_cast<int>(blockIdx.x) / tiles_n * kBlockM, n_0 = static_cast<int>(blockIdx.x) % tiles_n * kBlockN;
  const int warp = static_cast<int>(threadIdx.x) / 32, warpgroup = warp / 4;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      // >>> Your turn (2): how many arrivals end a phase of each?
      device::mbarrier_init(&full[i], 1);
      device::mbarrier_init(&empty[i], 1);
      // <<<
    }
    device::fence_mbarrier_init();
  }
  __syncthreads();

  const auto copy = [&](int tile) {  // waits until its stage is empty, and arrives at full
    const RingPlace<kStages> place(tile);
    __half* const s = sAB + place.stage * kStageElements;
    device::mbarrier_wait_parity(&empty[place.stage], place.phase ^ 1);
    device::mbarrier_arrive_expect_tx(&full[place.stage], kStageBytes);
    for (int i = 0; i < kMultiplying; ++i)
      device::cp_async_bulk_tensor_2d(s + i * kPanel * kPanel, &map_a, tile * kPanel, m_0 + i * kPanel, &full[place.stage]);
    device::cp_async_bulk_tensor_2d(s + kBlockM * kPanel, &map_b, n_0, tile * kPanel, &full[place.stage]);
  };
  float rC[kBlockN / 2] = {};
  const auto start_products = [&](int stage) {  // of this warpgroup's panel of A and the one of B: a group
    const __half* const s = sAB + stage * kStageElements;
    device::wgmma_fence();
    for (int slice = 0; slice < kPanel / kWgmmaK; ++slice)
      multiply(rC, s + warpgroup * kPanel * kPanel, s + kBlockM * kPanel, slice);
    device::wgmma_commit_group();
  };

  // >>> Your turn (3): the last warpgroup gives registers back, and one of its threads copies all tiles. The others get them, wait
  // for each tile, start its products, wait for the products of the tile before and give its stage back.
  if (warpgroup == kMultiplying) return;
  // <<<
  store(C, rC, m_0 + warpgroup * kPanel, n_0);
}

/// C = A · B. All three are row-major; rows of A and B begin at multiples of 16 bytes.
void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kBlockM) * ceil_div<int64_t>(C.cols, kBlockN);
  device::launch(gemm_kernel, gemm::grid_size(tiles), kThreads, kStages * kStageBytes, panel_map(A, Contiguous::kK),
                 panel_map(B.transposed(), Contiguous::kMN), C, static_cast<int>(ceil_div<int64_t>(A.cols, kPanel)));
}

}  // namespace exercise

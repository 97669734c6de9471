/// @file
/// Exercise 31: two blocks, one below the other, need the same tiles of B. Each is copied once, to both.
#pragma once

#include "common/device/bulk_copy.cuh"
#include "common/device/cluster.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;

constexpr int kBlocks = 2;                               ///< of a cluster
constexpr int kBlockM = 16, kBlockN = 32, kBlockK = 16;  ///< a block's tile of C, and steps along k
constexpr int kStages = 2;                               ///< of the ring
constexpr int kWarps = 4;                                ///< that multiply; one more copies
constexpr int kThreads = 32 * (kWarps + 1);
constexpr int kStageBytes = (kBlockM + kBlockN) * kBlockK * int{sizeof(float)};  ///< that come to a stage

/// Adds to the thread's four elements of C, which are neighbours in a row.
__device__ __forceinline__ void multiply(float (&rC)[4], const float (&sA)[kBlockM][kBlockK], const float (&sB)[kBlockK][kBlockN]) {
  for (int k = 0; k < kBlockK; ++k) {
    for (int i = 0; i < 4; ++i) {
      rC[i] += sA[threadIdx.x / 8][k] * sB[k][threadIdx.x % 8 * 4 + i];
    }
  }
}

/// One block, one tile of C. The two blocks of a cluster have tiles one below the other: other rows of A, the same columns of B.
__global__ void gemm_kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, Matrix<float> C,
                            int slices) {
  alignas(128) __shared__ float sA[kStages][kBlockM][kBlockK], sB[kStages][kBlockK][kBlockN];
  __shared__ Mbarrier full[kStages], empty[kStages];
  const int rank = static_cast<int>(device::cluster_ctarank()), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row_0 = static_cast<int>(blockIdx.x) * kBlockM, col_0 = static_cast<int>(blockIdx.y) * kBlockN;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      device::mbarrier_init(&full[i], 1);
      // >>> Your turn: how many warps say that they have read a stage, before anything is copied there?
      device::mbarrier_init(&empty[i], kWarps);
      // <<<
    }
    device::fence_mbarrier_init();
  }
  // >>> Your turn: who has to have come here before anybody uses these barriers?
  __syncthreads();
  // <<<

  if (warp == kWarps) {
    if (device::elect_sync()) {
      for (int slice = 0; slice < slices; ++slice) {
        const int stage = slice % kStages, phase = slice / kStages % 2;
        device::mbarrier_wait_parity(&empty[stage], phase ^ 1);
        device::mbarrier_arrive_expect_tx(&full[stage], kStageBytes);
        device::cp_async_bulk_tensor_2d(sA[stage], &map_a, slice * kBlockK, row_0, &full[stage]);
        // >>> Your turn: B's box comes to both blocks, and is copied once. The blocks take turns at it.
        device::cp_async_bulk_tensor_2d(sB[stage], &map_b, col_0, slice * kBlockK, &full[stage]);
        // <<<
      }
    }
  } else {
    float rC[4] = {};
    for (int slice = 0; slice < slices; ++slice) {
      const int stage = slice % kStages, phase = slice / kStages % 2;
      device::mbarrier_wait_parity(&full[stage], phase);
      multiply(rC, sA[stage], sB[stage]);
      // >>> Your turn: this warp has read the stage. Who is to know?
      __syncwarp();
      if (lane == 0) {
        device::mbarrier_arrive(&empty[stage]);
      }
      // <<<
    }
    const int64_t row = row_0 + threadIdx.x / 8, col = col_0 + threadIdx.x % 8 * 4;
    for (int i = 0; i < 4; ++i) {
      if (row < C.rows && col + i < C.cols) {
        *C.at(row, col + i) = rC[i];
      }
    }
  }
  // >>> Your turn: a block's shared memory ends with it. Who may still use it?
  // <<<
}

/// C = A · B. All three are row-major; rows of A and of B begin at multiples of 16 bytes.
void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  const auto map_of = [](Matrix<const float> m, unsigned rows, unsigned cols) {
    return device::make_tensor_map<float>(
        {m.data, static_cast<uint64_t>(m.rows), static_cast<uint64_t>(m.cols), static_cast<uint64_t>(m.row_stride), rows, cols});
  };
  const dim3 grid(kBlocks * gemm::grid_size(ceil_div<int64_t>(C.rows, kBlocks * kBlockM)),
                  gemm::grid_size(ceil_div<int64_t>(C.cols, kBlockN)));
  device::launch_clusters(gemm_kernel, grid, kThreads, dim3(kBlocks), 0, map_of(A, kBlockM, kBlockK), map_of(B, kBlockK, kBlockN),
                          C, static_cast<int>(ceil_div<int64_t>(A.cols, kBlockK)));
}

}  // namespace exercise

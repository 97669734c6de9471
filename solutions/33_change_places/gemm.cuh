/// @file
/// Exercise 33: A has few rows, and wgmma takes 64. So A and B change places.
#pragma once

#include "common/device/bulk_copy.cuh"
#include "common/device/wgmma.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;

constexpr int kThreads = 128;  ///< of a block: a warpgroup
constexpr int kBlockK = 64;    ///< steps along k: 128 bytes, as wide as the swizzle
// >>> Your turn: which of wgmma's sizes is 64, and which may be 8? The other hole and the sums of a thread follow from it.
constexpr int kBlockM = 8;          ///< rows of C of a block
constexpr int kBlockN = 64;         ///< columns of C
constexpr int kSums = kBlockM / 2;  ///< of C in a thread
// <<<

/// The descriptor of kBlockM or kBlockN rows, 16 of k each, from number `k` on.
__device__ __forceinline__ uint64_t descriptor(const __half (*s)[kBlockK], int k) {
  return device::wgmma_descriptor(&s[0][k], device::Swizzle::k128, 0, 8 * 128);
}

/// One block, one tile of C. Rows of the tile of B are columns of B, which lie along k as A's rows do.
__global__ void gemm_kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, Matrix<float> C,
                            int slices) {
  alignas(1024) __shared__ __half sA[kBlockM][kBlockK], sB[kBlockN][kBlockK];
  __shared__ Mbarrier full;
  const int row_0 = static_cast<int>(blockIdx.y) * kBlockM, col_0 = static_cast<int>(blockIdx.x) * kBlockN;
  if (threadIdx.x == 0) {
    device::mbarrier_init(&full, 1);
    device::fence_mbarrier_init();
  }
  __syncthreads();  // the barrier exists

  float rC[kSums] = {};
  for (int slice = 0; slice < slices; ++slice) {
    if (threadIdx.x == 0) {
      device::mbarrier_arrive_expect_tx(&full, sizeof(sA) + sizeof(sB));
      device::cp_async_bulk_tensor_2d(sA, &map_a, slice * kBlockK, row_0, &full);
      device::cp_async_bulk_tensor_2d(sB, &map_b, slice * kBlockK, col_0, &full);
    }
    device::mbarrier_wait_parity(&full, slice % 2);
    device::wgmma_fence();
    for (int k = 0; k < kBlockK; k += 16) {
      // >>> Your turn: the operand with 64 rows comes first, and the number behind __half is how many rows the other one has.
      device::wgmma_m64k16<__half, kBlockM>(rC, descriptor(sB, k), descriptor(sA, k), true);
      // <<<
    }
    device::wgmma_commit_group();
    device::wgmma_wait_group<0>();
    __syncthreads();  // all warps have multiplied before the next copies
  }

  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;  // as above wgmma_m64k16
  for (int i = 0; i < kSums; ++i) {
    // >>> Your turn: which row and which column of C is sum i?
    const int64_t row = row_0 + i / 4 * 8 + 2 * t + i % 2, col = col_0 + 16 * warp + g + i / 2 % 2 * 8;
    // <<<
    if (row < C.rows && col < C.cols) {
      *C.at(row, col) = rC[i];
    }
  }
}

/// C = A · B. A and C are row-major, B column-major; A's rows and B's columns begin at multiples of 16 bytes.
void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C) {
  const auto map_of = [](Matrix<const __half> m, unsigned rows) {
    return device::make_tensor_map<__half>({m.data, static_cast<uint64_t>(m.rows), static_cast<uint64_t>(m.cols),
                                            static_cast<uint64_t>(m.row_stride), rows, kBlockK, device::Swizzle::k128});
  };
  const dim3 grid(gemm::grid_size(ceil_div<int64_t>(C.cols, kBlockN)), gemm::grid_size(ceil_div<int64_t>(C.rows, kBlockM)));
  device::launch(gemm_kernel, grid, kThreads, 0, map_of(A, kBlockM), map_of(B.transposed(), kBlockN), C,
                 static_cast<int>(ceil_div<int64_t>(A.cols, kBlockK)));
}

}  // namespace exercise

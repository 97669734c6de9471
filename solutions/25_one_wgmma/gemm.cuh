/// @file
/// Exercise 25: one wgmma. Four warps multiply out of shared memory; two descriptors say how A and B lie there.
#pragma once

#include "common/device/bulk_copy.cuh"
#include "common/device/wgmma.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Major, device::Mbarrier, device::Swizzle, device::TensorMap, gemm::ceil_div, gemm::Matrix;

constexpr int kPanel = 64;     ///< rows and columns of a panel: what one copy brings. A row has 128 bytes, as wide as the swizzle
constexpr int kBlockM = 64;    ///< of C, a block's part: one panel of A
constexpr int kBlockN = 128;   ///< two panels of B, side by side in B, one behind the other in shared memory
constexpr int kSlice = 16;     ///< of k, in one wgmma: four slices are a panel
constexpr int kThreads = 128;  ///< a warpgroup

/// Of columns `slice` * kSlice to that + 15 of the panel of A. Its rows run along k.
__device__ __forceinline__ uint64_t descriptor_of_a(const __half* sA, int slice) {
  // >>> Your turn (1): where does the slice begin, how is it swizzled, how far is it to the next pattern of 8 rows?
  return device::wgmma_descriptor(sA + slice * kSlice, Swizzle::k128, 0, 8 * 128);
  // <<<
}
/// Of rows `slice` * kSlice to that + 15 of the two panels of B. Their rows run along n.
__device__ __forceinline__ uint64_t descriptor_of_b(const __half* sB, int slice) {
  // >>> Your turn (2): the same, and how far is it to the next panel?
  return device::wgmma_descriptor(sB + slice * kSlice * kPanel, Swizzle::k128, kPanel * kPanel * sizeof(__half), 8 * 128);
  // <<<
}

/// Stores a thread's sums, as wgmma leaves them.
__device__ __forceinline__ void store(Matrix<float> C, const float (&rC)[kBlockN / 2], int m_0, int n_0) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = m_0 + static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4, col = n_0 + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < kBlockN / 2; ++i) {
    const int r = row + i / 2 % 2 * 8, c = col + i / 4 * 8 + i % 2;
    if (r < C.rows && c < C.cols) *C.at(r, c) = rC[i];
  }
}

/// One block, kBlockM x kBlockN elements of C, panel by panel along k.
__global__ void gemm_kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, Matrix<float> C,
                            int tiles_k) {
  alignas(1024) __shared__ __half sA[kPanel * kPanel];
  alignas(1024) __shared__ __half sB[2 * kPanel * kPanel];
  __shared__ Mbarrier full;
  const int tiles_n = static_cast<int>(ceil_div<int64_t>(C.cols, kBlockN));
  const int m_0 = static_cast<int>(blockIdx.x) / tiles_n * kBlockM, n_0 = static_cast<int>(blockIdx.x) % tiles_n * kBlockN;
  if (threadIdx.x == 0) {
    device::mbarrier_init(&full, 1);
    device::fence_mbarrier_init();
  }
  __syncthreads();

  float rC[kBlockN / 2] = {};
  for (int tile_k = 0; tile_k < tiles_k; ++tile_k) {
    if (threadIdx.x == 0) {
      device::mbarrier_arrive_expect_tx(&full, sizeof(sA) + sizeof(sB));
      device::cp_async_bulk_tensor_2d(sA, &map_a, tile_k * kPanel, m_0, &full);
      device::cp_async_bulk_tensor_2d(sB, &map_b, n_0, tile_k * kPanel, &full);
      device::cp_async_bulk_tensor_2d(sB + kPanel * kPanel, &map_b, n_0 + kPanel, tile_k * kPanel, &full);
    }
    device::mbarrier_wait_parity(&full, static_cast<uint32_t>(tile_k % 2));
    device::wgmma_fence();
    // >>> Your turn (3): a wgmma for each slice of k adds to rC. Which of A and B is K-major, which MN-major?
#pragma unroll
    for (int slice = 0; slice < kPanel / kSlice; ++slice) {
      const uint64_t a = descriptor_of_a(sA, slice), b = descriptor_of_b(sB, slice);
      device::wgmma_m64k16<__half, kBlockN, Major::kK, Major::kMN>(rC, a, b, true);
    }
    // <<<
    device::wgmma_commit_group();
    device::wgmma_wait_group<0>();
    __syncthreads();  // all have multiplied before the next panels come
  }
  store(C, rC, m_0, n_0);
}

/// The map of `matrix`, in panels.
TensorMap panel_map(Matrix<const __half> matrix) {
  return device::make_tensor_map<__half>({.data = matrix.data,
                                          .rows = static_cast<std::uint64_t>(matrix.rows),
                                          .columns = static_cast<std::uint64_t>(matrix.cols),
                                          .row_stride = static_cast<std::uint64_t>(matrix.row_stride),
                                          .box_rows = kPanel,
                                          .box_columns = kPanel,
                                          .swizzle = Swizzle::k128});
}

/// C = A · B. All three are row-major; rows of A and B begin at multiples of 16 bytes.
void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kBlockM) * ceil_div<int64_t>(C.cols, kBlockN);
  device::launch(gemm_kernel, gemm::grid_size(tiles), kThreads, 0, panel_map(A), panel_map(B), C,
                 static_cast<int>(ceil_div<int64_t>(A.cols, kPanel)));
}

}  // namespace exercise

/// @file
/// Exercise 35: three pipelines of Hopper, each with one mistake. The report says where it shows; you say what is wrong.
#pragma once

#include "common/device/bulk_copy.cuh"
#include "common/device/cluster.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;

constexpr int kWarps = 4;                            ///< that compute, in the first two kernels; one more copies
constexpr int kThreads = 32 * (kWarps + 1);          ///< of a block of theirs
constexpr int kStages = 2;                           ///< of their rings
constexpr int kChunk = 32 * kWarps;                  ///< elements of a row that are copied at once
constexpr int kChunkBytes = kChunk * sizeof(float);  ///< bytes of them

/// One thread sets up a ring. @param readers arrivals that make a stage empty
__device__ __forceinline__ void make_ring(Mbarrier* full, Mbarrier* empty, int readers) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      device::mbarrier_init(&full[i], 1);
      device::mbarrier_init(&empty[i], readers);
    }
    device::fence_mbarrier_init();
  }
  __syncthreads();
}

/// One block, one row of A: a ring of chunks.
__global__ void row_sums_kernel(Matrix<const float> A, float* sums) {
  alignas(128) __shared__ float s[kStages][kChunk];
  __shared__ float sSums[kChunk];
  __shared__ Mbarrier full[kStages], empty[kStages];
  make_ring(full, empty, kWarps);
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32,
            chunks = static_cast<int>(ceil_div<int64_t>(A.cols, kChunk));
  if (warp == kWarps) {
    for (int chunk = 0; chunk < chunks && lane == 0; ++chunk) {
      const int stage = chunk % kStages, phase = chunk / kStages % 2;
      const int64_t left = (A.cols - chunk * kChunk) * int64_t{sizeof(float)};
      const int bytes = left < kChunkBytes ? static_cast<int>(left) : kChunkBytes;
      device::mbarrier_wait_parity(&empty[stage], phase ^ 1);
      device::mbarrier_arrive_expect_tx(&full[stage], bytes);
      device::cp_async_bulk(s[stage], A.at(blockIdx.x, chunk * kChunk), bytes, &full[stage]);
    }
    return;
  }
  float rSum = 0;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const int stage = chunk % kStages, phase = chunk / kStages % 2;
    const bool exists = chunk * kChunk + thread < A.cols;
    device::mbarrier_wait_parity(&full[stage], phase);
    // >>> Mistake 1 shows here: a chunk is added, and its stage given back.
    __syncwarp();
    if (lane == 0) {
      device::mbarrier_arrive(&empty[stage]);
    }
    rSum += exists ? s[stage][thread] : 0;
    // <<<
  }
  sSums[thread] = rSum;
  device::barrier_sync(1, kChunk);
  for (int i = 1; i < kChunk && thread == 0; ++i) {
    rSum += sSums[i];
  }
  if (thread == 0) {
    sums[blockIdx.x] = rSum;
  }
}

/// sums[i] = sum of row i of A. Rows have a multiple of 4 elements, and begin at multiples of 16 bytes.
void row_sums(Matrix<const float> A, float* sums) {
  device::launch(row_sums_kernel, gemm::grid_size(A.rows), kThreads, 0, A, sums);
}

constexpr int kBlockM = 16 * kWarps, kBlockN = 32, kBlockK = 16;  ///< a block's tile of C, and steps along k

/// One block, one tile of C: a ring of tiles of A and B. A warp has 16 rows, a lane one column of them.
__global__ void gemm_kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, Matrix<float> C,
                            int slices) {
  alignas(128) __shared__ float sA[kStages][kBlockM][kBlockK], sB[kStages][kBlockK][kBlockN];
  __shared__ Mbarrier full[kStages], empty[kStages];
  make_ring(full, empty, kWarps);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row_0 = static_cast<int>(blockIdx.y) * kBlockM, col_0 = static_cast<int>(blockIdx.x) * kBlockN, row = row_0 + 16 * warp;
  if (warp == kWarps) {
    for (int slice = 0; slice < slices && lane == 0; ++slice) {
      const int stage = slice % kStages, phase = slice / kStages % 2;
      device::mbarrier_wait_parity(&empty[stage], phase ^ 1);
      device::mbarrier_arrive_expect_tx(&full[stage], sizeof(sA[0]) + sizeof(sB[0]));
      device::cp_async_bulk_tensor_2d(sA[stage], &map_a, slice * kBlockK, row_0, &full[stage]);
      device::cp_async_bulk_tensor_2d(sB[stage], &map_b, col_0, slice * kBlockK, &full[stage]);
    }
    return;
  }
  float rC[16] = {};
  for (int slice = 0; slice < slices; ++slice) {
    const int stage = slice % kStages, phase = slice / kStages % 2;
    // >>> Mistake 2 shows here: warps whose rows lie below C have nothing to compute.
    if (row >= C.rows) break;
    device::mbarrier_wait_parity(&full[stage], phase);
    for (int k = 0; k < kBlockK; ++k) {
      for (int i = 0; i < 16; ++i) {
        rC[i] += sA[stage][16 * warp + i][k] * sB[stage][k][lane];
      }
    }
    __syncwarp();
    if (lane == 0) {
      device::mbarrier_arrive(&empty[stage]);
    }
    // <<<
  }
  for (int i = 0; i < 16; ++i) {
    if (row + i < C.rows && col_0 + lane < C.cols) {
      *C.at(row + i, col_0 + lane) = rC[i];
    }
  }
}

/// C = A · B. All three are row-major; rows of A and of B begin at multiples of 16 bytes.
void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  const auto map_of = [](Matrix<const float> m, unsigned rows, unsigned cols) {
    return device::make_tensor_map<float>(
        {m.data, static_cast<uint64_t>(m.rows), static_cast<uint64_t>(m.cols), static_cast<uint64_t>(m.row_stride), rows, cols});
  };
  const dim3 grid(gemm::grid_size(ceil_div<int64_t>(C.cols, kBlockN)), gemm::grid_size(ceil_div<int64_t>(C.rows, kBlockM)));
  device::launch(gemm_kernel, grid, kThreads, 0, map_of(A, kBlockM, kBlockK), map_of(B, kBlockK, kBlockN), C,
                 static_cast<int>(ceil_div<int64_t>(A.cols, kBlockK)));
}

constexpr int kHalf = 128;  ///< elements of a block of reverse_kernel, and its threads

/// One cluster of two blocks, one segment. Each block copies one half, and stores what belongs to the other one's place.
__global__ void reverse_kernel(const float* from, float* to) {
  alignas(128) __shared__ float sHalf[kHalf];
  __shared__ Mbarrier full;
  const int rank = static_cast<int>(device::cluster_ctarank()), thread = threadIdx.x;
  if (thread == 0) {
    device::mbarrier_init(&full, 1);
    device::fence_mbarrier_init();
    device::mbarrier_arrive_expect_tx(&full, sizeof(sHalf));
    device::cp_async_bulk(sHalf, from + int64_t{blockIdx.x} * kHalf, sizeof(sHalf), &full);
  }
  __syncthreads();
  // >>> Mistake 3 shows here: both halves have to be there before they are read.
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();
  device::mbarrier_wait_parity(&full, 0);
  // <<<
  to[int64_t{blockIdx.x} * kHalf + thread] = *device::mapa(&sHalf[kHalf - 1 - thread], 1 - rank);
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();  // the other block has read what is here
}

/// Reverses each of `count` segments of 2 * kHalf elements.
void reverse_segments(const float* from, float* to, int count) {
  device::launch_clusters(reverse_kernel, 2 * count, kHalf, dim3(2), 0, from, to);
}

}  // namespace exercise

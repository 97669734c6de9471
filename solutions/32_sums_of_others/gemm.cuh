/// @file
/// Exercise 32: the blocks of a cluster share a sum. It is sent to one of them, and the others fetch the total there.
#pragma once

#include "common/device/cluster.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Floats, device::Mbarrier, gemm::ceil_div, gemm::Matrix;

constexpr int kBlocks = 4;     ///< of a cluster: each has a share of the rows
constexpr int kThreads = 128;  ///< of a block, a column each

/// One cluster, kThreads columns. Each block adds up its share of their rows, and later divides its share by the totals.
__global__ void normalise_kernel(Matrix<const float> A, Matrix<float> C) {
  __shared__ Floats<1> sSums[kBlocks - 1][kThreads];  // in the block of rank 0: what the others have sent
  __shared__ float sTotal[kThreads];                  // in the block of rank 0
  __shared__ Mbarrier all_sent;                       // in the block of rank 0
  const int rank = static_cast<int>(device::cluster_ctarank()), thread = threadIdx.x;
  const int64_t col = int64_t{blockIdx.x / kBlocks} * kThreads + thread;
  const int64_t row_begin = A.rows * rank / kBlocks, row_end = A.rows * (rank + 1) / kBlocks;
  const bool exists = col < A.cols;

  if (rank == 0 && thread == 0) {
    device::mbarrier_init(&all_sent, 1);
    device::fence_mbarrier_init();
    // >>> Your turn: how many bytes will the other blocks send?
    device::mbarrier_arrive_expect_tx(&all_sent, sizeof(sSums));
    // <<<
  }
  // >>> Your turn: nobody sends before rank 0 has its barrier.
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();
  // <<<

  float rSum = 0;
  for (int64_t row = row_begin; row < row_end && exists; ++row) {
    rSum += *A.at(row, col);
  }
  // >>> Your turn: send the sum to a place of its own in rank 0. There, wait for all of them, and add them up.
  if (rank > 0) {
    device::st_async(&sSums[rank - 1][thread], {rSum}, &all_sent, 0);
  } else {
    device::mbarrier_wait_parity_acquire_cluster(&all_sent, 0);
    for (int other = 0; other < kBlocks - 1; ++other) {
      rSum += sSums[other][thread].x[0];
    }
    sTotal[thread] = rSum;
  }
  // <<<

  // >>> Your turn: when may the others fetch the total from rank 0, and from which address?
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();
  const float rTotal = *device::mapa(&sTotal[thread], 0);
  // <<<
  for (int64_t row = row_begin; row < row_end && exists; ++row) {
    *C.at(row, col) = *A.at(row, col) / rTotal;
  }
  // >>> Your turn: rank 0's shared memory ends with it. Who may still read there?
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();
  // <<<
}

/// C = A, each column divided by its sum.
void normalise(Matrix<const float> A, Matrix<float> C) {
  const unsigned blocks = kBlocks * gemm::grid_size(ceil_div<int64_t>(A.cols, kThreads));
  device::launch_clusters(normalise_kernel, blocks, kThreads, dim3(kBlocks), 0, A, C);
}

}  // namespace exercise

/// @file
/// Exercise 09: a ring of stages. Tiles are copied in the background while others are multiplied.
#pragma once

#include <stdexcept>

#include "common/device/ptx.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using gemm::ceil_div, gemm::Matrix;

constexpr int kTile = 16;  ///< rows and columns of a block's tile of C, and of the tiles of A and B

/// How many groups of copies may still be under way when a tile's copies have to be there. One group is a tile of A and one of B.
/// At that moment num_stages - 1 groups have been started that nobody has waited for.
constexpr int groups_left(int num_stages) {
  // >>> Your turn (1): the groups are done in the order in which they were started. The oldest one is needed now.
  return num_stages - 2;
  // <<<
}

/// Starts copying the thread's element of a tile; zero where the matrix has ended.
__device__ __forceinline__ void copy_element(float* s, Matrix<const float> matrix, int64_t row, int64_t col) {
  const bool exists = row < matrix.rows && col < matrix.cols;
  device::cp_async_ca_4(s, exists ? matrix.at(row, col) : matrix.data, exists ? 4 : 0);
}

/// One thread, one element of C.
template <int kNumStages>
__global__ void gemm_kernel(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  __shared__ float sA[kNumStages][kTile][kTile];  // (stage, m, k)
  __shared__ float sB[kNumStages][kTile][kTile];  // (stage, k, n)
  constexpr int kAhead = kNumStages - 1;          // tiles on their way while one is multiplied
  const int thread_m = threadIdx.y, thread_n = threadIdx.x;
  const int64_t row = int64_t{blockIdx.y} * kTile + thread_m, col = int64_t{blockIdx.x} * kTile + thread_n;
  const int64_t tiles = ceil_div<int64_t>(A.cols, kTile);
  // Starts copying a tile of A and one of B, which are a group. Past the end of k the group is empty.
  const auto copy = [&](int64_t tile) {
    const int stage = static_cast<int>(tile % kNumStages);
    if (tile < tiles) {
      copy_element(&sA[stage][thread_m][thread_n], A, row, tile * kTile + thread_n);
      copy_element(&sB[stage][thread_m][thread_n], B, tile * kTile + thread_m, col);
    }
    device::cp_async_commit_group();
  };

  // >>> Your turn (2): start copying the first tiles, so that kAhead groups are under way.
  for (int tile = 0; tile < kAhead; ++tile) {
    copy(tile);
  }
  // <<<
  float rC = 0;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    device::cp_async_wait_group<groups_left(kNumStages)>();
    // >>> Your turn (3): this thread's copies of the tile are there. Which tile is next, and who still reads the stage it goes to?
    __syncthreads();      // everybody's copies of this tile are there, and everybody has read the tile before
    copy(tile + kAhead);  // to the stage of the tile before
    // <<<
    const int stage = static_cast<int>(tile % kNumStages);
    for (int k = 0; k < kTile; ++k) {
      rC += sA[stage][thread_m][k] * sB[stage][k][thread_n];
    }
  }
  if (row < C.rows && col < C.cols) {
    *C.at(row, col) = rC;
  }
}

/// What the kernel waits for.
int groups_left_under_way(int num_stages) { return groups_left(num_stages); }

/// C = A · B. All three are row-major, their rows may be longer than what they hold. num_stages is 2, 3, 4 or 5.
void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C, int num_stages) {
  const dim3 grid(gemm::grid_size(ceil_div<int64_t>(C.cols, kTile)), gemm::grid_size(ceil_div<int64_t>(C.rows, kTile)));
  const auto launch = [&](auto* kernel) { device::launch(kernel, grid, dim3(kTile, kTile), 0, A, B, C); };
  switch (num_stages) {
    case 2: return launch(gemm_kernel<2>);
    case 3: return launch(gemm_kernel<3>);
    case 4: return launch(gemm_kernel<4>);
    case 5: return launch(gemm_kernel<5>);
    default: throw std::invalid_argument("2 to 5 stages");
  }
}

}  // namespace exercise

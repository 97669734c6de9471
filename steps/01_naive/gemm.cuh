/// @file
/// Step 01: one thread computes one element of C.
#pragma once

#include "common/device/device.cuh"
#include "common/device/element.cuh"
#include "common/gemm/gemm.h"

namespace step_01_naive {

using gemm::ceil_div, gemm::Matrix;

/// Which way the 32 neighbouring threads of a warp lie in C. The arithmetic is the same; the memory system sees another program.
enum class Mapping { kCoalesced, kSwapped };

/// What a block computes of C, and which thread which element.
template <Mapping mapping>
struct Tile {
  static constexpr const char* kName = mapping == Mapping::kCoalesced ? "coalesced" : "swapped";
  // The part of C that a block computes; wide in the direction in which its warps lie.
  static constexpr int kBlockM = mapping == Mapping::kCoalesced ? 4 : 128;
  static constexpr int kBlockN = mapping == Mapping::kCoalesced ? 128 : 4;
  static constexpr int kThreads = kBlockM * kBlockN;

  /// Position of a thread's element in the block's part of C.
  static __device__ int row(int thread) { return mapping == Mapping::kCoalesced ? thread / kBlockN : thread % kBlockM; }
  /// The same along n.
  static __device__ int col(int thread) { return mapping == Mapping::kCoalesced ? thread % kBlockN : thread / kBlockM; }
};

/// One thread, one element of C: Tile::kThreads threads a block, one block for each kBlockM x kBlockN elements.
template <class Tile, class In, class Out, class Epilogue>
__global__ __launch_bounds__(Tile::kThreads) void gemm_kernel(Matrix<const In> A, Matrix<const In> B, Matrix<Out> C,
                                                              Epilogue epilogue) {
  // 1. Which element is mine? The blocks go down the columns of C: those that run together read the same part of B.
  const int64_t tiles_m = ceil_div<int64_t>(C.rows, Tile::kBlockM);
  const int64_t row = blockIdx.x % tiles_m * Tile::kBlockM + Tile::row(threadIdx.x);
  const int64_t col = blockIdx.x / tiles_m * Tile::kBlockN + Tile::col(threadIdx.x);
  if (row >= C.rows || col >= C.cols) return;  // blocks at the edge stick out of C

  // 2. Main loop: a row of A times a column of B.
  float rC = 0;
#pragma unroll 8  // lets eight pairs of loads be under way at a time
  for (int64_t k = 0; k < A.cols; ++k) rC += device::to_float(*A.at(row, k)) * device::to_float(*B.at(k, col));

  // 3. Epilogue
  *C.at(row, col) = device::from_float<Out>(epilogue(rC));
}

/// As the contract in common/gemm/gemm.h says. @throws gemm::Refused
template <class Tile, class In, class Out, class Epilogue>
void gemm(Matrix<const In> A, Matrix<const In> B, Matrix<Out> C, Epilogue epilogue) {
  gemm::check(A, B, C);
  const int64_t tiles = ceil_div<int64_t>(C.rows, Tile::kBlockM) * ceil_div<int64_t>(C.cols, Tile::kBlockN);
  if (tiles == 0) return;
  device::launch(gemm_kernel<Tile, In, Out, Epilogue>, gemm::grid_size(tiles), Tile::kThreads, 0, A, B, C, epilogue);
}

using Inputs = gemm::TypeList<float, __half, __nv_bfloat16>;
/// What the step ships, the best one first.
using Tiles = gemm::TypeList<Tile<Mapping::kCoalesced>, Tile<Mapping::kSwapped>>;
using MoreTiles = gemm::TypeList<>;

}  // namespace step_01_naive

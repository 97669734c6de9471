/// @file
/// Exercise 19: a long sum in parts, by blocks that work at the same time.
#pragma once

#include <algorithm>

#include "common/device/element.cuh"
#include "common/device/learnt/fragment_load.cuh"
#include "common/device/learnt/tile_copy.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Contiguous, device::kFragment, device::Operand, gemm::ceil_div, gemm::Matrix;
using learnt::copy_tile, learnt::FragmentLoad;

/// A block's part of C: kBlockM x kBlockN elements, in steps of kBlockK along k.
constexpr int kBlockM = 32;
constexpr int kBlockN = 64;             ///< the same along n
constexpr int kBlockK = 64;             ///< the same along k
constexpr int kWarpN = 32;              ///< columns of a warp; its rows are kFragment
constexpr int kThreads = 128;           ///< of a block: 2 x 2 warps
constexpr int kAddThreads = 256;        ///< of a block that adds parts
constexpr int kBlocksWanted = 4 * 132;  ///< four for each SM of an H200
constexpr int kLeastK = 256;            ///< a part's length along k, at least: a shorter one is not worth the addition

/// A's tiles: rows along k.
using TileA = device::TileLayout<Operand::kA, Contiguous::kK, kBlockM, kBlockK>;
/// B's tiles: rows along k, too.
using TileB = device::TileLayout<Operand::kB, Contiguous::kK, kBlockN, kBlockK>;

/// A part of a sum, as one kernel leaves it to the next.
// >>> Your turn (1): is this type good enough?
using Partial = __half;
// <<<

/// One block, one tile of C, one part of k. Part p of element (row, col) goes to element (p * C.rows + row, col) of `sums`.
__global__ void multiply_kernel(Matrix<const __half> A, Matrix<const __half> B, Matrix<Partial> sums, int parts) {
  alignas(128) __shared__ __half sA[kBlockM * kBlockK];  // (kBlockM, kBlockK)
  alignas(128) __shared__ __half sB[kBlockN * kBlockK];  // (kBlockN, kBlockK)
  const int64_t tiles_n = ceil_div<int64_t>(B.cols, kBlockN), tile = blockIdx.x / parts, part = blockIdx.x % parts;
  const int64_t m_0 = tile / tiles_n * kBlockM, n_0 = tile % tiles_n * kBlockN;
  const int warp = threadIdx.x / 32, warp_m = warp / 2 * kFragment, warp_n = warp % 2 * kWarpN;

  // >>> Your turn (2): this block's part of k, from k_begin to k_end - 1. Both are multiples of kBlockK, or the end of k.
  const int64_t k_begin = 0, k_end = A.cols;
  // <<<

  device::TileSource<TileA, kThreads, __half> gA({A.at(0, k_begin), A.rows, k_end - k_begin, A.row_stride, 1}, m_0);
  device::TileSource<TileB, kThreads, __half> gB({B.at(k_begin, 0), B.cols, k_end - k_begin, B.col_stride, 1}, n_0);
  const FragmentLoad<TileA, 1, __half> fragments_of_a(warp_m);
  const FragmentLoad<TileB, kWarpN / kFragment, __half> fragments_of_b(warp_n);
  float rC[kWarpN / 8][4] = {};
  for (int64_t k_left = k_end - k_begin; k_left > 0; k_left -= kBlockK) {
    copy_tile(gA, sA, k_left);
    copy_tile(gB, sB, k_left);
    device::cp_async_wait_all();
    __syncthreads();  // the tiles are complete
    for (int slice = 0; slice < kBlockK / kFragment; ++slice) {
      uint32_t rA[1][4], rB[kWarpN / kFragment][4];
      fragments_of_a.load(rA, sA, slice);
      fragments_of_b.load(rB, sB, slice);
      for (int j = 0; j < kWarpN / 8; ++j) {
        device::mma_m16n8k16<__half>(rC[j], rA[0], {rB[j / 2][j % 2 * 2], rB[j / 2][j % 2 * 2 + 1]});
      }
    }
    __syncthreads();  // everybody has read the tiles before they are overwritten
  }

  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int i = 0; i < kWarpN / 8 * 4; ++i) {
    const int64_t row = m_0 + warp_m + g + i % 4 / 2 * 8, col = n_0 + warp_n + i / 4 * 8 + 2 * t + i % 2;
    if (row < A.rows && col < B.cols) {
      *sums.at(part * A.rows + row, col) = device::from_float<Partial>(rC[i / 4][i % 4]);
    }
  }
}

/// One thread, one element of C: adds its parts, of which there are sums.rows / C.rows.
__global__ void add_kernel(Matrix<const Partial> sums, Matrix<__half> C) {
  const int64_t i = int64_t{blockIdx.x} * kAddThreads + threadIdx.x, row = i / C.cols, col = i % C.cols;
  if (row >= C.rows) return;
  // >>> Your turn (3): C is the sum of all parts. device::to_float() and device::from_float<__half>() convert.
  *C.at(row, col) = device::from_float<__half>(device::to_float(*sums.at(row, col)));
  // <<<
}

/// C = A · B. A and C are row-major, B is column-major. Rows of A and columns of B begin at multiples of 16 bytes.
void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<__half> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kBlockM) * ceil_div<int64_t>(C.cols, kBlockN);
  const int parts = static_cast<int>(std::max<int64_t>(std::min(kBlocksWanted / tiles, A.cols / kLeastK), 1));
  device::Buffer<Partial> buffer(static_cast<std::size_t>(parts * C.rows * C.cols), "sums");
  const Matrix<Partial> sums = gemm::row_major(buffer.data(), parts * C.rows, C.cols);
  device::launch(multiply_kernel, gemm::grid_size(tiles * parts), kThreads, 0, A, B, sums, parts);
  const Matrix<const Partial> complete = {sums.data, sums.rows, sums.cols, sums.row_stride, sums.col_stride};
  device::launch(add_kernel, gemm::grid_size(ceil_div<int64_t>(C.rows * C.cols, kAddThreads)), kAddThreads, 0, complete, C);
}

}  // namespace exercise

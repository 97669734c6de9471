/// @file
/// Exercise 21: rows that begin anywhere, copied once to where chunks begin.
#pragma once

#include "common/device/element.cuh"
#include "common/device/learnt/fragment_load.cuh"
#include "common/device/learnt/tile_copy.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using device::Contiguous, device::kFragment, device::Operand, gemm::ceil_div, gemm::Matrix;
using learnt::copy_tile, learnt::FragmentLoad;

/// A block's part of C: kBlockM x kBlockN elements, in steps of kBlockK along k.
constexpr int kBlockM = 64;
constexpr int kBlockN = 64;                    ///< the same along n
constexpr int kBlockK = 64;                    ///< the same along k
constexpr int kWarp = 32;                      ///< rows and columns of a warp
constexpr int kFragments = kWarp / kFragment;  ///< a warp's fragments of A, and of B
constexpr int kThreads = 128;                  ///< of a block: 2 x 2 warps
constexpr int kPadThreads = 256;               ///< of a block that pads

/// A's tiles: rows along k.
using TileA = device::TileLayout<Operand::kA, Contiguous::kK, kBlockM, kBlockK>;
/// B's tiles: rows along n.
using TileB = device::TileLayout<Operand::kB, Contiguous::kMN, kBlockN, kBlockK>;

/// Whether columns 0, 8, 16 and so on of each row of B begin at multiples of 16 bytes: then cp.async can copy chunks of them. Of a
/// row behind the last one too: the copies fill a tile, and cp.async of 0 bytes wants an aligned address as well.
bool has_chunks(const Matrix<const __half>& B) {
  // >>> Your turn (1): what does it depend on?
  return B.col_stride == 1;
  // <<<
}

/// How long the rows of a copy of B are that has_chunks().
int64_t padded_cols(const Matrix<const __half>& B) {
  // >>> Your turn (2): at least as long as B's.
  return B.cols;
  // <<<
}

/// One thread, one element of `padded`, a matrix with as many rows as B and longer ones. The multiplication reads all of it.
__global__ void pad_kernel(Matrix<const __half> B, Matrix<__half> padded) {
  const int64_t i = int64_t{blockIdx.x} * kPadThreads + threadIdx.x, row = i / padded.cols, col = i % padded.cols;
  if (row >= padded.rows) return;
  // >>> Your turn (3): and where B has no such element?
  if (col < B.cols) *padded.at(row, col) = *B.at(row, col);
  // <<<
}

/// One block, one tile of C. B has_chunks(), and may have more columns than C.
__global__ void multiply_kernel(Matrix<const __half> A, Matrix<const __half> B, Matrix<__half> C) {
  alignas(128) __shared__ __half sA[kBlockM * kBlockK];  // (kBlockM, kBlockK)
  alignas(128) __shared__ __half sB[kBlockK * kBlockN];  // (kBlockK, kBlockN)
  const int64_t tiles_n = ceil_div<int64_t>(C.cols, kBlockN);
  const int64_t m_0 = blockIdx.x / tiles_n * kBlockM, n_0 = blockIdx.x % tiles_n * kBlockN;
  const int warp = threadIdx.x / 32, warp_m = warp / 2 * kWarp, warp_n = warp % 2 * kWarp;

  device::TileSource<TileA, kThreads, __half> gA(A, m_0);
  device::TileSource<TileB, kThreads, __half> gB(B.transposed(), n_0);
  const FragmentLoad<TileA, kFragments, __half> fragments_of_a(warp_m);
  const FragmentLoad<TileB, kFragments, __half> fragments_of_b(warp_n);
  float rC[kFragments][2 * kFragments][4] = {};
  for (int64_t k_left = A.cols; k_left > 0; k_left -= kBlockK) {
    copy_tile(gA, sA, k_left);
    copy_tile(gB, sB, k_left);
    device::cp_async_wait_all();
    __syncthreads();  // the tiles are complete
    for (int slice = 0; slice < kBlockK / kFragment; ++slice) {
      uint32_t rA[kFragments][4], rB[kFragments][4];
      fragments_of_a.load(rA, sA, slice);
      fragments_of_b.load(rB, sB, slice);
      for (int i = 0; i < kFragments; ++i) {
        for (int j = 0; j < 2 * kFragments; ++j) {
          device::mma_m16n8k16<__half>(rC[i][j], rA[i], {rB[j / 2][j % 2 * 2], rB[j / 2][j % 2 * 2 + 1]});
        }
      }
    }
    __syncthreads();  // everybody has read the tiles before they are overwritten
  }

  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int i = 0; i < kFragments; ++i) {
    for (int j = 0; j < 2 * kFragments * 4; ++j) {
      const int64_t row = m_0 + warp_m + i * kFragment + g + j % 4 / 2 * 8, col = n_0 + warp_n + j / 4 * 8 + 2 * t + j % 2;
      if (row < C.rows && col < C.cols) {  // padding has no place in C
        *C.at(row, col) = device::from_float<__half>(rC[i][j / 4][j % 4]);
      }
    }
  }
}

/// C = A · B. All three are row-major. Rows of A begin at multiples of 16 bytes; rows of B and C begin anywhere.
void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<__half> C) {
  const int64_t tiles = ceil_div<int64_t>(C.rows, kBlockM) * ceil_div<int64_t>(C.cols, kBlockN);
  device::Buffer<__half> buffer;
  if (!has_chunks(B)) {
    const int64_t cols = padded_cols(B);
    buffer = device::Buffer<__half>(static_cast<std::size_t>(B.rows * cols), "padded");
    const Matrix<__half> padded = gemm::row_major(buffer.data(), B.rows, cols);
    device::launch(pad_kernel, gemm::grid_size(ceil_div<int64_t>(B.rows * cols, kPadThreads)), kPadThreads, 0, B, padded);
    B = gemm::row_major<const __half>(buffer.data(), B.rows, cols);
  }
  device::launch(multiply_kernel, gemm::grid_size(tiles), kThreads, 0, A, B, C);
}

}  // namespace exercise

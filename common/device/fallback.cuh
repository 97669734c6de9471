/// @file
/// The kernel for what has no aligned chunks: odd strides, odd addresses. All steps with tensor cores share it.
///
/// No step's idea is in here: it keeps such operands out of the way of the lessons. It is right for any strides, and slow: each
/// element is copied by itself, and while a block copies, it does not multiply.
#pragma once

#include "common/device/element.cuh"
#include "common/device/fallback_block.h"
#include "common/device/ptx.cuh"
#include "common/gemm/activation.h"
#include "common/gemm/gemm.h"

namespace device {

namespace detail {

/// What a block and a warp of the fallback compute.
template <int block>
struct FallbackTile {
  static constexpr int kBlock = block, kBlockK = 32;         // rows and columns of C, and steps along k
  static constexpr int kWarp = 32, kWarps = kBlock / kWarp;  // rows and columns of a warp's part; warps side by side
  static constexpr int kThreads = 32 * kWarps * kWarps;
  static constexpr int kBlocksPerSm = kBlock == 64 ? 5 : 1;  // with six of the small ones, or two of the large ones, it spills
  static constexpr int kPitch = kBlockK + 8;                 // 80 bytes: eight rows lie in different banks
};

/// A thread's share in copying tiles of an operand to shared memory, element by element, k along the rows.
template <class Tile, class In>
class FallbackCopy {
 public:
  /// @param g the operand, k along its columns  @param mn_0 the first row of the block in it
  /// @param along_k whether neighbouring threads are to copy neighbours along k
  __device__ __forceinline__ FallbackCopy(const gemm::Matrix<const In>& g, int64_t mn_0, bool along_k)
      : mn_(along_k ? threadIdx.x / Tile::kBlockK : threadIdx.x % Tile::kBlock),
        k_(along_k ? threadIdx.x % Tile::kBlockK : threadIdx.x / Tile::kBlock),
        step_mn_(along_k ? Tile::kThreads / Tile::kBlockK : 0),
        step_k_(along_k ? 0 : Tile::kThreads / Tile::kBlock),
        mn_left_(g.rows - mn_0),
        source_(g.at(mn_0 + mn_, k_)),
        step_(step_mn_ * g.row_stride + step_k_ * g.col_stride),
        tile_(Tile::kBlockK * g.col_stride) {}

  /// Copies the next tile to s, zeros where the operand has ended; k_left is how much of k is left.
  __device__ __forceinline__ void copy(In (&s)[Tile::kBlock][Tile::kPitch], int64_t k_left) {
    In r[kElements];  // a store waits for its load: so first all loads, then all stores
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      const bool exists = mn_ + i * step_mn_ < mn_left_ && k_ + i * step_k_ < k_left;
      r[i] = exists ? source_[i * step_] : In(0.0f);
    }
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      s[mn_ + i * step_mn_][k_ + i * step_k_] = r[i];
    }
    source_ += tile_;
  }

 private:
  static constexpr int kElements = Tile::kBlock * Tile::kBlockK / Tile::kThreads;

  int mn_, k_;            // in a tile, of the first element
  int step_mn_, step_k_;  // from one element to the next one
  int64_t mn_left_;       // rows of the operand that the block has, and more
  const In* source_;      // the first element of the next tile
  int64_t step_, tile_;   // from one element, from one tile to the next one, in elements
};

/// Loads fragment by fragment a slice, 16 of k, of the 32 rows that begin at `row` of this lane.
template <class Tile, class In>
__device__ __forceinline__ void load_fallback_fragments(uint32_t (&r)[2][4], const In* row, int slice) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    ldmatrix_x4(r[i], row + 16 * i * Tile::kPitch + 16 * slice);
  }
}

}  // namespace detail

/// One block, one block x block tile of C. `a_along_k`: the elements of A that lie closest to each other are neighbours along k;
/// `b_along_k` likewise.
template <int block, class In, class Out, class Epilogue>
__global__ __launch_bounds__(detail::FallbackTile<block>::kThreads, detail::FallbackTile<block>::kBlocksPerSm) void fallback_kernel(
    gemm::Matrix<const In> A, gemm::Matrix<const In> B, gemm::Matrix<Out> C, bool a_along_k, bool b_along_k, Epilogue epilogue) {
  using Tile = detail::FallbackTile<block>;
  alignas(16) __shared__ In sA[Tile::kBlock][Tile::kPitch];  // (m, k)
  alignas(16) __shared__ In sB[Tile::kBlock][Tile::kPitch];  // (n, k)

  // 1. Which tile is mine? The blocks lie row by row over C.
  const auto tiles_n = static_cast<unsigned>(gemm::ceil_div<int64_t>(C.cols, Tile::kBlock));  // < 2^31, as the grid
  const int64_t m_0 = int64_t{blockIdx.x / tiles_n} * Tile::kBlock, n_0 = int64_t{blockIdx.x % tiles_n} * Tile::kBlock;
  const int warp = threadIdx.x / 32, warp_m = warp / Tile::kWarps * Tile::kWarp, warp_n = warp % Tile::kWarps * Tile::kWarp;
  const int lane = threadIdx.x % 32;
  detail::FallbackCopy<Tile, In> gA(A, m_0, a_along_k), gB(B.transposed(), n_0, b_along_k);
  // A lane's rows for ldmatrix: four matrices of 8 x 8, A's down m first, B's along k first.
  const In* const row_of_a = &sA[warp_m + lane % 16][lane / 16 * 8];
  const In* const row_of_b = &sB[warp_n + lane / 16 * 8 + lane % 8][lane / 8 % 2 * 8];

  // 2. Main loop
  float rC[2][4][4] = {};
  for (int64_t k_left = A.cols; k_left > 0; k_left -= Tile::kBlockK) {
    gA.copy(sA, k_left);
    gB.copy(sB, k_left);
    __syncthreads();  // the tiles are complete before anybody reads them
#pragma unroll
    for (int slice = 0; slice < Tile::kBlockK / 16; ++slice) {
      uint32_t rA[2][4], rB[2][4];
      detail::load_fallback_fragments<Tile>(rA, row_of_a, slice);
      detail::load_fallback_fragments<Tile>(rB, row_of_b, slice);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          mma_m16n8k16<In>(rC[i][j], rA[i], {rB[j / 2][j % 2 * 2], rB[j / 2][j % 2 * 2 + 1]});
        }
      }
    }
    __syncthreads();  // everybody has read the tiles before they are overwritten
  }

  // 3. Epilogue: of every eight columns a lane has two neighbours, of every sixteen rows two that are eight apart
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const int64_t col = n_0 + warp_n + 8 * j + lane % 4 * 2 + side;
      if (col >= C.cols) continue;
      const auto activation = gemm::in_column(epilogue, col);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int64_t row = m_0 + warp_m + 16 * i + 8 * half + lane / 4;
          if (row < C.rows) *C.at(row, col) = from_float<Out>(activation(rC[i][j][2 * half + side]));
        }
      }
    }
  }
}

namespace detail {

template <int block, class In, class Out, class Epilogue>
void launch_fallback(const gemm::Matrix<const In>& A, const gemm::Matrix<const In>& B, const gemm::Matrix<Out>& C,
                     const Epilogue& epilogue) {
  const int64_t tiles = gemm::ceil_div<int64_t>(C.rows, block) * gemm::ceil_div<int64_t>(C.cols, block);
  const bool a_along_k = std::abs(A.col_stride) <= std::abs(A.row_stride);
  const bool b_along_k = std::abs(B.row_stride) <= std::abs(B.col_stride);
  launch(fallback_kernel<block, In, Out, Epilogue>, gemm::grid_size(tiles), FallbackTile<block>::kThreads, 0, A, B, C, a_along_k,
         b_along_k, epilogue);
}

}  // namespace detail

/// C = epilogue(A · B) for any strides, as the contract in common/gemm/gemm.h says; A and B hold __half or __nv_bfloat16.
/// @throws gemm::Refused for more tiles than a grid has blocks
template <class In, class Out, class Epilogue>
void fallback_gemm(const gemm::Matrix<const In>& A, const gemm::Matrix<const In>& B, const gemm::Matrix<Out>& C,
                   const Epilogue& epilogue) {
  if (fallback_block(C.rows, C.cols) == 128) {
    detail::launch_fallback<128>(A, B, C, epilogue);
  } else {
    detail::launch_fallback<64>(A, B, C, epilogue);
  }
}

}  // namespace device

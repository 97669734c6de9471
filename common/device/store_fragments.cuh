/// @file
/// From the accumulators of mma.sync to C in 16-byte stores.
#pragma once

#include "common/device/chunk_access.cuh"
#include "common/device/element.cuh"
#include "common/gemm/matrix.h"

namespace device {

namespace detail {
template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T x, y;
};
}  // namespace detail

/// Elements of shared memory that store_fragments() needs for each warp.
template <int kCols>
inline constexpr int kStoreFragmentsElements = 16 * (kCols + 8);

/// Stores a warp's part of C: kRows16 x 16 rows, kCols8 x 8 columns, from (row, col) on; what lies outside of C is left out.
///
/// A lane holds pairs of neighbours of two rows, but memory wants 16 bytes of one. So the warp rearranges 16 rows at a time in
/// shared memory; 8 elements of padding put the pairs of different rows into different banks.
/// @param d accumulators, as mma_m16n8k16() leaves them
/// @param shared kStoreFragmentsElements<8 * kCols8> of the warp's own, aligned to 16 bytes
/// @param chunks C's rows are aligned chunks (see chunks_aligned())
template <int kRows16, int kCols8, class Out, class Epilogue>
__device__ __forceinline__ void store_fragments(const float (&d)[kRows16][kCols8][4], Out* shared, const gemm::Matrix<Out>& C,
                                                std::int64_t row, std::int64_t col, bool chunks, const Epilogue& epilogue) {
  constexpr int kPitch = 8 * kCols8 + 8, kRowChunks = 8 * kCols8 / kChunk<Out>;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kRows16; ++i) {
#pragma unroll
    for (int j = 0; j < kCols8; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<detail::Pair<Out>*>(shared + (lane / 4 + 8 * half) * kPitch + 8 * j + lane % 4 * 2) = {
            from_float<Out>(epilogue(d[i][j][2 * half])), from_float<Out>(epilogue(d[i][j][2 * half + 1]))};
    __syncwarp();  // the rows are complete before other lanes read them
#pragma unroll
    for (int q = lane; q < 16 * kRowChunks; q += 32) {
      const int r = q / kRowChunks, c = q % kRowChunks * kChunk<Out>;
      const std::int64_t to_row = row + 16 * i + r, to_col = col + c;
      if (to_row < C.rows && to_col < C.cols)
        store_chunk(C.at(to_row, to_col), C.col_stride, C.cols - to_col, chunks,
                    *reinterpret_cast<const uint4*>(shared + r * kPitch + c));
    }
    __syncwarp();  // everybody has read the rows before they are overwritten
  }
}

}  // namespace device

/// @file
/// From the accumulators of mma.sync to C in 16-byte stores.
#pragma once

#include <algorithm>
#include <type_traits>

#include "common/device/chunk_access.cuh"
#include "common/device/element.cuh"
#include "common/device/mbarrier.cuh"
#include "common/gemm/activation.h"
#include "common/gemm/matrix.h"

namespace device {

/// Applies the epilogue to a lane's sums, as mma_m16n8k16() and wgmma_m64k16() leave them: of every eight columns two neighbours,
/// in two rows. The epilogue is asked once for each column, for there may be a bias (lesson 07). One that says that it changes
/// nothing is not asked at all: a small problem would spend a fiftieth of its time on that. @param col of C, the first one's
template <int kSums, class Epilogue>
__device__ __forceinline__ void apply_epilogue(float (&d)[kSums], const Epilogue& epilogue, std::int64_t col) {
  if constexpr (requires { epilogue.changes_nothing(); }) {
    if (epilogue.changes_nothing()) return;
  }
#pragma unroll
  for (int i = 0; i < kSums; i += 4) {
#pragma unroll
    for (int x = 0; x < 2; ++x) {
      const auto activation = gemm::in_column(epilogue, col + 2 * i + threadIdx.x % 4 * 2 + x);
      d[i + x] = activation(d[i + x]);
      d[i + x + 2] = activation(d[i + x + 2]);
    }
  }
}

/// The same for sums of C's transpose: rows and columns change places, so a lane's sums are in two columns of C, eight apart.
/// @param col of C, the first of the warpgroup's 64
template <int kSums, class Epilogue>
__device__ __forceinline__ void apply_epilogue_transposed(float (&d)[kSums], const Epilogue& epilogue, std::int64_t col) {
  if constexpr (requires { epilogue.changes_nothing(); }) {
    if (epilogue.changes_nothing()) return;
  }
  col += threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
  const auto left = gemm::in_column(epilogue, col), right = gemm::in_column(epilogue, col + 8);
#pragma unroll
  for (int i = 0; i < kSums; i += 4) {
#pragma unroll
    for (int x = 0; x < 2; ++x) {
      d[i + x] = left(d[i + x]);
      d[i + x + 2] = right(d[i + x + 2]);
    }
  }
}

/// Elements of shared memory that store_fragments() needs for each warp.
template <int kCols>
inline constexpr int kStoreFragmentsElements = 16 * (kCols + 8);

/// Stores a warp's 16 rows of C, kCols columns, from shared memory, where rows lie kPitch elements apart, to (row, col) on; what
/// lies outside of C is left out. For rows that have no aligned chunks: one element after the other, lanes along a row, so that
/// what a warp stores at a time lies in few sectors.
template <int kCols, int kPitch, class Out>
__device__ __forceinline__ void store_elements(const Out* shared, const gemm::Matrix<Out>& C, std::int64_t row, std::int64_t col) {
  constexpr int kWide = std::min(32, kCols), kStep = 32 / kWide, kAtATime = std::min(16 / kStep, 8) * kStep;
  const int lane = threadIdx.x % 32, first_row = lane / kWide;
  for (int c = lane % kWide; c < kCols && col + c < C.cols; c += kWide) {
    const Out* from = shared + first_row * kPitch + c;
    Out* to = C.at(row + first_row, col + c);
#pragma unroll 1
    for (int r_0 = 0; r_0 < 16; r_0 += kAtATime, from += kAtATime * kPitch) {
      Out x[kAtATime / kStep];  // a store waits for its load: so first all loads, then all stores
#pragma unroll
      for (int r = 0; r < kAtATime; r += kStep) x[r / kStep] = from[r * kPitch];
#pragma unroll
      for (int r = 0; r < kAtATime; r += kStep, to += kStep * C.row_stride)
        if (row + first_row + r_0 + r < C.rows) *to = x[r / kStep];
    }
  }
}

/// Stores a warp's 16 rows of C, kCols8 x 8 columns, from (row, col) on; what lies outside of C is left out.
///
/// A lane holds pairs of neighbours of two rows, but memory wants 16 bytes of one. So the warp rearranges them in shared memory; 8
/// elements of padding put the pairs of different rows into different banks.
/// @param d accumulators, as mma_m16n8k16() leaves them
/// @param shared kStoreFragmentsElements<8 * kCols8> of the warp's own, aligned to 16 bytes
/// @param chunks C's rows are aligned chunks (see chunks_aligned())
/// @tparam kAlongRows where they are not, store_elements() stores them; else a lane stores its chunk element by element
template <int kCols8, class Out, class Epilogue, bool kAlongRows = false>
__device__ __forceinline__ void store_fragments(const float (&d)[kCols8][4], Out* shared, const gemm::Matrix<Out>& C,
                                                std::int64_t row, std::int64_t col, bool chunks, const Epilogue& epilogue,
                                                std::bool_constant<kAlongRows> = {}) {
  constexpr int kPitch = 8 * kCols8 + 8, kRowChunks = 8 * kCols8 / kChunk<Out>, kStep = std::min(16, 32 / kRowChunks);
  static_assert(32 % kRowChunks == 0,
                "a lane stores the same chunk of every kStep-th row; where rows are a chunk, half of them store");
  const int lane = threadIdx.x % 32, first_row = lane / kRowChunks, first_col = lane % kRowChunks * kChunk<Out>;
#pragma unroll
  for (int j = 0; j < kCols8; ++j)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<Pair<Out>*>(shared + (lane / 4 + 8 * half) * kPitch + 8 * j + lane % 4 * 2) = {
          from_float<Out>(epilogue(d[j][2 * half])), from_float<Out>(epilogue(d[j][2 * half + 1]))};
  __syncwarp();  // the rows are complete before other lanes read them

  const std::int64_t rows_left = first_row < 16 ? C.rows - row - first_row : 0;
  const int rows = static_cast<int>(min(rows_left, std::int64_t{16}));  // of C, from first_row on
  const std::int64_t cols = C.cols - col - first_col;
  const Out* const from = shared + first_row * kPitch + first_col;
  Out* to = C.at(row + first_row, col + first_col);
  if (kAlongRows && !chunks) {
    store_elements<8 * kCols8, kPitch>(shared, C, row, col);
  } else if (chunks && rows > 0 && cols >= kChunk<Out>) {
    uint4 x[16 / kStep];  // a store waits for its load: so first all loads, then all stores
#pragma unroll
    for (int r = 0; r < 16; r += kStep) x[r / kStep] = *reinterpret_cast<const uint4*>(from + r * kPitch);
#pragma unroll
    for (int r = 0; r < 16; r += kStep, to += kStep * C.row_stride)
      if (r < rows) *reinterpret_cast<uint4*>(to) = x[r / kStep];
  } else if (cols > 0) {
#pragma unroll 1
    for (int r = 0; r < rows; r += kStep, to += kStep * C.row_stride)
      store_chunk(to, C.col_stride, cols, false, *reinterpret_cast<const uint4*>(from + r * kPitch));
  }
  __syncwarp();  // everybody has read the rows before they are overwritten
}

/// The same for a warp's sums of wgmma_m64k16(), at most kCols columns at a time. @param shared kStoreFragmentsElements<kCols>
template <int kCols, int kSums, class Out, class Epilogue>
__device__ __forceinline__ void store_fragments(const float (&d)[kSums], Out* shared, const gemm::Matrix<Out>& C, std::int64_t row,
                                                std::int64_t col, bool chunks, const Epilogue& epilogue) {
  constexpr int kAtATime = std::min(kCols, 2 * kSums & -(2 * kSums));  // so many fit into all columns
#pragma unroll
  for (int i = 0; i < kSums; i += kAtATime / 2)
    store_fragments(reinterpret_cast<const float(&)[kAtATime / 8][4]>(d[i]), shared, C, row, col + 2 * i, chunks, epilogue,
                    std::true_type{});
}

/// The same for kRows16 x 16 rows, one 16 after the other.
template <int kRows16, int kCols8, class Out, class Epilogue>
__device__ __forceinline__ void store_fragments(const float (&d)[kRows16][kCols8][4], Out* shared, const gemm::Matrix<Out>& C,
                                                std::int64_t row, std::int64_t col, bool chunks, const Epilogue& epilogue) {
#pragma unroll
  for (int i = 0; i < kRows16; ++i) store_fragments(d[i], shared, C, row + 16 * i, col, chunks, epilogue);
}

/// Elements of shared memory that store_share_transposed() needs.
template <int kSums, class Out>
inline constexpr int kStoreShareElements = std::max(2 * kSums, 8) * (64 + kChunk<Out>);

/// Stores a share of a warpgroup's sums of C's transpose: share number `share` of as many, kSums each, as wgmma_m64k16() has sums.
/// They are of 64 columns of C from (row, col) on. What lies outside of C is left out. By all threads of the warpgroup.
///
/// A lane holds sums of two columns, but memory wants neighbours of a row: so the rows that have them are put together in shared
/// memory. Padding puts the four rows that a warp writes at a time into different banks.
/// @param shared kStoreShareElements, aligned to 16 bytes
/// @param chunks C's rows are aligned chunks (see chunks_aligned())
template <int kSums, class Out, class Epilogue>
__device__ __forceinline__ void store_share_transposed(const float (&d)[kSums], int share, Out* shared, const gemm::Matrix<Out>& C,
                                                       std::int64_t row, std::int64_t col, bool chunks, const Epilogue& epilogue) {
  constexpr int kPitch = 64 + kChunk<Out>, kRowChunks = 64 / kChunk<Out>, kRows = std::max(2 * kSums, 8);
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, first_row = share * kSums / 4 * 8;
#pragma unroll
  for (int i = 0; i < kSums; ++i) {
    const int sum = share * kSums + i, c = warp * 16 + sum % 4 / 2 * 8 + lane / 4;  // four sums are of eight rows
    shared[(sum / 4 * 8 - first_row + lane % 4 * 2 + sum % 2) * kPitch + c] =
        from_float<Out>(gemm::in_column(epilogue, col + c)(d[i]));
  }
  barrier_sync(1 + threadIdx.x / 128, 128);
#pragma unroll
  for (int i = 0; i < kRows * kRowChunks; i += 128) {
    const int chunk = i + threadIdx.x % 128, r = first_row + chunk / kRowChunks, c = chunk % kRowChunks * kChunk<Out>;
    const bool is_mine = (r / 8 * 4 + c / 8 % 2 * 2 + r % 2) / kSums == share;  // where shares are of less than eight rows
    if (chunk < kRows * kRowChunks && is_mine && row + r < C.rows)
      store_chunk(C.at(row + r, col + c), C.col_stride, C.cols - col - c, chunks,
                  *reinterpret_cast<const uint4*>(shared + (r - first_row) * kPitch + c));
  }
}

/// Stores a warpgroup's sums of C's transpose, 64 columns of C from (row, col) on, one by one; what lies outside of C is left out.
/// Eight lanes have neighbours in a row.
template <int kSums, class Out>
__device__ __forceinline__ void store_sums_transposed(const float (&d)[kSums], const gemm::Matrix<Out>& C, std::int64_t row,
                                                      std::int64_t col) {
  row += threadIdx.x % 4 * 2;
  col += threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
  Out* const to = C.at(row, col);
#pragma unroll
  for (int i = 0; i < kSums; ++i) {  // of every four, pairs in a column
    const int r = i / 4 * 8 + i % 2, c = i % 4 / 2 * 8;
    if (row + r < C.rows && col + c < C.cols) to[r * C.row_stride + c * C.col_stride] = from_float<Out>(d[i]);
  }
}

}  // namespace device

/// @file
/// Tiles of an operand in global memory: strides, and where rows or k end within a tile.
///
/// No step's idea is in here: it keeps strides and ragged edges out of the way of the lessons.
#pragma once

#include "common/device/chunk_access.cuh"
#include "common/gemm/matrix.h"

namespace device {

/// Which operand of a product.
enum class Operand { kA, kB };

/// A tile of an operand, kBlockMN of m or n by kBlockK of k. Its rows run along the contiguous index, in shared memory as in
/// global.
template <Operand operand, Contiguous contiguous, int block_mn, int block_k>
struct TileLayout {
  static constexpr bool kIsA = operand == Operand::kA;
  static constexpr int kBlockMN = block_mn, kBlockK = block_k;
  static constexpr bool kAlongMN = contiguous == Contiguous::kMN;  ///< else rows run along k
  static constexpr int kRow = kAlongMN ? kBlockMN : kBlockK;       ///< elements of a row
  static constexpr int kRows = kAlongMN ? kBlockK : kBlockMN;
};

/// What a thread copies of an operand's tiles, one tile after the other along k: the same chunk of every kStep-th row.
template <class Layout, int kThreads, class T>
class TileSource {
 public:
  static constexpr int kRow = Layout::kRow, kRows = Layout::kRows, kBlockK = Layout::kBlockK;
  static constexpr int kRowChunks = kRow / kChunk<T>, kStep = kThreads / kRowChunks;
  static_assert(kStep >= 1 && kRows % kStep == 0, "every thread copies the same chunk of as many rows");

  /// @param g the operand, k along its columns  @param mn_0 the first row of the block in it
  __device__ __forceinline__ TileSource(const gemm::Matrix<const T>& g, std::int64_t mn_0)
      : row_(threadIdx.x / kRowChunks),
        col_(threadIdx.x % kRowChunks * kChunk<T>),
        row_stride_(Layout::kAlongMN ? g.col_stride : g.row_stride),
        k_stride_(Layout::kAlongMN ? g.col_stride : 1) {
    const int mn_count = static_cast<int>(min(g.rows - mn_0, static_cast<std::int64_t>(Layout::kBlockMN)));
    mn_left_ = mn_count - (Layout::kAlongMN ? col_ : row_);
    data_ = Layout::kAlongMN ? g.at(mn_0 + col_, row_) : g.at(mn_0 + row_, col_);
    ends_with_chunk_ = !Layout::kAlongMN || mn_count % kChunk<T> == 0;
  }

  __device__ __forceinline__ int row() const { return row_; }                            ///< of the first chunk, in a tile
  __device__ __forceinline__ int chunk() const { return col_ / kChunk<T>; }              ///< the first one's number in its row
  __device__ __forceinline__ const T* data() const { return data_; }                     ///< the first chunk, in this tile
  __device__ __forceinline__ std::int64_t row_stride() const { return row_stride_; }     ///< in elements
  __device__ __forceinline__ void next_tile() { data_ += Layout::kBlockK * k_stride_; }  ///< goes on along k

  /// Whether m, or n, ends between two chunks. Then tiles are whole, up to the end of k: each chunk exists, or nothing of it does.
  __device__ __forceinline__ bool ends_with_chunk() const { return ends_with_chunk_; }
  /// Whether the chunk `i` rows below the first one exists, in a whole tile.
  __device__ __forceinline__ bool has_chunk(int i) const { return (Layout::kAlongMN ? 0 : i) < mn_left_; }
  /// How many elements of that chunk exist, and more if the row goes on behind it; none if <= 0. In any tile.
  __device__ __forceinline__ int elements(int i, std::int64_t k_left) const {
    const int depth = static_cast<int>(min(k_left, static_cast<std::int64_t>(Layout::kBlockK)));
    if constexpr (Layout::kAlongMN) {
      return row_ + i < depth ? mn_left_ : 0;
    } else {
      return i < mn_left_ ? depth - col_ : 0;
    }
  }

 private:
  int row_, col_;                       // of the first chunk in a tile
  std::int64_t row_stride_, k_stride_;  // in elements
  int mn_left_;                         // of m, or n, from the first chunk on
  bool ends_with_chunk_;
  const T* data_;
};

}  // namespace device

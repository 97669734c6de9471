/// @file
/// Operands as the copy engine sees them: rows along the index whose elements lie side by side.
///
/// No step's idea is in here: it keeps strides out of the way of the lessons.
#pragma once

#include "common/device/chunks.h"
#include "common/device/tensor_map.h"

namespace device {

/// Whether the copy engine can copy boxes of the operand; k along its columns. It wants aligned chunks, and it knows no rows that
/// run backwards or lie upon each other. What it cannot copy is for the fallback (fallback.cuh).
template <class T>
bool has_tensor_map(const gemm::Matrix<T>& g) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // rows and columns, so that a tile's coordinates are int
  if (!in_chunks(g)) return false;
  const bool along_k = chunks_aligned(g.data, g.col_stride, g.row_stride);
  const std::int64_t pitch = along_k ? g.row_stride : g.col_stride, columns = along_k ? g.cols : g.rows;
  return g.rows > 0 && g.cols > 0 && g.rows <= kMost && g.cols <= kMost && pitch >= columns && pitch <= kMost * 8;
}

/// The operand without its boxes; k along its columns. @param contiguous the index whose elements lie side by side
template <class T>
TensorLayout tensor_layout(const gemm::Matrix<T>& g, Contiguous contiguous) {
  const gemm::Matrix<T> x = contiguous == Contiguous::kK ? g : g.transposed();
  TensorLayout layout{};
  layout.data = x.data;
  layout.rows = static_cast<std::uint64_t>(x.rows);
  layout.columns = static_cast<std::uint64_t>(x.cols);
  layout.row_stride = static_cast<std::uint64_t>(x.row_stride);
  return layout;
}

/// The map of the operand's boxes of `mn` rows or columns and `k` of k, whose rows lie 128 bytes apart, swizzled; k along its
/// columns. @param promotion what L2 fetches at once
template <class T>
TensorMap box_map(const gemm::Matrix<T>& g, Contiguous contiguous, unsigned mn, unsigned k,
                  L2Promotion promotion = L2Promotion::k256) {
  const bool along_k = contiguous == Contiguous::kK;
  TensorLayout layout = tensor_layout(g, contiguous);
  layout.box_rows = along_k ? mn : k;
  layout.box_columns = along_k ? k : mn;
  layout.swizzle = Swizzle::k128;
  layout.promotion = promotion;
  return make_tensor_map<std::remove_const_t<T>>(layout);
}

/// Whether the copy engine can store C in boxes. It writes whole chunks, so rows end with one.
template <class T>
bool has_store_map(const gemm::Matrix<T>& C) {
  return has_tensor_map(C) && C.col_stride == 1 && C.cols % kChunk<T> == 0;
}
/// Columns of C in such a box, of a tile of kCols: at most 128 bytes of a row, whole chunks, and as many that kCols are several
/// times that.
template <int kCols, class T>
constexpr int store_cols() {
  int cols = 128 / sizeof(T);
  while (kCols % cols != 0) cols -= kChunk<T>;
  return cols;
}
/// The map of such boxes, of `rows` rows. @throws Error unless has_store_map(C)
template <int kCols, class T>
TensorMap store_map(const gemm::Matrix<T>& C, unsigned rows) {
  return box_map(C, Contiguous::kK, rows, store_cols<kCols, T>());
}

}  // namespace device

/// @file
/// Operands as the copy engine sees them: rows along the index whose elements lie side by side.
///
/// No step's idea is in here: it keeps strides out of the way of the lessons.
#pragma once

#include "common/device/chunk_access.cuh"
#include "common/device/tensor_map.h"

namespace device {

/// Whether the copy engine can copy boxes of the operand; k along its columns. It wants aligned chunks, and it knows no rows that
/// run backwards or lie upon each other. What it cannot copy is for the fallback (fallback.cuh).
template <class T>
bool has_tensor_map(const gemm::Matrix<const T>& g) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // rows and columns, so that a tile's coordinates are int
  if (!in_chunks(g)) return false;
  const bool along_k = chunks_aligned(g.data, g.col_stride, g.row_stride);
  const std::int64_t pitch = along_k ? g.row_stride : g.col_stride, columns = along_k ? g.cols : g.rows;
  return g.rows > 0 && g.cols > 0 && g.rows <= kMost && g.cols <= kMost && pitch >= columns && pitch <= kMost * 8;
}

/// The operand without its boxes; k along its columns. @param contiguous the index whose elements lie side by side
template <class T>
TensorLayout tensor_layout(const gemm::Matrix<const T>& g, Contiguous contiguous) {
  const gemm::Matrix<const T> x = contiguous == Contiguous::kK ? g : g.transposed();
  TensorLayout layout{};
  layout.data = x.data;
  layout.rows = static_cast<std::uint64_t>(x.rows);
  layout.columns = static_cast<std::uint64_t>(x.cols);
  layout.row_stride = static_cast<std::uint64_t>(x.row_stride);
  return layout;
}

}  // namespace device

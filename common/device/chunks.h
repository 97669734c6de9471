/// @file
/// What the host asks of strides and alignment before it starts a kernel: does the operand have chunks of 16 bytes, and along which
/// index? Kernels access them with chunk_access.cuh.
#pragma once

#include <type_traits>

#include "common/gemm/matrix.h"

namespace device {

template <class T>
inline constexpr int kChunk = 16 / sizeof(T);  ///< elements of a chunk

/// Whether runs of kChunk elements that start at multiples of kChunk along the unit stride are aligned chunks.
/// @param data first element  @param stride between elements of a run  @param pitch between runs; both in elements
template <class T>
bool chunks_aligned(const T* data, std::int64_t stride, std::int64_t pitch) {
  return stride == 1 && pitch % kChunk<T> == 0 && reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

/// Which index of an operand has neighbours next to each other in memory: k, or the other one (m of A, n of B).
enum class Contiguous { kK, kMN };

/// Whether an operand has aligned chunks along one of its indices. What has none is for the fallback (fallback.cuh).
template <class T>
bool in_chunks(const gemm::Matrix<T>& x) {
  return chunks_aligned(x.data, x.col_stride, x.row_stride) || chunks_aligned(x.data, x.row_stride, x.col_stride);
}

/// Turns the strides of A (m x k) and B (k x n), both in_chunks(), into constants: calls f(a, b) with two
/// std::integral_constant<Contiguous, ...>.
template <class T, class F>
void with_contiguous(const gemm::Matrix<T>& A, const gemm::Matrix<T>& B, const F& f) {
  constexpr std::integral_constant<Contiguous, Contiguous::kK> kK;
  constexpr std::integral_constant<Contiguous, Contiguous::kMN> kMN;
  const bool a_along_k = chunks_aligned(A.data, A.col_stride, A.row_stride);
  const bool b_along_k = chunks_aligned(B.data, B.row_stride, B.col_stride);
  if (a_along_k && b_along_k) f(kK, kK);
  if (a_along_k && !b_along_k) f(kK, kMN);
  if (!a_along_k && b_along_k) f(kMN, kK);
  if (!a_along_k && !b_along_k) f(kMN, kMN);
}

}  // namespace device

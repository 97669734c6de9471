/// @file
/// Chunks of 16 bytes, the widest access of a thread, where strides and alignment allow it; element by element where they do not.
///
/// No step's idea is in here: it keeps odd strides, odd alignments and ragged edges out of the way of the lessons.
#pragma once

#include <type_traits>

#include "common/device/ptx.cuh"
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

/// Starts copying the first `count` elements of a chunk, and zeros for the rest; count may be <= 0 or > kChunk.
template <class T>
__device__ __forceinline__ void copy_chunk(T* shared, const T* p, int count) {
  cp_async_cg_16(shared, p, max(0, min(count, kChunk<T>)) * static_cast<int>(sizeof(T)));
}

/// Stores the first `count` elements of a chunk at p[0], p[stride], ...; count may be <= 0 or > kChunk.
/// @param chunks the run is an aligned chunk (see chunks_aligned())
template <class T>
__device__ __forceinline__ void store_chunk(T* p, std::int64_t stride, std::int64_t count, bool chunks, const uint4& x) {
  if (chunks && count >= kChunk<T>) {
    *reinterpret_cast<uint4*>(p) = x;
    return;
  }
  alignas(16) T elements[kChunk<T>];
  *reinterpret_cast<uint4*>(elements) = x;
#pragma unroll
  for (int i = 0; i < kChunk<T>; ++i)
    if (i < count) p[i * stride] = elements[i];
}

/// Stores the first `count` of four neighbours at p[0], p[stride], ...; count may be <= 0 or > 4.
/// @param chunks the row is made of aligned chunks (see chunks_aligned()), and p lies at a multiple of four elements
template <class T>
__device__ __forceinline__ void store_quad(T* p, std::int64_t stride, std::int64_t count, bool chunks, const T (&x)[4]) {
  struct alignas(4 * sizeof(T)) Quad {
    T x[4];
  };
  if (chunks && count >= 4) {
    *reinterpret_cast<Quad*>(p) = {{x[0], x[1], x[2], x[3]}};
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (i < count) p[i * stride] = x[i];
}

}  // namespace device

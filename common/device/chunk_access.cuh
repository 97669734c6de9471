/// @file
/// Chunks of 16 bytes, the widest access of a thread, where strides and alignment allow it; element by element where they do not.
///
/// No step's idea is in here: it keeps odd strides, odd alignments and ragged edges out of the way of the lessons.
#pragma once

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

/// Which index of an operand has neighbours next to each other in memory: k, or the other one (m of A, n of B), or neither of them
/// in aligned chunks (see chunks_aligned()).
enum class Contiguous { kK, kMN, kNeither };

/// @param x the operand, k along its columns
template <class T>
Contiguous contiguous(const gemm::Matrix<T>& x) {
  if (chunks_aligned(x.data, x.col_stride, x.row_stride)) return Contiguous::kK;
  return chunks_aligned(x.data, x.row_stride, x.col_stride) ? Contiguous::kMN : Contiguous::kNeither;
}

/// Turns the strides of A (m x k) and B (k x n) into template arguments: calls f.operator()<a, b>(), where both are kNeither if one
/// is.
template <class T, class F>
void with_contiguous(const gemm::Matrix<T>& A, const gemm::Matrix<T>& B, const F& f) {
  using enum Contiguous;
  const Contiguous a = contiguous(A), b = contiguous(B.transposed());
  if (a == kK && b == kK) return f.template operator()<kK, kK>();
  if (a == kK && b == kMN) return f.template operator()<kK, kMN>();
  if (a == kMN && b == kK) return f.template operator()<kMN, kK>();
  if (a == kMN && b == kMN) return f.template operator()<kMN, kMN>();
  f.template operator()<kNeither, kNeither>();
}

/// Copies the first `count` of p[0], p[stride], ... to `shared`, and zeros for the rest of the chunk; count may be <= 0 or >
/// kChunk.
/// @param chunks the run is an aligned chunk (see chunks_aligned()): then cp.async copies it in the background; otherwise it is
/// done on return
template <class T>
__device__ __forceinline__ void copy_chunk(T* shared, const T* p, std::int64_t stride, int count, bool chunks) {
  if (chunks) return cp_async_cg_16(shared, p, max(0, min(count, kChunk<T>)) * static_cast<int>(sizeof(T)));
  alignas(16) T elements[kChunk<T>];
#pragma unroll
  for (int i = 0; i < kChunk<T>; ++i) elements[i] = i < count ? p[i * stride] : T(0.0f);
  *reinterpret_cast<uint4*>(shared) = *reinterpret_cast<const uint4*>(elements);
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

}  // namespace device

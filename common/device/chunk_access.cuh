/// @file
/// Chunks of 16 bytes, the widest access of a thread, where strides and alignment allow it; element by element where they do not.
///
/// No step's idea is in here: it keeps odd strides, odd alignments and ragged edges out of the way of the lessons.
#pragma once

#include "common/device/chunks.h"
#include "common/device/ptx.cuh"

namespace device {

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

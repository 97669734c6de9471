/// @file
/// Four elements at a time where strides and alignment allow it, one by one where they do not.
///
/// No step's idea is in here: it keeps odd strides, odd alignments and ragged edges out of the way of the lessons.
#pragma once

#include "common/device/element.cuh"

namespace device {

inline constexpr int kVectorWidth = 4;  ///< elements of a vector access: 16 bytes of float, 8 of half

/// Whether runs of kVectorWidth elements that start at multiples of kVectorWidth along the unit stride are aligned vectors.
/// @param data first element  @param stride between elements of a run  @param pitch between runs; both in elements
template <class T>
__host__ __device__ inline bool vectors_aligned(const T* data, std::int64_t stride, std::int64_t pitch) {
  return stride == 1 && pitch % kVectorWidth == 0 && reinterpret_cast<std::uintptr_t>(data) % (kVectorWidth * sizeof(T)) == 0;
}

namespace detail {
// What nvcc loads and stores with one instruction.
template <class T>
struct Vector;
template <>
struct Vector<float> {
  using Type = float4;
};
template <>
struct Vector<__half> {
  using Type = uint2;
};
template <>
struct Vector<__nv_bfloat16> {
  using Type = uint2;
};
}  // namespace detail

/// The first `count` of p[0], p[stride], p[2 * stride], p[3 * stride] as floats, zeros for the rest; count may be <= 0 or > 4.
/// @param vectors the run is an aligned vector (see vectors_aligned())
template <class T>
__device__ __forceinline__ float4 load4(const T* p, std::int64_t stride, std::int64_t count, bool vectors) {
  float x[kVectorWidth] = {};
  if (vectors && count >= kVectorWidth) {
    using Vector = typename detail::Vector<T>::Type;
    const Vector v = *reinterpret_cast<const Vector*>(p);
    T elements[kVectorWidth];
    memcpy(static_cast<void*>(elements), &v, sizeof v);
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i) x[i] = to_float(elements[i]);
  } else {
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i)
      if (i < count) x[i] = to_float(p[i * stride]);
  }
  return make_float4(x[0], x[1], x[2], x[3]);
}

/// Rounds x to T and stores its first `count` elements at p[0], p[stride], ...; the counterpart of load4().
template <class T>
__device__ __forceinline__ void store4(T* p, std::int64_t stride, std::int64_t count, bool vectors, const float (&x)[kVectorWidth]) {
  if (vectors && count >= kVectorWidth) {
    using Vector = typename detail::Vector<T>::Type;
    T elements[kVectorWidth];
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i) elements[i] = from_float<T>(x[i]);
    Vector v;
    memcpy(&v, elements, sizeof v);
    *reinterpret_cast<Vector*>(p) = v;
  } else {
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i)
      if (i < count) p[i * stride] = from_float<T>(x[i]);
  }
}

}  // namespace device

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

// What nvcc loads and stores with one instruction, and its elements as floats.
template <class T>
struct Vector;
template <>
struct Vector<float> {
  using Type = float4;
  static __device__ __forceinline__ float4 unpack(const float4& v) { return v; }
  static __device__ __forceinline__ float4 pack(const float4& v) { return v; }
};
template <>
struct Vector<__half> {
  using Type = uint2;
  static __device__ __forceinline__ float4 unpack(const uint2& v) {
    const float2 low = __half22float2(reinterpret_cast<const __half2&>(v.x)),
                 high = __half22float2(reinterpret_cast<const __half2&>(v.y));
    return make_float4(low.x, low.y, high.x, high.y);
  }
  static __device__ __forceinline__ uint2 pack(const float4& v) {
    const __half2 low = __floats2half2_rn(v.x, v.y), high = __floats2half2_rn(v.z, v.w);
    return make_uint2(reinterpret_cast<const unsigned&>(low), reinterpret_cast<const unsigned&>(high));
  }
};
template <>
struct Vector<__nv_bfloat16> {
  using Type = uint2;
  static __device__ __forceinline__ float4 unpack(const uint2& v) {
    const float2 low = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(v.x)),
                 high = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(v.y));
    return make_float4(low.x, low.y, high.x, high.y);
  }
  static __device__ __forceinline__ uint2 pack(const float4& v) {
    const __nv_bfloat162 low = __floats2bfloat162_rn(v.x, v.y), high = __floats2bfloat162_rn(v.z, v.w);
    return make_uint2(reinterpret_cast<const unsigned&>(low), reinterpret_cast<const unsigned&>(high));
  }
};

}  // namespace detail

/// The first `count` of p[0], p[stride], p[2 * stride], p[3 * stride] as floats, zeros for the rest; count may be <= 0 or > 4.
/// @param vectors the run is an aligned vector (see vectors_aligned())
template <class T>
__device__ __forceinline__ float4 load4(const T* p, std::int64_t stride, std::int64_t count, bool vectors) {
  if (vectors && count >= kVectorWidth) {
    using Vector = detail::Vector<T>;
    const typename Vector::Type v = *reinterpret_cast<const typename Vector::Type*>(p);
    return Vector::unpack(v);
  }
  float x[kVectorWidth] = {};
#pragma unroll
  for (int i = 0; i < kVectorWidth; ++i)
    if (i < count) x[i] = to_float(p[i * stride]);
  return make_float4(x[0], x[1], x[2], x[3]);
}

/// Rounds x to T and stores its first `count` elements at p[0], p[stride], ...; the counterpart of load4().
template <class T>
__device__ __forceinline__ void store4(T* p, std::int64_t stride, std::int64_t count, bool vectors, const float4& x) {
  if (vectors && count >= kVectorWidth) {
    using Vector = detail::Vector<T>;
    *reinterpret_cast<typename Vector::Type*>(p) = Vector::pack(x);
    return;
  }
  const float elements[] = {x.x, x.y, x.z, x.w};
#pragma unroll
  for (int i = 0; i < kVectorWidth; ++i)
    if (i < count) p[i * stride] = from_float<T>(elements[i]);
}

}  // namespace device

/// @file
/// Element types: conversions to and from float, where all sums are made.
#pragma once

#include "common/device/device.cuh"

namespace device {

/// Itself.
__device__ __forceinline__ float to_float(float x) { return x; }
/// Exact.
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
/// Exact.
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

/// Rounds once, to nearest even; values beyond the range of T become infinite, NaN stays NaN.
template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ __half from_float<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

/// Two neighbours in one register, the first in its lower half; rounded as from_float() does. The compiler keeps the elements of a
/// Pair apart, in two.
template <class T>
__device__ __forceinline__ uint32_t pack(float x, float y);
template <>
__device__ __forceinline__ uint32_t pack<__half>(float x, float y) {
  const __half2_raw pair = __floats2half2_rn(x, y);
  return pair.x | uint32_t{pair.y} << 16;
}
template <>
__device__ __forceinline__ uint32_t pack<__nv_bfloat16>(float x, float y) {
  const __nv_bfloat162_raw pair = __floats2bfloat162_rn(x, y);
  return pair.x | uint32_t{pair.y} << 16;
}

/// Two neighbours, stored together.
template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T x, y;
};

}  // namespace device

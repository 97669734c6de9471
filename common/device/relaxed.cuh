/// @file
/// Loads and stores of global memory that other blocks see while both run: relaxed, so each word by itself and in no order. One
/// function for each PTX instruction, named as the instruction.
#pragma once

#include "common/device/device.cuh"

namespace device {

#ifndef __CUDACC__
namespace detail {
using FourWords [[gnu::vector_size(16)]] = float;  // volatile, to the interpreter, is relaxed; a struct would be four accesses
}
#endif

/// @name Relaxed accesses with the scope of the GPU (PTX ISA, "ld" and "st"; "Memory Consistency Model"; compute capability 7.0)
/// They race with no other such access. A word arrives whole, but the four words of one access may arrive one by one, and nothing
/// is said of what the thread has written before: whoever needs that uses a fence. They go past the L1 cache.
/// @{

/// Loads the four words at p, which is aligned to 16 bytes.
__device__ __forceinline__ void ld_relaxed_gpu(float (&r)[4], const float4* p) {
#ifdef __CUDACC__
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3])
               : "l"(p)
               : "memory");
#else
  const detail::FourWords words = *reinterpret_cast<const volatile detail::FourWords*>(p);
  for (int i = 0; i < 4; ++i) r[i] = words[i];
#endif
}
/// Stores four words at p, which is aligned to 16 bytes.
__device__ __forceinline__ void st_relaxed_gpu(float4* p, const float (&r)[4]) {
#ifdef __CUDACC__
  asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(p), "f"(r[0]), "f"(r[1]), "f"(r[2]), "f"(r[3])
               : "memory");
#else
  *reinterpret_cast<volatile detail::FourWords*>(p) = detail::FourWords{r[0], r[1], r[2], r[3]};
#endif
}
/// @}

}  // namespace device

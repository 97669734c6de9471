/// @file
/// What kernels ask about addresses, atomics on vectors, and the heap of kernels.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/interpreter/language/language.h"

namespace interpreter {

/// In which memory an address lies; kOther: host memory, where no kernel has any business.
enum class Space { kShared, kGlobal, kConstant, kLocal, kOther };
Space space_of(const void* p);

/// @name The heap of kernels
/// malloc and new in a kernel give device memory, which other threads may use too.
/// @{
bool in_kernel();
/// In a kernel: whether the thread is tried out with another undefined value (checks/two_worlds.cpp), and must not do what is done
/// once.
bool is_tried_out();
bool is_device_memory(const void* p);
/// Null when the heap, of Options::heap_bytes, is used up.
void* allocate_in_kernel(std::size_t bytes);
bool heap_was_used();  ///< a kernel has asked for memory
void release_in_kernel(void* p, const void* return_address);
/// @}

}  // namespace interpreter

inline unsigned __isShared(const void* p) { return interpreter::space_of(p) == interpreter::Space::kShared; }
inline unsigned __isGlobal(const void* p) { return interpreter::space_of(p) == interpreter::Space::kGlobal; }
inline unsigned __isConstant(const void* p) { return interpreter::space_of(p) == interpreter::Space::kConstant; }
inline unsigned __isLocal(const void* p) { return interpreter::space_of(p) == interpreter::Space::kLocal; }

#ifndef __clang__  // which has it
#define __builtin_assume(condition) (static_cast<bool>(condition) ? static_cast<void>(0) : __builtin_unreachable())
#endif

// CUDA promises each component's atomicity, not the vector's.
[[gnu::always_inline]] inline float2 atomicAdd(float2* address, float2 operand) {
  return interpreter::atomic_update(address, [=](float2& value) { return value.x += operand.x, value.y += operand.y, true; });
}
[[gnu::always_inline]] inline float4 atomicAdd(float4* address, float4 operand) {
  float2* const halves = reinterpret_cast<float2*>(address);
  const float2 low = atomicAdd(halves, float2{operand.x, operand.y}), high = atomicAdd(halves + 1, float2{operand.z, operand.w});
  return float4{low.x, low.y, high.x, high.y};
}

/// @file
/// What the functions of the CUDA runtime share: errors, and which pointers are whose.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include "common/interpreter/interpreter.h"

namespace interpreter::cuda_runtime {

/// Makes `error` the calling thread's last error and says on stderr which call failed and why: many programs never ask.
/// @return `error`, so that a function can end with it
cudaError_t failed(const char* call, cudaError_t error, const std::string& why = "");

/// A kernel's own error, a failed assert: CUDA returns it from every later call. What shows it is checked when the program ends.
void set_sticky(cudaError_t error);
/// cudaSuccess, or the error of a kernel that ended badly.
cudaError_t sticky();

/// Whether `p` lies in an allocation of device, managed or pinned memory.
bool is_allocated(const void* p);
/// Whether host code may use `p` too: managed and pinned memory.
bool is_shared_with_host(const void* p);

/// How many bytes of dynamic shared memory a launch of `kernel` may ask for, see cudaFuncSetAttribute.
std::size_t dynamic_shared_limit(const void* kernel);

/// Blocks of one kernel that the modelled GPU holds at a time.
std::size_t resident_blocks(std::size_t threads, std::size_t shared_bytes);

}  // namespace interpreter::cuda_runtime

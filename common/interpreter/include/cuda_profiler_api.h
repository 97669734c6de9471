/// @file
/// In the place of CUDA's header of this name: there is no profiler to be started or stopped.
#pragma once

#include <cuda_runtime_api.h>

inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
inline cudaError_t cudaProfilerStop() { return cudaSuccess; }

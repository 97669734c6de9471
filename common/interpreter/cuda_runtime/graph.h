/// @file
/// CUDA graphs: work that is kept, to be done as often as the program launches it; and streams whose work becomes one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "common/interpreter/interpreter.h"

namespace interpreter::cuda_runtime {

/// What a node of a graph does, in the stream that the graph is launched into.
using Work = std::function<cudaError_t(cudaStream_t)>;

/// Whether `stream` is being captured.
bool is_captured(cudaStream_t stream);
/// Whether `stream` is being captured; if so, `work` is a node of the graph now, and not to be done.
bool captured(cudaStream_t stream, cudaGraphNodeType type, Work work);
/// The error of a call in `stream` that must not be while a stream is captured; cudaSuccess for all others. The capture is spoilt.
/// @param waits whether the host waits for the stream in it, or may do so
cudaError_t forbidden(const char* call, cudaStream_t stream, bool waits);
/// Of a call that waits for all streams, or is one that CUDA does not allow meanwhile.
cudaError_t forbidden(const char* call);

/// @name Events of captured streams: they stand for nodes
/// @return whether that is all that is to be done; `error` says how it ended
/// @{
bool captured_record(cudaEvent_t event, cudaStream_t stream);
bool captured_wait(cudaStream_t stream, cudaEvent_t event, cudaError_t& error);
bool is_captured(cudaEvent_t event);
/// @}

/// Whether `p` is memory that a node has allocated: it stays where it is.
bool is_of_graph(const void* p);
/// Makes it such memory.
void give_to_graph(const void* p, std::size_t bytes);

/// A launch with a copy of the kernel's arguments.
struct KeptLaunch {
  Launch launch;
  bool cooperative;
  std::shared_ptr<void> closure;
};
KeptLaunch keep(const Launch& launch, bool cooperative);
/// Runs it in `stream`.
cudaError_t start(const KeptLaunch& kept, cudaStream_t stream);
/// What start() would run if `call` called it, instead of running it. Its error, if it does not get as far.
cudaError_t keep_instead(const std::function<cudaError_t()>& call, KeptLaunch& kept);

/// Launches a kernel that the program names by its address; program.h
struct Configuration;
cudaError_t start_by_address(const char* call, const void* kernel, const Configuration& configuration, void** arguments);
/// Whether a launch is not to be run now, for it is kept or wrong; `error` says how that ended.
bool is_kept(const Launch& launch, bool cooperative, cudaError_t& error);

/// What the runtime's functions do where no stream is captured.
cudaError_t copy_bytes(const char* call, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
/// cudaMemcpy3D and cudaMemset with its parameters as a node has them.
cudaError_t copy_box(const char* call, const cudaMemcpy3DParms& parameters);
cudaError_t fill_elements(const char* call, const cudaMemsetParams& parameters);

}  // namespace interpreter::cuda_runtime

// Streams and events. Work of a stream is done when the call that asks for it returns, in the order of the calls: one of those that
// CUDA allows. So a stream has nothing to wait for, and an event is a time. What waits for launches, or
// stands between two of them, ends their chain; see LaunchChain.
#include <algorithm>
#include <chrono>

#include "common/interpreter/cuda_runtime/graph.h"
#include "common/interpreter/cuda_runtime/state.h"

// CUDA's own names for what its handles point to.
struct CUstream_st {
  unsigned flags;
  int priority;
};
struct CUevent_st {
  std::chrono::steady_clock::time_point at;
  bool recorded;
};

using namespace interpreter::cuda_runtime;

namespace {

// The host waits for launches in a stream.
cudaError_t wait_for(const char* call, cudaStream_t stream) {
  if (const cudaError_t error = forbidden(call, stream, true); error != cudaSuccess) return error;
  interpreter::synchronize();
  return sticky();
}
// The same for an event, or a stream waits for one.
cudaError_t wait() {
  interpreter::synchronize();
  return sticky();
}

constexpr int kLowestPriority = 0, kHighestPriority = -5;

cudaError_t record(cudaEvent_t event, cudaStream_t stream) {
  if (!event) return failed("cudaEventRecord", cudaErrorInvalidResourceHandle);
  if (captured_record(event, stream)) return cudaSuccess;
  if (const cudaError_t error = forbidden("cudaEventRecord", stream, false); error != cudaSuccess) return error;
  interpreter::synchronize();
  *event = {std::chrono::steady_clock::now(), true};
  return sticky();
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  *stream = new CUstream_st{flags, std::clamp(priority, kHighestPriority, kLowestPriority)};
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, kLowestPriority);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == cudaStreamLegacy || stream == cudaStreamPerThread)
    return failed("cudaStreamDestroy", cudaErrorInvalidResourceHandle);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return wait_for("cudaStreamSynchronize", stream); }
cudaError_t cudaStreamQuery(cudaStream_t stream) { return wait_for("cudaStreamQuery", stream); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (cudaError_t error; captured_wait(stream, event, error)) return error;
  wait();
  return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  *priority = stream ? stream->priority : kLowestPriority;
  return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  *flags = stream ? stream->flags : cudaStreamDefault;
  return cudaSuccess;
}
// What may stay in the L2 cache: the model has no such reservations.
cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue*) { return cudaSuccess; }
cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  if (lowest) *lowest = kLowestPriority;
  if (highest) *highest = kHighestPriority;
  return cudaSuccess;
}
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, std::size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned) {
  const Work work = [=](cudaStream_t into) {
    callback(into, wait(), data);
    return cudaSuccess;
  };
  return captured(stream, cudaGraphNodeTypeHost, work) ? cudaSuccess : work(stream);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  const Work work = [=](cudaStream_t) {
    wait();
    function(data);
    return cudaSuccess;
  };
  return captured(stream, cudaGraphNodeTypeHost, work) ? cudaSuccess : work(stream);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st{};
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { return record(event, stream); }
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) { return record(event, stream); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return is_captured(event) ? failed("cudaEventSynchronize", cudaErrorCapturedEvent) : wait();
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return is_captured(event) ? failed("cudaEventQuery", cudaErrorCapturedEvent) : wait();
}
// Time of this CPU, which says nothing about a GPU; but never nothing, for programs divide by it.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (!begin || !end || !begin->recorded || !end->recorded)
    return failed("cudaEventElapsedTime", cudaErrorInvalidResourceHandle, "an event was not recorded");
  *milliseconds = std::max(0.001f, std::chrono::duration<float, std::milli>(end->at - begin->at).count());
  return sticky();
}
#if CUDART_VERSION >= 12080 && CUDART_VERSION < 13000
cudaError_t cudaEventElapsedTime_v2(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return cudaEventElapsedTime(milliseconds, begin, end);
}
#endif

}  // extern "C"

// Errors of the CUDA runtime: the last one, its name, its text.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "common/interpreter/cuda_runtime/state.h"
#include "common/interpreter/report/diagnosis.h"

namespace interpreter::cuda_runtime {
namespace {

struct Name {
  cudaError_t error;
  const char *name, *text;
};
#define INTERPRETER_ERROR(name, text) \
  Name { name, #name, text }
// Those that the interpreter gives, or that programs compare with.
constexpr std::array kNames{
    INTERPRETER_ERROR(cudaSuccess, "no error"),
    INTERPRETER_ERROR(cudaErrorInvalidValue, "invalid argument"),
    INTERPRETER_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    INTERPRETER_ERROR(cudaErrorInitializationError, "initialization error"),
    INTERPRETER_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    INTERPRETER_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    INTERPRETER_ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    INTERPRETER_ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    INTERPRETER_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    INTERPRETER_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    INTERPRETER_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    INTERPRETER_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    INTERPRETER_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    INTERPRETER_ERROR(cudaErrorNotReady, "device not ready"),
    INTERPRETER_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    INTERPRETER_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    INTERPRETER_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    INTERPRETER_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    INTERPRETER_ERROR(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    INTERPRETER_ERROR(cudaErrorAssert, "device-side assert triggered"),
    INTERPRETER_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    INTERPRETER_ERROR(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    INTERPRETER_ERROR(cudaErrorInvalidClusterSize, "a kernel launch error has occurred due to cluster misconfiguration"),
    INTERPRETER_ERROR(cudaErrorNotSupported, "operation not supported"),
    INTERPRETER_ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    INTERPRETER_ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    INTERPRETER_ERROR(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    INTERPRETER_ERROR(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences"),
    INTERPRETER_ERROR(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    INTERPRETER_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    INTERPRETER_ERROR(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    INTERPRETER_ERROR(cudaErrorStreamCaptureImplicit,
                      "operation would make the legacy stream depend on a capturing blocking stream"),
    INTERPRETER_ERROR(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
    INTERPRETER_ERROR(cudaErrorGraphExecUpdateFailure,
                      "the graph update was not performed because it included changes which violated constraints specific to "
                      "instantiated graph update"),
    INTERPRETER_ERROR(cudaErrorUnknown, "unknown error"),
};
#undef INTERPRETER_ERROR

const Name* find(cudaError_t error) {
  const auto found = std::find_if(kNames.begin(), kNames.end(), [=](const Name& n) { return n.error == error; });
  return found == kNames.end() ? nullptr : &*found;
}

thread_local cudaError_t last_error = cudaSuccess;
std::atomic<cudaError_t> sticky_error = cudaSuccess;
std::atomic<bool> sticky_was_seen = false;

}  // namespace

cudaError_t failed(const char* call, cudaError_t error, const std::string& why) {
  last_error = error;
  std::fflush(stdout);
  const Location where = host_line();
  std::fprintf(stderr, "interpreter: %s gives %s (%s)%s%s%s%s\n", call, cudaGetErrorName(error), cudaGetErrorString(error),
               why.empty() ? "" : ": ", why.c_str(), where.line ? ", at " : "", where.line ? at(where).c_str() : "");
  return error;
}

void set_sticky(cudaError_t error) {
  static const bool once [[maybe_unused]] = [] {
    // A program that never asks what became of its kernel has not passed.
    std::atexit([] {
      if (sticky_error == cudaSuccess || sticky_was_seen) return;
      std::fflush(nullptr);
      std::_Exit(1);
    });
    return true;
  }();
  sticky_error = error;
}

cudaError_t sticky() {
  if (sticky_error != cudaSuccess) sticky_was_seen = true;
  return sticky_error;
}

}  // namespace interpreter::cuda_runtime

using namespace interpreter::cuda_runtime;

extern "C" {

cudaError_t cudaPeekAtLastError() { return sticky() != cudaSuccess ? sticky() : last_error; }
cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}
const char* cudaGetErrorName(cudaError_t error) {
  const Name* const known = find(error);
  return known ? known->name : "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
  const Name* const known = find(error);
  return known ? known->text : "unrecognized error code";
}

}  // extern "C"

// Of the driver, what programs ask beside tensor maps: whether it is there, what an error is called, which device there is.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string>

#include "common/interpreter/cuda_runtime/state.h"

namespace {

struct Name {
  CUresult result;
  const char* name;
};
#define INTERPRETER_RESULT(result) \
  Name { result, #result }
constexpr std::array kNames{
    INTERPRETER_RESULT(CUDA_SUCCESS),
    INTERPRETER_RESULT(CUDA_ERROR_INVALID_VALUE),
    INTERPRETER_RESULT(CUDA_ERROR_OUT_OF_MEMORY),
    INTERPRETER_RESULT(CUDA_ERROR_NOT_INITIALIZED),
    INTERPRETER_RESULT(CUDA_ERROR_NO_DEVICE),
    INTERPRETER_RESULT(CUDA_ERROR_INVALID_DEVICE),
    INTERPRETER_RESULT(CUDA_ERROR_INVALID_HANDLE),
    INTERPRETER_RESULT(CUDA_ERROR_NOT_FOUND),
    INTERPRETER_RESULT(CUDA_ERROR_NOT_READY),
    INTERPRETER_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS),
    INTERPRETER_RESULT(CUDA_ERROR_ASSERT),
    INTERPRETER_RESULT(CUDA_ERROR_LAUNCH_FAILED),
    INTERPRETER_RESULT(CUDA_ERROR_NOT_SUPPORTED),
    INTERPRETER_RESULT(CUDA_ERROR_UNKNOWN),
};
#undef INTERPRETER_RESULT

CUresult of_runtime(cudaError_t error) { return static_cast<CUresult>(error); }  // of those above, the numbers are the same

}  // namespace

extern "C" {

CUresult CUDAAPI cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult CUDAAPI cuDriverGetVersion(int* version) { return of_runtime(cudaDriverGetVersion(version)); }

CUresult CUDAAPI cuGetErrorName(CUresult result, const char** text) {
  *text = nullptr;
  for (const Name& each : kNames)
    if (each.result == result) *text = each.name;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuGetErrorString(CUresult result, const char** text) {
  const char* name;
  const CUresult known = cuGetErrorName(result, &name);
  *text = known == CUDA_SUCCESS ? cudaGetErrorString(static_cast<cudaError_t>(result)) : nullptr;
  return known;
}

CUresult CUDAAPI cuDeviceGetCount(int* count) { return of_runtime(cudaGetDeviceCount(count)); }
CUresult CUDAAPI cuDeviceGet(CUdevice* device, int number) {
  *device = number;
  return number == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult CUDAAPI cuDeviceGetName(char* name, int bytes, CUdevice device) {
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error == cudaSuccess && bytes > 0) std::snprintf(name, static_cast<std::size_t>(bytes), "%s", properties.name);
  return of_runtime(error);
}
CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return of_runtime(cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device));  // the numbers are the same
}
CUresult CUDAAPI cuCtxSynchronize() { return of_runtime(cudaDeviceSynchronize()); }

}  // extern "C"

namespace {

void* driver_function(const char* name) {
#define INTERPRETER_FUNCTION(function) \
  if (std::strcmp(name, #function) == 0) return reinterpret_cast<void*>(&function)
  INTERPRETER_FUNCTION(cuTensorMapEncodeTiled);
  INTERPRETER_FUNCTION(cuInit);
  INTERPRETER_FUNCTION(cuDriverGetVersion);
  INTERPRETER_FUNCTION(cuGetErrorName);
  INTERPRETER_FUNCTION(cuGetErrorString);
  INTERPRETER_FUNCTION(cuDeviceGetCount);
  INTERPRETER_FUNCTION(cuDeviceGet);
  INTERPRETER_FUNCTION(cuDeviceGetName);
  INTERPRETER_FUNCTION(cuDeviceGetAttribute);
  INTERPRETER_FUNCTION(cuCtxSynchronize);
#undef INTERPRETER_FUNCTION
  return nullptr;
}

}  // namespace

extern "C" cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                                                  cudaDriverEntryPointQueryResult* result) {
  *function = driver_function(symbol);
  if (result) *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return *function ? cudaSuccess
                   : interpreter::cuda_runtime::failed(
                         "cudaGetDriverEntryPointByVersion", cudaErrorNotSupported,
                         std::string(symbol) + ": docs/interpret.md lists what the interpreter has of the driver");
}
extern "C" cudaError_t CUDARTAPI cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                                         cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPointByVersion(symbol, function, 12000, flags, result);
}

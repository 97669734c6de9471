// The CUDA runtime's functions: what they do, and which errors they give.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "common/interpreter/cuda_runtime/program.h"
#include "common/interpreter/tests/orders.h"

namespace {

__constant__ int constant_numbers[4];
__device__ int device_number = 5;

__global__ void add_one(int* x, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] += 1;
}
template <int k, class T>
__global__ void add(T* x, T y, unsigned n) {
  if (threadIdx.x < n) x[threadIdx.x] += y * k;
}
__global__ void add_constants(int* x) { x[threadIdx.x] += constant_numbers[threadIdx.x] + device_number; }
__global__ void fails() { assert(threadIdx.x < 3); }

// What tools/interpret writes for a launch.
#define LAUNCH(configuration, ...)                                                                                      \
  [&](auto launch) {                                                                                                    \
    if constexpr (requires { launch.function(__VA_ARGS__); })                                                           \
      return launch.function(                                                                                           \
          __VA_ARGS__, [](auto&&... a) { __VA_ARGS__(static_cast<decltype(a)&&>(a)...); },                              \
          []<class... P>(void (*&f)(P...)) requires requires { f = __VA_ARGS__; } { f = __VA_ARGS__; });                \
    else                                                                                                                \
      return launch.call([](auto&&... a) { __VA_ARGS__(static_cast<decltype(a)&&>(a)...); },                            \
                         []<class... P>(void (*&f)(P...)) requires requires { f = __VA_ARGS__; } { f = __VA_ARGS__; }); \
  }(interpreter::cuda_runtime::LaunchSyntax(#__VA_ARGS__, interpreter::cuda_runtime::Configuration configuration))

struct Numbers {
  Numbers() { REQUIRE(cudaMalloc(&p, 4 * sizeof(int)) == cudaSuccess); }
  ~Numbers() { cudaFree(p); }
  int operator[](int i) const {
    int host[4];
    REQUIRE(cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess);
    return host[i];
  }
  int* p = nullptr;
};

TEST_CASE("memory: copies, fills, pitches") {
  Numbers a, b;
  const int host[4] = {1, 2, 3, 4};
  CHECK(cudaMemcpy(a.p, host, sizeof host, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cudaMemcpy(b.p, a.p, sizeof host, cudaMemcpyDeviceToDevice) == cudaSuccess);
  CHECK(b[3] == 4);
  CHECK(cudaMemset(b.p, 0xff, 8) == cudaSuccess);
  CHECK(b[1] == -1);
  CHECK(b[2] == 3);
  char* rows = nullptr;
  std::size_t pitch = 0;
  CHECK(cudaMallocPitch(&rows, &pitch, 10, 3) == cudaSuccess);
  CHECK(pitch % 512 == 0);
  const char text[] = "abcdefghijABCDEFGHIJ0123456789";
  CHECK(cudaMemcpy2D(rows, pitch, text, 10, 10, 3, cudaMemcpyHostToDevice) == cudaSuccess);
  char back[31] = {};
  CHECK(cudaMemcpy2D(back, 10, rows, pitch, 10, 3, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(std::string(back) == text);
  CHECK(cudaMemset2D(rows, pitch, 'x', 2, 3) == cudaSuccess);
  CHECK(cudaMemcpy2D(back, 10, rows, pitch, 10, 3, cudaMemcpyDefault) == cudaSuccess);
  CHECK(std::string(back) == "xxcdefghijxxCDEFGHIJxx23456789");
  CHECK(cudaFree(rows) == cudaSuccess);
  CHECK(cudaFree(nullptr) == cudaSuccess);
}

TEST_CASE("memory: errors") {
  Numbers a;
  int host[8] = {};
  CHECK(cudaMemcpy(a.p, host, sizeof host, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaMemcpy(host, a.p, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(host, a.p, 4, cudaMemcpyHostToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(a.p + 3, host, 8, cudaMemcpyDefault) == cudaErrorInvalidValue);
  CHECK(cudaMemset(host, 0, 4) == cudaErrorInvalidValue);
  CHECK(cudaFree(host) == cudaErrorInvalidValue);
  void* p = host;
  CHECK(cudaMalloc(&p, std::size_t(1) << 45) == cudaErrorMemoryAllocation);
  CHECK(p == nullptr);
  CHECK(std::string(cudaGetErrorName(cudaGetLastError())) == "cudaErrorMemoryAllocation");
  CHECK(std::string(cudaGetErrorString(cudaErrorInvalidConfiguration)) == "invalid configuration argument");
}

TEST_CASE("memory that the host uses, too") {
  int* managed = nullptr;
  int* pinned = nullptr;
  CHECK(cudaMallocManaged(&managed, 4 * sizeof(int)) == cudaSuccess);
  CHECK(cudaMallocHost(&pinned, 4 * sizeof(int)) == cudaSuccess);
  for (int i = 0; i < 4; ++i) managed[i] = pinned[i] = i;
  LAUNCH((1, 4), add_one)(managed, 4);
  int* device = nullptr;
  CHECK(cudaHostGetDevicePointer(&device, pinned, 0) == cudaSuccess);
  LAUNCH((1, 4), add_one)(device, 4);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(managed[3] == 4);
  CHECK(pinned[2] == 3);
  int own[4];
  CHECK(cudaHostRegister(own, sizeof own, cudaHostRegisterDefault) == cudaSuccess);
  CHECK(cudaHostRegister(own, sizeof own, cudaHostRegisterMapped) == cudaErrorNotSupported);
  CHECK(cudaGetLastError() == cudaErrorNotSupported);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, managed) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeManaged);
  CHECK(cudaPointerGetAttributes(&attributes, pinned + 3) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeHost);
  CHECK(attributes.hostPointer == pinned + 3);
  CHECK(cudaPointerGetAttributes(&attributes, &attributes) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  CHECK(cudaFree(managed) == cudaSuccess);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
}

TEST_CASE("variables of the device") {
  Numbers a;
  CHECK(cudaMemset(a.p, 0, 16) == cudaSuccess);
  const int host[4] = {10, 20, 30, 40}, seven = 7;
  CHECK(cudaMemcpyToSymbol(constant_numbers, host, sizeof host) == cudaSuccess);
  CHECK(cudaMemcpyToSymbol(device_number, &seven, sizeof seven) == cudaSuccess);
  LAUNCH((1, 4), add_constants)(a.p);
  CHECK(a[2] == 37);
  int back = 0;
  CHECK(cudaMemcpyFromSymbol(&back, constant_numbers, sizeof back, 3 * sizeof(int)) == cudaSuccess);
  CHECK(cudaMemcpyFromSymbol(&back, constant_numbers, sizeof back, sizeof constant_numbers) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyToSymbol(device_number, &seven, sizeof seven, 1) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyToSymbolAsync(device_number, &seven, sizeof seven, ~std::size_t(3), cudaMemcpyHostToDevice) ==
        cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(back == 40);
  void* address = nullptr;
  CHECK(cudaGetSymbolAddress(&address, device_number) == cudaSuccess);
  CHECK(cudaMemcpy(&back, address, sizeof back, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(back == 7);
  std::size_t size = 0;
  CHECK(cudaGetSymbolSize(&size, constant_numbers) == cudaSuccess);
  CHECK(size == 16);
}

TEST_CASE("launches deduce and convert as calls do") {
  Numbers a;
  CHECK(cudaMemset(a.p, 0, 16) == cudaSuccess);
  LAUNCH((1, 4), add_one)(a.p, 4L);
  CHECK(a[0] == 1);
  LAUNCH((1, 4), add<3>)(a.p, 2, 4u);  // T is deduced, and the types are the parameters' own
  CHECK(a[0] == 7);
  LAUNCH((1, 4), add<3>)(a.p, 2, 4);  // the last one is converted
  CHECK(a[0] == 13);
  LAUNCH((1, 4), add<2, int>)(a.p, static_cast<short>(1), 4);
  CHECK(a[0] == 15);
  LAUNCH((1, 4), add_one)(0, 0);
  CHECK(cudaGetLastError() == cudaSuccess);
  interpreter::clear_profiles();
  LAUNCH((1, 4), add<3>)(a.p, 2, 4u);
  LAUNCH((1, 4), add<3>)(a.p, 2, 4);
  CHECK(interpreter::profiles()[0].kernel.find("add<3, int>") != std::string::npos);
  CHECK(interpreter::profiles()[1].kernel == "add<3>");
}

TEST_CASE("launches that CUDA refuses are error codes") {
  Numbers a;
  LAUNCH((1, 1025), add_one)(a.p, 0);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  LAUNCH((0, 32), add_one)(a.p, 0);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  LAUNCH((1, 32, 60 * 1024), add_one)(a.p, 0);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(add_one, cudaFuncAttributeMaxDynamicSharedMemorySize, 60 * 1024) == cudaSuccess);
  LAUNCH((1, 32, 60 * 1024), add_one)(a.p, 0);
  CHECK(cudaGetLastError() == cudaSuccess);
  int* p = a.p;
  int n = 0;
  void* arguments[] = {&p, &n};
  CHECK(cudaLaunchCooperativeKernel(add_one, dim3(1000000), dim3(32), arguments) == cudaErrorCooperativeLaunchTooLarge);
  CHECK(cudaGetLastError() == cudaErrorCooperativeLaunchTooLarge);
}

TEST_CASE("launches by address") {
  Numbers a;
  CHECK(cudaMemset(a.p, 0, 16) == cudaSuccess);
  int n = 4;
  void* arguments[] = {&a.p, &n};
  CHECK(cudaLaunchKernel(add_one, dim3(1), dim3(4), arguments) == cudaSuccess);
  const void* const address = reinterpret_cast<const void*>(add_one);
  CHECK(cudaLaunchKernel(address, dim3(1), dim3(4), arguments, 0, nullptr) == cudaErrorInvalidDeviceFunction);
  CHECK(interpreter::cuda_runtime::make_known<&add_one>());
  CHECK(cudaLaunchKernel(address, dim3(1), dim3(4), arguments, 0, nullptr) == cudaSuccess);
  cudaGetLastError();
  CHECK(a[3] == 2);
}

TEST_CASE("streams and events") {
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  CHECK(cudaStreamCreate(&stream) == cudaSuccess);
  CHECK(cudaEventCreate(&begin) == cudaSuccess);
  CHECK(cudaEventCreate(&end) == cudaSuccess);
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(begin, stream) == cudaSuccess);
  CHECK(cudaEventRecord(end, stream) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess);
  CHECK(milliseconds > 0);
  int called = 0;
  CHECK(cudaLaunchHostFunc(
            stream, [](void* p) { ++*static_cast<int*>(p); }, &called) == cudaSuccess);
  CHECK(called == 1);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaEventDestroy(begin) == cudaSuccess);
  CHECK(cudaEventDestroy(end) == cudaSuccess);
  cudaGetLastError();
}

#ifndef __clang__  // cannot tell, see language.h
__global__ void __launch_bounds__(128) at_most_128(int* out) { out[threadIdx.x] = 1; }
TEST_CASE("__launch_bounds__ count for what fits on an SM") {
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, at_most_128) == cudaSuccess);
  CHECK(attributes.maxThreadsPerBlock == 128);
  int blocks = -1, threads = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, at_most_128, 256, 0) == cudaSuccess);
  CHECK(blocks == 0);
  CHECK(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, at_most_128, 0, 0) == cudaSuccess);
  CHECK(threads == 128);
}
#endif

TEST_CASE("the device's limits are what was set") {
  std::size_t bytes = 0;
  CHECK(cudaDeviceGetLimit(&bytes, cudaLimitStackSize) == cudaSuccess);
  CHECK(bytes == 1024);
  const std::size_t before = interpreter::options().stack_bytes, most = 512 * 1024;
  CHECK(cudaDeviceSetLimit(cudaLimitStackSize, most) == cudaSuccess);
  CHECK(cudaDeviceGetLimit(&bytes, cudaLimitStackSize) == cudaSuccess);
  CHECK(bytes == most);
  CHECK(interpreter::options().stack_bytes >= 2 * most);
  CHECK(cudaDeviceSetLimit(cudaLimitStackSize, ~std::size_t(0)) == cudaSuccess);
  CHECK(interpreter::options().stack_bytes == 2 * most);
  interpreter::options().stack_bytes = before;
  CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 1024) == cudaSuccess);
}

TEST_CASE("the device is the modelled GPU") {
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  CHECK(properties.major == 9);
  CHECK(properties.multiProcessorCount == 132);
  CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
  int value = 0;
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) == cudaSuccess);
  CHECK(value == 227 * 1024);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, add_one, 256, 0) == cudaSuccess);
  CHECK(value == 8);
  int blocks = 0, threads = 0;
  CHECK(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, add_one, 0, 0) == cudaSuccess);
  CHECK(blocks * threads == 132 * 2048);
  cudaGetLastError();
}

TEST_CASE("what reports call an allocation") {
  using interpreter::cuda_runtime::label_of;
  CHECK(label_of("&d_a, n * sizeof(float)") == "d_a");
  CHECK(label_of("(void **)&d_a, n") == "d_a");
  CHECK(label_of("reinterpret_cast<void **>(&data->in[i]), n") == "data->in[i]");
  CHECK(label_of("&(p.x), n") == "p.x");
  CHECK(label_of("pointer, n") == "pointer");
  CHECK(label_of("&f(a, b), n") == "f(a, b)");
  Numbers d_numbers;
  try {
    device::launch(add_one, 1, 5, 0, d_numbers.p, 5);
    FAIL("no error");
  } catch (const interpreter::KernelError& e) {
    CHECK(e.diagnosis.variable == "p");
  }
}

// The last one: the error stays.
TEST_CASE("a failed assert is the error of all later calls") {
  LAUNCH((1, 4), fails)();
  CHECK(cudaDeviceSynchronize() == cudaErrorAssert);
  CHECK(cudaGetLastError() == cudaErrorAssert);
  CHECK(cudaGetLastError() == cudaErrorAssert);
  int* p = nullptr;
  LAUNCH((1, 4), add_one)(p, 0);
  CHECK(cudaGetLastError() == cudaErrorAssert);
}

}  // namespace

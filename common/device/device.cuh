/// @file
/// CUDA C++ for kernels that run everywhere: one include for a step, compiled by nvcc for the GPU and by g++ or clang for the CPU
/// interpreter. Kernels are the same on both; the two sides differ only in how a launch, a buffer and an error are made, below.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/device/shared_bytes.h"

#if defined(__CUDACC__) || defined(COURSE_ON_GPU)
/// Whose side it is: the GPU's, also in host code that g++ compiles for a program with nvcc's kernels (COURSE_ON_GPU).
#define DEVICE_IS_GPU
#else
#include "common/interpreter/interpreter.h"
#include "common/interpreter/language/language.h"
#endif

namespace device {

using interpreter::SharedPart, interpreter::SharedBytes, interpreter::ring;

/// An error of the CUDA runtime, or on the interpreter's side its equivalent.
class Error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

#ifdef DEVICE_IS_GPU

/// @throws Error with the call, the reason and the place when `status` is not cudaSuccess.
inline void check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  throw Error(std::string(call) + " failed at " + file + ":" + std::to_string(line) + ": " + cudaGetErrorName(status) + ", " +
              cudaGetErrorString(status));
}
/// check() of a call of the CUDA runtime, with the call's text and place.
#define DEVICE_CHECK(call) ::device::check((call), #call, __FILE__, __LINE__)

#ifdef __CUDACC__
/// The block's dynamic shared memory as an array of T, 1024-byte aligned.
/// A function, because CUDA wants the same type in all declarations of `extern __shared__` of one name.
template <class T = unsigned char>
__device__ __forceinline__ T* dynamic_smem() {
  extern __shared__ __align__(1024) unsigned char device_dynamic_smem[];
  return reinterpret_cast<T*>(device_dynamic_smem);
}
#endif

/// The stream that launches of this thread of the host go to: the default stream, unless somebody sets another, as a harness that
/// captures graphs does, and the library that is given one. A launcher has no parameter for it: that would be in every lesson.
inline cudaStream_t& stream() {
  static thread_local cudaStream_t current = nullptr;
  return current;
}

/// While it lives, launches of this thread go to another stream.
class StreamScope {
 public:
  /// @param other null is the default stream
  explicit StreamScope(cudaStream_t other) : before_(std::exchange(stream(), other)) {}
  ~StreamScope() { stream() = before_; }
  StreamScope(const StreamScope&) = delete;

 private:
  cudaStream_t before_;
};

/// How a kernel was started.
struct LaunchConfiguration {
  const void* kernel = nullptr;
  dim3 grid, block;
  std::size_t shared_bytes = 0;  ///< dynamic
  dim3 cluster = {1, 1, 1};      ///< in blocks
  bool dependent = false;        ///< by launch_dependent()
};
/// Of this thread's last launch(): for a harness that wants to know what a step's launcher chose.
inline LaunchConfiguration& last_launch() {
  static thread_local LaunchConfiguration last;
  return last;
}

/// While true, launch() starts nothing in this thread and only sets last_launch(): for a harness that asks before it runs.
inline bool& dry_run() {
  static thread_local bool on = false;
  return on;
}

namespace detail {
template <class... Parameters, class... Arguments>
void start_launch(bool dependent, dim3 cluster, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                  const SharedBytes& shared_bytes, Arguments&&... arguments) {
  last_launch() = {reinterpret_cast<const void*>(kernel), grid, block, shared_bytes.bytes(), cluster, dependent};
  if (dry_run()) return;
  if (shared_bytes.bytes() > 0)  // more than 48 KB must be asked for, and the kernel's static arrays count
    DEVICE_CHECK(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(shared_bytes.bytes())));
  cudaLaunchAttribute attributes[2]{};
  cudaLaunchConfig_t config{};
  config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = shared_bytes.bytes(), config.stream = stream();
  config.attrs = attributes;
  if (cluster.x * cluster.y * cluster.z > 1) {
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster.x, cluster.y, cluster.z};
  }
  if (dependent) {
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  DEVICE_CHECK(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(std::forward<Arguments>(arguments))...));
}
}  // namespace detail

namespace detail {
inline unsigned count_multiprocessors() {
  int device = 0, count = 0;
  DEVICE_CHECK(cudaGetDevice(&device));
  DEVICE_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return static_cast<unsigned>(count);
}
}  // namespace detail

/// Waits for all launches. @throws Error for what went wrong in them.
inline void synchronize() { DEVICE_CHECK(cudaDeviceSynchronize()); }

/// Where Buffers of this thread get memory in place of CUDA's runtime: from a harness that times launches. To ask the runtime takes
/// longer than many a kernel, and cannot be captured in a graph.
class Lender {
 public:
  virtual void* allocate(std::size_t bytes) = 0;  ///< @throws std::bad_alloc
  virtual void release(void* p) noexcept = 0;     ///< what allocate() gave

 protected:
  ~Lender() = default;
};
/// Null, unless somebody lends.
inline Lender*& lender() {
  static thread_local Lender* current = nullptr;
  return current;
}

namespace detail {
inline void* allocate_from_runtime(std::size_t bytes) {
  void* p = nullptr;
  const cudaError_t status = cudaMalloc(&p, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // what failed is over: later calls shall not report it
    throw std::bad_alloc();
  }
  DEVICE_CHECK(status);
  return p;
}
inline void* allocate(std::size_t bytes, const std::string&) {
  return lender() ? lender()->allocate(bytes) : allocate_from_runtime(bytes);
}
inline void release(void* p) noexcept {
  if (lender()) return lender()->release(p);
  cudaFree(p);  // destructors do not throw; a sticky error shows elsewhere
}
inline void copy_in(void* to, const void* from, std::size_t bytes) {
  DEVICE_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
}
inline void copy_out(void* to, const void* from, std::size_t bytes) {
  DEVICE_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
}
inline void fill(void* to, int byte, std::size_t bytes) { DEVICE_CHECK(cudaMemsetAsync(to, byte, bytes, stream())); }
}  // namespace detail

/// Host data into a `__constant__` or `__device__` variable.
template <class T>
void copy_to_symbol(const T& symbol, const T& value) {
  DEVICE_CHECK(cudaMemcpyToSymbol(symbol, &value, sizeof(T)));
}
/// A `__device__` variable back to the host.
template <class T>
void copy_from_symbol(T& value, const T& symbol) {
  DEVICE_CHECK(cudaMemcpyFromSymbol(&value, symbol, sizeof(T)));
}

#else  // ---------------------------------------------------------------------------------------------- the interpreter

/// A launch is over when it returns, whatever the stream.
inline cudaStream_t stream() { return nullptr; }
class StreamScope {
 public:
  explicit StreamScope(cudaStream_t) {}
  StreamScope(const StreamScope&) = delete;
};

template <class T = unsigned char>
T* dynamic_smem() {
  return static_cast<T*>(interpreter::dynamic_shared());
}

namespace detail {
// Throws interpreter::KernelError for the first failed check; the launch is over when this returns.
template <class... Parameters, class... Arguments>
void start_launch(bool dependent, dim3 cluster, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                  const SharedBytes& shared_bytes, Arguments&&... arguments) {
  struct Closure {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> arguments;
  } closure{kernel, std::tuple<Parameters...>(std::forward<Arguments>(arguments)...)};
  interpreter::run({reinterpret_cast<const void*>(kernel), grid, block, shared_bytes.bytes(),
                    [](const void* p) {
                      const Closure& c = *static_cast<const Closure*>(p);
                      std::apply(c.kernel, c.arguments);
                    },
                    &closure, sizeof closure, nullptr, true, interpreter::pointers_among(closure.arguments), cluster, dependent,
                    nullptr, shared_bytes});
}
}  // namespace detail

inline void synchronize() { interpreter::synchronize(); }

namespace detail {
using interpreter::allocate, interpreter::copy_in, interpreter::copy_out, interpreter::fill, interpreter::release;
using interpreter::count_multiprocessors;
}  // namespace detail

template <class T>
void copy_to_symbol(T& symbol, const T& value) {
  interpreter::copy_variable(&symbol, &value, sizeof(T));
}
template <class T>
void copy_from_symbol(T& value, const T& symbol) {
  interpreter::copy_variable(&value, &symbol, sizeof(T));
}

#endif

namespace detail {
inline unsigned& most_multiprocessors() {
  static unsigned most = ~0u;
  return most;
}
}  // namespace detail

/// Streaming multiprocessors (SMs) of the GPU: as many blocks, each of which needs an SM for itself, run at the same time.
inline unsigned multiprocessors() { return std::min(detail::count_multiprocessors(), detail::most_multiprocessors()); }

/// While it lives, multiprocessors() says no more than `most`: for tests, whose problems are small.
class FewMultiprocessors {
 public:
  /// @param most SMs, at least 1.
  explicit FewMultiprocessors(unsigned most) : before_(std::exchange(detail::most_multiprocessors(), most)) {}
  ~FewMultiprocessors() { detail::most_multiprocessors() = before_; }
  FewMultiprocessors(const FewMultiprocessors&) = delete;

 private:
  unsigned before_;
};

/// Starts `kernel` with `shared_bytes` of dynamic shared memory for each block, on stream().
/// @throws Error when CUDA refuses the configuration. What goes wrong while the kernel runs shows at the next synchronize(); on the
/// interpreter, the launch is over when this returns, and it throws what the checks have found.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, const SharedBytes& shared_bytes, Arguments&&... arguments) {
  detail::start_launch(false, {1, 1, 1}, kernel, grid, block, shared_bytes, std::forward<Arguments>(arguments)...);
}
/// launch() in clusters of `cluster` blocks. The grid's sizes are multiples of the cluster's, which has at most 8 blocks; compute
/// capability 9.0.
template <class... Parameters, class... Arguments>
void launch_clusters(void (*kernel)(Parameters...), dim3 grid, dim3 block, dim3 cluster, const SharedBytes& shared_bytes,
                     Arguments&&... arguments) {
  detail::start_launch(false, cluster, kernel, grid, block, shared_bytes, std::forward<Arguments>(arguments)...);
}
/// launch() that may begin before the launch before it on stream() has ended: as soon as each of that one's blocks has said
/// griddepcontrol_launch_dependents() or has ended. The kernel says griddepcontrol_wait() before it reads what earlier launches
/// write, and before it writes what they use (dependent_launch.cuh); compute capability 9.0. CUDA calls it programmatic dependent
/// launch.
template <class... Parameters, class... Arguments>
void launch_dependent(void (*kernel)(Parameters...), dim3 grid, dim3 block, const SharedBytes& shared_bytes,
                      Arguments&&... arguments) {
  detail::start_launch(true, {1, 1, 1}, kernel, grid, block, shared_bytes, std::forward<Arguments>(arguments)...);
}

/// launch_dependent() in clusters: see launch_clusters().
template <class... Parameters, class... Arguments>
void launch_dependent_clusters(void (*kernel)(Parameters...), dim3 grid, dim3 block, dim3 cluster, const SharedBytes& shared_bytes,
                               Arguments&&... arguments) {
  detail::start_launch(true, cluster, kernel, grid, block, shared_bytes, std::forward<Arguments>(arguments)...);
}

/// An owned array in device memory.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  /// `count` elements, uninitialised. @param name what reports call it. @throws Error or std::bad_alloc when memory is short.
  explicit Buffer(std::size_t count, const std::string& name = "")
      : data_(count ? static_cast<T*>(detail::allocate(count * sizeof(T), name)) : nullptr), size_(count) {}
  /// A copy of host data.
  explicit Buffer(const std::vector<T>& host, const std::string& name = "") : Buffer(host.size(), name) {
    upload(host.data(), host.size());
  }
  Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_), std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() {
    if (data_) detail::release(data_);
  }

  /// Copies `count` elements from the host to element `first` on.
  void upload(const T* host, std::size_t count, std::size_t first = 0) {
    require(first, count);
    if (count) detail::copy_in(data_ + first, host, count * sizeof(T));
  }
  /// Copies `count` elements, from element `first` on, to the host.
  void download(T* host, std::size_t count, std::size_t first = 0) const {
    require(first, count);
    if (count) detail::copy_out(host, data_ + first, count * sizeof(T));
  }
  /// A copy of all elements.
  std::vector<T> download() const {
    std::vector<T> host(size_);
    download(host.data(), size_);
    return host;
  }
  /// Sets every byte, as memset does, in the order of the launches.
  void fill(int byte) {
    if (size_) detail::fill(data_, byte, size_ * sizeof(T));
  }

  T* data() const { return data_; }           ///< address in device memory; null if empty
  std::size_t size() const { return size_; }  ///< in elements

 private:
  void require(std::size_t first, std::size_t count) const {
    if (first > size_ || count > size_ - first)
      throw std::out_of_range("device::Buffer: elements " + std::to_string(first) + " to " + std::to_string(first + count) +
                              " of " + std::to_string(size_));
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace device

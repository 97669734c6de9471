// The device of the CUDA runtime, which is the GPU that Options::gpu names: its properties, and what fits on it.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "common/interpreter/count/gpus.h"
#include "common/interpreter/cuda_runtime/graph.h"
#include "common/interpreter/cuda_runtime/state.h"
#include "common/interpreter/debug_info/symbols.h"
#include "common/interpreter/language/memory.h"
#include "common/interpreter/running/launch_state.h"

namespace interpreter::cuda_runtime {
namespace {

const Gpu& gpu() { return find_gpu(options().gpu); }

constexpr int kRegistersPerSm = 64 * 1024;
constexpr int kWarp = 32;
// The driver's defaults.
constexpr std::size_t kUsualDynamicShared = 48 * 1024;

struct Limits {
  std::mutex mutex;
  std::map<const void*, std::size_t> dynamic_shared;  // of kernels that asked
  std::map<cudaLimit, std::size_t> of_device;         // that cudaDeviceSetLimit has set
};
Limits& limits() {
  static Limits the_limits;
  return the_limits;
}

int most_threads(const void* kernel) {
  const unsigned bound = kernel_bound(in_devices_view(kernel)).value_or(0);
  return bound ? static_cast<int>(bound) : 1024;
}

int attribute(cudaDeviceAttr which) {
  const Gpu& g = gpu();
  switch (which) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: return 1024;
    case cudaDevAttrMaxBlockDimZ: return 64;
    case cudaDevAttrMaxGridDimX: return 0x7fffffff;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock: return static_cast<int>(kUsualDynamicShared);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return static_cast<int>(g.shared_per_block);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return static_cast<int>(g.shared_per_sm);
    case cudaDevAttrReservedSharedMemoryPerBlock: return static_cast<int>(kReservedSharedPerBlock);
    case cudaDevAttrTotalConstantMemory: return 64 * 1024;
    case cudaDevAttrWarpSize: return kWarp;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return kRegistersPerSm;
    case cudaDevAttrClockRate: return static_cast<int>(g.clock_hz / 1e3);
    case cudaDevAttrMemoryClockRate: return static_cast<int>(g.dram_bytes_per_second / (2 * 512 / 8) / 1e3);
    case cudaDevAttrGlobalMemoryBusWidth: return 512 * 8;
    case cudaDevAttrMultiProcessorCount: return g.multiprocessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return g.max_threads_per_sm;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return g.max_blocks_per_sm;
    case cudaDevAttrL2CacheSize: return static_cast<int>(g.l2_bytes);
    // Five eighths and 128 MB, as GPUs from compute capability 8.0 on have: the model does as if nobody had asked.
    case cudaDevAttrMaxPersistingL2CacheSize: return static_cast<int>(g.l2_bytes / 8 * 5);
    case cudaDevAttrMaxAccessPolicyWindowSize: return 128 << 20;
    case cudaDevAttrComputeCapabilityMajor: return g.compute_capability / 10;
    case cudaDevAttrComputeCapabilityMinor: return g.compute_capability % 10;
    case cudaDevAttrTextureAlignment: return 512;
    case cudaDevAttrAsyncEngineCount: return 2;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrComputePreemptionSupported: return 1;
    default: return 0;  // what there is none of: textures, peers, graphs
  }
}

cudaDeviceProp properties() {
  const Gpu& g = gpu();
  cudaDeviceProp p{};
  std::snprintf(p.name, sizeof p.name, "%s (interpreted)", std::string(g.title).c_str());
  p.totalGlobalMem = g.dram_bytes;
  p.sharedMemPerBlock = kUsualDynamicShared;
  p.sharedMemPerBlockOptin = g.shared_per_block;
  p.sharedMemPerMultiprocessor = g.shared_per_sm;
  p.reservedSharedMemPerBlock = kReservedSharedPerBlock;
  p.regsPerBlock = p.regsPerMultiprocessor = kRegistersPerSm;
  p.warpSize = kWarp;
  p.memPitch = 0x7fffffff;
  p.maxThreadsPerBlock = p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024, p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff, p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.totalConstMem = 64 * 1024;
  p.major = g.compute_capability / 10, p.minor = g.compute_capability % 10;
  p.textureAlignment = 512;
  p.multiProcessorCount = g.multiprocessors;
  p.maxThreadsPerMultiProcessor = g.max_threads_per_sm;
  p.maxBlocksPerMultiProcessor = g.max_blocks_per_sm;
  p.l2CacheSize = static_cast<int>(g.l2_bytes);
  p.persistingL2CacheMaxSize = attribute(cudaDevAttrMaxPersistingL2CacheSize);
  p.accessPolicyMaxWindowSize = attribute(cudaDevAttrMaxAccessPolicyWindowSize);
  p.memoryBusWidth = attribute(cudaDevAttrGlobalMemoryBusWidth);
  p.asyncEngineCount = 2;
  p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = p.streamPrioritiesSupported = 1;
  p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.managedMemory = p.concurrentManagedAccess = p.computePreemptionSupported = p.cooperativeLaunch = p.memoryPoolsSupported = 1;
#if CUDART_VERSION < 13000
  p.clockRate = attribute(cudaDevAttrClockRate);
  p.memoryClockRate = attribute(cudaDevAttrMemoryClockRate);
#endif
  return p;
}

}  // namespace

std::size_t dynamic_shared_limit(const void* kernel) {
  std::lock_guard lock(limits().mutex);
  const auto found = limits().dynamic_shared.find(in_devices_view(kernel));
  return found == limits().dynamic_shared.end() ? kUsualDynamicShared : found->second;
}

std::size_t resident_blocks(std::size_t threads, std::size_t shared_bytes) {
  return static_cast<std::size_t>(gpu().multiprocessors) *
         static_cast<std::size_t>(resident_blocks_per_sm(gpu(), static_cast<int>(threads), shared_bytes));
}

}  // namespace interpreter::cuda_runtime

namespace runtime = interpreter::cuda_runtime;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : runtime::failed("cudaSetDevice", cudaErrorInvalidDevice, "there is one device, number 0");
}
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) { return cudaGetDevice(device); }
cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  *flags = cudaDeviceScheduleAuto;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return runtime::failed("cudaGetDeviceProperties", cudaErrorInvalidDevice, "there is one device, number 0");
  *properties = runtime::properties();
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0) return runtime::failed("cudaDeviceGetAttribute", cudaErrorInvalidDevice, "there is one device, number 0");
  *value = runtime::attribute(attribute);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int) {
  std::snprintf(id, static_cast<std::size_t>(length), "0000:00:00.0");
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = runtime::forbidden("cudaDeviceSynchronize"); error != cudaSuccess) return error;
  interpreter::synchronize();
  return runtime::sticky();
}
cudaError_t cudaDeviceReset() { return cudaDeviceSynchronize(); }
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  *config = cudaFuncCachePreferNone;
  return cudaSuccess;
}
// Memory for printf is there as needed. Larger stacks too, where they are asked for: a frame takes more on this CPU.
constexpr std::size_t kMostLocalMemory = 512 * 1024;  // of a thread
constexpr std::size_t kSmallestHeap = 4 << 20;        // what an H200 makes of less
cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value) {
  if (limit == cudaLimitMallocHeapSize) {
    if (interpreter::heap_was_used())
      return runtime::failed("cudaDeviceSetLimit", cudaErrorInvalidValue,
                             "the heap is made for the first kernel that uses malloc: set its size before");
    interpreter::options().heap_bytes = value = std::max(value, kSmallestHeap);
  }
  std::lock_guard lock(runtime::limits().mutex);
  runtime::limits().of_device[limit] = value;
  std::size_t& stack = interpreter::options().stack_bytes;
  if (limit == cudaLimitStackSize) stack = std::max(stack, 2 * std::min(value, kMostLocalMemory));
  return cudaSuccess;
}
cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
  std::lock_guard lock(runtime::limits().mutex);
  const auto set = runtime::limits().of_device.find(limit);
  *value = set != runtime::limits().of_device.end() ? set->second : limit == cudaLimitStackSize ? 1024 : std::size_t(8) << 20;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int from, int to) {
  *value = 0;
  return runtime::failed("cudaDeviceGetP2PAttribute", cudaErrorInvalidDevice,
                         from == to ? "both devices are the same one" : "there is one device, number 0");
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return runtime::failed("cudaDeviceEnablePeerAccess", cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceDisablePeerAccess(int) { return runtime::failed("cudaDeviceDisablePeerAccess", cudaErrorInvalidDevice); }
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
    interpreter::allow_large_clusters(interpreter::in_devices_view(kernel), value != 0);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;  // the others are preferences
  if (value < 0 || static_cast<std::size_t>(value) > runtime::gpu().shared_per_block)
    return runtime::failed(
        "cudaFuncSetAttribute", cudaErrorInvalidValue,
        std::to_string(value) + " bytes of dynamic shared memory, of at most " + std::to_string(runtime::gpu().shared_per_block));
  std::lock_guard lock(runtime::limits().mutex);
  runtime::limits().dynamic_shared[interpreter::in_devices_view(kernel)] = static_cast<std::size_t>(value);
  return cudaSuccess;
}
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }
// The interpreter has no registers to count: 32 is what small kernels need.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  *attributes = {};
  attributes->maxThreadsPerBlock = runtime::most_threads(kernel);
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = runtime::gpu().compute_capability;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(runtime::dynamic_shared_limit(kernel));
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel, int threads,
                                                                   std::size_t shared_bytes, unsigned) {
  if (threads <= 0) return runtime::failed("cudaOccupancyMaxActiveBlocksPerMultiprocessor", cudaErrorInvalidValue);
  *blocks = threads > runtime::most_threads(kernel) || shared_bytes > runtime::gpu().shared_per_block
                ? 0
                : interpreter::resident_blocks_per_sm(runtime::gpu(), threads, shared_bytes);
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads, std::size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, threads, shared_bytes, 0);
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void*, int blocks, int) {
  const interpreter::Gpu& g = runtime::gpu();
  const std::size_t share = blocks > 0 ? g.shared_per_sm / static_cast<std::size_t>(blocks) : 0;
  *bytes =
      share > interpreter::kReservedSharedPerBlock ? std::min(share - interpreter::kReservedSharedPerBlock, g.shared_per_block) : 0;
  return cudaSuccess;
}

}  // extern "C"

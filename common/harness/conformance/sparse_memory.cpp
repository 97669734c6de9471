#include "common/harness/conformance/sparse_memory.h"

#include <algorithm>

#include "common/device/device.cuh"

#ifdef COURSE_ON_INTERPRETER

namespace harness {

// Pages that nobody touches cost nothing there.
std::string SparseMemory::why_not() { return ""; }
SparseMemory::SparseMemory(std::size_t bytes, const std::string& name) : data_(device::detail::allocate(bytes, name)) {}
SparseMemory::~SparseMemory() { device::detail::release(data_); }
void SparseMemory::back(std::size_t, std::size_t) {}

}  // namespace harness

#else

#include <cuda.h>

namespace harness {
namespace {

// The driver's functions for virtual memory, asked of the runtime, so that nothing has to be linked with the driver.
struct Driver {
  template <class Function>
  Function* find(const char* name) {
    constexpr unsigned kCudaVersion = 10020;  // the first that had them
    void* found = nullptr;
    cudaDriverEntryPointQueryResult status{};
    if (cudaGetDriverEntryPointByVersion(name, &found, kCudaVersion, cudaEnableDefault, &status) != cudaSuccess || !found) {
      cudaGetLastError();
      complete = false;
    }
    return reinterpret_cast<Function*>(found);
  }
  bool complete = true;
  decltype(cuDeviceGetAttribute)* device_get_attribute = find<decltype(cuDeviceGetAttribute)>("cuDeviceGetAttribute");
  decltype(cuMemGetAllocationGranularity)* granularity =
      find<decltype(cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
  decltype(cuMemAddressReserve)* reserve = find<decltype(cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(cuMemAddressFree)* free_addresses = find<decltype(cuMemAddressFree)>("cuMemAddressFree");
  decltype(cuMemCreate)* create = find<decltype(cuMemCreate)>("cuMemCreate");
  decltype(cuMemRelease)* release = find<decltype(cuMemRelease)>("cuMemRelease");
  decltype(cuMemMap)* map = find<decltype(cuMemMap)>("cuMemMap");
  decltype(cuMemUnmap)* unmap = find<decltype(cuMemUnmap)>("cuMemUnmap");
  decltype(cuMemSetAccess)* set_access = find<decltype(cuMemSetAccess)>("cuMemSetAccess");
};

const Driver& driver() {
  static const Driver functions;
  return functions;
}

void check(CUresult result, const char* call) {
  if (result == CUDA_ERROR_OUT_OF_MEMORY) throw std::bad_alloc();
  if (result != CUDA_SUCCESS) throw device::Error(std::string(call) + " failed with error " + std::to_string(result));
}

int current_device() {
  int gpu = 0;
  DEVICE_CHECK(cudaFree(nullptr));  // makes the context, which the driver's functions need
  DEVICE_CHECK(cudaGetDevice(&gpu));
  return gpu;
}

CUmemAllocationProp properties() {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, current_device()};
  return p;
}

CUdeviceptr address(void* data) { return reinterpret_cast<CUdeviceptr>(data); }

}  // namespace

std::string SparseMemory::why_not() {
  int supported = 0;
  const bool asked =
      driver().complete && driver().device_get_attribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                                                         current_device()) == CUDA_SUCCESS;
  return asked && supported ? "" : "this GPU or its driver has no virtual memory management (cuMemMap)";
}

SparseMemory::SparseMemory(std::size_t bytes, const std::string&) {
  const CUmemAllocationProp p = properties();
  check(driver().granularity(&page_bytes_, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "cuMemGetAllocationGranularity");
  bytes_ = (bytes + page_bytes_ - 1) / page_bytes_ * page_bytes_;
  CUdeviceptr reserved = 0;
  check(driver().reserve(&reserved, bytes_, 0, 0, 0), "cuMemAddressReserve");
  data_ = reinterpret_cast<void*>(reserved);
}

SparseMemory::~SparseMemory() {
  cudaDeviceSynchronize();  // nobody may use what is about to go; an error of a kernel shows elsewhere
  for (const std::size_t page : pages_) driver().unmap(address(data_) + page * page_bytes_, page_bytes_);
  driver().free_addresses(address(data_), bytes_);
}

void SparseMemory::back(std::size_t offset, std::size_t bytes) {
  const CUmemAllocationProp p = properties();
  for (std::size_t page = offset / page_bytes_; page * page_bytes_ < offset + bytes; ++page) {
    if (std::find(pages_.begin(), pages_.end(), page) != pages_.end()) continue;
    const CUdeviceptr at = address(data_) + page * page_bytes_;
    CUmemGenericAllocationHandle memory{};
    check(driver().create(&memory, page_bytes_, &p, 0), "cuMemCreate");
    const CUresult mapped = driver().map(at, page_bytes_, 0, memory, 0);
    driver().release(memory);  // the mapping keeps it
    check(mapped, "cuMemMap");
    pages_.push_back(page);
    const CUmemAccessDesc access{p.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    check(driver().set_access(at, page_bytes_, &access, 1), "cuMemSetAccess");
  }
}

}  // namespace harness

#endif

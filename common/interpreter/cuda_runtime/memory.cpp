// Memory of the CUDA runtime: allocations, copies, variables of the device.
//
// Everything is done when the call returns: work of a stream begins and ends there.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>

#include "common/interpreter/count/gpus.h"
#include "common/interpreter/cuda_runtime/graph.h"
#include "common/interpreter/cuda_runtime/labels.h"
#include "common/interpreter/cuda_runtime/state.h"
#include "common/interpreter/debug_info/symbols.h"
#include "common/interpreter/memory/global_memory.h"

struct CUmemPoolHandle_st {};  // CUDA's own name

extern "C" char __executable_start, _end;  // of the program's own image, from the linker

namespace interpreter::cuda_runtime {
namespace {

struct Given {
  std::size_t bytes;
  cudaMemoryType type;  // device; managed; host, which is pinned memory
};
struct Book {
  std::mutex mutex;
  std::map<const void*, Given> given;  // by the functions below
  std::string label;                   // of the next allocation
};
Book& book() {
  static Book& the_book = *new Book;  // never destroyed: destructors of static objects free memory
  return the_book;
}

// What does not come from a function below, but is allocated, is the device's.
cudaMemoryType type_of(const void* p) {
  Book& b = book();
  std::lock_guard lock(b.mutex);
  auto next = b.given.upper_bound(p);
  const bool is_given = next != b.given.begin() && p < static_cast<const char*>((--next)->first) + next->second.bytes;
  return is_given ? next->second.type : cudaMemoryTypeDevice;
}

std::size_t offset_of(const void* p) {
  return static_cast<std::size_t>(static_cast<const char*>(p) - GlobalMemory::instance().base());
}
bool in_global_memory(const void* p) { return GlobalMemory::instance().contains(reinterpret_cast<std::uintptr_t>(p)); }
bool in_program(const void* p) { return p >= &__executable_start && p < &_end; }

// Writes of the host into managed or pinned memory are not seen, so all of it counts as written.
void trust_the_host(void* p, std::size_t bytes) { GlobalMemory::instance().mark_initialised(offset_of(p), bytes); }

cudaError_t allocate(const char* call, void** result, std::size_t bytes, cudaMemoryType type) {
  if (!result) return failed(call, cudaErrorInvalidValue, "there is no pointer to fill in");
  *result = nullptr;
  const bool shared_with_host = type != cudaMemoryTypeDevice;
  Book& b = book();
  std::lock_guard lock(b.mutex);
  const std::string label = std::exchange(b.label, "");
  if (bytes == 0) return cudaSuccess;
  try {
    *result = shared_with_host ? allocate_managed(bytes, label) : interpreter::allocate(bytes, label);
  } catch (const std::bad_alloc&) {
    return failed(call, cudaErrorMemoryAllocation,
                  std::to_string(bytes) + " bytes; the modelled GPU has " + std::to_string(find_gpu(options().gpu).dram_bytes));
  }
  if (shared_with_host) trust_the_host(*result, bytes);
  b.given[*result] = {bytes, type};
  return cudaSuccess;
}

cudaError_t release(const char* call, void* p) {
  if (!p || is_of_graph(p)) return cudaSuccess;
  Book& b = book();
  std::lock_guard lock(b.mutex);
  if (b.given.erase(p) == 0)
    return failed(call, cudaErrorInvalidValue, "the pointer is not what an allocation gave, or it was freed before");
  interpreter::release(p);
  return cudaSuccess;
}

// Which bytes have been written goes with the bytes.
void copy_within_device(char* to, const char* from, std::size_t bytes) {
  auto& memory = GlobalMemory::instance();
  const GlobalMemory::Unlocked unlocked;
  std::memmove(to, from, bytes);
  for (std::size_t done = 0; done < bytes;) {
    const bool whole = bytes - done >= 16 && offset_of(from + done) % 16 == 0 && memory.initialised(offset_of(from + done), 16);
    const std::size_t size = whole ? 16 : 1;
    if (whole || memory.initialised(offset_of(from + done), 1)) memory.mark_initialised(offset_of(to + done), size);
    done += size;
  }
}

// Bytes, in whichever direction the pointers say. @throws std::out_of_range where they leave an allocation.
void copy(void* to, const void* from, std::size_t bytes) {
  const auto& memory = GlobalMemory::instance();
  if (in_global_memory(to)) memory.require_allocated(to, bytes, "the destination");
  if (in_global_memory(from)) memory.require_allocated(from, bytes, "the source");
  if (in_global_memory(to) && in_global_memory(from)) {
    copy_within_device(static_cast<char*>(to), static_cast<const char*>(from), bytes);
  } else if (in_global_memory(to)) {
    copy_in(to, from, bytes);
  } else if (in_global_memory(from)) {
    copy_out(to, from, bytes);
  } else {
    copy_variable(to, from, bytes);
  }
}

// CUDA compares the direction with what the pointers are; a variable of the device lies in the program's own image here.
bool fits(const void* p, bool on_device) {
  return on_device ? in_global_memory(p) || in_program(p) : !in_global_memory(p) || is_shared_with_host(p);
}
const char* misfit(const void* to, const void* from, cudaMemcpyKind kind) {
  if (!to || !from) return "a pointer is null";
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault) return nullptr;
  if (!fits(to, to_device)) return to_device ? "the destination is host memory" : "the destination is device memory";
  if (!fits(from, from_device)) return from_device ? "the source is host memory" : "the source is device memory";
  return nullptr;
}

// `height` rows of `width` bytes.
cudaError_t copy_rows(const char* call, void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                      std::size_t height, cudaMemcpyKind kind) {
  if (sticky() != cudaSuccess) return sticky();
  if (width == 0 || height == 0) return cudaSuccess;
  if (height > 1 && (width > to_pitch || width > from_pitch))
    return failed(call, cudaErrorInvalidPitchValue, "a row is wider than the pitch");
  if (const char* const why = misfit(to, from, kind)) return failed(call, cudaErrorInvalidValue, why);
  synchronize();
  try {
    for (std::size_t row = 0; row < height; ++row)
      copy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
  } catch (const std::out_of_range& e) {
    return failed(call, cudaErrorInvalidValue, e.what());
  }
  return cudaSuccess;
}

cudaError_t copy(const char* call, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return copy_rows(call, to, bytes, from, bytes, bytes, 1, kind);
}

cudaError_t fill_rows(const char* call, void* to, std::size_t pitch, int byte, std::size_t width, std::size_t height) {
  if (sticky() != cudaSuccess) return sticky();
  if (width == 0 || height == 0) return cudaSuccess;
  if (!in_global_memory(to) && !in_program(to)) return failed(call, cudaErrorInvalidValue, "the destination is not device memory");
  synchronize();
  try {
    for (std::size_t row = 0; row < height; ++row) {
      char* const begin = static_cast<char*>(to) + row * pitch;
      if (in_global_memory(begin))
        fill(begin, byte, width);
      else
        std::memset(begin, byte, width);
    }
  } catch (const std::out_of_range& e) {
    return failed(call, cudaErrorInvalidValue, e.what());
  }
  return cudaSuccess;
}

// Work of a stream: done now, or a node if the stream is captured.
template <class Function>
cudaError_t in_stream(const char* call, cudaStream_t stream, cudaGraphNodeType type, const Function& work) {
  if (is_captured(stream)) return captured(stream, type, [work](cudaStream_t) { return work(); }) ? cudaSuccess : work();
  if (const cudaError_t error = forbidden(call, stream, false); error != cudaSuccess) return error;
  return work();
}
cudaError_t copy_in_stream(const char* call, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                           cudaStream_t stream) {
  return in_stream(call, stream, cudaGraphNodeTypeMemcpy, [=] { return copy(call, to, from, bytes, kind); });
}
// What the host waits for.
cudaError_t copy_and_wait(const char* call, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t error = forbidden(call, nullptr, true); error != cudaSuccess) return error;
  return copy(call, to, from, bytes, kind);
}
cudaError_t fill_in_stream(const char* call, void* to, std::size_t pitch, int byte, std::size_t width, std::size_t height,
                           cudaStream_t stream) {
  return in_stream(call, stream, cudaGraphNodeTypeMemset, [=] { return fill_rows(call, to, pitch, byte, width, height); });
}

}  // namespace

cudaError_t copy_bytes(const char* call, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return copy(call, to, from, bytes, kind);
}

cudaError_t copy_box(const char* call, const cudaMemcpy3DParms& p) {
  if (p.srcArray || p.dstArray) return failed(call, cudaErrorNotSupported, "the interpreter has no CUDA arrays");
  const auto plane = [](const cudaPitchedPtr& box, const cudaPos& at, std::size_t z) {
    return static_cast<char*>(box.ptr) + ((at.z + z) * box.ysize + at.y) * box.pitch + at.x;
  };
  if (!p.srcPtr.ptr || !p.dstPtr.ptr) return failed(call, cudaErrorInvalidValue, "a pointer is null");
  for (std::size_t z = 0; z < p.extent.depth; ++z) {
    const cudaError_t error = copy_rows(call, plane(p.dstPtr, p.dstPos, z), p.dstPtr.pitch, plane(p.srcPtr, p.srcPos, z),
                                        p.srcPtr.pitch, p.extent.width, p.extent.height, p.kind);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t fill_elements(const char* call, const cudaMemsetParams& p) {
  if (p.elementSize != 1 && p.elementSize != 2 && p.elementSize != 4)
    return failed(call, cudaErrorInvalidValue, "an element has 1, 2 or 4 bytes");
  const std::size_t width = p.width * p.elementSize;
  if (p.elementSize == 1) return fill_rows(call, p.dst, p.pitch, static_cast<int>(p.value), width, p.height);
  std::string row(width, '\0');
  for (std::size_t at = 0; at < width; at += p.elementSize) std::memcpy(row.data() + at, &p.value, p.elementSize);
  for (std::size_t y = 0; y < p.height; ++y)
    if (const cudaError_t error = copy(call, static_cast<char*>(p.dst) + y * p.pitch, row.data(), width, cudaMemcpyHostToDevice);
        error != cudaSuccess)
      return error;
  return cudaSuccess;
}

bool is_allocated(const void* p) {
  if (!in_global_memory(p)) return false;
  const GlobalMemory::Allocation a = GlobalMemory::instance().nearest(p);
  const char* const address = static_cast<const char*>(p);
  return a.begin && address >= a.begin && address < a.begin + a.bytes;
}

bool is_shared_with_host(const void* p) { return type_of(p) != cudaMemoryTypeDevice; }

void label_next_allocation(const char* arguments) {
  std::lock_guard lock(book().mutex);
  book().label = label_of(arguments);
}

std::string label_of(const std::string& arguments) {
  // The first argument: what stands after its last '&', or all of it.
  std::size_t end = 0;
  for (int depth = 0; end < arguments.size() && (depth > 0 || arguments[end] != ','); ++end)
    depth += (arguments[end] == '(') - (arguments[end] == ')');
  std::string text = arguments.substr(0, end);
  if (const std::size_t at = text.rfind('&'); at != std::string::npos) text.erase(0, at + 1);
  // Parentheses of a cast around it.
  while (!text.empty() && (text.back() == ' ' || (text.back() == ')' && std::count(text.begin(), text.end(), '(') <
                                                                            std::count(text.begin(), text.end(), ')'))))
    text.pop_back();
  while (text.size() > 1 && text.front() == '(' && text.back() == ')') text = text.substr(1, text.size() - 2);
  text.erase(0, text.find_first_not_of(' ') == std::string::npos ? text.size() : text.find_first_not_of(' '));
  return text;
}

// The variable itself: of two views the device's, or the only one.
char* variable(const void* symbol) {
  const void* const of_device = in_devices_view(symbol);
  return static_cast<char*>(const_cast<void*>(of_device ? of_device : symbol));
}

bool lie_in_symbol(const char* call, std::size_t bytes, std::size_t offset, std::size_t size) {
  if (offset <= size && bytes <= size - offset) return true;
  failed(
      call, cudaErrorInvalidValue,
      std::to_string(bytes) + " bytes from byte " + std::to_string(offset) + " on, but the variable has " + std::to_string(size));
  return false;
}

}  // namespace interpreter::cuda_runtime

namespace runtime = interpreter::cuda_runtime;

extern "C" {

cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  if (const cudaError_t error = runtime::forbidden("cudaMalloc"); error != cudaSuccess) return error;
  return runtime::allocate("cudaMalloc", p, bytes, cudaMemoryTypeDevice);
}
cudaError_t cudaMallocAsync(void** p, std::size_t bytes, cudaStream_t stream) {
  const cudaError_t error = runtime::allocate("cudaMallocAsync", p, bytes, cudaMemoryTypeDevice);
  // Of a node, the address is the same in each launch.
  if (error == cudaSuccess && runtime::captured(stream, cudaGraphNodeTypeMemAlloc, [](cudaStream_t) { return cudaSuccess; }))
    runtime::give_to_graph(*p, bytes);
  return error;
}
cudaError_t cudaMallocFromPoolAsync(void** p, std::size_t bytes, cudaMemPool_t, cudaStream_t stream) {
  return cudaMallocAsync(p, bytes, stream);
}
cudaError_t cudaMallocManaged(void** p, std::size_t bytes, unsigned) {
  return runtime::allocate("cudaMallocManaged", p, bytes, cudaMemoryTypeManaged);
}
cudaError_t cudaMallocHost(void** p, std::size_t bytes) {
  return runtime::allocate("cudaMallocHost", p, bytes, cudaMemoryTypeHost);
}
cudaError_t cudaHostAlloc(void** p, std::size_t bytes, unsigned) {
  return runtime::allocate("cudaHostAlloc", p, bytes, cudaMemoryTypeHost);
}
cudaError_t cudaMallocPitch(void** p, std::size_t* pitch, std::size_t width, std::size_t height) {
  *pitch = (width + 511) / 512 * 512;  // what the GPUs that are modelled give
  return runtime::allocate("cudaMallocPitch", p, *pitch * height, cudaMemoryTypeDevice);
}
cudaError_t cudaMalloc3D(cudaPitchedPtr* p, cudaExtent extent) {
  *p = {nullptr, 0, extent.width, extent.height};
  return cudaMallocPitch(&p->ptr, &p->pitch, extent.width, extent.height * extent.depth);
}
cudaError_t cudaFree(void* p) { return runtime::release("cudaFree", p); }
cudaError_t cudaFreeAsync(void* p, cudaStream_t stream) {
  return runtime::in_stream("cudaFreeAsync", stream, cudaGraphNodeTypeMemFree,
                            [p] { return runtime::release("cudaFreeAsync", p); });
}
cudaError_t cudaFreeHost(void* p) { return runtime::release("cudaFreeHost", p); }

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return runtime::is_shared_with_host(host) ? cudaSuccess
                                            : runtime::failed("cudaHostGetDevicePointer", cudaErrorInvalidValue,
                                                              "the pointer is not from cudaHostAlloc or cudaMallocHost");
}
cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  *flags = cudaHostAllocMapped;
  return runtime::is_shared_with_host(host) ? cudaSuccess : runtime::failed("cudaHostGetFlags", cudaErrorInvalidValue);
}
// Any memory will do as the source of a copy. Kernels do not reach what was not allocated as pinned: memcheck says so where one
// tries, and this where it is asked for.
cudaError_t cudaHostRegister(void*, std::size_t, unsigned flags) {
  if (!(flags & cudaHostRegisterMapped)) return cudaSuccess;
  return runtime::failed("cudaHostRegister", cudaErrorNotSupported,
                         "no cudaHostRegisterMapped here: kernels reach what cudaHostAlloc or cudaMallocManaged has allocated");
}
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return runtime::copy_and_wait("cudaMemcpy", to, from, bytes, kind);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return runtime::copy_in_stream("cudaMemcpyAsync", to, from, bytes, kind, stream);
}
cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return runtime::copy_and_wait("cudaMemcpyPeer", to, from, bytes, cudaMemcpyDeviceToDevice);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, cudaStream_t stream) {
  return runtime::copy_in_stream("cudaMemcpyPeerAsync", to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                         std::size_t height, cudaMemcpyKind kind) {
  if (const cudaError_t error = runtime::forbidden("cudaMemcpy2D", nullptr, true); error != cudaSuccess) return error;
  return runtime::copy_rows("cudaMemcpy2D", to, to_pitch, from, from_pitch, width, height, kind);
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                              std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return runtime::in_stream("cudaMemcpy2DAsync", stream, cudaGraphNodeTypeMemcpy, [=] {
    return runtime::copy_rows("cudaMemcpy2DAsync", to, to_pitch, from, from_pitch, width, height, kind);
  });
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
  if (const cudaError_t error = runtime::forbidden("cudaMemcpy3D", nullptr, true); error != cudaSuccess) return error;
  return runtime::copy_box("cudaMemcpy3D", *p);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream) {
  return runtime::in_stream("cudaMemcpy3DAsync", stream, cudaGraphNodeTypeMemcpy,
                            [p = *p] { return runtime::copy_box("cudaMemcpy3DAsync", p); });
}
cudaError_t cudaMemset(void* to, int byte, std::size_t bytes) {
  return runtime::fill_in_stream("cudaMemset", to, bytes, byte, bytes, 1, nullptr);
}
cudaError_t cudaMemsetAsync(void* to, int byte, std::size_t bytes, cudaStream_t stream) {
  return runtime::fill_in_stream("cudaMemsetAsync", to, bytes, byte, bytes, 1, stream);
}
cudaError_t cudaMemset2D(void* to, std::size_t pitch, int byte, std::size_t width, std::size_t height) {
  return runtime::fill_in_stream("cudaMemset2D", to, pitch, byte, width, height, nullptr);
}
cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int byte, std::size_t width, std::size_t height, cudaStream_t stream) {
  return runtime::fill_in_stream("cudaMemset2DAsync", to, pitch, byte, width, height, stream);
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr p, int byte, cudaExtent extent, cudaStream_t stream) {
  return runtime::in_stream("cudaMemset3D", stream, cudaGraphNodeTypeMemset, [=] {
    cudaError_t error = cudaSuccess;
    for (std::size_t z = 0; z < extent.depth && error == cudaSuccess; ++z)
      error = runtime::fill_rows("cudaMemset3D", static_cast<char*>(p.ptr) + z * p.pitch * p.ysize, p.pitch, byte, extent.width,
                                 extent.height);
    return error;
  });
}
cudaError_t cudaMemset3D(cudaPitchedPtr p, int byte, cudaExtent extent) { return cudaMemset3DAsync(p, byte, extent, nullptr); }

// A variable of the device is one of the program's, so its address is the symbol. The typed functions of program.h know its size.
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind) {
  return runtime::copy_and_wait("cudaMemcpyToSymbol", runtime::variable(symbol) + offset, from, bytes, kind);
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return runtime::copy_in_stream("cudaMemcpyToSymbolAsync", runtime::variable(symbol) + offset, from, bytes, kind, stream);
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind) {
  return runtime::copy_and_wait("cudaMemcpyFromSymbol", to, runtime::variable(symbol) + offset, bytes, kind);
}
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  return runtime::copy_in_stream("cudaMemcpyFromSymbolAsync", to, runtime::variable(symbol) + offset, bytes, kind, stream);
}
cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  *address = runtime::variable(symbol);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
  *total = interpreter::find_gpu(interpreter::options().gpu).dram_bytes;
  *available = *total;
  runtime::Book& b = runtime::book();
  std::lock_guard lock(b.mutex);
  for (const auto& [p, given] : b.given)
    if (given.type == cudaMemoryTypeDevice) *available -= std::min(given.bytes, *available);
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* p) {
  *attributes = {};
  attributes->type = runtime::is_allocated(p) ? runtime::type_of(p) : cudaMemoryTypeUnregistered;
  if (attributes->type != cudaMemoryTypeUnregistered) attributes->devicePointer = const_cast<void*>(p);
  if (attributes->type != cudaMemoryTypeDevice) attributes->hostPointer = const_cast<void*>(p);
  return cudaSuccess;
}

// Advice about where managed memory lies: there is one place.
#if CUDART_VERSION >= 13000
cudaError_t cudaMemPrefetchAsync(const void*, std::size_t, cudaMemLocation, unsigned, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemAdvise(const void*, std::size_t, cudaMemoryAdvise, cudaMemLocation) { return cudaSuccess; }
#else
cudaError_t cudaMemPrefetchAsync(const void*, std::size_t, int, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemAdvise(const void*, std::size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
#endif

// Pools keep nothing.
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  static CUmemPoolHandle_st the_default;
  *pool = &the_default;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) { return cudaDeviceGetDefaultMemPool(pool, device); }
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  if (properties->handleTypes != cudaMemHandleTypeNone)
    return runtime::failed("cudaMemPoolCreate", cudaErrorNotSupported, "no other process can have the memory here");
  *pool = new CUmemPoolHandle_st;
  return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  cudaMemPool_t of_device;
  cudaDeviceGetDefaultMemPool(&of_device, 0);
  if (pool == of_device) return runtime::failed("cudaMemPoolDestroy", cudaErrorInvalidValue, "it is the device's own");
  delete pool;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, std::size_t) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) { return cudaSuccess; }

}  // extern "C"

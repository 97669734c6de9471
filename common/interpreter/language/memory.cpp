#include "common/interpreter/language/memory.h"

#include <atomic>
#include <cstdio>
#include <new>

#include "common/interpreter/schedule/entered.h"

namespace interpreter {
namespace {

std::atomic<bool> asked_for_memory{false};

bool between(const void* p, const void* begin, const void* end) { return begin && p >= begin && p < end; }

// While the interpreter works, its own allocations are the host's.
class Paused {
 public:
  Paused() : fiber_(std::exchange(current_fiber, nullptr)) {
    if (fiber_ && current_block->worlds.in_other()) current_block->worlds.end_other();  // it would allocate twice
  }
  ~Paused() { current_fiber = fiber_; }

 private:
  Fiber* const fiber_;
};

}  // namespace

Space space_of(const void* p) {
  if (current_block) {
    const char* const dynamic = static_cast<const char*>(current_block->shared.dynamic());
    const Range statics = calling_thread_tls();
    if (between(p, dynamic, dynamic + SharedMemory::kArenaBytes) || between(p, statics.begin, statics.end)) return Space::kShared;
  }
  if (between(p, constant_memory().begin, constant_memory().end)) return Space::kConstant;
  if (is_device_memory(p) || between(p, variables().begin, variables().end)) return Space::kGlobal;
  if (current_fiber) {
    // The stack's size is rounded up to pages.
    const char* const end = current_fiber->stack_limit + current_block->work().options().stack_bytes + 2 * kPage;
    if (between(p, current_fiber->stack_limit, end)) return Space::kLocal;
  }
  return Space::kOther;
}

bool is_device_memory(const void* p) { return p && GlobalMemory::instance().contains(reinterpret_cast<std::uintptr_t>(p)); }

void* allocate_in_kernel(std::size_t bytes) {
  const Paused paused;
  asked_for_memory = true;
  try {
    return GlobalMemory::instance().allocate(bytes ? bytes : 1, "malloc in a kernel", GlobalMemory::Kind::kHeap);
  } catch (const std::bad_alloc&) {
    static std::atomic<bool> told{false};
    if (!told.exchange(true))
      std::fprintf(stderr,
                   "interpreter: note: malloc in a kernel gives null: %zu bytes, and the heap of kernels has %zu, as a GPU's has; "
                   "cudaDeviceSetLimit(cudaLimitMallocHeapSize, ...) asks for more\n",
                   bytes, options().heap_bytes);
    return nullptr;
  }
}
bool heap_was_used() { return asked_for_memory; }
void release_in_kernel(void* p) {
  if (current_fiber) {  // what the thread did with the memory is looked at as long as it exists
    const Entered in;
    in.block.activity.note_progress();
    in.block.scheduler.rendezvous(in.fiber);
  }
  const Paused paused;
  GlobalMemory::instance().release(p);
}
bool is_tried_out() { return current_fiber && current_block->worlds.in_other(); }
bool in_kernel() { return current_fiber != nullptr; }

}  // namespace interpreter

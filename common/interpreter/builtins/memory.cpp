
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

#include "common/interpreter/debug_info/symbols.h"
#include "common/interpreter/instructions/entered.h"
#include "common/interpreter/memory/global_memory.h"
#include "common/interpreter/memory/shared_memory.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/schedule/activity.h"
#include "common/interpreter/schedule/scheduler.h"

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

[[noreturn]] void fail_release(const Entered& in, const void* p, const GlobalMemory::Allocation& a, const void* return_address) {
  const bool is_inside = static_cast<std::size_t>(static_cast<const char*>(p) - a.begin) < a.bytes;
  std::string what = "free of ";
  what += !is_inside   ? "what malloc and new in a kernel did not give: "
          : a.released ? "released memory: "
          : a.is_heap  ? "a pointer into the middle: "
                       : "memory that the host has allocated: ";
  what += in.block.reporter.describe(p);
  if (is_inside && a.released && !a.released_by.empty()) what += ", at " + at(first_line_of_user(a.released_by));
  in.block.reporter.fail(Check::kMemcheck, what,
                         is_inside && !a.is_heap ? "the host frees what the host has allocated, after the launch"
                                                 : "a kernel frees the pointer that malloc or new in a kernel gave, once",
                         &in.fiber, user_location(to_pc(return_address)), in.block.reporter.variable_at(p));
}

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
    const char* const end = current_fiber->stack_limit + current_block->work.options().stack_bytes + kPage + page_bytes();
    if (between(p, current_fiber->stack_limit, end)) return Space::kLocal;
  }
  return Space::kOther;
}

bool is_device_memory(const void* p) { return p && GlobalMemory::instance().contains(reinterpret_cast<std::uintptr_t>(p)); }

void* allocate_in_kernel(std::size_t bytes) {
  const Paused paused;
  asked_for_memory = true;
  try {
    return GlobalMemory::instance().allocate(bytes ? bytes : 1, "malloc in a kernel", GlobalMemory::Kind::kHeap,
                                             options().heap_bytes);
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
void release_in_kernel(void* p, const void* return_address) {
  if (!p) return;
  GlobalMemory& memory = GlobalMemory::instance();
  if (!current_fiber) return memory.release(p);
  const Entered in;
  if (!is_device_memory(p) && !user_location(to_pc(return_address)).line) return std::free(p);  // the interpreter's own
  in.block.activity.note_progress();
  in.block.scheduler.rendezvous(in.fiber);  // what the thread did with the memory is looked at as long as it exists
  const auto holder = [&] { return is_device_memory(p) ? memory.nearest(p) : GlobalMemory::Allocation(); };
  if (const GlobalMemory::Allocation a = holder(); a.is_heap && a.begin == p) {
    try {
      return memory.release(p, {return_address});
    } catch (const std::invalid_argument&) {  // it was released before
    }
  }
  if (in.block.work.options().memcheck) fail_release(in, p, holder(), return_address);
}
bool is_tried_out() { return current_fiber && current_block->worlds.in_other(); }
bool in_kernel() { return current_fiber != nullptr; }

}  // namespace interpreter

#include "common/interpreter/language/memory.h"

#include <new>

#include "common/interpreter/block_parts.h"

namespace interpreter {
namespace {

bool between(const void* p, const void* begin, const void* end) { return begin && p >= begin && p < end; }

// While the interpreter works, its own allocations are the host's.
class Paused {
 public:
  Paused() : fiber_(std::exchange(current_fiber, nullptr)) {}
  ~Paused() { current_fiber = fiber_; }

 private:
  Fiber* const fiber_;
};

}  // namespace

Space space_of(const void* p) {
  if (current_block) {
    const char* const dynamic = static_cast<const char*>(current_block->dynamic_shared());
    const Range statics = calling_thread_tls();
    if (between(p, dynamic, dynamic + Block::kArenaBytes) || between(p, statics.begin, statics.end)) return Space::kShared;
  }
  if (between(p, constant_memory().begin, constant_memory().end)) return Space::kConstant;
  if (is_device_memory(p) || between(p, variables().begin, variables().end)) return Space::kGlobal;
  if (current_fiber) {
    // The stack's size is rounded up to pages.
    const char* const end = current_fiber->stack_limit + current_block->launch().options.stack_bytes + 2 * kPage;
    if (between(p, current_fiber->stack_limit, end)) return Space::kLocal;
  }
  return Space::kOther;
}

bool is_device_memory(const void* p) { return p && GlobalMemory::instance().contains(reinterpret_cast<std::uintptr_t>(p)); }

void* allocate_in_kernel(std::size_t bytes) {
  const Paused paused;
  try {
    return allocate(bytes ? bytes : 1, "malloc in a kernel");
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void release_in_kernel(void* p) {
  const Paused paused;
  release(p);
}
bool in_kernel() { return current_fiber != nullptr; }

}  // namespace interpreter

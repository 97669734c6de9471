// What the compiler calls before every load and store (-fsanitize=thread), and the C library's functions that copy memory.
#include "common/interpreter/hooks/hooks.h"

#include <algorithm>

using interpreter::current_fiber;
using interpreter::observe_access;
using interpreter::Op;

namespace {

// Wider than the alignment of its type: two floats of a float3, say. A GPU takes them one by one; what makes an aligned vector in
// the end is put together again by the access log.
void observe_unaligned(const void* p, unsigned size, Op op, bool strong, const void* return_address) {
  unsigned piece = size > 4 ? 4 : std::max(1u, size / 2);
  while (reinterpret_cast<std::uintptr_t>(p) % piece) piece /= 2;
  for (unsigned done = 0; done < size; done += piece)
    observe_access(static_cast<const char*>(p) + done, piece, op, strong, return_address);
}

void observe_range(const void* p, std::size_t bytes, Op op, const void* return_address) {
  interpreter::Fiber* const fiber = current_fiber;
  if (bytes == 0) return;
  if (!fiber) return interpreter::before_host_copy(p, return_address);
  current_fiber = nullptr;
  interpreter::running_block().observe_range(*fiber, p, bytes, op, return_address);
  current_fiber = fiber;
}

}  // namespace

extern "C" {

#define INTERPRETER_HOOK(name, size, op, strong) \
  void name(void* p) { observe_access(p, size, op, strong, __builtin_return_address(0)); }
#define INTERPRETER_UNALIGNED_HOOK(name, size, op, strong) \
  void name(void* p) { observe_unaligned(p, size, op, strong, __builtin_return_address(0)); }
#define INTERPRETER_HOOKS(size)                                                           \
  INTERPRETER_HOOK(__tsan_read##size, size, Op::kLoad, false)                             \
  INTERPRETER_HOOK(__tsan_write##size, size, Op::kStore, false)                           \
  INTERPRETER_UNALIGNED_HOOK(__tsan_unaligned_read##size, size, Op::kLoad, false)         \
  INTERPRETER_UNALIGNED_HOOK(__tsan_unaligned_write##size, size, Op::kStore, false)       \
  INTERPRETER_HOOK(__tsan_read_write##size, size, Op::kStore, false)                      \
  INTERPRETER_UNALIGNED_HOOK(__tsan_unaligned_read_write##size, size, Op::kStore, false)  \
  INTERPRETER_HOOK(__tsan_volatile_read##size, size, Op::kLoad, true)                     \
  INTERPRETER_UNALIGNED_HOOK(__tsan_unaligned_volatile_read##size, size, Op::kLoad, true) \
  INTERPRETER_HOOK(__tsan_volatile_write##size, size, Op::kStore, true)                   \
  INTERPRETER_UNALIGNED_HOOK(__tsan_unaligned_volatile_write##size, size, Op::kStore, true)
INTERPRETER_HOOKS(1)
INTERPRETER_HOOKS(2)
INTERPRETER_HOOKS(4)
INTERPRETER_HOOKS(8)
INTERPRETER_HOOKS(16)

void __tsan_read_range(void* p, std::size_t bytes) { observe_range(p, bytes, Op::kLoad, __builtin_return_address(0)); }
void __tsan_write_range(void* p, std::size_t bytes) { observe_range(p, bytes, Op::kStore, __builtin_return_address(0)); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
// An object with virtual functions begins with a pointer to their table.
void __tsan_vptr_update(void** p, void*) { observe_access(p, sizeof(void*), Op::kStore, false, __builtin_return_address(0)); }
void __tsan_vptr_read(void** p) { observe_access(p, sizeof(void*), Op::kLoad, false, __builtin_return_address(0)); }

// Copies of larger structs. The linker sends a kernel's calls here (--wrap).
void* __real_memcpy(void*, const void*, std::size_t);
void* __real_memmove(void*, const void*, std::size_t);
void* __real_memset(void*, int, std::size_t);
}  // extern "C"
void interpreter::copy_variable(void* to, const void* from, std::size_t bytes) {
  synchronize();
  __real_memmove(to, from, bytes);
}
extern "C" {
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  observe_range(from, bytes, Op::kLoad, __builtin_return_address(0));
  observe_range(to, bytes, Op::kStore, __builtin_return_address(0));
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  observe_range(from, bytes, Op::kLoad, __builtin_return_address(0));
  observe_range(to, bytes, Op::kStore, __builtin_return_address(0));
  return __real_memmove(to, from, bytes);
}
void* __wrap_memset(void* to, int byte, std::size_t bytes) {
  observe_range(to, bytes, Op::kStore, __builtin_return_address(0));
  return __real_memset(to, byte, bytes);
}
void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) { return __wrap_memcpy(to, from, bytes); }
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) { return __wrap_memmove(to, from, bytes); }
void* __tsan_memset(void* to, int byte, std::size_t bytes) { return __wrap_memset(to, byte, bytes); }

}  // extern "C"

// What instrumented kernels call: the built-in variables and functions of language.h, and the hooks that the compiler inserts.
//
// Kernels are compiled with -fsanitize=thread, so that g++ and clang call __tsan_readN(address) before every load and __tsan_writeN
// before every store. Instead of the sanitizer's own library, the functions here are linked.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "common/interpreter/block_parts.h"

namespace interpreter {

uint3 thread_index() { return running_fiber().thread; }
uint3 block_index() { return running_fiber(), current_block->index(); }
dim3 block_dimensions() { return running_fiber(), current_block->launch().launch.block; }
dim3 grid_dimensions() { return running_fiber(), current_block->launch().launch.grid; }
unsigned lane_index() { return running_fiber().lane; }
void* dynamic_shared() { return running_fiber(), current_block->dynamic_shared(); }

void warp_collective(const char* name, unsigned mask, void* argument, Combine combine, Site site) {
  const Entered in;
  in.block.collective(in.fiber, name, mask, argument, combine, site);
}
void warp_barrier(unsigned mask, Site site) {
  const Entered in;
  in.block.warp_barrier(in.fiber, mask, site);
}
int block_barrier(Reduction reduction, bool predicate, Site site) {
  const Entered in;
  return in.block.barrier(in.fiber, reduction, predicate, site, to_pc(__builtin_return_address(0)));
}
void fence(bool whole_gpu) {
  const Entered in;
  in.block.fence(in.fiber, whole_gpu);
}
void atomic(void* address, unsigned size, void* old_value, bool (*update)(void*, const void*), const void* context, Scope scope,
            AtomicKind kind) {
  const Entered in;
  in.block.atomic(in.fiber, address, size, old_value, update, context, scope, kind, __builtin_return_address(0));
}
void illegal_width(const char* name, int width, Site site) {
  const Entered in;
  in.block.fail(Check::kSynccheck, std::string(name) + " with width " + std::to_string(width),
                "a width of 1, 2, 4, 8, 16 or 32 lanes", &in.fiber, {site.file, site.line});
}
void trap(const char* what, Site site) {
  const Entered in;
  in.block.fail(Check::kException, what, "kernels end without a trap", &in.fiber, {site.file, site.line});
}
void assertion_failed(const char* condition, const char* file, int line) {
  if (!current_fiber) {  // host code that includes kernel headers
    std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
    std::abort();
  }
  const Entered in;
  in.block.fail(Check::kException, std::string("assertion failed: ") + condition, "the assertion holds", &in.fiber, {file, line});
}
void sleep_hint() {
  const Entered in;
  in.block.sleep(in.fiber);
}
long long clock_ticks() {
  // Whoever waits for a time waits for something that comes.
  if (current_fiber) current_fiber->trail.restart();
  return std::chrono::steady_clock::now().time_since_epoch().count();
}
void read_only_load(const void* address, std::size_t bytes) {
  const Entered in;
  in.block.read_only_load(in.fiber, address, bytes, __builtin_return_address(0));
}

bool at(unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty, unsigned tz) {
  if (!current_fiber) return false;
  const uint3 b = current_block->index(), t = current_fiber->thread;
  return b.x == bx && b.y == by && b.z == bz && t.x == tx && t.y == ty && t.z == tz;
}

}  // namespace interpreter

// --------------------------------------------------------------------------------------------------- the compiler's hooks
using interpreter::current_block;
using interpreter::current_fiber;
using interpreter::Op;

namespace {

// Kept to a minimum: this runs for every load and store.
[[gnu::always_inline]] inline void observe(const void* p, unsigned size, Op op, bool strong, const void* return_address) {
  interpreter::Fiber* const fiber = current_fiber;
  if (!fiber) return;
  current_fiber = nullptr;
  current_block->observe(*fiber, p, size, op, strong, return_address);
  if (strong && op == Op::kLoad) current_block->volatile_load(*fiber, p, interpreter::to_pc(return_address));
  if (strong && op == Op::kStore) current_block->volatile_store(*fiber, p);
  current_fiber = fiber;
}

// Wider than the alignment of its type: two floats of a float3, say. A GPU takes them one by one; what makes an aligned vector in
// the end is put together again by the access log.
void observe_unaligned(const void* p, unsigned size, Op op, bool strong, const void* return_address) {
  unsigned piece = size > 4 ? 4 : std::max(1u, size / 2);
  while (reinterpret_cast<std::uintptr_t>(p) % piece) piece /= 2;
  for (unsigned done = 0; done < size; done += piece)
    observe(static_cast<const char*>(p) + done, piece, op, strong, return_address);
}

void observe_range(const void* p, std::size_t bytes, Op op, const void* return_address) {
  interpreter::Fiber* const fiber = current_fiber;
  if (!fiber || bytes == 0) return;
  current_fiber = nullptr;
  current_block->observe_range(*fiber, p, bytes, op, return_address);
  current_fiber = fiber;
}

[[gnu::noinline]] void add_comparison(std::uint64_t a, std::uint64_t b) {
  interpreter::Fiber* const fiber = current_fiber;
  if (fiber && fiber->watched) fiber->trail.add_operands(a, b);
}
[[gnu::always_inline]] inline void observe_comparison(std::uint64_t a, std::uint64_t b) {
  if (interpreter::watched_blocks.load(std::memory_order_relaxed)) [[unlikely]]
    add_comparison(a, b);
}

using interpreter::fence;
constexpr bool releases(int order) { return order >= __ATOMIC_RELEASE; }
constexpr bool acquires(int order) { return order == __ATOMIC_CONSUME || order == __ATOMIC_ACQUIRE || order >= __ATOMIC_ACQ_REL; }

// std::atomic_ref, cuda::atomic_ref and the compiler's __atomic functions: the fences that the memory order asks for, around a
// relaxed operation.
template <class T, class Update>
T atomic_operation(volatile T* p, int order, Update update) {
  T* const address = const_cast<T*>(p);
  if (!current_fiber) {
    T old = __atomic_load_n(address, __ATOMIC_SEQ_CST);
    for (T changed = old;
         update(changed) && !__atomic_compare_exchange_n(address, &old, changed, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);)
      changed = old;
    return old;
  }
  if (releases(order)) fence(true);
  const T old = interpreter::atomic_update(address, update);
  if (acquires(order)) fence(true);
  return old;
}

}  // namespace

extern "C" {

#define INTERPRETER_HOOK(name, size, op, strong) \
  void name(void* p) { observe(p, size, op, strong, __builtin_return_address(0)); }
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
// Called in every basic block (-fsanitize-coverage=trace-pc).
void __sanitizer_cov_trace_pc() {
  interpreter::Fiber* const fiber = current_fiber;
  if (!fiber) return;
  const interpreter::Pc pc = interpreter::to_pc(__builtin_return_address(0));
  if (static_cast<const char*>(__builtin_frame_address(0)) < fiber->stack_limit) [[unlikely]] {
    current_fiber = nullptr;
    current_block->fail_stack_overflow(*fiber, pc);
  }
  if (interpreter::ControlFlow::Path* const path = interpreter::ControlFlow::known(fiber->path, pc)) {
    fiber->path = path;
    return;
  }
  current_fiber = nullptr;
  current_block->extend_path(*fiber, pc);
  current_fiber = fiber;
}

// Called before every comparison of numbers (-fsanitize-coverage=trace-cmp).
#define INTERPRETER_COMPARISON_HOOK(name, T) \
  void name(T a, T b) { observe_comparison(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)); }
INTERPRETER_COMPARISON_HOOK(__sanitizer_cov_trace_cmp1, std::uint8_t)
INTERPRETER_COMPARISON_HOOK(__sanitizer_cov_trace_cmp2, std::uint16_t)
INTERPRETER_COMPARISON_HOOK(__sanitizer_cov_trace_cmp4, std::uint32_t)
INTERPRETER_COMPARISON_HOOK(__sanitizer_cov_trace_cmp8, std::uint64_t)
INTERPRETER_COMPARISON_HOOK(__sanitizer_cov_trace_const_cmp1, std::uint8_t)
INTERPRETER_COMPARISON_HOOK(__sanitizer_cov_trace_const_cmp2, std::uint16_t)
INTERPRETER_COMPARISON_HOOK(__sanitizer_cov_trace_const_cmp4, std::uint32_t)
INTERPRETER_COMPARISON_HOOK(__sanitizer_cov_trace_const_cmp8, std::uint64_t)
void __sanitizer_cov_trace_cmpf(float a, float b) {
  observe_comparison(std::bit_cast<std::uint32_t>(a), std::bit_cast<std::uint32_t>(b));
}
void __sanitizer_cov_trace_cmpd(double a, double b) {
  observe_comparison(std::bit_cast<std::uint64_t>(a), std::bit_cast<std::uint64_t>(b));
}
void __sanitizer_cov_trace_switch(std::uint64_t value, const void*) { observe_comparison(value, 0); }

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
// An object with virtual functions begins with a pointer to their table.
void __tsan_vptr_update(void** p, void*) { observe(p, sizeof(void*), Op::kStore, false, __builtin_return_address(0)); }
void __tsan_vptr_read(void** p) { observe(p, sizeof(void*), Op::kLoad, false, __builtin_return_address(0)); }

// Copies of larger structs. The linker sends a kernel's calls here (--wrap).
void* __real_memcpy(void*, const void*, std::size_t);
void* __real_memmove(void*, const void*, std::size_t);
void* __real_memset(void*, int, std::size_t);
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

struct TypeDescriptor {
  std::uint16_t kind, info;  // of an integer: bit 0 signed, the others log2 of its bits
  char name[1];              // in quotes
};
// Both tell of misaligned vectors here (-fsanitize=alignment), because both may split their accesses.
struct TypeMismatch {
  const char* file;
  std::uint32_t line, column;
  const TypeDescriptor* type;
  unsigned char log_alignment, kind;
};
void __ubsan_handle_type_mismatch_v1(const TypeMismatch* data, std::uintptr_t address) {
  enum Kind { kLoad, kStore, kReference, kMember };  // and more, which access no memory
#ifdef __clang__
  constexpr bool kIsCopied = true;  // clang tells of the reference alone when a struct is copied
#else
  constexpr bool kIsCopied = false;
#endif
  if (!current_fiber || !current_block->launch().options.memcheck) return;
  if (data->kind > kMember || (data->kind == kReference && !kIsCopied)) return;
  interpreter::Fiber& fiber = *std::exchange(current_fiber, nullptr);
  current_block->misaligned_type(fiber, reinterpret_cast<const void*>(address), data->type->name, 1u << data->log_alignment,
                                 __builtin_return_address(0));
  current_fiber = &fiber;
}
void __ubsan_handle_type_mismatch_v1_abort(const TypeMismatch* data, std::uintptr_t address) {
  __ubsan_handle_type_mismatch_v1(data, address);
}

// Both tell of an index beyond the array's type here (-fsanitize=bounds): one __shared__ variable's end is another one's beginning,
// so the address alone cannot tell.
struct OutOfBounds {
  const char* file;
  std::uint32_t line, column;
  const TypeDescriptor *array, *index;
};
void __ubsan_handle_out_of_bounds(const OutOfBounds* data, std::uintptr_t index) {
  if (!current_fiber || !current_block->launch().options.memcheck) return;
  interpreter::Fiber& fiber = *std::exchange(current_fiber, nullptr);
  const unsigned unused_bits = data->index->info & 1 ? 64 - std::min(64u, 1u << (data->index->info >> 1)) : 0;
  const std::int64_t value = static_cast<std::int64_t>(index << unused_bits) >> unused_bits;
  const std::string array = data->array->name;
  interpreter::Location where = interpreter::user_location(interpreter::to_pc(__builtin_return_address(0)));
  where.column = static_cast<int>(data->column);
  current_block->index_out_of_bounds(fiber, value, array.substr(1, array.size() - 2), where);
  current_fiber = &fiber;
}
void __ubsan_handle_out_of_bounds_abort(const OutOfBounds* data, std::uintptr_t index) {
  __ubsan_handle_out_of_bounds(data, index);
}

#define INTERPRETER_ATOMIC_FETCH(bits, name, T, expression)                                   \
  T __tsan_atomic##bits##_##name(volatile T* p, T operand, int order) {                       \
    return atomic_operation(p, order, [=](T& value) { return value = T(expression), true; }); \
  }
#define INTERPRETER_ATOMICS(bits, T)                                                                                  \
  T __tsan_atomic##bits##_load(const volatile T* p, int order) {                                                      \
    observe(const_cast<const T*>(p), bits / 8, Op::kLoad, true, __builtin_return_address(0));                         \
    const T value = __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                             \
    if (acquires(order) && current_fiber) fence(true);                                                                \
    return value;                                                                                                     \
  }                                                                                                                   \
  void __tsan_atomic##bits##_store(volatile T* p, T operand, int order) {                                             \
    if (releases(order) && current_fiber) fence(true);                                                                \
    observe(const_cast<const T*>(p), bits / 8, Op::kStore, true, __builtin_return_address(0));                        \
    __atomic_store_n(p, operand, __ATOMIC_SEQ_CST);                                                                   \
  }                                                                                                                   \
  INTERPRETER_ATOMIC_FETCH(bits, exchange, T, operand)                                                                \
  INTERPRETER_ATOMIC_FETCH(bits, fetch_add, T, value + operand)                                                       \
  INTERPRETER_ATOMIC_FETCH(bits, fetch_sub, T, value - operand)                                                       \
  INTERPRETER_ATOMIC_FETCH(bits, fetch_and, T, value& operand)                                                        \
  INTERPRETER_ATOMIC_FETCH(bits, fetch_or, T, value | operand)                                                        \
  INTERPRETER_ATOMIC_FETCH(bits, fetch_xor, T, value ^ operand)                                                       \
  INTERPRETER_ATOMIC_FETCH(bits, fetch_nand, T, ~(value & operand))                                                   \
  T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T expected, T desired, int order, int) {                \
    return atomic_operation(p, order, [=](T& value) { return value == expected ? (value = desired, true) : false; }); \
  }                                                                                                                   \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* p, T* expected, T desired, int order, int failure) {  \
    const T wanted = *expected;                                                                                       \
    *expected = __tsan_atomic##bits##_compare_exchange_val(p, wanted, desired, order, failure);                       \
    return *expected == wanted;                                                                                       \
  }                                                                                                                   \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* p, T* expected, T desired, int order, int failure) {    \
    return __tsan_atomic##bits##_compare_exchange_strong(p, expected, desired, order, failure);                       \
  }
INTERPRETER_ATOMICS(8, std::uint8_t)
INTERPRETER_ATOMICS(16, std::uint16_t)
INTERPRETER_ATOMICS(32, std::uint32_t)
INTERPRETER_ATOMICS(64, std::uint64_t)
void __tsan_atomic_thread_fence(int) {
  if (current_fiber)
    fence(true);
  else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}

}  // extern "C"

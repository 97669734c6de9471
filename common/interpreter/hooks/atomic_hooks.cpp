// What the compiler makes of std::atomic_ref, cuda::atomic_ref and the __atomic functions (-fsanitize=thread).
#include <utility>

#include "common/interpreter/hooks/hooks.h"

using interpreter::current_fiber;
using interpreter::observe_access;
using interpreter::Op;

namespace interpreter {
namespace {

thread_local constinit const volatile void* atomic_of_block = nullptr;

// Whether the operation that begins here is for other blocks too.
bool is_for_gpu(const volatile void* address) { return std::exchange(atomic_of_block, nullptr) != address; }

}  // namespace

// cuda::atomic and cuda::atomic_ref become what the compiler knows, which has no scopes: this comes just before.
void next_atomic_is_of_block(const volatile void* address) { atomic_of_block = address; }

}  // namespace interpreter

namespace {

using interpreter::fence;
using interpreter::is_for_gpu;
constexpr bool releases(int order) { return order >= __ATOMIC_RELEASE; }
constexpr bool acquires(int order) { return order == __ATOMIC_CONSUME || order == __ATOMIC_ACQUIRE || order >= __ATOMIC_ACQ_REL; }

// std::atomic_ref, cuda::atomic_ref and the compiler's __atomic functions: the fences that the memory order asks for, around a
// relaxed operation.
template <class T, class Update>
T atomic_operation(volatile T* p, int order, Update update) {
  T* const address = const_cast<T*>(p);
  const bool for_gpu = is_for_gpu(p);
  if (!current_fiber) {
    T old = __atomic_load_n(address, __ATOMIC_SEQ_CST);
    for (T changed = old;
         update(changed) && !__atomic_compare_exchange_n(address, &old, changed, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);)
      changed = old;
    return old;
  }
  if (releases(order)) fence(for_gpu);
  const T old = interpreter::atomic_update(address, update, for_gpu ? interpreter::Scope::kGpu : interpreter::Scope::kBlock);
  if (acquires(order)) fence(for_gpu);
  return old;
}

}  // namespace

extern "C" {

#define INTERPRETER_ATOMIC_FETCH(bits, name, T, expression)                                   \
  T __tsan_atomic##bits##_##name(volatile T* p, T operand, int order) {                       \
    return atomic_operation(p, order, [=](T& value) { return value = T(expression), true; }); \
  }
#define INTERPRETER_ATOMICS(bits, T)                                                                                  \
  T __tsan_atomic##bits##_load(const volatile T* p, int order) {                                                      \
    const bool for_gpu = is_for_gpu(p);                                                                               \
    observe_access(const_cast<const T*>(p), bits / 8, Op::kLoad, true, __builtin_return_address(0));                  \
    const T value = __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                             \
    if (acquires(order) && current_fiber) fence(for_gpu);                                                             \
    return value;                                                                                                     \
  }                                                                                                                   \
  void __tsan_atomic##bits##_store(volatile T* p, T operand, int order) {                                             \
    const bool for_gpu = is_for_gpu(p);                                                                               \
    if (releases(order) && current_fiber) fence(for_gpu);                                                             \
    observe_access(const_cast<const T*>(p), bits / 8, Op::kStore, true, __builtin_return_address(0));                 \
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

// What the compiler calls in every basic block and before every comparison (-fsanitize-coverage).
#include <bit>

#include "common/interpreter/checks/branched_updates.h"
#include "common/interpreter/checks/two_worlds.h"
#include "common/interpreter/observe/recorder.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/running/block_context.h"

using interpreter::current_block;
using interpreter::current_fiber;

namespace {

[[gnu::noinline]] void add_comparison(std::uint64_t a, std::uint64_t b) {
  interpreter::Fiber* const fiber = current_fiber;
  if (!fiber) return;
  if (fiber->watched) fiber->trail.add_operands(a, b);
  if (fiber->looking) interpreter::current_block->branched_updates.note_comparison(*fiber, a, b);
}
[[gnu::always_inline]] inline void observe_comparison(std::uint64_t a, std::uint64_t b) {
  if (interpreter::watched_blocks.load(std::memory_order_relaxed)) [[unlikely]]
    add_comparison(a, b);
}

// The fiber passes the basic block at `pc`, and its way there is none of the usual ones.
void extend_path(interpreter::Fiber& fiber, interpreter::Pc pc) {
  if (current_block->worlds.in_other()) return current_block->worlds.pass_basic_block(fiber);
  fiber.path = current_block->recorder.extend(fiber.path, pc);
  fiber.way.add(fiber.path->block);
}

}  // namespace

extern "C" {

// Called in every basic block (-fsanitize-coverage=trace-pc).
void __sanitizer_cov_trace_pc() {
  interpreter::Fiber* const fiber = current_fiber;
  if (!fiber) return;
  const interpreter::Pc pc = interpreter::to_pc(__builtin_return_address(0));
  if (static_cast<const char*>(__builtin_frame_address(0)) < fiber->stack_limit) [[unlikely]] {
    current_fiber = nullptr;
    current_block->reporter.fail_stack_overflow(*fiber, pc);
  }
  if (interpreter::ControlFlow::Path* const path = interpreter::ControlFlow::known(fiber->path, pc)) {
    fiber->path = path;
    fiber->way.add(path->block);
    return;
  }
  current_fiber = nullptr;
  extend_path(*fiber, pc);
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

}  // extern "C"

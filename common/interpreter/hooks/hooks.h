/// @file
/// What the compiler's hooks have in common. Kernels are compiled with -fsanitize=thread, so that g++ and clang call
/// __tsan_readN(address) before every load and __tsan_writeN before every store. Instead of the sanitizer's own library, the
/// functions of this room are linked: hooks.cpp has those of loads and stores, atomic_hooks.cpp those of atomics,
/// control_hooks.cpp those of basic blocks and comparisons, type_hooks.cpp those of what only the types tell.
#pragma once

#include <cstddef>

#include "common/interpreter/block/block.h"
#include "common/interpreter/launch/host_variables.h"

namespace interpreter {

/// An access of the running fiber. Kept to a minimum: this runs for every load and store.
[[gnu::always_inline]] inline void observe_access(const void* p, unsigned size, Op op, bool strong, const void* return_address) {
  Fiber* const fiber = current_fiber;
  if (!fiber) {
    if (inside(p, watched_variables)) before_host_access(p);
    return;
  }
  current_fiber = nullptr;
  running_block().observe(*fiber, p, size, op, strong, return_address);
  if (strong && op == Op::kLoad) current_block->atomics.volatile_load(*fiber, p, size, to_pc(return_address));
  if (strong && op == Op::kStore) current_block->atomics.volatile_store(*fiber, p, to_pc(return_address));
  current_fiber = fiber;
}

}  // namespace interpreter

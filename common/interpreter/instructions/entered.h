/// @file
/// How a kernel's call gets into the interpreter: which thread of which block calls.
#pragma once

#include <utility>

#include "common/interpreter/checks/two_worlds.h"
#include "common/interpreter/report/diagnosis.h"
#include "common/interpreter/running/block_context.h"

namespace interpreter {

/// The fiber that calls the interpreter. @throws KernelError in host code.
inline Fiber& running_fiber() {
  if (!current_fiber) [[unlikely]]
    fail_outside_of_launches();
  return *current_fiber;
}

/// What of a thread with two worlds (see checks/two_worlds.cpp) may call a function of the interpreter. kFirst: the second world
/// ends there, for a function that does not know of it must not be called twice.
enum class Worlds { kFirst, kBoth };

/// While the interpreter works for a fiber, nothing is observed: its own code may be instrumented, or call memcpy.
struct Entered {
  explicit Entered(Worlds worlds = Worlds::kFirst) {
    if (worlds == Worlds::kFirst && block.worlds.in_other()) [[unlikely]]
      block.worlds.end_other();
  }
  Fiber& fiber = (running_fiber(), *std::exchange(current_fiber, nullptr));
  BlockContext& block = *current_block;
  ~Entered() { current_fiber = &fiber; }
};

}  // namespace interpreter

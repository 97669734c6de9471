/// @file
/// memcheck: accesses outside allocations and variables, and misaligned ones.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/interpreter/checks/shadows.h"
#include "common/interpreter/memory/stacks.h"
#include "common/interpreter/schedule/fiber.h"

namespace interpreter {

class Reporter;

/// Whether the running block's threads may access what they access. Addresses of global and of dynamic shared memory are looked up
/// by Block::observe(), without a call.
class Bounds {
 public:
  Bounds(const Assignment& work, SharedMemory& shared, const Stacks& stacks, Shadows& shadows, Reporter& reporter)
      : work_(work), shared_(shared), stacks_(stacks), shadows_(shadows), reporter_(reporter) {}

  /// A __shared__ variable. @return whether the access counts as one of shared memory.
  bool touch_static(Fiber& fiber, std::uintptr_t address, unsigned size, Op op, const void* return_address) {
    const std::size_t offset = address - shared_.statics.begin;
    const unsigned variable = shared_.variable_at(offset);
    if (variable - 1u >= SharedMemory::kGuard - 1u || offset + size > shared_.end_of(variable)) [[unlikely]]
      return touch_no_variable(fiber, address, size, op, return_address);
    if (!shared_.was_touched(variable)) [[unlikely]]
      begin_variable(fiber, variable, return_address);
    return true;
  }
  /// Neither device memory nor shared memory: local memory, arguments, constants, __device__ variables - or nothing a kernel may
  /// touch. @return whether the access counts as one of global memory
  bool touch_elsewhere(Fiber& fiber, const void* p, unsigned size, Op op, const void* return_address);

  /// Whether kernels may store there: memory that exists.
  bool is_storage(const void* p, unsigned size);

  /// These two return where the program keeps going: the access takes place, and counts as none.
  void bad_access(Fiber& fiber, const void* p, unsigned size, Op op, const void* return_address);
  void misaligned(Fiber& fiber, const void* p, unsigned size, Op op, const void* return_address);
  /// The fiber is about to access a `type` at `p`, which is not in the variable that the pointer was made from.
  void beyond_variable(Fiber& fiber, const void* p, bool write, const char* type, const Location& where);
  /// The fiber is about to access a `type` at `p`, whose address is no multiple of `alignment`.
  void misaligned_type(Fiber& fiber, const void* p, const char* type, unsigned alignment, const void* return_address);

 private:
  bool touch_no_variable(Fiber& fiber, std::uintptr_t address, unsigned size, Op op, const void* return_address);
  void begin_variable(Fiber& fiber, unsigned variable, const void* return_address);
  bool in_a_variable(const void* p, unsigned size);
  bool harms_nobody(const void* p, unsigned size, Op op) const;
  bool launched_with(const char* begin, std::size_t bytes) const;
  std::string reached_without_overflow(const void* p) const;

  const Assignment& work_;
  SharedMemory& shared_;
  const Stacks& stacks_;
  Shadows& shadows_;
  Reporter& reporter_;
  const Variable* last_variable_ = nullptr;  // that in_a_variable() found
};

}  // namespace interpreter

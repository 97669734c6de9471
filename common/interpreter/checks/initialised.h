/// @file
/// initcheck: reads of bytes that nothing has written.
#pragma once

#include <cstdint>

#include "common/interpreter/launch/launch_state.h"
#include "common/interpreter/memory/shared_memory.h"
#include "common/interpreter/observe/access_log.h"

namespace interpreter {

class Reporter;
class Scheduler;
struct Fiber;

/// Looks at the reads of the running block.
class InitCheck {
 public:
  InitCheck(const Assignment& work, SharedMemory& shared, const AccessLog& log, Scheduler& scheduler, Reporter& reporter)
      : work_(work), shared_(shared), log_(log), scheduler_(scheduler), reporter_(reporter) {}
  /// A block begins.
  void begin();

  /// One instruction of a warp. A first wrong read becomes what Reporter::suspect() takes.
  void check(unsigned warp, const Request& request);
  /// A thread of the warp that runs has failed: what it read before may be why.
  void look_back(const Fiber& fiber);
  /// A read of bytes that no hook has told of a write to.
  void find_unseen_writes(std::uintptr_t address, unsigned size);

 private:
  SharedMemory& home_of(std::uintptr_t address);
  bool is_global(std::uintptr_t address) const;
  bool was_written(std::uintptr_t address, unsigned size, Pc pc, bool shared);
  void suspect(const Fiber& fiber, std::uintptr_t address, unsigned size, Pc pc);

  const Assignment& work_;
  SharedMemory& shared_;
  const AccessLog& log_;
  Scheduler& scheduler_;
  Reporter& reporter_;
  GlobalMemory& global_ = GlobalMemory::instance();
  const std::uintptr_t global_begin_ = reinterpret_cast<std::uintptr_t>(global_.base());
};

}  // namespace interpreter

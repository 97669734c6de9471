/// @file
/// initcheck: reads of bytes that nothing has written.
#pragma once

#include <cstdint>
#include <vector>

#include "common/interpreter/memory/shared_memory.h"
#include "common/interpreter/observe/access_log.h"
#include "common/interpreter/running/launch_state.h"

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
  void begin(unsigned threads);

  /// One instruction of a warp. A first wrong read becomes what Reporter::suspect() takes.
  void check(unsigned warp, const Request& request);
  /// A thread of the warp that runs has failed: what it read before may be why.
  void look_back(const Fiber& fiber);
  /// A read of bytes that no hook has told of a write to.
  void find_unseen_writes(std::uintptr_t address, unsigned size);

  /// @name Plain reads of the block's shared memory, and of global vectors with both written words and others, as the end of a
  /// padded row has them: TwoWorlds finds out whether what they lack matters
  /// @{
  bool is_tried(std::uintptr_t address, unsigned size) const;
  /// What unwritten bytes hold.
  char poison_of(std::uintptr_t address) const;
  /// Which of the bytes (a bit each) nothing has written; 0 if only padding lacks.
  std::uint32_t unwritten(std::uintptr_t address, unsigned size, Pc pc) const;
  /// What to report if they do.
  Diagnosis diagnose(const Fiber& fiber, std::uintptr_t address, unsigned size, Pc pc) const;
  std::string where_barrier_was_passed_by(const Fiber& fiber, std::uintptr_t address) const;
  /// Such reads of the thread are not reported from now on.
  void excuse(const Fiber& fiber);
  bool is_excused(const Fiber& fiber) const;
  /// @}

 private:
  SharedMemory& home_of(std::uintptr_t address);
  bool is_global(std::uintptr_t address) const;
  bool was_written(std::uintptr_t address, unsigned size, Pc pc, bool shared);

  const Assignment& work_;
  SharedMemory& shared_;
  const AccessLog& log_;
  Scheduler& scheduler_;
  Reporter& reporter_;
  GlobalMemory& global_ = GlobalMemory::instance();
  std::vector<bool> excused_;  // by thread
  const std::uintptr_t global_begin_ = reinterpret_cast<std::uintptr_t>(global_.base());
};

}  // namespace interpreter

/// @file
/// Updates through volatile that get lost, and lanes that take each other's data through volatile without waiting; see
/// volatile_updates.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/interpreter/happens_before/cells.h"
#include "common/interpreter/running/launch_state.h"
#include "common/interpreter/schedule/fiber.h"

namespace interpreter {

class Reporter;
class Scheduler;

/// What the threads of the running block have read of volatile memory and may have decided by.
class VolatileUpdates {
 public:
  VolatileUpdates(const BlockClock& clock, Scheduler& scheduler, Reporter& reporter)
      : clock_(clock), scheduler_(scheduler), reporter_(reporter) {}
  /// A block begins.
  void begin(unsigned threads);
  /// All threads have passed a barrier.
  void pass_barrier();

  /// The thread has used an atomic: what it does with volatile memory is believed, until the next barrier.
  void believe(const Fiber& fiber) { threads_[fiber.linear].has_looked = any_atomic_ = true; }
  /// Whether the block has done any atomic: one may be a lock.
  bool has_believed() const { return any_atomic_; }
  /// Lanes of the warp have passed a branch: what others have written and they have read before it, they have looked at.
  void pass_branch(unsigned warp, std::uint32_t lanes) {
    if (looking_[warp] & lanes) end_looks(warp, looking_[warp] & lanes);
  }
  /// A volatile load of the lane.
  void note_look(ShadowedRange& range, unsigned warp, unsigned lane, const Request& request, std::uintptr_t address);
  /// A volatile store of the lane. @return what is wrong with it
  std::optional<Diagnosis> check_store(ShadowedRange& range, unsigned warp, unsigned lane, const Request& request,
                                       std::uintptr_t address);

 private:
  // A volatile read that a volatile store may follow without a branch between them.
  struct Look {
    std::uintptr_t address;
    Pc pc;
    bool guarded;   // the thread has looked before at what is there now
    Stamp written;  // by whom, if nothing orders that before the read; else thread is 0
  };
  struct Thread {
    Look looks[4];
    unsigned count = 0;       // of looks
    bool has_looked = false;  // it has used atomics, or looked at volatile memory to decide, since the last barrier
  };
  void end_looks(unsigned warp, std::uint32_t lanes);

  const BlockClock& clock_;
  Scheduler& scheduler_;
  Reporter& reporter_;
  std::vector<Thread> threads_;
  std::vector<std::uint32_t> looking_;  // by warp: lanes that have looks
  bool any_atomic_ = false;
};

}  // namespace interpreter

/// @file
/// Part of racecheck: what a dependent launch does before it has waited for the launches before it (griddepcontrol.wait).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "common/interpreter/happens_before/cells.h"
#include "common/interpreter/running/launch_chain.h"
#include "common/interpreter/schedule/fiber.h"

namespace interpreter {

class AccessLog;
class Reporter;
class Scheduler;
struct Assignment;

/// Launches run one after the other here, so the cells of global memory tell what those before have done. A thread may not touch
/// what they have written, nor write what they have read, until it knows that they have ended: it has waited itself, or learnt of
/// it from a thread that has (BlockClock::knows_of_launches()).
class DependenceCheck {
 public:
  DependenceCheck(const Assignment& work, BlockClock& clock, const AccessLog& log, Scheduler& scheduler, Reporter& reporter)
      : work_(work), clock_(clock), log_(log), scheduler_(scheduler), reporter_(reporter) {}
  /// A block begins.
  void begin(unsigned threads);
  /// One instruction of a warp. After an ordinary launch that is nothing.
  void check(unsigned warp, const Request& request) {
    if (earlier_) [[unlikely]]
      check_lanes(warp, request);
  }
  /// The thread is about to have `bytes` bytes of global memory copied by the instruction `name` at `pc`.
  void check_copy(const Fiber& fiber, Pc pc, const char* name, std::uintptr_t address, unsigned bytes, bool write);
  /// The thread waits for the launches before this one.
  void wait(Fiber& fiber);

 private:
  // An access to global memory: the thread's own, or that of a copy by the instruction `name`.
  struct Access {
    unsigned thread;
    Pc pc;
    std::uintptr_t address;
    unsigned bytes;
    bool write, atomic;
    const char* name;
  };
  struct Conflict {
    Stamp earlier;
    bool earlier_wrote = false;
    std::uintptr_t address = 0;
    const LaunchChain::Link* link = nullptr;  // the earlier launch; null: there is no conflict
  };
  // Who of an earlier launch has read bytes of a word whose cell names a reader of this launch now.
  struct EarlierReader {
    Stamp stamp;
    unsigned bytes = 0;  // a bit for each
  };
  void check_lanes(unsigned warp, const Request& request);
  bool is_aware(unsigned thread);
  void check(const Access& access);
  const LaunchChain::Link* unknown(const Stamp& stamp, bool aware) const;
  Conflict find(ShadowedRange& range, const Access& access, std::uintptr_t address, unsigned bytes, bool aware);
  void report(const Access& access, const Conflict& conflict, bool aware);

  const Assignment& work_;
  BlockClock& clock_;
  const AccessLog& log_;
  Scheduler& scheduler_;
  Reporter& reporter_;
  const LaunchChain* earlier_ = nullptr;              // null: an ordinary launch, or nothing is checked
  const LaunchChain::Link* first_awaited_ = nullptr;  // of these, the first that a wait makes known
  bool all_are_awaited_ = false;
  std::vector<std::uint32_t> aware_;                           // by warp: lanes that have been found to know of the wait
  std::unordered_map<std::uintptr_t, EarlierReader> readers_;  // by the word's address
};

}  // namespace interpreter

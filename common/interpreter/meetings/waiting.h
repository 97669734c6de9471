/// @file
/// Threads that wait without saying so: that poll memory, sleep, go round in circles, or run for too long.
#pragma once

#include "common/interpreter/interpreter.h"
#include "common/interpreter/running/launch_state.h"
#include "common/interpreter/schedule/activity.h"
#include "common/interpreter/schedule/fiber.h"

namespace interpreter {

class Reporter;
class Scheduler;
class TwoWorlds;

/// Gives others their turn where a thread waits for them, and tells who waits in vain.
class Waiting {
 public:
  Waiting(const Assignment& work, Scheduler& scheduler, Reporter& reporter, Activity& activity, TwoWorlds& worlds)
      : work_(work), scheduler_(scheduler), reporter_(reporter), activity_(activity), worlds_(worlds) {}
  /// A block begins.
  void begin();

  // ---- called by the kernel, on a fiber
  /// The fiber found nothing new at `address`; after some times others get their turn.
  void poll(Fiber& fiber, const void* address, Pc pc);
  /// The fiber has changed memory: it waits for nobody.
  void note_change(Fiber& fiber);
  void sleep(Fiber& fiber, Pc pc);
  /// The fiber's log is full: lets the others of its warp catch up.
  void log_is_full(Fiber& fiber, Pc pc);
  /// An access of a fiber that is watched.
  void follow(Fiber& fiber, const void* p, Pc pc, bool strong);

  // ---- called when nobody in the block can go on
  /// Whether some thread polls by an atomic or a volatile read.
  bool has_polled() const { return polled_; }
  void look_at_the_time();
  /// Keeps the threads' trails from now on. It makes them slower, so that is done where there is a suspicion.
  void watch();
  void stop_watching();
  bool runs_for_long() const { return watched_since_ > 0; }
  /// Whether each thread waits at a barrier or in a collective, or looks at the same memory again and again.
  bool nobody_moves_on() const;
  /// Puts a thread that polls, and where, into `diagnosis`.
  void name_a_poller(Diagnosis& diagnosis) const;

 private:
  void wait_for_others(Fiber& fiber);

  const Assignment& work_;
  Scheduler& scheduler_;
  Reporter& reporter_;
  Activity& activity_;
  TwoWorlds& worlds_;
  bool polled_ = false, watching_ = false;
  unsigned turns_ = 0;                         // since somebody looked at the time
  double started_at_ = 0, watched_since_ = 0;  // by the OS thread's clock; 0: it has not run for long
};

}  // namespace interpreter

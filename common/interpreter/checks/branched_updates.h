/// @file
/// Updates through volatile that get lost although a branch stands between the read and the write; see branched_updates.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/interpreter/happens_before/clocks.h"
#include "common/interpreter/observe/access_log.h"
#include "common/interpreter/schedule/fiber.h"

namespace interpreter {

class Reporter;

/// What the threads of the running block have read of volatile memory, compared, and are about to store there.
class BranchedUpdates {
 public:
  BranchedUpdates(const BlockClock& clock, Reporter& reporter) : clock_(clock), reporter_(reporter) {}
  ~BranchedUpdates() { stop_comparing(); }
  /// A block begins.
  void begin(unsigned threads);
  /// All threads have passed a barrier.
  void pass_barrier() { ++barriers_; }

  /// The thread is about to read or to store through volatile.
  void note_read(Fiber& fiber, const void* p, unsigned size);
  void check_store(Fiber& fiber, const void* p, Pc pc);
  /// The thread is about to compare two numbers. Called while Fiber::looking is set.
  void note_comparison(Fiber& fiber, std::uint64_t a, std::uint64_t b);
  /// The thread has come to a fence, or to an atomic, and whoever uses atomics is believed to have a lock.
  void note_fence(const Fiber& fiber);
  void believe(Fiber& fiber);

  /// A read of one place and a later store to it, by one thread.
  struct Update {
    Stamp by;  // thread 0: none
    std::uint64_t read = 0;
    std::optional<std::uint64_t> stored;  // as soon as it is known
    std::optional<std::uint64_t> step;    // by how much the one before it, of another thread, had changed what it had read
  };

 private:
  struct Thread {
    std::uint64_t barriers = 0;   // barriers_, when the rest was noted
    const void* place = nullptr;  // read last
    unsigned size = 0;
    std::uint64_t value = 0;
    Update earlier;         // of another thread at this place, with no order to this one
    bool compared = false;  // the value, with something that it and the earlier one's stand in the same relation to
    bool decided = false;   // by a comparison in which they do not
    bool believed = false;
    const void* stored_at = nullptr;  // an update of its own, of which it is not yet known what it has stored
  };
  Thread& state_of(const Fiber& fiber);
  void look_at_stored(Thread& thread, ThreadId self);
  void forget(Fiber& fiber, Thread& thread);
  void start_comparing();
  void stop_comparing();

  const BlockClock& clock_;
  Reporter& reporter_;
  std::vector<Thread> threads_;
  std::uint64_t barriers_ = 1;  // passed so far, of all blocks
  bool comparing_ = false;      // comparisons of this block's threads are told
};

}  // namespace interpreter

/// @file
/// Whether a block still does something: for the watchdog and for other blocks' threads that wait.
#pragma once

#include <atomic>
#include <cstdint>

namespace interpreter {

/// Written by the block's OS thread alone, read by others.
class Activity {
 public:
  void note_progress() { count(progress_); }
  void note_change() { count(changes_); }

  /// Grows while threads do things that the interpreter sees.
  std::uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }
  /// Grows when threads change memory or pass a barrier: looking alone does not count.
  std::uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }

 private:
  // With one who writes, no addition has to be atomic; those of processors cost as much as all else that a hook does.
  static void count(std::atomic<std::uint64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> progress_{0}, changes_{0};
};

}  // namespace interpreter

/// @file
/// The OS threads on which blocks run.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <functional>
#include <mutex>

namespace interpreter {

class Block;

/// An OS thread with its Block, kept from launch to launch: both are costly to make.
class PooledThread {
 public:
  /// An idle thread, or a new one.
  static PooledThread& take();

  Block& block() { return *block_; }
  /// Runs `task` on the thread.
  void start(std::function<void(Block&)> task);
  /// Waits for the task's end.
  void wait();
  /// The same; the thread is idle then.
  void wait_and_give_back();
  /// Sends a signal to the thread.
  void signal(int number) { pthread_kill(handle_, number); }
  /// Time that this thread has computed, in seconds: a busy machine or one that was asleep must not look like an endless loop.
  double cpu_seconds() const;

 private:
  PooledThread();
  void loop();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::function<void(Block&)> task_;  // null: idle
  Block* block_ = nullptr;
  pthread_t handle_{};
};

}  // namespace interpreter

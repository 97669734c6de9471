/// @file
/// Crashes and hangs of kernels, which come as signals.
#pragma once

#include <signal.h>

#include <cstddef>

namespace interpreter {

/// Sent to an OS thread whose kernel code does not come back to the interpreter.
inline constexpr int kHangSignal = SIGUSR2;

/// Before every launch and allocation: test frameworks install handlers of their own for each test, and remove ours in the end.
void install_handlers();

/// The stack on which the calling OS thread's handlers run: a fiber's may be full.
class AlternateStack {
 public:
  AlternateStack();
  AlternateStack(const AlternateStack&) = delete;
  ~AlternateStack();

 private:
  static constexpr std::size_t kBytes = 256 * 1024;  // reports are made on it
  void* memory_;
};

}  // namespace interpreter

/// @file
/// The launches that may still run when a dependent one begins.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "common/interpreter/interpreter.h"

namespace interpreter {

/// Launches have numbers from 1 to this one, then from 1 on again.
inline constexpr std::uint64_t kLaunchNumbers = 0x1fff;

/// An ordinary launch, and the dependent ones behind it. Here they run one after the other; on a GPU, each may begin before those
/// before it have ended. It changes between launches alone.
class LaunchChain {
 public:
  /// A launch that has been made.
  struct Link {
    std::uint64_t number;
    const void* kernel;
    const char* name;  ///< as Launch::name
    dim3 grid, block;
    bool waited;  ///< whether one of its threads has waited for the launches before it

    std::string kernel_name() const;
  };

  /// The one of the program.
  static LaunchChain& instance();

  /// `launch` is about to run: what is left is what may still run with it.
  void begin(const Launch& launch);
  /// It has run.
  void add(const Launch& launch, std::uint64_t number, bool waited);
  /// Whatever comes next begins when all launches have ended. May be called at any time.
  void end() { ended_ = true; }

  std::size_t size() const { return links_.size(); }
  /// The launch of that number; null if it is none of these.
  const Link* find(std::uint64_t number) const;
  /// How many launches before the one that runs `link` was: 1 is the last one.
  std::size_t distance(const Link& link) const { return static_cast<std::size_t>(links_.data() + links_.size() - &link); }
  /// The first of the launches that have ended for certain when the last one has. A launch waits for the one before it, and so for
  /// those that that one has waited for; one that does not wait at all may end before them.
  const Link& first_awaited() const;

 private:
  std::vector<Link> links_;  // in the order of their numbers
  const void* stream_ = nullptr;
  std::atomic<bool> ended_{false};
};

}  // namespace interpreter

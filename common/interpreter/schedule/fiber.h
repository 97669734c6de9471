/// @file
/// A CUDA thread, as far as the scheduler, waiting and the log of accesses are concerned. What checks and instructions keep of a
/// thread lies with them.
#pragma once

#include <boost/context/detail/fcontext.hpp>

#include <atomic>
#include <cstdint>

#include "common/interpreter/language/language.h"
#include "common/interpreter/observe/control_flow.h"
#include "common/interpreter/observe/way.h"
#include "common/interpreter/schedule/trail.h"

namespace interpreter {

/// A CUDA thread. What each access and each basic block needs comes first: a block has up to 1024 of them, and they share the
/// processor's cache with the block's data.
struct alignas(64) Fiber {
  boost::context::detail::fcontext_t context = nullptr;
  unsigned linear = 0, warp = 0, lane = 0;
  enum class State : std::uint8_t { kRunning, kInCollective, kAtBarrier, kInFamily, kExited } state = State::kRunning;
  bool special = false;               ///< something needs a look at each of its accesses, see Block::observe_special()
  bool watched = false;               ///< its trail is kept, see Waiting
  bool looking = false;               ///< its comparisons are looked at, see BranchedUpdates
  const char* stack_limit = nullptr;  ///< below it, only the interpreter's own calls may go
  ControlFlow::Path* path = nullptr;  ///< way since the last access to memory

  /// @name While it is in a collective, at a barrier, or waits for a family of instructions
  /// @{
  const char* waits_in = nullptr;  ///< name of what it waits in
  Site waits_at;
  Pc waits_at_pc = 0;      ///< instead of waits_at, where it is not 0
  Pc barrier_pc = 0;       ///< of a barrier: the call
  bool predicate = false;  ///< given to __syncthreads_count and its like
  /// @}

  uint3 thread{};
  Way way;  ///< since the last barrier

  /// @name See Waiting
  /// @{
  const void* polled = nullptr;  ///< address of the last atomic or volatile read that brought nothing new
  Pc polled_at = 0;              ///< the instruction that does it; 0: unknown
  Pc slept_at = 0;               ///< the last __nanosleep
  unsigned polls = 0;            ///< how often in a row
  bool moved_on = false;         ///< it has changed something since
  unsigned looks = 0;            ///< such reads of any address since it last changed memory
  Trail trail;
  const void* accessed = nullptr;  ///< what it accessed last, while it is watched
  /// @}
};

/// The fiber whose kernel code the OS thread runs; null in host code and in the interpreter itself, which nobody checks.
extern thread_local constinit Fiber* current_fiber;
/// How many blocks' threads are watched: usually none, and comparisons need not look further.
extern std::atomic<unsigned> watched_blocks;

}  // namespace interpreter

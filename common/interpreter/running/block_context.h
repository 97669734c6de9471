/// @file
/// What the parts of a block see of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/interpreter/observe/access_log.h"
#include "common/interpreter/observe/events.h"
#include "common/interpreter/running/family.h"
#include "common/interpreter/running/launch_state.h"

namespace interpreter {

/// What a block is made of. Who uses a part includes the part's header, and no other one's: so a change of one check leaves all
/// others as they are.
struct BlockParts {
  const Assignment& work;  ///< what the block runs

  class SharedMemory& shared;
  class Stacks& stacks;

  class Recorder& recorder;
  class Scheduler& scheduler;
  class Activity& activity;
  class SideStack& side_stack;
  class TwoWorlds& worlds;
  class Reporter& reporter;
  class Whereabouts& whereabouts;
  class Meetings& meetings;
  class Waiting& waiting;

  class BlockClock& clock;
  class Shadows& shadows;
  class Bounds& bounds;
  class BadIndices& indices;
  class InitCheck& initialised;
  class VolatileUpdates& updates;
  class BranchedUpdates& branched_updates;
  class RaceCheck& races;
  class AsyncProxy& async_proxy;
  class DependenceCheck& dependence;
  class Visits& visits;
  class CollectiveWorlds& collective_worlds;

  class Atomics& atomics;
  class CounterTable& counters;
  class Overlap& overlap;
  class L2Trace& l2_trace;
};

/// A block, for its parts and for other blocks of its cluster: the parts, and what happens to all of them.
class BlockContext : public BlockParts {
 public:
  BlockContext(const BlockContext&) = delete;

  Cluster& cluster() const { return *work.cluster; }

  // ---- called on a fiber
  /// A memory access of `fiber`, about to happen. strong: atomic or volatile.
  virtual void observe(Fiber& fiber, const void* p, unsigned size, Op op, bool strong, const void* return_address) = 0;
  /// Logs an instruction of the family's own, see Family::on_request().
  virtual void record(Fiber& fiber, Family::Record& what, unsigned size, Pc pc) = 0;
  /// For a picture of what happened: a lane's instruction that is no access. Lanes that say the same are one event.
  void note(Fiber& fiber, EventKind kind, Pc pc, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0,
            std::uint64_t d = 0) {
    if (events) [[unlikely]]
      note_event(fiber, {.kind = kind, .pc = pc, .a = a, .b = b, .c = c, .d = d});
  }
  /// An event of one of its warps. There is a log.
  virtual void add_event(Event event) = 0;
  /// Lanes of a warp have met at a __syncwarp().
  virtual void pass_warp_barrier(unsigned warp, unsigned mask) = 0;
  /// All threads have met at a __syncthreads().
  virtual void pass_barrier() = 0;

  /// @name For reports
  /// @{
  /// Whether what runs is the second world of a thread, see TwoWorlds.
  virtual bool in_other_world() const = 0;
  /// There: with this world's value the thread does what is an error.
  [[noreturn]] virtual void end_other_world_in_error() = 0;
  /// The thread has failed: what it read before may be why.
  virtual void look_back(const Fiber& fiber) = 0;
  /// Drops all fibers where they stand: the launch has failed.
  [[noreturn]] virtual void give_up() = 0;
  /// What reports say of its mbarriers.
  virtual const class MbarrierFacts& mbarriers() = 0;
  /// @}

  /// @name Families of instructions
  /// @{
  /// The block's state of the family T.
  template <class T>
  T& family() {
    const std::size_t number = Family::number_of<T>();
    if (number >= families_.size()) families_.resize(number + 1);
    std::unique_ptr<Family>& family = families_[number];
    if (!family) {
      family = std::make_unique<T>(*this);
      family->begin(work.launch->threads);
    }
    return static_cast<T&>(*family);
  }
  /// Those that it has; null: not yet.
  const std::vector<std::unique_ptr<Family>>& families() const { return families_; }
  /// Of a thread that waits in a family, what it waits for.
  std::string what_is_awaited(const Fiber& fiber) const {
    for (const auto& family : families_)
      if (family)
        if (std::string what = family->what_is_awaited(fiber); !what.empty()) return what;
    return "";
  }
  /// @}

  EventLog* events = nullptr;  ///< what happens here, for pictures; null: nobody has asked

 protected:
  explicit BlockContext(const BlockParts& parts) : BlockParts(parts) {}
  ~BlockContext() = default;

 private:
  virtual void note_event(Fiber& fiber, const Event& event) = 0;

  std::vector<std::unique_ptr<Family>> families_;  // by Family::number_of()
};

/// The block that the OS thread runs; null: none.
extern thread_local constinit BlockContext* current_block;

}  // namespace interpreter

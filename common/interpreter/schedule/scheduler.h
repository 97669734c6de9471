/// @file
/// Which thread of a block runs: fibers, of which one at a time goes on until it waits for something.
#pragma once

#include <boost/context/detail/fcontext.hpp>

#include <cstdint>
#include <vector>

#include "common/interpreter/running/launch_state.h"
#include "common/interpreter/schedule/fiber.h"

namespace interpreter {

class Recorder;
class Stacks;

/// The fibers of the running block. They run warp by warp, in the launch's order.
class Scheduler {
 public:
  enum class Stop { kFinished, kFailed, kNobodyReady };
  using Transfer = boost::context::detail::transfer_t;

  /// The lanes of a warp, as bits.
  struct Warp {
    std::uint32_t existing = 0, live = 0;
    std::uint32_t ready = 0;
    std::uint32_t log_full = 0;  ///< wait for the other lanes to catch up, so that instructions can be rebuilt
    std::uint32_t at_fence = 0;  ///< wait for their log to be looked at, because time is about to pass
    std::uint32_t polling = 0;   ///< wait for all others
    unsigned rounds = 0;         ///< of logs filled without a wait
  };

  Scheduler(const Assignment& work, Recorder& recorder) : work_(work), recorder_(recorder) {}

  /// Makes a fiber for each thread of the block. Each begins with `entry`, which calls arrive() first.
  void begin(const Stacks& stacks, ControlFlow::Path* path, void (*entry)(Transfer));
  /// Runs fibers until no one can go on.
  Stop run();

  std::vector<Fiber>& fibers() { return fibers_; }
  const std::vector<Fiber>& fibers() const { return fibers_; }
  Fiber& fiber(unsigned warp, unsigned lane) { return fibers_[warp * 32 + lane]; }
  std::size_t warps() const { return warps_.size(); }
  Warp& warp(const Fiber& fiber) { return warps_[fiber.warp]; }
  Warp& warp(unsigned number) { return warps_[number]; }
  const Warp& warp(unsigned number) const { return warps_[number]; }
  bool is_polling(const Fiber& fiber) const { return warps_[fiber.warp].polling >> fiber.lane & 1; }
  unsigned live() const { return live_; }       ///< threads that have not exited
  Fiber& running() const { return *running_; }  ///< the fiber that runs, or ran last
  /// Whether some thread can go on.
  bool anybody_ready() const { return ready_warps_ != 0; }
  /// Whether some thread waits for all others.
  bool anybody_polls() const;

  // ---- called on a fiber
  /// To be called when a fiber begins. @return the fiber
  Fiber& arrive(Transfer from);
  /// The fiber is not ready any more; it still runs until switch_away().
  void park(Fiber& fiber) { warps_[fiber.warp].ready &= ~(1u << fiber.lane); }
  /// Lets others run, and the fiber again when it is ready and its turn has come.
  void switch_away(Fiber& fiber);
  /// Parks the fiber as one of `set` and switches away.
  void wait(Fiber& fiber, std::uint32_t Warp::*set);
  /// Lets the rest of the warp catch up and the log be looked at: what was done so far belongs to the time before.
  void rendezvous(Fiber& fiber) { wait(fiber, &Warp::at_fence); }
  /// The fiber waits in an instruction of a family, which wakes it; see Family::wake_somebody().
  void wait_in_family(Fiber& fiber, const char* instruction, Pc pc);
  void wake_in_family(Fiber& fiber);
  /// Makes lanes of a warp ready.
  void wake(unsigned warp, std::uint32_t lanes);
  /// The same with all that wait for others.
  void wake_polling();
  /// The fiber's thread has come to its end. leave_for_next() is to follow.
  void retire(Fiber& fiber);
  [[noreturn]] void leave_for_next(Fiber& fiber);
  /// Gives up all fibers: run() returns `stop`.
  [[noreturn]] void leave(Stop stop);

 private:
  using Context = boost::context::detail::fcontext_t;
  void resume(Context& save, Fiber& to);
  Fiber* next_fiber(unsigned warp);
  unsigned pick(std::uint32_t set);
  void settle(unsigned warp);

  const Assignment& work_;
  Recorder& recorder_;
  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  std::uint32_t ready_warps_ = 0;
  unsigned live_ = 0;
  unsigned next_warp_ = 0;  // in which run() looks first
  std::uint64_t random_ = 1;
  Fiber* running_ = nullptr;
  Stop stop_ = Stop::kFinished;
  Context context_ = nullptr;  // of run()
};

}  // namespace interpreter

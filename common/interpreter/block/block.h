/// @file
/// One resident thread block: what schedules its threads, where they meet, its memory, the checks on what its threads do.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <utility>

#include "common/interpreter/checks/async_proxy.h"
#include "common/interpreter/checks/bad_indices.h"
#include "common/interpreter/checks/bounds.h"
#include "common/interpreter/checks/branched_updates.h"
#include "common/interpreter/checks/collective_worlds.h"
#include "common/interpreter/checks/dependence.h"
#include "common/interpreter/checks/initialised.h"
#include "common/interpreter/checks/races.h"
#include "common/interpreter/checks/restrict.h"
#include "common/interpreter/checks/two_worlds.h"
#include "common/interpreter/checks/visits.h"
#include "common/interpreter/checks/volatile_updates.h"
#include "common/interpreter/count/counters.h"
#include "common/interpreter/count/l2_trace.h"
#include "common/interpreter/count/overlap.h"
#include "common/interpreter/instructions/atomics.h"
#include "common/interpreter/meetings/meetings.h"
#include "common/interpreter/meetings/waiting.h"
#include "common/interpreter/memory/stacks.h"
#include "common/interpreter/observe/recorder.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/running/block_context.h"
#include "common/interpreter/schedule/activity.h"
#include "common/interpreter/schedule/cluster.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {

/// Runs blocks one after the other on the OS thread that made it. That thread's TLS block holds the __shared__ variables.
///
/// The parts do the work; the block owns and begins them, and says what happens to all of them when an access is made and when time
/// passes. They see it as a BlockContext.
class Block final : public BlockContext, private RequestSink {
 public:
  using Yield = void (*)(void* context);

  Block();

  /// Block `index` begins, as one of a cluster; run() is to follow.
  void begin(LaunchState& launch, std::uint64_t index, Cluster& cluster, unsigned rank);
  /// Runs the block to its end, or until the launch fails. `yield` is called when all threads of the cluster wait and some of them
  /// poll memory that another block may change.
  void run(Yield yield, void* yield_context);

  // ---- called on a fiber
  [[gnu::always_inline]] void observe(Fiber& fiber, const void* p, unsigned size, Op op, bool strong,
                                      const void* return_address) override;
  /// The same for any number of bytes.
  void observe_range(Fiber& fiber, const void* p, std::size_t bytes, Op op, const void* return_address);
  void record(Fiber& fiber, Family::Record& what, unsigned size, Pc pc) override;
  void add_event(Event event) override;
  void pass_warp_barrier(unsigned warp, unsigned mask) override;
  void pass_barrier() override;
  bool in_other_world() const override { return worlds_.in_other(); }
  void end_other_world_in_error() override { worlds_.end_other_in_error(); }
  void look_back(const Fiber& fiber) override { initialised_.look_back(fiber); }
  void give_up() override { scheduler_.leave(Scheduler::Stop::kFailed); }
  const MbarrierFacts& mbarriers() override;

  // ---- called from signal handlers
  /// Whether `p` lies in the guard page below a fiber's stack.
  bool in_guard_page(const void* p) const { return stacks_.in_guard_page(p); }
  [[noreturn]] void fail_from_signal(Check check, const char* what, const char* expected, Pc pc);
  [[noreturn]] void fail_division_by_zero(Pc pc) {
    fail_from_signal(Check::kException, "integer division by zero", "divisors are not zero", pc);
  }

 private:
  void run_to_end(Yield yield, void* yield_context);
  static void run_fiber(Scheduler::Transfer from);
  [[noreturn]] void exit(Fiber& fiber);
  void report_deadlock();
  bool observe_special(Fiber& fiber, const void* p, unsigned size, Op op, bool strong, const void* return_address);
  bool observe_unwritten(Fiber& fiber, std::uintptr_t address, unsigned size, bool plain, Pc pc);
  void on_request(unsigned warp, const Request& request) override;
  void note_event(Fiber& fiber, const Event& event) override;
  void record_request(unsigned warp, const Request& request);
  bool record_visits(unsigned warp, const Request& request);

  Assignment work_;

  SharedMemory shared_;
  Stacks stacks_;

  Recorder recorder_{*this};
  Scheduler scheduler_{work_, recorder_};
  Activity activity_;
  SideStack side_stack_;
  TwoWorlds worlds_{*this};  // a check, of which reports and waiting know
  Reporter reporter_{work_, shared_};
  Meetings meetings_{*this, scheduler_, reporter_, activity_, worlds_};
  Waiting waiting_{work_, scheduler_, reporter_, activity_, worlds_};

  BlockClock clock_;
  Shadows shadows_{work_, shared_};
  Bounds bounds_{work_, shared_, stacks_, shadows_, reporter_};
  BadIndices indices_{shared_, reporter_};
  InitCheck initialised_{work_, shared_, recorder_.log, scheduler_, reporter_};
  VolatileUpdates updates_{clock_, scheduler_, reporter_};
  BranchedUpdates branched_updates_{clock_, reporter_};
  RaceCheck races_{work_, clock_, shadows_, updates_, scheduler_, reporter_, async_proxy_};
  AsyncProxy async_proxy_{*this};
  DependenceCheck dependence_{work_, clock_, recorder_.log, scheduler_, reporter_};
  Visits visits_{*this};
  RestrictCheck restricts_{work_, clock_, scheduler_, reporter_};
  CollectiveWorlds collective_worlds_{worlds_, scheduler_, stacks_, side_stack_};

  Atomics atomics_{*this};
  CounterTable counters_;
  Overlap overlap_;   // if count_each_access
  L2Trace l2_trace_;  // if Options::l2_model

  GlobalMemory& global_ = GlobalMemory::instance();
  const std::uintptr_t global_begin_ = reinterpret_cast<std::uintptr_t>(global_.base());
  Diagnosis what_signal_says() const;
  std::jmp_buf after_signal_;
  struct {
    Check check;
    const char *what, *expected;
    Pc pc;
    const Fiber* fiber;
  } signal_ = {};  // what a handler knows; the text is made when it is over
};

// Inline, because it runs once for every load and store of every thread.
inline void Block::observe(Fiber& fiber, const void* p, unsigned size, Op op, bool strong, const void* return_address) {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  if (fiber.special) [[unlikely]]
    if (observe_special(fiber, p, size, op, strong, return_address)) return;
  bool in_shared = true, was_written = true;
  if (const std::uintptr_t offset = address - global_begin_; offset < GlobalMemory::kBytes) {
    if (!global_.valid(offset, size) && work_.options().memcheck) [[unlikely]]
      return bounds_.bad_access(fiber, p, size, op, return_address);
    in_shared = false;
    if (!is_store(op)) was_written = global_.granule_initialised(offset) || global_.initialised(offset, size);
  } else if (const std::uintptr_t offset = address - shared_.arena.begin; offset < SharedMemory::kArenaBytes) {
    if (offset + size > shared_.dynamic_bytes && work_.options().memcheck) [[unlikely]]
      return bounds_.bad_access(fiber, p, size, op, return_address);
    if (!is_store(op)) was_written = shared_.arena.initialised.all(offset, size);
  } else if (const std::uintptr_t offset = address - shared_.statics.begin; offset < shared_.statics.bytes) {
    if (!bounds_.touch_static(fiber, address, size, op, return_address)) return;
    if (!is_store(op)) was_written = shared_.statics.initialised.all(offset, size);
  } else if (stacks_.contains(fiber.linear, p)) {
    return;
  } else if (BlockContext* const peer = cluster().peer_at(address)) {
    if (!visits_.touch(fiber, *peer, address, size, op, return_address)) return;
    if (!is_store(op)) was_written = peer->shared.part_of(address).all_initialised(address, size);
  } else {
    if (!bounds_.touch_elsewhere(fiber, p, size, op, return_address)) return;
    in_shared = false;
  }
  if (address & (size - 1) && work_.options().memcheck) [[unlikely]]
    return bounds_.misaligned(fiber, p, size, op, return_address);
  const Pc pc = to_pc(return_address);
  if (!is_store(op) && !was_written) [[unlikely]]
    if (observe_unwritten(fiber, address, size, op == Op::kLoad && !strong, pc)) return;
  if (recorder_.log.append(fiber.lane, address, size, op, in_shared, strong, pc, *std::exchange(fiber.path, fiber.path->restart)))
    waiting_.log_is_full(fiber, pc);
}

/// The block that the OS thread runs. There is one.
inline Block& running_block() { return static_cast<Block&>(*current_block); }

}  // namespace interpreter

/// @file
/// One resident thread block: what schedules its threads, where they meet, its memory, the checks on what its threads do.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/interpreter/checks/async_proxy.h"
#include "common/interpreter/checks/bad_indices.h"
#include "common/interpreter/checks/bounds.h"
#include "common/interpreter/checks/branched_updates.h"
#include "common/interpreter/checks/collective_worlds.h"
#include "common/interpreter/checks/dependence.h"
#include "common/interpreter/checks/happens_before.h"
#include "common/interpreter/checks/initialised.h"
#include "common/interpreter/checks/races.h"
#include "common/interpreter/checks/restrict.h"
#include "common/interpreter/checks/shadows.h"
#include "common/interpreter/checks/two_worlds.h"
#include "common/interpreter/checks/visits.h"
#include "common/interpreter/checks/volatile_updates.h"
#include "common/interpreter/count/counters.h"
#include "common/interpreter/count/l2_trace.h"
#include "common/interpreter/count/overlap.h"
#include "common/interpreter/instructions/atomics.h"
#include "common/interpreter/instructions/family.h"
#include "common/interpreter/launch/launch_state.h"
#include "common/interpreter/memory/global_memory.h"
#include "common/interpreter/memory/shared_memory.h"
#include "common/interpreter/memory/stacks.h"
#include "common/interpreter/observe/events.h"
#include "common/interpreter/observe/recorder.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/schedule/activity.h"
#include "common/interpreter/schedule/cluster.h"
#include "common/interpreter/schedule/fiber.h"
#include "common/interpreter/schedule/meetings.h"
#include "common/interpreter/schedule/scheduler.h"
#include "common/interpreter/schedule/side_stack.h"
#include "common/interpreter/schedule/waiting.h"

namespace interpreter {

/// Runs blocks one after the other on the OS thread that made it. That thread's TLS block holds the __shared__ variables.
///
/// The parts do the work; the block begins them, and says what happens to all of them when an access is made and when time passes.
class Block final : private RequestSink {
 public:
  static constexpr std::size_t kMaxThreads = 1024;
  using Yield = void (*)(void* context);

  Block() = default;
  Block(const Block&) = delete;

  /// Block `index` begins, as one of a cluster; run() is to follow.
  void begin(LaunchState& launch, std::uint64_t index, Cluster& cluster, unsigned rank);
  /// Runs the block to its end, or until the launch fails. `yield` is called when all threads of the cluster wait and some of them
  /// poll memory that another block may change.
  void run(Yield yield, void* yield_context);
  /// What it runs.
  const Assignment& work() const { return work_; }
  Cluster& cluster() const { return *work_.cluster; }

  // ---- called on a fiber
  /// A memory access of `fiber`, about to happen. strong: atomic or volatile.
  [[gnu::always_inline]] void observe(Fiber& fiber, const void* p, unsigned size, Op op, bool strong, const void* return_address);
  /// The same for any number of bytes.
  void observe_range(Fiber& fiber, const void* p, std::size_t bytes, Op op, const void* return_address);
  /// The fiber passes the basic block at `pc`, and its way there is none of the usual ones.
  void extend_path(Fiber& fiber, Pc pc) {
    if (worlds.in_other()) return worlds.pass_basic_block(fiber);
    fiber.path = recorder.extend(fiber.path, pc);
    fiber.way.add(fiber.path->block);
  }
  /// Logs an instruction of the family's own, see Family::on_request().
  void record(Fiber& fiber, Family::Record& what, unsigned size, Pc pc);
  /// For a picture of what happened: a lane's instruction that is no access. Lanes that say the same are one event.
  void note(Fiber& fiber, EventKind kind, Pc pc, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0,
            std::uint64_t d = 0) {
    if (events) [[unlikely]]
      note_event(fiber, {.kind = kind, .pc = pc, .a = a, .b = b, .c = c, .d = d});
  }
  /// An event of one of its warps. There is a log.
  void add_event(Event event);
  /// How far from the top of the fiber's stack `p` lies: the same for all lanes' places of one variable.
  std::uint64_t depth_of(const Fiber& fiber, const void* p) const {
    return static_cast<std::uint64_t>(static_cast<const char*>(stacks.top(fiber.linear)) - static_cast<const char*>(p));
  }
  /// The fiber has made its last access for now.
  void before_waiting(Fiber& fiber) {
    if (fiber.special) [[unlikely]]
      check_what_was_left(fiber);
  }
  /// A warp executes an mma.
  void count_mma(unsigned warp, Pc pc) { counters.count_mma(pc), ++mma_of_warp[warp]; }
  /// Lanes of a warp have met at a __syncwarp().
  void pass_warp_barrier(unsigned warp, unsigned mask);
  /// All threads have met at a __syncthreads().
  void pass_barrier();
  /// The block's state of a family of instructions.
  template <class T>
  T& family();
  /// The fiber waits in an instruction of a family, which wakes it; see Family::wake_somebody().
  void wait_in_family(Fiber& fiber, const char* instruction, Pc pc);
  void wake_in_family(Fiber& fiber);
  /// Of a thread that waits in a family, what it waits for.
  std::string what_is_awaited(const Fiber& fiber) const;

  // ---- called from signal handlers
  /// Whether `p` lies in the guard page below a fiber's stack.
  bool in_guard_page(const void* p) const { return stacks.in_guard_page(p); }
  [[noreturn]] void fail_from_signal(Check check, const char* what, const char* expected, Pc pc);
  [[noreturn]] void fail_division_by_zero(Pc pc) {
    fail_from_signal(Check::kException, "integer division by zero", "divisors are not zero", pc);
  }

 private:
  Assignment work_;

 public:
  /// @name Memory
  /// @{
  SharedMemory shared;
  Stacks stacks;
  /// @}

  /// @name Schedule
  /// @{
  Recorder recorder{*this};
  Scheduler scheduler{work_, recorder};
  Activity activity;
  SideStack side_stack;
  TwoWorlds worlds{*this};  ///< a check, of which reports and waiting know
  Reporter reporter{work_, shared};
  Meetings meetings{*this};
  Waiting waiting{work_, scheduler, reporter, activity, worlds};
  /// @}

  /// @name Checks
  /// @{
  BlockClock clock;
  Shadows shadows{work_, shared};
  Bounds bounds{work_, shared, stacks, shadows, reporter};
  BadIndices indices{shared, reporter};
  InitCheck initialised{work_, shared, recorder.log, scheduler, reporter};
  VolatileUpdates updates{clock, scheduler, reporter};
  BranchedUpdates branched_updates{clock, reporter};
  RaceCheck races{work_, clock, shadows, updates, scheduler, reporter, async_proxy};
  AsyncProxy async_proxy{*this};
  DependenceCheck dependence{*this};
  Visits visits{*this};
  RestrictCheck restricts{work_, clock, scheduler, reporter};
  CollectiveWorlds collective_worlds{*this};
  /// @}

  /// @name Instructions and what is counted of them
  /// @{
  Atomics atomics{*this};
  CounterTable counters;
  std::vector<std::uint64_t> mma_of_warp;  ///< how many mma instructions each warp has executed
  Overlap overlap;                         ///< if count_each_access
  L2Trace l2_trace;                        ///< if Options::l2_model
                                           /// @}
  EventLog* events = nullptr;              ///< what happens here, for pictures; null: nobody has asked

 private:
  void run_to_end(Yield yield, void* yield_context);
  static void run_fiber(Scheduler::Transfer from);
  [[noreturn]] void exit(Fiber& fiber);
  bool wake_somebody();
  void name_who_waits(Diagnosis& d, const Fiber& waiting) const;
  bool name_what_is_missing(Diagnosis& d, bool& found, bool& likely) const;
  void report_deadlock();
  bool observe_special(Fiber& fiber, const void* p, unsigned size, Op op, bool strong, const void* return_address);
  bool observe_unwritten(Fiber& fiber, std::uintptr_t address, unsigned size, bool plain, Pc pc);
  void check_what_was_left(Fiber& fiber);
  void on_request(unsigned warp, const Request& request) override;
  void note_event(Fiber& fiber, const Event& event);
  void record_request(unsigned warp, const Request& request);
  bool record_visits(unsigned warp, const Request& request);

  GlobalMemory& global_ = GlobalMemory::instance();
  const std::uintptr_t global_begin_ = reinterpret_cast<std::uintptr_t>(global_.base());
  std::vector<std::unique_ptr<Family>> families_;  // by Family::number_of()
  std::jmp_buf after_signal_;
  Diagnosis signal_diagnosis_;
};

template <class T>
T& Block::family() {
  const std::size_t number = Family::number_of<T>();
  if (number >= families_.size()) families_.resize(number + 1);
  std::unique_ptr<Family>& family = families_[number];
  if (!family) {
    family = std::make_unique<T>(*this);
    family->begin(work_.launch->threads);
  }
  return static_cast<T&>(*family);
}

// Inline, because it runs once for every load and store of every thread.
inline void Block::observe(Fiber& fiber, const void* p, unsigned size, Op op, bool strong, const void* return_address) {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  if (fiber.special) [[unlikely]]
    if (observe_special(fiber, p, size, op, strong, return_address)) return;
  bool in_shared = true, was_written = true;
  if (const std::uintptr_t offset = address - global_begin_; offset < GlobalMemory::kBytes) {
    if (!global_.valid(offset, size) && work_.options().memcheck) [[unlikely]]
      return bounds.bad_access(fiber, p, size, op, return_address);
    in_shared = false;
    if (!is_store(op)) was_written = global_.granule_initialised(offset) || global_.initialised(offset, size);
  } else if (const std::uintptr_t offset = address - shared.arena.begin; offset < SharedMemory::kArenaBytes) {
    if (offset + size > shared.dynamic_bytes && work_.options().memcheck) [[unlikely]]
      return bounds.bad_access(fiber, p, size, op, return_address);
    if (!is_store(op)) was_written = shared.arena.initialised.all(offset, size);
  } else if (const std::uintptr_t offset = address - shared.statics.begin; offset < shared.statics.bytes) {
    if (!bounds.touch_static(fiber, address, size, op, return_address)) return;
    if (!is_store(op)) was_written = shared.statics.initialised.all(offset, size);
  } else if (stacks.contains(fiber.linear, p)) {
    return;
  } else if (Block* const peer = cluster().peer_at(address)) {
    if (!visits.touch(fiber, *peer, address, size, op, return_address)) return;
    if (!is_store(op)) was_written = peer->shared.part_of(address).all_initialised(address, size);
  } else {
    if (!bounds.touch_elsewhere(fiber, p, size, op, return_address)) return;
    in_shared = false;
  }
  if (address & (size - 1) && work_.options().memcheck) [[unlikely]]
    return bounds.misaligned(fiber, p, size, op, return_address);
  const Pc pc = to_pc(return_address);
  if (!is_store(op) && !was_written) [[unlikely]]
    if (observe_unwritten(fiber, address, size, op == Op::kLoad && !strong, pc)) return;
  if (recorder.log.append(fiber.lane, address, size, op, in_shared, strong, pc, *std::exchange(fiber.path, fiber.path->restart)))
    waiting.log_is_full(fiber, pc);
}

}  // namespace interpreter

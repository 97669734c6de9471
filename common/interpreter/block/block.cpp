#include "common/interpreter/block/block.h"

#include <algorithm>
#include <exception>
#include <string>

#include "common/interpreter/instructions/mbarrier_family.h"

namespace interpreter {

thread_local constinit BlockContext* current_block = nullptr;

namespace {

bool wake_somebody(const BlockContext& block) {
  return std::any_of(block.families().begin(), block.families().end(),
                     [](const auto& family) { return family && family->wake_somebody(); });
}

void name_who_waits(Diagnosis& d, const BlockContext& block, const Fiber& f) {
  const Location where = place_of(f);
  d.file = where.file, d.line = where.line, d.called_at = where.called_at, d.called_in = where.called_in;
  d.block = block.work.index, d.thread = f.thread, d.warp = static_cast<int>(f.warp), d.lane = static_cast<int>(f.lane);
}

// In the report of a deadlock, who waits for what nobody who waits could bring; else the first who waits in a family, unless one
// was found before; one of which some arrivals are missing, not all, goes before others. @return whether it is the first of these
bool name_what_is_missing(Diagnosis& d, const BlockContext& block, bool& found, bool& likely) {
  for (const Fiber& f : block.scheduler.fibers()) {
    if (f.state != Fiber::State::kInFamily) continue;
    for (const auto& family : block.families()) {
      if (!family) continue;
      const Family::Missing missing = family->what_is_missing(f);
      if (missing.expected.empty() || (found && !missing.is_the_reason && (likely || !missing.is_likely))) continue;
      if (place_of(f).line || !d.line) name_who_waits(d, block, f);  // compilers leave some calls without a line
      d.variable = missing.variable, d.expected = missing.expected;
      if (missing.is_the_reason) return true;
      found = true, likely |= missing.is_likely;
    }
  }
  return false;
}

}  // namespace

Block::Block()
    : BlockContext(
          {work_,        shared_,   stacks_,           recorder_, scheduler_,   activity_,   side_stack_, worlds_,
           reporter_,    meetings_, meetings_,         waiting_,  clock_,       shadows_,    bounds_,     indices_,
           initialised_, updates_,  branched_updates_, races_,    async_proxy_, dependence_, visits_,     collective_worlds_,
           atomics_,     counters_, overlap_,          l2_trace_}) {}

// ----------------------------------------------------------------------------------------------------- begin, run, end
void Block::begin(LaunchState& launch, std::uint64_t index, Cluster& cluster, unsigned rank) {
  const unsigned threads = launch.threads;
  const std::size_t dynamic_bytes = launch.launch.dynamic_shared_bytes;
  work_ = {&launch, index, unflatten(index, launch.launch.grid), &cluster, rank};
  stacks_.prepare(threads, launch.options.stack_bytes);
  shared_.begin(dynamic_bytes);

  scheduler_.begin(stacks, recorder_.begin(launch.launch.kernel), &Block::run_fiber);
  meetings_.begin();
  reporter_.begin();

  clock_.begin(launch.number, index, threads, cluster.readers);
  if (launch.options.racecheck) shadows_.begin(dynamic_bytes);
  indices_.begin(threads);
  initialised_.begin(threads);
  updates_.begin(threads);
  branched_updates_.begin(threads);
  races_.begin();
  async_proxy_.begin(threads);
  dependence_.begin(threads);
  visits_.begin();
  side_stack_.begin();
  worlds_.begin(threads);
  collective_worlds_.begin();

  events = cluster.events ? cluster.events.get() : launch.events.get();
  atomics_.begin(threads);
  counters_.begin((threads + 31) / 32);
  overlap_.begin(threads);
  for (const auto& family : families())
    if (family) family->begin(threads);
  l2_trace_.begin(launch.options.l2_model ? launch.gpu.l1_per_sm - std::min(launch.gpu.l1_per_sm / 2, dynamic_bytes) : 0);
}

void Block::run(Yield yield, void* yield_context) {
  cluster().wait_for_turn(work_.rank);
  current_block = this;
  waiting_.begin();
  if (!work_.has_failed()) run_to_end(yield, yield_context);
  current_block = nullptr;
  cluster().leave(work_.rank);
}

void Block::run_to_end(Yield yield, void* yield_context) {
  if (setjmp(after_signal_) != 0) {  // a signal handler gave up the block
    reporter_.report(what_signal_says());
    return;
  }
  Scheduler::Stop stop;
  const auto any_block = [&](auto&& is) {
    return std::any_of(cluster().blocks().begin(), cluster().blocks().end(),
                       [&](BlockContext* block) { return !cluster().is_over(block->work.rank) && is(*block); });
  };
  while ((stop = scheduler_.run()) == Scheduler::Stop::kNobodyReady) {
    if (cluster().pass_turn(work_.rank)) {
      if (work_.has_failed()) return;
      continue;
    }
    // Barriers that can complete have completed; only polling threads could still bring something new.
    if (any_block(wake_somebody)) {
      if (work_.has_failed()) return;
      continue;
    }
    if (!any_block([](const BlockContext& block) { return block.scheduler.anybody_polls(); })) return report_deadlock();
    waiting_.look_at_the_time();
    // Who runs for long may wait in a way that does not show.
    if (any_block([](const BlockContext& block) { return block.waiting.has_polled() || block.waiting.runs_for_long(); }))
      yield(yield_context);
    if (work_.has_failed()) return;
    for (BlockContext* const block : cluster().blocks())
      if (!cluster().is_over(block->work.rank)) block->scheduler.wake_polling();
  }
  if (stop == Scheduler::Stop::kFinished) reporter_.confirm();
}

void Block::run_fiber(Scheduler::Transfer from) {
  Block& block = running_block();
  Fiber& self = block.scheduler.arrive(from);
  const Launch& launch = block.work_.launch->launch;
  std::string uncaught;  // fibers must not be switched inside a handler, so the report is made after it
  // From the handlers on, this is the interpreter again: what std::string does is not the kernel's.
  current_fiber = &self;
  try {
    launch.invoke(launch.closure);
  } catch (const std::exception& e) {
    current_fiber = nullptr;
    uncaught = std::string("uncaught exception: ") + e.what();
  } catch (...) {
    current_fiber = nullptr;
    uncaught = "uncaught exception";
  }
  current_fiber = nullptr;
  if (!uncaught.empty()) block.reporter.fail(Check::kException, uncaught, "kernels end without an exception", &self, {});
  block.exit(self);
}

void Block::exit(Fiber& self) {
  recorder_.log.read_stored(self.lane);  // at once: see Stored
  worlds_.exit(self);
  indices_.before_waiting(self);
  for (const auto& family : families())
    if (family) family->on_exit(self);
  visits_.on_exit(self);
  activity_.note_progress();  // the next one has its own time, even if none of them ever accesses memory
  scheduler_.retire(self);
  meetings_.leave(self);
  if (scheduler_.live() == 0) {
    recorder_.drain(self.warp, 0);
    meetings_.look_back();
    work_.launch->steps += 1;
    activity_.note_change();
    scheduler_.leave(Scheduler::Stop::kFinished);
  }
  scheduler_.leave_for_next(self);
}

const MbarrierFacts& Block::mbarriers() { return family<Mbarriers>(); }

void Block::report_deadlock() {
  Diagnosis d;
  d.check = Check::kSynccheck;
  d.what = "deadlock: " + who_waits_where(cluster());
  d.expected = "every thread of a barrier, and every lane of a collective's mask, arrives";
  d.kernel = work_.launch->kernel_name();
  d.block = work_.index;
  bool named = false, found = false, likely = false;
  for (const BlockContext* const block : cluster().blocks())
    for (const Fiber& f : block->scheduler.fibers()) {
      if (f.state == Fiber::State::kRunning || f.state == Fiber::State::kExited || named) continue;
      name_who_waits(d, *block, f);
      named = f.state != Fiber::State::kAtBarrier;  // the narrower place is the more telling one
    }
  for (const BlockContext* const block : cluster().blocks())
    if (name_what_is_missing(d, *block, found, likely)) break;
  reporter_.report(std::move(d));
}

void Block::fail_from_signal(Check check, const char* what, const char* expected, Pc pc) {
  signal_ = {check, what, expected, pc, std::exchange(current_fiber, nullptr)};
  std::longjmp(after_signal_, 1);
}

Diagnosis Block::what_signal_says() const {
  const auto& [check, what, expected, pc, fiber] = signal_;
  if (worlds_.in_other()) return worlds_.stopped(*fiber);
  // An endless loop may be interrupted anywhere, even in what it calls of the interpreter.
  const Pc where = check == Check::kEndless && fiber->path->pc ? fiber->path->pc : pc + 1;
  return reporter_.diagnose(check, what, expected, fiber, user_location(where));
}

// ------------------------------------------------------------------------------------------------------------ accesses
// @return whether the access is none of the first world
bool Block::observe_special(Fiber& fiber, const void* p, unsigned size, Op op, bool strong, const void* return_address) {
  if (worlds_.observe(fiber, p, size, op, strong, to_pc(return_address))) return true;
  indices_.check(fiber, p);
  for (const auto& family : families())
    if (family) family->on_access(fiber, p, size, return_address);
  if (fiber.watched) waiting_.follow(fiber, p, to_pc(return_address), strong);
  return false;
}

// A load of memory that no hook has told of a write to. @return whether it is none of the first world
bool Block::observe_unwritten(Fiber& fiber, std::uintptr_t address, unsigned size, bool plain, Pc pc) {
  initialised_.find_unseen_writes(address, size);
  return plain && work_.options().initcheck && initialised_.is_tried(address, size) &&
         worlds_.try_unwritten(fiber, address, size, pc);
}

void Block::observe_range(Fiber& fiber, const void* p, std::size_t bytes, Op op, const void* return_address) {
  if (stacks_.contains(fiber.linear, p)) {
    if (fiber.special && !worlds_.in_other())
      for (const auto& family : families())
        if (family) family->on_access(fiber, p, static_cast<unsigned>(bytes), return_address);
    return;
  }
  // In the widest pieces that fit everywhere, as nvcc's copies would be: of 12 bytes, three times 4, whatever the address.
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  unsigned size = 16;
  while (bytes % size || address % size) size /= 2;
  for (std::size_t done = 0; done < bytes; done += size)
    observe(fiber, static_cast<const char*>(p) + done, size, op, false, return_address);
}

void Block::record(Fiber& fiber, Family::Record& what, unsigned size, Pc pc) {
  if (recorder_.log.append(fiber.lane, reinterpret_cast<std::uintptr_t>(&what), size, Op::kRecord, false, false, pc,
                           *std::exchange(fiber.path, fiber.path->restart)))
    waiting_.log_is_full(fiber, pc);
}

void Block::on_request(unsigned w, const Request& request) {
  if (request.op == Op::kRecord)
    return reinterpret_cast<const Family::Record*>(request.addresses[0])->family->on_request(w, request);
  const Options& options = work_.options();
  if (is_store(request.op)) activity_.note_change();
  if (!request.same_block) updates_.pass_branch(w, request.lanes);
  std::uint64_t sectors[64];
  unsigned sector_count = 0;
  if (events) [[unlikely]]
    record_request(w, request);
  const bool visits_others = request.shared && cluster().size() > 1 && visits_.note(w, request);
  if (options.count && !visits_others) {
    counters_.count(request, sectors, &sector_count);
    if (overlap_.counts()) [[unlikely]]
      overlap_.note(w, request);
  }
  if (options.on_store && !request.shared && writes(request.op))
    for (unsigned i = 0; i < request.count; ++i)
      options.on_store(work_.number, reinterpret_cast<const void*>(request.addresses[i]));
  if (options.initcheck) initialised_.check(w, request);
  if (options.racecheck) {
    restricts_.check(w, request);
    dependence_.check(w, request);
    races_.check(w, request, atomics_.comparing_lanes(w, request));
  }
  if (options.l2_model && options.count && !request.shared) l2_trace_.add(request, sectors, sector_count, true);
}

// ------------------------------------------------------------------------------------------------------------ barriers
// Time passes, so what was done before it has to be seen now.
void Block::pass_warp_barrier(unsigned w, unsigned mask) {
  recorder_.drain(w, 0);
  clock_.warp_barrier(w, mask);
}

void Block::pass_barrier() {
  recorder_.drain(scheduler_.running().warp, 0);  // the other warps' accesses were looked at when they stopped
  if (reporter_.confirm()) scheduler_.leave(Scheduler::Stop::kFailed);
  atomics_.pass_barrier();
  updates_.pass_barrier();
  branched_updates_.pass_barrier();
  clock_.barrier();
  activity_.note_change();
  if (work_.options().l2_model) l2_trace_.mark_barrier();
}

}  // namespace interpreter

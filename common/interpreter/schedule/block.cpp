#include "common/interpreter/schedule/block.h"

#include <algorithm>
#include <exception>

namespace interpreter {

thread_local constinit Block* current_block = nullptr;

// ----------------------------------------------------------------------------------------------------- begin, run, end
void Block::begin(LaunchState& launch, std::uint64_t index, Cluster& cluster, unsigned rank) {
  const unsigned threads = launch.threads;
  const std::size_t dynamic_bytes = launch.launch.dynamic_shared_bytes;
  work_ = {&launch, index, unflatten(index, launch.launch.grid), &cluster, rank};
  stacks.prepare(threads, launch.options.stack_bytes);
  shared.begin(dynamic_bytes);

  scheduler.begin(stacks, recorder.begin(launch.launch.kernel), &Block::run_fiber);
  meetings.begin();
  reporter.begin();

  clock.begin(launch.number, index, threads, cluster.readers);
  if (launch.options.racecheck) shadows.begin(dynamic_bytes);
  indices.begin(threads);
  initialised.begin(threads);
  updates.begin(threads);
  branched_updates.begin(threads);
  races.begin();
  async_proxy.begin(threads);
  dependence.begin(threads);
  visits.begin();
  side_stack.begin();
  worlds.begin(threads);
  collective_worlds.begin();

  events = cluster.events ? cluster.events.get() : launch.events.get();
  atomics.begin(threads);
  mma_of_warp.assign((threads + 31) / 32, 0);
  overlap.begin(threads);
  for (const auto& family : families_)
    if (family) family->begin(threads);
  l2_trace.begin(launch.options.l2_model ? launch.gpu.l1_per_sm - std::min(launch.gpu.l1_per_sm / 2, dynamic_bytes) : 0);
}

void Block::run(Yield yield, void* yield_context) {
  cluster().wait_for_turn(work_.rank);
  current_block = this;
  waiting.begin();
  if (!work_.has_failed()) run_to_end(yield, yield_context);
  current_block = nullptr;
  cluster().leave(work_.rank);
}

void Block::run_to_end(Yield yield, void* yield_context) {
  if (setjmp(after_signal_) != 0) {  // a signal handler gave up the block
    reporter.report(what_signal_says());
    return;
  }
  Scheduler::Stop stop;
  const auto any_block = [&](auto&& is) {
    return std::any_of(cluster().blocks().begin(), cluster().blocks().end(),
                       [&](Block* block) { return !cluster().is_over(block->work_.rank) && is(*block); });
  };
  while ((stop = scheduler.run()) == Scheduler::Stop::kNobodyReady) {
    if (cluster().pass_turn(work_.rank)) {
      if (work_.has_failed()) return;
      continue;
    }
    // Barriers that can complete have completed; only polling threads could still bring something new.
    if (any_block([](Block& block) { return block.wake_somebody(); })) {
      if (work_.has_failed()) return;
      continue;
    }
    if (!any_block([](Block& block) { return block.scheduler.anybody_polls(); })) return report_deadlock();
    waiting.look_at_the_time();
    // Who runs for long may wait in a way that does not show.
    if (any_block([](Block& block) { return block.waiting.has_polled() || block.waiting.runs_for_long(); })) yield(yield_context);
    if (work_.has_failed()) return;
    for (Block* const block : cluster().blocks())
      if (!cluster().is_over(block->work_.rank)) block->scheduler.wake_polling();
  }
  if (stop == Scheduler::Stop::kFinished) reporter.confirm();
}

void Block::run_fiber(Scheduler::Transfer from) {
  Block& block = *current_block;
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
  recorder.log.read_stored(self.lane);  // at once: see Stored
  worlds.exit(self);
  before_waiting(self);
  for (const auto& family : families_)
    if (family) family->on_exit(self);
  visits.on_exit(self);
  activity.note_progress();  // the next one has its own time, even if none of them ever accesses memory
  scheduler.retire(self);
  meetings.leave(self);
  if (scheduler.live() == 0) {
    recorder.drain(self.warp, 0);
    meetings.look_back();
    work_.launch->steps += 1;
    activity.note_change();
    scheduler.leave(Scheduler::Stop::kFinished);
  }
  scheduler.leave_for_next(self);
}

void Block::wait_in_family(Fiber& fiber, const char* instruction, Pc pc) {
  scheduler.warp(fiber).rounds = 0;
  fiber.state = Fiber::State::kInFamily;
  fiber.waits_in = instruction, fiber.waits_at_pc = pc;
  scheduler.park(fiber);
  scheduler.switch_away(fiber);
}

void Block::wake_in_family(Fiber& fiber) {
  fiber.state = Fiber::State::kRunning;
  scheduler.wake(fiber.warp, 1u << fiber.lane);
}

std::string Block::what_is_awaited(const Fiber& fiber) const {
  for (const auto& family : families_)
    if (family)
      if (std::string what = family->what_is_awaited(fiber); !what.empty()) return what;
  return "";
}

bool Block::wake_somebody() {
  return std::any_of(families_.begin(), families_.end(), [](const auto& family) { return family && family->wake_somebody(); });
}

void Block::name_who_waits(Diagnosis& d, const Fiber& f) const {
  const Location where = Meetings::place_of(f);
  d.file = where.file, d.line = where.line, d.called_at = where.called_at, d.called_in = where.called_in;
  d.block = work_.index, d.thread = f.thread, d.warp = static_cast<int>(f.warp), d.lane = static_cast<int>(f.lane);
}

// In the report of a deadlock, who waits for what nobody who waits could bring; else the first who waits in a family, unless one
// was found before; one of which some arrivals are missing, not all, goes before others. @return whether it is the first of these
bool Block::name_what_is_missing(Diagnosis& d, bool& found, bool& likely) const {
  for (const Fiber& f : scheduler.fibers()) {
    if (f.state != Fiber::State::kInFamily) continue;
    for (const auto& family : families_) {
      if (!family) continue;
      const Family::Missing missing = family->what_is_missing(f);
      if (missing.expected.empty() || (found && !missing.is_the_reason && (likely || !missing.is_likely))) continue;
      if (Meetings::place_of(f).line || !d.line) name_who_waits(d, f);  // compilers leave some calls without a line
      d.variable = missing.variable, d.expected = missing.expected;
      if (missing.is_the_reason) return true;
      found = true, likely |= missing.is_likely;
    }
  }
  return false;
}

void Block::report_deadlock() {
  Diagnosis d;
  d.check = Check::kSynccheck;
  d.what = "deadlock: " + cluster().who_waits_where();
  d.expected = "every thread of a barrier, and every lane of a collective's mask, arrives";
  d.kernel = work_.launch->kernel_name();
  d.block = work_.index;
  bool named = false, found = false, likely = false;
  for (const Block* const block : cluster().blocks())
    for (const Fiber& f : block->scheduler.fibers()) {
      if (f.state == Fiber::State::kRunning || f.state == Fiber::State::kExited || named) continue;
      block->name_who_waits(d, f);
      named = f.state != Fiber::State::kAtBarrier;  // the narrower place is the more telling one
    }
  for (const Block* const block : cluster().blocks())
    if (block->name_what_is_missing(d, found, likely)) break;
  reporter.report(std::move(d));
}

void Block::fail_from_signal(Check check, const char* what, const char* expected, Pc pc) {
  signal_ = {check, what, expected, pc, std::exchange(current_fiber, nullptr)};
  std::longjmp(after_signal_, 1);
}

Diagnosis Block::what_signal_says() const {
  const auto& [check, what, expected, pc, fiber] = signal_;
  if (worlds.in_other()) return worlds.stopped(*fiber);
  // An endless loop may be interrupted anywhere, even in what it calls of the interpreter.
  const Pc where = check == Check::kEndless && fiber->path->pc ? fiber->path->pc : pc + 1;
  return reporter.diagnose(check, what, expected, fiber, user_location(where));
}

// ------------------------------------------------------------------------------------------------------------ accesses
// @return whether the access is none of the first world
bool Block::observe_special(Fiber& fiber, const void* p, unsigned size, Op op, bool strong, const void* return_address) {
  if (worlds.observe(fiber, p, size, op, strong, to_pc(return_address))) return true;
  indices.check(fiber, p);
  for (const auto& family : families_)
    if (family) family->on_access(fiber, p, size, return_address);
  if (fiber.watched) waiting.follow(fiber, p, to_pc(return_address), strong);
  return false;
}

// A load of memory that no hook has told of a write to. @return whether it is none of the first world
bool Block::observe_unwritten(Fiber& fiber, std::uintptr_t address, unsigned size, bool plain, Pc pc) {
  initialised.find_unseen_writes(address, size);
  return plain && work_.options().initcheck && initialised.is_tried(address, size) &&
         worlds.try_unwritten(fiber, address, size, pc);
}

void Block::check_what_was_left(Fiber& fiber) { indices.check(fiber, nullptr); }

void Block::observe_range(Fiber& fiber, const void* p, std::size_t bytes, Op op, const void* return_address) {
  if (stacks.contains(fiber.linear, p)) {
    if (fiber.special && !worlds.in_other())
      for (const auto& family : families_)
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
  if (recorder.log.append(fiber.lane, reinterpret_cast<std::uintptr_t>(&what), size, Op::kRecord, false, false, pc,
                          *std::exchange(fiber.path, fiber.path->restart)))
    waiting.log_is_full(fiber, pc);
}

void Block::on_request(unsigned w, const Request& request) {
  if (request.op == Op::kRecord)
    return reinterpret_cast<const Family::Record*>(request.addresses[0])->family->on_request(w, request);
  const Options& options = work_.options();
  if (is_store(request.op)) activity.note_change();
  if (!request.same_block) updates.pass_branch(w, request.lanes);
  std::uint64_t sectors[64];
  unsigned sector_count = 0;
  if (events) [[unlikely]]
    record_request(w, request);
  const bool visits_others = request.shared && cluster().size() > 1 && visits.note(w, request);
  if (options.count && !visits_others) {
    counters.count(request, sectors, &sector_count);
    if (overlap.counts()) [[unlikely]]
      overlap.note(w, request);
  }
  if (options.on_store && !request.shared && writes(request.op))
    for (unsigned i = 0; i < request.count; ++i)
      options.on_store(work_.number, reinterpret_cast<const void*>(request.addresses[i]));
  if (options.initcheck) initialised.check(w, request);
  if (options.racecheck) {
    restricts.check(w, request);
    dependence.check(w, request);
    races.check(w, request, atomics.comparing_lanes(w, request));
  }
  if (options.l2_model && options.count && !request.shared) l2_trace.add(request, sectors, sector_count, true);
}

// ------------------------------------------------------------------------------------------------------------ barriers
// Time passes, so what was done before it has to be seen now.
void Block::pass_warp_barrier(unsigned w, unsigned mask) {
  recorder.drain(w, 0);
  clock.warp_barrier(w, mask);
}

void Block::pass_barrier() {
  recorder.drain(scheduler.running().warp, 0);  // the other warps' accesses were looked at when they stopped
  if (reporter.confirm()) scheduler.leave(Scheduler::Stop::kFailed);
  atomics.pass_barrier();
  updates.pass_barrier();
  branched_updates.pass_barrier();
  clock.barrier();
  activity.note_change();
  if (work_.options().l2_model) l2_trace.mark_barrier();
}

}  // namespace interpreter

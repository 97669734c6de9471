// mbarriers: barriers in shared memory that count arrivals and bytes (PTX ISA, "Parallel Synchronization and Communication
// Instructions: mbarrier").
#include "common/interpreter/instructions/mbarriers.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/interpreter/checks/races.h"
#include "common/interpreter/checks/visits.h"
#include "common/interpreter/count/under_way.h"
#include "common/interpreter/instructions/entered.h"
#include "common/interpreter/instructions/mbarrier_family.h"
#include "common/interpreter/meetings/waiting.h"
#include "common/interpreter/observe/recorder.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/schedule/activity.h"
#include "common/interpreter/schedule/cluster.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {
namespace {

constexpr std::int64_t kMostBytes = (1 << 20) - 1;  // of tx-count
constexpr unsigned kMostArrivals = (1 << 20) - 1;
// What an mbarrier's memory holds: opaque, but whoever else writes there changes it.
constexpr std::uint64_t kContent = 0x7265697272616270;
// How often a try_wait gives up while nobody changes anything: its thread may do something else then.
constexpr unsigned kMostTries = 64;

// What the thread did before belongs to the time before. Who has done nothing since a barrier goes on at once: else the others
// would run ahead, and what they do then be counted apart.
void settle(BlockContext& block, Fiber& fiber) {
  if (block.recorder.log.count(fiber.lane)) block.scheduler.rendezvous(fiber);
}

}  // namespace

void Mbarriers::begin(unsigned threads) {
  barriers_.clear();
  waited_.assign(threads, {});
  waiters_.clear();
  given_up_.clear();
  made_ = 0, copies_ = 0, seen_ = 0, told_ = 0;
  issued_ = 0, landed_.assign(threads, 0);
}

void Mbarriers::fail(const AsyncProxy::Instruction& by, std::uintptr_t address, const std::string& what,
                     const std::string& expected) {
  const void* const p = reinterpret_cast<const void*>(address);
  current_block->async_proxy.fail(by, Check::kSynccheck, p,
                                  std::string(by.name) + " on " + current_block->reporter.describe(p) + what, expected);
}

// ----------------------------------------------------------------------------------------------------------- init, inval
void Mbarriers::init(const AsyncProxy::Instruction& by, std::uintptr_t address, unsigned arrivals, bool over_another) {
  settle(block_, by.fiber);
  block_.async_proxy.require_shared(by, address, 8, 8);
  if (arrivals == 0 || arrivals > kMostArrivals)
    fail(by, address, " for " + std::to_string(arrivals) + " arrivals", "a phase has between 1 and 2^20 - 1 arrivals");
  if (const auto old = barriers_.find(address); old != barriers_.end() && !(over_another && !in_use(address, old->second)))
    fail(
        by, address,
        std::string(in_use(address, old->second) ? ", which is in use: its phase is under way" : ", which is an mbarrier already") +
            ", initialised at " + at(user_location(old->second.initialised.pc)),
        "an mbarrier is initialised once, before its use; mbarrier.inval comes before it becomes something else");
  note_access(by, address, true, false);
  block_.shared.part_of(address).set_initialised(address, 8, true);
  std::memcpy(reinterpret_cast<void*>(address), &kContent, sizeof kContent);
  Mbarrier& barrier = barriers_[address] = {};
  barrier.number = made_++ & 1023;
  raise_to(most_under_way().mbarriers, made_);
  barrier.arrivals = barrier.pending = arrivals;
  barrier.initialised = {block_.clock.id(by.fiber.linear), block_.clock.time(), by.pc};
  block_.waiting.note_change(by.fiber);
  if (block_.events) [[unlikely]]
    block_.events->add_name(block_.shared.instruction_address(address),
                            block_.reporter.describe(reinterpret_cast<const void*>(address)));
  block_.note(by.fiber, EventKind::kMbarrierInit, by.pc, block_.shared.instruction_address(address), arrivals);
}

void Mbarriers::invalidate(const AsyncProxy::Instruction& by, std::uintptr_t address) {
  settle(block_, by.fiber);
  if (in_use(address, require(by, address)))
    fail(by, address, ", which is in use: its phase is under way",
         "everybody has waited for the last phase, and then at a barrier");
  note_access(by, address, true, false);
  barriers_.erase(address);
  block_.shared.part_of(address).set_initialised(address, 8, false);
  std::memset(reinterpret_cast<void*>(address), 0xff, sizeof kContent);
}

bool Mbarriers::in_use(std::uintptr_t address, const Mbarrier& barrier) const {
  return somebody_waits_at(address) || !barrier.copies.empty() || !barrier.own_copies.empty() || barrier.bytes != 0 ||
         barrier.pending != barrier.arrivals;
}

// To racecheck, what an mbarrier's memory becomes is a plain write, and its use an atomic.
void Mbarriers::note_access(const AsyncProxy::Instruction& by, std::uintptr_t address, bool write, bool atomic) {
  if (!block_.work.options().racecheck) return;
  const WarpAccess access{.warp = by.fiber.warp, .pc = by.pc, .size = 8, .write = write, .atomic = atomic, .shared = true};
  BlockContext& running = *current_block;
  const Race race = record_access(block_.shadows.of_shared(address), running.clock, access, address, 1u << by.fiber.lane);
  if (race.earlier.thread) running.races.report(race, by.fiber.warp, access);
}

Mbarriers::Mbarrier& Mbarriers::require(const AsyncProxy::Instruction& by, std::uintptr_t address) {
  BlockContext& running = *current_block;
  const char* const barrier_between = &running == &block_ ? "__syncthreads()" : "a cluster barrier";
  const auto found = barriers_.find(address);
  if (found == barriers_.end()) {
    if (&running == &block_) block_.async_proxy.require_shared(by, address, 8, 8);
    fail(by, address, ", where no mbarrier has been initialised",
         std::string("mbarrier.init by one thread, then ") + barrier_between + ", comes first");
  }
  if (std::memcmp(reinterpret_cast<const void*>(address), &kContent, sizeof kContent) != 0) {
    Stamp write;  // of a part of it, perhaps
    for (const std::uintptr_t half : {address, address + 4}) {
      if (!block_.work.options().racecheck) break;
      const Stamp last = last_generic_write(block_.shadows.of_shared(half), block_.clock, half, 4);
      if (last.pc != found->second.initialised.pc) write = last;
    }
    const bool known = write.thread && !(write.pc & kAtomicPc);
    fail(by, address,
         std::string(", whose memory has been overwritten") +
             (known ? " by " + block_.reporter.name_of(write, block_.clock) + " at " + at(user_location(write.pc)) : ""),
         "an mbarrier's 8 bytes are its own from mbarrier.init to mbarrier.inval");
  }
  const Stamp& init = found->second.initialised;
  if (block_.work.options().racecheck && !running.clock.knows(by.fiber.linear, init)) {
    const void* const p = reinterpret_cast<const void*>(address);
    running.async_proxy.fail(by, Check::kRacecheck, p,
                             "race on " + running.reporter.describe(p) + ": initialised by " +
                                 running.reporter.name_of(init.thread, running.clock) + " at " + at(user_location(init.pc)) +
                                 ", then used by " + by.name + " of this thread, with no order between them",
                             std::string(barrier_between) + " between mbarrier.init and the first use");
  }
  return found->second;
}

// ---------------------------------------------------------------------------------------------------------- arrive, expect
void Mbarriers::require_tx_in_range(const AsyncProxy::Instruction& by, std::uintptr_t address, const Mbarrier& barrier) {
  if (barrier.bytes <= kMostBytes && barrier.bytes >= -kMostBytes) return;
  fail(by, address, ": " + std::to_string(barrier.bytes) + " bytes are to come in one phase", "a phase has up to 2^20 - 1 bytes");
}

void Mbarriers::expect(const AsyncProxy::Instruction& by, std::uintptr_t address, unsigned bytes) {
  BlockContext& running = *current_block;
  settle(running, by.fiber);
  if (&running != &block_) visit(by, address);
  Mbarrier& barrier = require(by, address);
  note_access(by, address, true, true);
  barrier.bytes += bytes;
  require_tx_in_range(by, address, barrier);
  running.waiting.note_change(by.fiber);
  running.note(by.fiber, EventKind::kMbarrierExpect, by.pc, block_.shared.instruction_address(address), 0, bytes, block_.work.rank);
}

// A thread of another block of the cluster uses a barrier of this one.
void Mbarriers::visit(const AsyncProxy::Instruction& by, std::uintptr_t address) {
  BlockContext& running = *current_block;
  running.visits.require_resident(by.fiber, block_, reinterpret_cast<const void*>(address), "used", by.pc);
  if (block_.work.options().racecheck) running.visits.note(by.fiber, block_, address, by.pc);
}

std::uint64_t Mbarriers::arrive(const AsyncProxy::Instruction& by, std::uintptr_t address, unsigned count, unsigned bytes,
                                bool relaxed) {
  settle(block_, by.fiber);
  Mbarrier& barrier = require(by, address);
  const std::uint64_t phase = barrier.phase;
  arrive(by, address, barrier, count, bytes, relaxed ? block_.clock.fenced(by.fiber.linear, false) : nullptr);
  return phase;
}

void Mbarriers::arrive_and_drop(const AsyncProxy::Instruction& by, std::uintptr_t address) {
  block_.scheduler.rendezvous(by.fiber);
  Mbarrier& barrier = require(by, address);
  if (barrier.arrivals > 0) --barrier.arrivals;
  arrive(by, address, barrier, 1, 0, nullptr);
}

// What a release.cta or an acquire.cta orders ends with the block (PTX ISA, "Memory Consistency Model": morally strong). But who
// arrives has read what it had to read, and knows what has landed.
void Mbarriers::arrive_remotely(const AsyncProxy::Instruction& by, std::uintptr_t address, const Arrival& how) {
  BlockContext& running = *current_block;
  running.scheduler.rendezvous(by.fiber);
  if (&running != &block_) visit(by, address);
  Mbarrier& barrier = require(by, address);
  KnowledgePtr known;
  if (block_.work.options().racecheck && &running != &block_) {
    known = how.relaxed ? running.clock.fenced(by.fiber.linear, true) : running.clock.release(by.fiber.linear);
    if (how.release_cluster || how.relaxed) barrier.cluster_arrived = merge(barrier.cluster_arrived, known);
    known = without_writes(known);
  }
  arrive(by, address, barrier, how.count, how.expected_bytes, known);
}

// @param known what others learn by that; null: all that the thread knows
void Mbarriers::arrive(const AsyncProxy::Instruction& by, std::uintptr_t address, Mbarrier& barrier, unsigned count, unsigned bytes,
                       const KnowledgePtr& known) {
  BlockContext& running = *current_block;
  if (count > barrier.pending) {
    const Copy* const copy = !barrier.own_copies.empty() ? &barrier.own_copies.front()
                             : !barrier.copies.empty()   ? &barrier.copies.front()
                                                         : nullptr;
    fail(by, address,
         ": " + std::string(count == 1 ? "one arrival" : std::to_string(count) + " arrivals") + " more, but " +
             (barrier.pending ? "only " + std::to_string(barrier.pending) + " of the phase's " : "all of the phase's ") +
             std::to_string(barrier.arrivals) + (barrier.pending ? " are still to come" : " have come") +
             (copy && !barrier.pending ? std::string(", and it ends when the ") + copy->what + " issued at " +
                                             at(user_location(copy->pc)) + " has landed"
                                       : ""),
         "as many arrivals in each phase as mbarrier.init says; who arrives for the next one has waited for this one");
  }
  note_access(by, address, true, true);
  barrier.bytes += bytes;
  require_tx_in_range(by, address, barrier);
  barrier.pending -= count;
  if (&running == &block_) barrier.landed = std::max(barrier.landed, landed_[by.fiber.linear]);
  if (block_.work.options().racecheck)
    barrier.arrived = merge(barrier.arrived, known ? known : running.clock.release(by.fiber.linear));
  running.waiting.note_change(by.fiber);
  if (somebody_waits_at(address) || (barrier.bytes == 0 && barrier.own_copies.empty())) advance(address, barrier);
  running.note(by.fiber, EventKind::kMbarrierArrive, by.pc, block_.shared.instruction_address(address), count, bytes,
               block_.work.rank);
}

void Mbarriers::add_copy(const AsyncProxy::Instruction& by, std::uintptr_t address, unsigned bytes,
                         std::function<void(const Stamp&)> land) {
  Mbarrier& barrier = require(by, address);
  BlockContext& running = *current_block;
  if (block_.work.options().racecheck && !by.generic &&
      !running.async_proxy.fenced_mbarrier(by.fiber.linear, barrier.initialised)) {
    const void* const p = reinterpret_cast<const void*>(address);
    running.async_proxy.tell(by, Check::kRacecheck, p,
                             "race on " + running.reporter.describe(p) + ": initialised by " +
                                 running.reporter.name_of(barrier.initialised.thread, running.clock) + " at " +
                                 at(user_location(barrier.initialised.pc)) + ", then used by " + by.name +
                                 " through the async proxy, with no fence.mbarrier_init between",
                             "fence.mbarrier_init by the thread that initialises, then " +
                                 std::string(&running == &block_ ? "__syncthreads()" : "a cluster barrier"),
                             barrier.initialised.pc);
  }
  // Not an access of the thread: who has waited for the phase knows that its copies have used the barrier, but none of what the
  // issuing thread did after its last arrival. Whoever overwrites the barrier meanwhile is found by in_use() and require().
  barrier.copies.push_back({bytes, by.what_writes(), by.pc, &running, &by.fiber, ++issued_, std::move(land)});
  raise_to(most_under_way().copies, ++copies_);
  if (const std::uint64_t landed = &running == &block_ ? landed_[by.fiber.linear] : 0)
    lower_to(each_under_way().fewest_copies, issued_ - landed);
  running.waiting.note_change(by.fiber);
  if (somebody_waits_at(address)) advance(address, barrier);
}

// Such copies add an arrival to the phase when they begin, and take it away when they have landed (PTX ISA,
// "cp.async.mbarrier.arrive"): the others are as many as ever.
void Mbarriers::add_own_copies(const AsyncProxy::Instruction& by, std::uintptr_t address, std::function<void(const Stamp&)> land) {
  Mbarrier& barrier = require(by, address);
  note_access(by, address, true, true);
  barrier.own_copies.push_back({0, "cp.async", by.pc, &block_, &by.fiber, 0, std::move(land)});
  block_.waiting.note_change(by.fiber);
}

// Lets bytes come, as far as the phase needs them, and completes it if nothing is missing.
void Mbarriers::advance(std::uintptr_t address, Mbarrier& barrier) {
  if (barrier.pending || barrier.is_over) return;
  for (const Copy& copy : std::exchange(barrier.own_copies, {})) {
    copy.land({block_.clock.engine(barrier.number), block_.clock.time(), copy.pc});
    if (block_.work.options().racecheck) barrier.arrived = block_.clock.land(barrier.number, barrier.arrived);
  }
  while (barrier.bytes != 0 && !barrier.copies.empty()) {
    const Copy copy = std::move(barrier.copies.front());
    barrier.copies.pop_front();
    --copies_;
    barrier.bytes -= copy.bytes;
    barrier.landed = std::max(barrier.landed, copy.number);
    copy.land({block_.clock.engine(barrier.number), block_.clock.time(), copy.pc | kEnginePc});
    if (block_.work.options().racecheck) barrier.arrived = block_.clock.land(barrier.number, barrier.arrived);
  }
  if (barrier.bytes != 0) return;
  if (!barrier.copies.empty()) fail_unexpected(address, barrier);
  ++barrier.phase;
  barrier.pending = barrier.arrivals;
  barrier.is_over = barrier.arrivals == 0;
  barrier.looked_at = false;
  barrier.completed = std::exchange(barrier.arrived, nullptr);
  barrier.completed_landed = std::exchange(barrier.landed, 0);
  barrier.cluster_completed = std::exchange(barrier.cluster_arrived, nullptr);
  block_.activity.note_change();
  for (std::size_t i = 0; i < waiters_.size();) {
    Waiter& waiter = *waiters_[i];
    if (waiter.address != address) {
      ++i;
      continue;
    }
    waiter.completed = true, waiter.known = barrier.completed, waiter.landed = barrier.completed_landed;
    if (waiter.sees != Sees::kBlock) waiter.known = merge(barrier.completed, barrier.cluster_completed);
    waiters_.erase(waiters_.begin() + static_cast<std::ptrdiff_t>(i));
    block_.scheduler.wake_in_family(block_.scheduler.fibers()[waiter.thread]);
  }
}

// Its bytes may come before the phase ends, or after that: nobody can tell which phase they will count for.
void Mbarriers::fail_unexpected(std::uintptr_t address, const Mbarrier& barrier) {
  const void* const p = reinterpret_cast<const void*>(address);
  const Copy& copy = barrier.copies.front();
  copy.issuer->reporter.fail(Check::kSynccheck,
                             "phase " + std::to_string(barrier.phase) + " of " + block_.reporter.describe(p) +
                                 " is complete, but a " + copy.what +
                                 " that completes there is still under way: nobody has expected its " + std::to_string(copy.bytes) +
                                 " bytes in this phase",
                             "expect_tx, before the phase's last arrival, with the bytes of all that is issued in the phase",
                             copy.thread, user_location(copy.pc), block_.reporter.variable_at(p));
}

// ------------------------------------------------------------------------------------------------------------------- wait
bool Mbarriers::somebody_waits_at(std::uintptr_t address) const {
  return std::any_of(waiters_.begin(), waiters_.end(), [&](const Waiter* waiter) { return waiter->address == address; });
}

void Mbarriers::acquire(const Fiber& fiber, const KnowledgePtr& known, Sees sees) {
  if (!known || !block_.work.options().racecheck) return;
  if (sees == Sees::kNothing)
    block_.clock.acquire_at_fence(fiber.linear, known);
  else
    block_.clock.acquire(fiber.linear, known);
}

bool Mbarriers::wait(const AsyncProxy::Instruction& by, std::uintptr_t address, unsigned parity, bool blocking, Sees sees) {
  block_.activity.note_progress();
  block_.scheduler.rendezvous(by.fiber);
  Mbarrier& barrier = require(by, address);
  if (parity > 1) fail(by, address, " for parity " + std::to_string(parity), "parity is that of the phase's number: 0 or 1");
  note_access(by, address, false, true);
  const auto learn = [&](std::uint64_t landed) {
    if (current_block == &block_) landed_[by.fiber.linear] = std::max(landed_[by.fiber.linear], landed);
  };
  // Who looks once, and goes on whatever he sees, is to see that copies take their time.
  const bool too_early = !blocking && !barrier.own_copies.empty() && !std::exchange(barrier.looked_at, true);
  const bool is_incomplete = (barrier.phase & 1) == parity;
  // try_wait gives up after a time that only the GPU knows (PTX ISA, "mbarrier.try_wait"). So each one of a thread does so once:
  // who does not look at the result is to be found.
  if (is_incomplete && blocking && given_up_.emplace(by.fiber.linear, by.pc).second) return false;
  if (is_incomplete && !too_early) advance(address, barrier);
  if ((barrier.phase & 1) != parity) {
    acquire(by.fiber, sees == Sees::kBlock ? barrier.completed : merge(barrier.completed, barrier.cluster_completed), sees);
    waited_[by.fiber.linear] = {address, parity, barrier.phase, by.pc};
    learn(barrier.completed_landed);
    block_.note(by.fiber, EventKind::kMbarrierWait, by.pc, block_.shared.instruction_address(address), parity, barrier.phase - 1);
    return true;
  }
  const void* const p = reinterpret_cast<const void*>(address);
  if (by.fiber.watched) block_.waiting.follow(by.fiber, p, by.pc, true);
  if (!blocking) {
    block_.waiting.poll(by.fiber, p, by.pc);
    return false;
  }
  const std::uint64_t awaited = barrier.phase;
  Waiter waiter{by.fiber.linear, address, sees};
  waiters_.push_back(&waiter);
  block_.scheduler.wait_in_family(by.fiber, by.name, by.pc);
  if (waiter.completed) {
    acquire(by.fiber, waiter.known, sees);
    waited_[by.fiber.linear] = {address, parity, awaited + 1, by.pc};
    learn(waiter.landed);
    block_.note(by.fiber, EventKind::kMbarrierWait, by.pc, block_.shared.instruction_address(address), parity, awaited);
  }
  return waiter.completed;
}

std::string Mbarriers::last_wait_of(const Fiber& fiber) const {
  const Waited& last = waited_[fiber.linear];
  if (!last.address) return "";
  return "; this thread's last wait, at " + at(user_location(last.pc)) + ", was for parity " + std::to_string(last.parity) +
         " of " + block_.reporter.describe(reinterpret_cast<const void*>(last.address)) +
         (last.phase ? ": that of phase " + std::to_string(last.phase - 1) : ", which counts as over before the first phase");
}

// try_wait gives up after a time, and its thread may do something else. But if nothing has changed since the last time, it will not
// find anything new either.
bool Mbarriers::wake_somebody() {
  if (waiters_.empty()) return false;
  const std::uint64_t changes = block_.cluster().changes();
  if (std::exchange(seen_, changes) != changes) told_ = 0;
  if (++told_ > kMostTries) return false;
  for (const Waiter* waiter : std::exchange(waiters_, {}))
    block_.scheduler.wake_in_family(block_.scheduler.fibers()[waiter->thread]);
  return true;
}

std::uintptr_t Mbarriers::awaited_by(const Fiber& fiber) const {
  for (const Waiter* waiter : waiters_)
    if (waiter->thread == fiber.linear) return waiter->address;
  const auto polled = reinterpret_cast<std::uintptr_t>(fiber.polled);
  return fiber.state == Fiber::State::kRunning && barriers_.contains(polled) ? polled : 0;
}

std::string Mbarriers::what_is_awaited(const Fiber& fiber) const {
  if (const std::uintptr_t address = awaited_by(fiber)) {
    const Mbarrier& barrier = barriers_.at(address);
    return " for phase " + std::to_string(barrier.phase) + " of " +
           block_.reporter.describe(reinterpret_cast<const void*>(address)) +
           (barrier.bytes < 0 ? ", which got " + std::to_string(-barrier.bytes) + " bytes more than expected and lacks "
                              : ", which lacks " + std::to_string(barrier.bytes) + " bytes and ") +
           std::to_string(barrier.pending) + " of " + std::to_string(barrier.arrivals) + " arrivals";
  }
  return "";
}

// Somebody waits for arrivals of which some have come, and others have not.
bool Mbarriers::lacks_some_arrivals() const {
  return std::any_of(waiters_.begin(), waiters_.end(), [&](const Waiter* waiter) {
    const Mbarrier& barrier = barriers_.at(waiter->address);
    return barrier.pending != 0 && barrier.pending != barrier.arrivals;
  });
}

// What is missing besides other threads is nobody's who waits elsewhere. In a cluster, bytes come from other blocks too, whose
// threads may wait for arrivals.
Family::Missing Mbarriers::what_is_missing(const Fiber& fiber) const {
  if (const std::uintptr_t address = awaited_by(fiber)) {
    const Mbarrier& barrier = barriers_.at(address);
    const std::vector<BlockContext*>& blocks = block_.cluster().blocks();
    const bool bytes_alone = std::none_of(blocks.begin(), blocks.end(), [&](BlockContext* block) {
      return blocks.size() > 1 && block->family<Mbarriers>().lacks_some_arrivals();
    });
    return {block_.reporter.variable_at(reinterpret_cast<const void*>(address)), barrier.pending == 0 && bytes_alone,
            barrier.pending == 0
                ? "expect_tx says as many bytes as the phase's copies have: of a box, those outside of the tensor too"
                : std::string("each phase gets as many arrivals as mbarrier.init says, and who waits names the right parity") +
                      (barrier.phase == 0 && barrier.pending == barrier.arrivals
                           ? "; before the first phase, parity 1 counts as over, and who waits for that goes on at once"
                           : ""),
            // Some have arrived, others never come: a count that is wrong, more often than a barrier that nobody gets to.
            barrier.pending != 0 && barrier.pending != barrier.arrivals};
  }
  return {};
}

// Shared memory is somebody else's after the last thread.
void Mbarriers::on_exit(Fiber&) {
  if (block_.scheduler.live() > 1 ||
      std::all_of(barriers_.begin(), barriers_.end(), [](auto& b) { return b.second.copies.empty(); }))
    return;
  if (block_.reporter.confirm()) block_.scheduler.leave(Scheduler::Stop::kFailed);  // it may be the reason
  for (const auto& [address, barrier] : barriers_) {
    if (barrier.copies.empty()) continue;
    const Copy& copy = barrier.copies.front();
    copy.issuer->reporter.fail(Check::kRacecheck,
                               std::string("the block ends while a ") + copy.what +
                                   " to its shared memory is under way: nobody has waited for phase " +
                                   std::to_string(barrier.phase) + " of " +
                                   block_.reporter.describe(reinterpret_cast<const void*>(address)) + ", where it completes",
                               "each copy that is issued is waited for before the block ends", copy.thread, user_location(copy.pc),
                               block_.reporter.variable_at(reinterpret_cast<const void*>(address)));
  }
}

// ------------------------------------------------------------------------------------------------------ what a kernel calls
namespace {

std::uintptr_t address_of(const std::uint64_t* barrier) { return reinterpret_cast<std::uintptr_t>(barrier); }

// The counterpart of `barrier` in the block `rank` of the cluster, and what that block has of mbarriers.
std::pair<Mbarriers&, std::uintptr_t> there(const Entered& in, const AsyncProxy::Instruction& by, const std::uint64_t* barrier,
                                            unsigned rank) {
  const std::uintptr_t address = in.block.async_proxy.counterpart(by, address_of(barrier), rank);
  return {in.block.cluster().block(rank).family<Mbarriers>(), address};
}

}  // namespace

void mbarrier_init(std::uint64_t* barrier, unsigned arrivals) {
  const Entered in;
  const Pc pc = to_pc(__builtin_return_address(0));
  in.block.family<Mbarriers>().init({in.fiber, "mbarrier.init", pc}, address_of(barrier), arrivals);
}
void mbarrier_inval(std::uint64_t* barrier) {
  const Entered in;
  const Pc pc = to_pc(__builtin_return_address(0));
  in.block.family<Mbarriers>().invalidate({in.fiber, "mbarrier.inval", pc}, address_of(barrier));
}
void mbarrier_arrive(std::uint64_t* barrier, unsigned count) {
  const Entered in;
  const Pc pc = to_pc(__builtin_return_address(0));
  in.block.family<Mbarriers>().arrive({in.fiber, "mbarrier.arrive", pc}, address_of(barrier), count, 0);
}
void block_barrier_init(std::uint64_t* barrier, unsigned expected) {
  const Entered in;
  const Pc pc = to_pc(__builtin_return_address(0));
  in.block.family<Mbarriers>().init({in.fiber, "barrier init", pc}, address_of(barrier), expected, true);
}
unsigned block_barrier_arrive(std::uint64_t* barrier, unsigned count) {
  const Entered in;
  const Pc pc = to_pc(__builtin_return_address(0));
  return in.block.family<Mbarriers>().arrive({in.fiber, "barrier.arrive", pc}, address_of(barrier), count, 0) & 1;
}
void block_barrier_arrive_and_drop(std::uint64_t* barrier) {
  const Entered in;
  const Pc pc = to_pc(__builtin_return_address(0));
  in.block.family<Mbarriers>().arrive_and_drop({in.fiber, "barrier.arrive_and_drop", pc}, address_of(barrier));
}
bool block_barrier_wait(std::uint64_t* barrier, unsigned parity, bool blocking) {
  const Entered in;
  const Pc pc = to_pc(__builtin_return_address(0));
  return in.block.family<Mbarriers>().wait({in.fiber, "barrier.wait", pc}, address_of(barrier), parity, blocking,
                                           Mbarriers::Sees::kBlock);
}
void mbarrier_expect_tx(std::uint64_t* barrier, unsigned bytes) {
  const Entered in;
  const Pc pc = to_pc(__builtin_return_address(0));
  in.block.family<Mbarriers>().expect({in.fiber, "mbarrier.expect_tx", pc}, address_of(barrier), bytes);
}
void mbarrier_arrive_expect_tx(std::uint64_t* barrier, unsigned bytes) {
  const Entered in;
  const Pc pc = to_pc(__builtin_return_address(0));
  in.block.family<Mbarriers>().arrive({in.fiber, "mbarrier.arrive.expect_tx", pc}, address_of(barrier), 1, bytes);
}
bool mbarrier_test_wait_parity(std::uint64_t* barrier, unsigned parity) {
  const Entered in;
  const Pc pc = to_pc(__builtin_return_address(0));
  return in.block.family<Mbarriers>().wait({in.fiber, "mbarrier.test_wait", pc}, address_of(barrier), parity, false,
                                           Mbarriers::Sees::kBlock);
}
bool mbarrier_try_wait_parity(std::uint64_t* barrier, unsigned parity) {
  const Entered in;
  const Pc pc = to_pc(__builtin_return_address(0));
  return in.block.family<Mbarriers>().wait({in.fiber, "mbarrier.try_wait", pc}, address_of(barrier), parity, true,
                                           Mbarriers::Sees::kBlock);
}
bool mbarrier_try_wait_parity_acquire_cluster(std::uint64_t* barrier, unsigned parity) {
  const Entered in;
  const Pc pc = to_pc(__builtin_return_address(0));
  return in.block.family<Mbarriers>().wait({in.fiber, "mbarrier.try_wait.acquire.cluster", pc}, address_of(barrier), parity, true,
                                           Mbarriers::Sees::kCluster);
}
bool mbarrier_wait_relaxed(std::uint64_t* barrier, unsigned parity, bool blocking) {
  const Entered in;
  const Pc pc = to_pc(__builtin_return_address(0));
  return in.block.family<Mbarriers>().wait({in.fiber, blocking ? "mbarrier.try_wait.relaxed" : "mbarrier.test_wait.relaxed", pc},
                                           address_of(barrier), parity, blocking, Mbarriers::Sees::kNothing);
}
void mbarrier_arrive_cluster(std::uint64_t* barrier, unsigned rank, bool release_cluster) {
  const Entered in;
  const AsyncProxy::Instruction by{in.fiber, release_cluster ? "mbarrier.arrive.release.cluster" : "mbarrier.arrive",
                                   to_pc(__builtin_return_address(0))};
  const auto [mbarriers, address] = there(in, by, barrier, rank);
  mbarriers.arrive_remotely(by, address, {.release_cluster = release_cluster});
}
unsigned mbarrier_arrive_as(std::uint64_t* barrier, const Arrival& how) {
  const Entered in;
  const char* const name = how.expects           ? "mbarrier.arrive.expect_tx"
                           : how.relaxed         ? "mbarrier.arrive.relaxed"
                           : how.release_cluster ? "mbarrier.arrive.release.cluster"
                                                 : "mbarrier.arrive";
  const AsyncProxy::Instruction by{in.fiber, name, to_pc(__builtin_return_address(0))};
  if (how.block == 0)
    return in.block.family<Mbarriers>().arrive(by, address_of(barrier), how.count, how.expected_bytes, how.relaxed) & 1;
  const auto [mbarriers, address] = there(in, by, barrier, how.block - 1);
  mbarriers.arrive_remotely(by, address, how);
  return 0;
}
void mbarrier_expect_tx_cluster(std::uint64_t* barrier, unsigned rank, unsigned bytes) {
  const Entered in;
  const AsyncProxy::Instruction by{in.fiber, "mbarrier.expect_tx", to_pc(__builtin_return_address(0))};
  const auto [mbarriers, address] = there(in, by, barrier, rank);
  mbarriers.expect(by, address, bytes);
}
void fence_proxy_async(bool shared, bool global) {
  const Entered in;
  in.block.scheduler.rendezvous(in.fiber);
  if (in.block.work.options().racecheck) in.block.async_proxy.fence(in.fiber, shared, global);
}

}  // namespace interpreter

// cp.async: copies from global to shared memory in the background (PTX ISA, "cp.async").
//
// A copy may take place any time between its issue and its thread's wait, or the end of the phase of an mbarrier that tracks it.
// Here the destination becomes poison at the issue, and the data are read and written at the end of that time, the latest moment
// that PTX allows: whoever looks too early sees NaN, whoever overwrites the source too early shows in the result. racecheck finds
// both without luck, see happens_before.h.
#include "common/interpreter/instructions/cp_async.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "common/interpreter/checks/bad_indices.h"
#include "common/interpreter/checks/bounds.h"
#include "common/interpreter/checks/dependence.h"
#include "common/interpreter/checks/initialised.h"
#include "common/interpreter/checks/races.h"
#include "common/interpreter/count/counters.h"
#include "common/interpreter/count/l2_trace.h"
#include "common/interpreter/count/overlap.h"
#include "common/interpreter/count/under_way.h"
#include "common/interpreter/instructions/entered.h"
#include "common/interpreter/instructions/mbarrier_family.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/schedule/activity.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {
namespace {

// A cp.async that its thread has not waited for.
struct Copy : Family::Record {
  std::uintptr_t to = 0, from = 0;
  unsigned size = 0, source_bytes = 0;
  bool may_fill = false;  // the instruction that takes a number of bytes, even if it is all of them; a predicate is none
  Pc pc = 0;
  std::uint64_t group = 0;           // of the thread, from 0
  std::uint64_t number = 0;          // of the thread's copies, from 0
  std::uint64_t source_version = 0;  // of the bytes that are read, when it was issued
};
Copy& copy_at(std::uint64_t address) { return static_cast<Copy&>(*reinterpret_cast<Family::Record*>(address)); }

class AsyncCopies final : public Family {
 public:
  explicit AsyncCopies(BlockContext& block) : block_(block) {}
  void begin(unsigned threads) override;
  void on_request(unsigned warp, const Request& request) override;

  void issue(Fiber& fiber, void* to, const void* from, int size, int source_bytes, bool may_fill, Pc pc, bool for_barrier = false);
  void commit_group(const Fiber& fiber) { ++threads_[fiber.linear].groups; }
  void wait(Fiber& fiber, std::uint64_t groups_under_way);
  void arrive_when_copied(Fiber& fiber, std::uintptr_t barrier, Pc pc);
  void complete_when_copied(Fiber& fiber, std::uintptr_t barrier, Pc pc);

 private:
  struct Thread {
    std::vector<Copy*> copies;       // under way, in the order of their issue
    std::vector<Copy*> for_barrier;  // no group has these; whose barrier is not known yet
    std::uint64_t groups = 0;        // committed so far
    std::uint64_t issued = 0;
  };
  void require_copyable(Fiber& fiber, const void* to, const void* from, unsigned size, int source_bytes, Pc pc);
  template <class IsOver>
  void end_copies(Fiber& fiber, const IsOver& is_over, const Stamp* landed);
  void end(Fiber& fiber, const Copy& copy, const Stamp* landed);

  BlockContext& block_;
  std::vector<Thread> threads_;
  std::deque<Copy> copies_;  // all that this block has had under way at a time
  std::vector<Copy*> free_;  // of these
};

void AsyncCopies::begin(unsigned threads) {
  threads_.resize(threads);
  for (Thread& thread : threads_) {
    thread.copies.clear();
    thread.for_barrier.clear();
    thread.groups = thread.issued = 0;
  }
  free_.clear();
  for (Copy& copy : copies_) free_.push_back(&copy);
}

// --------------------------------------------------------------------------------------------------------------- issue
void AsyncCopies::require_copyable(Fiber& fiber, const void* to, const void* from, unsigned size, int source_bytes, Pc pc) {
  const std::string copy = "cp.async of " + std::to_string(size) + " bytes ";
  const auto refuse = [&](const std::string& what, const char* expected, const void* p) {
    block_.reporter.fail(Check::kMemcheck, copy + what, expected, &fiber, user_location(pc), block_.reporter.variable_at(p));
  };
  const auto to_address = reinterpret_cast<std::uintptr_t>(to), from_address = reinterpret_cast<std::uintptr_t>(from);
  if (!block_.shared.contains(to_address)) refuse("to " + block_.reporter.describe(to), "the destination is shared memory", to);
  const SharedMemory& shared = block_.shared;
  if (shared.arena.contains(to_address) && to_address - shared.arena.begin + size > shared.dynamic_bytes)
    refuse("to " + block_.reporter.describe(to) + ", out of bounds", "copies stay inside allocations and variables", to);
  if (to_address % size)
    refuse("to " + block_.reporter.describe(to) + ", misaligned", "both addresses of a copy of n bytes are multiples of n", to);
  if (from_address % size)
    refuse("from " + block_.reporter.describe(from) + ", misaligned", "both addresses of a copy of n bytes are multiples of n",
           from);
  if (source_bytes < 0 || source_bytes > static_cast<int>(size))
    refuse("with source_bytes " + std::to_string(source_bytes), "source_bytes lies between 0 and the size of the copy", from);
  if (source_bytes == 0) return;  // the address may be any
  const GlobalMemory& memory = GlobalMemory::instance();
  const bool global = memory.contains(from_address);
  if (!global && !inside(from, variables()))
    refuse("from " + block_.reporter.describe(from) + ", which is not global memory", "the source is global memory", from);
  if (global && !memory.valid(from_address - reinterpret_cast<std::uintptr_t>(memory.base()), static_cast<unsigned>(source_bytes)))
    // Where the program keeps going, what is there is copied.
    block_.reporter.tell(Check::kMemcheck,
                         copy + "from " + block_.reporter.describe(from) + ", of which it reads " + std::to_string(source_bytes) +
                             " bytes: out of bounds",
                         "copies stay inside allocations; source_bytes says how many bytes there are", &fiber, user_location(pc),
                         block_.reporter.variable_at(from));
}

void AsyncCopies::issue(Fiber& fiber, void* to, const void* from, int size, int source_bytes, bool may_fill, Pc pc,
                        bool for_barrier) {
  const std::uint64_t source = source_bytes ? reinterpret_cast<std::uintptr_t>(from) * 32 + static_cast<unsigned>(source_bytes) : 0;
  const BothWorlds both(block_.worlds, fiber, WorldEvent::kCopy, to, static_cast<unsigned>(size), source);
  if (both.repeated()) return;
  block_.indices.check(fiber, to);
  const auto bytes = static_cast<unsigned>(size);
  const auto to_address = reinterpret_cast<std::uintptr_t>(to);
  if (block_.work.options().memcheck) require_copyable(fiber, to, from, bytes, source_bytes, pc);
  if (!block_.shared.contains(to_address)) return;  // memcheck is off: there is nowhere to copy to
  if (!block_.shared.arena.contains(to_address)) {
    // touch_static() takes a return address only to report where it was called.
    const void* const called_from = reinterpret_cast<const void*>(pc + image_bias);
    if (!block_.bounds.touch_static(fiber, to_address, bytes, Op::kStore, called_from)) return;
  }
  if (free_.empty()) free_.push_back(&copies_.emplace_back());
  Copy& copy = *free_.back();
  free_.pop_back();
  copy.family = this;
  copy.to = to_address, copy.from = reinterpret_cast<std::uintptr_t>(from);
  copy.size = bytes, copy.source_bytes = static_cast<unsigned>(std::clamp(source_bytes, 0, size));
  copy.may_fill = may_fill;
  copy.pc = pc;
  copy.group = threads_[fiber.linear].groups;
  copy.number = threads_[fiber.linear].issued++;
  copy.source_version = 0;
  Thread& thread = threads_[fiber.linear];
  (for_barrier ? thread.for_barrier : thread.copies).push_back(&copy);
  std::memset(to, 0xff, bytes);
  block_.record(fiber, copy, bytes, pc);
}

// The copies that the lanes of a warp issue with one instruction.
void AsyncCopies::on_request(unsigned w, const Request& request) {
  const Options& options = block_.work.options();
  if (block_.overlap.counts()) block_.overlap.begin_copies(w, std::uint64_t{request.size} * request.count);
  std::uint64_t from[32], to[32];
  std::uint32_t readers = 0;
  unsigned reading = 0, bytes_read = 0, i = 0;
  bool may_fill = false;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    const Copy& copy = copy_at(request.addresses[i]);
    to[i] = copy.to;
    may_fill = copy.may_fill;
    if (!copy.source_bytes) continue;
    readers |= rest & -rest;
    from[reading++] = copy.from;
    bytes_read += copy.source_bytes;
  }
  Request sources = request, destinations = request;
  sources.op = Op::kLoad, sources.lanes = readers, sources.count = reading, sources.addresses = from;
  sources.uniform = sources.contiguous = false;
  destinations.op = Op::kStore, destinations.shared = true, destinations.addresses = to;
  destinations.uniform = destinations.contiguous = false;
  if (options.count) {
    std::uint64_t sectors[64];
    unsigned sector_count = 0;
    block_.counters.count_copy(sources, destinations, may_fill, bytes_read, sectors, &sector_count);
    if (options.l2_model) block_.l2_trace.add(sources, sectors, sector_count, request.size < 16);
  }

  if (block_.events) [[unlikely]] {
    std::uint64_t sectors[64];
    const unsigned sector_count = reading ? sectors_of(sources, sectors) : 0;
    block_.add_event({EventKind::kCopy, static_cast<std::uint16_t>(w), request.lanes, request.pc, request.size * request.count,
                      sector_count, block_.shared.instruction_address(*std::min_element(to, to + request.count)), bytes_read});
    block_.events->add_addresses(sources);
  }

  GlobalShadow& global = global_shadow();
  i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    Copy& copy = copy_at(request.addresses[i]);
    if (options.initcheck) {
      if (copy.source_bytes) {
        Request source = sources;
        source.lanes = rest & -rest, source.count = 1, source.addresses = &copy.from, source.size = copy.source_bytes;
        block_.initialised.check(w, source);
      }
      block_.shared.part_of(copy.to).set_initialised(copy.to, copy.size, false);
    }
    if (!options.racecheck) continue;
    if (copy.source_bytes) {
      const Fiber& fiber = block_.scheduler.fiber(w, static_cast<unsigned>(std::countr_zero(rest)));
      block_.dependence.check_copy(fiber, request.pc, "cp.async", copy.from, copy.source_bytes, false);
      const WarpAccess access{w, request.pc, copy.source_bytes, false, false};
      ShadowedRange& range = global.range_of(copy.from);
      std::unique_lock lock(global.lock_of(copy.from));
      const Race race = record_access(range, block_.clock, access, copy.from, rest & -rest);
      copy.source_version = version_of(range, copy.from, copy.source_bytes);
      lock.unlock();
      if (race.earlier.thread) block_.races.report(race, w, access);
    }
    const WarpAccess access{w, request.pc, copy.size, true, false};
    const Race race =
        begin_copy(block_.shadows.of_shared(copy.to), block_.clock, access, copy.to, static_cast<unsigned>(std::countr_zero(rest)));
    if (race.earlier.thread) block_.races.report(race, w, access);
  }
}

// ---------------------------------------------------------------------------------------------------------------- wait
void AsyncCopies::wait(Fiber& fiber, std::uint64_t groups_under_way) {
  block_.activity.note_progress();
  Thread& thread = threads_[fiber.linear];
  if (thread.groups <= groups_under_way) return;
  const std::uint64_t first_under_way = thread.groups - groups_under_way;
  if (thread.copies.empty() || thread.copies.front()->group >= first_under_way) return;
  block_.scheduler.rendezvous(fiber);  // what the thread did before belongs to the time before
  end_copies(
      fiber, [&](const Copy& copy) { return copy.group < first_under_way; }, nullptr);
}

// The copies that have begun land when the barrier's phase ends. Before that, nobody may look; afterwards, who has waited there.
void AsyncCopies::arrive_when_copied(Fiber& fiber, std::uintptr_t barrier, Pc pc) {
  block_.scheduler.rendezvous(fiber);
  if (threads_[fiber.linear].copies.empty()) return;
  const auto land = [this, &fiber, issued = threads_[fiber.linear].issued](const Stamp& stamp) {
    end_copies(
        fiber, [&](const Copy& copy) { return copy.number < issued; }, &stamp);
  };
  block_.family<Mbarriers>().add_own_copies({fiber, "memcpy_async", pc}, barrier, land);
}

void AsyncCopies::complete_when_copied(Fiber& fiber, std::uintptr_t barrier, Pc pc) {
  block_.scheduler.rendezvous(fiber);
  if (threads_[fiber.linear].for_barrier.empty()) return;
  const auto land = [this, &fiber, copies = std::exchange(threads_[fiber.linear].for_barrier, {})](const Stamp& stamp) {
    for (Copy* const copy : copies) {
      end(fiber, *copy, &stamp);
      free_.push_back(copy);
    }
    const Thread& thread = threads_[fiber.linear];
    raise_to(most_under_way().ahead, thread.copies.size() + thread.for_barrier.size());
  };
  block_.family<Mbarriers>().add_own_copies({fiber, "memcpy_async", pc}, barrier, land);
}

// @param landed the write to shared memory, if the copy ends at an mbarrier; null: if its thread has waited
template <class IsOver>
void AsyncCopies::end_copies(Fiber& fiber, const IsOver& is_over, const Stamp* landed) {
  std::vector<Copy*>& copies = threads_[fiber.linear].copies;
  std::size_t ended = 0;
  for (; ended < copies.size() && is_over(*copies[ended]); ++ended) {
    end(fiber, *copies[ended], landed);
    free_.push_back(copies[ended]);
  }
  copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(ended));
  if (ended) raise_to(most_under_way().ahead, copies.size());
}

void AsyncCopies::end(Fiber& fiber, const Copy& copy, const Stamp* landed) {
  if (block_.overlap.counts()) block_.overlap.end_copy(fiber.warp, copy.size);
  if (block_.work.options().racecheck) {
    if (copy.source_bytes) {
      GlobalShadow& global = global_shadow();
      ShadowedRange& range = global.range_of(copy.from);
      std::unique_lock lock(global.lock_of(copy.from));
      if (version_of(range, copy.from, copy.source_bytes) != copy.source_version) {
        const Stamp write = last_write(range, block_.clock, copy.from, copy.source_bytes);
        lock.unlock();
        const void* p = reinterpret_cast<const void*>(copy.from);
        std::string what =
            "race on " + block_.reporter.describe(p) + ": the source of a cp.async, written while the copy was under way";
        if (write.thread)
          what += ", by thread " + to_text(unflatten(thread_of(write.thread), block_.work.launch->launch.block)) + " at " +
                  at(user_location(write.pc & ~kPcFlags)) + ", before this thread waited for it";
        block_.reporter.fail(Check::kRacecheck, what,
                             "the source of a cp.async stays as it is until the thread has waited for the copy", &fiber,
                             user_location(copy.pc), block_.reporter.variable_at(p));
      }
      if (landed)
        note_engine_read(range, block_.clock, {landed->thread, landed->time, copy.pc}, copy.from, copy.source_bytes,
                         block_.clock.id(fiber.linear));
      else
        record_access(range, block_.clock, {fiber.warp, copy.pc, copy.source_bytes, false, false}, copy.from, 1u << fiber.lane);
    }
    ShadowedRange& shared = block_.shadows.of_shared(copy.to);
    if (landed)
      end_engine_copy(shared, {landed->thread, landed->time, copy.pc}, copy.to, copy.size);
    else
      end_copy(shared, block_.clock, fiber.linear, copy.pc, copy.to, copy.size);
  }
  if (block_.work.options().initcheck) block_.shared.part_of(copy.to).set_initialised(copy.to, copy.size, true);
  char* const to = reinterpret_cast<char*>(copy.to);
  std::memcpy(to, reinterpret_cast<const void*>(copy.from), copy.source_bytes);
  std::memset(to + copy.source_bytes, 0, copy.size - copy.source_bytes);
  block_.activity.note_change();
}

}  // namespace

// -------------------------------------------------------------------------------------------------- what a kernel calls
void cp_async(void* shared, const void* global, int size, int source_bytes) {
  const Entered in(Worlds::kBoth);
  const Pc pc = to_pc(__builtin_return_address(0));
  in.block.family<AsyncCopies>().issue(in.fiber, shared, global, size, source_bytes, true, pc);
}
void cp_async(void* shared, const void* global, int size) {
  const Entered in(Worlds::kBoth);
  const Pc pc = to_pc(__builtin_return_address(0));
  in.block.family<AsyncCopies>().issue(in.fiber, shared, global, size, size, false, pc);
}
void cp_async_for_barrier(void* shared, const void* global, int size) {
  const Entered in(Worlds::kBoth);
  const Pc pc = to_pc(__builtin_return_address(0));
  in.block.family<AsyncCopies>().issue(in.fiber, shared, global, size, size, false, pc, true);
}
void cp_async_if(bool exists, void* shared, const void* global, int size) {
  const Entered in(Worlds::kBoth);
  const Pc pc = to_pc(__builtin_return_address(0));
  in.block.family<AsyncCopies>().issue(in.fiber, shared, global, size, exists ? size : 0, false, pc);
}
void cp_async_commit_group() {
  const Entered in(Worlds::kBoth);
  if (in.block.worlds.in_other()) return;
  in.block.family<AsyncCopies>().commit_group(in.fiber);
  in.block.note(in.fiber, EventKind::kCopyCommit, to_pc(__builtin_return_address(0)));
}
void cp_async_wait_group(int groups) {
  const Entered in(Worlds::kBoth);
  const BothWorlds both(in.block.worlds, in.fiber, WorldEvent::kWait, nullptr, 0u, static_cast<unsigned>(groups));
  if (both.repeated()) return;
  in.block.family<AsyncCopies>().wait(in.fiber, static_cast<std::uint64_t>(std::max(groups, 0)));
  in.block.note(in.fiber, EventKind::kCopyWait, to_pc(__builtin_return_address(0)),
                static_cast<std::uint64_t>(std::max(groups, 0)));
}
void cp_async_wait_all() {  // "equivalent to cp.async.commit_group; cp.async.wait_group 0"
  const Entered in(Worlds::kBoth);
  const BothWorlds both(in.block.worlds, in.fiber, WorldEvent::kWait);
  if (both.repeated()) return;
  auto& copies = in.block.family<AsyncCopies>();
  copies.commit_group(in.fiber);
  copies.wait(in.fiber, 0);
  in.block.note(in.fiber, EventKind::kCopyCommit, to_pc(__builtin_return_address(0)));
  in.block.note(in.fiber, EventKind::kCopyWait, to_pc(__builtin_return_address(0)));
}

void barrier_copies_complete_at(std::uint64_t* barrier) {
  const Entered in;
  const Pc pc = to_pc(__builtin_return_address(0));
  in.block.family<AsyncCopies>().complete_when_copied(in.fiber, reinterpret_cast<std::uintptr_t>(barrier), pc);
  in.block.note(in.fiber, EventKind::kCopyArrive, pc,
                in.block.shared.instruction_address(reinterpret_cast<std::uintptr_t>(barrier)));
}
void cp_async_mbarrier_arrive(std::uint64_t* barrier, bool noinc) {
  const Entered in;
  const Pc pc = to_pc(__builtin_return_address(0));
  const auto address = reinterpret_cast<std::uintptr_t>(barrier);
  in.block.family<AsyncCopies>().arrive_when_copied(in.fiber, address, pc);
  in.block.note(in.fiber, EventKind::kCopyArrive, pc, in.block.shared.instruction_address(address));
  // Its own arrival comes when the copies have landed. The phase waits for them, so it may count now.
  if (noinc) in.block.family<Mbarriers>().arrive({in.fiber, "cp.async.mbarrier.arrive.noinc", pc}, address, 1, 0);
}

}  // namespace interpreter

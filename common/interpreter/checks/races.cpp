#include "common/interpreter/checks/races.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>

#include "common/interpreter/checks/async_proxy.h"
#include "common/interpreter/checks/mbarrier_facts.h"
#include "common/interpreter/checks/volatile_updates.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/running/block_context.h"
#include "common/interpreter/running/grid_barrier.h"
#include "common/interpreter/schedule/cluster.h"
#include "common/interpreter/schedule/scheduler.h"
#include "common/interpreter/schedule/whereabouts.h"

namespace interpreter {

void RaceCheck::begin() {
  if (std::exchange(launch_, work_.launch->number) != work_.launch->number) noted_.clear();
}

void RaceCheck::check(unsigned w, const Request& request, std::uint32_t comparing) {
  if (comparing) add_look_before_cas(request.pc);  // others may find there that they need not ask
  if (request.op == Op::kLoad && is_look_before_cas(request.pc)) comparing = request.lanes;
  WarpAccess access{w, request.pc, request.size, writes(request.op), request.strong, is_block_scope(request.op)};
  access.shared = request.shared;
  GlobalShadow& global = global_shadow();
  std::unique_lock<std::mutex> lock;
  if (is_store(request.op) && !request.strong) access.stored = request.stored, access.stored_offset = request.stored_offset;
  const bool is_volatile = request.strong && (request.op == Op::kLoad || request.op == Op::kStore);
  const auto check_volatile = [&](ShadowedRange& range, std::uint32_t lanes, std::uintptr_t address) {
    for (std::uint32_t rest = lanes; rest; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      if (request.op == Op::kLoad) {
        updates_.note_look(range, w, lane, request, address);
      } else if (std::optional<Diagnosis> lost = updates_.check_store(range, w, lane, request, address)) {
        if (lock) lock.unlock();
        reporter_.tell(std::move(*lost));
        if (lock.mutex()) lock.lock();
      }
    }
  };
  unsigned i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    const std::uintptr_t address = request.addresses[i];
    // One address for all lanes (a broadcast) is one access of them all.
    const bool together = request.uniform && !comparing;
    const std::uint32_t lanes = together ? request.lanes : rest & -rest;
    const unsigned lane = static_cast<unsigned>(std::countr_zero(lanes));
    access.atomic = request.strong || (comparing & lanes);
    Race race;
    if (request.shared) {
      if ((comparing & lanes) && follows_unordered_atomic(shadows_.of_shared(address), clock_, w * 32 + lane, address))
        note_look_before_cas(access, address);
      if (is_volatile) check_volatile(shadows_.of_shared(address), lanes, address);
      race = record_access(shadows_.of_shared(address), clock_, access, address, lanes);
    } else {
      ShadowedRange& range = global.range_of(address);
      if (!access.write && read_is_no_news(range, clock_, address, access.size)) {
        if (together) return;
        continue;
      }
      std::mutex& mutex = global.lock_of(address);
      if (lock.mutex() != &mutex) {
        if (lock) lock.unlock();
        lock = std::unique_lock(mutex);
      }
      // Since the question above, another block may have learnt what this load is, and remembered its atomic here.
      if (request.op == Op::kLoad && is_look_before_cas(request.pc)) {
        comparing = request.lanes;
        access.atomic = true;
      }
      if (is_volatile) check_volatile(range, lanes, address);
      if ((comparing & lanes) && follows_unordered_atomic(range, clock_, w * 32 + lane, address))
        note_look_before_cas(access, address);
      race = record_access(range, clock_, access, address, lanes);
    }
    if (race.earlier.thread) {
      // A flag gets one value from everybody. Blocks that store equal results, others in other places, do the same work twice.
      const bool other_block = block_of(race.earlier.thread) != clock_.block();
      if (!race.same_value ||
          (other_block &&
           !work_.launch->is_one_value(access.pc, content(access.stored[lane].bytes + access.stored_offset, access.size)))) {
        if (lock) lock.unlock();
        report(race, w, access);
        if (lock.mutex()) lock.lock();
      } else {
        note_same_value(race, access);
      }
    }
    if (together) return;
  }
}

void RaceCheck::learn_look_before_cas(const Fiber& fiber, Pc pc, std::uintptr_t address, unsigned size) {
  if (!work_.options().racecheck) return;
  add_look_before_cas(pc);
  ShadowedRange* const range = shadows_.find(address);
  if (!range) return;
  const std::unique_lock lock = global_shadow().lock_in(*range, address);
  if (follows_unordered_atomic(*range, clock_, fiber.linear, address))
    note_look_before_cas({fiber.warp, pc, size, false, true, false}, address);
}

void RaceCheck::note_look_before_cas(const WarpAccess& access, std::uintptr_t address) {
  if (!noted_.insert({access.pc, 0}).second) return;
  const void* const p = reinterpret_cast<const void*>(address);
  work_.launch->note(
      at(user_location(access.pc)) + ": " + (reporter_.variable_at(p).empty() ? "memory" : reporter_.variable_at(p)) +
      " is read plainly while other threads change it by atomics. The programming guide's own functions on top of "
      "atomicCAS begin like that, and atomicCAS finds out when the value was old; for the memory model it is a race, and "
      "volatile would make it none");
}

void RaceCheck::note_same_value(const Race& race, const WarpAccess& access) {
  if (!noted_.insert({access.pc, race.earlier.pc & ~kPcFlags}).second) return;
  const void* const p = reinterpret_cast<const void*>(race.address);
  work_.launch->note(
      at(user_location(access.pc)) + ": several threads store the same value in " +
      (reporter_.variable_at(p).empty() ? "one place" : reporter_.variable_at(p)) +
      " with no order between them. One of the stores takes place, whichever, says the programming guide; for the memory "
      "model it is a race, and volatile or an atomic would make it none");
}

// Two atomics that do not order their blocks: what the one that writes has stored before, and the other one does not learn of. Only
// looked for in a report, in what the kernel was given and in variables; of large buffers, in the beginning.
// @param by_other the earlier one is the one that writes
std::string RaceCheck::not_handed_on(const Race& race, unsigned thread, bool by_other) const {
  constexpr std::size_t kMostBytes = std::size_t(64) << 20;
  const ThreadId writer = by_other ? race.earlier.thread : clock_.id(thread);
  Stamp last;
  std::uintptr_t where = 0;
  GlobalShadow& global = global_shadow();
  const auto look_in = [&](ShadowedRange& range, const char* begin, std::size_t bytes) {
    std::uintptr_t address = reinterpret_cast<std::uintptr_t>(begin) & ~std::uintptr_t(3);
    const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(begin) + std::min(bytes, kMostBytes);
    while (address < end) {
      const std::uintptr_t page_end = std::min(end, (address / kPage + 1) * kPage);
      const std::lock_guard lock(global.lock_of(address));
      for (; address < page_end; address += 4) {
        const Stamp& write = cell_at(range, address).write;
        if (write.thread != writer || (write.pc & kPcFlags) || write.time <= last.time || address == race.address) continue;
        if (by_other && (write.time > race.earlier.time || clock_.knows(thread, write))) continue;
        last = write, where = address;
      }
    }
  };
  const Launch& launch = work_.launch->launch;
  const char* const closure = static_cast<const char*>(launch.closure);
  for (std::size_t i = 0; i + sizeof(const char*) <= launch.closure_bytes; i += sizeof(const char*)) {
    const char* pointer = nullptr;
    std::memcpy(&pointer, closure + i, sizeof pointer);
    if (!global.memory.contains(reinterpret_cast<std::uintptr_t>(pointer))) continue;
    const GlobalMemory::Allocation a = GlobalMemory::instance().nearest(pointer);
    if (a.begin && !a.released) look_in(global.memory, a.begin, a.bytes);
  }
  if (const auto [begin, end] = variables(); begin != end) look_in(global.variables, begin, static_cast<std::size_t>(end - begin));
  if (!last.thread) return "";
  return "; what " + (by_other ? reporter_.name_of(writer, clock_) : "this thread") + " has stored before, such as " +
         reporter_.describe(reinterpret_cast<const void*>(where)) + " at " + at(user_location(last.pc)) +
         ", is not made known by that";
}

void RaceCheck::report(const Race& race, unsigned w, const WarpAccess& access) {
  if (!reporter_.is_new(access.pc, race.earlier.pc)) return;
  if ((race.earlier.pc & kEnginePc) && (race.copying || (race.earlier.thread & kEngine)))
    return async_proxy_.report(race, w, access);
  const unsigned thread = w * 32 + race.lane, other = thread_of(race.earlier.thread);
  const bool landed = race.earlier.thread & kEngine;  // a cp.async, when its mbarrier's phase ended
  const bool same_block = block_of(race.earlier.thread) == clock_.block();
  const void* p = reinterpret_cast<const void*>(race.address);
  const auto verb = [&](bool wrote, std::uint32_t marked_pc) {
    return marked_pc & kBlockScopePc ? "accessed by an atomic of its block"
           : marked_pc & kAtomicPc   ? "accessed atomically"
           : wrote                   ? "written"
                                     : "read";
  };
  const std::string there = at(user_location(race.earlier.pc & ~kPcFlags));
  if (race.copying)
    return reporter_.tell(
        Check::kRacecheck,
        reporter_.describe(p) + " " + verb(access.write, access.marked_pc()) + " before its cp.async was waited for: " +
            (other == thread ? "this thread" : reporter_.name_of(race.earlier.thread, clock_)) + " issued the copy at " + there +
            ", and its wait has not come or is for older groups only",
        "cp.async.wait_group or wait_all by the thread that issued the copy, with its group committed, then a barrier for the "
        "others; of memcpy_async, a wait for its barrier or pipeline. If the bytes of the tile before are meant, a barrier between "
        "the "
        "last look at them and the copy",
        &scheduler_.fibers()[thread], user_location(access.pc), reporter_.variable_at(p), there);
  const AccessedThrough here = reporter_.through(p, access.pc, access.write);
  const std::string earlier = reporter_.through(p, race.earlier.pc & ~kPcFlags, race.earlier_wrote).name;
  const char* const background = race.earlier_wrote ? nullptr : async_proxy_.background_read(race.earlier, race.address);
  const bool of_wgmma = background && !std::strcmp(background, "wgmma");
  std::string what = "race on " + reporter_.describe_element(p, here, access.size) + ": " +
                     verb(race.earlier_wrote, race.earlier.pc) + " by " + reporter_.name_of(race.earlier, clock_);
  what += " at " + there + (earlier.empty() ? "" : ", through " + earlier) +
          (of_wgmma ? ", by a wgmma that may still be under way" : "") + ", then " + verb(access.write, access.marked_pc()) +
          " by this thread" + (here.name.empty() ? "" : ", through " + here.name) + ", with no order between them";
  // Within one statement, a barrier is not always what helps; nor between two arrays, one of which begins at a wrong place.
  std::string or_else = at(user_location(access.pc)) == there ? ", or an atomic where both change one element" : "";
  if (!or_else.empty() && same_block && updates_.has_believed())
    or_else += "; of what a lock guards, a fence behind taking the lock and one before giving it back";
  if (!here.name.empty() && !earlier.empty() && here.name != earlier)
    or_else += "; if " + earlier + " and " + here.name +
               " are two arrays, they overlap here: one begins too early in dynamic shared memory";
  const bool both_write = access.write && race.earlier_wrote, both_atomic = access.atomic && (race.earlier.pc & kAtomicPc);
  if (both_atomic) {
    std::string kept = race.earlier_wrote ? not_handed_on(race, thread, true) : "";
    if (kept.empty() && access.write) kept = not_handed_on(race, thread, false);
    what += kept;
  }
  // Who reads atomically what another one stores plainly may be polling, and then never comes to a barrier.
  const bool earlier_atomic = race.earlier.pc & kAtomicPc;
  const bool one_is_atomic = access.atomic != earlier_atomic, it_writes = access.atomic ? access.write : race.earlier_wrote;
  const bool polled = one_is_atomic && !it_writes;
  // So may who reads plainly what was stored atomically.
  if (one_is_atomic && it_writes && !both_write) or_else += ", or a fence and an atomic on both sides where one of the two polls";
  std::string between =
      of_wgmma ? "wgmma.wait_group by the warps that multiply, then __syncthreads()" : "__syncthreads() between the two";
  if (same_block && current_block->mbarriers().has_barriers())
    between += ", or, where warps have roles, an arrival at an mbarrier (a cuda::barrier is one) that the other waits for";
  if (other / 32 == thread / 32) between += ", or __syncwarp() where one warp alone uses the memory";
  if (same_block) {
    const Location barrier = current_block->whereabouts.barrier_between(
        scheduler_.fibers()[other], user_location(race.earlier.pc & ~kPcFlags), user_location(access.pc));
    const Fiber& running = scheduler_.fibers()[thread];
    const Location collective = current_block->whereabouts.collective_between(
        scheduler_.fibers()[other], running, user_location(race.earlier.pc & ~kPcFlags), user_location(access.pc));
    const Fiber* const waiting = barrier.line ? nullptr : current_block->whereabouts.waits_where_passed_by(running);
    if (collective.line)
      between = std::string("the ") + scheduler_.fibers()[other].waits_in + " at " + at(collective) +
                " reached by all lanes that it is for: " + reporter_.name_of(race.earlier, clock_) +
                " waits there, this thread has gone past it";
    const Fiber* const behind =
        barrier.line || collective.line || waiting ? nullptr : current_block->whereabouts.waits_in_earlier_round(running);
    if (behind)
      between += "; if the one at " + at(place_of(*behind)) +
                 " is meant, all threads of the block reach it in each round of the loop: thread " + to_text(behind->thread) +
                 " waits there, and this thread has begun another round";
    if (const Location left_out = barrier.line || collective.line || waiting || behind
                                      ? Location()
                                      : current_block->whereabouts.barrier_left_out(running);
        left_out.line)
      between +=
          "; if the one at " + at(left_out) +
          " is meant, all threads of the block reach it in each round of the loop: this thread has gone through one without it";
    if (waiting)
      between = "the __syncthreads() at " + at(place_of(*waiting)) +
                " reached by all threads of the block, in each round of the loop: thread " + to_text(waiting->thread) +
                " waits there, this thread has passed it by in that round";
    if (barrier.line)
      between = "the __syncthreads() at " + at(barrier) +
                " reached by all threads of the block: " + reporter_.name_of(race.earlier, clock_) +
                " waits there, this thread has gone past it";
  }
  const bool same_store = both_write && !one_is_atomic && same_block && (race.earlier.pc & ~kPcFlags) == access.pc;
  if (same_store)
    between =
        "a place of its own for each thread: this store gives both the same one; if they are in two passes of a loop, " + between;
  reporter_.tell(
      Check::kRacecheck, what,
      both_atomic ? "an atomic for the whole GPU: one whose name ends in _block, or whose scope is .cta, is atomic for the threads "
                    "of its block alone"
      : landed    ? "who reads or writes there has waited for the copy's barrier, or for somebody who has"
      : !same_block && work_.cluster->readers.holds(race.earlier.thread)
          ? "a cluster barrier between the two, or an arrival with release.cluster at an mbarrier that the other waits for with "
            "acquire.cluster"
      : !same_block ? (both_write ? "an atomic, or a place for each block and another launch that puts the parts together"
                       : grid_barrier_word()
                           ? "this_grid().sync() between the two, or a fence and an atomic on both sides"
                           : "another launch between the two, or a fence and an atomic on both sides: no barrier orders two blocks")
      : polled      ? "a fence and an atomic on both sides where the reader polls, for it comes to no barrier then; else " + between
                    : between + or_else,
      &scheduler_.fibers()[thread], user_location(access.pc), reporter_.variable_at(p), there);
}

// What this launch has written before may or may not be in the read-only cache. Whoever writes after the load is not looked for.
void RaceCheck::check_read_only_load(Fiber& fiber, const void* p, std::size_t bytes, const void* return_address) {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  if (!GlobalMemory::instance().contains(address)) return;
  GlobalShadow& global = global_shadow();
  if (read_is_no_news(global.memory, clock_, address, static_cast<unsigned>(bytes))) return;
  std::unique_lock lock(global.lock_of(address));
  const Stamp write = last_write(global.memory, clock_, address, static_cast<unsigned>(bytes));
  lock.unlock();
  if (!write.thread) return;
  const std::string what = "__ldg of " + reporter_.describe(p) + ": written in this launch by thread " +
                           to_text(unflatten(thread_of(write.thread), work_.launch->launch.block)) + " of block " +
                           to_text(unflatten(block_of(write.thread) & ((1ull << 40) - 1), work_.launch->launch.grid)) + " at " +
                           at(user_location(write.pc & ~kPcFlags)) + ", read through a cache that may hold older bytes";
  reporter_.tell(Check::kRacecheck, what, "__ldg is for data that nobody writes while the kernel runs; a plain load sees them",
                 &fiber, user_location(to_pc(return_address)), reporter_.variable_at(p));
}

}  // namespace interpreter

#include "common/interpreter/checks/async_proxy.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "common/interpreter/checks/bounds.h"
#include "common/interpreter/checks/dependence.h"
#include "common/interpreter/checks/mbarrier_facts.h"
#include "common/interpreter/checks/shadows.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/running/block_context.h"
#include "common/interpreter/schedule/cluster.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {

void AsyncProxy::begin(unsigned threads) {
  fences_.resize(threads);
  for (auto& fences : fences_) fences.clear();
  swizzles_.clear();
  landings_.clear();
  background_reads_.clear();
  last_read_ = 0;
}

void AsyncProxy::fail(const Instruction& by, Check check, const void* p, const std::string& what, const std::string& expected) {
  block_.reporter.fail(check, what, expected, &by.fiber, user_location(by.pc), block_.reporter.variable_at(p));
}

void AsyncProxy::tell(const Instruction& by, Check check, const void* p, const std::string& what, const std::string& expected,
                      std::uint32_t earlier) {
  block_.reporter.tell(check, what, expected, &by.fiber, user_location(by.pc), block_.reporter.variable_at(p),
                       earlier ? at_line(earlier) : "");
}

// -------------------------------------------------------------------------------------------------------------- fences
void AsyncProxy::fence(const Fiber& fiber, bool shared, bool global) {
  const std::uint32_t time = block_.clock.time();
  fences_[fiber.linear].push_back({time, block_.clock.release(fiber.linear), shared, global, shared});
  if (global) block_.work.launch->fences_global_memory.store(true, std::memory_order_relaxed);
}

void AsyncProxy::fence_mbarriers(const Fiber& fiber) {
  fences_[fiber.linear].push_back({block_.clock.time(), block_.clock.release(fiber.linear), false, false, true});
}

bool AsyncProxy::fenced(unsigned reader, const Stamp& write, bool Fence::*memory) const {
  const auto by = [&](const BlockContext& block, unsigned thread) {
    const std::vector<Fence>& fences = block.async_proxy.fences_[thread];
    return std::any_of(fences.rbegin(), fences.rend(), [&](const Fence& fence) {
      return fence.*memory && covers(fence.covered, write) && block_.clock.knows(reader, {block.clock.id(thread), fence.time, 0});
    });
  };
  const std::vector<BlockContext*>& blocks = block_.cluster().blocks();
  const auto by_writer = [&](const BlockContext* block) {
    return block->clock.block() == block_of(write.thread) && by(*block, thread_of(write.thread));
  };
  if (std::any_of(blocks.begin(), blocks.end(), by_writer) || by(block_, reader)) return true;
  for (const BlockContext* const block : blocks)
    for (unsigned thread = 0; thread < fences_.size(); ++thread)
      if (by(*block, thread)) return true;
  return false;
}

// Of a write by a block elsewhere, the fences are not looked up: it is enough that somebody passes some.
bool AsyncProxy::fenced_globally(unsigned reader, const Stamp& write) const {
  if (!block_.work.launch->fences_global_memory.load(std::memory_order_relaxed)) return false;
  return !block_.cluster().readers.holds(write.thread) || fenced(reader, write, &Fence::global);
}

AsyncProxy& AsyncProxy::home_of(std::uintptr_t address) {
  return block_.shared.contains(address) ? *this : block_.cluster().home_of(address)->async_proxy;
}

AsyncProxy::Unfenced AsyncProxy::find_unfenced(const Fiber& reader, std::uintptr_t address, unsigned bytes) {
  ShadowedRange& range = block_.shadows.of_shared(address);
  Stamp last;
  for (std::uintptr_t at = address; at < address + bytes; at += 4) {
    const Stamp& write = cell_at(range, at).write;
    if (!write.thread || write.thread & kEngine || launch_of(write.thread) != block_.clock.launch()) continue;
    if (write.thread == last.thread && write.time == last.time) continue;
    last = write;
    if (fenced(reader.linear, write, &Fence::shared)) continue;
    if (fenced_mbarrier(reader.linear, write) && home_of(at).block_.mbarriers().was_initialised_by(write, at)) continue;
    return {write, at};
  }
  return {};
}

void AsyncProxy::report_unfenced(const Unfenced& unfenced, const Instruction& by, const char* then) {
  if (!block_.reporter.is_new(by.pc, unfenced.write.pc)) return;
  const void* const p = reinterpret_cast<const void*>(unfenced.address);
  tell(by, Check::kRacecheck, p,
       "race on " + block_.reporter.describe(p) + ": written by " + block_.reporter.name_of(unfenced.write.thread, block_.clock) +
           " at " + at_line(unfenced.write.pc) + ", then " + then + " by " + by.name +
           " through the async proxy, with no fence.proxy.async between",
       std::string("fence.proxy.async by the threads that wrote, then a barrier, then the instruction") +
           (fenced_mbarrier(by.fiber.linear, unfenced.write) ? "; a fence.mbarrier_init orders mbarrier.init alone" : ""),
       unfenced.write.pc);
}

// ------------------------------------------------------------------------------------------------------------ reports
const AsyncProxy::Landing* AsyncProxy::landing_at(std::uintptr_t address) {
  const auto& landings = home_of(address).landings_;
  const auto after = landings.upper_bound(address);
  if (after == landings.begin()) return nullptr;
  const auto& [begin, landing] = *std::prev(after);
  return address < begin + landing.bytes ? &landing : nullptr;
}

std::string AsyncProxy::where_it_completes(std::uintptr_t address) {
  const Landing* const landing = landing_at(address);
  return landing ? block_.reporter.describe(reinterpret_cast<const void*>(landing->barrier)) : "its mbarrier";
}

const char* AsyncProxy::what_writes(std::uintptr_t address) {
  const Landing* const landing = landing_at(address);
  return landing ? landing->what : "bulk copy";
}

void AsyncProxy::report(const Race& race, unsigned warp, const WarpAccess& access) {
  Fiber& fiber = block_.scheduler.fiber(warp, race.lane);
  const void* const p = reinterpret_cast<const void*>(race.address);
  const char* const verb = access.write ? "written" : "read";
  const std::string there = at_line(race.earlier.pc);
  std::string what, expected;
  if (block_.cluster().home_of(race.address)) {
    const std::string barrier = where_it_completes(race.address), copy = what_writes(race.address);
    what = "race on " + block_.reporter.describe(p) + ": " +
           (race.copying ? "the " + copy + " issued at " + there + " is under way there, and "
                         : "written by the " + copy + " issued at " + there + ", then ") +
           verb + " by this thread, which has not waited at " + barrier + ", where that completes, for that phase";
    expected = access.write
                   ? "nobody writes there from the copy's issue to the wait for it"
                   : "each thread that reads waits for the copy's phase of its mbarrier, or for somebody who has; and that phase "
                     "expects the bytes of all its copies";
    expected += block_.mbarriers().last_wait_of(fiber);
  } else if (race.earlier_wrote) {
    what = "race on " + block_.reporter.describe(p) + ": the bulk store that " +
           (race.earlier.thread == block_.clock.id(fiber.linear) ? "this thread"
                                                                 : block_.reporter.name_of(race.earlier.thread, block_.clock)) +
           " issued at " + there + " is under way there, and " + verb + " by this thread";
    expected =
        "cp.async.bulk.commit_group and cp.async.bulk.wait_group, without .read, by the thread that issued the store, then a "
        "barrier for others";
  } else {
    what = "race on " + block_.reporter.describe(p) + ": read by the bulk copy issued at " + there +
           ", then written by this thread, which has not waited for the copy";
    expected = "who writes there has waited for the copy's phase of its mbarrier, or for somebody who has";
  }
  block_.reporter.tell(Check::kRacecheck, what, expected, &fiber, user_location(access.pc), block_.reporter.variable_at(p), there);
}

const char* AsyncProxy::background_read(const Stamp& earlier, std::uintptr_t address) {
  if (!block_.cluster().home_of(address)) return nullptr;
  const auto& reads = home_of(address).background_reads_;
  const auto found = reads.find(earlier.pc & ~kPcFlags);
  return found == reads.end() ? nullptr : found->second;
}

// A race of what `by` begins now, with something earlier.
void AsyncProxy::report_issue(const Race& race, const Instruction& by, bool writes, bool shared) {
  if (!block_.reporter.is_new(by.pc, race.earlier.pc)) return;
  const void* const p = reinterpret_cast<const void*>(race.address);
  const Stamp& earlier = race.earlier;
  const bool other_block = !(earlier.thread & kEngine) && !block_.cluster().readers.holds(earlier.thread);
  const std::string copy = shared ? what_writes(race.address) : "bulk store";
  const char* const background = shared && !race.earlier_wrote && !race.copying ? background_read(earlier, race.address) : nullptr;
  const bool of_wgmma = background && !std::strcmp(background, "wgmma");
  std::string what = "race on " + block_.reporter.describe(p) + ": ", expected;
  if (race.copying && (earlier.pc & kEnginePc))
    what += "the " + copy + " issued at " + at_line(earlier.pc) + " is under way there, then ";
  else if (race.copying)
    what += "the cp.async that " + block_.reporter.name_of(earlier.thread, block_.clock) + " issued at " + at_line(earlier.pc) +
            " is under way there, then ";
  else if (earlier.thread & kEngine)
    what += "written by the " + copy + " issued at " + at_line(earlier.pc) + ", then ";
  else
    what += std::string(race.earlier_wrote ? "written by " : "read by ") + block_.reporter.name_of(earlier.thread, block_.clock) +
            " at " + at_line(earlier.pc) + (of_wgmma ? ", by a wgmma that may still be under way, then " : ", then ");
  what +=
      std::string(writes ? "written by the " : "read by the ") + by.name + " that this thread issues, with no order between them";
  if (other_block)
    expected = "another launch between the two, or a fence and an atomic on both sides: no barrier orders two blocks";
  else if (shared && writes && race.earlier_wrote && (earlier.pc & kEnginePc))
    expected = "who copies there again has waited for the phase of " + where_it_completes(race.address) +
               " in which the copy before completed, or for somebody who has";
  else if (!shared && race.copying)
    expected = "cp.async.bulk.wait_group, without .read, by the thread that issued the store before, between the two";
  else if (shared && writes && !race.earlier_wrote &&
           !home_of(race.address).block_.shared.part_of(race.address).all_initialised(race.address, 1))
    expected = MbarrierFacts::kReadTooEarly;  // nothing was there to be read
  else if (shared && writes && !race.earlier_wrote)
    expected = std::string("readers arrive at an mbarrier, or a barrier, when ") +
               (of_wgmma ? "a wgmma.wait_group has waited for the product" : "they have read") +
               ", and the thread that issues the copy has waited there";
  else
    expected = "a barrier between the two";
  if (shared && expected != MbarrierFacts::kReadTooEarly) expected += block_.mbarriers().last_wait_of(by.fiber);
  // Of two copies that are under way to one place, nobody would know which one has ended.
  if (race.copying && writes) fail(by, Check::kRacecheck, p, what, expected);
  tell(by, Check::kRacecheck, p, what, expected, earlier.pc);
}

std::string AsyncProxy::at_line(std::uint32_t pc) { return at(user_location(pc & ~kPcFlags)); }

// ------------------------------------------------------------------------------------------------------- shared memory
void AsyncProxy::require_shared(const Instruction& by, std::uintptr_t address, unsigned bytes, unsigned alignment) {
  const void* const p = reinterpret_cast<const void*>(address);
  const auto refuse = [&](const std::string& what, const std::string& expected) {
    fail(by, Check::kMemcheck, p, std::string(by.name) + " at " + block_.reporter.describe(p) + what, expected);
  };
  const SharedMemory& shared = block_.shared;
  if (!shared.contains(address) && block_.cluster().peer_at(address))
    refuse(", where it takes an address of its own block", "the address is one of the block's own shared memory");
  if (shared.lies_behind(address))
    refuse(", beyond the block's shared memory", "the launch gives as many bytes of dynamic shared memory as the kernel uses");
  if (!shared.contains(address)) refuse(", which is not shared memory", "the address is one of shared memory");
  if (address % alignment) refuse(", misaligned", "the address is a multiple of " + std::to_string(alignment));
  const auto refuse_end = [&] {
    if (by.operand)
      fail(by, Check::kMemcheck, p,
           std::string(by.name) + " reads its operand " + by.operand + " out of bounds: " + block_.reporter.describe(p),
           "the matrix that the descriptor describes lies in one variable, or in dynamic shared memory");
    refuse(": " + std::to_string(bytes) + " bytes from there are out of bounds", "it stays inside of the block's shared memory");
  };
  if (shared.arena.contains(address)) {
    if (address - shared.arena.begin + bytes > shared.dynamic_bytes) refuse_end();
  } else {
    const std::size_t offset = address - shared.statics.begin;
    const unsigned variable = shared.variable_at(offset);
    const bool is_variable = variable && variable != SharedMemory::kGuard;
    if (is_variable ? offset + bytes > shared.end_of(variable) : by.operand && block_.work.options().memcheck) refuse_end();
    // touch_static() takes a return address only to report where it was called.
    const void* const called_from = reinterpret_cast<const void*>(by.pc + image_bias);
    for (unsigned done = 0; done < bytes; done += 16)
      block_.bounds.touch_static(by.fiber, address + done, std::min(16u, bytes - done), Op::kStore, called_from);
  }
}

std::uintptr_t AsyncProxy::counterpart(const Instruction& by, std::uintptr_t address, unsigned rank) {
  require_shared(by, address, 1, 1);
  const unsigned size = block_.cluster().size();
  if (rank >= size) {
    const void* const p = reinterpret_cast<const void*>(address);
    fail(by, Check::kMemcheck, p,
         std::string(by.name) + " of " + block_.reporter.describe(p) + " in block " + std::to_string(rank) + " of a cluster of " +
             std::to_string(size),
         "ranks go from 0 to the number of the cluster's blocks less one");
  }
  return block_.cluster().counterpart(block_, address, rank);
}

std::uint64_t AsyncProxy::begin_read(const Instruction& by, std::uintptr_t address, unsigned bytes) {
  const Options& options = block_.work.options();
  const void* const p = reinterpret_cast<const void*>(address);
  if (std::exchange(last_read_, by.pc) != by.pc) background_reads_[by.pc] = by.name;
  if (options.racecheck) {
    ShadowedRange& range = block_.shadows.of_shared(address);
    const WarpAccess access{.warp = by.fiber.warp, .pc = by.pc, .size = bytes, .write = false, .atomic = false, .shared = true};
    const Race race = record_access(range, block_.clock, access, address, 1u << by.fiber.lane);
    if (race.earlier.thread && (race.earlier.pc & kEnginePc))
      report(race, by.fiber.warp, access);
    else if (race.earlier.thread)
      report_issue(race, by, false, true);
    if (const Unfenced unfenced = find_unfenced(by.fiber, address, bytes); unfenced.address) report_unfenced(unfenced, by, "read");
  }
  if (options.initcheck) {
    SharedMemory::Part& part = block_.shared.part_of(address);
    for (unsigned done = 0; done < bytes; done += 16)
      if (!part.initialised.all(address + done - part.begin, std::min(16u, bytes - done)) && block_.reporter.is_new(by.pc))
        tell(by, Check::kInitcheck, p,
             std::string(by.name) + " reads " + block_.reporter.describe(static_cast<const char*>(p) + done) +
                 ", of which not all 16 bytes have been written",
             "what it reads has been written before");
  }
  return options.racecheck ? version_of(block_.shadows.of_shared(address), address, bytes) : 0;
}

void AsyncProxy::report_overwritten(const Instruction& by, ShadowedRange& range, std::uintptr_t address, unsigned bytes) {
  const Stamp write = last_write(range, block_.clock, address, bytes);
  const void* const p = reinterpret_cast<const void*>(address);
  std::string what = "race on " + block_.reporter.describe(p) + ": what " + by.name + " reads was written while that was under way";
  if (write.thread)
    what += ", by " + block_.reporter.name_of(write.thread, block_.clock) + " at " + at_line(write.pc) + ", before the wait for it";
  tell(by, Check::kRacecheck, p, what,
       std::string("what it reads stays as it is until ") + (std::strcmp(by.name, "wgmma") ? "the thread" : "wgmma.wait_group") +
           " has waited for it, and a barrier tells the others");
}

void AsyncProxy::end_read(const Instruction& by, std::uintptr_t address, unsigned bytes, std::uint64_t version) {
  if (!block_.work.options().racecheck) return;
  ShadowedRange& range = block_.shadows.of_shared(address);
  if (version_of(range, address, bytes) != version) report_overwritten(by, range, address, bytes);
  const WarpAccess access{.warp = by.fiber.warp, .pc = by.pc, .size = bytes, .write = false, .atomic = false, .shared = true};
  record_access(range, block_.clock, access, address, 1u << by.fiber.lane);
}

void AsyncProxy::begin_write(const Instruction& by, std::uintptr_t address, unsigned bytes, std::uintptr_t barrier) {
  const Options& options = block_.work.options();
  if (options.racecheck) {
    const WarpAccess access{by.fiber.warp, by.pc, bytes, true, false, false, true, true};
    const Unfenced unfenced = by.generic ? Unfenced{} : find_unfenced(by.fiber, address, bytes);
    const Race race = begin_copy(block_.shadows.of_shared(address), block_.clock, access, address, by.fiber.lane);
    if (race.earlier.thread) report_issue(race, by, true, true);
    if (unfenced.address) report_unfenced(unfenced, by, "overwritten");
    auto& landings = home_of(address).landings_;
    landings.erase(landings.lower_bound(address), landings.lower_bound(address + bytes));
    landings[address] = {bytes, barrier, by.what_writes()};
  }
  if (options.initcheck) home_of(address).block_.shared.part_of(address).set_initialised(address, bytes, false);
  std::memset(reinterpret_cast<void*>(address), 0xff, bytes);
}

void AsyncProxy::end_write(const Stamp& stamp, std::uintptr_t address, unsigned bytes, unsigned swizzle_bytes) {
  for (std::uintptr_t at = address; at < address + bytes; at += kLine) swizzles_[at / kLine] = swizzle_bytes;
  if (block_.work.options().racecheck) end_engine_copy(block_.shadows.of_shared(address), stamp, address, bytes);
  SharedMemory::Part& part = block_.shared.part_of(address);
  for (unsigned done = 0; done < bytes; done += 16) part.set_initialised(address + done, std::min(16u, bytes - done), true);
}

void AsyncProxy::require_swizzle(const Instruction& by, std::uintptr_t address, unsigned swizzle_bytes) {
  if (!block_.work.options().racecheck) return;  // which knows who has written
  const auto found = swizzles_.find(address / kLine);
  if (found == swizzles_.end() || found->second == swizzle_bytes) return;
  const Stamp& write = cell_at(block_.shadows.of_shared(address), address).write;
  if (!(write.thread & kEngine) || launch_of(write.thread) != block_.clock.launch()) return;
  const auto pattern = [](unsigned bytes) { return bytes ? "a swizzle of " + std::to_string(bytes) + " bytes" : "no swizzle"; };
  const void* const p = reinterpret_cast<const void*>(address);
  fail(by, Check::kMemcheck, p,
       std::string(by.name) + " reads " + block_.reporter.describe(p) + " with " + pattern(swizzle_bytes) + ", but the copy at " +
           at_line(write.pc) + " put it there with " + pattern(found->second),
       "tensor map and matrix descriptor say the same swizzle");
}

// ------------------------------------------------------------------------------------------------------- global memory
void AsyncProxy::require_global(const Instruction& by, const char* direction, std::uintptr_t address, unsigned bytes) {
  if (!block_.work.options().memcheck) return;
  const GlobalMemory& memory = GlobalMemory::instance();
  for (unsigned done = 0, size = 0; done < bytes; done += size) {
    const std::uintptr_t here = address + done;
    size = std::min(bytes - done, static_cast<unsigned>(16 - here % 16));
    if (memory.contains(here) && memory.valid(here - reinterpret_cast<std::uintptr_t>(memory.base()), size)) continue;
    const void* const p = reinterpret_cast<const void*>(here);
    fail(by, Check::kMemcheck, p, std::string(by.name) + " " + direction + " " + block_.reporter.describe(p) + ": out of bounds",
         std::strstr(by.name, "tensor") ? "the tensor that the map describes lies in one allocation"
                                        : "all that is copied lies in one allocation");
  }
}

std::uint64_t AsyncProxy::begin_global_read(const Instruction& by, std::uintptr_t address, unsigned bytes) {
  const Options& options = block_.work.options();
  require_global(by, "from", address, bytes);
  block_.dependence.check_copy(by.fiber, by.pc, by.name, address, bytes, false);
  if (options.initcheck) {
    const GlobalMemory& memory = GlobalMemory::instance();
    for (unsigned done = 0, size = 0; done < bytes; done += size) {
      const std::uint64_t here = address + done;
      size = std::min(bytes - done, static_cast<unsigned>(16 - here % 16));
      const std::size_t offset = here - reinterpret_cast<std::uintptr_t>(memory.base());
      if (memory.granule_initialised(offset) || memory.initialised(offset, size) || !block_.reporter.is_new(by.pc)) continue;
      const void* const p = reinterpret_cast<const void*>(here);
      tell(by, Check::kInitcheck, p, std::string(by.name) + " reads " + block_.reporter.describe(p) + ", which nobody wrote",
           "what it reads has been written before");
    }
  }
  std::uint64_t version = 0;
  if (options.racecheck)
    for_each_page(address, bytes, [&](std::uintptr_t here, unsigned size) {
      GlobalShadow& global = global_shadow();
      ShadowedRange& range = global.range_of(here);
      std::unique_lock lock(global.lock_of(here));
      const WarpAccess access{by.fiber.warp, by.pc, size, false, false, false, true};
      const Race race = race_of_read(range, block_.clock, access, here, by.fiber.lane);
      const Stamp write = last_generic_write(range, block_.clock, here, size);
      version += version_of(range, here, size);
      lock.unlock();
      if (race.earlier.thread && race.copying && (race.earlier.pc & kEnginePc)) return report(race, by.fiber.warp, access);
      if (race.earlier.thread) return report_issue(race, by, false, false);
      if (!write.thread || fenced_globally(by.fiber.linear, write) || !block_.reporter.is_new(by.pc, write.pc)) return;
      const void* const p = reinterpret_cast<const void*>(here);
      tell(by, Check::kRacecheck, p,
           "race on " + block_.reporter.describe(p) + ": written by " + block_.reporter.name_of(write.thread, block_.clock) +
               " at " + at_line(write.pc) + " in this launch, then read by " + by.name +
               " through the async proxy, with no fence.proxy.async for global memory between",
           "fence.proxy.async or fence.proxy.async.global by the threads that wrote, then a barrier, then the copy; or another "
           "launch between the two",
           write.pc);
    });
  return version;
}

void AsyncProxy::end_global_read(const Instruction& by, const Stamp& stamp, std::uintptr_t address, unsigned bytes,
                                 std::uint64_t version) {
  if (!block_.work.options().racecheck) return;
  GlobalShadow& global = global_shadow();
  ShadowedRange& range = global.range_of(address);
  std::uint64_t now = 0;
  for_each_page(address, bytes, [&](std::uintptr_t here, unsigned size) {
    const std::unique_lock lock(global.lock_of(here));
    now += version_of(range, here, size);
    note_engine_read(range, block_.clock, stamp, here, size);
  });
  if (now != version) report_overwritten(by, range, address, bytes);
}

void AsyncProxy::begin_global_write(const Instruction& by, std::uintptr_t address, unsigned bytes) {
  require_global(by, "to", address, bytes);
  block_.dependence.check_copy(by.fiber, by.pc, by.name, address, bytes, true);
  if (!block_.work.options().racecheck) return;
  for_each_page(address, bytes, [&](std::uintptr_t here, unsigned size) {
    GlobalShadow& global = global_shadow();
    const WarpAccess access{by.fiber.warp, by.pc, size, true, false, false, true};
    std::unique_lock lock(global.lock_of(here));
    const Race race = begin_copy(global.range_of(here), block_.clock, access, here, by.fiber.lane);
    lock.unlock();
    if (race.earlier.thread) report_issue(race, by, true, false);
  });
}

void AsyncProxy::end_global_write_unseen(std::uintptr_t address, unsigned bytes) {
  GlobalMemory& memory = GlobalMemory::instance();
  if (memory.contains(address)) memory.mark_initialised(address - reinterpret_cast<std::uintptr_t>(memory.base()), bytes);
}

void AsyncProxy::end_global_write(const Instruction& by, std::uintptr_t address, unsigned bytes) {
  end_global_write_unseen(address, bytes);
  if (!block_.work.options().racecheck) return;
  for_each_page(address, bytes, [&](std::uintptr_t here, unsigned size) {
    GlobalShadow& global = global_shadow();
    const std::unique_lock lock(global.lock_of(here));
    end_copy(global.range_of(here), block_.clock, by.fiber.linear, by.pc | kEnginePc, here, size);
  });
}

}  // namespace interpreter

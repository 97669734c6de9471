#include "common/interpreter/checks/async_proxy.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "common/interpreter/schedule/block.h"

namespace interpreter {

void AsyncProxy::begin(unsigned threads) {
  fences_.resize(threads);
  for (auto& fences : fences_) fences.clear();
}

// -------------------------------------------------------------------------------------------------------------- fences
void AsyncProxy::fence(const Fiber& fiber) {
  const std::uint32_t time = block_.clock.time();
  fences_[fiber.linear].push_back({time, block_.clock.release(fiber.linear)});
}

bool AsyncProxy::fenced(unsigned reader, const Stamp& write) const {
  const BlockClock& clock = block_.clock;
  const auto by = [&](unsigned thread) {
    return std::any_of(fences_[thread].rbegin(), fences_[thread].rend(), [&](const Fence& fence) {
      return covers(fence.covered, write) && clock.knows(reader, {clock.id(thread), fence.time, 0});
    });
  };
  if (by(thread_of(write.thread)) || by(reader)) return true;
  for (unsigned thread = 0; thread < fences_.size(); ++thread)
    if (by(thread)) return true;
  return false;
}

void AsyncProxy::require_fenced(const Instruction& by, std::uintptr_t address, unsigned bytes) {
  ShadowedRange& range = block_.shadows.of_shared(address);
  Stamp last;
  for (std::uintptr_t at = address; at < address + bytes; at += 4) {
    const Stamp& write = cell_at(range, at).write;
    if (!write.thread || block_of(write.thread) != block_.clock.block()) continue;  // or the copy engine's own
    if (write.thread == last.thread && write.time == last.time) continue;
    last = write;
    if (fenced(by.fiber.linear, write)) continue;
    const void* const p = reinterpret_cast<const void*>(at);
    block_.reporter.fail(Check::kRacecheck,
                         "race on " + block_.reporter.describe(p) + ": written by " +
                             block_.reporter.name_of(write.thread, block_.clock) + " at " + at_line(write.pc) + ", then read by " +
                             by.name + " through the async proxy, with no fence.proxy.async between",
                         "fence.proxy.async by the threads that wrote, then a barrier, then the instruction", &by.fiber,
                         user_location(by.pc), block_.reporter.variable_at(p));
  }
}

std::string AsyncProxy::at_line(std::uint32_t pc) { return at(user_location(pc & ~kPcFlags)); }

// ------------------------------------------------------------------------------------------------------- shared memory
void AsyncProxy::require_shared(const Instruction& by, std::uintptr_t address, unsigned bytes, unsigned alignment) {
  const void* const p = reinterpret_cast<const void*>(address);
  const auto refuse = [&](const std::string& what, const std::string& expected) {
    block_.reporter.fail(Check::kMemcheck, std::string(by.name) + " at " + block_.reporter.describe(p) + what, expected, &by.fiber,
                         user_location(by.pc), block_.reporter.variable_at(p));
  };
  const SharedMemory& shared = block_.shared;
  if (!shared.contains(address)) refuse(", which is not shared memory", "the address is one of shared memory");
  if (shared.arena.contains(address)) {
    if (address - shared.arena.begin + bytes > shared.dynamic_bytes)
      refuse(": " + std::to_string(bytes) + " bytes from there are out of bounds", "it stays inside of the block's shared memory");
  } else {
    // touch_static() takes a return address only to report where it was called.
    const void* const called_from = reinterpret_cast<const void*>(by.pc + image_bias);
    for (unsigned done = 0; done < bytes; done += 16)
      block_.bounds.touch_static(by.fiber, address + done, std::min(16u, bytes - done), Op::kStore, called_from);
  }
  if (address % alignment)
    refuse(", misaligned", "the address is a multiple of " + std::to_string(alignment));
}

std::uint64_t AsyncProxy::begin_read(const Instruction& by, std::uintptr_t address, unsigned bytes) {
  const Options& options = block_.work().options();
  const void* const p = reinterpret_cast<const void*>(address);
  if (options.racecheck) {
    ShadowedRange& range = block_.shadows.of_shared(address);
    const WarpAccess access{by.fiber.warp, by.pc, bytes, false, false};
    const Race race = record_access(range, block_.clock, access, address, 1u << by.fiber.lane);
    if (race.earlier.thread) block_.races.report(race, by.fiber.warp, access);
    require_fenced(by, address, bytes);
  }
  if (options.initcheck) {
    SharedMemory::Part& part = block_.shared.part_of(address);
    for (unsigned done = 0; done < bytes; done += 16)
      if (!part.initialised.all(address + done - part.begin, std::min(16u, bytes - done)))
        block_.reporter.fail(Check::kInitcheck,
                             std::string(by.name) + " reads " + block_.reporter.describe(static_cast<const char*>(p) + done) +
                                 ", of which not all 16 bytes have been written",
                             "what it reads has been written before", &by.fiber, user_location(by.pc),
                             block_.reporter.variable_at(p));
  }
  return options.racecheck ? version_of(block_.shadows.of_shared(address), address, bytes) : 0;
}

void AsyncProxy::report_overwritten(const Instruction& by, ShadowedRange& range, std::uintptr_t address, unsigned bytes) {
  const Stamp write = last_write(range, block_.clock, address, bytes);
  const void* const p = reinterpret_cast<const void*>(address);
  std::string what = "race on " + block_.reporter.describe(p) + ": what " + by.name + " reads was written while that was under way";
  if (write.thread)
    what += ", by " + block_.reporter.name_of(write.thread, block_.clock) + " at " + at_line(write.pc) + ", before the wait for it";
  block_.reporter.fail(Check::kRacecheck, what, "what it reads stays as it is until the wait for it", &by.fiber,
                       user_location(by.pc), block_.reporter.variable_at(p));
}

void AsyncProxy::end_read(const Instruction& by, std::uintptr_t address, unsigned bytes, std::uint64_t version) {
  if (!block_.work().options().racecheck) return;
  ShadowedRange& range = block_.shadows.of_shared(address);
  if (version_of(range, address, bytes) != version) report_overwritten(by, range, address, bytes);
  record_access(range, block_.clock, {by.fiber.warp, by.pc, bytes, false, false}, address, 1u << by.fiber.lane);
}

void AsyncProxy::begin_write(const Instruction& by, std::uintptr_t address, unsigned bytes) {
  const Options& options = block_.work().options();
  if (options.racecheck) {
    const WarpAccess access{by.fiber.warp, by.pc, bytes, true, false};
    const Race race = begin_copy(block_.shadows.of_shared(address), block_.clock, access, address, by.fiber.lane);
    if (race.earlier.thread) block_.races.report(race, by.fiber.warp, access);
  }
  if (options.initcheck) block_.shared.part_of(address).set_initialised(address, bytes, false);
  std::memset(reinterpret_cast<void*>(address), 0xff, bytes);
}

void AsyncProxy::end_write(const Stamp& stamp, std::uintptr_t address, unsigned bytes) {
  if (block_.work().options().racecheck) end_engine_copy(block_.shadows.of_shared(address), stamp, address, bytes);
  SharedMemory::Part& part = block_.shared.part_of(address);
  for (unsigned done = 0; done < bytes; done += 16) part.set_initialised(address + done, std::min(16u, bytes - done), true);
}

// ------------------------------------------------------------------------------------------------------- global memory
namespace {

// Calls `visit(address, bytes)` for pieces that lie in one page, and so under one lock.
template <class Visit>
void for_each_page(std::uintptr_t address, unsigned bytes, Visit&& visit) {
  for (const std::uintptr_t end = address + bytes; address < end;) {
    const auto part = static_cast<unsigned>(std::min<std::uintptr_t>(end - address, kPage - address % kPage));
    visit(address, part);
    address += part;
  }
}

}  // namespace

void AsyncProxy::require_global(const Instruction& by, const char* direction, std::uintptr_t address, unsigned bytes) {
  if (!block_.work().options().memcheck) return;
  const GlobalMemory& memory = GlobalMemory::instance();
  for (unsigned done = 0, size = 0; done < bytes; done += size) {
    const std::uintptr_t here = address + done;
    size = std::min(bytes - done, static_cast<unsigned>(16 - here % 16));
    if (memory.contains(here) && memory.valid(here - reinterpret_cast<std::uintptr_t>(memory.base()), size)) continue;
    const void* const p = reinterpret_cast<const void*>(here);
    block_.reporter.fail(Check::kMemcheck,
                         std::string(by.name) + " " + direction + " " + block_.reporter.describe(p) + ": out of bounds",
                         "the tensor that the map describes lies in one allocation", &by.fiber, user_location(by.pc),
                         block_.reporter.variable_at(p));
  }
}

std::uint64_t AsyncProxy::begin_global_read(const Instruction& by, std::uintptr_t address, unsigned bytes) {
  const Options& options = block_.work().options();
  require_global(by, "from", address, bytes);
  if (options.initcheck) {
    const GlobalMemory& memory = GlobalMemory::instance();
    for (unsigned done = 0, size = 0; done < bytes; done += size) {
      const std::uint64_t here = address + done;
      size = std::min(bytes - done, static_cast<unsigned>(16 - here % 16));
      const std::size_t offset = here - reinterpret_cast<std::uintptr_t>(memory.base());
      if (memory.granule_initialised(offset) || memory.initialised(offset, size)) continue;
      const void* const p = reinterpret_cast<const void*>(here);
      block_.reporter.fail(Check::kInitcheck, std::string(by.name) + " reads " + block_.reporter.describe(p) + ", which nobody wrote",
                           "what it reads has been written before", &by.fiber, user_location(by.pc), block_.reporter.variable_at(p));
    }
  }
  std::uint64_t version = 0;
  if (options.racecheck)
    for_each_page(address, bytes, [&](std::uintptr_t here, unsigned size) {
      GlobalShadow& global = global_shadow();
      ShadowedRange& range = global.range_of(here);
      const WarpAccess access{by.fiber.warp, by.pc, size, false, false};
      std::unique_lock lock(global.lock_of(here));
      const Race race = record_access(range, block_.clock, access, here, 1u << by.fiber.lane);
      version += version_of(range, here, size);
      lock.unlock();
      if (race.earlier.thread) block_.races.report(race, by.fiber.warp, access);
    });
  return version;
}

void AsyncProxy::end_global_read(const Instruction& by, std::uintptr_t address, unsigned bytes, std::uint64_t version) {
  if (!block_.work().options().racecheck) return;
  GlobalShadow& global = global_shadow();
  ShadowedRange& range = global.range_of(address);
  std::uint64_t now = 0;
  for_each_page(address, bytes, [&](std::uintptr_t here, unsigned size) {
    const std::unique_lock lock(global.lock_of(here));
    now += version_of(range, here, size);
  });
  if (now != version) report_overwritten(by, range, address, bytes);
}

void AsyncProxy::begin_global_write(const Instruction& by, std::uintptr_t address, unsigned bytes) {
  require_global(by, "to", address, bytes);
  if (!block_.work().options().racecheck) return;
  for_each_page(address, bytes, [&](std::uintptr_t here, unsigned size) {
    GlobalShadow& global = global_shadow();
    const WarpAccess access{by.fiber.warp, by.pc, size, true, false};
    std::unique_lock lock(global.lock_of(here));
    const Race race = begin_copy(global.range_of(here), block_.clock, access, here, by.fiber.lane);
    lock.unlock();
    if (race.earlier.thread) block_.races.report(race, by.fiber.warp, access);
  });
}

void AsyncProxy::end_global_write(const Instruction& by, std::uintptr_t address, unsigned bytes) {
  GlobalMemory& memory = GlobalMemory::instance();
  if (memory.contains(address)) memory.mark_initialised(address - reinterpret_cast<std::uintptr_t>(memory.base()), bytes);
  if (!block_.work().options().racecheck) return;
  for_each_page(address, bytes, [&](std::uintptr_t here, unsigned size) {
    GlobalShadow& global = global_shadow();
    const std::unique_lock lock(global.lock_of(here));
    end_copy(global.range_of(here), block_.clock, by.fiber.linear, by.pc, here, size);
  });
}

}  // namespace interpreter

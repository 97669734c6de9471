#include "common/interpreter/checks/dependence.h"

#include <bit>
#include <mutex>

#include "common/interpreter/checks/shadows.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {

void DependenceCheck::begin(unsigned threads) {
  const LaunchState& launch = *work_.launch;
  earlier_ = launch.options.racecheck && launch.earlier.size() > 0 ? &launch.earlier : nullptr;
  if (!earlier_) return;
  readers_.clear();
  first_awaited_ = &earlier_->first_awaited();
  all_are_awaited_ = earlier_->distance(*first_awaited_) == earlier_->size();
  aware_.assign((threads + 31) / 32, 0);
}

void DependenceCheck::wait(Fiber& fiber) {
  if (!earlier_) return;
  // What the thread did before belongs to the time before. Who has done nothing goes on at once: see settle() in mbarriers.cpp.
  if (log_.count(fiber.lane)) scheduler_.rendezvous(fiber);
  clock_.wait_for_launches(fiber.linear);
  work_.launch->waited_for_earlier = true;
}

bool DependenceCheck::is_aware(unsigned thread) {
  std::uint32_t& lanes = aware_[thread / 32];
  const std::uint32_t lane = 1u << thread % 32;
  if (!(lanes & lane) && clock_.knows_of_launches(thread)) lanes |= lane;
  return lanes & lane;
}

// ------------------------------------------------------------------------------------------------------------ accesses
void DependenceCheck::check_lanes(unsigned warp, const Request& request) {
  if (request.shared || (all_are_awaited_ && !(request.lanes & ~aware_[warp]))) return;
  unsigned i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    const unsigned thread = warp * 32 + static_cast<unsigned>(std::countr_zero(rest));
    const bool is_atomic = !is_store(request.op) && writes(request.op);
    check({thread, request.pc, request.addresses[i], request.size, writes(request.op), is_atomic, nullptr});
  }
}

void DependenceCheck::check_copy(const Fiber& fiber, Pc pc, const char* name, std::uintptr_t address, unsigned bytes, bool write) {
  if (earlier_) check({fiber.linear, pc, address, bytes, write, false, name});
}

void DependenceCheck::check(const Access& access) {
  const bool aware = is_aware(access.thread);
  if (aware && all_are_awaited_) return;
  Conflict conflict;
  for_each_page(access.address, access.bytes, [&](std::uintptr_t address, unsigned bytes) {
    GlobalShadow& global = global_shadow();
    const std::lock_guard lock(global.lock_of(address));
    if (!conflict.link) conflict = find(global.range_of(address), access, address, bytes, aware);
  });
  if (conflict.link) report(access, conflict, aware);  // with the lock given back: it may not return
}

// The launch that has left the stamp, if the thread cannot know that it has ended; else null.
const LaunchChain::Link* DependenceCheck::unknown(const Stamp& stamp, bool aware) const {
  if (!stamp.thread) return nullptr;
  const LaunchChain::Link* const link = earlier_->find(launch_of(stamp.thread));
  return link && aware && link->number >= first_awaited_->number ? nullptr : link;
}

DependenceCheck::Conflict DependenceCheck::find(ShadowedRange& range, const Access& access, std::uintptr_t address, unsigned bytes,
                                                bool aware) {
  Conflict conflict;
  for_each_cell(range, address, bytes, [&](const Cell& cell, std::uintptr_t at) {
    const auto note = [&](const Stamp& stamp, bool wrote) {
      if (const LaunchChain::Link* const link = unknown(stamp, aware); link && !conflict.link) conflict = {stamp, wrote, at, link};
    };
    const std::uintptr_t word = at & ~std::uintptr_t(3);
    const unsigned bytes_of_cell = range.word(at).state.split ? 1u << at % 4 : 0xfu;
    note(cell.write, true);
    if (access.write) {
      note(cell.read, false);
      const auto reader = readers_.find(word);
      if (reader != readers_.end() && reader->second.bytes & bytes_of_cell) note(reader->second.stamp, false);
    } else if (unknown(cell.read, aware)) {  // this read takes the place of that one in the cell
      EarlierReader& reader = readers_[word];
      reader.stamp = cell.read, reader.bytes |= bytes_of_cell;
    }
  });
  return conflict;
}

// ------------------------------------------------------------------------------------------------------------- reports
void DependenceCheck::report(const Access& access, const Conflict& conflict, bool aware) {
  if (!reporter_.is_new(access.pc, conflict.earlier.pc)) return;
  constexpr std::uint64_t kBlockInLaunch = block_of(kEngine) - 1;
  const void* const p = reinterpret_cast<const void*>(conflict.address);
  const LaunchChain::Link& link = *conflict.link;
  const Stamp& earlier = conflict.earlier;
  const bool atomically = earlier.pc & kAtomicPc;
  const std::size_t distance = earlier_->distance(link);
  std::string who =
      earlier.thread & kEngine ? "the copy engine" : "thread " + to_text(unflatten(thread_of(earlier.thread), link.block));
  who += " of block " + to_text(unflatten(block_of(earlier.thread) & kBlockInLaunch, link.grid)) + " of " + link.kernel_name() +
         (distance == 1 ? ", the launch before," : ", " + std::to_string(distance) + " launches before,");
  std::string what = "race on " + reporter_.describe(p) + ": " +
                     (atomically               ? "accessed atomically"
                      : conflict.earlier_wrote ? "written"
                                               : "read") +
                     " by " + who + " at " + at(user_location(earlier.pc & ~kPcFlags)) + ", then " +
                     (access.atomic  ? "accessed atomically"
                      : access.write ? "written"
                                     : "read") +
                     " by " + (access.name ? "the " + std::string(access.name) + " that this thread issues" : "this thread");
  std::string expected;
  if (aware) {
    const std::string between = first_awaited_->kernel_name();
    what += ": griddepcontrol.wait is for the launches that have ended when the one before this has, and " + between +
            ", between the two, did not wait itself";
    expected = "griddepcontrol.wait in " + between + ", too, or an ordinary launch in its place";
  } else {
    what += ", before griddepcontrol.wait";
    expected =
        "griddepcontrol.wait (cudaGridDependencySynchronize() in CUDA C++) before the first access to what the launches before "
        "write and the first write to what they read: by each thread, or by one and then a barrier; or an ordinary launch";
  }
  reporter_.tell(Check::kRacecheck, what, expected, &scheduler_.fibers()[access.thread], user_location(access.pc),
                 reporter_.variable_at(p), at(user_location(earlier.pc & ~kPcFlags)));
}

}  // namespace interpreter

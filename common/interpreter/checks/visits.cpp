#include "common/interpreter/checks/visits.h"

#include <bit>
#include <string>

#include "common/interpreter/checks/bounds.h"
#include "common/interpreter/checks/shadows.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/running/block_context.h"
#include "common/interpreter/schedule/cluster.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {
namespace {

constexpr const char* kExpected =
    "a cluster barrier between the last access to another block's shared memory and the end of that block, or an arrival that it "
    "waits for";

}  // namespace

void Visits::require_resident(const Fiber& fiber, const BlockContext& home, const void* p, const char* verb, Pc pc) {
  if (home.scheduler.live()) return;
  block_.reporter.fail(Check::kRacecheck,
                       "race on " + block_.reporter.describe(p) + ", which has ended: " + verb + " by this thread", kExpected,
                       &fiber, user_location(pc), block_.reporter.variable_at(p));
}

// Who uses another block's mbarrier has to know that it was initialised, which says more.
void Visits::require_begun(const Fiber& fiber, const BlockContext& home, const void* p, const char* verb, Pc pc) {
  if (!block_.work.options().racecheck || block_.clock.knows_of(fiber.linear, home.clock)) return;
  block_.reporter.fail(Check::kRacecheck,
                       "race on " + block_.reporter.describe(p) + ", which may not have begun: " + verb + " by this thread",
                       "a cluster barrier before the first access to another block's shared memory, which exists from the start of "
                       "that block, or an arrival of that block for which this thread has waited",
                       &fiber, user_location(pc), block_.reporter.variable_at(p));
}

void Visits::begin_variables(BlockContext& home, std::uintptr_t address, unsigned bytes) {
  if (!home.shared.statics.contains(address)) return;
  for (std::size_t offset = address - home.shared.statics.begin, end = offset + bytes; offset < end;) {
    const unsigned variable = home.shared.variable_at(offset);
    if (variable == 0 || variable == SharedMemory::kGuard) return;
    const SharedVariable& named = shared_variables()[variable - 1];
    if (!home.shared.was_touched(variable) && block_.work.options().racecheck)
      home.shadows.forget_static(named.offset, named.bytes);
    offset = home.shared.end_of(variable);
  }
}

bool Visits::touch(Fiber& fiber, BlockContext& home, std::uintptr_t address, unsigned size, Op op, const void* return_address) {
  const void* const p = reinterpret_cast<const void*>(address);
  const SharedMemory& shared = home.shared;
  const char* const verb = writes(op) ? "written" : "read";
  require_begun(fiber, home, p, verb, to_pc(return_address));
  require_resident(fiber, home, p, verb, to_pc(return_address));
  if (!shared.arena.contains(address) && shared.variable_at(address - shared.statics.begin) == SharedMemory::kGuard) return false;
  if (!home.bounds.is_storage(p, size)) {
    if (block_.work.options().memcheck) block_.bounds.bad_access(fiber, p, size, op, return_address);
    return false;
  }
  begin_variables(home, address, size);
  return true;
}

bool Visits::note(unsigned w, const Request& request) {
  bool visits = false;
  unsigned i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    if (block_.shared.contains(request.addresses[i])) continue;
    visits = true;
    note(block_.scheduler.fiber(w, static_cast<unsigned>(std::countr_zero(rest))), *block_.cluster().home_of(request.addresses[i]),
         request.addresses[i], request.pc);
  }
  return visits;
}

void Visits::note(const Fiber& fiber, BlockContext& home, std::uintptr_t address, Pc pc) {
  const ThreadId thread = block_.clock.id(fiber.linear);
  home.visits.visits_[thread] = {{thread, block_.clock.time(), pc}, address};
}

void Visits::on_exit(const Fiber& fiber) {
  if (visits_.empty() || !block_.work.options().racecheck) return;
  std::erase_if(visits_, [&](const auto& visit) { return block_.clock.knows_read(fiber.linear, visit.second.stamp); });
  if (block_.scheduler.live() > 1 || visits_.empty()) return;
  const Visit& visit = visits_.begin()->second;
  const void* const p = reinterpret_cast<const void*>(visit.address);
  block_.reporter.fail(Check::kRacecheck,
                       "race on " + block_.reporter.describe(p) + ": the block ends, and nothing orders that after the access by " +
                           block_.reporter.name_of(visit.stamp.thread, block_.clock) + " at " + at(user_location(visit.stamp.pc)),
                       kExpected, &fiber, user_location(visit.stamp.pc), block_.reporter.variable_at(p));
}

}  // namespace interpreter

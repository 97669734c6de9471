// barrier.sync and barrier.arrive with a number and a count of threads (PTX ISA, "barrier{.cta}").
#include "common/interpreter/instructions/named_barriers.h"

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/interpreter/checks/bad_indices.h"
#include "common/interpreter/count/counters.h"
#include "common/interpreter/instructions/entered.h"
#include "common/interpreter/instructions/roles.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/schedule/activity.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {
namespace {

class NamedBarriers final : public Family {
 public:
  explicit NamedBarriers(BlockContext& block) : block_(block) {}
  void begin(unsigned) override { barriers_ = {}, over_ = {}; }
  void on_exit(Fiber& fiber) override;
  std::string what_is_awaited(const Fiber& fiber) const override;
  Missing what_is_missing(const Fiber& fiber) const override {
    if (what_is_awaited(fiber).empty()) return {};
    return {"", false,
            "as many threads arrive at each named barrier as its count says, those that wait among them; at a bar.sync, which is "
            "barrier.sync.aligned, all threads of a warp"};
  }

  /// @param aligned for whole warps: one counts once all its threads have come
  void arrive(Fiber& fiber, unsigned number, unsigned threads, bool waits, bool aligned, Pc pc);

 private:
  // Threads of a warp of which others have not come.
  struct Part {
    std::uint32_t lanes = 0;
    KnowledgePtr known;
  };
  struct Barrier {
    unsigned expected = 0, arrived = 0;  // threads
    unsigned waits = 0;                  // of these, threads that wait
    Pc pc = 0;                           // of the first that arrived
    KnowledgePtr known;
    std::vector<Fiber*> waiting;
    std::map<unsigned, Part> parts;  // by warp
    std::uint32_t warps = 0;         // that have arrived
    bool somebody_passes = false;    // an arrival does not wait
    std::vector<Stamp> arrivals;
    bool is_new() const { return arrived == 0 && parts.empty(); }
  };
  // The last phase that is over, if all its threads waited.
  struct Over {
    std::uint32_t warps = 0;
    std::vector<Stamp> arrivals;
  };
  bool add_warp(Barrier& barrier, unsigned warp, std::uint32_t live);
  void complete(Barrier& barrier);
  void require_not_in_last(Fiber& fiber, unsigned number, Pc pc);
  void count(const Barrier& barrier);

  BlockContext& block_;
  std::array<Barrier, 16> barriers_;
  std::array<Over, 16> over_;
};

void NamedBarriers::arrive(Fiber& fiber, unsigned number, unsigned threads, bool waits, bool aligned, Pc pc) {
  const char* const name = waits ? "barrier.sync" : "barrier.arrive";
  const auto fail = [&](const std::string& what, const char* expected) {
    block_.reporter.fail(Check::kSynccheck, name + what, expected, &fiber, user_location(pc));
  };
  block_.activity.note_progress();
  block_.note(fiber, EventKind::kNamedBarrier, pc, number, threads, waits);
  block_.scheduler.rendezvous(fiber);
  if (number >= barriers_.size()) fail(" number " + std::to_string(number), "a block has barriers 0 to 15");
  if (threads == 0 || threads % 32) fail(" for " + std::to_string(threads) + " threads", "whole warps take part: a multiple of 32");
  if (threads > block_.work.launch->threads)
    fail(" for " + std::to_string(threads) + " threads, of which the block has only " + std::to_string(block_.work.launch->threads),
         "no more than there are");
  if (number == 0 && threads != block_.work.launch->threads)
    fail(" number 0 for " + std::to_string(threads) + " of the block's " + std::to_string(block_.work.launch->threads) + " threads",
         "number 0 is that of __syncthreads(), for the whole block: some of its warps take 1 to 15");
  Barrier& barrier = barriers_[number];
  if (!barrier.is_new() && barrier.expected != threads)
    fail(" number " + std::to_string(number) + " for " + std::to_string(threads) + " threads, but at " +
             at(user_location(barrier.pc)) + " for " + std::to_string(barrier.expected),
         "all that take part give the same number of threads");
  if (barrier.is_new()) barrier.expected = threads, barrier.pc = pc;
  barrier.waits += waits;
  barrier.warps |= 1u << fiber.warp;
  const bool racecheck = block_.work.options().racecheck;
  if (racecheck) {
    if (waits) require_not_in_last(fiber, number, pc);
    barrier.somebody_passes |= !waits;
    barrier.arrivals.push_back({block_.clock.id(fiber.linear), block_.clock.time(), pc});
  }
  block_.activity.note_change();
  if (aligned) {
    Part& part = barrier.parts[fiber.warp];
    part.lanes |= 1u << fiber.lane;
    if (racecheck) part.known = merge(part.known, block_.clock.release(fiber.linear));
    add_warp(barrier, fiber.warp, block_.scheduler.warp(fiber).live);
  } else {
    if (racecheck) barrier.known = merge(barrier.known, block_.clock.release(fiber.linear));
    ++barrier.arrived;
  }
  if (barrier.arrived >= threads) {
    const KnowledgePtr known = barrier.known;
    complete(barrier);
    if (waits && known) block_.clock.acquire(fiber.linear, known);
    return;
  }
  if (!waits) return;
  barrier.waiting.push_back(&fiber);
  block_.indices.before_waiting(fiber);
  block_.scheduler.wait_in_family(fiber, name, pc);
}

// Two groups of warps that use one number, with no order between them: a barrier counts who comes, and so half of each group may
// make it complete. Where somebody arrives and does not wait, groups share a number on purpose, and others see to their order.
void NamedBarriers::require_not_in_last(Fiber& fiber, unsigned number, Pc pc) {
  const Over& over = over_[number];
  if (!over.warps || over.warps >> fiber.warp & 1) return;
  for (const Stamp& arrival : over.arrivals)
    if (!block_.clock.knows(fiber.linear, arrival))
      block_.reporter.fail(
          Check::kSynccheck,
          "barrier.sync number " + std::to_string(number) + " for two groups of warps at a time: " +
              block_.reporter.name_of(arrival, block_.clock) + " came there at " + at(user_location(arrival.pc)) +
              ", in a group without this thread, and nothing orders the two: the barrier counts whoever comes first",
          "groups of warps that may be at a barrier at the same time use different numbers, or another barrier stands between them",
          &fiber, user_location(pc));
}

// A warp counts as 32 threads, whichever of them still exist (PTX ISA, "barrier{.cta}"). @return whether it has come as a whole
bool NamedBarriers::add_warp(Barrier& barrier, unsigned warp, std::uint32_t live) {
  const auto part = barrier.parts.find(warp);
  if (part == barrier.parts.end() || live & ~part->second.lanes) return false;
  barrier.known = merge(barrier.known, part->second.known);
  barrier.parts.erase(part);
  barrier.arrived += 32;
  return true;
}

void NamedBarriers::on_exit(Fiber& fiber) {
  for (Barrier& barrier : barriers_)
    if (add_warp(barrier, fiber.warp, block_.scheduler.warp(fiber).live & ~(1u << fiber.lane)) &&
        barrier.arrived >= barrier.expected)
      complete(barrier);
}

// Number 0, where all wait, is __syncthreads().
void NamedBarriers::count(const Barrier& barrier) {
  const bool is_first = &barrier == &barriers_.front(), of_all = barrier.waits >= block_.work.launch->threads;
  if (of_all && is_first)
    ++teamwork().block_meetings, block_.counters.count_barrier(barrier.pc);
  else
    ++teamwork().named, teamwork().named_of_all += of_all, block_.family<Roles>().meet(barrier.warps);
}

// Warps of which only a part has come wait for the next phase.
void NamedBarriers::complete(Barrier& barrier) {
  if (block_.work.options().count) count(barrier);
  Barrier over = std::exchange(barrier, {});
  Over& last = over_[static_cast<std::size_t>(&barrier - barriers_.data())];
  last = over.somebody_passes ? Over() : Over{over.warps, std::move(over.arrivals)};
  barrier.parts = std::move(over.parts);
  for (const auto& [warp, part] : barrier.parts) barrier.warps |= 1u << warp, barrier.somebody_passes = over.somebody_passes;
  if (!barrier.is_new()) barrier.expected = over.expected, barrier.pc = over.pc;
  for (Fiber* const fiber : over.waiting) {
    const auto part = barrier.parts.find(fiber->warp);
    if (part != barrier.parts.end() && part->second.lanes >> fiber->lane & 1) {
      barrier.waiting.push_back(fiber);
      continue;
    }
    if (over.known) block_.clock.acquire(fiber->linear, over.known);
    block_.scheduler.wake_in_family(*fiber);
  }
}

std::string NamedBarriers::what_is_awaited(const Fiber& fiber) const {
  for (std::size_t number = 0; number < barriers_.size(); ++number)
    for (const Fiber* const waiting : barriers_[number].waiting)
      if (waiting == &fiber)
        return " for barrier " + std::to_string(number) + ", where " + std::to_string(barriers_[number].arrived) + " of " +
               std::to_string(barriers_[number].expected) + " threads have arrived";
  return "";
}

}  // namespace

void named_barrier(unsigned number, unsigned threads, bool waits) {
  const Entered in;
  in.block.family<NamedBarriers>().arrive(in.fiber, number, threads, waits, false, to_pc(__builtin_return_address(0)));
}
void named_barrier_of_warps(unsigned number, unsigned threads, bool waits) {
  const Entered in;
  in.block.family<NamedBarriers>().arrive(in.fiber, number, threads, waits, true, to_pc(__builtin_return_address(0)));
}

}  // namespace interpreter

// barrier.sync and barrier.arrive with a number and a count of threads (PTX ISA, "barrier{.cta}").
#include "common/interpreter/instructions/named_barriers.h"

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/interpreter/instructions/family.h"
#include "common/interpreter/schedule/entered.h"

namespace interpreter {
namespace {

class NamedBarriers final : public Family {
 public:
  explicit NamedBarriers(Block& block) : block_(block) {}
  void begin(unsigned) override { barriers_ = {}; }
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
    Pc pc = 0;                           // of the first that arrived
    KnowledgePtr known;
    std::vector<Fiber*> waiting;
    std::map<unsigned, Part> parts;  // by warp
    bool is_new() const { return arrived == 0 && parts.empty(); }
  };
  bool add_warp(Barrier& barrier, unsigned warp, std::uint32_t live);
  void complete(Barrier& barrier);

  Block& block_;
  std::array<Barrier, 16> barriers_;
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
  if (threads > block_.work().launch->threads)
    fail(" for " + std::to_string(threads) + " threads, of which the block has only " +
             std::to_string(block_.work().launch->threads),
         "no more than there are");
  if (number == 0 && threads != block_.work().launch->threads)
    fail(" number 0 for " + std::to_string(threads) + " of the block's " + std::to_string(block_.work().launch->threads) +
             " threads",
         "number 0 is that of __syncthreads(), for the whole block: some of its warps take 1 to 15");
  Barrier& barrier = barriers_[number];
  if (!barrier.is_new() && barrier.expected != threads)
    fail(" number " + std::to_string(number) + " for " + std::to_string(threads) + " threads, but at " +
             at(user_location(barrier.pc)) + " for " + std::to_string(barrier.expected),
         "all that take part give the same number of threads");
  if (barrier.is_new()) barrier.expected = threads, barrier.pc = pc;
  const bool racecheck = block_.work().options().racecheck;
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
  block_.before_waiting(fiber);
  block_.wait_in_family(fiber, name, pc);
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

// Warps of which only a part has come wait for the next phase.
void NamedBarriers::complete(Barrier& barrier) {
  Barrier over = std::exchange(barrier, {});
  barrier.parts = std::move(over.parts);
  if (!barrier.is_new()) barrier.expected = over.expected, barrier.pc = over.pc;
  for (Fiber* const fiber : over.waiting) {
    const auto part = barrier.parts.find(fiber->warp);
    if (part != barrier.parts.end() && part->second.lanes >> fiber->lane & 1) {
      barrier.waiting.push_back(fiber);
      continue;
    }
    if (over.known) block_.clock.acquire(fiber->linear, over.known);
    block_.wake_in_family(*fiber);
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

// barrier.sync and barrier.arrive with a number and a count of threads (PTX ISA, "barrier{.cta}").
#include "common/interpreter/instructions/named_barriers.h"

#include <array>
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
  std::string what_is_awaited(const Fiber& fiber) const override;
  Missing what_is_missing(const Fiber& fiber) const override {
    if (what_is_awaited(fiber).empty()) return {};
    return {"", false, "as many threads arrive at each named barrier as its count says, those that wait among them"};
  }

  void arrive(Fiber& fiber, unsigned number, unsigned threads, bool waits, Pc pc);

 private:
  struct Barrier {
    unsigned expected = 0, arrived = 0;  // threads
    Pc pc = 0;                           // of the first that arrived
    KnowledgePtr known;
    std::vector<Fiber*> waiting;
  };
  void complete(Fiber& last, Barrier& barrier, bool waits);

  Block& block_;
  std::array<Barrier, 16> barriers_;
};

void NamedBarriers::arrive(Fiber& fiber, unsigned number, unsigned threads, bool waits, Pc pc) {
  const char* const name = waits ? "barrier.sync" : "barrier.arrive";
  const auto fail = [&](const std::string& what, const char* expected) {
    block_.reporter.fail(Check::kSynccheck, name + what, expected, &fiber, user_location(pc));
  };
  block_.activity.note_progress();
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
  if (barrier.arrived && barrier.expected != threads)
    fail(" number " + std::to_string(number) + " for " + std::to_string(threads) + " threads, but at " +
             at(user_location(barrier.pc)) + " for " + std::to_string(barrier.expected),
         "all that take part give the same number of threads");
  if (barrier.arrived == 0) barrier.expected = threads, barrier.pc = pc;
  if (block_.work().options().racecheck) barrier.known = merge(barrier.known, block_.clock.release(fiber.linear));
  block_.activity.note_change();
  if (++barrier.arrived == threads) return complete(fiber, barrier, waits);
  if (!waits) return;
  barrier.waiting.push_back(&fiber);
  block_.before_waiting(fiber);
  block_.wait_in_family(fiber, name, pc);
}

void NamedBarriers::complete(Fiber& last, Barrier& barrier, bool waits) {
  const Barrier over = std::exchange(barrier, {});
  const auto learn = [&](const Fiber& fiber) {
    if (over.known) block_.clock.acquire(fiber.linear, over.known);
  };
  if (waits) learn(last);
  for (Fiber* const fiber : over.waiting) {
    learn(*fiber);
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
  in.block.family<NamedBarriers>().arrive(in.fiber, number, threads, waits, to_pc(__builtin_return_address(0)));
}

}  // namespace interpreter

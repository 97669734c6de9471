#include "common/interpreter/checks/barrier_rounds.h"

#include <algorithm>
#include <numeric>

namespace interpreter {
namespace {

// How often a thread has begun a round of the loop since it entered the loop or passed its last barrier, as two counts: the loop's
// head, and what follows the barrier in a round. Who passes the barrier by adds to both. A loop in front of the barrier that begins
// in the same place adds to the first alone, a branch behind the barrier to the second alone.
struct Rounds {
  unsigned heads = 0, ends = 0;
};

Rounds rounds_of(const Way& way, const ControlFlow::Loop& loop, const std::vector<std::uint32_t>& node_of, bool has_left = false) {
  Rounds rounds;
  std::map<std::uint32_t, unsigned> visits;
  unsigned end = way.length();
  while (has_left && end > 0 && !loop.inside[node_of[way[end - 1]]]) --end;
  for (unsigned i = end; i-- > 0;) {
    const std::uint32_t node = node_of[way[i]];
    if (!loop.inside[node]) break;
    if (node == loop.head) ++rounds.heads;
    if (loop.after[node]) rounds.ends = std::max(rounds.ends, ++visits[node]);
  }
  return rounds;
}

}  // namespace

const std::vector<ControlFlow::Loop>& BarrierRounds::View::loops_around(const ControlFlow& flow, std::uint32_t block) {
  const auto [known, is_new] = loops.try_emplace(block);
  if (is_new) known->second = flow.loops_around(block, node_of);
  return known->second;
}

// Whether the two certainly are in different rounds.
bool BarrierRounds::View::differ(const ControlFlow& flow, const Way& a, const Way& b) {
  for (const ControlFlow::Loop& loop : loops_around(flow, a[a.length() - 1])) {
    const Rounds x = rounds_of(a, loop, node_of), y = rounds_of(b, loop, node_of);
    if ((x.heads < y.heads && x.ends < y.ends) || (x.heads > y.heads && x.ends > y.ends)) return true;
    if (x.heads != y.heads) return false;  // then inner loops cannot be compared
  }
  return false;
}

// Whether the one that runs, or has ended, certainly is in a later round.
bool BarrierRounds::View::is_ahead(const ControlFlow& flow, const Way& waiting, const Way& running) {
  for (const ControlFlow::Loop& loop : loops_around(flow, waiting[waiting.length() - 1])) {
    const Rounds x = rounds_of(waiting, loop, node_of), y = rounds_of(running, loop, node_of, true);
    if (y.heads > x.heads && y.ends > x.ends) return true;
    if (x.heads != y.heads) return false;
  }
  return false;
}

void BarrierRounds::learn(const ControlFlow& flow) {
  if (version_ == flow.version()) return;
  version_ = flow.version();
  blocks_ = {std::vector<std::uint32_t>(flow.block_count()), {}};
  std::iota(blocks_.node_of.begin(), blocks_.node_of.end(), 0u);
  places_.reset();
  equal_.clear();
}

bool BarrierRounds::differ(const ControlFlow& flow, const Way& a, const Way& b) {
  if (!a.is_complete() || !b.is_complete() || !a.length() || !b.length()) return false;
  const std::uint32_t block = a[a.length() - 1];
  if (b[b.length() - 1] != block || flow.block_count() > 0xffff) return false;
  learn(flow);
  if (blocks_.loops_around(flow, block).empty() || equal_.contains({a.hash(), b.hash()})) return false;
  if (blocks_.differ(flow, a, b)) {
    // A compiler makes several blocks of one, for threads that it sends different ways. They begin in one place of the source.
    if (places(flow).differ(flow, a, b)) return true;
  }
  if (equal_.size() > 1 << 14) equal_.clear();
  equal_.insert({a.hash(), b.hash()});
  return false;
}

BarrierRounds::View& BarrierRounds::places(const ControlFlow& flow) {
  if (!places_) flow.unite_copies((places_ = View{blocks_.node_of, {}})->node_of);
  return *places_;
}

bool BarrierRounds::has_passed_by(const ControlFlow& flow, const Way& waiting, const Way& running) {
  if (!waiting.is_complete() || !running.is_complete() || !waiting.length() || flow.block_count() > 0xffff) return false;
  learn(flow);
  if (blocks_.loops_around(flow, waiting[waiting.length() - 1]).empty()) return false;
  return blocks_.is_ahead(flow, waiting, running) && places(flow).is_ahead(flow, waiting, running);
}

void BarrierRounds::keep_if_doubtful(const ControlFlow& flow, const Pair& pair) {
  if (kept_.size() == kMostKept || !pair.a.is_complete() || !pair.b.is_complete() || !pair.a.length()) return;
  for (const Pair& known : kept_)
    if (known.a.hash() == pair.a.hash() && known.b.hash() == pair.b.hash()) return;
  learn(flow);
  if (blocks_.loops_around(flow, pair.a[pair.a.length() - 1]).empty()) kept_.push_back(pair);
}

std::optional<BarrierRounds::Pair> BarrierRounds::late_difference(const ControlFlow& flow) {
  const std::vector<Pair> pairs = std::exchange(kept_, {});
  for (const Pair& pair : pairs)
    if (differ(flow, pair.a, pair.b)) return pair;
  return std::nullopt;
}

}  // namespace interpreter

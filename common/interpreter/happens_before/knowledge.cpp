#include "common/interpreter/happens_before/knowledge.h"

#include <algorithm>

namespace interpreter {

// The later time of each thread. Mostly all of them have one already.
void add(Times& to, const Times& from) {
  if (from.empty()) return;
  bool all = true;
  auto ours = to.lower_bound(from.begin()->first);
  for (const auto& [thread, time] : from) {
    while (ours != to.end() && ours->first < thread) ++ours;
    if (ours != to.end() && ours->first == thread)
      ours->second = std::max(ours->second, time);
    else
      all = false;
  }
  if (!all) to.insert(boost::container::ordered_unique_range, from.begin(), from.end());  // leaves what is there
}

void add(Knowledge& to, const Knowledge& from) {
  for (const auto& [block, theirs] : from) {
    BlockKnowledge& ours = to[block];
    ours.before = std::max(ours.before, theirs.before);
    add(ours.threads, theirs.threads);
  }
}

KnowledgePtr merge(const KnowledgePtr& a, const KnowledgePtr& b) {
  if (!a || a == b) return b;
  if (!b) return a;
  auto merged = std::make_shared<Knowledge>(*a);
  add(*merged, *b);
  return merged;
}

bool covers(const KnowledgePtr& knowledge, const Stamp& stamp) {
  if (!knowledge) return false;
  const auto block = knowledge->find(block_of(stamp.thread));
  if (block == knowledge->end()) return false;
  if (stamp.time < block->second.before) return true;
  const auto thread = block->second.threads.find(thread_of(stamp.thread));
  return thread != block->second.threads.end() && stamp.time < thread->second;
}

bool covers_read(const KnowledgePtr& knowledge, const Stamp& stamp) {
  constexpr ThreadId kBlockBits = 10;
  return covers(knowledge, stamp) || covers(knowledge, {stamp.thread | kReadsOnly << kBlockBits, stamp.time, stamp.pc});
}

KnowledgePtr without_writes(const KnowledgePtr& knowledge) {
  if (!knowledge) return nullptr;
  auto reads = std::make_shared<Knowledge>();
  for (const auto& [block, known] : *knowledge)
    add(*reads, Knowledge{{block & block_of(kEngine) ? block : block | kReadsOnly, known}});
  return reads;
}

}  // namespace interpreter

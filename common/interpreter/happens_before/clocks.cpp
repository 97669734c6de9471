#include "common/interpreter/happens_before/clocks.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace interpreter {

std::atomic<std::uint32_t> acquisitions{0};

namespace {

// What fences and atomics have published at an address.
struct Published {
  KnowledgePtr in_gpu;
  std::map<std::uint64_t, KnowledgePtr> in_block;
};
std::mutex published_mutex;
std::unordered_map<const void*, Published> published;
std::atomic<bool> anything_published{false};

// A sum of what many threads know. Often the next one knows what the one before has added.
class Sum {
 public:
  void add(const KnowledgePtr& known) {
    if (!known || known.get() == last_) return;
    interpreter::add(*sum_, *known);
    last_ = known.get();
  }
  KnowledgePtr result() const { return sum_->empty() ? nullptr : sum_; }

 private:
  std::shared_ptr<Knowledge> sum_ = std::make_shared<Knowledge>();
  const Knowledge* last_ = nullptr;
};

}  // namespace

void forget_published() {
  std::lock_guard lock(published_mutex);
  published.clear();
  anything_published = false;
  acquisitions = 0;
}

void BlockClock::begin(std::uint64_t launch, std::uint64_t block, unsigned threads, ReaderSets& reader_sets) {
  first_ = make_thread_id(launch, block, 0);
  time_ = barrier_time_ = 1;
  warps_.resize((threads + 31) / 32);
  for (WarpClock& warp : warps_) warp.all_before = 0, warp.known.reset();
  threads_.clear();
  acquired_.reset(), fenced_in_block_.reset(), fenced_in_gpu_.reset();
  merged_ = learnt_by_last_ = {};
  launches_.reset();
  epoch_ = 0;
  reader_sets_ = &reader_sets;
  first_warp_ = reader_sets.warp_of(first_);
  last_answer_ = {}, answers_.assign(reader_sets.warps(), {});
  learnt_ = 1;
}

void BlockClock::barrier() {
  ++learnt_;
  barrier_time_ = ++time_;
  if (threads_.empty()) return;
  Sum in_block, others_in_block, in_gpu, others_in_gpu, acquired, pending_in_block, pending_in_gpu;
  for (auto& [thread, clock] : threads_) {
    if (clock.fenced_since_barrier) {
      in_block.add(clock.fenced_in_block.own), others_in_block.add(clock.fenced_in_block.others);
      in_gpu.add(clock.fenced_in_gpu.own), others_in_gpu.add(clock.fenced_in_gpu.others);
      clock.fenced_since_barrier = false;
    }
    acquired.add(clock.acquired), pending_in_block.add(clock.pending_in_block), pending_in_gpu.add(clock.pending_in_gpu);
    if (clock.pending_in_block || clock.pending_in_gpu) clock.epoch = ++acquisitions;
    epoch_ = std::max(epoch_, clock.epoch);
    clock.acquired.reset(), clock.pending_in_block.reset(), clock.pending_in_gpu.reset();
  }
  for (const Sum* learnt : {&acquired, &pending_in_block, &pending_in_gpu}) acquired_ = merge(acquired_, learnt->result());
  for (const Sum* fenced : {&in_block, &others_in_block}) fenced_in_block_ = merge(fenced_in_block_, fenced->result());
  for (const Sum* fenced : {&in_gpu, &others_in_gpu}) fenced_in_gpu_ = merge(fenced_in_gpu_, fenced->result());
}

BlockClock::Fenced BlockClock::both(const Fenced& a, const Fenced& b) { return {merge(a.own, b.own), merge(a.others, b.others)}; }

void BlockClock::warp_barrier(unsigned warp, unsigned mask) {
  WarpClock& clock = warps_[warp];
  ++learnt_;
  const std::uint32_t now = ++time_;
  // What one of the lanes has learnt through atomics and a fence, all of them know from here on.
  const auto begin = threads_.lower_bound(warp * 32), end = threads_.lower_bound(warp * 32 + 32);
  KnowledgePtr learnt, pending_in_block, pending_in_gpu;
  Fenced fenced_in_block, fenced_in_gpu;
  std::uint32_t epoch = 0;
  for (auto i = begin; i != end; ++i) {
    if (!(mask >> (i->first % 32) & 1)) continue;
    const ThreadClock& lane = i->second;
    learnt = merge(learnt, lane.acquired), epoch = std::max(epoch, lane.epoch);
    // The same for what a fence of theirs will make known, and for what one has covered: fences are cumulative.
    pending_in_block = merge(pending_in_block, lane.pending_in_block);
    pending_in_gpu = merge(pending_in_gpu, lane.pending_in_gpu);
    fenced_in_block = both(fenced_in_block, lane.fenced_in_block);
    fenced_in_gpu = both(fenced_in_gpu, lane.fenced_in_gpu);
  }
  if (learnt || pending_in_block || pending_in_gpu || fenced_in_block.own)
    for (unsigned rest = mask; rest; rest &= rest - 1) {
      ThreadClock& lane = clock_of(warp * 32 + static_cast<unsigned>(std::countr_zero(rest)));
      lane.acquired = learnt, lane.epoch = std::max(lane.epoch, epoch);
      lane.pending_in_block = pending_in_block, lane.pending_in_gpu = pending_in_gpu;
      lane.fenced_in_block = fenced_in_block, lane.fenced_in_gpu = fenced_in_gpu;
      lane.fenced_since_barrier |= fenced_in_block.own != nullptr;
    }
  if (mask == 0xffffffffu) {
    clock.all_before = now;
    return;
  }
  if (!clock.known) clock.known = std::make_unique<std::uint32_t[][32]>(32);
  std::uint32_t merged[32] = {};
  for (unsigned rest = mask; rest; rest &= rest - 1)
    for (int of = 0; of < 32; ++of) merged[of] = std::max(merged[of], clock.known[std::countr_zero(rest)][of]);
  for (unsigned rest = mask; rest; rest &= rest - 1) merged[std::countr_zero(rest)] = now;
  for (unsigned rest = mask; rest; rest &= rest - 1) std::copy_n(merged, 32, clock.known[std::countr_zero(rest)]);
}

BlockClock::ThreadClock& BlockClock::clock_of(unsigned thread) { return threads_[thread]; }

// What the thread did itself, and what it knows of others by barriers of the block and the warp.
void BlockClock::add_own(unsigned thread, Knowledge& known) const {
  BlockKnowledge& own = known[block()];
  own.before = std::max(own.before, barrier_time_);
  const WarpClock& warp = warps_[thread / 32];
  Times::sequence_type lanes;
  lanes.reserve(32);
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned of = thread / 32 * 32 + lane;
    const std::uint32_t met = std::max(warp.all_before, warp.known ? warp.known[thread % 32][lane] : 0);
    const std::uint32_t time = of == thread ? time_ + 1 : met;  // itself, up to now
    if (time > own.before) lanes.emplace_back(of, time);
  }
  Times of_warp;
  of_warp.adopt_sequence(boost::container::ordered_unique_range, std::move(lanes));
  add(own.threads, of_warp);
}

const KnowledgePtr& BlockClock::acquired_by(unsigned thread) const {
  static const KnowledgePtr nothing;
  if (threads_.empty()) return nothing;
  const auto clock = threads_.find(thread);
  return clock == threads_.end() ? nothing : clock->second.acquired;
}

// What the thread knows of others by what it or its block has acquired.
KnowledgePtr BlockClock::learnt_by(unsigned thread) const {
  const KnowledgePtr& acquired = acquired_by(thread);
  if (learnt_by_last_.a != acquired_ || learnt_by_last_.b != acquired)
    learnt_by_last_ = {acquired_, acquired, merge(acquired_, acquired)};
  return learnt_by_last_.result;
}

KnowledgePtr BlockClock::own_of(unsigned thread) const {
  auto own = std::make_shared<Knowledge>();
  add_own(thread, *own);
  return own;
}

void BlockClock::fence(unsigned thread, bool whole_gpu) {
  ++learnt_;
  ThreadClock& clock = clock_of(thread);
  // The acquiring half: what atomics have observed counts from here on.
  KnowledgePtr learnt = clock.pending_in_block;
  if (whole_gpu) learnt = merge(learnt, clock.pending_in_gpu);
  if (learnt) {
    clock.acquired = merge(clock.acquired, learnt);
    clock.epoch = ++acquisitions;
    clock.pending_in_block.reset();
    if (whole_gpu) clock.pending_in_gpu.reset();
  }
  // The releasing half: later atomics publish what is known here.
  clock.fenced_in_block = {own_of(thread), learnt_by(thread)};
  if (whole_gpu) clock.fenced_in_gpu = clock.fenced_in_block;
  clock.fenced_since_barrier = true;
  ++time_;
}

KnowledgePtr BlockClock::fenced(unsigned thread, bool whole_gpu) const {
  const auto clock = threads_.find(thread);
  const Fenced& own = clock == threads_.end() ? Fenced() : whole_gpu ? clock->second.fenced_in_gpu : clock->second.fenced_in_block;
  const KnowledgePtr nothing = std::make_shared<const Knowledge>();
  return merge(merge(nothing, whole_gpu ? fenced_in_gpu_ : fenced_in_block_), merge(own.own, own.others));
}

void BlockClock::acquire_at_fence(unsigned thread, const KnowledgePtr& knowledge) {
  if (!knowledge) return;
  ThreadClock& clock = clock_of(thread);
  clock.pending_in_block = merge(clock.pending_in_block, knowledge);
  clock.pending_in_gpu = merge(clock.pending_in_gpu, knowledge);
}

void BlockClock::release_to(unsigned thread, const void* address, bool whole_gpu) {
  const auto clock = threads_.find(thread);
  const Fenced none;
  const Fenced& of_thread = clock == threads_.end() ? none : clock->second.fenced_in_block;
  if (!of_thread.own && !fenced_in_block_) return;
  std::lock_guard lock(published_mutex);
  Published& at = published[address];
  const auto publish = [](KnowledgePtr& where, const KnowledgePtr& of_block, const Fenced& fenced) {
    for (const KnowledgePtr& known : {of_block, fenced.own, fenced.others}) where = merge(where, known);
  };
  publish(at.in_block[block()], fenced_in_block_, of_thread);
  if (whole_gpu) publish(at.in_gpu, fenced_in_gpu_, clock == threads_.end() ? none : clock->second.fenced_in_gpu);
  anything_published = true;
}

void BlockClock::acquire_from(unsigned thread, const void* address) {
  if (!anything_published) return;
  std::lock_guard lock(published_mutex);
  const auto at = published.find(address);
  if (at == published.end()) return;
  ThreadClock& clock = clock_of(thread);
  clock.pending_in_gpu = merge(clock.pending_in_gpu, at->second.in_gpu);
  const auto in_block = at->second.in_block.find(block());
  if (in_block != at->second.in_block.end()) clock.pending_in_block = merge(clock.pending_in_block, in_block->second);
}

KnowledgePtr BlockClock::release(unsigned thread) {
  KnowledgePtr known = merge(own_of(thread), learnt_by(thread));
  ++time_;
  return known;
}

void BlockClock::release_into(unsigned thread, Knowledge& known, KnowledgePtr& last) {
  add_own(thread, known);
  const KnowledgePtr learnt = learnt_by(thread);
  if (learnt && learnt != last) add(known, *learnt);
  last = learnt;
  ++time_;
}

void BlockClock::acquire(unsigned thread, const KnowledgePtr& knowledge) {
  ++learnt_;
  ThreadClock& clock = clock_of(thread);
  // Threads that wait for the same phases know the same: of all of them, one has the work.
  if (merged_.a != clock.acquired || merged_.b != knowledge)
    merged_ = {clock.acquired, knowledge, merge(clock.acquired, knowledge)};
  clock.acquired = merged_.result;
  clock.epoch = ++acquisitions;
}

void BlockClock::wait_for_launches(unsigned thread) {
  ++learnt_;
  if (!launches_) launches_ = std::make_shared<Knowledge>(Knowledge{{block_of(end_of_launches()), {.before = 1, .threads = {}}}});
  ThreadClock& clock = clock_of(thread);  // its epoch stays: nothing of this launch has been learnt
  clock.acquired = merge(clock.acquired, launches_);
}

KnowledgePtr BlockClock::land(unsigned mbarrier, const KnowledgePtr& knowledge) {
  auto known = knowledge ? std::make_shared<Knowledge>(*knowledge) : std::make_shared<Knowledge>();
  (*known)[block_of(engine(mbarrier))].threads[mbarrier] = ++time_;
  return known;
}

bool BlockClock::knows_without_others(unsigned thread, const Stamp& stamp) const {
  if (launch_of(stamp.thread) != launch()) return true;  // an earlier launch
  if (block_of(stamp.thread) == block()) {
    if (stamp.time < barrier_time_) return true;
    const unsigned other = thread_of(stamp.thread);
    if (other == thread) return true;
    if (other / 32 == thread / 32) {
      const WarpClock& warp = warps_[thread / 32];
      if (stamp.time < warp.all_before) return true;
      if (warp.known && stamp.time < warp.known[thread % 32][other % 32]) return true;
    }
  }
  return false;
}

bool BlockClock::knows_of(unsigned thread, const BlockClock& other) const {
  const auto has = [&](const KnowledgePtr& knowledge) {
    const std::uint64_t block = other.block();
    return knowledge && (knowledge->contains(block) || knowledge->contains(block | kReadsOnly) ||
                         knowledge->contains(block_of(other.first_ | kEngine)));
  };
  return has(acquired_) || has(acquired_by(thread));
}

bool BlockClock::knows(unsigned thread, const Stamp& stamp) const {
  if (knows_without_others(thread, stamp)) return true;
  const Question question = {learnt_, thread, stamp.thread, stamp.time};
  if (last_answer_.question != question) last_answer_ = {question, covers(acquired_, stamp) || covers(acquired_by(thread), stamp)};
  return last_answer_.known;
}

bool BlockClock::knows_read(unsigned thread, const Stamp& stamp) const {
  return knows_without_others(thread, stamp) || covers_read(acquired_, stamp) || covers_read(acquired_by(thread), stamp);
}

bool BlockClock::knows_of_warp(unsigned thread, unsigned warp, std::uint32_t time) const {
  if (thread / 32 == warp) return true;
  const auto in = [&](const KnowledgePtr& knowledge) {
    if (!knowledge) return false;
    const auto own = knowledge->find(block());
    if (own == knowledge->end()) return false;
    if (time < own->second.before) return true;
    const auto& threads = own->second.threads;
    for (auto i = threads.lower_bound(warp * 32); i != threads.end() && i->first / 32 == warp; ++i)
      if (time < i->second) return true;
    return false;
  };
  return in(acquired_) || in(acquired_by(thread));
}

bool BlockClock::knows_of_lanes(unsigned thread, unsigned warp, std::uint32_t lanes, std::uint32_t time) const {
  if (time < barrier_time_ && block_of(reader_sets_->thread(warp, 0)) == block()) return true;
  Answer& answer = answers_[warp];
  const Question question = {learnt_, thread, lanes, time};
  if (answer.question == question) return answer.known;
  bool known = true;
  for (std::uint32_t rest = lanes; rest && known; rest &= rest - 1)
    known = knows_read(thread, {reader_sets_->thread(warp, static_cast<unsigned>(std::countr_zero(rest))), time, 0});
  answer = {question, known};
  return known;
}

std::uint32_t BlockClock::epoch_of(unsigned thread) const {
  if (threads_.empty()) return epoch_;
  const auto clock = threads_.find(thread);
  return clock == threads_.end() ? epoch_ : std::max(epoch_, clock->second.epoch);
}

}  // namespace interpreter

#include "common/interpreter/instructions/atomics.h"

#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>

#include "common/interpreter/checks/branched_updates.h"
#include "common/interpreter/checks/races.h"
#include "common/interpreter/checks/two_worlds.h"
#include "common/interpreter/checks/volatile_updates.h"
#include "common/interpreter/meetings/waiting.h"
#include "common/interpreter/observe/recorder.h"
#include "common/interpreter/running/block_context.h"
#include "common/interpreter/schedule/activity.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {

void Atomics::begin(unsigned threads) {
  threads_.resize(threads);
  for (Thread& thread : threads_) {
    thread.compares_at = nullptr;
    thread.volatile_reads.clear();
  }
  comparing_ = 0;
}

void Atomics::pass_barrier() {
  for (unsigned i = 0; i < threads_.size(); ++i)
    if (!threads_[i].volatile_reads.empty()) acquire_volatile_reads(i);
}

void Atomics::acquire_volatile_reads(unsigned thread) {
  for (const void* address : threads_[thread].volatile_reads) block_.clock.acquire_from(thread, address);
  threads_[thread].volatile_reads.clear();
}

// The programming guide makes atomics of other types of atomicCAS, behind a plain look at the old value. If that look gives too old
// a value, or half of one, atomicCAS finds out: it counts as an atomic read.
std::uint32_t Atomics::comparing_lanes(unsigned w, const Request& request) const {
  if (!comparing_ || request.op != Op::kLoad || request.strong) return 0;
  std::uint32_t lanes = 0;
  unsigned i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    const void* const p = reinterpret_cast<const void*>(request.addresses[i]);
    if (threads_[w * 32 + static_cast<unsigned>(std::countr_zero(rest))].compares_at == p) lanes |= rest & -rest;
  }
  return lanes;
}

// Between the look and its atomicCAS there may be a fence, for what the exchange is to publish, or another atomic. By then the look
// has been checked. Which instruction it is shows at the atomicCAS, and counts from there on.
void Atomics::remember_loads(const Fiber& fiber) {
  constexpr unsigned kMost = 8;
  std::vector<std::pair<std::uint64_t, Pc>>& loads = threads_[fiber.linear].last_loads;
  bool first = true;
  block_.recorder.log.visit_last_plain_loads(fiber.lane, kMost, [&](std::uintptr_t address, unsigned, bool, Pc pc) {
    if (std::exchange(first, false)) loads.clear();
    loads.emplace_back(address, pc);
  });
}

void Atomics::fence(Fiber& fiber, bool whole_gpu) {
  const BothWorlds both(block_.worlds, fiber, WorldEvent::kFence);
  if (both.repeated()) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // other blocks' threads may run on other cores, which see it too
  block_.activity.note_progress();
  block_.branched_updates.note_fence(fiber);
  remember_loads(fiber);
  block_.scheduler.rendezvous(fiber);
  if (!block_.work.options().racecheck) return;
  acquire_volatile_reads(fiber.linear);
  block_.clock.fence(fiber.linear, whole_gpu);
}

// What a volatile load observes is learnt at the next fence. It is looked up there, after the load: looking before it could miss
// what another block publishes in between.
void Atomics::volatile_load(Fiber& fiber, const void* p, unsigned size, Pc pc) {
  if (block_.worlds.in_other()) return;
  std::vector<const void*>& reads = threads_[fiber.linear].volatile_reads;
  if (reads.empty() || reads.back() != p) {
    if (reads.size() > 64) reads.erase(reads.begin());
    reads.push_back(p);
  }
  block_.waiting.poll(fiber, p, pc);
  block_.worlds.end_look(fiber, p);
  if (block_.work.options().racecheck) block_.branched_updates.note_read(fiber, p, size);
}

void Atomics::volatile_store(Fiber& fiber, const void* p, Pc pc) {
  if (block_.worlds.in_other()) return;
  if (block_.work.options().racecheck) block_.branched_updates.check_store(fiber, p, pc);
  block_.waiting.note_change(fiber);
  if (block_.work.options().racecheck) block_.clock.release_to(fiber.linear, p, true);
}

namespace {

// A read-modify-write of one naturally aligned integer, so that it is one on this CPU too.
template <class Word>
bool exchange(void* address, void* old_value, bool (*update)(void*, const void*), const void* context) {
  Word* const word = static_cast<Word*>(address);
  Word old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
  for (;;) {
    Word changed = old;
    const bool write = update(&changed, context);
    std::memcpy(old_value, &old, sizeof old);
    if (!write || changed == old) return false;
    if (__atomic_compare_exchange_n(word, &old, changed, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return true;
  }
}

}  // namespace

void Atomics::atomic(Fiber& fiber, void* address, unsigned size, void* old_value, bool (*update)(void*, const void*),
                     const void* context, Scope scope, AtomicKind kind, const void* return_address) {
  const BothWorlds both(block_.worlds, fiber, WorldEvent::kAtomic, address, size,
                        static_cast<unsigned>(kind) * 2u + (scope == Scope::kGpu));
  if (both.repeated()) return block_.worlds.repeat_atomic(fiber, size, old_value, update, context);
  const bool replaces = kind == AtomicKind::kReplace;
  const Op op =
      scope == Scope::kGpu ? (replaces ? Op::kExchange : Op::kAtomic) : (replaces ? Op::kBlockExchange : Op::kBlockAtomic);
  block_.updates.believe(fiber);
  block_.branched_updates.believe(fiber);
  if (kind == AtomicKind::kCompare) {
    threads_[fiber.linear].compares_at = address, ++comparing_;
    for (const auto& [at, pc] : threads_[fiber.linear].last_loads)
      if (at == reinterpret_cast<std::uintptr_t>(address)) block_.races.learn_look_before_cas(fiber, pc, at, size);
  }
  remember_loads(fiber);
  block_.observe(fiber, address, size, op, true, return_address);
  block_.scheduler.rendezvous(fiber);
  if (kind == AtomicKind::kCompare) threads_[fiber.linear].compares_at = nullptr, --comparing_;
  // Whatever racecheck learns of this atomic, it learns in the order in which atomics take place.
  ShadowedRange* range = nullptr;
  std::unique_lock<std::mutex> lock;
  const bool racecheck = block_.work.options().racecheck;
  if (racecheck) {
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(address);
    range = block_.shadows.find(at);
    if (range) lock = global_shadow().lock_in(*range, at);
    block_.clock.release_to(fiber.linear, address, scope == Scope::kGpu);
  }
  const bool changed = size == 1   ? exchange<std::uint8_t>(address, old_value, update, context)
                       : size == 2 ? exchange<std::uint16_t>(address, old_value, update, context)
                       : size == 4 ? exchange<std::uint32_t>(address, old_value, update, context)
                                   : exchange<std::uint64_t>(address, old_value, update, context);
  if (racecheck) block_.clock.acquire_from(fiber.linear, address);
  if (range)
    note_atomic(*range, block_.clock, fiber.linear, {fiber.warp, to_pc(return_address), size, true, true, is_block_scope(op)},
                reinterpret_cast<std::uintptr_t>(address));
  if (lock) lock.unlock();  // others may run from here on
  if (changed)
    block_.waiting.note_change(fiber);
  else
    block_.waiting.poll(fiber, address, to_pc(return_address));
  if (OtherWorld* const other = block_.worlds.of(fiber)) other->note_atomic(old_value, size, update, context);
}

}  // namespace interpreter

// Updates through volatile that get lost, with a branch between the read and the store: a bounded counter, a lock.
//
//   const int old = *p;            while (*lock) {}
//   if (old < limit) *p = old + 1; *lock = 1;
//
// Threads that read volatile memory to decide something may do so without order: the one whose turn it is goes on, the others do
// not. That is the question here: would the thread have gone on with what another one had read before its own update, too? Then
// both may read that, and one of the updates is lost. All comparisons of the value that it has read are looked at; if one of them
// comes out in another way for the other one's value, the thread waits for its turn, and is believed.
//
// A store that does not depend on what was read may be meant: labels that sink until none sinks any more, a flag that several
// raise. So two patterns alone are told: a counter, which two other threads have changed by the same step before; and a place where
// the other thread read the same value, and stored another one, which is a lock that is taken.
//
// Who has used atomics or looked at several places since the last barrier is believed.
#include "common/interpreter/checks/branched_updates.h"

#include <cstring>
#include <mutex>
#include <unordered_map>

#include "common/interpreter/report/reporter.h"

namespace interpreter {
namespace {

// Of the running launch, by place. Few programs update anything through volatile.
struct Updates {
  std::mutex mutex;
  std::uint64_t launch = 0;
  std::unordered_map<const void*, BranchedUpdates::Update> at;
};
Updates& updates() {
  static Updates& the_updates = *new Updates;
  return the_updates;
}

std::uint64_t read(const void* p, unsigned size) {
  std::uint64_t value = 0;
  std::memcpy(&value, p, size);
  return value;
}

// Of numbers of `size` bytes: less, equal, greater, as unsigned and as signed ones.
std::pair<int, int> relation(std::uint64_t a, std::uint64_t b, unsigned size) {
  const unsigned shift = 64 - 8 * size;
  const auto x = static_cast<std::int64_t>(a << shift), y = static_cast<std::int64_t>(b << shift);
  const std::uint64_t u = a << shift, v = b << shift;
  return {(u > v) - (u < v), (x > y) - (x < y)};
}

}  // namespace

void BranchedUpdates::begin(unsigned threads) {
  if (threads_.size() < threads) threads_.resize(threads);
  ++barriers_;
  stop_comparing();
}

// Barriers are many, and few threads have anything here: each looks for itself whether it has passed one.
BranchedUpdates::Thread& BranchedUpdates::state_of(const Fiber& fiber) {
  Thread& thread = threads_[fiber.linear];
  if (thread.barriers != barriers_) thread = {}, thread.barriers = barriers_;
  return thread;
}

void BranchedUpdates::start_comparing() {
  if (!std::exchange(comparing_, true)) ++watched_blocks;
}
void BranchedUpdates::stop_comparing() {
  if (std::exchange(comparing_, false)) --watched_blocks;
}

void BranchedUpdates::forget(Fiber& fiber, Thread& thread) {
  fiber.looking = false;
  thread.place = nullptr;
}

void BranchedUpdates::look_at_stored(Thread& thread, ThreadId self) {
  const void* const p = std::exchange(thread.stored_at, nullptr);
  if (!p) return;
  std::lock_guard lock(updates().mutex);
  const auto found = updates().at.find(p);
  if (found != updates().at.end() && found->second.by.thread == self && !found->second.stored)
    found->second.stored = read(p, thread.size);
}

void BranchedUpdates::note_read(Fiber& fiber, const void* p, unsigned size) {
  Thread& thread = state_of(fiber);
  look_at_stored(thread, clock_.id(fiber.linear));
  if (thread.believed) return;
  if (size > 8 || (thread.place && thread.place != p)) return believe(fiber);
  thread.place = p, thread.size = size, thread.value = read(p, size);
  thread.earlier = {}, thread.compared = thread.decided = false;
  fiber.looking = false;
  {
    std::lock_guard lock(updates().mutex);
    if (updates().launch == clock_.launch())
      if (const auto found = updates().at.find(p); found != updates().at.end()) thread.earlier = found->second;
  }
  if (!thread.earlier.by.thread) return;
  if (thread.earlier.by.thread == clock_.id(fiber.linear) || clock_.knows(fiber.linear, thread.earlier.by)) {
    thread.earlier = {};
    return;
  }
  fiber.looking = true;
  start_comparing();
}

void BranchedUpdates::note_comparison(Fiber& fiber, std::uint64_t a, std::uint64_t b) {
  Thread& thread = state_of(fiber);
  if (!thread.place) return;
  const std::uint64_t mask = ~0ull >> (64 - 8 * thread.size);
  if ((a & mask) != thread.value && (b & mask) != thread.value) return;
  const std::uint64_t other = (a & mask) == thread.value ? b : a;
  if (relation(thread.value, other, thread.size) == relation(thread.earlier.read, other, thread.size))
    thread.compared = true;
  else
    thread.decided = true;
}

void BranchedUpdates::check_store(Fiber& fiber, const void* p, Pc pc) {
  Thread& thread = state_of(fiber);
  const ThreadId self = clock_.id(fiber.linear);
  look_at_stored(thread, self);
  if (thread.believed || !thread.place) return;
  if (thread.place != p) return forget(fiber, thread);
  const Update& earlier = thread.earlier;
  const std::uint64_t mask = ~0ull >> (64 - 8 * thread.size);
  std::optional<std::uint64_t> step;
  if (earlier.by.thread && thread.value != earlier.read) step = (thread.value - earlier.read) & mask;
  if (earlier.by.thread && thread.compared && !thread.decided) {
    const bool is_counter = step && earlier.step == step;
    const bool is_lock = thread.value == earlier.read && earlier.stored && *earlier.stored != earlier.read;
    if ((is_counter || is_lock) && reporter_.is_new(pc, earlier.by.pc & ~kPcFlags)) {
      const std::string there = at(user_location(earlier.by.pc & ~kPcFlags));
      reporter_.tell(
          Check::kRacecheck,
          "race on " + reporter_.describe(p) + ": " + reporter_.name_of(earlier.by.thread, clock_) +
              " reads it, decides and writes it too, at " + there +
              ", with no order between the two; this thread would go on with what that one has read, so both may read the "
              "same, and " +
              (is_lock ? "both go on" : "one of the two changes gets lost"),
          is_lock ? "atomicCAS or atomicExch: it looks and takes in one" : "an atomic: it reads and writes in one", &fiber,
          user_location(pc), reporter_.variable_at(p), there);
    }
  }
  {
    std::lock_guard lock(updates().mutex);
    if (std::exchange(updates().launch, clock_.launch()) != clock_.launch()) updates().at.clear();
    updates().at[p] = {{self, clock_.time(), pc | kAtomicPc}, thread.value, std::nullopt, step};
  }
  thread.stored_at = p;
  forget(fiber, thread);
}

void BranchedUpdates::note_fence(const Fiber& fiber) { look_at_stored(state_of(fiber), clock_.id(fiber.linear)); }

void BranchedUpdates::believe(Fiber& fiber) {
  Thread& thread = state_of(fiber);
  look_at_stored(thread, clock_.id(fiber.linear));
  thread.believed = true;
  forget(fiber, thread);
}

}  // namespace interpreter

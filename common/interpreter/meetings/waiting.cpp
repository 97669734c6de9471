#include "common/interpreter/meetings/waiting.h"

#include <time.h>

#include <algorithm>

#include "common/interpreter/checks/two_worlds.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {

std::atomic<unsigned> watched_blocks{0};

namespace {

constexpr unsigned kPollsBeforeYield = 4;
constexpr unsigned kLooksBeforeYield = 64;
// So many repeated windows mean that a thread goes round in circles: more than a loop that shifts a bit through a word has rounds.
constexpr std::uint64_t kCircling = 16;
// The same where that alone is the evidence that a kernel never ends.
constexpr std::uint64_t kCirclingForLong = 256;
// Turns between two looks at the clock, some milliseconds.
constexpr unsigned kTurnsPerLook = 1 << 10;

// Time that this OS thread has computed: a busy machine must not look like an endless loop.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

void Waiting::begin() {
  polled_ = false;
  turns_ = 0;
  started_at_ = cpu_seconds(), watched_since_ = 0;
}

void Waiting::log_is_full(Fiber& fiber, Pc pc) {
  activity_.note_progress();
  const std::uint64_t budget = work_.options().step_budget;
  if (work_.launch->steps.fetch_add(AccessLog::kDepth, std::memory_order_relaxed) > budget)
    reporter_.fail(Check::kEndless, "the kernel made more than " + std::to_string(budget) + " memory accesses",
                   "kernels end; raise Options::step_budget if this one only takes long", &fiber, user_location(pc));
  look_at_the_time();
  if (watched_since_ > 0 && std::min(fiber.trail.repeated_windows(), fiber.trail.plain_windows()) >= kCirclingForLong &&
      cpu_seconds() - watched_since_ > work_.options().hang_seconds / 4)
    reporter_.fail(Check::kEndless,
                   "a thread goes round in circles: for " + std::to_string(fiber.trail.repeated_windows() * Trail::kWindow) +
                       " accesses it has read the same memory at the same lines and compared the same numbers",
                   "kernels end: something that a loop's condition depends on changes", &fiber, user_location(pc),
                   reporter_.variable_at(fiber.accessed));
  scheduler_.wait(fiber, &Scheduler::Warp::log_full);
}

// Others get their turn, in this block and in other ones.
void Waiting::wait_for_others(Fiber& fiber) {
  polled_ = true;
  activity_.note_progress();
  if (work_.launch->steps.fetch_add(1, std::memory_order_relaxed) > work_.options().step_budget)
    reporter_.fail(
        Check::kEndless,
        fiber.polled ? "a thread polls " + reporter_.describe(fiber.polled) + " without end" : "a thread sleeps without end",
        "somebody changes what it waits for", &fiber, user_location(fiber.polled ? fiber.polled_at : fiber.slept_at));
  scheduler_.wait(fiber, &Scheduler::Warp::polling);
}

void Waiting::poll(Fiber& fiber, const void* address, Pc pc) {
  fiber.polls = fiber.polled == address && !fiber.moved_on ? fiber.polls + 1 : 0;
  fiber.polled = address, fiber.polled_at = pc, fiber.moved_on = false;
  // Who looks at several places in turn waits too.
  if (fiber.polls < kPollsBeforeYield && ++fiber.looks < kLooksBeforeYield) return;
  fiber.looks = 0;
  if (fiber.watched && fiber.polls % Trail::kWindow != 0) return;  // sooner done
  wait_for_others(fiber);
}

void Waiting::note_change(Fiber& fiber) {
  fiber.moved_on = true, fiber.looks = 0;  // what it has polled is still the best that a report can say
  activity_.note_change();
}

void Waiting::sleep(Fiber& fiber, Pc pc) {
  const BothWorlds both(worlds_, fiber, WorldEvent::kSleep);
  if (both.repeated()) return;
  if (fiber.watched) fiber.trail.add_access(0, 0, true);
  if (fiber.moved_on) fiber.polled = nullptr;
  fiber.slept_at = pc;
  wait_for_others(fiber);
}

void Waiting::name_a_poller(Diagnosis& d) const {
  for (const Fiber& f : scheduler_.fibers()) {
    if (!scheduler_.is_polling(f) || !(f.polled || f.slept_at)) continue;
    const Location where = user_location(f.polled ? f.polled_at : f.slept_at);
    d.file = where.file, d.line = where.line, d.called_at = where.called_at, d.called_in = where.called_in;
    if (f.polled) d.variable = reporter_.variable_at(f.polled);
    d.block = work_.index, d.thread = f.thread, d.warp = static_cast<int>(f.warp), d.lane = static_cast<int>(f.lane);
    return;
  }
}

// -------------------------------------------------------------------------------------------------- going round in circles
void Waiting::follow(Fiber& fiber, const void* p, Pc pc, bool strong) {
  fiber.trail.add_access(reinterpret_cast<std::uintptr_t>(p), pc, strong);
  fiber.accessed = p;
}

void Waiting::watch() {
  if (watching_) return;
  watching_ = true;
  ++watched_blocks;
  for (Fiber& fiber : scheduler_.fibers()) {
    fiber.watched = fiber.special = true;
    fiber.trail.restart();
  }
}

void Waiting::stop_watching() {
  if (!watching_) return;
  watching_ = false;
  --watched_blocks;
  for (Fiber& fiber : scheduler_.fibers()) fiber.watched = false;
}

void Waiting::look_at_the_time() {
  if (++turns_ % kTurnsPerLook != 0 || runs_for_long()) return;
  const double now = cpu_seconds();
  if (now - started_at_ < work_.options().hang_seconds / 4) return;
  watch();
  watched_since_ = now;
}

bool Waiting::nobody_moves_on() const {
  return std::all_of(scheduler_.fibers().begin(), scheduler_.fibers().end(), [](const Fiber& f) {
    if (f.state != Fiber::State::kRunning) return true;
    // Who goes round in circles with plain accesses alone waits for nobody: that is an endless loop, see log_is_full().
    return f.watched && f.trail.repeated_windows() >= kCircling && f.trail.plain_windows() == 0;
  });
}

}  // namespace interpreter

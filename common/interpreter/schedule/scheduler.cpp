#include "common/interpreter/schedule/scheduler.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/interpreter/memory/stacks.h"
#include "common/interpreter/observe/recorder.h"
#include "common/interpreter/schedule/picking.h"

namespace interpreter {

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;

thread_local constinit Fiber* current_fiber = nullptr;

namespace {

// A warp that filled its log so often without ever waiting may be waiting for somebody else: let others run.
constexpr unsigned kPatience = 1 << 12;

}  // namespace

void Scheduler::begin(const Stacks& stacks, ControlFlow::Path* path, void (*entry)(Transfer)) {
  const LaunchState& launch = *work_.launch;
  const unsigned n = launch.threads;
  fibers_.resize(n);
  warps_.assign((n + 31) / 32, {});
  ready_warps_ = 0;
  live_ = n;
  for (unsigned i = 0; i < n; ++i) {
    Fiber& fiber = fibers_[i];
    fiber.thread = unflatten(i, launch.launch.block);
    fiber.linear = i, fiber.warp = i / 32, fiber.lane = i % 32;
    fiber.state = Fiber::State::kRunning;
    fiber.polled = nullptr, fiber.polls = fiber.looks = 0;
    fiber.watched = fiber.special = fiber.moved_on = false;
    fiber.path = path;
    fiber.way.restart();
    fiber.stack_limit = stacks.limit(i);
    fiber.context = make_fcontext(stacks.top(i), stacks.usable_bytes(), entry);
    warps_[i / 32].ready |= 1u << i % 32;
  }
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    warps_[w].existing = warps_[w].live = warps_[w].ready;
    ready_warps_ |= 1u << w;
  }
  random_ = random_state(launch.options.seed, work_.number);
  next_warp_ = pick(ready_warps_);
}

Scheduler::Stop Scheduler::run() {
  while (Fiber* const fiber = next_fiber(next_warp_)) {
    next_warp_ = fiber->warp;
    resume(context_, *fiber);
    if (stop_ != Stop::kNobodyReady) return stop_;
  }
  return Stop::kNobodyReady;
}

void Scheduler::resume(Context& save, Fiber& to) {
  running_ = &to;
  // Whoever is resumed stores where the one who resumed it stands.
  const Transfer back = jump_fcontext(to.context, &save);
  *static_cast<fcontext_t*>(back.data) = back.fctx;
}

Fiber& Scheduler::arrive(Transfer from) {
  *static_cast<fcontext_t*>(from.data) = from.fctx;
  return *running_;
}

void Scheduler::leave(Stop stop) {
  stop_ = stop;
  fcontext_t dead;
  jump_fcontext(context_, &dead);
  __builtin_unreachable();
}

unsigned Scheduler::pick(std::uint32_t set) { return interpreter::pick(set, work_.options().order, random_); }

// Nobody in the warp can run: looks at its log, and wakes the lanes that waited for that.
void Scheduler::settle(unsigned w) {
  Warp& warp = warps_[w];
  const AccessLog& log = recorder_.log;
  // A plain load at the end of a full log may be the look before an atomicCAS: see Atomics::comparing_lanes(). A store there has
  // not taken place.
  std::uint32_t held = 0;
  for (std::uint32_t rest = warp.log_full; rest; rest &= rest - 1)
    if (log.ends_unfinished(static_cast<unsigned>(std::countr_zero(rest)))) held |= rest & -rest;
  recorder_.drain(w, warp.log_full, held);
  const auto logged = [&](std::uint32_t lanes) {
    std::uint32_t result = 0;
    for (std::uint32_t rest = lanes; rest; rest &= rest - 1) {
      const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
      if (log.count(lane)) result |= 1u << lane;
    }
    return result;
  };
  const std::uint32_t past_fence = warp.at_fence & ~logged(warp.at_fence);
  warp.at_fence &= ~past_fence;
  warp.ready |= past_fence;
  std::uint32_t with_room = 0;
  for (std::uint32_t rest = warp.log_full; rest; rest &= rest - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
    if (log.count(lane) < AccessLog::kDepth) with_room |= 1u << lane;
  }
  warp.log_full &= ~with_room;
  warp.ready |= with_room;
  if (!warp.ready && (warp.log_full | warp.at_fence)) {  // the order is not certain, but somebody has to go on
    recorder_.drain(w, 0, held);
    warp.ready = warp.log_full | warp.at_fence;
    warp.log_full = warp.at_fence = 0;
  }
}

// The next fiber to run: one of the same warp as long as one of its lanes can, for its log and its data are in the cache.
Fiber* Scheduler::next_fiber(unsigned w) {
  for (;;) {
    Warp& warp = warps_[w];
    if (!warp.ready && (warp.log_full | warp.at_fence)) {
      settle(w);
      if (++warp.rounds > kPatience) {
        warp.rounds = 0;
        warp.polling |= std::exchange(warp.ready, 0) | std::exchange(warp.log_full, 0) | std::exchange(warp.at_fence, 0);
      }
    }
    if (warp.ready) return &fibers_[w * 32 + pick(warp.ready)];
    recorder_.drain(w, 0);
    ready_warps_ &= ~(1u << w);
    if (!ready_warps_) return nullptr;
    w = pick(ready_warps_);
  }
}

void Scheduler::switch_away(Fiber& fiber) {
  if (!(warps_[fiber.warp].log_full >> fiber.lane & 1)) recorder_.log.read_stored(fiber.lane);
  Fiber* const next = next_fiber(fiber.warp);
  if (work_.has_failed()) leave(Stop::kFailed);
  if (next == &fiber) return;
  if (next) {
    resume(fiber.context, *next);
  } else {
    stop_ = Stop::kNobodyReady;
    const Transfer back = jump_fcontext(context_, &fiber.context);
    *static_cast<fcontext_t*>(back.data) = back.fctx;
  }
}

void Scheduler::wait(Fiber& fiber, std::uint32_t Warp::*set) {
  park(fiber);
  warps_[fiber.warp].*set |= 1u << fiber.lane;
  switch_away(fiber);
}

void Scheduler::wait_in_family(Fiber& fiber, const char* instruction, Pc pc) {
  warp(fiber).rounds = 0;
  fiber.state = Fiber::State::kInFamily;
  fiber.waits_in = instruction, fiber.waits_at_pc = pc;
  park(fiber);
  switch_away(fiber);
}

void Scheduler::wake_in_family(Fiber& fiber) {
  fiber.state = Fiber::State::kRunning;
  wake(fiber.warp, 1u << fiber.lane);
}

void Scheduler::wake(unsigned w, std::uint32_t lanes) {
  warps_[w].ready |= lanes;
  ready_warps_ |= 1u << w;
}

bool Scheduler::anybody_polls() const {
  return std::any_of(warps_.begin(), warps_.end(), [](const Warp& w) { return w.polling != 0; });
}

void Scheduler::wake_polling() {
  for (unsigned w = 0; w < warps_.size(); ++w)
    if (warps_[w].polling) wake(w, std::exchange(warps_[w].polling, 0));
}

void Scheduler::retire(Fiber& fiber) {
  fiber.state = Fiber::State::kExited;
  warps_[fiber.warp].live &= ~(1u << fiber.lane);
  park(fiber);
  --live_;
}

void Scheduler::leave_for_next(Fiber& fiber) {
  Fiber* const next = next_fiber(fiber.warp);
  if (work_.has_failed()) leave(Stop::kFailed);
  if (!next) leave(Stop::kNobodyReady);
  fcontext_t dead;
  running_ = next;
  jump_fcontext(next->context, &dead);
  __builtin_unreachable();
}

}  // namespace interpreter

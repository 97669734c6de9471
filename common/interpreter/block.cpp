#include "common/interpreter/block.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "common/interpreter/block_parts.h"

namespace interpreter {

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

thread_local constinit Fiber* current_fiber = nullptr;
thread_local constinit Block* current_block = nullptr;
std::atomic<unsigned> watched_blocks{0};

namespace {

// A warp that filled its log so often without ever waiting may be waiting for somebody else: let others run.
constexpr unsigned kPatience = 1 << 12;
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
// At the end of each stack, for the interpreter's own calls: a kernel that needs more must not take them by surprise.
constexpr std::size_t kStackReserve = 16 * 1024;
// Guard pages split the stacks' mapping in two each, and a process may have 65,530 mappings.
constexpr std::size_t kMaxGuardPages = 24'000;
std::atomic<std::size_t> guard_pages{0};

// SplitMix64's: neighbouring numbers become unlike.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

}  // namespace

// --------------------------------------------------------------------------------------------------------------- block
Block::Block() {
  arena_ = static_cast<char*>(reserve(kArenaBytes + 1024));
  arena_ += -reinterpret_cast<std::uintptr_t>(arena_) & 1023;
  arena_shadow_ = std::make_unique<ShadowedRange>(arena_, kArenaBytes);
  const Range tls = calling_thread_tls();
  tls_begin_ = tls.begin;
  tls_bytes_ = static_cast<std::size_t>(tls.end - tls.begin);
  if (tls_bytes_) tls_shadow_ = std::make_unique<ShadowedRange>(tls_begin_, tls_bytes_);
  static_variable_at_.assign(tls_bytes_, 0);
  for (const SharedVariable& variable : shared_variables()) {
    static_variables_.push_back({static_cast<std::uint32_t>(variable.offset + variable.bytes), 0});
    for (std::size_t i = 0; i < variable.bytes && variable.offset + i < tls_bytes_; ++i)
      static_variable_at_[variable.offset + i] = static_cast<std::uint16_t>(static_variables_.size());
  }
  for (const SharedVariable& variable : shared_variables())
    std::memset(const_cast<char*>(tls_begin_) + variable.offset, 0xff, variable.bytes);  // NaN
  for (const SharedVariable& guard : construction_guards())
    for (std::size_t i = 0; i < guard.bytes && guard.offset + i < tls_bytes_; ++i) static_variable_at_[guard.offset + i] = kGuard;
  arena_initialised_.resize(kArenaBytes);
  tls_initialised_.resize(tls_bytes_);
}

void Block::drop_stacks() {
  if (stacks_) munmap(stacks_, stack_count_ * stack_bytes_);
  stacks_ = nullptr;
  guard_pages -= std::exchange(guarded_, 0);
}

Block::~Block() {
  drop_stacks();
  const std::size_t padding = reinterpret_cast<std::uintptr_t>(arena_) % kPage;
  munmap(arena_ - padding, kArenaBytes + 1024);
}

void Block::start(std::uint64_t index) {
  const LaunchState& launch = *launch_;
  const unsigned n = launch.threads;
  block_index_ = unflatten(index, launch.launch.grid);

  const std::size_t stack_bytes = (launch.options.stack_bytes + kStackReserve + 3 * kPage - 1) / kPage * kPage;
  if (stack_count_ < n || stack_bytes_ != stack_bytes) {
    drop_stacks();
    stack_bytes_ = stack_bytes, stack_count_ = n;
    stacks_ = static_cast<char*>(reserve(n * stack_bytes));
    guarded_ = n;
    if ((guard_pages += n) <= kMaxGuardPages)
      for (unsigned i = 0; i < n; ++i) mprotect(stacks_ + i * stack_bytes, kPage, PROT_NONE);
  }

  flow_ = &flows_[launch.launch.kernel];
  fibers_.resize(n);
  warps_.resize((n + 31) / 32);
  for (Warp& warp : warps_) {
    warp.looking = 0;
    warp.existing = warp.live = warp.ready = warp.log_full = warp.at_fence = warp.polling = 0;
    warp.rounds = 0;
    warp.collectives.clear();
  }
  ready_warps_ = 0;
  live_ = n, at_barrier_ = 0;
  polled_ = false;
  comparing_ = 0;
  undefined_values_about_ = false;
  turns_ = 0;
  started_at_ = cpu_seconds(), watched_since_ = 0;
  for (unsigned i = 0; i < n; ++i) {
    Fiber& fiber = fibers_[i];
    fiber.thread = unflatten(i, launch.launch.block);
    fiber.linear = i, fiber.warp = i / 32, fiber.lane = i % 32;
    fiber.state = Fiber::State::kRunning;
    fiber.polled = nullptr, fiber.polls = fiber.looks = 0;
    fiber.watched = fiber.special = false;
    fiber.last_shuffle = {};
    fiber.looks_before_store = 0, fiber.has_looked = false;
    fiber.stored = nullptr;
    fiber.compares_at = nullptr;
    fiber.path = flow_->entry();
    fiber.bad_index.reset();
    fiber.stack_limit = stacks_ + i * stack_bytes_ + kPage + kStackReserve;
    fiber.volatile_reads.clear();
    fiber.copies.clear();
    fiber.copy_groups = 0;
    // If all stacks began at the same offset in a page, their tops would compete for the same few lines of the L1 cache.
    char* const top = stacks_ + (i + 1) * stack_bytes_ - 192 * i % kPage;
    fiber.context = make_fcontext(top, stack_bytes_ - 2 * kPage, &Block::enter);
    warps_[i / 32].ready |= 1u << i % 32;
  }
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    warps_[w].existing = warps_[w].live = warps_[w].ready;
    ready_warps_ |= 1u << w;
  }

  forget_copies();
  if (clock_.launch() != launch_of(make_thread_id(launch.number, 0, 0))) noted_.clear();
  uninitialised_.reset();
  ++block_serial_;
  // Not at the variable's first access: writes that the hooks do not see may come before that.
  for (const unsigned index : touched_) {
    const SharedVariable& variable = shared_variables()[index];
    std::memset(const_cast<char*>(tls_begin_) + variable.offset, 0xff, variable.bytes);
  }
  touched_.clear();
  static_shared_bytes = 0;
  dynamic_bytes_ = launch.launch.dynamic_shared_bytes;
  std::memset(arena_, 0xff, dynamic_bytes_);  // NaN
  log_.clear();
  clock_.begin(launch.number, index, n);
  random_ = mix(launch.options.seed + 0x9e3779b97f4a7c15ull * (index + 1)) | 1;
  if (launch.options.racecheck) arena_shadow_->clear(dynamic_bytes_);
  if (launch.options.initcheck) arena_initialised_.clear(0, dynamic_bytes_);
  l2_trace.clear();
  packed_.clear();
  if (launch.options.l2_model) {
    if (!l1_) l1_ = std::make_unique<L1Model>();
    l1_->reset(launch.gpu.l1_per_sm - std::min(launch.gpu.l1_per_sm / 2, dynamic_bytes_));
  }
}

void Block::run(LaunchState& launch, std::uint64_t index, Yield yield, void* yield_context) {
  launch_ = &launch, yield_ = yield, yield_context_ = yield_context;
  current_block = this;
  start(index);
  unsigned first = pick(ready_warps_);
  if (setjmp(after_signal_) != 0) {  // a signal handler gave up the block
    report(std::move(signal_diagnosis_));
    return;
  }
  for (;;) {
    Fiber* fiber = next_fiber(first);
    if (!fiber) {
      // Barriers that can complete have completed; only polling threads could still bring something new.
      const bool polling = std::any_of(warps_.begin(), warps_.end(), [](const Warp& w) { return w.polling != 0; });
      if (polling) {
        look_at_the_time();
        if (polled_ || runs_for_long()) yield_(yield_context_);  // who runs for long may wait in a way that does not show
        if (launch_->failed) return;
        wake_polling();
        continue;
      }
      Diagnosis d;
      d.check = Check::kSynccheck;
      d.what = "deadlock: " + who_waits_where();
      d.expected = "every thread of a barrier, and every lane of a collective's mask, arrives";
      for (const Fiber& f : fibers_)
        if (f.state == Fiber::State::kInCollective || f.state == Fiber::State::kAtBarrier) {
          const Location where = place_of(f);
          d.file = where.file, d.line = where.line;
          d.thread = f.thread, d.warp = static_cast<int>(f.warp), d.lane = static_cast<int>(f.lane);
          if (f.state == Fiber::State::kInCollective) break;  // the narrower place is the more telling one
        }
      d.kernel = launch_->kernel_name();
      d.block = block_index_;
      report(std::move(d));
      return;
    }
    first = fiber->warp;
    resume(scheduler_, *fiber);
    if (stop_ != Stop::kNobodyReady) break;
  }
  if (stop_ == Stop::kFinished && uninitialised_) launch_->fail(*uninitialised_);
  current_block = nullptr;
}

// ---------------------------------------------------------------------------------------------------------- scheduling
void Block::resume(fcontext_t& save, Fiber& to) {
  running_ = &to;
  // Whoever is resumed stores where the one who resumed it stands.
  const transfer_t back = jump_fcontext(to.context, &save);
  *static_cast<fcontext_t*>(back.data) = back.fctx;
}

void Block::enter(transfer_t from) {
  *static_cast<fcontext_t*>(from.data) = from.fctx;
  Block& block = *current_block;
  Fiber& self = *block.running_;
  std::string uncaught;  // fibers must not be switched inside a handler, so the report is made after it
  // From the handlers on, this is the interpreter again: what std::string does is not the kernel's.
  current_fiber = &self;
  try {
    block.launch_->launch.invoke(block.launch_->launch.closure);
  } catch (const std::exception& e) {
    current_fiber = nullptr;
    uncaught = std::string("uncaught exception: ") + e.what();
  } catch (...) {
    current_fiber = nullptr;
    uncaught = "uncaught exception";
  }
  current_fiber = nullptr;
  if (!uncaught.empty()) block.fail(Check::kException, uncaught, "kernels end without an exception", &self, {});
  block.exit(self);
}

void Block::leave(Stop stop) {
  stop_ = stop;
  fcontext_t dead;
  jump_fcontext(scheduler_, &dead);
  __builtin_unreachable();
}

unsigned Block::pick(std::uint32_t set) {
  switch (launch_->options.order) {
    case Order::kForward: return static_cast<unsigned>(std::countr_zero(set));
    case Order::kReverse: return 31 - static_cast<unsigned>(std::countl_zero(set));
    case Order::kRandom: break;
  }
  random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
  const unsigned turn = random_ >> 32 & 31;
  return (static_cast<unsigned>(std::countr_zero(std::rotr(set, static_cast<int>(turn)))) + turn) & 31;
}

// Nobody in the warp can run: looks at its log, and wakes the lanes that waited for that.
void Block::settle(unsigned w) {
  Warp& warp = warps_[w];
  // A plain load at the end of a full log may be the look before an atomicCAS: see comparing_lanes().
  std::uint32_t held = 0;
  for (std::uint32_t rest = warp.log_full; rest; rest &= rest - 1)
    if (log_.ends_in_plain_load(static_cast<unsigned>(std::countr_zero(rest)))) held |= rest & -rest;
  drain(w, warp.log_full, held);
  const auto logged = [&](std::uint32_t lanes) {
    std::uint32_t result = 0;
    for (std::uint32_t rest = lanes; rest; rest &= rest - 1) {
      const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
      if (log_.count(lane)) result |= 1u << lane;
    }
    return result;
  };
  const std::uint32_t past_fence = warp.at_fence & ~logged(warp.at_fence);
  warp.at_fence &= ~past_fence;
  warp.ready |= past_fence;
  std::uint32_t with_room = 0;
  for (std::uint32_t rest = warp.log_full; rest; rest &= rest - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
    if (log_.count(lane) < AccessLog::kDepth) with_room |= 1u << lane;
  }
  warp.log_full &= ~with_room;
  warp.ready |= with_room;
  if (!warp.ready && (warp.log_full | warp.at_fence)) {  // the order is not certain, but somebody has to go on
    drain(w, 0, held);
    warp.ready = warp.log_full | warp.at_fence;
    warp.log_full = warp.at_fence = 0;
  }
}

// The next fiber to run: one of the same warp as long as one of its lanes can, for its log and its data are in the cache.
Fiber* Block::next_fiber(unsigned w) {
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
    drain(w, 0);
    ready_warps_ &= ~(1u << w);
    if (!ready_warps_) return nullptr;
    w = pick(ready_warps_);
  }
}

void Block::switch_away(Fiber& fiber) {
  Fiber* const next = next_fiber(fiber.warp);
  if (launch_->failed.load(std::memory_order_relaxed)) leave(Stop::kFailed);
  if (next == &fiber) return;
  if (next) {
    resume(fiber.context, *next);
  } else {
    stop_ = Stop::kNobodyReady;
    const transfer_t back = jump_fcontext(scheduler_, &fiber.context);
    *static_cast<fcontext_t*>(back.data) = back.fctx;
  }
}

bool Block::wake_polling() {
  bool any = false;
  for (std::size_t w = 0; w < warps_.size(); ++w)
    if (warps_[w].polling) {
      warps_[w].ready |= std::exchange(warps_[w].polling, 0);
      ready_warps_ |= 1u << w;
      any = true;
    }
  return any;
}

void Block::log_is_full(Fiber& fiber, Pc pc) {
  progress_.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t budget = launch_->options.step_budget;
  if (launch_->steps.fetch_add(AccessLog::kDepth, std::memory_order_relaxed) > budget)
    fail(Check::kEndless, "the kernel made more than " + std::to_string(budget) + " memory accesses",
         "kernels end; raise Options::step_budget if this one only takes long", &fiber, user_location(pc));
  look_at_the_time();
  if (watched_since_ > 0 && std::min(fiber.trail.repeated_windows(), fiber.trail.plain_windows()) >= kCirclingForLong &&
      cpu_seconds() - watched_since_ > launch_->options.hang_seconds / 4)
    fail(Check::kEndless,
         "a thread goes round in circles: for " + std::to_string(fiber.trail.repeated_windows() * Trail::kWindow) +
             " accesses it has read the same memory at the same lines and compared the same numbers",
         "kernels end: something that a loop's condition depends on changes", &fiber, user_location(pc),
         variable_at(fiber.accessed));
  Warp& warp = warps_[fiber.warp];
  warp.ready &= ~(1u << fiber.lane);
  warp.log_full |= 1u << fiber.lane;
  switch_away(fiber);
}

void Block::observe_special(Fiber& fiber, const void* p, unsigned size, Op op, bool strong, const void* return_address) {
  if (fiber.bad_index) report_bad_index(fiber, p);
  if (fiber.stored) check_last_store(fiber);
  const bool local = static_cast<std::size_t>(static_cast<const char*>(p) - stacks_) < stack_count_ * stack_bytes_;
  if (op == Op::kStore && size == fiber.last_shuffle.size && !local) fiber.stored = p;
  if (fiber.watched) {
    fiber.trail.add_access(reinterpret_cast<std::uintptr_t>(p), to_pc(return_address), strong);
    fiber.accessed = p;
  }
}

// The fiber has made its last access for now.
void Block::before_waiting(Fiber& fiber) {
  if (fiber.bad_index) report_bad_index(fiber, nullptr);
  if (fiber.stored) check_last_store(fiber);
}

// Lets the rest of the warp catch up and the log be looked at: what was done so far belongs to the time before.
void Block::rendezvous(Fiber& fiber) {
  Warp& warp = warps_[fiber.warp];
  warp.ready &= ~(1u << fiber.lane);
  warp.at_fence |= 1u << fiber.lane;
  switch_away(fiber);
}

// Others get their turn, in this block and in other ones.
void Block::wait_for_others(Fiber& fiber) {
  polled_ = true;
  progress_.fetch_add(1, std::memory_order_relaxed);
  if (launch_->steps.fetch_add(1, std::memory_order_relaxed) > launch_->options.step_budget)
    fail(Check::kEndless,
         fiber.polled ? "a thread polls " + describe(fiber.polled) + " without end" : "a thread sleeps without end",
         "somebody changes what it waits for", &fiber, user_location(fiber.polled_at));
  Warp& warp = warps_[fiber.warp];
  warp.ready &= ~(1u << fiber.lane);
  warp.polling |= 1u << fiber.lane;
  switch_away(fiber);
}

void Block::poll(Fiber& fiber, const void* address, Pc pc) {
  fiber.polls = fiber.polled == address ? fiber.polls + 1 : 0;
  fiber.polled = address, fiber.polled_at = pc;
  // Who looks at several places in turn waits too.
  if (fiber.polls < kPollsBeforeYield && ++fiber.looks < kLooksBeforeYield) return;
  fiber.looks = 0;
  if (fiber.watched && fiber.polls % Trail::kWindow != 0) return;  // sooner done
  wait_for_others(fiber);
}

void Block::sleep(Fiber& fiber) {
  if (fiber.watched) fiber.trail.add_access(0, 0, true);
  wait_for_others(fiber);
}

// -------------------------------------------------------------------------------------------------- going round in circles
void Block::watch() {
  if (watching_) return;
  watching_ = true;
  ++watched_blocks;
  for (Fiber& fiber : fibers_) {
    fiber.watched = fiber.special = true;
    fiber.trail.restart();
  }
}

void Block::stop_watching() {
  if (!watching_) return;
  watching_ = false;
  --watched_blocks;
  for (Fiber& fiber : fibers_) fiber.watched = false;
}

void Block::look_at_the_time() {
  if (++turns_ % kTurnsPerLook != 0 || runs_for_long()) return;
  const double now = cpu_seconds();
  if (now - started_at_ < launch_->options.hang_seconds / 4) return;
  watch();
  watched_since_ = now;
}

bool Block::nobody_moves_on() const {
  return std::all_of(fibers_.begin(), fibers_.end(), [](const Fiber& f) {
    if (f.state != Fiber::State::kRunning) return true;
    // Who goes round in circles with plain accesses alone waits for nobody: that is an endless loop, see log_is_full().
    return f.watched && f.trail.repeated_windows() >= kCircling && f.trail.plain_windows() == 0;
  });
}

void Block::exit(Fiber& self) {
  before_waiting(self);
  Warp& warp = warps_[self.warp];
  const std::uint32_t bit = 1u << self.lane;
  self.state = Fiber::State::kExited;
  warp.live &= ~bit, warp.ready &= ~bit;
  // Threads that have exited are not waited for (CUDA C++ Programming Guide, "Warp Shuffle Functions", "Synchronization
  // Functions").
  for (std::size_t i = 0; i < warp.collectives.size();)
    if ((warp.collectives[i].mask & warp.live & ~warp.collectives[i].arrived) == 0)
      complete(warp, i);
    else
      ++i;
  if (--live_ == 0) {
    drain(self.warp, 0);
    launch_->steps += 1;
    changes_.fetch_add(1, std::memory_order_relaxed);
    leave(Stop::kFinished);
  }
  if (at_barrier_ == live_) release_barrier();
  Fiber* const next = next_fiber(self.warp);
  if (launch_->failed.load(std::memory_order_relaxed)) leave(Stop::kFailed);
  if (!next) leave(Stop::kNobodyReady);
  fcontext_t dead;
  running_ = next;
  jump_fcontext(next->context, &dead);
  __builtin_unreachable();
}

// --------------------------------------------------------------------------------------------- barriers and collectives
void Block::collective(Fiber& fiber, const char* name, unsigned mask, void* argument, Combine combine, Site site) {
  meet(fiber, name, mask, argument, combine, site, 0);
}

void Block::instruction_of_warp(Fiber& fiber, const char* name, void* argument, Combine combine, Pc pc) {
  meet(fiber, name, 0xffffffffu, argument, combine, {}, pc);
}

void Block::meet(Fiber& fiber, const char* name, unsigned mask, void* argument, Combine combine, Site site, Pc pc) {
  before_waiting(fiber);
  Warp& warp = warps_[fiber.warp];
  const std::uint32_t bit = 1u << fiber.lane;
  progress_.fetch_add(1, std::memory_order_relaxed);
  warp.rounds = 0;
  if (!(mask & bit))
    fail(Check::kSynccheck, std::string(name) + " with mask " + hex(mask) + ", which does not name the calling lane",
         "every calling lane is in its own mask", &fiber, {site.file, site.line});
  // Lanes meet where mask and operation agree; whether all come is seen when nobody can go on.
  std::size_t i = 0;
  while (i < warp.collectives.size() &&
         !(warp.collectives[i].mask == mask && warp.collectives[i].combine == combine && !(warp.collectives[i].arrived & bit)))
    ++i;
  if (i == warp.collectives.size()) warp.collectives.push_back({mask, 0, name, combine, pc});
  Collective& group = warp.collectives[i];
  // The compiler may have made several machine instructions of one in the source.
  if (pc != group.pc) [[unlikely]]
    if (const Location here = user_location(pc), there = user_location(group.pc); !(here == there))
      fail(Check::kSynccheck,
           std::string("divergent ") + name + ": lanes " + hex(group.arrived) + " of the warp execute the one at " + at(there) +
               ", this lane the one at " + at(here),
           "all 32 lanes of a warp execute the same " + std::string(name) + " together", &fiber, here);
  group.arrived |= bit;
  warp.arguments[fiber.lane] = argument;
  if ((mask & warp.live & ~group.arrived) == 0) {
    complete(warp, i);
    return;
  }
  fiber.state = Fiber::State::kInCollective;
  fiber.waits_in = name, fiber.waits_at = site, fiber.waits_at_pc = pc;
  warp.ready &= ~bit;
  switch_away(fiber);
}

void Block::complete(Warp& warp, std::size_t index) {
  const Collective group = warp.collectives[index];
  warp.collectives.erase(warp.collectives.begin() + static_cast<std::ptrdiff_t>(index));
  const unsigned w = static_cast<unsigned>(&warp - warps_.data());
  if (group.pc && group.arrived != 0xffffffffu)
    fail(Check::kSynccheck,
         std::string(group.name) + " by lanes " + hex(group.arrived) + " of the warp alone: the others have exited or do not exist",
         "all 32 lanes of a warp execute " + std::string(group.name) + " together",
         &fibers_[w * 32 + static_cast<unsigned>(std::countr_zero(group.arrived))], user_location(group.pc));
  if (group.combine) {
    completing_warp_ = w, completing_mask_ = group.mask;
    group.combine(warp.arguments, group.arrived);
  } else {  // __syncwarp: time passes, so what was done before it has to be seen now
    drain(w, 0);
    clock_.warp_barrier(w, group.mask);
  }
  warp.ready |= group.arrived;
  ready_warps_ |= 1u << w;
  for (std::uint32_t rest = group.arrived; rest; rest &= rest - 1)
    fibers_[w * 32 + static_cast<unsigned>(std::countr_zero(rest))].state = Fiber::State::kRunning;
}

void Block::warp_barrier(Fiber& fiber, unsigned mask, Site site) { collective(fiber, "__syncwarp", mask, nullptr, nullptr, site); }

int Block::barrier(Fiber& fiber, Reduction reduction, bool predicate, Site site, Pc pc) {
  before_waiting(fiber);
  Warp& warp = warps_[fiber.warp];
  progress_.fetch_add(1, std::memory_order_relaxed);
  warp.rounds = 0;
  fiber.state = Fiber::State::kAtBarrier;
  fiber.waits_in = "__syncthreads", fiber.waits_at = site, fiber.waits_at_pc = 0;
  fiber.predicate = predicate, fiber.barrier_pc = pc;
  barrier_reduction_ = reduction;
  warp.ready &= ~(1u << fiber.lane);
  if (++at_barrier_ == live_) release_barrier();
  switch_away(fiber);
  return barrier_result_;
}

// A barrier in a function is another one for each place that calls it. A compiler may also have made several of one.
void Block::require_same_call(const Fiber& first, const Fiber& fiber) {
  if (same_calls_.contains({first.barrier_pc, fiber.barrier_pc})) return;
  const auto [there, here] = where_calls_differ(first.barrier_pc, fiber.barrier_pc);
  if (there == here) {
    same_calls_.insert({first.barrier_pc, fiber.barrier_pc});
    return;
  }
  fail(Check::kSynccheck,
       "divergent barrier: the __syncthreads at " + at({fiber.waits_at.file, fiber.waits_at.line}) + " is reached by thread " +
           to_text(first.thread) + " through the call at " + at(there) +
           (there.line == here.line ? " (another one in the same line)" : "") + ", by thread " + to_text(fiber.thread) +
           " through the one at " + at(here),
       "all threads of the block reach the same __syncthreads() by the same calls", &fiber, here);
}

void Block::release_barrier() {
  const Fiber* first = nullptr;
  int count = 0;
  for (Fiber& fiber : fibers_) {
    if (fiber.state != Fiber::State::kAtBarrier) continue;
    if (!first) first = &fiber;
    if (fiber.waits_at.line != first->waits_at.line || std::strcmp(fiber.waits_at.file, first->waits_at.file) != 0)
      fail(Check::kSynccheck,
           "divergent barrier: thread " + to_text(first->thread) + " waits at " + first->waits_at.file + ":" +
               std::to_string(first->waits_at.line) + ", thread " + to_text(fiber.thread) + " at " + fiber.waits_at.file + ":" +
               std::to_string(fiber.waits_at.line),
           "all threads of the block reach the same __syncthreads()", &fiber, {fiber.waits_at.file, fiber.waits_at.line});
    if (fiber.barrier_pc != first->barrier_pc) require_same_call(*first, fiber);
    count += fiber.predicate;
  }
  if (!first) return;
  barrier_result_ = barrier_reduction_ == Reduction::kAnd  ? count == static_cast<int>(live_)
                    : barrier_reduction_ == Reduction::kOr ? count > 0
                                                           : count;
  drain(running_->warp, 0);  // the other warps' accesses were looked at when they stopped
  if (uninitialised_) {
    launch_->fail(*uninitialised_);
    leave(Stop::kFailed);
  }
  for (Fiber& fiber : fibers_) {
    if (!fiber.volatile_reads.empty()) acquire_volatile_reads(fiber);
    fiber.looks_before_store = 0, fiber.has_looked = false;
    if (fiber.state != Fiber::State::kAtBarrier) continue;
    fiber.state = Fiber::State::kRunning;
    warps_[fiber.warp].ready |= 1u << fiber.lane;
    ready_warps_ |= 1u << fiber.warp;
  }
  clock_.barrier();
  at_barrier_ = 0;
  changes_.fetch_add(1, std::memory_order_relaxed);
  if (launch_->options.l2_model) l2_trace.push_back(kBarrierMark);
}

Location Block::place_of(const Fiber& fiber) {
  return fiber.waits_at_pc ? user_location(fiber.waits_at_pc) : Location{fiber.waits_at.file, fiber.waits_at.line};
}

std::string Block::who_waits_where() const {
  struct Group {
    std::string where;
    unsigned threads = 0;
    uint3 example{};
  };
  std::vector<Group> groups;
  for (const Fiber& fiber : fibers_) {
    std::string where;
    const Warp& warp = warps_[fiber.warp];
    if (fiber.state == Fiber::State::kExited) continue;
    if (fiber.state == Fiber::State::kRunning) {
      where = "runs";
      if (warp.polling >> fiber.lane & 1)
        where = fiber.polled ? "polls " + describe(fiber.polled) + " at " + at(user_location(fiber.polled_at)) : "sleeps";
    } else {
      where = std::string("waits in ") + fiber.waits_in + " at " + at(place_of(fiber));
      if (fiber.state == Fiber::State::kInCollective)
        for (const Collective& c : warp.collectives)
          if (c.arrived >> fiber.lane & 1) {
            where += " for lanes " + hex(c.mask & warp.live & ~c.arrived) + " of warp " + std::to_string(fiber.warp);
            break;
          }
    }
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.where == where; });
    if (same != groups.end())
      ++same->threads;
    else
      groups.push_back({where, 1, fiber.thread});
  }
  std::string text;
  for (const Group& g : groups) {
    text += (text.empty() ? "" : "; ") +
            std::string(g.threads == 1 ? "thread " : std::to_string(g.threads) + " threads (the first: ") + to_text(g.example) +
            (g.threads == 1 ? " " : ") ") + g.where;
    if (text.size() > 600) return text + " ...";
  }
  return "block " + to_text(block_index_) + ": " + text;
}

void Block::name_a_poller(Diagnosis& d) const {
  for (const Fiber& f : fibers_) {
    if (!(warps_[f.warp].polling >> f.lane & 1) || !f.polled) continue;
    const Location where = user_location(f.polled_at);
    d.file = where.file, d.line = where.line;
    d.variable = variable_at(f.polled);
    d.block = block_index_, d.thread = f.thread, d.warp = static_cast<int>(f.warp), d.lane = static_cast<int>(f.lane);
    return;
  }
}

// --------------------------------------------------------------------------------------------------- fences and atomics
void Block::acquire_volatile_reads(Fiber& fiber) {
  for (const void* address : fiber.volatile_reads) clock_.acquire_from(fiber.linear, address);
  fiber.volatile_reads.clear();
}

void Block::fence(Fiber& fiber, bool whole_gpu) {
  progress_.fetch_add(1, std::memory_order_relaxed);
  rendezvous(fiber);
  if (!launch_->options.racecheck) return;
  acquire_volatile_reads(fiber);
  clock_.fence(fiber.linear, whole_gpu);
}

// What a volatile load observes is learnt at the next fence. It is looked up there, after the load: looking before it could miss
// what another block publishes in between.
void Block::volatile_load(Fiber& fiber, const void* p, Pc pc) {
  if (fiber.volatile_reads.empty() || fiber.volatile_reads.back() != p) {
    if (fiber.volatile_reads.size() > 64) fiber.volatile_reads.erase(fiber.volatile_reads.begin());
    fiber.volatile_reads.push_back(p);
  }
  poll(fiber, p, pc);
}

void Block::volatile_store(Fiber& fiber, const void* p) {
  fiber.polled = nullptr, fiber.looks = 0;
  changes_.fetch_add(1, std::memory_order_relaxed);
  if (launch_->options.racecheck) clock_.release_to(fiber.linear, p, true);
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

void Block::atomic(Fiber& fiber, void* address, unsigned size, void* old_value, bool (*update)(void*, const void*),
                   const void* context, Scope scope, AtomicKind kind, const void* return_address) {
  const bool replaces = kind == AtomicKind::kReplace;
  const Op op =
      scope == Scope::kGpu ? (replaces ? Op::kExchange : Op::kAtomic) : (replaces ? Op::kBlockExchange : Op::kBlockAtomic);
  fiber.has_looked = true;
  if (kind == AtomicKind::kCompare) fiber.compares_at = address, ++comparing_;
  observe(fiber, address, size, op, true, return_address);
  rendezvous(fiber);
  if (kind == AtomicKind::kCompare) fiber.compares_at = nullptr, --comparing_;
  // Whatever racecheck learns of this atomic, it learns in the order in which atomics take place.
  ShadowedRange* range = nullptr;
  std::unique_lock<std::mutex> lock;
  if (launch_->options.racecheck) {
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(address);
    GlobalShadow& global = global_shadow();
    range = arena_shadow_->contains(at)                ? arena_shadow_.get()
            : tls_shadow_ && tls_shadow_->contains(at) ? tls_shadow_.get()
            : global.memory.contains(at)               ? &global.memory
            : global.variables.contains(at)            ? &global.variables
                                                       : nullptr;
    if (range == &global.memory || range == &global.variables) lock = std::unique_lock(global.lock_of(at));
    clock_.release_to(fiber.linear, address, scope == Scope::kGpu);
  }
  const bool changed = size == 1   ? exchange<std::uint8_t>(address, old_value, update, context)
                       : size == 2 ? exchange<std::uint16_t>(address, old_value, update, context)
                       : size == 4 ? exchange<std::uint32_t>(address, old_value, update, context)
                                   : exchange<std::uint64_t>(address, old_value, update, context);
  if (launch_->options.racecheck) clock_.acquire_from(fiber.linear, address);
  if (range)
    note_atomic(*range, clock_, fiber.linear, {fiber.warp, to_pc(return_address), size, true, true, is_block_scope(op)},
                reinterpret_cast<std::uintptr_t>(address));
  if (lock) lock.unlock();  // others may run from here on
  if (changed) {
    fiber.polled = nullptr, fiber.looks = 0;
    changes_.fetch_add(1, std::memory_order_relaxed);
  } else {
    poll(fiber, address, to_pc(return_address));
  }
}

}  // namespace interpreter

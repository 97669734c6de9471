#include "common/interpreter/block.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

namespace interpreter {

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

thread_local constinit Fiber* current_fiber = nullptr;
thread_local constinit Block* current_block = nullptr;

namespace {

constexpr std::size_t kPage = 4096;
// A warp that filled its log so often without ever waiting may be waiting for somebody else: let others run.
constexpr unsigned kPatience = 1 << 12;
constexpr unsigned kPollsBeforeYield = 4;
// At the end of each stack, for the interpreter's own calls: a kernel that needs more must not take them by surprise.
constexpr std::size_t kStackReserve = 16 * 1024;
// Guard pages split the stacks' mapping in two each, and a process may have 65,530 mappings.
constexpr std::size_t kMaxGuardPages = 24'000;
std::atomic<std::size_t> guard_pages{0};

// What happened to global memory, shared by all blocks. A stripe's lock guards the cells of some 4 KB ranges.
struct GlobalShadow {
  ShadowedRange memory{GlobalMemory::instance().base(), GlobalMemory::kBytes};
  ShadowedRange variables{interpreter::variables().begin,
                          static_cast<std::size_t>(interpreter::variables().end - interpreter::variables().begin)};
  static constexpr std::size_t kStripes = 256;
  std::mutex locks[kStripes];

  std::mutex& lock_of(std::uintptr_t address) { return locks[address / kPage % kStripes]; }
};
GlobalShadow& global_shadow() {
  static GlobalShadow& shadow = *new GlobalShadow;
  return shadow;
}

bool inside(const void* p, const Range& range) { return p >= range.begin && p < range.end; }

std::string at(const Location& l) { return l.file.empty() ? "an unknown line" : l.file + ":" + std::to_string(l.line); }

std::string to_text(uint3 i) { return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")"; }

std::string hex(unsigned x) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", x);
  return text;
}

// SplitMix64's: neighbouring numbers become unlike.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

uint3 unflatten(std::uint64_t linear, dim3 shape) {
  return {static_cast<unsigned>(linear % shape.x), static_cast<unsigned>(linear / shape.x % shape.y),
          static_cast<unsigned>(linear / shape.x / shape.y)};
}

Diagnosis diagnose(Check check, std::string what, std::string expected, const Fiber* fiber, const Location& where,
                   const Block& block) {
  Diagnosis d;
  d.check = check;
  d.what = std::move(what), d.expected = std::move(expected);
  d.file = where.file, d.line = where.line;
  d.kernel = block.launch().kernel_name();
  d.block = block.index();
  if (fiber) d.thread = fiber->thread, d.warp = static_cast<int>(fiber->warp), d.lane = static_cast<int>(fiber->lane);
  return d;
}

}  // namespace

// ------------------------------------------------------------------------------------------------------------ L1 model
// What the L2 model needs to see: the sectors that a block's loads miss in the L1 cache. Blocks share an SM's L1 on a GPU; here
// each has one of its own, without what others left in it.
struct Block::L1Model {
  static constexpr unsigned kWays = 4;
  std::vector<std::uint64_t> tags;
  std::size_t sets = 0;

  void reset(std::size_t bytes) {
    sets = std::max<std::size_t>(1, bytes / 32 / kWays);
    tags.assign(sets * kWays, ~0ull);
  }
  bool hit(std::uint64_t sector) {
    std::uint64_t* set = &tags[(sector * 0x9e3779b97f4a7c15ull >> 20) % sets * kWays];
    unsigned way = 0;
    while (way < kWays - 1 && set[way] != sector) ++way;
    const bool found = set[way] == sector;
    std::copy_backward(set, set + way, set + way + 1);
    set[0] = sector;
    return found;
  }
};

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
    warp.existing = warp.live = warp.ready = warp.log_full = warp.at_fence = warp.polling = 0;
    warp.rounds = 0;
    warp.collectives.clear();
  }
  ready_warps_ = 0;
  live_ = n, at_barrier_ = 0;
  polled_ = false;
  for (unsigned i = 0; i < n; ++i) {
    Fiber& fiber = fibers_[i];
    fiber.thread = unflatten(i, launch.launch.block);
    fiber.linear = i, fiber.warp = i / 32, fiber.lane = i % 32;
    fiber.state = Fiber::State::kRunning;
    fiber.polled = nullptr, fiber.polls = 0;
    fiber.path = flow_->entry();
    fiber.bad_index.reset();
    fiber.stack_limit = stacks_ + i * stack_bytes_ + kPage + kStackReserve;
    fiber.volatile_reads.clear();
    // If all stacks began at the same offset in a page, their tops would compete for the same few lines of the L1 cache.
    char* const top = stacks_ + (i + 1) * stack_bytes_ - 192 * i % kPage;
    fiber.context = make_fcontext(top, stack_bytes_ - 2 * kPage, &Block::enter);
    warps_[i / 32].ready |= 1u << i % 32;
  }
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    warps_[w].existing = warps_[w].live = warps_[w].ready;
    ready_warps_ |= 1u << w;
  }

  uninitialised_.reset();
  ++block_serial_;
  static_shared_bytes = 0;
  dynamic_bytes_ = launch.launch.dynamic_shared_bytes;
  std::memset(arena_, 0xff, dynamic_bytes_);  // NaN
  log_.clear();
  clock_.begin(launch.number, index, n);
  random_ = mix(launch.options.seed + 0x9e3779b97f4a7c15ull * (index + 1)) | 1;
  if (launch.options.racecheck) arena_shadow_->clear(dynamic_bytes_);
  if (launch.options.initcheck) arena_initialised_.clear(0, dynamic_bytes_);
  l2_trace.clear();
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
        if (polled_) yield_(yield_context_);
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
          d.file = f.waits_at.file, d.line = f.waits_at.line;
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
  drain(w, warp.log_full);
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
    drain(w, 0);
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
  Warp& warp = warps_[fiber.warp];
  warp.ready &= ~(1u << fiber.lane);
  warp.log_full |= 1u << fiber.lane;
  switch_away(fiber);
}

// Lets the rest of the warp catch up and the log be looked at: what was done so far belongs to the time before.
void Block::rendezvous(Fiber& fiber) {
  Warp& warp = warps_[fiber.warp];
  warp.ready &= ~(1u << fiber.lane);
  warp.at_fence |= 1u << fiber.lane;
  switch_away(fiber);
}

void Block::poll(Fiber& fiber, const void* address, Pc pc) {
  fiber.polls = fiber.polled == address ? fiber.polls + 1 : 0;
  fiber.polled = address, fiber.polled_at = pc;
  if (fiber.polls < kPollsBeforeYield) return;
  polled_ = true;
  progress_.fetch_add(1, std::memory_order_relaxed);
  if (launch_->steps.fetch_add(1, std::memory_order_relaxed) > launch_->options.step_budget)
    fail(Check::kEndless, "a thread polls " + describe(address) + " without end", "somebody changes what it waits for", &fiber,
         user_location(pc));
  Warp& warp = warps_[fiber.warp];
  warp.ready &= ~(1u << fiber.lane);
  warp.polling |= 1u << fiber.lane;
  switch_away(fiber);
}

void Block::exit(Fiber& self) {
  if (self.bad_index) report_bad_index(self, nullptr);
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
  if (fiber.bad_index) report_bad_index(fiber, nullptr);
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
  if (i == warp.collectives.size()) warp.collectives.push_back({mask, 0, name, combine});
  Collective& group = warp.collectives[i];
  group.arrived |= bit;
  warp.arguments[fiber.lane] = argument;
  if ((mask & warp.live & ~group.arrived) == 0) {
    complete(warp, i);
    return;
  }
  fiber.state = Fiber::State::kInCollective;
  fiber.waits_in = name, fiber.waits_at = site;
  warp.ready &= ~bit;
  switch_away(fiber);
}

void Block::complete(Warp& warp, std::size_t index) {
  const Collective group = warp.collectives[index];
  warp.collectives.erase(warp.collectives.begin() + static_cast<std::ptrdiff_t>(index));
  const unsigned w = static_cast<unsigned>(&warp - warps_.data());
  if (group.combine) {
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

int Block::barrier(Fiber& fiber, Reduction reduction, bool predicate, Site site) {
  if (fiber.bad_index) report_bad_index(fiber, nullptr);
  Warp& warp = warps_[fiber.warp];
  progress_.fetch_add(1, std::memory_order_relaxed);
  warp.rounds = 0;
  fiber.state = Fiber::State::kAtBarrier;
  fiber.waits_in = "__syncthreads", fiber.waits_at = site;
  fiber.predicate = predicate;
  barrier_reduction_ = reduction;
  warp.ready &= ~(1u << fiber.lane);
  if (++at_barrier_ == live_) release_barrier();
  switch_away(fiber);
  return barrier_result_;
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
      if (warp.polling >> fiber.lane & 1 && fiber.polled)
        where = fiber.polled_at ? "polls " + describe(fiber.polled) + " at " + at(user_location(fiber.polled_at)) : "sleeps";
    } else {
      where = std::string("waits in ") + fiber.waits_in + " at " + fiber.waits_at.file + ":" + std::to_string(fiber.waits_at.line);
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
    const Location where = f.polled_at ? user_location(f.polled_at) : Location{};
    d.file = where.file, d.line = where.line;
    d.variable = variable_at(f.polled);
    d.block = block_index_, d.thread = f.thread, d.warp = static_cast<int>(f.warp), d.lane = static_cast<int>(f.lane);
    if (f.polled_at) return;  // one that sleeps between two looks says less
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
  fiber.polled = nullptr;
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
                   const void* context, Scope scope, const void* return_address) {
  observe(fiber, address, size, Op::kAtomic, true, return_address);
  rendezvous(fiber);
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
  if (range) note_atomic(*range, clock_, fiber.linear, to_pc(return_address), reinterpret_cast<std::uintptr_t>(address), size);
  if (lock) lock.unlock();  // others may run from here on
  if (changed) {
    fiber.polled = nullptr;
    changes_.fetch_add(1, std::memory_order_relaxed);
  } else {
    poll(fiber, address, to_pc(return_address));
  }
}

// --------------------------------------------------------------------------------------------------------------- checks
void Block::drain(unsigned w, std::uint32_t open) {
  log_.drain(*flow_, open, [&](const Request& request) { on_request(w, request); });
}

void Block::on_request(unsigned w, const Request& request) {
  const Options& options = launch_->options;
  std::uint64_t sectors[64];
  unsigned sector_count = 0;
  if (options.count) counters.count(request, sectors, &sector_count);
  if (options.initcheck) check_initialised(w, request);
  if (options.racecheck) check_races(w, request);
  if (options.l2_model && options.count && !request.shared) trace(request, sectors, sector_count);
}

void Block::trace(const Request& request, const std::uint64_t* sectors, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (request.op != Op::kLoad)
      l2_trace.push_back(sectors[i] | kWriteBit);
    else if (!l1_->hit(sectors[i]))
      l2_trace.push_back(sectors[i]);
  }
}

void Block::check_initialised(unsigned w, const Request& request) {
  const bool writes = request.op == Op::kStore;  // atomics read what they change
  unsigned i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    const std::uintptr_t address = request.addresses[i];
    bool initialised = true;
    if (!request.shared) {
      const std::uintptr_t offset = address - global_begin_;
      if (offset >= GlobalMemory::kBytes) return;  // a __device__ variable: initialised by the language
      if (writes)
        global_.mark_initialised(offset, request.size);
      else
        initialised = global_.granule_initialised(offset) || global_.initialised(offset, request.size);
    } else {
      const bool dynamic = address - reinterpret_cast<std::uintptr_t>(arena_) < kArenaBytes;
      ByteFlags& flags = dynamic ? arena_initialised_ : tls_initialised_;
      const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(dynamic ? arena_ : tls_begin_);
      if (writes)
        flags.set(offset, request.size);
      else
        initialised = flags.all(offset, request.size);
    }
    if (!initialised && !uninitialised_) {
      const Fiber& fiber = fibers_[w * 32 + static_cast<unsigned>(std::countr_zero(rest))];
      const void* p = reinterpret_cast<const void*>(address);
      uninitialised_ =
          diagnose(Check::kInitcheck, "read of " + std::to_string(request.size) + " uninitialised bytes of " + describe(p),
                   "memory is written before it is read", &fiber, user_location(request.pc), *this);
      uninitialised_->variable = variable_at(p);
    }
    if (request.uniform) return;
  }
}

void Block::check_races(unsigned w, const Request& request) {
  const WarpAccess access{w, request.pc, request.size, request.op != Op::kLoad, request.strong};
  GlobalShadow& global = global_shadow();
  std::unique_lock<std::mutex> lock;
  unsigned i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    const std::uintptr_t address = request.addresses[i];
    // One address for all lanes (a broadcast) is one access of them all.
    const std::uint32_t lanes = request.uniform ? request.lanes : rest & -rest;
    Race race;
    if (request.shared) {
      const bool dynamic = address - reinterpret_cast<std::uintptr_t>(arena_) < kArenaBytes;
      race = record_access(dynamic ? *arena_shadow_ : *tls_shadow_, clock_, access, address, lanes);
    } else {
      ShadowedRange& range = global.memory.contains(address) ? global.memory : global.variables;
      if (!access.write && read_is_no_news(range, clock_, address, access.size)) {
        if (request.uniform) return;
        continue;
      }
      std::mutex& mutex = global.lock_of(address);
      if (lock.mutex() != &mutex) {
        if (lock) lock.unlock();
        lock = std::unique_lock(mutex);
      }
      race = record_access(range, clock_, access, address, lanes);
    }
    if (race.earlier.thread) {
      if (lock) lock.unlock();
      const unsigned thread = w * 32 + race.lane, other = thread_of(race.earlier.thread);
      const std::uint64_t other_block = block_of(race.earlier.thread) & ((1ull << 40) - 1);
      const bool same_block = block_of(race.earlier.thread) == clock_.block();
      const void* p = reinterpret_cast<const void*>(race.address);
      const auto verb = [&](bool wrote, bool atomic) { return atomic ? "accessed atomically" : wrote ? "written" : "read"; };
      std::string what = "race on " + describe(p) + ": " + verb(race.earlier_wrote, race.earlier.pc & kAtomicPc) + " by thread " +
                         to_text(unflatten(other, launch_->launch.block));
      if (!same_block) what += " of block " + to_text(unflatten(other_block, launch_->launch.grid));
      what += " at " + at(user_location(race.earlier.pc & ~kAtomicPc)) + ", then " + verb(access.write, access.atomic) +
              " by this thread, with no order between them";
      fail(Check::kRacecheck, what,
           !same_block                 ? "a fence and an atomic on both sides, or separate launches, between the two"
           : other / 32 == thread / 32 ? "__syncwarp() or __syncthreads() between the two"
                                       : "__syncthreads() between the two",
           &fibers_[thread], user_location(request.pc), variable_at(p));
    }
    if (request.uniform) return;
  }
}

// A __shared__ variable. @return whether the access counts as one of shared memory.
bool Block::touch_static(Fiber& fiber, std::uintptr_t address, unsigned size, Op op, const void* return_address) {
  const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(tls_begin_);
  const unsigned index = static_variable_at_[offset];
  if (index == kGuard) return false;
  if (index == 0 || offset + size > static_variables_[index - 1].end) {
    if (launch_->options.memcheck) bad_access(fiber, reinterpret_cast<const void*>(address), size, op, return_address);
    return false;
  }
  StaticVariable& variable = static_variables_[index - 1];
  if (variable.touched_by == block_serial_) return true;
  // The first access of this block: the variable begins to exist.
  variable.touched_by = block_serial_;
  const SharedVariable& named = shared_variables()[index - 1];
  std::memset(const_cast<char*>(tls_begin_) + named.offset, 0xff, named.bytes);
  tls_initialised_.clear(named.offset, named.bytes);
  if (launch_->options.racecheck)
    for (std::size_t i = 0; i < named.bytes; i += 4)
      tls_shadow_->word(reinterpret_cast<std::uintptr_t>(tls_begin_) + named.offset + i) = {};
  static_shared_bytes += named.bytes;
  if (static_shared_bytes > kMaxStaticShared || static_shared_bytes + dynamic_bytes_ > launch_->gpu.shared_per_block)
    fail(Check::kLaunch,
         std::to_string(static_shared_bytes) + " bytes of __shared__ variables and " + std::to_string(dynamic_bytes_) +
             " of dynamic shared memory",
         "at most " + std::to_string(kMaxStaticShared) + " bytes in variables, and " +
             std::to_string(launch_->gpu.shared_per_block) + " together on " + std::string(launch_->gpu.title),
         &fiber, user_location(to_pc(return_address)), named.name);
  return true;
}

// Neither device memory nor shared memory: local memory, arguments, constants, __device__ variables - or nothing a kernel may
// touch.
void Block::observe_elsewhere(Fiber& fiber, const void* p, unsigned size, Op op, const void* return_address) {
  if (static_cast<std::size_t>(static_cast<const char*>(p) - stacks_) < stack_count_ * stack_bytes_) return;
  const char* closure = static_cast<const char*>(launch_->launch.closure);
  if (static_cast<std::size_t>(static_cast<const char*>(p) - closure) < launch_->launch.closure_bytes && op == Op::kLoad) return;
  if (inside(p, constant_memory())) {
    if (op != Op::kLoad && launch_->options.memcheck) bad_access(fiber, p, size, op, return_address);
    return;
  }
  if (inside(p, image()) && !inside(p, variables()) && op == Op::kLoad) return;  // the compiler's own constants
  if (inside(p, variables())) {                                                  // a __device__ variable: global memory
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
    if (address & (size - 1) && launch_->options.memcheck) misaligned(fiber, p, size, op, return_address);
    const Pc pc = to_pc(return_address);
    if (log_.append(fiber.lane, address, size, op, false, op == Op::kAtomic, pc, *std::exchange(fiber.path, fiber.path->restart)))
      log_is_full(fiber, pc);
    return;
  }
  if (launch_->options.memcheck) bad_access(fiber, p, size, op, return_address);
}

void Block::observe_range(Fiber& fiber, const void* p, std::size_t bytes, Op op, const void* return_address) {
  // In the widest pieces that fit everywhere, as nvcc's copies would be: of 12 bytes, three times 4, whatever the address.
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  unsigned size = 16;
  while (bytes % size || address % size) size /= 2;
  for (std::size_t done = 0; done < bytes; done += size)
    observe(fiber, static_cast<const char*>(p) + done, size, op, false, return_address);
}

// -------------------------------------------------------------------------------------------------------------- reports
std::string Block::variable_at(const void* p) const {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  if (address - global_begin_ < GlobalMemory::kBytes) return global_.nearest(p).label;
  if (address - reinterpret_cast<std::uintptr_t>(arena_) < kArenaBytes) return "dynamic shared memory";
  const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(tls_begin_);
  if (offset < tls_bytes_) {
    const SharedVariable* best = nullptr;  // the one that holds it, or the last before it
    for (const SharedVariable& v : shared_variables())
      if (v.offset <= offset) best = &v;
    if (best) return best->name;
  }
  return "";
}

std::string Block::describe(const void* p) const {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  const std::string name = variable_at(p);
  const char* begin = nullptr;
  std::size_t bytes = 0;
  if (address - global_begin_ < GlobalMemory::kBytes) {
    const GlobalMemory::Allocation a = global_.nearest(p);
    if (!a.begin) return "global memory with no allocation";
    begin = a.begin, bytes = a.bytes;
  } else if (address - reinterpret_cast<std::uintptr_t>(arena_) < kArenaBytes) {
    begin = arena_, bytes = dynamic_bytes_;
  } else if (!name.empty()) {
    for (const SharedVariable& v : shared_variables())
      if (v.name == name && v.offset <= address - reinterpret_cast<std::uintptr_t>(tls_begin_))
        begin = tls_begin_ + v.offset, bytes = v.bytes;
  }
  if (!begin) return "address " + std::to_string(address);
  const std::ptrdiff_t offset = static_cast<const char*>(p) - begin;
  return name + " (byte " + std::to_string(offset) + " of " + std::to_string(bytes) + ")";
}

void Block::bad_access(Fiber& fiber, const void* p, unsigned size, Op op, const void* return_address) {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  // A vector that straddles the end because it is misaligned.
  if (address & (size - 1) && address >= kPage) misaligned(fiber, p, size, op, return_address);
  const std::string access = std::string(op == Op::kLoad    ? "read"
                                         : op == Op::kStore ? "write"
                                                            : "atomic") +
                             " of " + std::to_string(size) + " bytes ";
  std::string what, expected = "accesses stay inside allocations and variables";
  if (address - global_begin_ < GlobalMemory::kBytes || address - reinterpret_cast<std::uintptr_t>(arena_) < kArenaBytes ||
      address - reinterpret_cast<std::uintptr_t>(tls_begin_) < tls_bytes_) {
    what = access + "out of bounds: " + describe(p);
  } else if (inside(p, constant_memory())) {
    what = access + "to __constant__ memory", expected = "kernels only read constants";
  } else {
    what = access + (address < 4096 ? "through a null pointer" : "at an address that is not device memory (a host pointer?)");
    expected = "kernels use device memory only";
  }
  fail(Check::kMemcheck, what, expected, &fiber, user_location(to_pc(return_address)), variable_at(p));
}

void Block::misaligned(Fiber& fiber, const void* p, unsigned size, Op op, const void* return_address) {
  fail(Check::kMemcheck,
       std::string("misaligned ") + (op == Op::kLoad ? "read" : "write") + " of " + std::to_string(size) + " bytes: " + describe(p),
       "an access of n bytes has an address that n divides", &fiber, user_location(to_pc(return_address)), variable_at(p));
}

void Block::fail(Check check, std::string what, std::string expected, const Fiber* fiber, Location where, std::string variable) {
  {
    Diagnosis d = diagnose(check, std::move(what), std::move(expected), fiber, where, *this);
    d.variable = std::move(variable);
    report(std::move(d));
  }
  leave(Stop::kFailed);  // the fibers are dropped where they stand: kernels own nothing
}

void Block::report(Diagnosis d) {
  // What else goes wrong after a read of uninitialised bytes may come from them.
  launch_->fail(uninitialised_ && d.check != Check::kRacecheck ? *uninitialised_ : std::move(d));
}

void Block::fail_stack_overflow(Fiber& fiber, Pc pc) {
  fail(Check::kStackOverflow, "stack overflow",
       "a thread needs at most Options::stack_bytes of stack; large arrays belong elsewhere", &fiber, user_location(pc));
}

void Block::index_out_of_bounds(Fiber& fiber, std::int64_t index, const char* array, Location where) {
  if (fiber.bad_index) report_bad_index(fiber, nullptr);  // nobody asked for the last one's memory: a local array
  std::string what = "index " + std::to_string(index) + " out of bounds of an array of type " + array;
  fiber.bad_index.reset(new Fiber::BadIndex{std::move(what), std::move(where)});  // clang 14 has no parentheses for aggregates
}

void Block::report_bad_index(Fiber& fiber, const void* p) {
  const auto bad = std::move(fiber.bad_index);
  // The address is some elements beyond the array's end, or before its begin: the variable is the nearest on the other side.
  std::string variable;
  const std::size_t offset = static_cast<std::size_t>(static_cast<const char*>(p) - tls_begin_);
  if (p && offset < tls_bytes_)
    for (const SharedVariable& v : shared_variables())
      if (bad->what.starts_with("index -") ? variable.empty() && v.offset > offset : v.offset + v.bytes <= offset)
        variable = v.name;
  fail(Check::kMemcheck, bad->what, "accesses stay inside allocations and variables", &fiber, bad->where,
       variable.empty() && p ? variable_at(p) : variable);
}

void Block::fail_misaligned(Fiber& fiber, const void* p, unsigned alignment, Location where) {
  fail(Check::kMemcheck, "misaligned access: " + describe(p),
       "the address of this type is a multiple of " + std::to_string(alignment), &fiber, where, variable_at(p));
}

bool Block::in_guard_page(const void* p) const {
  const std::size_t offset = static_cast<std::size_t>(static_cast<const char*>(p) - stacks_);
  return offset < stack_count_ * stack_bytes_ && offset % stack_bytes_ < kPage;
}

void Block::fail_from_signal(Check check, const char* what, const char* expected, Pc pc) {
  const Fiber* fiber = std::exchange(current_fiber, nullptr);
  // An endless loop may be interrupted anywhere, even in what it calls of the interpreter.
  const Pc where = check == Check::kEndless && fiber->path->pc ? fiber->path->pc : pc + 1;
  signal_diagnosis_ = diagnose(check, what, expected, fiber, user_location(where), *this);
  std::longjmp(after_signal_, 1);
}

}  // namespace interpreter

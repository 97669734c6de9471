#include "common/interpreter/meetings/meetings.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>

#include "common/interpreter/checks/bad_indices.h"
#include "common/interpreter/checks/collective_worlds.h"
#include "common/interpreter/checks/two_worlds.h"
#include "common/interpreter/count/counters.h"
#include "common/interpreter/count/teamwork.h"
#include "common/interpreter/observe/recorder.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/running/block_context.h"
#include "common/interpreter/schedule/activity.h"
#include "common/interpreter/schedule/cluster.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {

void Meetings::begin() {
  warps_.resize(scheduler_.warps());
  for (Warp& warp : warps_) warp.collectives.clear(), warp.met = 0, warp.apart.name = nullptr;
  at_barrier_ = 0, last_barrier_ = 0;
  rounds_[&block_.recorder.flow()].forget_pairs();
}

// --------------------------------------------------------------------------------------------------------- collectives
void Meetings::meet(Fiber& fiber, const char* name, unsigned mask, void* argument, Combine combine, Site site, Pc pc) {
  const BothWorlds both(worlds_, fiber, WorldEvent::kCollective, nullptr, 0u, mask, combine, name, argument);
  if (both.repeated()) return;
  block_.indices.before_waiting(fiber);
  Warp& warp = warps_[fiber.warp];
  Scheduler::Warp& lanes = scheduler_.warp(fiber);
  const std::uint32_t bit = 1u << fiber.lane;
  activity_.note_progress();
  lanes.rounds = 0;
  if (!(mask & bit)) [[unlikely]]
    fail_not_in_mask(fiber, name, mask, site);
  // Lanes meet where mask and operation agree; whether all come is seen when nobody can go on.
  std::size_t i = 0;
  while (i < warp.collectives.size() &&
         !(warp.collectives[i].mask == mask && warp.collectives[i].combine == combine && !(warp.collectives[i].arrived & bit)))
    ++i;
  if (i == warp.collectives.size()) warp.collectives.push_back({mask, 0, name, combine, pc, site});
  Collective& group = warp.collectives[i];
  if (pc != group.pc) [[unlikely]]
    require_same_instruction(fiber, group, pc);
  if (group.site.line != site.line && !pc && group.arrived && !warp.apart.name) [[unlikely]]
    warp.apart = {name, {static_cast<unsigned>(std::countr_zero(group.arrived)), fiber.lane}, {group.site, site}};
  group.arrived |= bit;
  warp.arguments[fiber.lane] = argument;
  if ((mask & lanes.live & ~group.arrived) == 0) {
    complete(fiber.warp, i);
    return;
  }
  fiber.state = Fiber::State::kInCollective;
  fiber.waits_in = name, fiber.waits_at = site, fiber.waits_at_pc = pc;
  scheduler_.park(fiber);
  scheduler_.switch_away(fiber);
}

void Meetings::fail_not_in_mask(const Fiber& fiber, const char* name, unsigned mask, Site site) {
  reporter_.fail(Check::kSynccheck, std::string(name) + " with mask " + hex(mask) + ", which does not name the calling lane",
                 "every calling lane is in its own mask", &fiber, {site.file, site.line});
}

// The compiler may have made several machine instructions of one in the source.
void Meetings::require_same_instruction(const Fiber& fiber, const Collective& group, Pc pc) {
  const Location here = user_location(pc), there = user_location(group.pc);
  if (here == there) return;
  reporter_.fail(Check::kSynccheck,
                 std::string("divergent ") + group.name + ": lanes " + hex(group.arrived) + " of the warp execute the one at " +
                     at(there) + ", this lane the one at " + at(here),
                 "all 32 lanes of a warp execute the same " + std::string(group.name) + " together", &fiber, here);
}

// Who has exited is not waited for. But one that was at the same place, and named other lanes there, has not left before: it was to
// meet these (CUDA C++ Programming Guide, "Warp Vote Functions": the same mask).
void Meetings::require_same_mask(unsigned w, const Collective& group) const {
  for (std::uint32_t rest = group.mask & ~group.arrived & warps_[w].met; rest; rest &= rest - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
    const Last& last = warps_[w].last[lane];
    if (last.mask == group.mask || std::strcmp(last.name, group.name) != 0 || last.site.line != group.site.line ||
        std::strcmp(last.site.file, group.site.file) != 0)
      continue;
    const Fiber& here = scheduler_.fiber(w, static_cast<unsigned>(std::countr_zero(group.arrived)));
    reporter_.fail(Check::kSynccheck,
                   std::string(group.name) + " with masks that differ: thread " + to_text(here.thread) + " gives " +
                       hex(group.mask) + ", and thread " + to_text(scheduler_.fiber(w, lane).thread) +
                       ", which is in it, has given " + hex(last.mask),
                   "all lanes that a mask names call the function with that mask", &here, {group.site.file, group.site.line});
  }
}

void Meetings::complete(unsigned w, std::size_t index) {
  Warp& warp = warps_[w];
  const Collective group = warp.collectives[index];
  warp.collectives.erase(warp.collectives.begin() + static_cast<std::ptrdiff_t>(index));
  if (group.pc && group.arrived != 0xffffffffu)
    reporter_.fail(
        Check::kSynccheck,
        std::string(group.name) + " by lanes " + hex(group.arrived) + " of the warp alone: the others have exited or do not exist",
        "all 32 lanes of a warp execute " + std::string(group.name) + " together",
        &scheduler_.fiber(w, static_cast<unsigned>(std::countr_zero(group.arrived))), user_location(group.pc));
  if (!group.pc) {
    if (group.mask & ~group.arrived) require_same_mask(w, group);
    warp.met |= group.arrived;
    for (std::uint32_t rest = group.arrived; rest; rest &= rest - 1)
      warp.last[std::countr_zero(rest)] = {group.name, group.mask, group.site};
  }
  if (group.combine) {
    block_.collective_worlds.combine(w, group.mask, group.arrived, warp.arguments, group.combine);
    if (worlds_.in_other()) return;  // the second world of the thread that came last
  } else {
    block_.pass_warp_barrier(w, group.mask);
  }
  scheduler_.wake(w, group.arrived);
  for (std::uint32_t rest = group.arrived; rest; rest &= rest - 1)
    scheduler_.fiber(w, static_cast<unsigned>(std::countr_zero(rest))).state = Fiber::State::kRunning;
}

// Threads that have exited are not waited for (CUDA C++ Programming Guide, "Warp Shuffle Functions", "Synchronization Functions").
void Meetings::leave(const Fiber& fiber) {
  std::vector<Collective>& collectives = warps_[fiber.warp].collectives;
  const std::uint32_t live = scheduler_.warp(fiber).live;
  for (std::size_t i = 0; i < collectives.size();)
    if ((collectives[i].mask & live & ~collectives[i].arrived) == 0)
      complete(fiber.warp, i);
    else
      ++i;
  if (at_barrier_) require_barrier_before_exit(fiber);
  if (scheduler_.live() && at_barrier_ == scheduler_.live()) release_barrier();
}

// ------------------------------------------------------------------------------------------------------------ barriers
int Meetings::barrier(Fiber& fiber, Reduction reduction, bool predicate, Site site, Pc pc) {
  const BothWorlds both(worlds_, fiber, WorldEvent::kBarrier, nullptr, 0u, static_cast<unsigned>(reduction) * 2u + predicate);
  if (both.repeated()) return barrier_result_;
  block_.note(fiber, EventKind::kBarrier, pc);
  block_.indices.before_waiting(fiber);
  activity_.note_progress();
  scheduler_.warp(fiber).rounds = 0;
  fiber.state = Fiber::State::kAtBarrier;
  fiber.waits_in = "__syncthreads", fiber.waits_at = site, fiber.waits_at_pc = 0;
  fiber.predicate = predicate, fiber.barrier_pc = pc;
  barrier_reduction_ = reduction;
  scheduler_.park(fiber);
  if (++at_barrier_ == 1) first_at_barrier_ = &fiber;
  if (at_barrier_ == scheduler_.live()) release_barrier();
  scheduler_.switch_away(fiber);
  return barrier_result_;
}

// A barrier in a function is another one for each place that calls it. A compiler may also have made several of one.
void Meetings::require_same_call(const Fiber& first, const Fiber& fiber) {
  if (same_calls_.contains({first.barrier_pc, fiber.barrier_pc})) return;
  const auto [there, here] = where_calls_differ(first.barrier_pc, fiber.barrier_pc);
  if (there == here) {
    same_calls_.insert({first.barrier_pc, fiber.barrier_pc});
    return;
  }
  reporter_.fail(Check::kSynccheck,
                 "divergent barrier: the __syncthreads at " + at({fiber.waits_at.file, fiber.waits_at.line}) +
                     " is reached by thread " + to_text(first.thread) + " through the call at " + at(there) +
                     (there.line == here.line ? " (another one in the same line)" : "") + ", by thread " + to_text(fiber.thread) +
                     " through the one at " + at(here),
                 "all threads of the block reach the same __syncthreads() by the same calls", &fiber, here);
}

void Meetings::require_same_round(const Fiber& first, const Fiber& fiber) {
  const ControlFlow& flow = block_.recorder.flow();
  BarrierRounds& rounds = rounds_[&flow];
  if (rounds.differ(flow, first.way, fiber.way)) fail_rounds(first, fiber, fiber.waits_at);
  rounds.keep_if_doubtful(flow, {first.way, fiber.way, first.linear, fiber.linear, fiber.waits_at});
}

// Who leaves early is not waited for. Who has gone through a round of a loop without its barrier, and ends later, has not left
// early.
void Meetings::require_barrier_before_exit(const Fiber& fiber) {
  const Fiber& waiting = *first_at_barrier_;
  if (!exits_.insert({waiting.way.hash(), fiber.way.hash()}).second) return;
  const ControlFlow& flow = block_.recorder.flow();
  if (!rounds_[&flow].has_passed_by(flow, waiting.way, fiber.way)) return;
  const Site site = waiting.waits_at;
  reporter_.fail(Check::kSynccheck,
                 "divergent barrier: thread " + to_text(waiting.thread) + " waits at the __syncthreads at " +
                     at({site.file, site.line}) + ", thread " + to_text(fiber.thread) +
                     " has passed it by in a round of the loop around it, and has ended",
                 "all threads of the block reach the same __syncthreads() in the same rounds; who has nothing to do goes "
                 "around the work, not around the barrier",
                 &fiber, {site.file, site.line});
}

void Meetings::look_back() {
  const ControlFlow& flow = block_.recorder.flow();
  std::vector<Fiber>& fibers = scheduler_.fibers();
  if (const auto pair = rounds_[&flow].late_difference(flow))
    fail_rounds(fibers[pair->thread_a], fibers[pair->thread_b], pair->site);
}

void Meetings::fail_rounds(const Fiber& first, const Fiber& fiber, Site site) {
  reporter_.fail(Check::kSynccheck,
                 "divergent barrier: threads " + to_text(first.thread) + " and " + to_text(fiber.thread) +
                     " reach the __syncthreads at " + at({site.file, site.line}) +
                     " in different rounds of a loop around it: one of them has passed it by in an earlier round",
                 "all threads of the block reach the same __syncthreads() in the same rounds", &fiber, {site.file, site.line});
}

void Meetings::release_barrier() {
  const Fiber* first = nullptr;
  int count = 0;
  for (Fiber& fiber : scheduler_.fibers()) {
    if (fiber.state != Fiber::State::kAtBarrier) continue;
    if (!first) first = &fiber;
    if (fiber.waits_at.line != first->waits_at.line || std::strcmp(fiber.waits_at.file, first->waits_at.file) != 0)
      reporter_.fail(Check::kSynccheck,
                     "divergent barrier: thread " + to_text(first->thread) + " waits at " + first->waits_at.file + ":" +
                         std::to_string(first->waits_at.line) + ", thread " + to_text(fiber.thread) + " at " + fiber.waits_at.file +
                         ":" + std::to_string(fiber.waits_at.line),
                     "all threads of the block reach the same __syncthreads()", &fiber, {fiber.waits_at.file, fiber.waits_at.line});
    if (fiber.barrier_pc != first->barrier_pc)
      require_same_call(*first, fiber);
    else if (fiber.way.hash() != first->way.hash())
      require_same_round(*first, fiber);
    count += fiber.predicate;
  }
  if (!first) return;
  if (block_.work.options().count) block_.counters.count_barrier(first->barrier_pc), ++teamwork().block_meetings;
  barrier_result_ = barrier_reduction_ == Reduction::kAnd  ? count == static_cast<int>(scheduler_.live())
                    : barrier_reduction_ == Reduction::kOr ? count > 0
                                                           : count;
  block_.pass_barrier();
  if (first->barrier_pc != last_barrier_ && first->way.length())
    passed_[&block_.recorder.flow()].try_emplace(first->way[(first->way.length() - 1) % Way::kLongest], first->waits_at);
  last_barrier_ = first->barrier_pc;
  for (Fiber& fiber : scheduler_.fibers()) {
    if (fiber.state != Fiber::State::kAtBarrier) continue;
    fiber.state = Fiber::State::kRunning;
    fiber.way.restart();
    scheduler_.wake(fiber.warp, 1u << fiber.lane);
  }
  at_barrier_ = 0;
}

// ------------------------------------------------------------------------------------------------------------- reports
Location Meetings::barrier_between(const Fiber& fiber, const Location& from, const Location& to) const {
  if (fiber.state != Fiber::State::kAtBarrier || fiber.barrier_pc == last_barrier_) return {};
  Location barrier = place_of(fiber);
  const bool is_between =
      barrier.file == from.file && barrier.file == to.file && barrier.line >= from.line && barrier.line <= to.line;
  return is_between ? barrier : Location();
}

Location Meetings::collective_between(const Fiber& fiber, const Fiber& running, const Location& from, const Location& to) const {
  if (fiber.state != Fiber::State::kInCollective || fiber.warp != running.warp) return {};
  const Location place = place_of(fiber);
  if (place.file != from.file || place.file != to.file || place.line < from.line || place.line > to.line) return {};
  for (const Collective& c : warps_[fiber.warp].collectives)
    if (c.arrived >> fiber.lane & 1) return c.mask >> running.lane & 1 ? place : Location();
  return {};
}

const Fiber* Meetings::waits_where_passed_by(const Fiber& running) {
  const ControlFlow& flow = block_.recorder.flow();
  for (const Fiber& fiber : scheduler_.fibers())
    if (fiber.state == Fiber::State::kAtBarrier && rounds_[&flow].has_passed_by(flow, fiber.way, running.way)) return &fiber;
  return nullptr;
}

const Fiber* Meetings::waits_in_earlier_round(const Fiber& running) const {
  if (block_.recorder.flow().block_count() > 0xffff) return nullptr;
  std::map<std::uint32_t, unsigned>
      rounds;  // by basic block; of a way that is too long, only the end is known: no more than there were
  const Way& way = running.way;
  for (unsigned i = 0; i < std::min(way.length(), Way::kLongest); ++i) ++rounds[way[i]];
  for (const Fiber& fiber : scheduler_.fibers()) {
    if (fiber.state != Fiber::State::kAtBarrier || !fiber.way.is_complete()) continue;
    std::map<std::uint32_t, unsigned> earlier;
    for (unsigned i = 0; i < fiber.way.length(); ++i) ++earlier[fiber.way[i]];
    for (const auto& [block, count] : earlier)
      if (const auto found = rounds.find(block); found != rounds.end() && found->second > count) return &fiber;
  }
  return nullptr;
}

Location Meetings::barrier_left_out(const Fiber& running) const {
  const ControlFlow& flow = block_.recorder.flow();
  const auto passed = passed_.find(&flow);
  if (passed == passed_.end() || flow.block_count() > 0xffff) return {};
  std::vector<std::uint32_t> node_of(flow.block_count());
  std::iota(node_of.begin(), node_of.end(), 0u);
  const Way& way = running.way;
  for (const auto& [block, site] : passed->second)
    for (const ControlFlow::Loop& loop : flow.loops_around(block, node_of)) {
      unsigned heads = 0;
      for (unsigned i = 0; i < std::min(way.length(), Way::kLongest); ++i) heads += way[i] == loop.head;
      if (heads > 1) return {site.file, site.line};
    }
  return {};
}

std::string Meetings::who_met_elsewhere(unsigned warp, const char* name) const {
  const Warp::Apart& apart = warps_[warp].apart;
  if (!apart.name || std::strcmp(apart.name, name) != 0) return "";
  const auto side = [&](unsigned i) {
    return "lane " + std::to_string(apart.lanes[i]) + " at " + at({apart.sites[i].file, apart.sites[i].line});
  };
  return "; before that, " + side(0) + " and " + side(1) + " met in one " + name + ": since then they are a call apart";
}

// Without its folders, which the report names where it says "at": a long path must not push who waits for what off a line's end.
static std::string in_short(const Location& place) { return at({place.file.substr(place.file.rfind('/') + 1), place.line}); }

std::string Meetings::who_waits_where() const {
  struct Group {  // of threads that wait for the same at the same line
    const char* verb;
    std::string where;
    std::string of_one;  // what the first waits for, and not all need have in common: an element, lanes
    unsigned threads = 0;
    uint3 example{};
    bool differ = false;
  };
  std::vector<Group> groups;
  for (const Fiber& fiber : scheduler_.fibers()) {
    const char* verb = "run";
    std::string where, of_one;
    if (fiber.state == Fiber::State::kExited) continue;
    if (fiber.state == Fiber::State::kRunning) {
      if (scheduler_.is_polling(fiber)) verb = fiber.polled ? "poll" : "sleep";
      if (scheduler_.is_polling(fiber) && fiber.polled) {
        where = " at " + in_short(user_location(fiber.polled_at)) + block_.what_is_awaited(fiber);
        of_one = " " + reporter_.describe(fiber.polled);
      } else if (scheduler_.is_polling(fiber) && fiber.slept_at) {
        where = " at " + in_short(user_location(fiber.slept_at));
      }
    } else {
      verb = "wait";
      const Location place = place_of(fiber);
      where = std::string(" in ") + fiber.waits_in + " at " + in_short(place);
      if (place.called_at)
        where += ", called at " + in_short({place.called_in.empty() ? place.file : place.called_in, place.called_at});
      if (fiber.state == Fiber::State::kInFamily) where += block_.what_is_awaited(fiber);
      if (fiber.state == Fiber::State::kInCollective)
        for (const Collective& c : warps_[fiber.warp].collectives)
          if (c.arrived >> fiber.lane & 1) {
            of_one =
                " for lanes " + hex(c.mask & scheduler_.warp(fiber).live & ~c.arrived) + " of warp " + std::to_string(fiber.warp);
            break;
          }
    }
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const Group& g) { return g.verb == std::string_view(verb) && g.where == where; });
    if (same == groups.end())
      groups.push_back({verb, where, of_one, 1, fiber.thread});
    else
      ++same->threads, same->differ |= same->of_one != of_one;
  }
  constexpr std::size_t kMostGroups = 24;  // not so many characters: how long the sources' path is must not matter
  std::string text;
  for (const Group& g : std::span(groups).first(std::min(groups.size(), kMostGroups))) {
    const bool polls = !std::strcmp(g.verb, "poll");
    text += (text.empty() ? "" : "; ") +
            std::string(g.threads == 1 ? "thread " : std::to_string(g.threads) + " threads (the first: ") + to_text(g.example) +
            (g.threads == 1 ? " " : ") ") + g.verb + (g.threads == 1 ? "s" : "");
    text += g.differ ? g.where + ", the first" + g.of_one : polls ? g.of_one + g.where : g.where + g.of_one;
  }
  if (groups.size() > kMostGroups) {
    unsigned more = 0;
    for (const Group& g : std::span(groups).subspan(kMostGroups)) more += g.threads;
    text += "; and " + std::to_string(more) + " more in " + std::to_string(groups.size() - kMostGroups) + " other places";
  }
  return "block " + to_text(block_.work.index) + ": " + text;
}

std::string who_waits_where(const Cluster& cluster) {
  std::string text;
  for (unsigned rank = 0; rank < cluster.size(); ++rank)
    if (!cluster.is_over(rank)) text += (text.empty() ? "" : "; ") + cluster.block(rank).meetings.who_waits_where();
  return text;
}

}  // namespace interpreter

// Values that nobody gave: a shuffle from a lane that has exited, does not exist or is not in the mask gives something undefined,
// and so does memory that nothing has written: shared memory, and words of a global vector beside written ones.
//
// That is no error as long as nobody uses it: reductions of half a warp read beyond their lanes, threads of a tile's rows beyond
// the matrix compute with rows that nobody has loaded, and guards skip what has come. What a kernel computes from such a value is
// not seen, so it is tried out. A thread that gets one lives in two worlds from then on, which differ in that value. The second one
// has a copy of the thread's stack, and runs ahead of the first from one event to the next: a store, an atomic, a barrier, whatever
// others can see of the thread. There the worlds are compared. The value was used if they stand at different events, or if they
// have stored different things; if they never do, it made no difference. What the second world stores is taken back at once. In a
// collective of a warp both worlds of all lanes take part (see collective_worlds.cpp), so a lane that gets what another one has
// computed from such a value has two worlds too.
//
// Where it is not certain what a difference comes from, or where the interpreter cannot do a thing twice, the second world ends:
// then only a wrong result shows the bug of a shuffle. A read of unwritten memory is reported then: hardly anybody needs one.
#include "common/interpreter/checks/two_worlds.h"

#include <cstring>

#include "common/interpreter/checks/bounds.h"
#include "common/interpreter/checks/collective_worlds.h"
#include "common/interpreter/checks/initialised.h"
#include "common/interpreter/memory/shared_memory.h"
#include "common/interpreter/memory/stacks.h"
#include "common/interpreter/observe/recorder.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/running/block_context.h"
#include "common/interpreter/schedule/scheduler.h"
#include "common/interpreter/schedule/whereabouts.h"

namespace interpreter {

namespace {

constexpr char kGoesWrong[] = "with another value this thread would not get on";

}  // namespace

void TwoWorlds::begin(unsigned threads) {
  others_.clear();
  others_.resize(threads);
  in_other_ = false;
}

OtherWorld& TwoWorlds::add(Fiber& fiber) {
  fiber.special = true;
  std::unique_ptr<OtherWorld>& other = others_[fiber.linear];
  other = std::make_unique<OtherWorld>();
  return *other;
}

char* TwoWorlds::stack_of(const Fiber& fiber) const {
  return static_cast<char*>(&fiber == &block_.scheduler.running() ? block_.side_stack.caller() : fiber.context);
}

// -------------------------------------------------------------------------------------------------------------- events
// The running fiber has two worlds from here on: the side stack returns to it in both.
void TwoWorlds::begin_ahead(void* worlds) {
  TwoWorlds& self = *static_cast<TwoWorlds*>(worlds);
  const Fiber& fiber = self.block_.scheduler.running();
  OtherWorld& other = *self.of(fiber);
  char* const begin = self.stack_of(fiber);
  other.context = begin;
  other.stack.assign(begin, self.block_.stacks.top(fiber.linear));
  run_ahead(worlds);
}

// Runs the running fiber in its second world, up to the next event. The first world stands still.
void TwoWorlds::run_ahead(void* worlds) {
  TwoWorlds& self = *static_cast<TwoWorlds*>(worlds);
  BlockContext& block = self.block_;
  Fiber& fiber = block.scheduler.running();
  OtherWorld& other = *self.of(fiber);
  char* const begin = self.stack_of(fiber);
  const char* const top = block.stacks.top(fiber.linear);
  const std::vector<char> first_stack(static_cast<const char*>(begin), top);
  ControlFlow::Path* const path = std::exchange(fiber.path, &self.nowhere_);
  const bool watched = std::exchange(fiber.watched, false);
  other.begin_run();
  self.as_other([&] { block.side_stack.visit(other.context); });
  current_fiber = nullptr;
  other.end_run(top);
  fiber.path = path, fiber.watched = watched;
  std::memcpy(begin, first_stack.data(), first_stack.size());
}

// In the second world: the first one catches up, and does what both do.
void TwoWorlds::wait_for_first_world(Fiber& fiber, const WorldStep& step) {
  OtherWorld& other = *of(fiber);
  other.step = step;
  block_.side_stack.come_back(other.context);
}

void TwoWorlds::end_other(const char* use) {
  OtherWorld& other = *of(block_.scheduler.running());
  other.ended = true;
  other.use = use;
  block_.side_stack.come_back_for_good();
}

void TwoWorlds::end_other_in_error() { end_other(kGoesWrong); }

void TwoWorlds::pass_basic_block(Fiber& fiber) {
  if (of(fiber)->is_lost()) end_other();
}

bool TwoWorlds::begin_event(Fiber& fiber, const WorldStep& step) {
  if (in_other_) {
    wait_for_first_world(fiber, step);
    return true;
  }
  compare(fiber, step);
  return false;
}

void TwoWorlds::end_event(Fiber& fiber) {
  if (in_other_) return;
  block_.side_stack.call(&TwoWorlds::run_ahead, this);
  look_whether_it_ended(fiber);
}

void TwoWorlds::look_whether_it_ended(Fiber& fiber) {
  const OtherWorld& other = *of(fiber);
  if (!other.ended) return;
  if (other.use && !other.has_seen_others()) return report_use(fiber, other.use, nullptr);
  give_up(fiber);
}

void TwoWorlds::exit(Fiber& fiber) {
  if (!of(fiber)) return;
  begin_event(fiber, {WorldEvent::kExit});
  drop(fiber);
}

void TwoWorlds::compare(Fiber& fiber, const WorldStep& step) {
  OtherWorld& other = *of(fiber);
  const void* const store = other.different_store();
  const WorldStep& there = other.step;
  if (!store && there.is_like(step)) {
    if (step.event != WorldEvent::kStore) other.forget_stores();
    return;
  }
  if (other.has_seen_others()) return give_up(fiber);
  const Reporter& reporter = block_.reporter;
  if (store)
    return report_use(fiber, "this thread has stored in " + reporter.describe(store) + " what was computed from it", store);
  const bool alike = there.event == step.event && !step.address;
  report_use(fiber,
             "it decides what this thread does: " + describe(step, reporter) + ", and with another value " +
                 (alike ? "would do so otherwise" : describe(there, reporter)),
             step.address);
}

// ------------------------------------------------------------------------------------------------------------ accesses
bool TwoWorlds::observe(Fiber& fiber, const void* p, unsigned size, Op op, bool strong, Pc pc) {
  OtherWorld* const other = of(fiber);
  if (!other) return false;
  if (block_.stacks.contains(fiber.linear, p)) return in_other_;
  const bool store = op == Op::kStore, look = op == Op::kLoad && strong;
  const WorldStep step{store ? WorldEvent::kStore : WorldEvent::kLook, p, size};
  if (in_other_) {
    if (store || look)
      wait_for_first_world(fiber, step);
    else if (op == Op::kLoad && block_.bounds.is_storage(p, size))
      if (!put_garbage(fiber, reinterpret_cast<std::uintptr_t>(p), size, pc)) other->note_look(p, size);
    return true;
  }
  if (!store && !look) return false;
  compare(fiber, step);
  if (!of(fiber) || look) return false;  // of a look, the second world goes on when the first one has waited: end_look()
  // Others may look at what a strong store leaves before it is taken back.
  if (!block_.bounds.is_storage(p, size) || (strong && !block_.shared.contains(reinterpret_cast<std::uintptr_t>(p)))) {
    give_up(fiber);
    return false;
  }
  other->note_store(p, size);
  end_event(fiber);
  return false;
}

bool TwoWorlds::try_unwritten(Fiber& fiber, std::uintptr_t address, unsigned size, Pc pc) {
  InitCheck& check = block_.initialised;
  if (check.is_excused(fiber) || block_.reporter.suspects() || !check.unwritten(address, size, pc)) return false;
  if (const OtherWorld* const had = of(fiber)) {
    if (had->origin.is_read()) check.excuse(fiber);  // in its second world, it has read another value
    return false;
  }
  check.excuse(fiber);
  OtherWorld& other = add(fiber);
  other.origin.read = {address, size, fiber.linear, pc};
  // A struct's copy may store what is about to be read, and its hooks come in any order.
  block_.recorder.log.visit_trailing_stores(fiber.lane, [&](std::uintptr_t store, unsigned bytes) {
    if (block_.bounds.is_storage(reinterpret_cast<const void*>(store), bytes))
      other.note_store(reinterpret_cast<const void*>(store), bytes);
  });
  block_.collective_worlds.note_undefined_value();
  block_.side_stack.call(&TwoWorlds::begin_ahead, this);
  if (in_other_)
    put_garbage(fiber, address, size, pc);
  else
    look_whether_it_ended(fiber);
  return in_other_;
}

// In the second world: if it is about to read what nothing has written, it reads another value than the first one does.
bool TwoWorlds::put_garbage(Fiber& fiber, std::uintptr_t address, unsigned size, Pc pc) {
  OtherWorld& other = *of(fiber);
  if (!other.origin.is_read() || !block_.initialised.is_tried(address, size)) return false;
  const std::uint32_t bytes = block_.initialised.unwritten(address, size, pc);
  if (!bytes) return false;
  other.put_garbage(reinterpret_cast<void*>(address), size, bytes, block_.initialised.poison_of(address),
                    static_cast<unsigned>(block_.work.number) + fiber.linear);
  return true;
}

void TwoWorlds::end_look(Fiber& fiber, const void* p) {
  if (of(fiber) && !block_.stacks.contains(fiber.linear, p)) end_event(fiber);
}

void TwoWorlds::repeat_atomic(Fiber& fiber, unsigned size, void* old, bool (*update)(void*, const void*), const void* context) {
  if (!of(fiber)->repeat_atomic(old, size, update, context))
    end_other("this thread has changed memory by an atomic with what was computed from it");
}

// ------------------------------------------------------------------------------------------------------------- reports
void TwoWorlds::report_use(Fiber& fiber, const std::string& use, const void* p) {
  if (!of(fiber)->origin.is_read()) block_.reporter.fail(undefined_use(fiber, use, p));
  give_up(fiber);
}

// The thread goes on in its first world alone.
void TwoWorlds::give_up(Fiber& fiber) {
  if (of(fiber)->origin.is_read())
    block_.reporter.suspect(of(fiber)->origin.read.pc, [&] { return undefined_use(fiber, "", nullptr); });
  drop(fiber);
}

Diagnosis TwoWorlds::undefined_use(const Fiber& fiber, const std::string& use, const void* p) const {
  const OtherWorld::Origin& origin = of(fiber)->origin;
  if (const auto& [address, size, thread, pc] = origin.read; origin.is_read())
    return block_.initialised.diagnose(block_.scheduler.fibers()[thread], address, size, pc);
  const char* const why = !(block_.scheduler.warp(fiber).existing >> origin.source & 1) ? ", which does not exist"
                          : !(origin.mask >> origin.source & 1)                         ? ", which is not in the mask"
                                                                                        : ", which has exited";
  Diagnosis d = block_.reporter.diagnose(
      Check::kSynccheck,
      std::string(origin.name) + " by lane " + std::to_string(origin.lane) + " of the warp reads lane " +
          std::to_string(origin.source) + why + ": what it gets is undefined, and " + use +
          block_.whereabouts.who_met_elsewhere(fiber.warp, origin.name),
      "lanes read values of lanes that take part in the same " + std::string(origin.name) + ", or do not use them", &fiber,
      {origin.site.file, origin.site.line});
  if (p) d.variable = block_.reporter.variable_at(p);
  return d;
}

Diagnosis TwoWorlds::stopped(const Fiber& fiber) const { return undefined_use(fiber, kGoesWrong, nullptr); }

}  // namespace interpreter

/// @file
/// Values that no lane gave to a shuffle, or that nothing has written to shared memory; see two_worlds.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/interpreter/checks/other_world.h"
#include "common/interpreter/interpreter.h"
#include "common/interpreter/observe/access_log.h"
#include "common/interpreter/schedule/fiber.h"
#include "common/interpreter/schedule/side_stack.h"

namespace interpreter {

class BlockContext;

/// The second worlds of the running block's threads, and what they share with the first ones.
class TwoWorlds {
 public:
  explicit TwoWorlds(BlockContext& block) : block_(block) {}
  /// A block begins.
  void begin(unsigned threads);

  /// Whether what runs is the second world of a thread.
  bool in_other() const { return in_other_; }
  /// The thread's second world; null if it has none.
  OtherWorld* of(const Fiber& fiber) const { return fiber.special ? others_[fiber.linear].get() : nullptr; }
  /// Makes a second world, which is to be filled.
  OtherWorld& add(Fiber& fiber);
  /// The thread has no second world any more.
  void drop(const Fiber& fiber) { others_[fiber.linear].reset(); }
  /// Where what is alive of the thread's stack begins. To be called on the side stack.
  char* stack_of(const Fiber& fiber) const;
  /// Does `work` as what belongs to second worlds.
  template <class Work>
  void as_other(Work work) {
    in_other_ = true;
    work();
    in_other_ = false;
  }

  /// @name Events of threads that have two worlds; see BothWorlds
  /// @{
  /// @return whether this is the second world, and the event has taken place
  bool begin_event(Fiber& fiber, const WorldStep& step);
  void end_event(Fiber& fiber);
  /// The thread has come to its end.
  void exit(Fiber& fiber);
  /// An access that is about to happen. @return whether it is one of a second world, and nobody else's business
  bool observe(Fiber& fiber, const void* p, unsigned size, Op op, bool strong, Pc pc);
  /// A plain load that is about to read memory which nothing has written, as far as hooks tell.
  /// @return whether this is the second world, and the load nobody else's business
  bool try_unwritten(Fiber& fiber, std::uintptr_t address, unsigned size, Pc pc);
  /// The volatile load that observe() has seen has taken place, and the thread has waited.
  void end_look(Fiber& fiber, const void* p);
  /// In the second world: does the first one's atomic.
  void repeat_atomic(Fiber& fiber, unsigned size, void* old, bool (*update)(void*, const void*), const void* context);
  /// @}

  /// @name In the second world
  /// @{
  /// It ends here. @param use how the undefined value was used, if it was
  [[noreturn]] void end_other(const char* use = nullptr);
  /// The same: with this world's value the thread does what is an error.
  [[noreturn]] void end_other_in_error();
  /// It passes a basic block.
  void pass_basic_block(Fiber& fiber);
  /// What is wrong if the operating system has stopped it.
  Diagnosis stopped(const Fiber& fiber) const;
  /// @}

 private:
  static void begin_ahead(void* self);
  static void run_ahead(void* self);
  void look_whether_it_ended(Fiber& fiber);
  bool put_garbage(Fiber& fiber, std::uintptr_t address, unsigned size, Pc pc);
  void report_use(Fiber& fiber, const std::string& use, const void* p);
  void give_up(Fiber& fiber);
  void wait_for_first_world(Fiber& fiber, const WorldStep& step);
  void compare(Fiber& fiber, const WorldStep& step);
  Diagnosis undefined_use(const Fiber& fiber, const std::string& use, const void* p) const;

  BlockContext& block_;
  std::vector<std::unique_ptr<OtherWorld>> others_;  // by thread
  bool in_other_ = false;
  ControlFlow::Path nowhere_{};  // a path without a way on
};

/// While it lives, a thread with two worlds takes part in an event: the second world is there already and waits, the first one
/// does what is to be done; in the end the second one goes on.
class BothWorlds {
 public:
  /// @param step the parts of a WorldStep; it is put together for the few threads that need it
  template <class... Parts>
  BothWorlds(TwoWorlds& worlds, Fiber& fiber, const Parts&... step) : worlds_(worlds), fiber_(fiber) {
    if (worlds.of(fiber)) [[unlikely]]
      repeated_ = worlds.begin_event(fiber, WorldStep{step...});
  }
  BothWorlds(const BothWorlds&) = delete;
  ~BothWorlds() {
    if (worlds_.of(fiber_)) [[unlikely]]
      worlds_.end_event(fiber_);
  }
  /// Whether this is the second world, and the event has taken place.
  bool repeated() const { return repeated_; }

 private:
  TwoWorlds& worlds_;
  Fiber& fiber_;
  bool repeated_ = false;
};

}  // namespace interpreter

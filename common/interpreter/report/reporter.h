/// @file
/// The reports of a block's errors.
#pragma once

#include <optional>
#include <string>

#include "common/interpreter/checks/happens_before.h"
#include "common/interpreter/launch/launch_state.h"
#include "common/interpreter/report/diagnosis.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {

class Block;
class SharedMemory;

/// What a stack that is too small should have been.
inline constexpr char kStackExpected[] =
    "a thread needs at most Options::stack_bytes of stack, or what cudaDeviceSetLimit sets; large arrays belong elsewhere";

/// Makes reports of what the running block's threads do wrong, and gives the block up.
class Reporter {
 public:
  Reporter(const Assignment& work, const SharedMemory& shared) : work_(work), shared_(shared) {}
  /// A block begins.
  void begin() { uninitialised_.reset(); }

  /// The label of the buffer or the name of the variable that holds `p`; empty if it is unknown.
  std::string variable_at(const void* p) const;
  /// The same with the byte in it, or the address.
  std::string describe(const void* p) const;
  /// Of dynamic shared memory also which element of what, as far as the source says it: see accessed_through().
  std::string describe(const void* p, Pc pc, bool store, unsigned size) const;
  /// What the source says of an access to dynamic shared memory; of other memory nothing.
  AccessedThrough through(const void* p, Pc pc, bool store) const;
  std::string describe_element(const void* p, const AccessedThrough& through, unsigned size) const;

  /// "thread (1,0,0)", and of which block, if that is another one than the clock's.
  std::string name_of(ThreadId thread, const BlockClock& clock) const;
  /// The same of who made an access: a cp.async that an mbarrier has told of is none of a thread's.
  std::string name_of(const Stamp& access, const BlockClock& clock) const;

  /// @param fiber null: not the fault of one thread
  Diagnosis diagnose(Check check, std::string what, std::string expected, const Fiber* fiber, const Location& where) const;
  /// Reports an error and gives up the block that runs; in the second world of a thread, gives up that world.
  [[noreturn]] void fail(Check check, std::string what, std::string expected, const Fiber* fiber, const Location& where,
                         std::string variable = "");
  [[noreturn]] void fail(Diagnosis diagnosis);
  [[noreturn]] void fail_stack_overflow(const Fiber& fiber, Pc pc);
  /// Reports an error.
  void report(Diagnosis diagnosis);

  /// The first read of bytes that nothing has written. If they are written before the next barrier, the report is of a race.
  template <class Diagnose>
  void suspect(Diagnose&& diagnose) {
    if (!uninitialised_) uninitialised_ = diagnose();
  }
  bool suspects() const { return uninitialised_.has_value(); }
  /// Reports what was suspected, if anything was: nothing has explained it. @return whether there was something
  bool confirm();

 private:
  const Block* peer_at(const void* p) const;
  /// What holds an address in dynamic shared memory: the part that the launch names, or all of it.
  struct Part {
    const char* begin;
    std::size_t bytes;
    std::string name;
    bool is_panel = false;
  };
  Part dynamic_at(std::uintptr_t address) const;

  const Assignment& work_;
  const SharedMemory& shared_;
  std::optional<Diagnosis> uninitialised_;
};

}  // namespace interpreter

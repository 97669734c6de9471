/// @file
/// The reports of a block's errors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/interpreter/debug_info/declarations.h"
#include "common/interpreter/happens_before/clocks.h"
#include "common/interpreter/report/diagnosis.h"
#include "common/interpreter/report/keep_going.h"
#include "common/interpreter/running/launch_state.h"

namespace interpreter {

class BlockContext;
class SharedMemory;
struct Fiber;

/// What a stack that is too small should have been.
inline constexpr char kStackExpected[] =
    "a thread needs at most Options::stack_bytes of stack, or what cudaDeviceSetLimit sets; large arrays belong elsewhere";

/// Makes reports of what the running block's threads do wrong, and gives the block up.
class Reporter {
 public:
  Reporter(const Assignment& work, const SharedMemory& shared) : work_(work), shared_(shared) {}
  /// A block begins.
  void begin() { suspected_.clear(); }

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
  /// As fail(), but where the program keeps going, records the error and returns. Who calls it goes on as if nothing were wrong.
  /// @param other_place the other line of two, as at() says it: a race is one problem, whichever comes first
  void tell(Check check, std::string what, std::string expected, const Fiber* fiber, const Location& where,
            std::string variable = "", const std::string& other_place = "");
  void tell(Diagnosis diagnosis, const std::string& other_place = "");
  [[noreturn]] void fail_stack_overflow(const Fiber& fiber, Pc pc);
  /// Reports an error.
  void report(Diagnosis diagnosis);

  /// A read of bytes that nothing has written, the first one; where the program keeps going, the first of each `pc`. If they are
  /// written before the next barrier, the report is of a race.
  template <class Diagnose>
  void suspect(Pc pc, Diagnose&& diagnose) {
    const auto is_known = [&](const Suspected& suspected) { return suspected.pc == pc || !keeps_going(); };
    if (std::none_of(suspected_.begin(), suspected_.end(), is_known)) suspected_.push_back({pc, diagnose()});
  }
  bool suspects() const { return !suspected_.empty(); }
  /// Reports what was suspected, if anything was: nothing has explained it. @return whether that ends the block
  bool confirm();
  bool keeps_going() const { return keep_going_.is_on(); }
  /// Where the program keeps going, one problem is found many times. @return whether it is the first time there
  bool is_new(Pc pc, std::uint32_t other = 0) { return !keeps_going() || seen_.insert({pc, other}).second; }

 private:
  struct Suspected {
    Pc pc = 0;
    Diagnosis diagnosis;
  };
  const BlockContext* peer_at(const void* p) const;
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
  KeepGoing& keep_going_ = KeepGoing::instance();
  std::vector<Suspected> suspected_;
  std::set<std::pair<Pc, std::uint32_t>> seen_;
};

}  // namespace interpreter

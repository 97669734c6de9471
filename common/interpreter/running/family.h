/// @file
/// What a family of instructions may keep of a block: cp.async those of its copies that are under way, say. A new family is a file
/// of its own beside this one: the functions that common/device/ptx.cuh calls, and behind them a class derived from Family, which
/// nobody else knows. Families whose instructions are done at once (ldmatrix, mma) need no class.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

#include "common/interpreter/observe/access_log.h"

namespace interpreter {

struct Fiber;

/// A family's state of one block; BlockContext::family() makes it.
class Family {
 public:
  virtual ~Family() = default;
  /// A block of `threads` threads begins.
  virtual void begin(unsigned threads) = 0;
  /// The lanes of a warp have executed an instruction that they logged by BlockContext::record(). Of all that the warp did, it is
  /// at its place. The request's addresses are those of records.
  virtual void on_request(unsigned, const Request&) {}
  /// A fiber that Fiber::special says to be looked at is about to access memory.
  virtual void on_access(Fiber&, const void*, unsigned, const void*) {}
  /// The thread has come to its end. It is to leave nothing under way.
  virtual void on_exit(Fiber&) {}
  /// No thread of the block can go on. @return whether one can now
  virtual bool wake_somebody() { return false; }
  /// Of a thread that waits for the family, what it waits for; else empty.
  virtual std::string what_is_awaited(const Fiber&) const { return ""; }

  /// The same for a report: the variable, whether nobody who waits elsewhere could bring it, and what is expected.
  struct Missing {
    std::string variable;
    bool is_the_reason = false;
    std::string expected;
    bool is_likely = false;  ///< what is missing hints at it more than at other waits
  };
  virtual Missing what_is_missing(const Fiber&) const { return {}; }

  /// What a lane logs of an instruction. It lives until on_request() has seen it.
  struct Record {
    Family* family = nullptr;
  };

  /// A number of its own for each family.
  template <class T>
  static std::size_t number_of() {
    static const std::size_t number = next_number();
    return number;
  }

 private:
  static std::size_t next_number() {
    static std::atomic<std::size_t> next{0};
    return next++;
  }
};

}  // namespace interpreter

/// @file
/// What reports say of mbarriers.
#pragma once

#include <cstdint>
#include <string>

#include "common/interpreter/happens_before/knowledge.h"

namespace interpreter {

struct Fiber;

/// What checks ask of a block's mbarriers; Mbarriers knows the answers.
class MbarrierFacts {
 public:
  /// For the report of a read that came before a copy.
  static constexpr char kReadTooEarly[] =
      "who reads what a copy brings has waited for its phase of the mbarrier; "
      "a wait for the other parity of a new mbarrier returns at once";
  virtual bool has_barriers() const = 0;
  /// Whether the write is the mbarrier.init of one that has the byte at `address`.
  virtual bool was_initialised_by(const Stamp& write, std::uintptr_t address) const = 0;
  /// Which wait of the thread was its last one, as the end of a sentence; empty if it has waited for nothing.
  virtual std::string last_wait_of(const Fiber& fiber) const = 0;

 protected:
  ~MbarrierFacts() = default;
};

}  // namespace interpreter

/// @file
/// From a warp's memory instruction to what ncu counts of it.
#pragma once

#include <cstdint>
#include <vector>

#include "common/interpreter/access_log.h"
#include "common/interpreter/interpreter.h"

namespace interpreter {

/// 32-byte sectors that `request` touches, each once, in ascending order. @return how many; at most 64.
unsigned sectors_of(const Request& request, std::uint64_t* sectors);

/// Passes through the 32 four-byte banks of shared memory.
struct Wavefronts {
  unsigned actual, ideal;
};
Wavefronts wavefronts_of(const Request& request);

/// Counters of one running block, per instruction.
class CounterTable {
 public:
  CounterTable();
  /// Adds `request`. For global memory, `sectors` (if not null) receives sectors_of(request) and their number.
  void count(const Request& request, std::uint64_t* sectors, unsigned* sector_count);
  /// Calls `visit(pc, counters)` for each instruction and empties the table.
  template <class Visit>
  void take(Visit&& visit) {
    for (Slot& slot : slots_)
      if (slot.pc) visit(slot.pc, slot.counters), slot = {};
    used_ = 0;
  }

 private:
  struct Slot {
    Pc pc = 0;
    Counters counters;
  };
  Counters& of(Pc pc);
  std::vector<Slot> slots_;  // open addressing, a power of two
  std::size_t used_ = 0;
};

}  // namespace interpreter

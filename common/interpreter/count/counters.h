/// @file
/// From a warp's memory instruction to what ncu counts of it.
#pragma once

#include <cstdint>
#include <vector>

#include "common/interpreter/interpreter.h"
#include "common/interpreter/observe/access_log.h"

namespace interpreter {

/// 32-byte sectors that `request` touches, each once, in ascending order. @return how many; at most 64.
unsigned sectors_of(const Request& request, std::uint64_t* sectors);

/// Passes through the 32 four-byte banks of shared memory.
struct Wavefronts {
  unsigned actual, ideal;
};
Wavefronts wavefronts_of(const Request& request);

/// What a cp.async of one warp costs.
struct CopyCost {
  unsigned sectors = 0;  ///< 32-byte sectors that are fetched, some more than once
  unsigned wavefronts = 0, ideal_wavefronts = 0, conflicts = 0, conflicts_l1 = 0;
};
/// @param sources of the lanes that read  @param destinations of all lanes that take part
/// @param may_fill it is the instruction that can fill with zeros
CopyCost copy_cost_of(const Request& sources, const Request& destinations, bool may_fill);

/// Adds to `cost` what the copy engine moves between bytes that lie side by side on both sides.
void add_bulk_cost(Counters::Global& cost, std::uintptr_t global, std::uintptr_t shared, unsigned bytes);

/// What ncu says of a launch: metrics() of its counters, its blocks and waves, how many warps an SM has room for (registers not
/// counted) and, with Options::l2_model, what the L2 cache and DRAM did.
std::vector<Metric> metrics(const KernelProfile& launch);

/// Counters of one running block, per instruction.
class CounterTable {
 public:
  CounterTable();
  /// A block of so many warps begins. What others were counted stays.
  void begin(unsigned warps) { mma_of_warp_.assign(warps, 0); }
  /// Adds `request`. For global memory, `sectors` (if not null) receives sectors_of(request) and their number.
  void count(const Request& request, std::uint64_t* sectors, unsigned* sector_count);
  /// Adds a cp.async of one warp. @param sources what it reads  @param destinations what it writes
  /// @param bytes_read of the sources, all lanes together  @param sectors receives sectors_of(sources) and their number
  void count_copy(const Request& sources, const Request& destinations, bool may_fill, std::uint64_t bytes_read,
                  std::uint64_t* sectors, unsigned* sector_count);
  /// Adds an mma of one warp.
  void count_mma(Pc pc, unsigned warp) { ++of(pc).mma, ++mma_of_warp_[warp]; }
  /// How many mma each warp has executed.
  const std::vector<std::uint64_t>& mma_of_warp() const { return mma_of_warp_; }
  /// Adds a barrier of the whole block.
  void count_barrier(Pc pc) { ++of(pc).barriers; }
  /// Adds a bulk copy. @param moved what it costs, one request among it
  void count_bulk(Pc pc, const Counters::Global& moved, bool write);
  /// Adds that a box which is loaded has nothing but zeros.
  void count_bulk_zeros(Pc pc) { ++of(pc).bulk_zeros; }
  /// Adds a wgmma of one warp. @param bytes that the warp reads of shared memory; its warpgroup reads b once
  void count_wgmma(Pc pc, unsigned bytes);
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
  std::vector<std::uint64_t> mma_of_warp_;
};

}  // namespace interpreter

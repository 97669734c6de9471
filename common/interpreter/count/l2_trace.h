/// @file
/// What the L2 model needs to see of a block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/interpreter/observe/access_log.h"

namespace interpreter {

/// The sectors that a block asks the L2 cache for, in order. Blocks share an SM's L1 on a GPU; here each has one of its own,
/// without what others left in it.
class L2Trace {
 public:
  static constexpr std::uint64_t kBarrierMark = ~0ull;    ///< in the place of a sector: all threads have passed a barrier
  static constexpr std::uint64_t kWriteBit = 1ull << 63;  ///< of sectors that are written

  /// A block begins. @param l1_bytes size of the L1 cache; 0: nothing is traced
  void begin(std::size_t l1_bytes);
  /// Adds a request's sectors, loads only if they miss in the L1 cache or go past it.
  void add(const Request& request, const std::uint64_t* sectors, unsigned count, bool through_l1);
  /// Adds the sectors of `bytes` bytes, which go past the L1 cache.
  void add(std::uintptr_t address, unsigned bytes, bool write);
  void mark_barrier() { sectors_.push_back(kBarrierMark); }
  /// 32-byte sectors, kBarrierMark between barrier intervals.
  std::vector<std::uint64_t> take() { return std::exchange(sectors_, {}); }

 private:
  class L1 {
   public:
    void reset(std::size_t bytes);
    bool hit(std::uint64_t sector);

   private:
    static constexpr unsigned kWays = 4;
    std::vector<std::uint64_t> tags_;
    std::size_t sets_ = 0;
  };
  std::uint64_t packed(std::uint64_t sector);

  L1 l1_;
  struct PackedSectors {
    std::uint64_t first, last, packed_at;
  };
  std::vector<PackedSectors> packed_;  // of the allocations that the block has used
  std::vector<std::uint64_t> sectors_;
};

}  // namespace interpreter

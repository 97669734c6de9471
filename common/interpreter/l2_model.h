/// @file
/// A model of a GPU's L2 cache: hit rate and DRAM traffic of a launch.
#pragma once

#include <cstdint>
#include <vector>

#include "common/interpreter/gpus.h"
#include "common/interpreter/interpreter.h"

namespace interpreter {

/// A set-associative, least-recently-used, write-back cache with 128-byte lines that are filled by 32-byte sectors.
class L2Model {
 public:
  explicit L2Model(const Gpu& gpu);

  /// Lets blocks that are resident together advance together, one barrier interval at a time.
  /// @param traces one per block, in launch order: sectors that missed L1, see Block::l2_trace.
  void replay(const std::vector<std::vector<std::uint64_t>>& traces);
  /// What the launch did so far. Dirty sectors that are still cached count as written to DRAM.
  L2Result result() const;

 private:
  struct Line {
    std::uint64_t tag = ~0ull;
    std::uint8_t valid = 0, dirty = 0;  // one bit per sector
  };
  void access(std::uint64_t sector, bool write);

  static constexpr unsigned kWays = 16, kSectors = 4;
  std::size_t sets_;
  std::vector<Line> lines_;
  L2Result result_;
};

}  // namespace interpreter

/// @file
/// A model of a GPU's L2 cache: hit rate and DRAM traffic of a launch. docs/interpreter.md says how well it fits.
#pragma once

#include <cstdint>
#include <vector>

#include "common/interpreter/count/gpus.h"
#include "common/interpreter/interpreter.h"

namespace interpreter {

/// The parts of an L2 cache. Each is next to its share of the SMs and home to its share of memory, and also caches what its SMs
/// read and write of the others'. Set-associative, least recently used, write-back, lines of 128 bytes that are filled by 32-byte
/// sectors. Before it, where the GPU has them, coalescers merge the reads of a cluster of SMs.
class L2Model {
 public:
  explicit L2Model(const Gpu& gpu);

  /// Lets blocks that are resident together advance together, one barrier interval at a time.
  /// @param traces one per block, in launch order: sectors that missed L1, see L2Trace.
  void replay(const std::vector<std::vector<std::uint64_t>>& traces);
  /// What the launch did so far.
  L2Result result() const;

 private:
  struct Line {
    std::uint64_t tag = ~0ull;
    double arrives = -1;                // when what DRAM was asked for last is here
    std::uint8_t valid = 0, dirty = 0;  // one bit per sector
  };
  // Reads of a line that a coalescer has under way.
  struct Merge {
    std::uint64_t tag = ~0ull;
    double until = -1;
    std::uint8_t sectors = 0;
  };
  // Where a resident block runs, and when: its turn among the blocks of its SM, and how far it is off.
  struct Place {
    std::size_t block;
    unsigned part, cluster;
    double turn, offset;
  };
  struct Answer {
    double arrives;
    std::uint8_t missed;
  };

  std::vector<Place> places(std::size_t blocks, std::size_t sms);
  void read_merged(const Place& place, std::uint64_t tag, std::uint8_t wanted, double now);
  Answer read(unsigned part, std::uint64_t tag, std::uint8_t wanted, double now);
  void write(unsigned part, std::uint64_t tag, std::uint8_t sectors);
  Line& find(unsigned part, std::uint64_t tag);  // makes it the most recently used of its set
  unsigned home(std::uint64_t tag) const;

  static constexpr unsigned kWays = 16;
  static constexpr std::size_t kMerges = 1 << 14;  // of one coalescer; a newer one takes the place of an older one
  const Gpu& gpu_;
  std::size_t sets_;  // of one part
  std::vector<Line> lines_;
  std::vector<Merge> merges_;
  std::uint64_t blocks_ = 0;  // replayed so far
  double time_ = 0;
  L2Result result_;
};

}  // namespace interpreter

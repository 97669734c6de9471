/// @file
/// How threads share the work, and where they wait for each other. Counters has one number for all barriers, and none for shares.
#pragma once

#include <atomic>
#include <cstdint>

namespace interpreter {

/// Sums and greatest shares since the program's start, or since they were forgotten; of all launches that count.
struct Teamwork {
  std::atomic<std::uint64_t> block_meetings;    ///< of all threads of a block: __syncthreads(), and number 0 where all wait
  std::atomic<std::uint64_t> cluster_meetings;  ///< of a block with its cluster, once for each block
  std::atomic<std::uint64_t> named;             ///< named barriers that were complete, once for each time, but for those above
  std::atomic<std::uint64_t> named_of_all;      ///< of these, at which all threads of the block waited: it met as a whole
  /// Bytes that the lanes of the busiest block loaded from global memory. This and the next one want count_each_access.
  std::atomic<std::uint64_t> loaded_by_block;
  std::atomic<std::uint64_t> shared_bytes_of_warp;  ///< the same of the busiest warp from shared memory
  void forget() { block_meetings = cluster_meetings = named = named_of_all = loaded_by_block = shared_bytes_of_warp = 0; }
};
Teamwork& teamwork();

}  // namespace interpreter

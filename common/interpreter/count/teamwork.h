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
  std::atomic<std::uint64_t> named_of_all;      ///< of `named`, at which all threads of the block waited: it met as a whole
  /// Of `named`, where a warp that loads by the copy engine, and does nothing else with what comes, met one that reads shared
  /// memory or starts wgmma. Who reads wants count_each_access.
  std::atomic<std::uint64_t> named_of_roles;
  std::atomic<std::uint64_t> stored_again;  ///< stores by the copy engine from where the block's store before came from
  /// Bytes that the lanes of the busiest block loaded from global memory. This and the next two want count_each_access.
  std::atomic<std::uint64_t> loaded_by_block;
  std::atomic<std::uint64_t> loaded_by_warp;        ///< the same of the busiest warp
  std::atomic<std::uint64_t> shared_bytes_of_warp;  ///< bytes that the lanes of the busiest warp loaded from shared memory
  void forget() {
    block_meetings = cluster_meetings = named = named_of_all = named_of_roles = stored_again = 0;
    loaded_by_block = loaded_by_warp = shared_bytes_of_warp = 0;
  }
};
Teamwork& teamwork();

}  // namespace interpreter

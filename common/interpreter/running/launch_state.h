/// @file
/// What all blocks of a running launch share, and which of its blocks a Block runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "common/interpreter/count/gpus.h"
#include "common/interpreter/debug_info/lines.h"
#include "common/interpreter/interpreter.h"
#include "common/interpreter/observe/events.h"
#include "common/interpreter/running/launch_chain.h"

namespace interpreter {

class Cluster;

inline constexpr std::size_t kMaxThreads = 1024;  ///< of a block

/// Why CUDA does not start clusters of that size; empty if it does. Every GPU that has clusters can have 8 blocks in one, an H100
/// or H200 16 of a kernel that asks for it; and no block is left over.
std::string why_no_clusters(const Launch& launch);
/// What cudaFuncAttributeNonPortableClusterSizeAllowed says of a kernel.
void allow_large_clusters(const void* kernel, bool allowed);

/// The name of the launch's kernel, as reports have it.
std::string kernel_name_of(const Launch& launch);

/// What all blocks of a running launch share.
struct LaunchState {
  /// @param number of the launch, from 1
  /// @param earlier the launches that may still run
  LaunchState(const Launch& launch, const Options& options, const Gpu& gpu, std::uint64_t number, const LaunchChain& earlier)
      : launch(launch),
        options(options),
        gpu(gpu),
        number(number),
        earlier(earlier),
        threads(launch.block.x * launch.block.y * launch.block.z),
        blocks(std::uint64_t(launch.grid.x) * launch.grid.y * launch.grid.z),
        cluster_size(launch.cluster.x * launch.cluster.y * launch.cluster.z),
        clusters(blocks / cluster_size) {}

  const Launch& launch;
  const Options options;
  const Gpu& gpu;
  const std::uint64_t number;
  const LaunchChain& earlier;
  const unsigned threads;  ///< per block
  const std::uint64_t blocks;
  const unsigned cluster_size;   ///< in blocks
  const std::uint64_t clusters;  ///< where there are none, each block is one
  std::uint64_t recorded = 0;    ///< the cluster whose events are `events`

  /// Records the launch's first error. Other blocks stop at their next look at `failed`.
  /// @param of_cluster events of the cluster in which it happened, see Cluster::events
  void fail(Diagnosis diagnosis, std::unique_ptr<EventLog>& of_cluster);
  std::string kernel_name() const { return kernel_name_of(launch); }
  /// Whether the store at `pc` has always been asked for with this content().
  bool is_one_value(Pc pc, std::uint32_t content);
  /// accessed_name_in_kernel(), remembered.
  std::string pointer_at(Pc pc, bool store);
  /// Adds to the launch's notes, once each.
  void note(const std::string& text);

  std::atomic<bool> failed{false};
  std::atomic<bool> arguments_are_to_blame{false};  ///< rather than the kernel that uses them
  std::atomic<bool> waited_for_earlier{false};      ///< a thread has
  std::atomic<bool> fences_global_memory{false};    ///< a thread has, for the async proxy
  std::atomic<std::uint64_t> steps{0};
  std::mutex mutex;
  Diagnosis diagnosis;                         ///< of the first error; guarded by mutex
  std::set<std::string> notes;                 ///< guarded by mutex
  std::map<Pc, std::uint32_t> one_values;      ///< of is_one_value(); guarded by mutex
  std::map<Pc, std::string> pointers;          ///< of pointer_at(); guarded by mutex
  std::unique_ptr<EventLog> events;            ///< of its cluster `recorded`; null: nobody has asked
  std::unique_ptr<EventLog> events_of_failed;  ///< of the cluster whose error is the diagnosis, if that is another one
  std::set<std::string> restricted;            ///< __restrict__ parameters that share an allocation with another one: usually none
};

/// The index that has the number `linear` in a grid or block of that shape.
inline uint3 unflatten(std::uint64_t linear, dim3 shape) {
  return {static_cast<unsigned>(linear % shape.x), static_cast<unsigned>(linear / shape.x % shape.y),
          static_cast<unsigned>(linear / shape.x / shape.y)};
}

/// Which block of which launch a Block runs at the moment. Its parts refer to it.
struct Assignment {
  LaunchState* launch = nullptr;
  std::uint64_t number = 0;  ///< of the block
  uint3 index{};             ///< the same as blockIdx
  Cluster* cluster = nullptr;
  unsigned rank = 0;  ///< in the cluster

  const Options& options() const { return launch->options; }
  bool has_failed() const { return launch->failed.load(std::memory_order_relaxed); }
};

}  // namespace interpreter

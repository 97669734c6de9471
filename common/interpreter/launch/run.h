/// @file
/// The blocks of a launch on OS threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/interpreter/count/l2_model.h"
#include "common/interpreter/schedule/cluster.h"

namespace interpreter {

class BlockContext;
class PooledThread;

/// One launch: blocks on OS threads, those of a cluster as one, see Cluster. As many of these run at a time as there are workers.
/// One that can only wait for others passes its turn to another one, if need be to a new one with the next cluster.
class Run {
 public:
  /// @param workers clusters that run at a time  @param resident_limit blocks that the GPU holds at a time
  Run(LaunchState& state, unsigned workers, std::uint64_t resident_limit)
      : state_(state), workers_(workers), resident_limit_(resident_limit) {
    if (state.options.l2_model) l2_.emplace(state.gpu);
  }

  /// Runs all blocks to their end, or until the launch fails.
  void execute();

  std::map<Pc, Counters> counters;      ///< of the launch
  std::size_t static_shared_bytes = 0;  ///< of a block's __shared__ variables
  std::uint64_t most_mma_of_block = 0;  ///< see KernelProfile
  std::uint64_t most_mma_of_warp = 0;   ///< the same
  /// What the L2 model says; zeros unless Options::l2_model.
  L2Result l2() const { return l2_ ? l2_->result() : L2Result(); }

 private:
  // A thread of a slot, as the watchdog sees it.
  struct Watched {
    PooledThread* thread;
    std::uint64_t seen_progress = 0;
    double seen_at = 0;  // by its thread's clock
  };
  // A resident cluster, or a place for one.
  struct Slot {
    Run* run;
    std::vector<Watched> threads = {};      // one for each block
    std::unique_ptr<Cluster> cluster = {};  // null once its work is done
    std::condition_variable turn;
    bool may_run = false;
    std::uint64_t seen_changes = 0;
    unsigned idle_rounds = 0;  // without a change by anybody
    bool hopeless = false;     // nobody in the cluster moves on
    bool runs_for_long = false;
    std::chrono::steady_clock::time_point hopeless_since{};
    std::string waits_for;
  };

  void start_slot();  // mutex_ held
  void work(Slot& slot);
  bool take_cluster(Slot& slot, std::uint64_t& number);
  void pass_turn();  // mutex_ held
  static void yield(void* slot);
  void wait_for_others(Slot& slot);
  std::uint64_t changes() const;  // mutex_ held
  void watch(std::unique_lock<std::mutex>& lock);
  void tell_progress(double seconds) const;  // mutex_ held
  void collect(BlockContext& block);

  LaunchState& state_;
  const unsigned workers_;
  const std::uint64_t resident_limit_;

  std::mutex mutex_;
  std::condition_variable all_done_;
  std::deque<Slot> slots_;
  std::deque<Slot*> waiting_;  // for their turn
  unsigned running_ = 0, alive_ = 0;
  std::uint64_t next_cluster_ = 0;
  std::uint64_t changes_of_ended_ = 0;

  // the L2 model sees blocks in launch order, as many at a time as the GPU holds
  std::optional<L2Model> l2_;
  std::map<std::uint64_t, std::vector<std::uint64_t>> traces_;
  std::uint64_t replayed_ = 0;
};

}  // namespace interpreter

/// @file
/// The blocks of a cluster, which take turns.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "common/interpreter/happens_before/readers.h"
#include "common/interpreter/observe/events.h"
#include "common/interpreter/running/launch_state.h"

namespace interpreter {

class BlockContext;

/// The blocks of a cluster; where a launch has none, a block alone. Each has an OS thread, for its __shared__ variables. One of
/// them runs at a time: so what they share needs no lock, and their order is the launch's.
class Cluster {
 public:
  /// @param blocks by their rank
  explicit Cluster(std::vector<BlockContext*> blocks);
  Cluster(const Cluster&) = delete;

  /// The launch's cluster of that number begins. @param begin_block begins a block, of that rank and index in the launch
  void begin(LaunchState& launch, std::uint64_t number, const std::function<void(unsigned rank, std::uint64_t index)>& begin_block);

  unsigned size() const { return static_cast<unsigned>(blocks_.size()); }
  BlockContext& block(unsigned rank) const { return *blocks_[rank]; }
  const std::vector<BlockContext*>& blocks() const { return blocks_; }
  /// Whose shared memory holds `address`; null if it is no shared memory.
  BlockContext* home_of(std::uintptr_t address) const;
  /// The same where there are several blocks; else null.
  BlockContext* peer_at(std::uintptr_t address) const { return size() > 1 ? home_of(address) : nullptr; }
  /// The same place in the shared memory of the block `rank`. @param address in the shared memory of `own`
  std::uintptr_t counterpart(const BlockContext& own, std::uintptr_t address, unsigned rank) const;
  /// Activity::changes() of all blocks.
  std::uint64_t changes() const;

  ReaderSets readers;  ///< of all blocks' shared memory
  /// What happens in its blocks, for pictures; null: nobody has asked, or it is the first one, whose log the launch has.
  std::unique_ptr<EventLog> events;

  /// @name Turns, called on the OS threads of the blocks
  /// @{
  void wait_for_turn(unsigned rank);
  /// Nobody in the block `from` can go on: lets another block run, until it is the block's turn again.
  /// @return false: nobody in the others can go on either
  bool pass_turn(unsigned from);
  /// The block has come to its end.
  void leave(unsigned from);
  /// Whether the block has come to its end.
  bool is_over(unsigned rank) const { return over_[rank]; }
  /// @}

 private:
  unsigned pick(std::uint32_t ranks);
  std::uint32_t ready() const;
  void give_turn(unsigned to);

  const std::vector<BlockContext*> blocks_;
  Order order_ = Order::kForward;
  std::uint64_t random_ = 1;
  std::vector<bool> over_;  // by rank
  std::mutex mutex_;
  std::deque<std::condition_variable> turn_has_come_;  // by rank
  unsigned turn_ = 0;                                  // guarded by mutex_
};

}  // namespace interpreter

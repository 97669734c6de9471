#include "common/interpreter/schedule/cluster.h"

#include <bit>

#include "common/interpreter/memory/shared_memory.h"
#include "common/interpreter/running/block_context.h"
#include "common/interpreter/schedule/activity.h"
#include "common/interpreter/schedule/picking.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {

Cluster::Cluster(std::vector<BlockContext*> blocks)
    : blocks_(std::move(blocks)), over_(blocks_.size(), false), turn_has_come_(blocks_.size()) {}

void Cluster::begin(LaunchState& launch, std::uint64_t number,
                    const std::function<void(unsigned rank, std::uint64_t index)>& begin_block) {
  const dim3 grid = launch.launch.grid, shape = launch.launch.cluster;
  const uint3 cluster = unflatten(number, dim3(grid.x / shape.x, grid.y / shape.y, grid.z / shape.z));
  std::vector<std::uint64_t> indices;
  std::vector<ThreadId> first_threads;
  for (unsigned rank = 0; rank < size(); ++rank) {
    const uint3 in_cluster = unflatten(rank, shape);
    const std::uint64_t x = cluster.x * shape.x + in_cluster.x, y = cluster.y * shape.y + in_cluster.y,
                        z = cluster.z * shape.z + in_cluster.z;
    indices.push_back((z * grid.y + y) * grid.x + x);
    first_threads.push_back(make_thread_id(launch.number, indices.back(), 0));
  }
  readers.begin(std::move(first_threads), (launch.threads + 31) / 32);
  events = launch.events && number != launch.recorded ? std::make_unique<EventLog>() : nullptr;
  for (unsigned rank = 0; rank < size(); ++rank) begin_block(rank, indices[rank]);
  over_.assign(size(), false);
  order_ = launch.options.order;
  random_ = random_state(launch.options.seed, ~number);  // no block's
  turn_ = pick(ready());
}

BlockContext* Cluster::home_of(std::uintptr_t address) const {
  for (BlockContext* const block : blocks_)
    if (block->shared.contains(address)) return block;
  return nullptr;
}

std::uintptr_t Cluster::counterpart(const BlockContext& own, std::uintptr_t address, unsigned rank) const {
  const SharedMemory &here = own.shared, &there = blocks_[rank]->shared;
  return here.arena.contains(address) ? address - here.arena.begin + there.arena.begin
                                      : address - here.statics.begin + there.statics.begin;
}

std::uint64_t Cluster::changes() const {
  std::uint64_t sum = 0;
  for (const BlockContext* const block : blocks_) sum += block->activity.changes();
  return sum;
}

unsigned Cluster::pick(std::uint32_t ranks) { return interpreter::pick(ranks, order_, random_); }

// Of which blocks somebody can go on.
std::uint32_t Cluster::ready() const {
  std::uint32_t ranks = 0;
  for (unsigned rank = 0; rank < size(); ++rank)
    if (!over_[rank] && blocks_[rank]->scheduler.anybody_ready()) ranks |= 1u << rank;
  return ranks;
}

void Cluster::give_turn(unsigned to) {
  {
    const std::lock_guard lock(mutex_);
    turn_ = to;
  }
  turn_has_come_[to].notify_one();
}

void Cluster::wait_for_turn(unsigned rank) {
  std::unique_lock lock(mutex_);
  turn_has_come_[rank].wait(lock, [&] { return turn_ == rank; });
}

bool Cluster::pass_turn(unsigned from) {
  const std::uint32_t ranks = ready();
  if (!ranks) return false;
  give_turn(pick(ranks));
  wait_for_turn(from);
  return true;
}

// Where nobody can go on, any other block finds that out.
void Cluster::leave(unsigned from) {
  over_[from] = true;
  std::uint32_t ranks = ready();
  for (unsigned rank = 0; !ranks && rank < size(); ++rank)
    if (!over_[rank]) ranks = 1u << rank;
  if (ranks) give_turn(pick(ranks));
}

}  // namespace interpreter

/// @file
/// Where racecheck keeps what it knows of each byte: of global memory once for all blocks, of shared memory for each block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>

#include "common/interpreter/debug_info/symbols.h"
#include "common/interpreter/happens_before/cells.h"
#include "common/interpreter/memory/global_memory.h"
#include "common/interpreter/memory/shared_memory.h"
#include "common/interpreter/running/launch_state.h"

namespace interpreter {

/// What happened to global memory, shared by all blocks. A stripe's lock guards the cells of some 4 KB ranges.
struct GlobalShadow {
  ShadowedRange memory{GlobalMemory::instance().base(), GlobalMemory::kBytes};
  ShadowedRange variables{interpreter::variables().begin,
                          static_cast<std::size_t>(interpreter::variables().end - interpreter::variables().begin)};
  static constexpr std::size_t kStripes = 256;
  std::mutex locks[kStripes];

  std::mutex& lock_of(std::uintptr_t address) { return locks[address / kPage % kStripes]; }
  ShadowedRange& range_of(std::uintptr_t address) { return memory.contains(address) ? memory : variables; }
  /// Of an address in any range: locked if that is one of these two; nobody shares a block's own.
  std::unique_lock<std::mutex> lock_in(const ShadowedRange& range, std::uintptr_t address) {
    return &range == &memory || &range == &variables ? std::unique_lock(lock_of(address)) : std::unique_lock<std::mutex>();
  }
};
/// What is released is forgotten there.
GlobalShadow& global_shadow();
/// Forgets who has used any memory, variables included.
void forget_all_accesses();

/// Calls `visit(address, bytes)` for pieces that lie in one page, and so under one lock.
template <class Visit>
void for_each_page(std::uintptr_t address, unsigned bytes, Visit&& visit) {
  for (const std::uintptr_t end = address + bytes; address < end;) {
    const auto part = static_cast<unsigned>(std::min<std::uintptr_t>(end - address, kPage - address % kPage));
    visit(address, part);
    address += part;
  }
}

/// What happened to a block's shared memory, and where to look for the rest.
class Shadows {
 public:
  Shadows(const Assignment& work, const SharedMemory& shared);
  /// A block with that much dynamic shared memory begins.
  void begin(std::size_t dynamic_bytes) { arena_.clear(dynamic_bytes); }
  /// Forgets the accesses to a __shared__ variable, whose offset in SharedMemory::statics this is.
  void forget_static(std::size_t offset, std::size_t bytes);

  /// Of an address in shared memory, that of other blocks of the cluster included.
  ShadowedRange& of_shared(std::uintptr_t address) {
    if (arena_.contains(address)) return arena_;
    return statics_ && statics_->contains(address) ? *statics_ : of_peer(address);
  }
  /// Of any address; null if nothing is kept of it.
  ShadowedRange* find(std::uintptr_t address);

 private:
  ShadowedRange& of_peer(std::uintptr_t address);

  const Assignment& work_;
  ShadowedRange arena_;
  std::uintptr_t statics_begin_;
  std::unique_ptr<ShadowedRange> statics_;  // null if the program has no __shared__ variables
};

}  // namespace interpreter

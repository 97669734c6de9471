/// @file
/// Who has read a place, where one stamp does not do for all.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "common/interpreter/happens_before/knowledge.h"

namespace interpreter {

/// Who has read words of shared memory that several warps have read: for each warp of the cluster its lanes, and since when.
class ReaderSets {
 public:
  struct Reader {
    std::uint32_t time = 0, lanes = 0, pc = 0;  ///< no lanes: the warp has not read
  };
  /// A cluster begins. @param blocks the first thread of each block  @param warps of each block
  void begin(std::vector<ThreadId> blocks, unsigned warps);
  std::uint32_t add();
  std::uint32_t copy(std::uint32_t set);
  void remove(std::uint32_t set) { free_.push_back(set); }
  Reader* of(std::uint32_t set) { return &readers_[std::size_t(set) * warps_]; }
  unsigned warps() const { return warps_; }                  ///< of the cluster
  bool of_one_block() const { return blocks_.size() == 1; }  ///< whether the cluster has no other
  /// The number of the thread's warp in the cluster.
  unsigned warp_of(ThreadId thread) const;
  bool holds(ThreadId thread) const { return warp_of(thread) < warps_; }  ///< whether it is one of the cluster's
  ThreadId thread(unsigned warp, unsigned lane) const {
    return blocks_[warp / warps_of_block_] | (warp % warps_of_block_ * 32 + lane);
  }

 private:
  std::vector<ThreadId> blocks_;
  unsigned warps_ = 0, warps_of_block_ = 1;
  std::vector<Reader> readers_;
  std::vector<std::uint32_t> free_;
};

/// Who has read what another block has written in the same launch, warp by warp. Few, and few such places: of others it is only
/// kept that they were read. A set belongs to a cell, whose lock guards it.
class HandedOn {
 public:
  struct Reader {
    ThreadId warp = 0;  ///< its first thread
    std::uint32_t lanes = 0, time = 0, pc = 0;
  };
  struct Set {
    unsigned count = 0;
    std::array<Reader, 6> readers;
  };
  /// @return the number of an empty set, 0: there are enough
  std::uint32_t add() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      if (made_ + 1 == chunks_.size() * kChunk) return 0;
      ++made_;
      if (!chunks_[made_ / kChunk]) chunks_[made_ / kChunk] = std::make_unique<Set[]>(kChunk);
      of(made_).count = 0;
      return made_;
    }
    const std::uint32_t set = free_.back();
    free_.pop_back();
    of(set).count = 0;
    return set;
  }
  void remove(std::uint32_t set) {
    const std::lock_guard lock(mutex_);
    free_.push_back(set);
  }
  Set& of(std::uint32_t set) { return chunks_[set / kChunk][set % kChunk]; }
  void clear() {
    const std::lock_guard lock(mutex_);
    made_ = 0, free_.clear();
  }

 private:
  static constexpr std::uint32_t kChunk = 256;
  std::mutex mutex_;
  std::uint32_t made_ = 0;
  std::vector<std::uint32_t> free_;
  std::array<std::unique_ptr<Set[]>, 128> chunks_;  // they stay where they are
};
extern HandedOn handed_on;

}  // namespace interpreter

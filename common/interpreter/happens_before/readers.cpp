#include "common/interpreter/happens_before/readers.h"

#include <algorithm>
#include <utility>

namespace interpreter {

HandedOn handed_on;

void ReaderSets::begin(std::vector<ThreadId> blocks, unsigned warps) {
  blocks_ = std::move(blocks);
  warps_of_block_ = warps, warps_ = warps * static_cast<unsigned>(blocks_.size());
  readers_.clear(), free_.clear();
}

unsigned ReaderSets::warp_of(ThreadId thread) const {
  const auto block = std::find(blocks_.begin(), blocks_.end(), thread - thread_of(thread));
  return static_cast<unsigned>(block - blocks_.begin()) * warps_of_block_ + thread_of(thread) / 32;
}

std::uint32_t ReaderSets::add() {
  if (free_.empty()) {
    readers_.resize(readers_.size() + warps_);
    return static_cast<std::uint32_t>(readers_.size() / warps_ - 1);
  }
  const std::uint32_t set = free_.back();
  free_.pop_back();
  std::fill_n(of(set), warps_, Reader());
  return set;
}

std::uint32_t ReaderSets::copy(std::uint32_t set) {
  const std::uint32_t copied = add();
  std::copy_n(of(set), warps_, of(copied));
  return copied;
}

}  // namespace interpreter

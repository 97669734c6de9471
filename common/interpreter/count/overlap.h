/// @file
/// What the warps of a block do while their copies are under way, in the order of each warp's program, and how they share the
/// loads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/interpreter/count/teamwork.h"
#include "common/interpreter/count/under_way.h"
#include "common/interpreter/observe/access_log.h"

namespace interpreter {

/// Counts what follows from a warp's log, for EachUnderWay and for Teamwork's shares; see count_each_access.
class Overlap {
 public:
  void begin(unsigned threads) {
    warps_.assign(count_each_access ? (threads + 31) / 32 : 0, {});
    loaded_ = 0;
  }
  /// Whether somebody has asked. Nothing else may be called if not.
  bool counts() const { return !warps_.empty(); }

  /// Lanes of the warp have issued cp.async of so many bytes.
  void begin_copies(unsigned warp, std::uint64_t bytes) { warps_[warp].bytes += bytes; }
  /// A thread of the warp need not wait for these any more. What the warp did before has been looked at.
  void end_copy(unsigned warp, std::uint64_t bytes) {
    Warp& w = warps_[warp];
    if (w.sum) each_under_way().bytes_at_loads += std::exchange(w.sum, 0);
    w.bytes -= bytes;
  }
  /// An access, at its place in what the warp did.
  void note(unsigned warp, const Request& request) {
    Warp& w = warps_[warp];
    const std::uint64_t bytes = std::uint64_t{request.count} * request.size;
    if (!is_store(request.op)) (request.shared ? w.of_shared : loaded_) += bytes;
    if (request.shared && !writes(request.op)) {
      w.sum += w.bytes, w.has_loaded = false, ++w.reads;
    } else if (request.op == Op::kLoad) {
      if (w.reads && w.loads.size() < kMostLoads) w.loads.push_back(w.reads);
      w.has_loaded = true, w.loaded += bytes;
    } else if (request.shared && is_store(request.op)) {
      if (w.has_loaded) each_under_way().straight_stores.fetch_add(1, std::memory_order_relaxed);
      const auto late = std::count_if(w.loads.begin(), w.loads.end(), [&](std::uint64_t before) { return 2 * before > w.reads; });
      if (late) each_under_way().late_loads.fetch_add(static_cast<std::uint64_t>(late), std::memory_order_relaxed);
      w.loads.clear(), w.reads = 0;
    }
  }
  /// Warps that have loaded from shared memory, a bit each.
  std::uint32_t reading() const {
    std::uint32_t all = 0;
    for (std::size_t warp = 0; warp < warps_.size(); ++warp) all |= std::uint32_t{warps_[warp].of_shared > 0} << warp;
    return all;
  }
  /// The block is over.
  void end() {
    for (const Warp& w : warps_)
      raise_to(teamwork().shared_bytes_of_warp, w.of_shared), raise_to(teamwork().loaded_by_warp, w.loaded);
    raise_to(teamwork().loaded_by_block, loaded_);
  }

 private:
  static constexpr std::size_t kMostLoads = 1024;  // of a round: who never writes to shared memory again has no next one
  struct Warp {
    std::uint64_t bytes = 0;           // that cp.async are to bring
    std::uint64_t sum = 0;             // of them at each load from shared memory, since one ended
    std::uint64_t loaded = 0;          // bytes, from global memory
    std::uint64_t of_shared = 0;       // bytes, from shared memory
    bool has_loaded = false;           // from global memory, and not from shared memory since
    std::uint64_t reads = 0;           // of shared memory, since it has last written there
    std::vector<std::uint64_t> loads;  // from global memory since then, behind some: the reads before each
  };
  std::vector<Warp> warps_;
  std::uint64_t loaded_ = 0;  // bytes of global memory, by all warps
};

}  // namespace interpreter

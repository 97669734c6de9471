/// @file
/// What the warps of a block do while their copies are under way, in the order of each warp's program, and how they share the
/// loads.
#pragma once

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
    if (!is_store(request.op)) (request.shared ? w.loaded : loaded_) += std::uint64_t{request.count} * request.size;
    if (request.shared && !writes(request.op))
      w.sum += w.bytes, w.has_loaded = false;
    else if (request.op == Op::kLoad)
      w.has_loaded = true;
    else if (w.has_loaded && request.shared && is_store(request.op))
      each_under_way().straight_stores.fetch_add(1, std::memory_order_relaxed);
  }
  /// The block is over.
  void end() {
    for (const Warp& w : warps_) raise_to(teamwork().shared_bytes_of_warp, w.loaded);
    raise_to(teamwork().loaded_by_block, loaded_);
  }

 private:
  struct Warp {
    std::uint64_t bytes = 0;   // that cp.async are to bring
    std::uint64_t sum = 0;     // of them at each load from shared memory, since one ended
    std::uint64_t loaded = 0;  // bytes of shared memory
    bool has_loaded = false;   // from global memory, and not from shared memory since
  };
  std::vector<Warp> warps_;
  std::uint64_t loaded_ = 0;  // bytes of global memory, by all warps
};

}  // namespace interpreter

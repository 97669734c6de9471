/// @file
/// Finds barriers that threads reach in different rounds of a loop.
///
/// A barrier under a condition that not all threads fulfil may still see all of them at a time, if those that pass it by come back
/// in the loop's next round. For CUDA that is a divergent barrier, and a warp of a GPU does not wait as one here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/interpreter/language/language.h"
#include "common/interpreter/observe/control_flow.h"
#include "common/interpreter/observe/way.h"

namespace interpreter {

/// What one kernel's barriers have shown so far.
class BarrierRounds {
 public:
  /// Two threads that have come to the same barrier by different ways.
  struct Pair {
    Way a, b;
    unsigned thread_a, thread_b;
    Site site;
  };

  /// Whether two threads that have come to the same barrier are in different rounds of a loop around it.
  bool differ(const ControlFlow& flow, const Way& a, const Way& b);
  /// Whether a thread that runs, or has ended, is in a later round of a loop around the barrier where another one waits: it has
  /// passed that barrier by.
  bool has_passed_by(const ControlFlow& flow, const Way& waiting, const Way& running);
  /// When a barrier is reached for the first time, nobody knows yet that a loop leads back to it: such pairs are kept.
  void keep_if_doubtful(const ControlFlow& flow, const Pair& pair);
  /// One of the pairs that were kept, if it is in different rounds, as one sees now that the block has ended. Forgets them all.
  std::optional<Pair> late_difference(const ControlFlow& flow);
  void forget_pairs() { kept_.clear(); }

 private:
  static constexpr std::size_t kMostKept = 64;

  // The control flow, of which some blocks may count as one.
  struct View {
    std::vector<std::uint32_t> node_of;                             // by block
    std::map<std::uint32_t, std::vector<ControlFlow::Loop>> loops;  // by block

    const std::vector<ControlFlow::Loop>& loops_around(const ControlFlow& flow, std::uint32_t block);
    bool differ(const ControlFlow& flow, const Way& a, const Way& b);
    bool is_ahead(const ControlFlow& flow, const Way& waiting, const Way& running);
  };
  void learn(const ControlFlow& flow);
  View& places(const ControlFlow& flow);

  std::vector<Pair> kept_;
  std::uint64_t version_ = 0;  // of the control flow that the rest is about
  View blocks_;
  std::optional<View> places_;                               // copies of a block count as one
  std::set<std::pair<std::uint64_t, std::uint64_t>> equal_;  // hashes of ways that were compared
};

}  // namespace interpreter

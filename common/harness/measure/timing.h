/// @file
/// Times launches on the GPU: CUDA events, graphs for short ones, all contestants in alternating rounds. And the energy that they
/// take.
#pragma once

#include <functional>
#include <vector>

#include "common/harness/results/results.h"

namespace harness {

/// One of the things that are timed against each other.
/// Starts the work once on device::stream(), on buffer set number `set`, and does not wait for it. Memory of Buffers that it makes
/// and gives back is kept for its next launch.
using Contestant = std::function<void(int set)>;

/// How much is timed.
struct TimingPlan {
  int sets = 1;  ///< of buffers
  /// Launches take the sets in turn, so that none finds in a cache what it needs. Otherwise rounds do, so that a figure is not that
  /// of one place in memory.
  bool cold = false;
  bool graphs = true;  ///< short launches are repeated in a CUDA graph; otherwise a round is always one launch
  int min_rounds = 11, max_rounds = 101;
  double seconds = 1;      ///< the rounds end after that long, but not before min_rounds
  double of_graph = 1e-3;  ///< seconds that a graph lasts, about
  double warm_up = 20e-3;  ///< seconds that each contestant runs before, and a quarter of that to see how long it takes
};

/// Seconds per launch, for each contestant and round.
struct Timings {
  std::vector<std::vector<double>> seconds;
  std::vector<int> launches;  ///< per round
  std::vector<bool> graph;

  /// Of one contestant, with quantiles over its rounds.
  Sample sample(std::size_t contestant) const;
  /// Of the other contestant's time over this one's, round by round.
  Ratio ratio(std::size_t contestant, std::size_t other) const;
};

/// Each contestant is warmed up alike. In each round, each contestant runs once; the order changes from round to round, so that
/// nobody always finds the GPU in the state that one other leaves. A contestant's run is one launch, or, where a launch is
/// short against the resolution of events (0.5 us) and the cost of launching, a CUDA graph of many. Unless the plan is to do
/// without graphs, it runs twice, and is timed the second time.
/// @param while_running called once, while the last round is being executed
Timings time_in_rounds(const std::vector<Contestant>& contestants, const TimingPlan& plan,
                       const std::function<void()>& while_running = {});

/// What a launch takes of energy and of time, where one contestant runs alone and without a pause: each for `plan.seconds` or a
/// little more, in two turns, the second one backwards.
/// @param joules the GPU's counter of energy. @throws device::Error when it stands still
std::vector<Energy> measure_energy(const std::vector<Contestant>& contestants, const TimingPlan& plan,
                                   const std::function<double()>& joules);

}  // namespace harness

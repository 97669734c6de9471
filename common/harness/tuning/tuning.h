/// @file
/// Which of a step's tiles is best for a problem: found out by trying them, and remembered.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/harness/program/arguments.h"
#include "common/harness/program/step.h"
#include "common/harness/results/results.h"
#include "common/harness/tuning/tuning_cache.h"
#include "common/harness/tuning/tuning_model.h"

namespace harness {

/// A tile that was considered for a problem.
struct Candidate {
  const Variant* variant = nullptr;
  /// What became of it.
  enum class Fate {
    kPruned,   ///< the GPU cannot run it
    kSkipped,  ///< it cannot be faster than the best: its bound says so
    kTimed,    ///< just now
    kKept,     ///< at an earlier time
    kWrong,    ///< its result is wrong
    kModelled  ///< there is nothing to time it with
  } fate = Fate::kModelled;
  std::string reason;  ///< of kPruned and kWrong
  Prediction prediction;
  double seconds = 0;  ///< of kTimed and kKept
};

/// What was found out.
struct Tuning {
  std::vector<Candidate> candidates;  ///< best first, then what was not timed, then what cannot run
  bool by_model = false;              ///< the best is what the model expects; nothing was timed
  /// Nothing if no tile can run.
  const Variant* best() const;
  /// The candidates for a result file.
  std::vector<TunedTile> tiles() const;
};

/// What tune() needs to know of the machine. On the interpreter there is nothing that could time: then the model alone chooses.
struct Tuner {
  GpuLimits gpu;
  /// What the compiler made of a tile; may be empty. @throws gemm::Refused when the tile's launcher refuses the problem
  std::function<KernelResources(const Variant&)> resources;
  /// Runs a tile once. @return what is wrong with the result, or an empty string. May be empty.
  std::function<std::string(const Variant&)> verify;
  /// Seconds of one launch of each tile, all timed in the same rounds; may be empty.
  std::function<std::vector<double>(const std::vector<const Variant*>&)> time;
  /// Told how many of the tiles that are worth timing have been timed; may be empty.
  std::function<void(std::size_t done, std::size_t all)> progress;
};

/// Finds the best of `variants` for `key`. Tiles that the GPU cannot run are pruned. Those that the cache knows are not timed
/// again. The others are timed in groups, in the order of the model's estimate, each group beside the best one so far, so that the
/// GPU's temperature and clocks are the same for both; a tile whose bound is above the best time is left out, and would have lost.
Tuning tune(const std::vector<const Variant*>& variants, const TuningKey& key, const Tuner& tuner, TuningCache& cache);

/// One line for each candidate: its time or the reason why it has none, and what the model said.
std::string to_text(const Tuning& tuning, const Spec& spec);
/// What a cache knows, as a table: the best tile of each problem, in the order of their names.
std::string to_text(const std::vector<TunedProblem>& problems);

}  // namespace harness

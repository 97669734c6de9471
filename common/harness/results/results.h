/// @file
/// A step's results as a JSON document: docs/results/README.md describes it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/program/text.h"
#include "common/harness/results/roofline.h"

namespace harness {

/// Times of one launch, in seconds, over the rounds of a measurement.
struct Sample {
  double median = 0, q20 = 0, q80 = 0;
  int rounds = 0, launches = 1;  ///< launches per round
  bool graph = false;            ///< replayed as one CUDA graph
};

/// Time of the baseline / our time, round by round.
struct Ratio {
  double median = 0, q20 = 0, q80 = 0;
};

/// What a launch takes among others of its own kind, without a pause between them.
struct Energy {
  double joules = 0, seconds = 0;
};

/// What others took for the same problem.
struct Baseline {
  std::string name;  ///< "cublasGemmEx" or "cublasLt"; of a fused problem others too, see docs/results/README.md
  std::optional<Sample> time;
  std::optional<Ratio> ratio;
  int candidates = 1;  ///< algorithms that it was chosen from
  std::optional<Energy> energy = {};
};

/// The state of the GPU while it measured; what NVML did not say is missing.
struct Conditions {
  std::optional<double> sm_hz, memory_hz, power, power_limit, temperature;  ///< hertz, watts, degrees Celsius
  std::vector<std::string> throttle;
};

/// How the step launched its kernel, and what a thread and a block of it take.
struct Launch {
  double blocks = 0;
  int threads = 0, registers = 0;  ///< of a block, of a thread
  int blocks_per_sm = 0;           ///< that fit at the same time
  double shared_bytes = 0;         ///< of a block, static and dynamic
  double local_bytes = 0;          ///< of a thread: what did not fit into registers
};

/// What the counters let expect of a GPU: an estimate, no measurement.
struct Projection {
  std::string gpu;
  double flops_per_second = 0;
};

/// What tuning found of one tile. Seconds.
struct TunedTile {
  std::string tile;
  std::optional<double> seconds;  ///< measured; nothing where it was not timed
  double bound = 0, model = 0;    ///< what it takes at least, and what the model expects; 0 where it knows nothing of the tile
  std::string pruned;             ///< why it cannot run
};

/// One tile on one problem, verified.
struct Result {
  std::string step, tile;
  bool first = false;  ///< the step's best tile for these types
  Spec spec;
  std::string mode;        ///< "hot", "cold", "single" or "count"
  int fallback_block = 0;  ///< not the tile's kernel ran but the fallback, whose blocks compute so many rows and columns
  Roofline roofline;
  std::vector<TunedTile> tuning;  ///< the candidates that it was chosen from, best first
  // On a GPU:
  std::optional<Sample> time;
  std::vector<Baseline> baselines;
  std::optional<Energy> energy;
  std::optional<Conditions> conditions;
  std::optional<Launch> launch;
  // On the interpreter:
  std::map<std::string, double> counters;
  std::optional<double> seconds;
  std::optional<Projection> projection;

  /// Operations per second; none for empty problems and times that no clock resolves.
  std::optional<double> rate() const;
};

/// The machine that results were made on.
struct Machine {
  std::string backend, cpu, os;
  int cores = 0;
  std::string gpu;
  int compute_capability = 0, multiprocessors = 0;
  double l2_bytes = 0, memory_bytes = 0;
  std::optional<std::string> uuid, driver, cublas;
  std::string cuda;
};
/// The part that does not depend on the GPU: cpu, os, cores.
Machine this_host();

/// "2026-11-21T07:00:00Z".
std::string utc_now();
/// The course's, from the environment variable COURSE_COMMIT.
std::optional<std::string> commit();

/// The document of one program's run.
std::string to_json(const Machine& machine, const Ceilings& ceilings, const std::vector<Result>& results);

/// Writes a file whole or not at all: under another name first, renamed when everything is on the disk.
/// @throws BadInput when the folder cannot be written, the disk is full or what is there is no regular file; what was at `path`
/// stays.
void write_file(const std::string& path, const std::string& text);
/// Finds out early whether write_file() can. @throws BadInput when it cannot
void check_writable(const std::string& path);

/// Operations per second that a result file holds for `step`'s `tile` on `spec`, hot; nothing where it has no such result.
/// @throws std::runtime_error when the file cannot be read
std::optional<double> measured_rate(const std::string& path, const std::string& step, const std::string& tile, const Spec& spec);

/// What a result file holds of tuning: a Result for each problem, with `step`, `tile`, `spec` and `tuning` alone.
/// @throws std::runtime_error when the file cannot be read
std::vector<Result> read_tuning(const std::string& path);

/// Ceilings kept in a file, by GPU and driver. Nothing when there is no such file or it is of another GPU or damaged.
std::optional<Ceilings> read_ceilings(const std::string& path, const Machine& machine);
/// Keeps them, as write_file() does.
void write_ceilings(const std::string& path, const Machine& machine, const Ceilings& ceilings);

}  // namespace harness

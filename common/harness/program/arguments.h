/// @file
/// The command line of a step's program.
#pragma once

#include <string>
#include <vector>

#include "common/harness/problem/problem.h"

namespace harness {

/// What a timed launch finds in the L2 cache: what the one before left there, or nothing of use.
enum class Mode {
  kHot,
  kCold,
  kSingle,  ///< cold too, and each launch by itself, where kHot and kCold repeat short ones in a CUDA graph
};

/// A step's command line, checked.
struct Arguments {
  std::vector<Spec> problems;
  Mode mode = Mode::kHot;
  std::string activation;  ///< as typed; empty: the step's own
  bool bias = false;       ///< added before the activation
  bool once = false;       ///< one launch per tile, not timed: for profilers
  std::string order = "forward";
  bool force = false;
  bool profile = false;            ///< on the interpreter: model the L2 cache too, and count under all of ncu's names
  unsigned multiprocessors = ~0u;  ///< that kernels are told of, at most
  std::string project_to;          ///< name of a GPU, or empty
  bool first = false;              ///< of each problem's tiles, only the one that stands for the step
  std::string tile;                ///< of each problem's tiles, only the one with these words in its name; empty: all
  double seconds = 1;              ///< that the rounds of a measurement last, unless they are as many as there may be, or too few
  double energy = 0;               ///< seconds that each contestant runs alone, for its energy; 0: that is not measured
  bool check_memory = false;       ///< end after that check, which is the same for all steps
  std::string json;                ///< file for the results, or empty
  std::string ceilings;            ///< file that keeps measured ceilings, or empty
  // Of steps whose tiles are tuned:
  bool tune = false;         ///< find the best tile, and measure nothing else
  bool verbose = false;      ///< say of each tile what became of it
  bool show_cache = false;   ///< show what earlier tuning found, and end
  bool clear_cache = false;  ///< forget it, and end
  std::string cache;         ///< folder for what tuning finds
};

/// Reads the command line, runs `body`, and turns what it throws into an exit code: 2 for input that can be repaired, 1 for
/// everything else. --help is answered here.
int run_program(int argc, char** argv, int (*body)(const Arguments&));

}  // namespace harness

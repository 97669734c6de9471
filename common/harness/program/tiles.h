/// @file
/// Which of the step's kernels a problem can be run with; a tuned step's choice among them, and what the program says of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/harness/measure/backend.h"

namespace harness {

/// The variants of the problem's types that were built for its epilogue. Where not all tiles were, whoever can time them is given
/// all tiles unfused, too: with a kernel of its own for the epilogue.
std::vector<const Variant*> variants_for(const Spec& spec);

/// The problems that were asked for, with the epilogue that was asked for. @throws BadInput where the step has no such kernel
std::vector<Spec> problems_with_epilogue(const Arguments& arguments);

/// With --tile, only that one; with --first, only the tile that stands for the step.
/// @throws BadInput where --tile means none, or several
std::vector<const Variant*> to_measure(std::vector<const Variant*> variants, const Arguments& arguments);

/// --show and --clear: prints what is known, or forgets it. @return whether all went well
bool manage_cache(const Arguments& arguments);

/// Finds the best tile, and prints which. @param problem makes the problem, or finds it made; not called if nothing is timed
Tuning find_best_tile(const Spec& spec, const std::function<Problem&()>& problem, const Arguments& arguments,
                      const Machine& machine, const Ceilings& ceilings);

/// Whether a tile's product was wrong.
bool found_wrong(const Tuning& tuning);
/// On a GPU only the best is worth running; the interpreter runs all that the GPU could.
std::vector<const Variant*> worth_running(const Tuning& tuning);
/// Why no candidate can run: each reason once.
std::string why_none(const Tuning& tuning);

}  // namespace harness

/// @file
/// A tuned step's choice among its tiles, and what the program says of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/harness/measure/backend.h"
#include "common/harness/program/arguments.h"
#include "common/harness/tuning/tuning.h"

namespace harness {

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

/// @file
/// What a step's program does differently on the GPU and on the interpreter: backend_gpu.cpp, backend_interpreter.cpp.
#pragma once

#include <functional>

#include "common/harness/program/arguments.h"
#include "common/harness/program/step.h"
#include "common/harness/results/results.h"
#include "common/harness/tuning/tuning.h"

namespace harness {

/// Whether this backend times what it runs, or only counts.
#ifdef COURSE_ON_GPU
constexpr bool kCanTime = true;
#else
constexpr bool kCanTime = false;
#endif

/// Applies the options that concern the backend. @throws BadInput for those that it cannot follow.
void prepare(const Arguments& arguments);

/// Whether the step can run here.
Availability availability(const Step& step);

/// Where this program runs; on the interpreter with the GPU that it models.
Machine this_machine();

/// Measured on the GPU at hand, or kept from an earlier time in `arguments.ceilings`; datasheet figures on the interpreter.
Ceilings this_ceilings(const Arguments& arguments, const Machine& machine);

/// @throws BadInput when there is not enough memory for it, before anything is allocated; the same for all steps.
void check_memory(const Spec& spec, const Arguments& arguments);
/// @throws BadInput when it would take too long.
void check_patience(const Spec& spec, const Arguments& arguments, const std::vector<const Variant*>& variants);

/// Which of the `step`'s `variants` is best for `spec`: timed on a GPU, unless the cache knows; expected by the model on the
/// interpreter.
/// @param problem makes the problem, or finds it made; not called if nothing is timed
Tuning tune_here(const Step& step, const std::vector<const Variant*>& variants, const Spec& spec,
                 const std::function<Problem&()>& problem, const Machine& machine, const Ceilings& ceilings, TuningCache& cache);

/// Runs `variant` on `problem`, verifies C, and fills in what this backend measures of it; times are verified again after the last.
/// @return what is wrong, or an empty string.
std::string measure(const Variant& variant, Problem& problem, const Arguments& arguments, Result& result);

/// What was measured, for people; ends with a newline.
std::string to_text(const Result& result, const Arguments& arguments);

}  // namespace harness

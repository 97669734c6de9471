/// @file
/// Which of the step's kernels a problem can be run with.
#pragma once

#include <vector>

#include "common/harness/problem/problem.h"
#include "common/harness/program/arguments.h"
#include "common/harness/program/step.h"

namespace harness {

/// The variants of the problem's types that were built for its epilogue. Where not all tiles were, whoever can time them is given
/// all tiles unfused, too: with a kernel of its own for the epilogue.
std::vector<const Variant*> variants_for(const Spec& spec);

/// The problems that were asked for, with the epilogue that was asked for. @throws BadInput where the step has no such kernel
std::vector<Spec> problems_with_epilogue(const Arguments& arguments);

/// With --tile, only that one; with --first, only the tile that stands for the step.
/// @throws BadInput where --tile means none, or several
std::vector<const Variant*> to_measure(std::vector<const Variant*> variants, const Arguments& arguments);

}  // namespace harness

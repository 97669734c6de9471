/// @file
/// What every step must be able to do, as doctest checks: one suite for all steps, tiles, types and backends.
#pragma once

#include "common/harness/step.h"

namespace harness {

/// Runs the whole suite on each variant of `step`, on the interpreter in all orders.
void check_conformance(const Step& step);

/// Compares the interpreter's counters with each table that ncu recorded of this step. On a GPU, does nothing.
void check_counters(const Step& step);

}  // namespace harness

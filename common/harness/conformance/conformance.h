/// @file
/// What every step must be able to do, as doctest checks: one suite for all steps, tiles, types and backends.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/harness/problem/problem.h"
#include "common/harness/program/step.h"

namespace harness {

/// Runs the whole suite on each variant of `step`, on the interpreter in all orders.
/// @param with_fallback whether the fallback (common/device/fallback.cuh) is run in all orders too, and with its large tiles: it is
/// the same kernel in every step that has it, so one of them shows it
void check_conformance(const Step& step, bool with_fallback = false);

/// Runs a variant with each fused epilogue that it was built for, on ragged shapes, in all layouts, with values that are negative,
/// zero, huge, infinite and NaN. check_conformance() does so too; this is for tests that plant errors.
/// @return the first thing that is wrong, or an empty string
std::string wrong_epilogue(const Variant& variant);

/// The unit test that published lessons use: 512 x 512 x 512 in f16, elements uniform in (-0.5, 0.5), seed 0; no element of C is
/// 0.01 or more from cuBLAS's (on the interpreter, from the reference rounded to f16).
void check_lesson_problem(const Step& step);

/// Compares the interpreter's counters with each table that ncu recorded of this step. On a GPU, does nothing.
/// @param tables how many there must be, so that none is lost unseen  @param but metrics that the lesson explains, by ncu's names
void check_counters(const Step& step, std::size_t tables, const std::vector<std::string>& but = {});

/// Each candidate in f16 is what it says: the launcher takes its kernel, with its threads and shared memory; and with row-major A
/// and B it loads fragments without bank conflicts. On a GPU, does nothing.
void check_candidates(const Step& step);

/// Projects what the interpreter counts of each tile at 256 x 256 x 1024 to an H200, and compares with what was measured there at
/// 4096 x 4096 x 4096. On a GPU, does nothing.
/// @param error the largest that is allowed, as a part of the measured rate
void check_projection(const Step& step, DType type, double error);

/// Launches of each tile of f16 in a row, dependent launches: each reads what the one before has written, and overwrites what that
/// one has read. Checks that the last product is right, to the last bit.
void check_launches_in_a_row(const Step& step);

/// All of C after a launch of the variant on the problem, row by row.
std::vector<double> product(Problem& problem, const Variant& variant);

/// Checks that the product is right, and has the same bits in every launch: on the interpreter in other orders, on a GPU in 100
/// more.
/// @return it
std::vector<double> check_same_bits(Problem& problem, const Variant& variant);

}  // namespace harness

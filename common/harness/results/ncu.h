/// @file
/// Tables that ncu recorded on a GPU (tools/gpu-checks counters), to compare the interpreter's counters with.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace harness {

/// One launch: counters by ncu's metric names.
using NcuRow = std::map<std::string, double>;

/// The rows of a table, docs/results/GPU/ncu/NAME.csv, in the order of the launches.
/// @throws std::runtime_error when there is no such table.
std::vector<NcuRow> read_ncu_table(const std::string& path);

/// The tables under docs/results whose file name begins with `prefix`, as paths; sorted.
std::vector<std::string> find_ncu_tables(const std::string& prefix);

/// What differs between what ncu counted and what the interpreter counted, or an empty string. Wavefronts and conflicts of the
/// l1tex unit include arbitration, so the interpreter may be below: up to 10 % for stores and copies, 0.5 % for loads beside
/// copies; a copy that reads nothing may have up to four wavefronts more; nvcc may put three shared loads that never run in front
/// of a cp.async, which ncu counts as instructions. See docs/interpreter.md.
std::string differences(const NcuRow& ncu, const std::map<std::string, double>& interpreter);

}  // namespace harness

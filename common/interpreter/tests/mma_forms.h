/// @file
/// Problems for every form of mma.sync and wgmma, of which an H200's results are known, and the forms.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/interpreter/instructions/mma_model.h"
#include "common/interpreter/tests/ptx_cases.h"

namespace mma_forms {

struct Form {
  std::string name;
  bool of_warpgroup;
  int m, n, k;
  interpreter::MmaForm types;
  bool negates = false, from_zero = false;
  int problems_of_family, probes;
};
std::vector<Form> all();

/// Operands as bits: a row by row, b column by column, c row by row.
struct Problem {
  int family;
  std::vector<std::uint64_t> a, b, c;
};
/// The same on every machine.
std::vector<Problem> problems(const Form& form);

/// d, row by row, as the interpreter's model of tensor cores says.
std::vector<std::uint64_t> by_model(const Form& form, const Problem& problem);

/// A row of a table for each family. @param d by problem
std::vector<ptx_cases::Result> results(const Form& form, const std::vector<Problem>& problems,
                                       const std::vector<std::vector<std::uint64_t>>& d);

}  // namespace mma_forms

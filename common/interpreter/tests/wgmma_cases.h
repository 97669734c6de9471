/// @file
/// Cases for wgmma whose results are known from a GPU, as those of ptx_cases.h.
#pragma once

#include <cstdint>
#include <vector>

#include "common/interpreter/tests/ptx_cases.h"

namespace wgmma_cases {

struct Case {
  ptx_cases::Result result;
  std::vector<std::uint32_t> model;  ///< what the interpreter's model of tensor cores says; empty unless asked for
};

/// All cases, in the order of a table's rows.
std::vector<Case> run(bool with_model);

}  // namespace wgmma_cases

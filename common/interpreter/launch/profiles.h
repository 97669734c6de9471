/// @file
/// What is kept of a launch for profiles().
#pragma once

#include <map>

#include "common/interpreter/debug_info/lines.h"
#include "common/interpreter/interpreter.h"

namespace interpreter {

/// Adds a launch, whose counters are still those of instructions: lines are looked up when somebody asks.
void add_profile(KernelProfile profile, std::map<Pc, Counters> counters);

}  // namespace interpreter

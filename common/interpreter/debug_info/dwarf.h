/// @file
/// The program's debug information, for the sources of this room.
#pragma once

#include <elfutils/libdwfl.h>

#include <mutex>
#include <vector>

#include "common/interpreter/debug_info/lines.h"

namespace interpreter {

/// libdw takes one thread at a time.
extern std::mutex libdw_mutex;
/// The program; null if it cannot be read. libdw puts some 300 KB on its stack for a large line table, more than a CUDA thread's or
/// a signal handler's: whoever looks there makes a thread for it.
Dwfl_Module* program();
/// Frames of an instruction, innermost first: where it stands, then where each inlined function was called.
std::vector<Location> frames(Pc pc);

}  // namespace interpreter

/// @file
/// Pieces of reports, and the errors of host code.
#pragma once

#include <string>
#include <vector>

#include "common/interpreter/debug_info/lines.h"
#include "common/interpreter/interpreter.h"

namespace interpreter {

/// @name Pieces of reports
/// @{
std::string at(const Location& location);
std::string to_text(uint3 index);
std::string hex(unsigned x);
/// @}

/// Of the functions of the host that run, innermost first.
std::vector<const void*> return_addresses();
/// The line of the user's that leads to the innermost of them.
Location first_line_of_user(const std::vector<const void*>& return_addresses);
/// The same of the call.
Location host_line();
/// @throws KernelError: host code has called a kernel, or what only kernels may call.
[[noreturn]] void fail_outside_of_launches();
/// What the host does at the line that runs.
Diagnosis of_host(Check check, std::string what, std::string expected, std::string variable = "");
/// The host accesses device memory at `p`.
Diagnosis host_access(const void* p);

}  // namespace interpreter

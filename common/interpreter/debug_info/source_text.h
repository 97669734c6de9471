/// @file
/// Names that stand in a line of source.
#pragma once

#include <string>

#include "common/interpreter/debug_info/lines.h"

namespace interpreter {

/// The array that the source subscripts at `where`: "w" of `filter.w[3]`, where g++ says where the subscript ends, and clang where
/// the expression begins. Empty if the source cannot be read.
std::string subscripted(const Location& where);
/// The pointer or array that an access uses by its own name: "sA" of `sA[i] = 0`, of `x = sA[i]`, of `*sA`. Empty where the line
/// does not say it for certain, and for members.
std::string accessed_name(const Location& where, bool store);

}  // namespace interpreter

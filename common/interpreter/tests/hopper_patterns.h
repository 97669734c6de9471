/// @file
/// Hopper's instructions whose counters are to be known from a GPU: launched by the same table on the GPU (under ncu) and on the
/// interpreter.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace hopper_patterns {

/// One kernel of one block in which one instruction is executed some times: what two numbers of times differ in is its own.
struct Pattern {
  std::string what;  ///< "wgmma f16 n128 K K swizzle 128, 4 times, 128 threads"
  std::function<void()> launch;
};

/// In the order of a table's rows.
const std::vector<Pattern>& all();

}  // namespace hopper_patterns

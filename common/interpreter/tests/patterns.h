/// @file
/// Access patterns whose counters are known from a GPU: launched by the same table on the GPU (under ncu) and on the interpreter.
#pragma once

#include <string>
#include <vector>

namespace patterns {

/// One warp-wide access per warp: lanes of `mask` access element (lane / div % mod) * stride + lane % low * low_stride + offset.
struct Pattern {
  const char* what;
  char space;      ///< 's' shared, 'g' global
  char operation;  ///< 'l' load, 's' store
  int size;        ///< bytes per lane
  int div, mod, stride, low, low_stride, offset;
  unsigned mask = 0xffffffffu;
  int threads = 32;
  bool half = false;  ///< lanes 0-15 access element `offset` instead
};

/// In the order in which launch_all() launches them, one kernel each.
const std::vector<Pattern>& all();
void launch_all();

}  // namespace patterns

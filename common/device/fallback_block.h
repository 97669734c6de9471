/// @file
/// How a harness knows the fallback (fallback.cuh), which a step's launcher may have started in place of the step's own kernel.
#pragma once

#include <string>

namespace device {

/// How many rows and columns of C a block of the kernel of that name, mangled or not, computes if it is the fallback; else 0.
inline int fallback_block(const std::string& kernel) {
  const std::size_t name = kernel.find("fallback_kernel");  // then come <64, or ILi64E
  return name == std::string::npos ? 0 : std::stoi(kernel.substr(kernel.find_first_of("0123456789", name)));
}

}  // namespace device

/// @file
/// What is known of the fallback (fallback.cuh) on the host: how large its blocks are, and how a harness knows it, which a step's
/// launcher may have started in place of the step's own kernel.
#pragma once

#include <cstdint>
#include <string>

#include "common/gemm/matrix.h"

namespace device {

/// How many rows and columns of a C of that size a block of the fallback computes. Large tiles copy each element half as often, if
/// there are enough of them for the SMs of a large GPU.
constexpr int fallback_block(std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t kEnough = 128;
  return gemm::ceil_div<std::int64_t>(rows, 128) * gemm::ceil_div<std::int64_t>(cols, 128) >= kEnough ? 128 : 64;
}

/// How many rows and columns of C a block of the kernel of that name, mangled or not, computes if it is the fallback; else 0.
inline int fallback_block(const std::string& kernel) {
  const std::size_t name = kernel.find("fallback_kernel");  // then come <64, or ILi64E
  return name == std::string::npos ? 0 : std::stoi(kernel.substr(kernel.find_first_of("0123456789", name)));
}

}  // namespace device

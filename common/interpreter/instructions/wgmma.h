/// @file
/// wgmma and setmaxnreg, for common/device/wgmma.cuh. Not inline, so that the return address names the place in the kernel.
#pragma once

#include <cstdint>

#include "common/interpreter/instructions/mma_model.h"

namespace interpreter {

void wgmma_fence();
void wgmma_commit_group();
void wgmma_wait_group(unsigned groups);
/// @param d of the lane, n / 2  @param transposed_a, transposed_b the matrix is MN-major
void wgmma_m64k16(float* d, unsigned n, std::uint64_t descriptor_a, std::uint64_t descriptor_b, bool accumulates, bool is_half,
                  bool transposed_a, bool transposed_b);
/// What a lane gives to a wgmma of any form.
struct WgmmaOperands {
  std::uint64_t descriptor_a = 0, descriptor_b = 0;
  const std::uint32_t* a = nullptr;  ///< four registers, where A is no matrix in shared memory
  bool accumulates = true, negates = false;
  bool transposed_a = false, transposed_b = false;  ///< of 16-bit numbers
};
/// @param d of the lane: n / 2 registers, or n / 4 of two halves
void wgmma(const MmaForm& form, unsigned n, std::uint32_t* d, const WgmmaOperands& operands);
void setmaxnreg(unsigned registers, bool more);

/// Where instructions that have 18 bits for an address in shared memory find it.
std::uint32_t shared_address(const void* p);
void* shared_at(std::uint32_t address);  ///< the way back

}  // namespace interpreter

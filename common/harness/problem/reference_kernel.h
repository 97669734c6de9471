/// @file
/// The reference on the device, for problems that would take the CPU too long.
#pragma once

#include "common/harness/program/step.h"

namespace harness {

/// Starts the kernel that computes, in double precision and row-major, the sums over k of a · b and of |a · b|.
/// @param type of A's and B's elements
/// @param sum, magnitude A.rows x B.cols each, in device memory
void launch_reference(DType type, const AnyMatrix& A, const AnyMatrix& B, double* sum, double* magnitude);

}  // namespace harness

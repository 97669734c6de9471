/// @file
/// What reports call the memory of cudaMalloc and its kin: the variable that receives the pointer.
#pragma once

#include <string>

namespace interpreter::cuda_runtime {

/// Tells the name from the text of a call's arguments: `(void **)&d_a, n * sizeof(float)` gives `d_a`.
std::string label_of(const std::string& arguments);

/// The next allocation is the one with these arguments.
void label_next_allocation(const char* arguments);

}  // namespace interpreter::cuda_runtime

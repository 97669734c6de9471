/// @file
/// From addresses to the program's functions and variables, as its own file lists them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace interpreter {

/// As many threads as the __launch_bounds__ of a kernel allow in a block; 0 if it has none that are known. Nothing if `function`
/// was not declared __global__. language.h makes the compiler write down both.
std::optional<unsigned> kernel_bound(const void* function);

/// Where the function that holds `address` begins; null if it is none of the program's.
const void* function_begin(const void* address);

/// What a program of two views has for the device in place of `p`, a function or a variable of the host's: tools/interpret compiles
/// a file twice where __CUDA_ARCH__ makes the views differ. `p` itself in other programs, and if it is the device's already; null
/// if the device's view does not have it.
const void* in_devices_view(const void* p);

/// Demangled name of the function at `address`, without its parameters.
std::string function_name(const void* address);

/// A __shared__ variable of the program: a thread_local.
struct SharedVariable {
  std::size_t offset, bytes;  ///< in the program's TLS block
  std::string name;
};
/// Sorted by offset. Empty if the program was stripped.
const std::vector<SharedVariable>& shared_variables();
/// Not of the user: the compiler's notes whether a thread_local has been constructed yet (for types like __half2, which have a
/// constructor that does nothing).
const std::vector<SharedVariable>& construction_guards();

/// A variable of the program that is not thread_local: __device__, __constant__, or the host's.
struct Variable {
  const char* begin;
  std::size_t bytes;
  std::string name;
  bool of_host = false;  ///< declared without __device__, __constant__ or __managed__, as far as that can be told
};
/// The one that holds `p`, or the last before it; null if there is none.
const Variable* variable_near(const void* p);

struct Range {
  const char* begin = nullptr;
  const char* end = nullptr;
};
inline bool inside(const void* p, const Range& range) { return p >= range.begin && p < range.end; }
Range image();               ///< the program's mapped image: code, constants, variables
Range variables();           ///< the writable part of it, where __device__ variables live
Range constant_memory();     ///< its __constant__ variables
Range calling_thread_tls();  ///< the calling OS thread's copy of the program's TLS block

}  // namespace interpreter

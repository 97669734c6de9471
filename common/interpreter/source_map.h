/// @file
/// From machine addresses to what a person wrote: source lines, __shared__ variables, kernel names.
///
/// Reads the running program's own symbols and debug information (elfutils' libdw), lazily: a launch without errors and without a
/// request for its line profile looks nothing up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace interpreter {

/// A machine instruction, by its address in the program's file.
using Pc = std::uint32_t;
extern const std::uintptr_t image_bias;  ///< where the image was loaded, less where its file says it is
inline Pc to_pc(const void* return_address) {
  return static_cast<Pc>(reinterpret_cast<std::uintptr_t>(return_address) - image_bias);
}

struct Location {
  std::string file;  ///< as the compiler was given it; empty if unknown
  int line = 0, column = 0;
  bool operator==(const Location&) const = default;
};

/// The line a user wrote that leads to `pc`: calls of CUDA's headers and of the course's wrappers are unwound.
Location user_location(Pc pc);

/// Whether both instructions come from the same expression of the user: the parts into which a compiler splits one vector access.
bool same_expression(Pc a, Pc b);

/// Demangled name of the function at `address`, without its parameters.
std::string function_name(const void* address);

/// A __shared__ variable of the program: a function-local thread_local.
struct SharedVariable {
  std::size_t offset, bytes;  ///< in the program's TLS block
  std::string name;
};
/// Sorted by offset. Empty if the program was stripped.
const std::vector<SharedVariable>& shared_variables();
/// Not of the user: the compiler's notes whether a thread_local has been constructed yet (for types like __half2, which have a
/// constructor that does nothing).
const std::vector<SharedVariable>& construction_guards();

struct Range {
  const char* begin = nullptr;
  const char* end = nullptr;
};
Range image();               ///< the program's mapped image: code, constants, variables
Range variables();           ///< the writable part of it, where __device__ variables live
Range constant_memory();     ///< its __constant__ variables
Range calling_thread_tls();  ///< the calling OS thread's copy of the program's TLS block

}  // namespace interpreter

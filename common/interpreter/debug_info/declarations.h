/// @file
/// What debug information says of declarations: what an access goes through, parameters, __device__ variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/interpreter/debug_info/lines.h"

namespace interpreter {

struct Variable;

/// accessed_name() of the access at `pc`, if the kernel itself makes it, not a function that it calls.
std::string accessed_name_in_kernel(Pc pc, bool store);
/// The pointer or array through which the user's own code makes an access, and what it points to; empty and 0 where not certain.
struct AccessedThrough {
  std::string name;           ///< as accessed_name() gives it
  std::string type = {};      ///< of an element
  std::size_t bytes = 0;      ///< of an element
  std::uint32_t padding = 0;  ///< of an element: its words, bit i for the bytes 4i to 4i + 3, that are none of its members'
};
AccessedThrough accessed_through(Pc pc, bool store);
/// Whether words of an aligned read of `size` bytes can be padding of the struct that the instruction at `pc` reads; false if the
/// source does not say for certain what that is. Words are bits as in AccessedThrough.
bool are_padding(Pc pc, unsigned size, std::uint32_t words);
/// The parameters of a function, as far as debug information has them.
struct Parameter {
  std::string name;
  bool is_restrict = false;
};
std::vector<Parameter> parameters(const void* function);
/// Whether it is declared __device__ (known of g++ alone) or __constant__, and not __managed__.
bool is_for_kernels_alone(const Variable& variable);

}  // namespace interpreter

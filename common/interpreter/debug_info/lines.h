/// @file
/// From machine instructions to the lines that a person wrote.
///
/// Debug information is read lazily (elfutils' libdw): a launch without errors and without a request for its line profile looks
/// nothing up.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
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
  int called_at = 0;           ///< of user_location(), in an inlined function of the user's: the line that calls it
  std::string called_in = {};  ///< and its file, where that is another one
  auto operator<=>(const Location&) const = default;
};

/// The line a user wrote that leads to `pc`: calls of CUDA's headers and of the course's wrappers are unwound.
Location user_location(Pc pc);

/// Whether the lines of a file mean nothing to whoever wrote the kernel: those of the course's own files, of the system's and
/// CUDA's.
bool is_plumbing(const std::string& file);

/// Whether both instructions come from the same expression of the user: the parts into which a compiler splits one vector access.
bool same_expression(Pc a, Pc b);

/// Where the code at `pc` begins, and the calls that lead there. clang gives a block's first instructions no line at times: then it
/// is the first line after them, and before `end`. Empty if there is none.
std::vector<Location> beginning_of(Pc pc, Pc end = ~Pc{0});

/// The call closest to the kernel in which the ways to the two instructions differ, or where they stand in one function; equal
/// locations if they do not differ, as far as debug information tells. Only inlined calls are known.
std::pair<Location, Location> where_calls_differ(Pc a, Pc b);
/// The frames of the instruction from the first that a user wrote outwards.
std::vector<Location> user_frames(Pc pc);

}  // namespace interpreter

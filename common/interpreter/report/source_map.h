/// @file
/// From machine addresses to what a person wrote: source lines, __shared__ variables, kernel names.
///
/// Reads the running program's own symbols and debug information (elfutils' libdw), lazily: a launch without errors and without a
/// request for its line profile looks nothing up.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
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

/// As many threads as the __launch_bounds__ of a kernel allow in a block; 0 if it has none that are known. Nothing if `function`
/// was not declared __global__. language.h makes the compiler write down both.
std::optional<unsigned> kernel_bound(const void* function);

/// Where the function that holds `address` begins; null if it is none of the program's.
const void* function_begin(const void* address);

/// The array that the source subscripts at `where`: "w" of `filter.w[3]`, where g++ says where the subscript ends, and clang where
/// the expression begins. Empty if the source cannot be read.
std::string subscripted(const Location& where);
/// The pointer or array that an access uses by its own name: "sA" of `sA[i] = 0`, of `x = sA[i]`, of `*sA`. Empty where the line
/// does not say it for certain, and for members.
std::string accessed_name(const Location& where, bool store);
/// The same of the access at `pc`, if the kernel itself makes it, not a function that it calls.
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
/// The call closest to the kernel in which the ways to the two instructions differ, or where they stand in one function; equal
/// locations if they do not differ, as far as debug information tells. Only inlined calls are known.
std::pair<Location, Location> where_calls_differ(Pc a, Pc b);

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
/// Whether it is declared __device__ (known of g++ alone) or __constant__, and not __managed__.
bool is_for_kernels_alone(const Variable& variable);

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

/// @file
/// Runs generated kernels: those that are right must be silent and equal to their serial twin in all orders, those with a mistake
/// must be reported in all orders. generate.py writes them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "common/device/ptx.cuh"

namespace fuzz {

using Numbers = std::vector<uint32_t>;

/// A struct of 16 bytes whose parts are not of one size.
struct Record {
  uint32_t a[3];
  uint16_t b, c;
};
/// A struct returned by a call.
[[gnu::noinline]] inline __device__ Record made_record(uint32_t x, unsigned t) {
  return {{x, x + 1, x ^ 3}, static_cast<uint16_t>(t), static_cast<uint16_t>(x)};
}

/// A generated kernel.
struct Case {
  unsigned seed;
  const char* what;  ///< its phases, and the mistake
  unsigned threads, blocks;
  std::size_t aux, source;  ///< words of global memory that it changes, and that it reads
  void (*kernel)(const uint32_t* in, uint32_t* out, uint32_t* aux, const uint32_t* source);
  void (*serial)(Numbers& X, unsigned block, Numbers& aux, const Numbers& source);
  std::vector<std::string> expected;  ///< checks of which one must report it; none if it is right
};

/// The checks that must report the copy of a struct at a wrong address. clang splits the copy, and its check of alignment leaves
/// copies out: there the result may be all that shows it, and the g++ build tells.
inline std::vector<std::string> of_a_copy(std::vector<std::string> checks) {
#ifdef __clang__
  checks.push_back("wrong result");
#endif
  return checks;
}

/// Makes a case known to the program.
struct Registered {
  explicit Registered(Case c);
};

/// Runs all that are known, a line on stdout for each that is not as it should be, and one with the numbers.
/// @return an exit code: 0 if all right kernels were silent and equal, and of those with a mistake, at least `least` (0 to 1)
/// caught
int run_all(double least);

}  // namespace fuzz

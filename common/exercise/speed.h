/// @file
/// What a kernel's time is compared with: the solution's, measured in the same rounds of the same process.
#pragma once

#include <string>

namespace exercise {

/// An answer's time beside the solution's.
struct Speed {
  double ratio = 0;                           ///< the answer's time over the solution's, the median of all rounds
  double seconds = 0, solutions_seconds = 0;  ///< of one call
  int rounds = 0;                             ///< in each of which both ran
  double bar = 0;                             ///< the largest ratio that passes
};

/// What a learner is told if the answer is slower than the bar, or if nobody knows; an empty string if it is fast enough.
std::string too_slow(const Speed& speed);

/// "3.2 ms a call, 1.02 times what the solution takes (at most 1.15)".
std::string in_words(const Speed& speed);

}  // namespace exercise

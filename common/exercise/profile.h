/// @file
/// What 'course profile' asks of an exercise's test: which problems it has, and what the learner's kernels do there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/harness/problem/dtype.h"
#include "common/interpreter/interpreter.h"

namespace exercise {

/// What the learner's function is called for.
struct Subject {
  std::string words;                 ///< which no other problem of the test has
  std::int64_t heads = 1;            ///< products of this shape in one call
  std::int64_t m = 0, n = 0, k = 0;  ///< zeros where nothing is multiplied
  harness::DType in = {}, out = {};  ///< elements of A and B, and of C
};

/// Asks for a profile of what is run from now on.
/// @param where on the interpreter a file for what is counted; on a GPU the words of the Subject that ncu is to see
void profile_to(const std::string& where);

/// What `launches`, those of one call, have counted becomes part of the profile.
void add_to_profile(const Subject& subject, const std::vector<interpreter::KernelProfile>& launches);

/// The test of the problem that is called `words` wants at most `bound` of what stands in this row of the profile's table.
void add_to_profile(const std::string& words, const std::string& row, double bound);

/// Writes the profile, if somebody has asked for one.
void write_profile();

/// Thrown when a profiler has seen what it is to see: nothing more is wanted of the program.
struct Seen {};

/// Calls `body`. On a GPU ncu sees what it launches, if this is the problem that profile_to() named. @throws Seen then
void call_in_sight(const Subject& subject, const std::function<void()>& body);

}  // namespace exercise

/// @file
/// Times an answer against the solution, and for a record against cuBLAS. GPU only.
#pragma once

#include <string>
#include <vector>

#include "common/exercise/coach.h"

namespace exercise {

/// Times what two runs of one test have asked for, in alternating rounds of both functions on the same inputs.
/// @param answers of the file that is judged  @param solutions of the course's answer, in the same order
/// @param results a file for times, also those of cublasGemmEx, hot and cold; empty: only hot, without cuBLAS, and no file
/// @return what to tell who passed, lines  @throws NotYet for the first that is too slow, or wrong after it was timed
std::string race(const std::vector<Timed>& answers, const std::vector<Timed>& solutions, const std::string& results);

}  // namespace exercise

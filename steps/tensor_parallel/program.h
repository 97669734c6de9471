/// @file
/// What the program does with its arguments.
#pragma once

#include <string>
#include <vector>

#include "common/harness/program/text.h"
#include "steps/tensor_parallel/problem.h"

namespace tensor_parallel {

struct Place;

/// The command line, checked.
struct Options {
  int ranks = 0;  ///< 0: as many as there are GPUs
  std::vector<Shape> shapes;
  std::vector<harness::DType> types;
  std::string json;  ///< file for the results, or empty
  double seconds = 2, patience = 7;
  double soak = 0;
};

/// On the interpreter: runs all plans, and says which ranks have what. @param code 1 if something is wrong
void verify_all(Communicator& communicator, const Options& options, int* code);

/// On a GPU: one rank of `place`, whose results the first one writes. @return exit code
int run_rank(const Place& place, const Options& options);

}  // namespace tensor_parallel

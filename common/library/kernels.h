/// @file
/// The kernels that the library is made of: some tiles of some steps, as CMakeLists.txt lists them.
#pragma once

#include <string>
#include <vector>

#include "common/harness/program/step.h"

namespace gemm::library {

/// What a step's launcher asks of A and B so that its own kernel runs; otherwise it takes the fallback. Each includes those before.
enum class Operands {
  kAny,     ///< nothing
  kChunks,  ///< aligned chunks of 16 bytes: device::in_chunks()
  kBoxes    ///< what the copy engine copies: device::has_tensor_map()
};

/// A tile of a step, for a pair of types.
struct Kernel {
  harness::Step step;        ///< its name and what it needs of a GPU; no variants
  harness::Variant variant;  ///< the tile, by the name of step and tile; no functions
  Operands operands;
  /// Calls the step's launcher, with gemm::LeakyRelu of that slope. A slope of 1 is no activation at all, for any sum: so the
  /// library has half as many kernels.
  void (*run)(const harness::AnyMatrix& A, const harness::AnyMatrix& B, const harness::AnyMatrix& C, float slope);
};

/// All of them.
const std::vector<Kernel>& kernels();

}  // namespace gemm::library

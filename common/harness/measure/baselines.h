/// @file
/// cuBLAS on the same problem, to compare with.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/harness/program/step.h"

namespace harness {

/// Operands of one multiplication in device memory.
struct Operands {
  AnyMatrix A, B, C;
  const void* bias = nullptr;  ///< one element of C's type for each column of C, or null
};

/// cuBLAS and cublasLt with a workspace each, sums in float (f32 without TF32). Their default math mode may split k and add the
/// parts in 16 bits; that is what their users get, so it is what a step is compared with.
class Cublas {
 public:
  Cublas();
  ~Cublas();
  Cublas(const Cublas&) = delete;

  /// "13.1.0".
  std::string version() const;

  /// One way to compute C = A · B for operands placed like those it was made for: starts it on device::stream().
  /// @throws device::Error when cuBLAS fails
  using Algorithm = std::function<void(const Operands&)>;

  /// cublasGemmEx with its own choice of algorithm; nothing where cuBLAS has no such layout: every operand needs one stride of 1
  /// and the other at least as large as a row, sizes must fit into 31 bits, and no dimension may be 0.
  std::vector<Algorithm> gemm_ex(const Operands& like, DType in, DType out) const;
  /// What cublasLt's heuristics propose, best first; nothing as above, and where it has no such epilogue: its ReLU and its GELU,
  /// which is the tanh form, with and without a bias, and the bias alone, for a row-major C.
  std::vector<Algorithm> lt_candidates(const Operands& like, DType in, DType out, const Epilogue& epilogue = {}) const;

 private:
  struct Handles;
  std::shared_ptr<Handles> handles_;
};

}  // namespace harness

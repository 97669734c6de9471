/// @file
/// One matrix multiplication to run: its shape, types and layout, its data and its right result.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/harness/problem/reference.h"
#include "common/harness/problem/test_matrix.h"

namespace harness {

/// What is multiplied: A is m x k, B is k x n, C is m x n and row-major.
struct Spec {
  std::int64_t m = 0, n = 0, k = 0;
  DType in = DType::kF32, out = DType::kF32;
  bool transpose_a = false, transpose_b = false;  ///< stored column by column instead of row by row
  Epilogue epilogue = {};                         ///< fused; the bias has C's type

  /// "nn", "nt", "tn" or "tt": A, then B.
  std::string layout() const { return {transpose_a ? 't' : 'n', transpose_b ? 't' : 'n'}; }
  /// "256x512x128".
  std::string shape() const { return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k); }
  /// 2 m n k, a multiplication and an addition each.
  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

/// Bytes of A, B, C and the bias.
double matrix_bytes(const Spec& spec);
/// @throws BadInput when the host's memory does not hold a Problem for `spec` and `extra` bytes.
void check_host_memory(const Spec& spec, double extra = 0);

/// How `v` adds up: a kernel of its own for the epilogue finds sums that are already rounded to C's type.
Reference::Sums sums_of(const Variant& v, const Spec& spec);

/// A Spec with its data: A and B random, C NaN, and the reference.
class Problem {
 public:
  /// Elements of A and B are normally distributed, mean 0, deviation 1; the same on every machine for the same `spec`.
  explicit Problem(const Spec& spec);
  /// @param random called for each element of A, then of B, row by row, then of the bias
  Problem(const Spec& spec, const std::function<double()>& random);
  /// Gives as many of them at once as it is asked for.
  using Numbers = std::function<const double*(std::int64_t count)>;

  /// Starts C = epilogue(A · B) on the device.
  void run(const Variant& v) const { v.run(spec.epilogue, A.view(), B.view(), C.view(), bias.view().data); }
  /// Fetches C from the device. @return what is wrong with it, with the bytes around it, with A or with B; or an empty string.
  std::string verify(Reference::Sums sums = Reference::Sums::kFloat);

  Spec spec;
  TestMatrix A, B, C;
  TestMatrix bias;  ///< one row, or none
  Reference reference;

 private:
  Problem(const Spec& spec, const Numbers& random);
};

}  // namespace harness

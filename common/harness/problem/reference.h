/// @file
/// What C must be: A · B in double precision, and how far a result may be from it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/harness/problem/epilogue.h"
#include "common/harness/problem/test_matrix.h"

namespace harness {

/// C = A · B in double precision, with the sum of magnitudes that bounds the error of any order of summation.
class Reference {
 public:
  /// Where it is computed.
  enum class Where { kHost, kDevice };
  /// Computes all elements: on the host over all cores, or with launch_reference() on the device.
  Reference(const TestMatrix& A, const TestMatrix& B, Where where);
  /// On a GPU above 1024³ multiply-adds, on the host below and on the interpreter.
  Reference(const TestMatrix& A, const TestMatrix& B);

  /// How a result was summed, and so how far it may be from the reference.
  enum class Sums {
    kExact,    ///< without any rounding error, as small integers are
    kFloat,    ///< in float, in any order (N. J. Higham, Accuracy and Stability of Numerical Algorithms, section 3.1)
    kInParts,  ///< also parts of the sum, or all of it before the epilogue, in C's type, as cuBLAS and a kernel that fuses nothing
               ///< may
  };
  /// What an epilogue makes of a sum that may be off by `tolerance`, before it is rounded to C's type.
  using Finish = std::function<Expected(double sum, double tolerance, std::int64_t col)>;
  /// The first element of C that is wrong, in words, or an empty string. Besides what `sums` may lose, one rounding to C's type is
  /// allowed. NaN and infinity must be where the reference has them.
  std::string compare(const TestMatrix& C, Sums sums, const Finish& finish = {}) const;
  /// The same for a fused epilogue. @param bias one row of as many columns as C has; without elements if the epilogue has no bias
  std::string compare(const TestMatrix& C, Sums sums, const Epilogue& epilogue, const TestMatrix& bias) const;

  /// Element (row, col) of A · B.
  double sum(std::int64_t row, std::int64_t col) const { return sum_[static_cast<std::size_t>(row * cols_ + col)]; }
  /// Sum of |a · b| over k.
  double magnitude(std::int64_t row, std::int64_t col) const { return magnitude_[static_cast<std::size_t>(row * cols_ + col)]; }

 private:
  void compute_on_host(const TestMatrix& A, const TestMatrix& B);
  std::string compare_rows(const TestMatrix& C, std::int64_t begin, std::int64_t end, Sums sums, const Finish& finish) const;

  std::int64_t rows_, cols_, k_;
  std::vector<double> sum_, magnitude_;
};

/// Starts the kernel that computes, in double precision and row-major, the sums over k of a · b and of |a · b|.
/// @param type of A's and B's elements  @param sum, magnitude A.rows x B.cols each, in device memory
void launch_reference(DType type, const AnyMatrix& A, const AnyMatrix& B, double* sum, double* magnitude);

}  // namespace harness

/// @file
/// The problems of an exercise's test with their data: what the learner's function is called with, and what C has to be.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/exercise/coach.h"
#include "common/harness/problem/test_matrix.h"

namespace exercise {

/// The matrices of one call, in device memory; C is NaN.
class Posed {
 public:
  virtual ~Posed() = default;

  /// What the function is called with. The views are those of this problem's matrices, or of copies of them.
  Operands operands(const harness::AnyMatrix& of_a, const harness::AnyMatrix& of_b, const harness::AnyMatrix& of_c,
                    const void* of_bias) const;
  /// The same with this problem's own matrices.
  Operands operands() const { return operands(A.view(), B.view(), C.view(), bias.view().data); }
  /// Fetches C, and says what is wrong with bytes around its elements; an empty string if all is right.
  std::string fetch();
  /// The same, and says what is wrong with C or with the inputs. In the witness it does not compare.
  std::string verify();
  /// Other values, at the same addresses; C is NaN again.
  void renew() { refill(++values_), C.poison(); }
  /// What is wrong with a matrix that was computed without what is fused, perhaps in parts; or an empty string.
  virtual std::string compare_plain(const harness::TestMatrix& of_c) const = 0;

  /// Three matrices of one multiplication.
  struct Product {
    harness::AnyMatrix A, B, C;
  };
  /// The multiplications that the call consists of, in views of A, B and C.
  virtual std::vector<Product> products(const harness::AnyMatrix& of_a, const harness::AnyMatrix& of_b,
                                        const harness::AnyMatrix& of_c) const = 0;
  /// Another C, NaN, as large and as padded as this one.
  harness::TestMatrix another_C() const;

  double input_bytes() const;   ///< of A and B
  double output_bytes() const;  ///< of C

  harness::TestMatrix A, B, C, bias;  ///< A bias of no elements where there is none

 protected:
  /// @param a, b A and B, filled  @param out C's type  @param of_c how C lies in memory  @param of_bias no elements: none
  Posed(std::int64_t m, std::int64_t n, std::int64_t k, harness::TestMatrix a, harness::TestMatrix b, harness::DType out,
        const harness::Placement& of_c, const std::string& name_of_c, harness::TestMatrix of_bias, std::uint64_t values);
  /// What is wrong with C, which was fetched.
  virtual std::string compare() const = 0;
  /// Fills A, B and the bias with numbers that `values` stands for.
  virtual void refill(std::uint64_t values) = 0;

 private:
  std::int64_t m_, n_, k_;
  harness::Placement placement_of_c_;
  std::string name_of_c_;
  std::uint64_t values_;
};

/// C = epilogue(A · B).
std::unique_ptr<Posed> posed(const Case& c, harness::DType in, harness::DType out);
/// A product for each head.
std::unique_ptr<Posed> posed(const Heads& h, harness::DType in, harness::DType out);

/// A figure in a message.
std::string number(double x);

}  // namespace exercise

/// @file
/// Division by a number that is known before a launch.
#pragma once

#include <bit>
#include <cstdint>

#include "common/gemm/matrix.h"

namespace gemm {

/// A number by which kernels divide. A GPU has no instruction for that, and nvcc makes some twenty of `/`, one waiting for the
/// other. By a number that the launcher knows, it is a multiplication and a shift (T. Granlund and P. L. Montgomery, "Division by
/// Invariant Integers using Multiplication", PLDI 1994).
class Divisor {
 public:
  /// @param value from 1 to 2^31 - 1
  explicit constexpr Divisor(std::int64_t value)
      : value_(static_cast<unsigned>(value)),
        shift_(static_cast<unsigned>(31 + std::bit_width(value_ - 1))),
        factor_(static_cast<unsigned>(((std::uint64_t{1} << shift_) + value_ - 1) / value_)) {}

  /// The number itself. By name: an int beside it becomes unsigned too.
  GEMM_HOST_DEVICE constexpr unsigned value() const { return value_; }
  /// The quotient, rounded down. @param number up to 2^31 - 1
  GEMM_HOST_DEVICE constexpr unsigned divide(unsigned number) const {
    return static_cast<unsigned>(std::uint64_t{number} * factor_ >> shift_);  // factor_ is too large by less than 2^-31 of itself
  }

 private:
  unsigned value_, shift_, factor_;
};

}  // namespace gemm

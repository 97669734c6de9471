#include "common/harness/problem/reference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "common/device/device.cuh"
#include "common/harness/program/parallel.h"
#include "common/harness/program/text.h"

namespace harness {
namespace {

std::string number(double x) { return formatted("%.9g", x); }

Reference::Where best_place([[maybe_unused]] const TestMatrix& A, [[maybe_unused]] const TestMatrix& B) {
#ifdef COURSE_ON_GPU
  constexpr double kWorthTheGpu = 1024.0 * 1024 * 1024;
  if (static_cast<double>(A.rows()) * static_cast<double>(A.cols()) * static_cast<double>(B.cols()) > kWorthTheGpu)
    return Reference::Where::kDevice;
#endif
  return Reference::Where::kHost;
}

}  // namespace

Reference::Reference(const TestMatrix& A, const TestMatrix& B) : Reference(A, B, best_place(A, B)) {}

Reference::Reference(const TestMatrix& A, const TestMatrix& B, Where where) : rows_(A.rows()), cols_(B.cols()), k_(A.cols()) {
  sum_.assign(static_cast<std::size_t>(rows_ * cols_), 0);
  magnitude_ = sum_;
  if (sum_.empty()) return;
  if (where == Where::kHost) {
    compute_on_host(A, B);
    return;
  }
  device::Buffer<double> sum(sum_.size(), "sum"), magnitude(sum_.size(), "magnitude");
  launch_reference(A.type(), A.view(), B.view(), sum.data(), magnitude.data());
  sum.download(sum_.data(), sum_.size());
  magnitude.download(magnitude_.data(), magnitude_.size());
}

void Reference::compute_on_host(const TestMatrix& A, const TestMatrix& B) {
  std::vector<double> b(static_cast<std::size_t>(k_ * cols_));
  for (std::int64_t k = 0; k < k_; ++k)
    for (std::int64_t c = 0; c < cols_; ++c) b[static_cast<std::size_t>(k * cols_ + c)] = B.at(k, c);
  in_parts(rows_, static_cast<double>(rows_) * static_cast<double>(k_ * cols_), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      double* const sum = &sum_[static_cast<std::size_t>(r * cols_)];
      double* const magnitude = &magnitude_[static_cast<std::size_t>(r * cols_)];
      for (std::int64_t k = 0; k < k_; ++k) {
        const double a = A.at(r, k), *const row = &b[static_cast<std::size_t>(k * cols_)];
        for (std::int64_t c = 0; c < cols_; ++c) {
          sum[c] += a * row[c];
          magnitude[c] += std::fabs(a * row[c]);
        }
      }
    }
  });
}

std::string Reference::compare(const TestMatrix& C, Sums sums, const Epilogue& epilogue, const TestMatrix& bias) const {
  if (epilogue.is_identity()) return compare(C, sums);
  return compare(C, sums, [&](double sum, double tolerance, std::int64_t col) {
    if (std::isinf(sum)) tolerance = 0;
    if (!epilogue.bias) return expected(epilogue.activation, sum, tolerance);
    const double biased = sum + bias.at(0, col);
    const double rounding = std::isfinite(biased) ? 0x1p-24 * (std::fabs(biased) + tolerance) : 0;
    return expected(epilogue.activation, biased, tolerance + rounding);
  });
}

std::string Reference::compare(const TestMatrix& C, Sums sums, const Finish& finish) const {
  std::map<std::int64_t, std::string> wrong;  // by the part's first row
  std::mutex one_at_a_time;
  in_parts(rows_, 20.0 * static_cast<double>(rows_ * cols_), [&](std::int64_t begin, std::int64_t end) {
    const std::string text = compare_rows(C, begin, end, sums, finish);
    const std::lock_guard lock(one_at_a_time);
    if (!text.empty()) wrong[begin] = text;
  });
  return wrong.empty() ? "" : wrong.begin()->second;
}

std::string Reference::compare_rows(const TestMatrix& C, std::int64_t begin, std::int64_t end, Sums sums,
                                    const Finish& finish) const {
  const DType out = C.type();
  // Halfway from the largest number to the next power of two.
  const double rounds_to_infinity = largest(out) + unit_roundoff(out) * std::exp2(std::floor(std::log2(largest(out))));
  for (std::int64_t r = begin; r < end && cols_ > 0; ++r)
    for (std::int64_t c = 0; c < cols_; ++c) {
      // k products and k additions, each rounded to float once: |error| <= k u / (1 - k u) * sum |a b|, in whatever order. Then
      // comes the epilogue, then the result is rounded to C's type.
      const double ku = static_cast<double>(k_ + 1) * 0x1p-24;
      double tolerance = sums == Sums::kExact ? 0 : ku / (1 - ku) * magnitude(r, c) + static_cast<double>(k_) * 0x1p-149;
      if (sums == Sums::kInParts) tolerance += unit_roundoff(out) * magnitude(r, c);
      double expected = sum(r, c);
      if (finish) {
        const Expected finished = finish(expected, tolerance, c);
        expected = finished.value, tolerance = finished.tolerance;
      }
      const double got = C.at(r, c);
      tolerance += unit_roundoff(out) * (std::fabs(expected) + tolerance) + underflow_unit(out);

      bool right;
      if (std::isnan(expected))
        right = std::isnan(got);
      else if (std::isinf(expected))
        right = got == expected;
      else if (std::fabs(expected) - tolerance >= rounds_to_infinity)
        right = std::isinf(got) && (got > 0) == (expected > 0);
      else if (std::isinf(got))
        right = std::fabs(expected) + tolerance >= rounds_to_infinity && (got > 0) == (expected > 0);
      else
        right = std::fabs(got - expected) <= tolerance;  // false if got is NaN
      if (!right)
        return "C[" + std::to_string(r) + ", " + std::to_string(c) + "] is " + number(got) + ", expected " + number(expected) +
               (std::isfinite(expected) ? " within " + number(tolerance) : "");
    }
  return "";
}

}  // namespace harness

#include "common/harness/problem.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>

#include "common/device/device.cuh"

namespace harness {
namespace {

constexpr std::int64_t kGuard = 512;      // elements on both sides of a matrix
constexpr unsigned char kPattern = 0xa5;  // of bytes that belong to nobody

std::string number(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

std::string position(std::int64_t row, std::int64_t col) { return "[" + std::to_string(row) + ", " + std::to_string(col) + "]"; }

}  // namespace

Placement row_major(std::int64_t rows, std::int64_t cols, std::int64_t padding) { return {rows, cols, cols + padding, 1, 0}; }
Placement column_major(std::int64_t rows, std::int64_t cols, std::int64_t padding) { return {rows, cols, 1, rows + padding, 0}; }

TestMatrix::TestMatrix(std::string name, DType type, const Placement& p) : name_(std::move(name)), type_(type), placement_(p) {
  std::int64_t lowest = 0, highest = 0;
  for (const std::int64_t reach : {(p.rows - 1) * p.row_stride, (p.cols - 1) * p.col_stride})
    (reach < 0 ? lowest : highest) += p.rows > 0 && p.cols > 0 ? reach : 0;
  first_ = kGuard + p.offset - lowest / 64 * 64 + (lowest % 64 ? 64 : 0);
  const std::size_t cells = static_cast<std::size_t>(first_ + highest + 1 + kGuard);
  bytes_ = cells * bytes(type);
  host_.assign(bytes_, kPattern);
  is_element_.assign(cells, false);
  for (std::int64_t r = 0; r < p.rows; ++r)
    for (std::int64_t c = 0; c < p.cols; ++c) is_element_[static_cast<std::size_t>(element(r, c))] = true;
  device_ = device::detail::allocate(bytes_, name_);
}

TestMatrix::TestMatrix(TestMatrix&& other) noexcept
    : name_(std::move(other.name_)),
      type_(other.type_),
      placement_(other.placement_),
      first_(other.first_),
      bytes_(other.bytes_),
      device_(std::exchange(other.device_, nullptr)),
      host_(std::move(other.host_)),
      is_element_(std::move(other.is_element_)) {}

TestMatrix::~TestMatrix() {
  if (device_) device::detail::release(device_);
}

std::int64_t TestMatrix::element(std::int64_t row, std::int64_t col) const {
  return first_ + row * placement_.row_stride + col * placement_.col_stride;
}

AnyMatrix TestMatrix::view() const {
  return {static_cast<char*>(device_) + first_ * static_cast<std::int64_t>(bytes(type_)), placement_.rows, placement_.cols,
          placement_.row_stride, placement_.col_stride};
}

double TestMatrix::at(std::int64_t row, std::int64_t col) const {
  return load(type_, host_.data() + static_cast<std::size_t>(element(row, col)) * bytes(type_));
}

void TestMatrix::fill(const std::function<double(std::int64_t, std::int64_t)>& value) {
  for (std::int64_t r = 0; r < rows(); ++r)
    for (std::int64_t c = 0; c < cols(); ++c)
      store(type_, host_.data() + static_cast<std::size_t>(element(r, c)) * bytes(type_), value(r, c));
  device::detail::copy_in(device_, host_.data(), bytes_);
}

void TestMatrix::poison() {
  fill([](std::int64_t, std::int64_t) { return std::numeric_limits<double>::quiet_NaN(); });
}

std::string TestMatrix::fetch() {
  const std::vector<unsigned char> before = host_;
  device::detail::copy_out(host_.data(), device_, bytes_);
  for (std::size_t i = 0; i < bytes_; ++i)
    if (!is_element_[i / bytes(type_)] && host_[i] != before[i])
      return "a byte outside the elements of " + name_ + " was overwritten, " +
             std::to_string(static_cast<std::int64_t>(i / bytes(type_)) - first_) + " elements from its first";
  return "";
}

std::string TestMatrix::changed() const {
  std::vector<unsigned char> now(bytes_);
  device::detail::copy_out(now.data(), device_, bytes_);
  const auto [mine, other] = std::mismatch(host_.begin(), host_.end(), now.begin());
  if (mine == host_.end()) return "";
  return "the input " + name_ + " was overwritten, " +
         std::to_string((mine - host_.begin()) / static_cast<std::int64_t>(bytes(type_)) - first_) + " elements from its first";
}

Reference::Reference(const TestMatrix& A, const TestMatrix& B, std::vector<std::int64_t> rows)
    : k_(A.cols()), rows_(std::move(rows)), cols_(B.cols()) {
  if (rows_.empty()) {
    rows_.resize(static_cast<std::size_t>(A.rows()));
    std::iota(rows_.begin(), rows_.end(), 0);
  }
  std::vector<double> b(static_cast<std::size_t>(k_ * cols_));
  for (std::int64_t k = 0; k < k_; ++k)
    for (std::int64_t c = 0; c < cols_; ++c) b[static_cast<std::size_t>(k * cols_ + c)] = B.at(k, c);
  sum_.assign(rows_.size() * static_cast<std::size_t>(cols_), 0);
  magnitude_ = sum_;
  const auto work = [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      double *const sum = &sum_[r * static_cast<std::size_t>(cols_)], *const magnitude =
                                                                          &magnitude_[r * static_cast<std::size_t>(cols_)];
      for (std::int64_t k = 0; k < k_; ++k) {
        const double a = A.at(rows_[r], k), *const row = &b[static_cast<std::size_t>(k * cols_)];
        for (std::int64_t c = 0; c < cols_; ++c) {
          sum[c] += a * row[c];
          magnitude[c] += std::fabs(a * row[c]);
        }
      }
    }
  };
  if (cols_ == 0) return;
  const std::size_t work_size = rows_.size() * static_cast<std::size_t>(k_ * cols_);
  const std::size_t threads = work_size < 100'000 ? 1 : std::max(1u, std::thread::hardware_concurrency());
  const std::size_t share = (rows_.size() + threads - 1) / threads;
  std::vector<std::thread> pool;
  for (std::size_t begin = 0; begin < rows_.size(); begin += share)
    pool.emplace_back(work, begin, std::min(begin + share, rows_.size()));
  for (std::thread& t : pool) t.join();
}

std::string Reference::compare(const TestMatrix& C, bool exact, const std::function<double(double)>& epilogue) const {
  const DType out = C.type();
  for (std::size_t r = 0; r < rows_.size(); ++r)
    for (std::int64_t c = 0; c < cols_; ++c) {
      const std::size_t i = r * static_cast<std::size_t>(cols_) + static_cast<std::size_t>(c);
      const double expected = epilogue ? epilogue(sum_[i]) : sum_[i], got = C.at(rows_[r], c);
      // k products and k additions, each rounded to float once: |error| <= k u / (1 - k u) * sum |a b|, in whatever order. The
      // epilogue adds a rounding or two (2 x + 1 doubles what came in), then the result is rounded to C's type.
      const double ku = static_cast<double>(k_ + 1) * 0x1p-24;
      double tolerance = exact ? 0 : ku / (1 - ku) * magnitude_[i] + static_cast<double>(k_) * 0x1p-149;
      if (epilogue) tolerance = 2 * tolerance + 0x1p-23 * std::fabs(expected);
      tolerance += unit_roundoff(out) * (std::fabs(expected) + tolerance) + underflow_unit(out);

      // Halfway from the largest number to the next power of two.
      const double rounds_to_infinity = largest(out) + unit_roundoff(out) * std::exp2(std::floor(std::log2(largest(out))));
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
        return "C" + position(rows_[r], c) + " is " + number(got) + ", expected " + number(expected) +
               (std::isfinite(expected) ? " within " + number(tolerance) : "");
    }
  return "";
}

}  // namespace harness

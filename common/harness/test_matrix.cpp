#include "common/harness/test_matrix.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "common/device/device.cuh"

namespace harness {
namespace {

constexpr std::int64_t kGuard = 512;      // elements on both sides of a matrix
constexpr unsigned char kPattern = 0xa5;  // of bytes that belong to nobody

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
  // Along what is contiguous, if anything is: a word of bits at a time.
  const bool columns = p.row_stride == 1 && p.col_stride != 1, runs = columns || p.col_stride == 1;
  const std::int64_t length = runs ? (columns ? p.rows : p.cols) : 1;
  for (std::int64_t r = 0; r < p.rows; r += columns ? length : 1)
    for (std::int64_t c = 0; c < p.cols; c += columns ? 1 : length) std::fill_n(is_element_.begin() + element(r, c), length, true);
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

AnyMatrix TestMatrix::view() const { return view_in(device_); }

AnyMatrix TestMatrix::view_in(void* copy) const {
  return {static_cast<char*>(copy) + first_ * static_cast<std::int64_t>(bytes(type_)), placement_.rows, placement_.cols,
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
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (placement_.col_stride != 1) {
    fill([](std::int64_t, std::int64_t) { return kNaN; });
    return;
  }
  // Every measurement does this several times: row by row, it takes a tenth of the time.
  std::vector<unsigned char> row(static_cast<std::size_t>(cols()) * bytes(type_));
  for (std::size_t at = 0; at < row.size(); at += bytes(type_)) store(type_, row.data() + at, kNaN);
  for (std::int64_t r = 0; r < rows(); ++r)
    std::copy(row.begin(), row.end(), host_.begin() + element(r, 0) * static_cast<std::int64_t>(bytes(type_)));
  device::detail::copy_in(device_, host_.data(), bytes_);
}

std::string TestMatrix::fetch() {
  const std::vector<unsigned char> before = host_;
  device::detail::copy_out(host_.data(), device_, bytes_);
  const std::size_t size = bytes(type_);
  for (std::size_t i = 0; i < is_element_.size(); ++i)
    if (!is_element_[i] && std::memcmp(&host_[i * size], &before[i * size], size) != 0)
      return "a byte outside the elements of " + name_ + " was overwritten, " +
             std::to_string(static_cast<std::int64_t>(i) - first_) + " elements from its first";
  return "";
}

std::string TestMatrix::changed() const {
  std::vector<unsigned char> now(bytes_);
  device::detail::copy_out(now.data(), device_, bytes_);
  if (now == host_) return "";
  const auto mine = std::mismatch(host_.begin(), host_.end(), now.begin()).first;
  return "the input " + name_ + " was overwritten, " +
         std::to_string((mine - host_.begin()) / static_cast<std::int64_t>(bytes(type_)) - first_) + " elements from its first";
}

}  // namespace harness

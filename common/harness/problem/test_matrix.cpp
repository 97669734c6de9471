#include "common/harness/problem/test_matrix.h"

#include <algorithm>
#include <limits>

#include "common/harness/program/parallel.h"

namespace harness {
namespace {

// Elements on both sides of a matrix. The interpreter needs none to see who writes there, and without them it sees who reads there.
#ifdef COURSE_ON_INTERPRETER
constexpr std::int64_t kGuard = 0;
#else
constexpr std::int64_t kGuard = 512;
#endif
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
  host_.assign(cells * bytes(type), kPattern);
  // Elements in runs along what is contiguous, if anything is; what lies between the runs belongs to nobody.
  const bool columns = p.row_stride == 1 && p.col_stride != 1, runs = columns || p.col_stride == 1;
  const std::int64_t length = runs ? (columns ? p.rows : p.cols) : 1;
  const std::int64_t rows = p.cols > 0 ? p.rows : 0;  // with nothing in them, any number of rows is none
  std::vector<std::int64_t> begins;
  for (std::int64_t r = 0; r < rows; r += columns ? length : 1)
    for (std::int64_t c = 0; c < p.cols; c += columns ? 1 : length) begins.push_back(element(r, c));
  std::sort(begins.begin(), begins.end());
  std::int64_t end = 0;
  for (const std::int64_t begin : begins) {
    if (begin > end) gaps_.push_back({end, begin});
    end = std::max(end, begin + length);
  }
  gaps_.push_back({end, static_cast<std::int64_t>(cells)});
  device_ = device::Buffer<unsigned char>(host_.size(), name_);
}

std::int64_t TestMatrix::element(std::int64_t row, std::int64_t col) const {
  return first_ + row * placement_.row_stride + col * placement_.col_stride;
}

AnyMatrix TestMatrix::view() const { return view_in(device_.data()); }

AnyMatrix TestMatrix::view_in(void* copy) const {
  return {static_cast<char*>(copy) + first_ * static_cast<std::int64_t>(bytes(type_)), placement_.rows, placement_.cols,
          placement_.row_stride, placement_.col_stride};
}

double TestMatrix::at(std::int64_t row, std::int64_t col) const {
  return load(type_, host_.data() + static_cast<std::size_t>(element(row, col)) * bytes(type_));
}

void TestMatrix::fill(const std::function<double(std::int64_t, std::int64_t)>& value) {
  for (std::int64_t r = 0; r < rows() && cols() > 0; ++r)
    for (std::int64_t c = 0; c < cols(); ++c)
      store(type_, host_.data() + static_cast<std::size_t>(element(r, c)) * bytes(type_), value(r, c));
  device_.upload(host_.data(), host_.size());
}

void TestMatrix::fill_in_order(const std::function<const double*(std::int64_t count)>& next) {
  constexpr std::int64_t kAtATime = 1 << 20;
  const std::int64_t step = std::max<std::int64_t>(1, kAtATime / std::max<std::int64_t>(1, cols()));
  for (std::int64_t from = 0; from < rows() && cols() > 0; from += step) {
    const std::int64_t count = std::min(step, rows() - from);
    const double* const values = next(count * cols());
    in_parts(count, 5.0 * static_cast<double>(count * cols()), [&](std::int64_t begin, std::int64_t end) {
      const double* value = values + begin * cols();
      for (std::int64_t r = from + begin; r < from + end; ++r)
        for (std::int64_t c = 0; c < cols(); ++c)
          store(type_, host_.data() + static_cast<std::size_t>(element(r, c)) * bytes(type_), *value++);
    });
  }
  device_.upload(host_.data(), host_.size());
}

void TestMatrix::poison() {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (placement_.col_stride != 1) {
    fill([](std::int64_t, std::int64_t) { return kNaN; });
    return;
  }
  // Every measurement does this several times: row by row, it takes a tenth of the time.
  std::vector<unsigned char> row(static_cast<std::size_t>(rows() > 0 ? cols() : 0) * bytes(type_));
  for (std::size_t at = 0; at < row.size(); at += bytes(type_)) store(type_, row.data() + at, kNaN);
  for (std::int64_t r = 0; r < rows() && !row.empty(); ++r)
    std::copy(row.begin(), row.end(), host_.begin() + element(r, 0) * static_cast<std::int64_t>(bytes(type_)));
  device_.upload(host_.data(), host_.size());
}

std::string TestMatrix::fetch() {
  device_.download(host_.data(), host_.size());
  const auto size = static_cast<std::int64_t>(bytes(type_));
  for (const auto& [begin, end] : gaps_) {
    const auto last = host_.begin() + end * size;
    const auto overwritten = std::find_if(host_.begin() + begin * size, last, [](unsigned char byte) { return byte != kPattern; });
    if (overwritten == last) continue;
    for (const auto& [b, e] : gaps_) std::fill(host_.begin() + b * size, host_.begin() + e * size, kPattern);
    return "a byte outside the elements of " + name_ + " was overwritten, " +
           std::to_string((overwritten - host_.begin()) / size - first_) + " elements from its first";
  }
  return "";
}

std::string TestMatrix::changed() const {
  now_.resize(host_.size());
  device_.download(now_.data(), now_.size());
  if (now_ == host_) return "";
  const auto mine = std::mismatch(host_.begin(), host_.end(), now_.begin()).first;
  return "the input " + name_ + " was overwritten, " +
         std::to_string((mine - host_.begin()) / static_cast<std::int64_t>(bytes(type_)) - first_) + " elements from its first";
}

}  // namespace harness

/// @file
/// A GEMM's data: matrices in device memory with guard bands.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/device/device.cuh"
#include "common/harness/program/step.h"

namespace harness {

/// Where an operand's elements stand. Strides in elements; the first element is at `offset` elements from an aligned address.
struct Placement {
  std::int64_t rows = 0, cols = 0, row_stride = 0, col_stride = 0;
  std::int64_t offset = 0;
};
/// Row stride cols + padding.
Placement row_major(std::int64_t rows, std::int64_t cols, std::int64_t padding = 0);
/// Column stride rows + padding.
Placement column_major(std::int64_t rows, std::int64_t cols, std::int64_t padding = 0);

/// A matrix in device memory and its twin on the host. Bytes that belong to no element, and on a GPU guard bands on both sides,
/// hold a pattern that must survive.
class TestMatrix {
 public:
  /// @throws std::bad_alloc when memory is short.
  TestMatrix(std::string name, DType type, const Placement& placement);

  AnyMatrix view() const;                                ///< of the data on the device
  DType type() const { return type_; }                   ///< of the elements
  std::int64_t rows() const { return placement_.rows; }  ///< as placed
  std::int64_t cols() const { return placement_.cols; }  ///< as placed

  /// Sets every element on the host and copies everything to the device. Elements that share an address get the same value:
  /// the one that `value` gives for the last.
  void fill(const std::function<double(std::int64_t row, std::int64_t col)>& value);
  /// The same, row by row, for matrices no two elements of which share an address: on all cores.
  /// @param next gives so many values more
  void fill_in_order(const std::function<const double*(std::int64_t count)>& next);
  /// Sets every element, and the device's, to NaN.
  void poison();
  /// Element on the host, after fill() or fetch().
  double at(std::int64_t row, std::int64_t col) const;
  /// Copies the device's bytes to the host.
  /// @return what is wrong with bytes outside the elements, or an empty string.
  std::string fetch();
  /// Whether the device still holds what fill() put there. @return what changed, or an empty string.
  std::string changed() const;

  /// @name The whole allocation in device memory, guard bands included, for copies of it
  /// @{
  void* allocation() const { return device_.data(); }           ///< address of the first guard band
  std::size_t allocated_bytes() const { return host_.size(); }  ///< with both guard bands
  /// The matrix in a copy of the allocation.
  AnyMatrix view_in(void* copy) const;
  /// @}

 private:
  std::int64_t element(std::int64_t row, std::int64_t col) const;  // index into the allocation

  std::string name_;
  DType type_;
  Placement placement_;
  std::int64_t first_ = 0;  // index of element (0, 0) in the allocation
  std::vector<unsigned char> host_;
  device::Buffer<unsigned char> device_;
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps_;  // what belongs to no element: indices into the allocation
  mutable std::vector<unsigned char> now_;                   // of the device; kept, because memory costs time when it is new
};

}  // namespace harness

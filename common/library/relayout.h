/// @file
/// Operands laid out anew: each row, or each column, begins with a line of 128 bytes, whatever their strides and addresses were.
#pragma once

#include <cstddef>
#include <vector>

#include "common/harness/program/step.h"

namespace gemm::library {

/// Whether neighbours in a column of `m` lie closer to each other than neighbours in a row.
bool lies_by_columns(const harness::AnyMatrix& m);

/// `m` in other memory, as it lies, by rows or by columns, but side by side, each row or column beginning with a line.
/// @param data aligned to a line; null where only the strides are asked for
harness::AnyMatrix in_lines(const harness::AnyMatrix& m, harness::DType type, void* data);
/// What in_lines() takes of `data`: a multiple of a line.
std::size_t bytes_in_lines(const harness::AnyMatrix& m, harness::DType type);

/// Memory on device::stream(), for what is launched there while this lives: it is given back behind that. A graph captures it.
class StreamMemory {
 public:
  /// data() is null if there is no such memory. @throws device::Error when CUDA refuses it for another reason
  explicit StreamMemory(std::size_t bytes);
  ~StreamMemory();
  StreamMemory(const StreamMemory&) = delete;
  void* data() const { return data_; }  ///< aligned to a line, or null

  /// More than this nobody gets: for tests.
  static std::size_t& most();

 private:
  void* data_ = nullptr;
#ifdef COURSE_ON_GPU
  cudaStream_t stream_;
#endif
};

/// A matrix, and where it is to be laid out, by in_lines().
struct Copy {
  harness::AnyMatrix from, to;
};
/// Starts one launch on device::stream() that makes the copies, one or two; elements have two bytes.
void lay_out(const std::vector<Copy>& copies);

}  // namespace gemm::library

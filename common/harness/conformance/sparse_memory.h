/// @file
/// Device memory for tests of far offsets: a long range of addresses, of which only pieces are memory.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace harness {

/// A range of device addresses. On a GPU, what back() has not been called for must not be touched: a kernel that does fails.
class SparseMemory {
 public:
  /// Why this machine has none; an empty string where it has.
  static std::string why_not();

  /// @param name what reports call it  @throws device::Error or std::bad_alloc when there are no such addresses
  SparseMemory(std::size_t bytes, const std::string& name);
  ~SparseMemory();
  SparseMemory(const SparseMemory&) = delete;

  void* data() const { return data_; }  ///< the first address
  /// Puts memory behind `bytes` bytes from `offset` on, if there is none yet.
  /// @throws device::Error or std::bad_alloc when memory is short.
  void back(std::size_t offset, std::size_t bytes);

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0, page_bytes_ = 0;
  std::vector<std::size_t> pages_;  // that are memory: their numbers
};

}  // namespace harness

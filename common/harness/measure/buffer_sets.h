/// @file
/// Copies of matrices in device memory, for launches that take them in turn. GPU only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "common/device/device.cuh"
#include "common/harness/problem/test_matrix.h"
#include "common/harness/tuning/here.h"

namespace harness {

/// How many sets of matrices of so many bytes launches have to take in turn, so that between two uses of a set more than three
/// times the L2 cache is read or written.
inline int cold_sets(double bytes) {
  const double l2_bytes = static_cast<double>(limits_here().l2_bytes);
  return static_cast<int>(std::min(1e9, std::ceil(3.0 * l2_bytes / std::max(1.0, bytes)) + 1));
}

/// Hot, how many rounds take in turn: up to 32, as many as 1 GiB holds, for a large problem lies on many pages by itself.
inline int hot_sets(double bytes) { return static_cast<int>(std::clamp(double{1 << 30} / std::max(1.0, bytes), 1.0, 32.0)); }

/// Set 0 is the matrices themselves. Which copies make a set, and so how far they lie from each other, is left to chance (the same
/// in every run): cuBLAS's time depends on it at 1408 x 1408 x 1408 on an H200, and if it were the same in all sets, most of them
/// would be fast in one process and slow in the next.
class BufferSets {
 public:
  /// @param sets how many, the matrices themselves among them
  BufferSets(std::vector<const TestMatrix*> matrices, int sets) : matrices_(std::move(matrices)) {
    std::minstd_rand random(1);
    for (const TestMatrix* m : matrices_) {
      const std::size_t pitch = (m->allocated_bytes() + 511) / 512 * 512;  // as cudaMalloc aligns
      device::Buffer<unsigned char> copies(pitch * static_cast<std::size_t>(sets - 1), "copies");
      std::vector<void*>& allocations = allocations_.emplace_back(1, m->allocation());
      for (std::size_t s = 0; s + 1 < static_cast<std::size_t>(sets); ++s) {
        allocations.push_back(copies.data() + s * pitch);
        DEVICE_CHECK(cudaMemcpy(allocations.back(), m->allocation(), m->allocated_bytes(), cudaMemcpyDeviceToDevice));
      }
      std::shuffle(allocations.begin() + 1, allocations.end(), random);
      copies_.push_back(std::move(copies));
    }
  }

  /// A matrix, by its place in the list, in set number `set`.
  AnyMatrix view(std::size_t matrix, int set) const {
    return matrices_[matrix]->view_in(allocations_[matrix][static_cast<std::size_t>(set)]);
  }
  /// Puts what is in a set's matrix into the matrix itself.
  void bring_back(std::size_t matrix, int set) const {
    const std::vector<void*>& allocations = allocations_[matrix];
    DEVICE_CHECK(cudaMemcpy(allocations[0], allocations[static_cast<std::size_t>(set)], matrices_[matrix]->allocated_bytes(),
                            cudaMemcpyDeviceToDevice));
  }

 private:
  std::vector<const TestMatrix*> matrices_;
  std::vector<std::vector<void*>> allocations_;  // per matrix and set
  std::vector<device::Buffer<unsigned char>> copies_;
};

}  // namespace harness

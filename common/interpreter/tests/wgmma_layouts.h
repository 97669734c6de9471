/// @file
/// Where the elements of wgmma's matrices lie in shared memory, for tests: as wgmma_descriptor() says it, in words of their own.
#pragma once

#include "common/device/wgmma.cuh"

namespace wgmma_layouts {

using device::Major, device::Swizzle;

constexpr int kM = 64, kK = 64;  ///< rows of A, columns of A and B

/// Where element (row, k) of a matrix of `rows` rows and kK columns lies, in elements; row is m or n. Patterns of 8 rows, those
/// along k side by side.
template <Swizzle kSwizzle, Major kMajor>
__device__ int place(int row, int k, int rows) {
  constexpr int kWidth = kSwizzle == Swizzle::kNone ? 8 : static_cast<int>(kSwizzle) / 2;
  const int outer = kMajor == Major::kK ? row : k, inner = kMajor == Major::kK ? k : row;  // rows of the pattern, and along them
  const int outers = kMajor == Major::kK ? rows : kK;
  const int pattern = inner / kWidth * (outers / 8) + outer / 8;  // number of the pattern
  const int line = pattern * 8 + outer % 8;
  int piece = inner % kWidth / 8;
  constexpr int kPieces = kWidth / 8;
  // A pattern's rows are narrower than a line of 128 bytes where the swizzle is: the lines' numbers count.
  if (kPieces > 1) piece ^= line * kWidth / 64 % kPieces;
  return line * kWidth + piece * 8 + inner % 8;
}

/// The descriptor of the 16 columns from `k` on.
template <Swizzle kSwizzle, Major kMajor, class T>
__device__ uint64_t descriptor(const T* matrix, int rows, int k) {
  static_assert(sizeof(T) == 2);
  constexpr int kWidth = kSwizzle == Swizzle::kNone ? 8 : static_cast<int>(kSwizzle) / 2;
  const uint32_t pattern = 8 * kWidth * 2;  // bytes
  const uint32_t next_inner = pattern * (kMajor == Major::kK ? rows : kK) / 8;
  const T* const first = matrix + place<kSwizzle, kMajor>(0, k, rows) * (kMajor == Major::kMN || kSwizzle == Swizzle::kNone) +
                         (kMajor == Major::kK && kSwizzle != Swizzle::kNone ? k / kWidth * (next_inner / 2) + k % kWidth : 0);
  const bool swapped = kMajor == Major::kMN && kSwizzle == Swizzle::kNone;
  return device::wgmma_descriptor(first, kSwizzle, swapped ? pattern : next_inner, swapped ? next_inner : pattern);
}

}  // namespace wgmma_layouts

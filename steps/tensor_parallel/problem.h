/// @file
/// Data of the block that need no memory, for each element follows from its place; and what Y must be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/gemm/matrix.h"
#include "steps/tensor_parallel/feed_forward.h"

namespace tensor_parallel {

/// The numbers of a matrix.
struct Numbers {
  std::uint64_t seed;
  int nonzero = 0;  ///< of 65536 elements, as many are 1 or -1, and the others 0; with 0: nearly normal, deviation 0.58 * scale
  float scale = 1;  ///< a power of two

  /// Element (row, col), before it is rounded to a type.
  GEMM_HOST_DEVICE float operator()(std::int64_t row, std::int64_t col) const {
    std::uint64_t h =
        seed + 0x9E3779B97F4A7C15u * static_cast<std::uint64_t>(row) + 0xD1B54A32D192ED03u * static_cast<std::uint64_t>(col);
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
    h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
    h ^= h >> 31;
    if (nonzero > 0) return static_cast<int>(h >> 32 & 0xFFFF) >= nonzero ? 0.0f : (h & 1) ? 1.0f : -1.0f;
    const auto sum = static_cast<int>((h & 0xFFFF) + (h >> 16 & 0xFFFF) + (h >> 32 & 0xFFFF) + (h >> 48));
    return scale * 0x1p-16f * static_cast<float>(sum - 131070);
  }
};

/// X, W1 and W2.
struct Data {
  Numbers X, W1, W2;
};
/// Small integers, so few that all sums are exact also in bf16.
Data integers(const Shape& shape);
/// Numbers as a network has them: no sum overflows.
Data reals(const Shape& shape);

/// Starts writing `numbers` into m; m's element (0, 0) is the whole matrix's (first_row, first_col).
template <class T>
void fill(const Numbers& numbers, const Matrix<T>& m, std::int64_t first_row, std::int64_t first_col, cudaStream_t stream);

/// What Y of some tokens must be, in double precision, and how far it may be off.
class Reference {
 public:
  /// @param exact integers(): not a bit may differ. Otherwise: as far as float sums and the roundings to `type` allow
  Reference(const Shape& shape, const Data& data, float slope, int ranks, harness::DType type, bool exact,
            std::vector<std::int64_t> tokens);

  /// What is wrong with these tokens' Y, or an empty string. @param rows for each of them, shape.model elements
  std::string compare(const std::vector<unsigned char>& rows) const;
  const std::vector<std::int64_t>& tokens() const { return tokens_; }  ///< those that are compared

 private:
  Shape shape_;
  harness::DType type_;
  std::vector<std::int64_t> tokens_;
  std::vector<double> sums_, allowed_;  // tokens x model
};

}  // namespace tensor_parallel

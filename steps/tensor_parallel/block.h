/// @file
/// A block with data: for tests and programs, which run several plans on the same weights.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "steps/tensor_parallel/problem.h"

namespace tensor_parallel {

/// Columns of W1 and rows of W2.
template <class T>
class Weights {
 public:
  /// @param hidden which of them; all: one GPU's
  Weights(const Shape& shape, const Range& hidden)
      : shape_(shape),
        hidden_(hidden),
        w1_(static_cast<std::size_t>(shape.model * hidden.size()), "W1"),
        w2_(static_cast<std::size_t>(hidden.size() * shape.model), "W2") {}
  /// Copies this rank's part of the weights, on `stream`.
  void fill_with(const Data& data, cudaStream_t stream) {
    fill(data.W1, row_major(w1_.data(), shape_.model, hidden_.size()), 0, hidden_.begin, stream);
    fill(data.W2, row_major(w2_.data(), hidden_.size(), shape_.model), hidden_.begin, 0, stream);
  }
  /// This rank's columns of W1, model x hidden.
  Matrix<const T> W1() const { return row_major<const T>(w1_.data(), shape_.model, hidden_.size()); }
  /// This rank's rows of W2, hidden x model.
  Matrix<const T> W2() const { return row_major<const T>(w2_.data(), hidden_.size(), shape_.model); }

 private:
  Shape shape_;
  Range hidden_;
  device::Buffer<T> w1_, w2_;
};

/// Puts a rank's tokens where the block wants them.
template <class T>
void fill_input(FeedForward<T>& block, const Numbers& X, int rank, cudaStream_t stream) {
  const Places& p = block.places();
  const Range mine = p.mine(rank);
  for (std::int64_t i = 0; i < mine.size(); i += p.piece_rows()) {
    const std::int64_t rows = std::min(p.piece_rows(), mine.size() - i);
    fill(X, row_major(block.input().at(p.row(rank, i), 0), rows, block.input().cols), mine.begin + i, 0, stream);
  }
}

/// Some rows of a matrix without padding, on the host.
template <class T>
std::vector<unsigned char> fetch_rows(const Matrix<T>& m, const std::vector<std::int64_t>& rows) {
  const std::size_t bytes = static_cast<std::size_t>(m.cols) * sizeof(T);
  std::vector<unsigned char> host(rows.size() * bytes);
  for (std::size_t i = 0; i < rows.size(); ++i) device::detail::copy_out(host.data() + i * bytes, m.at(rows[i], 0), bytes);
  return host;
}

/// Some of a rank's rows: the first and last of each of its pieces, for up to 4 chunks.
inline std::vector<std::int64_t> rows_to_check(const Range& mine) {
  std::set<std::int64_t> rows;
  for (const int chunks : {1, 2, 4})
    for (int chunk = 0; chunk < chunks; ++chunk)
      for (const std::int64_t row : {mine.size() * chunk / chunks, mine.size() * (chunk + 1) / chunks - 1})
        if (row >= 0 && row < mine.size()) rows.insert(row);
  return {rows.begin(), rows.end()};
}

}  // namespace tensor_parallel

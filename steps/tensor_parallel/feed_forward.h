/// @file
/// tensor_parallel: a transformer's feed-forward block on several GPUs.
///
///     Y = leaky_relu(X · W1) · W2        X, Y: tokens x model, W1: model x hidden, W2: hidden x model
///
/// Each rank has some columns of W1 and the same rows of W2, so it computes these columns of the hidden layer, and from them a part
/// of each sum of Y. It has the X, and gets the Y, of some tokens:
///
///     all_gather X  →  X · my W1  →  hidden · my W2  →  reduce_scatter Y
///
/// Plain, one after the other. Or overlapped: tokens come in chunks, and a rank multiplies what it has while the rest arrives, and
/// sends sums that are ready while it multiplies.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/device/device.cuh"
#include "common/gemm/activation.h"
#include "common/gemm/matrix.h"
#include "steps/tensor_parallel/communicator.h"
#include "steps/tensor_parallel/streams.h"

namespace tensor_parallel {

using gemm::ceil_div, gemm::Matrix, gemm::row_major;

/// Sizes of the whole block.
struct Shape {
  std::int64_t tokens = 0, model = 0, hidden = 0;
};

/// From `begin` to before `end`.
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }  ///< how many
};
/// Which of `total` are rank number `rank`'s: whole units, but for the last one, and no rank has more than one unit more than
/// another.
inline Range share(std::int64_t total, std::int64_t unit, int rank, int ranks) {
  const std::int64_t units = ceil_div(total, unit);
  return {std::min(total, units * rank / ranks * unit), std::min(total, units * (rank + 1) / ranks * unit)};
}
/// A row of a rank's W1 begins where a line of the L2 cache does.
constexpr std::int64_t kHiddenUnit = 64;

/// Where tokens lie: chunk by chunk, in a chunk rank by rank. So all_gather finds a chunk in one piece, and so does a product.
///
///     2 ranks, 2 chunks:   | rank 0 | rank 1 | rank 0 | rank 1 |
///                          |     chunk 0     |     chunk 1     |
///
/// All pieces have the same rows; where there are too few tokens, zeros follow them.
struct Places {
  std::int64_t tokens;
  int ranks, chunks;

  Range mine(int rank) const { return share(tokens, 1, rank, ranks); }                        ///< tokens of a rank
  std::int64_t piece_rows() const { return ceil_div(tokens, std::int64_t{ranks} * chunks); }  ///< of a rank in a chunk
  std::int64_t chunk_rows() const { return piece_rows() * ranks; }                            ///< of all ranks in a chunk
  std::int64_t rows() const { return chunk_rows() * chunks; }                                 ///< of all chunks
  /// First row of a rank's piece of a chunk.
  std::int64_t piece(int chunk, int rank) const { return chunk * chunk_rows() + rank * piece_rows(); }
  /// Row of the token that is number `i` of a rank's.
  std::int64_t row(int rank, std::int64_t i) const { return piece(static_cast<int>(i / piece_rows()), rank) + i % piece_rows(); }
};

/// A · B with an activation on a stream: gemm::run(), or what it is compared with.
template <class T>
using Product = std::function<void(Matrix<const T> A, Matrix<const T> B, Matrix<T> C, float slope, OnStream stream)>;

/// How the block is run.
struct Plan {
  bool overlapped = false;
  int chunks = 1;  ///< of tokens; 1 for plain
};

/// Starts y = own + the parts that the other ranks sent, rank q's at parts + q * count. Summed in float, in the order of the ranks.
template <class T>
void add_parts(T* y, const T* own, const T* parts, int rank, int ranks, std::int64_t count, cudaStream_t stream);
/// add_parts(), or what is told of it.
template <class T>
using Sum = std::function<void(T* y, const T* own, const T* parts, int rank, int ranks, std::int64_t count, OnStream stream)>;

/// One rank's part of the block: its memory, and what it does.
template <class T>
class FeedForward {
 public:
  /// A call of all ranks. @param W1 model x share, W2 share x model: this rank's, of share(shape.hidden, kHiddenUnit, ...)
  /// @param slope of the activation; 1: none
  /// @throws Fault where a rank has another shape or plan
  FeedForward(Communicator& communicator, const Shape& shape, const Plan& plan, Matrix<const T> W1, Matrix<const T> W2, float slope,
              Product<T> product, Sum<T> sum = add_parts<T>)
      : communicator_(communicator),
        shape_(shape),
        plan_(plan),
        places_{shape.tokens, communicator.size(), plan.chunks},
        W1_(W1),
        W2_(W2),
        slope_(slope),
        product_(std::move(product)),
        add_parts_(std::move(sum)) {
    communicator.group().agree(describe());
    const auto elements = [](std::int64_t rows, std::int64_t cols) { return static_cast<std::size_t>(rows * cols); };
    X_ = static_cast<T*>(communicator.allocate(elements(places_.rows(), shape.model) * sizeof(T)));
    parts_ = static_cast<T*>(communicator.allocate(elements(places_.rows(), shape.model) * sizeof(T)));
    if (plan.overlapped) received_ = static_cast<T*>(communicator.allocate(elements(places_.rows(), shape.model) * sizeof(T)));
    hidden_ = device::Buffer<T>(elements(places_.rows(), W1.cols), "hidden");
    y_ = device::Buffer<T>(elements(places_.piece_rows() * plan.chunks, shape.model), "Y");
  }

  /// Where each rank's tokens lie.
  const Places& places() const { return places_; }
  /// X in the order of Places. Before run() it holds this rank's tokens: row(rank, i) is token mine(rank).begin + i.
  Matrix<T> input() const { return row_major(X_, places_.rows(), shape_.model); }
  /// After run(), Y of this rank's tokens.
  Matrix<T> output() const { return row_major(y_.data(), places_.mine(communicator_.rank()).size(), shape_.model); }

  /// Starts it; `stream` has Y when it is done. A call of all ranks.
  void run(cudaStream_t stream) { plan_.overlapped ? run_overlapped(stream) : run_plain(stream); }

  /// The two products alone, without what the others have or need: for comparisons.
  void run_products(cudaStream_t stream) {
    multiply_in({0, places_.rows()}, stream);
    multiply_out({0, places_.rows()}, stream);
  }

  /// For few tokens, which all ranks have: X · W1 · W2 of all of them, and Y for all. input() and all_reduced() hold the first
  /// `tokens` rows. No all_gather, and one way less through the link.
  void run_replicated(cudaStream_t stream) {
    multiply_in({0, shape_.tokens}, stream);
    multiply_out({0, shape_.tokens}, stream);
    communicator_.all_reduce(parts_, static_cast<std::size_t>(shape_.tokens * shape_.model), harness::kDType<T>, stream);
  }
  /// The sums of all ranks, tokens x model, after an all-reduce.
  Matrix<T> all_reduced() const { return row_major(parts_, shape_.tokens, shape_.model); }

 private:
  void run_plain(cudaStream_t stream) {
    const auto piece = static_cast<std::size_t>(places_.piece_rows() * shape_.model);
    for (int chunk = 0; chunk < plan_.chunks; ++chunk)
      communicator_.all_gather(row(X_, places_.piece(chunk, 0)), piece * sizeof(T), stream);
    run_products(stream);
    for (int chunk = 0; chunk < plan_.chunks; ++chunk)
      communicator_.reduce_scatter(row(parts_, places_.piece(chunk, 0)), row(y_.data(), chunk * places_.piece_rows()), piece,
                                   harness::kDType<T>, stream);
  }

  // Two streams: `stream` multiplies, streams_.communication copies. An event tells the other one what is ready.
  void run_overlapped(cudaStream_t stream) {
    const int me = communicator_.rank();
    const auto piece = static_cast<std::size_t>(places_.piece_rows() * shape_.model);
    const auto piece_of = [&](int chunk, int first, int last) {  // rows of the pieces of ranks first to last - 1
      return Range{places_.piece(chunk, first), places_.piece(chunk, last)};
    };

    // 1. The chunks of X are on their way, in order
    streams_.communication_after(stream);  // X is there, and who read the last one is done
    for (int chunk = 0; chunk < plan_.chunks; ++chunk) {
      communicator_.all_gather(row(X_, places_.piece(chunk, 0)), piece * sizeof(T), streams_.communication());
      streams_.record(chunk);
    }

    // 2. First product: my own piece needs nobody; then whatever has arrived
    multiply_in(piece_of(0, me, me + 1), stream);
    for (int chunk = 0; chunk < plan_.chunks; ++chunk) {
      streams_.wait_for(chunk, stream);
      if (chunk == 0) {
        multiply_in(piece_of(0, 0, me), stream);
        multiply_in(piece_of(0, me + 1, communicator_.size()), stream);
      } else {
        multiply_in(piece_of(chunk, 0, communicator_.size()), stream);
      }
    }

    // 3. Second product: parts of the others' sums leave as soon as they are there. My own piece is last, nobody waits for it
    for (int chunk = 0; chunk < plan_.chunks; ++chunk) {
      const bool is_last = chunk == plan_.chunks - 1;
      multiply_out(piece_of(chunk, 0, is_last ? me : communicator_.size()), stream);
      if (is_last) multiply_out(piece_of(chunk, me + 1, communicator_.size()), stream);
      streams_.communication_after(stream);
      communicator_.all_to_all(row(parts_, places_.piece(chunk, 0)), row(received_, places_.piece(chunk, 0)), piece * sizeof(T),
                               streams_.communication());
      streams_.record(chunk);
      if (is_last) multiply_out(piece_of(chunk, me, me + 1), stream);
    }

    // 4. My sums: what I have and what the others have sent
    for (int chunk = 0; chunk < plan_.chunks; ++chunk) {
      streams_.wait_for(chunk, stream);
      add_parts_(row(y_.data(), chunk * places_.piece_rows()), row(parts_, places_.piece(chunk, me)),
                 row(received_, places_.piece(chunk, 0)), me, communicator_.size(), static_cast<std::int64_t>(piece), stream);
    }
  }

  T* row(T* first, std::int64_t number) const { return first + number * shape_.model; }

  // hidden = leaky_relu(X · W1) of some rows.
  void multiply_in(const Range& rows, OnStream stream) {
    if (rows.size() == 0 || W1_.cols == 0) return;
    product_(row_major<const T>(row(X_, rows.begin), rows.size(), shape_.model), W1_,
             row_major(hidden_.data() + rows.begin * W1_.cols, rows.size(), W1_.cols), slope_, stream);
  }
  // parts = hidden · W2 of some rows; zeros where this rank has no hidden columns.
  void multiply_out(const Range& rows, OnStream stream) {
    if (rows.size() == 0) return;
    product_(row_major<const T>(hidden_.data() + rows.begin * W1_.cols, rows.size(), W1_.cols), W2_,
             row_major(row(parts_, rows.begin), rows.size(), shape_.model), 1, stream);
  }

  std::string describe() const {
    return std::to_string(shape_.tokens) + " tokens x " + std::to_string(shape_.model) + " x " + std::to_string(shape_.hidden) +
           " " + std::string(name(harness::kDType<T>)) + (plan_.overlapped ? ", overlapped, " : ", plain, ") +
           std::to_string(plan_.chunks) + " chunks, slope " + std::to_string(slope_);
  }

  Communicator& communicator_;
  Shape shape_;
  Plan plan_;
  Places places_;
  Matrix<const T> W1_, W2_;
  float slope_;
  Product<T> product_;
  Sum<T> add_parts_;
  T *X_ = nullptr, *parts_ = nullptr, *received_ = nullptr;  // the communicator's
  device::Buffer<T> hidden_, y_;
  Streams streams_{plan_.chunks};
};

}  // namespace tensor_parallel

/// @file
/// Exercise 36: several GPUs share a feed-forward block. Which shard is whose, and when may what be multiplied?
#pragma once

#include <algorithm>
#include <vector>

#include "common/device/device.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using gemm::ceil_div, gemm::Matrix;

/// Y = leaky_relu(X · W1) · W2. X and Y are tokens x model, W1 is model x hidden, W2 is hidden x model.
struct Block {
  std::int64_t tokens, model, hidden;
  int ranks;  ///< GPUs that share it
};
/// From `begin` to before `end`.
struct Range {
  std::int64_t begin = 0, end = 0;
};
/// What a rank has of the weights.
struct Shard {
  Range w1_rows, w1_cols, w2_rows, w2_cols;
};

/// What a rank does. There are two streams, one for copies and one for products. A copy begins when all that stands above it is
/// done, and goes on beside the products below it.
enum class Do : int {
  kGather,        ///< a copy: each rank's tokens of X come to all ranks
  kWaitGather,    ///< what stands below begins when they are here
  kMultiplyIn,    ///< a product, for the tokens `rows`: hidden = leaky_relu(X · W1), with my shard of W1
  kMultiplyOut,   ///< a product, for the tokens `rows`: my part of their sums = hidden · W2, with my shard of W2
  kExchange,      ///< a copy: my part of the sums of another rank's tokens goes to that rank, and theirs of my tokens come to me
  kWaitExchange,  ///< what stands below begins when they are here
  kAdd            ///< Y of my tokens += rank number `rank`'s part, which may be my own; Y is 0 before
};
/// A line of a plan.
struct Op {
  Do what;
  Range rows = {};
  std::int64_t rank = 0;
};

constexpr std::int64_t kUnit = 8;  ///< hidden columns are dealt in units of so many: rows of W1 begin at sectors

/// Which of `total` are a rank's: whole units, but for the last unit of all. No rank has more than one unit more than another.
Range share(std::int64_t total, std::int64_t unit, int rank, int ranks) {
  // >>> Your turn (1): rank 0 has the first ones, and nothing is left over. A rank may have none.
  (void)unit, (void)rank, (void)ranks;  // nobody asks them yet
  return {0, total};
  // <<<
}

/// A rank's shard of W1 and of W2. Between the two products nothing is copied.
Shard shard(const Block& b, int rank) {
  const Range mine = share(b.hidden, kUnit, rank, b.ranks), model = {0, b.model};
  // >>> Your turn (2): which one is cut by columns, and which by rows?
  (void)mine;
  return {model, model, model, model};
  // <<<
}

/// What a rank does, line by line. All ranks gather once and exchange once, in this order; one rank alone may do without.
std::vector<Op> plan(const Block& b, int rank) {
  const Range mine = share(b.tokens, 1, rank, b.ranks);
  std::vector<Op> ops;
  const auto multiply = [&](Do what, const Range& rows) {
    if (rows.begin < rows.end) ops.push_back({what, rows});
  };
  // >>> Your turn (3): the first product of all tokens. What needs nobody, while the others' tokens are on their way?
  (void)mine, (void)multiply;
  // <<<
  // >>> Your turn (4): the second product of all tokens, the exchange, and the sums. Which parts does nobody wait for?
  // <<<
  return ops;
}

/// One thread, one element of C. It stands for the kernel that one call chooses.
__global__ void multiply_kernel(Matrix<const float> A, Matrix<const float> B, Matrix<float> C, float slope) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= C.rows * C.cols) {
    return;
  }
  float sum = 0;
  for (int64_t k = 0; k < A.cols; ++k) {
    sum += *A.at(i / C.cols, k) * *B.at(k, i % C.cols);
  }
  *C.at(i / C.cols, i % C.cols) = sum < 0 ? sum * slope : sum;
}

/// C = A · B, and what is negative times `slope`. The test calls it for the products of your plan.
void multiply(Matrix<const float> A, Matrix<const float> B, Matrix<float> C, float slope) {
  if (C.rows * C.cols > 0) {
    device::launch(multiply_kernel, gemm::grid_size(ceil_div<int64_t>(C.rows * C.cols, 128)), 128, 0, A, B, C, slope);
  }
}

}  // namespace exercise

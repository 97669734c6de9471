/// @file
/// Exercise 34: launches that begin before the one before them has ended. What may they touch by then?
#pragma once

#include <utility>

#include "common/device/dependent_launch.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using gemm::ceil_div, gemm::Matrix;

constexpr int kThreads = 64;  ///< of a block, a column each
constexpr int kAhead = 8;     ///< weights that a thread has in registers before it needs x

/// scaled = factor * W.
__global__ void scale_kernel(Matrix<const float> W, float factor, Matrix<float> scaled) {
  const int64_t col = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (int64_t row = 0; row < W.rows && col < W.cols; ++row) {
    *scaled.at(row, col) = factor * *W.at(row, col);
  }
}

/// y = x · weights, a row times a matrix.
__global__ void step_kernel(Matrix<const float> weights, const float* x, float* y) {
  const int64_t col = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const auto weight = [&](int64_t row) { return row < weights.rows && col < weights.cols ? *weights.at(row, col) : 0; };
  device::griddepcontrol_launch_dependents();  // the next launch may begin: a hint, that passes on no data

  // >>> Your turn: the weights are as they were before the launch before this one. x and y are not: where is the wait?
  float rWeights[kAhead];
  for (int i = 0; i < kAhead; ++i) {
    rWeights[i] = weight(i);
  }
  device::griddepcontrol_wait();  // the launch before has written x, and has read what is in y
  // <<<
  float sum = 0;
  for (int i = 0; i < kAhead && i < weights.rows; ++i) {
    sum += x[i] * rWeights[i];
  }
  for (int64_t i = kAhead; i < weights.rows; ++i) {
    sum += x[i] * weight(i);
  }
  if (col < weights.cols) {
    y[col] = sum;
  }
}

/// Multiplies the row a by factor * W, `steps` times: the results are in b, in a, in b, and so on. All launches are asynchronous.
void iterate(Matrix<const float> W, float factor, Matrix<float> scaled, float* a, float* b, int steps) {
  const unsigned blocks = gemm::grid_size(ceil_div<int64_t>(W.cols, kThreads));
  const Matrix<const float> weights{scaled.data, scaled.rows, scaled.cols, scaled.row_stride, scaled.col_stride};
  device::launch(scale_kernel, blocks, kThreads, 0, W, factor, scaled);
  for (int step = 0; step < steps; ++step) {
    // >>> Your turn: which of these launches may begin early, and which may not?
    if (step == 0) {
      device::launch(step_kernel, blocks, kThreads, 0, weights, a, b);  // its weights come from the launch before
    } else {
      device::launch_dependent(step_kernel, blocks, kThreads, 0, weights, a, b);
    }
    // <<<
    std::swap(a, b);
  }
}

}  // namespace exercise

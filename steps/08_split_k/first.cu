// Two blocks share a sum. No GPU: tools/course interpret steps/08_split_k/first.cu
// With one: nvcc steps/08_split_k/first.cu -o first && ./first
#include <cstdio>

constexpr int kK = 256, kThreads = 32, kBlocks = 2;

// Dot products of 32 rows with a vector. Each block has half of k. `left` has a word for each row, NaN until somebody's sum is
// there.
__global__ void multiply(const float* A, const float* x, float* y, volatile float* left) {
  const int row = threadIdx.x, share = kK / kBlocks;
  float sum = 0;
  for (int k = blockIdx.x * share; k < (blockIdx.x + 1) * share; ++k) {
    sum += A[k * kThreads + row] * x[k];
  }
  if (blockIdx.x == 0) {
    left[row] = sum;  // one word says that it is there, and what it is: no flag beside it, no fence
    return;
  }
  float other;
  do {
    other = left[row];
  } while (isnan(other));
  y[row] = other + sum;  // block 0's first, always: the same bits in every run
}

int main() {
  float *A, *x, *y, *left;
  cudaMallocManaged(&A, kK * kThreads * sizeof(float));
  cudaMallocManaged(&x, kK * sizeof(float));
  cudaMallocManaged(&y, kThreads * sizeof(float));
  cudaMalloc(&left, kThreads * sizeof(float));
  cudaMemset(left, 0xff, kThreads * sizeof(float));  // NaN
  for (int i = 0; i < kK * kThreads; ++i) {
    A[i] = i % 7 - 3;
  }
  for (int k = 0; k < kK; ++k) {
    x[k] = k % 5 - 2;
  }
  multiply<<<kBlocks, kThreads>>>(A, x, y, left);
  if (cudaDeviceSynchronize() != cudaSuccess) {
    return 1;
  }
  int wrong = 0;
  for (int row = 0; row < kThreads; ++row) {
    float sum = 0;
    for (int k = 0; k < kK; ++k) {
      sum += A[k * kThreads + row] * x[k];
    }
    wrong += y[row] != sum;
  }
  std::printf("%d blocks, each with %d of %d products, %d of %d sums wrong\n", kBlocks, kK / kBlocks, kK, wrong, kThreads);
  return wrong != 0;
}

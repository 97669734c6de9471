// One thread for each element of C. No GPU: tools/course interpret steps/01_naive/first.cu
// With one: nvcc steps/01_naive/first.cu -o first && ./first
#include <cstdio>

// C = A B, all three n x n, row after row.
__global__ void gemm(int n, const float* A, const float* B, float* C) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n || col >= n) {
    return;  // the last blocks hang over the edge
  }
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += A[row * n + i] * B[i * n + col];
  }
  C[row * n + col] = sum;
}

int main() {
  const int n = 40;
  float *A, *B, *C;
  cudaMallocManaged(&A, n * n * sizeof(float));
  cudaMallocManaged(&B, n * n * sizeof(float));
  cudaMallocManaged(&C, n * n * sizeof(float));
  for (int i = 0; i < n * n; ++i) {
    A[i] = i % 7 - 3;  // small integers: every sum is exact
    B[i] = i % 5 - 2;
  }
  const dim3 threads(32, 8), blocks((n + 31) / 32, (n + 7) / 8);
  gemm<<<blocks, threads>>>(n, A, B, C);
  if (const cudaError_t error = cudaDeviceSynchronize(); error != cudaSuccess) {
    std::printf("%s\n", cudaGetErrorString(error));
    return 1;
  }
  int wrong = 0;
  for (int row = 0; row < n; ++row) {
    for (int col = 0; col < n; ++col) {
      float sum = 0;
      for (int i = 0; i < n; ++i) {
        sum += A[row * n + i] * B[i * n + col];
      }
      wrong += C[row * n + col] != sum;
    }
  }
  const int started = blocks.x * blocks.y * threads.x * threads.y;
  std::printf("%d threads for %d elements, %d of them wrong\n", started, n * n, wrong);
  return wrong != 0;
}

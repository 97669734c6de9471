// Few rows: A and B change places in wgmma. No GPU: tools/course interpret steps/15_few_rows/first_swap.cu
// With an H100 or H200: nvcc -gencode arch=compute_90a,code=sm_90a steps/15_few_rows/first_swap.cu -o first && ./first
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>

constexpr int kRows = 8, kCols = 64, kK = 16;  // of C; wgmma always has 64 rows, so these are the columns of B

// As in 10: 8 rows of 8 halves are a piece, 128 bytes. The next piece along k follows at once, the next 8 rows after two pieces.
__host__ __device__ int place(int mn, int k) { return mn / 8 * 128 + k / 8 * 64 + mn % 8 * 8 + k % 8; }

__device__ uint64_t descriptor(const half* matrix) {
  return __cvta_generic_to_shared(matrix) / 16 | uint64_t(128 / 16) << 16 | uint64_t(256 / 16) << 32;
}

__global__ void multiply(const half* A, const half* B, float* C) {
  __shared__ alignas(128) half sA[kRows * kK], sB[kCols * kK];
  const int t = threadIdx.x;
  for (int i = t; i < kRows * kK; i += 128) sA[i] = A[i];
  for (int i = t; i < kCols * kK; i += 128) sB[i] = B[i];
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  float c[4];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 0, 1, 1, 0, 0;"
               : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
               : "l"(descriptor(sB)), "l"(descriptor(sA)));  // B first: its columns are the 64 rows, and A's rows the 8 columns
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])::"memory");
  // The sums are those of C transposed: a lane's two neighbours are one below the other in C.
  const int col = t / 32 * 16 + t % 32 / 4, row = t % 4 * 2;
  for (int i = 0; i < 4; ++i) {
    C[(row + i % 2) * kCols + col + i / 2 * 8] = c[i];
  }
}

int main() {
  half *A, *B;
  float* C;
  cudaMallocManaged(&A, kRows * kK * sizeof(half));
  cudaMallocManaged(&B, kCols * kK * sizeof(half));
  cudaMallocManaged(&C, kRows * kCols * sizeof(float));
  const auto a = [](int row, int k) { return float((row * 5 + k) % 7 - 3); };
  const auto b = [](int k, int col) { return float((k * 3 + col) % 5 - 2); };
  for (int i = 0; i < kRows * kK; ++i) A[place(i / kK, i % kK)] = __float2half(a(i / kK, i % kK));
  for (int i = 0; i < kCols * kK; ++i) B[place(i / kK, i % kK)] = __float2half(b(i % kK, i / kK));
  multiply<<<1, 128>>>(A, B, C);
  int wrong = cudaDeviceSynchronize() != cudaSuccess;
  for (int i = 0; i < kRows * kCols; ++i) {
    float sum = 0;
    for (int k = 0; k < kK; ++k) sum += a(i / kCols, k) * b(k, i % kCols);
    wrong += C[i] != sum;
  }
  std::printf("%d x %d of C by one instruction, %d of %d elements wrong\n", kRows, kCols, wrong, kRows * kCols);
  return wrong != 0;
}

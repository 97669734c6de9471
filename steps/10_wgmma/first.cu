// One wgmma: four warps multiply 64 x 16 by 16 x 8. No GPU: tools/course interpret steps/10_wgmma/first.cu
// With an H100 or H200: nvcc -gencode arch=compute_90a,code=sm_90a steps/10_wgmma/first.cu -o first && ./first
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>

// Rows of k lie in pieces: 8 rows of 8 halves, 128 bytes. The next piece along k follows at once, the next 8 rows after two pieces.
__host__ __device__ int place(int row, int k) { return row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8; }

__device__ uint64_t descriptor(const half* matrix) {  // all in units of 16 bytes: where, the next along k, the next 8 rows
  return __cvta_generic_to_shared(matrix) / 16 | uint64_t(128 / 16) << 16 | uint64_t(256 / 16) << 32;
}

__global__ void multiply(const half* A, const half* B, float* C, int* owner) {
  __shared__ alignas(128) half sA[64 * 16], sB[8 * 16];
  const int t = threadIdx.x;
  for (int i = t; i < 64 * 16; i += 128) sA[i] = A[i];
  for (int i = t; i < 8 * 16; i += 128) sB[i] = B[i];
  asm volatile("fence.proxy.async;" ::: "memory");  // without it: no fence.proxy.async between
  __syncthreads();
  float c[4];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 0, 1, 1, 0, 0;"  // 0: C begins at zero
               : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
               : "l"(descriptor(sA)), "l"(descriptor(sB)));
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])::"memory");
  // As of mma.sync: a warp has 16 rows, a lane two neighbours in each of two.
  const int row = t / 32 * 16 + t % 32 / 4, col = t % 4 * 2;
  for (int i = 0; i < 4; ++i) {
    const int at = (row + i / 2 * 8) * 8 + col + i % 2;
    C[at] = c[i];
    owner[at] = t;
  }
}

int main() {
  half *A, *B;
  float* C;
  int* owner;
  cudaMallocManaged(&A, 64 * 16 * sizeof(half));
  cudaMallocManaged(&B, 8 * 16 * sizeof(half));
  cudaMallocManaged(&C, 64 * 8 * sizeof(float));
  cudaMallocManaged(&owner, 64 * 8 * sizeof(int));
  const auto a = [](int row, int k) { return float((row * 5 + k) % 7 - 3); };
  const auto b = [](int k, int col) { return float((k * 3 + col) % 5 - 2); };
  for (int i = 0; i < 64 * 16; ++i) A[place(i / 16, i % 16)] = __float2half(a(i / 16, i % 16));
  for (int i = 0; i < 8 * 16; ++i) B[place(i / 16, i % 16)] = __float2half(b(i % 16, i / 16));
  multiply<<<1, 128>>>(A, B, C, owner);
  int wrong = cudaDeviceSynchronize() != cudaSuccess;
  for (int i = 0; i < 64 * 8; ++i) {
    float sum = 0;
    for (int k = 0; k < 16; ++k) sum += a(i / 8, k) * b(k, i % 8);
    wrong += C[i] != sum;
    if (owner[i] == 37) std::printf("(%d, %d) ", i / 8, i % 8);
  }
  std::printf("are thread 37's. One instruction, %d multiply-adds, %d of %d elements wrong\n", 64 * 8 * 16, wrong, 64 * 8);
  return wrong != 0;
}

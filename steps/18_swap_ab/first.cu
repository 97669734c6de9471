// A warp stores 8 x 16 sums that it holds transposed. No GPU: tools/course interpret steps/18_swap_ab/first.cu
// With an H100 or H200: nvcc -gencode arch=compute_90a,code=sm_90a steps/18_swap_ab/first.cu -o first && ./first
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>

constexpr int kRows = 8, kCols = 16;

__host__ __device__ float sum(int row, int col) { return row * 100 + col; }

__global__ void store(half* C) {
  __shared__ alignas(16) half rows[kRows][kCols];
  const int lane = threadIdx.x;
  uint32_t pairs[2];  // a lane's pair lies in one column of C, one below the other; the second pair is 8 columns further right
  for (int i = 0; i < 2; ++i) {
    const int row = lane % 4 * 2, col = lane / 4 + 8 * i;
    const half2 pair = __floats2half2_rn(sum(row, col), sum(row + 1, col));
    pairs[i] = reinterpret_cast<const uint32_t&>(pair);
  }
  // Lanes 0 to 7 say where the rows of the left 8 x 8 begin, lanes 8 to 15 those of the right one.
  const uint32_t row = static_cast<uint32_t>(__cvta_generic_to_shared(&rows[lane % 8][lane / 8 % 2 * 8]));
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(row), "r"(pairs[0]), "r"(pairs[1])
               : "memory");
  __syncwarp();  // without it: race on rows
  for (int i = lane; i < kRows * kCols; i += 32) {
    C[i] = rows[i / kCols][i % kCols];
  }
}

int main() {
  half* C;
  cudaMallocManaged(&C, kRows * kCols * sizeof(half));
  store<<<1, 32>>>(C);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  for (int i = 0; i < kRows * kCols; ++i) wrong += __half2float(C[i]) != sum(i / kCols, i % kCols);
  std::printf("one instruction, %d rows of %d, %d of %d elements wrong\n", kRows, kCols, wrong, kRows * kCols);
  return wrong != 0;
}

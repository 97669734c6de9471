// One mma.sync: a warp multiplies 16 x 16 by 16 x 8. No GPU: tools/course interpret steps/03_tensor_core/first.cu
// With one: nvcc -arch=sm_80 steps/03_tensor_core/first.cu -o first && ./first
#include <cuda_fp16.h>

#include <cstdio>

__device__ unsigned pair(const half* low, const half* high) {  // two halves in one register
  return __half_as_ushort(*low) | unsigned(__half_as_ushort(*high)) << 16;
}

// A is 16 x 16 and C 16 x 8, row after row; B is 16 x 8. Each lane brings its elements and gets its elements.
__global__ void multiply(const half* A, const half* B, float* C) {
  const int lane = threadIdx.x, row = lane / 4, col = lane % 4 * 2;
  const half *above = A + row * 16 + col, *below = above + 8 * 16;  // rows r and r + 8
  const unsigned a[4] = {pair(above, above + 1), pair(below, below + 1), pair(above + 8, above + 9), pair(below + 8, below + 9)};
  const half* down = B + col * 8 + row;  // B's k goes with A's columns, its column with A's rows
  const unsigned b[2] = {pair(down, down + 8), pair(down + 64, down + 72)};
  float c[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  C[row * 8 + col] = c[0];
  C[row * 8 + col + 1] = c[1];
  C[(row + 8) * 8 + col] = c[2];
  C[(row + 8) * 8 + col + 1] = c[3];
  if (lane == 5) {
    printf("lane %d brings of A rows %d and %d, columns %d %d %d %d, ", lane, row, row + 8, col, col + 1, col + 8, col + 9);
    printf("and of B rows %d %d %d %d, column %d\n", col, col + 1, col + 8, col + 9, row);
    printf("lane %d gets of C rows %d and %d, columns %d %d\n", lane, row, row + 8, col, col + 1);
  }
}

int main() {
  half *A, *B;
  float* C;
  cudaMallocManaged(&A, 16 * 16 * sizeof(half));
  cudaMallocManaged(&B, 16 * 8 * sizeof(half));
  cudaMallocManaged(&C, 16 * 8 * sizeof(float));
  for (int i = 0; i < 256; ++i) A[i] = __float2half(i % 7 - 3);
  for (int i = 0; i < 128; ++i) B[i] = __float2half(i % 5 - 2);
  multiply<<<1, 32>>>(A, B, C);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  for (int i = 0; i < 128; ++i) {
    float sum = 0;
    for (int k = 0; k < 16; ++k) sum += __half2float(A[i / 8 * 16 + k]) * __half2float(B[k * 8 + i % 8]);
    wrong += C[i] != sum;
  }
  std::printf("one instruction, %d multiply-adds, %d of 128 elements wrong\n", 16 * 8 * 16, wrong);
  return wrong != 0;
}

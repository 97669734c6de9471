// What ldmatrix and mma.sync give to which lane, for a test of fragments.py: a line for each register, its elements as row and
// column.
#include <cuda_fp16.h>

#include <cstdio>

#include "common/device/ptx.cuh"

__device__ int number(unsigned reg, int half) { return int(__half2float(__ushort_as_half(reg >> 16 * half & 0xffff))); }

__global__ void who_holds() {
  __shared__ alignas(16) half A[16][16], B[16][8],
      one[16][16];  // an element's number is 16 times its row and its column; B's 8 times
  const int lane = threadIdx.x;
  for (int i = lane; i < 256; i += 32) A[i / 16][i % 16] = __int2half_rn(i), one[i / 16][i % 16] = __int2half_rn(i / 16 == i % 16);
  for (int i = lane; i < 128; i += 32) B[i / 8][i % 8] = __int2half_rn(i);
  __syncwarp();
  unsigned a[4], b[2], unit[4];
  device::ldmatrix_x4(a, &A[lane % 16][lane / 16 * 8]);
  device::ldmatrix_x4(unit, &one[lane % 16][lane / 16 * 8]);
  device::ldmatrix_x2_trans(b, &B[lane % 16][0]);
  float c[4] = {}, product[4] = {};
  device::mma_m16n8k16<half>(c, unit, b);  // C is B
  const unsigned eye[2] = {unit[0], unit[1]};
  device::mma_m16n8k16<half>(product, a, eye);  // C is the first 8 columns of A
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 2; ++j) printf("A %d %d %d %d\n", lane, i, number(a[i], j) / 16, number(a[i], j) % 16);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) printf("B %d %d %d %d\n", lane, i, number(b[i], j) / 8, number(b[i], j) % 8);
  for (int i = 0; i < 4; ++i) {
    printf("C %d %d %d %d\n", lane, i, int(c[i]) / 8, int(c[i]) % 8);
    printf("P %d %d %d %d\n", lane, i, int(product[i]) / 16, int(product[i]) % 16);
  }
}

int main() {
  who_holds<<<1, 32>>>();
  return cudaDeviceSynchronize() != cudaSuccess;
}

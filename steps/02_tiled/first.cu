// One tile in shared memory. No GPU: tools/course interpret steps/02_tiled/first.cu
// With one: nvcc steps/02_tiled/first.cu -o first && ./first
#include <cstdio>

constexpr int kN = 64, kTile = 16;  // C is 64 x 64, in tiles of 16 x 16

// A block computes a tile of C. Its threads load a tile of A and one of B together, and each reads what the others have loaded.
__global__ void gemm(const float* A, const float* B, float* C, int* loads) {
  __shared__ float sA[kTile][kTile], sB[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * kTile + y, col = blockIdx.x * kTile + x;
  float sum = 0;
  int loaded = 0;
  for (int k = 0; k < kN; k += kTile) {
    sA[y][x] = A[row * kN + k + x];
    sB[y][x] = B[(k + y) * kN + col];
    loaded += 2;
    __syncthreads();  // without it: race on sA
    for (int i = 0; i < kTile; ++i) {
      sum += sA[y][i] * sB[i][x];
    }
    __syncthreads();  // without it: race on s
  }
  C[row * kN + col] = sum;
  if (row == 0 && col == 0) {
    *loads = loaded;
  }
}

int main() {
  float *A, *B, *C;
  int* loads;
  cudaMallocManaged(&A, kN * kN * sizeof(float));
  cudaMallocManaged(&B, kN * kN * sizeof(float));
  cudaMallocManaged(&C, kN * kN * sizeof(float));
  cudaMallocManaged(&loads, sizeof(int));
  for (int i = 0; i < kN * kN; ++i) {
    A[i] = i % 7 - 3;
    B[i] = i % 5 - 2;
  }
  gemm<<<dim3(kN / kTile, kN / kTile), dim3(kTile, kTile)>>>(A, B, C, loads);
  if (cudaDeviceSynchronize() != cudaSuccess) {
    return 1;
  }
  int wrong = 0;
  for (int i = 0; i < kN * kN; ++i) {
    float sum = 0;
    for (int k = 0; k < kN; ++k) {
      sum += A[i / kN * kN + k] * B[k * kN + i % kN];
    }
    wrong += C[i] != sum;
  }
  std::printf("a thread loads %d values instead of %d, %d of %d elements wrong\n", *loads, 2 * kN, wrong, kN * kN);
  return wrong != 0;
}

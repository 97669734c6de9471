// One cp.async and its wait. No GPU: tools/course interpret steps/04_pipelined_num_stages/first.cu
// With one: nvcc -arch=sm_80 steps/04_pipelined_num_stages/first.cu -o first && ./first
#include <cstdio>

constexpr int kTiles = 4, kThreads = 64;  // a tile has 4 floats, 16 bytes, for each thread

// Begins the copy of a thread's 16 bytes into shared memory. The thread does not wait for them.
__device__ void copy(float* shared, const float* global) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}

// Adds up tiles; while one is added, the next one is on its way.
__global__ void add(const float* tiles, float* sums) {
  __shared__ __align__(16) float stage[2][kThreads * 4];
  const int t = threadIdx.x;
  copy(&stage[0][t * 4], tiles + t * 4);
  float sum = 0;
  for (int i = 0; i < kTiles; ++i) {
    asm volatile("cp.async.wait_all;" ::: "memory");  // without it: read before its cp.async was waited for
    __syncthreads();                                  // without it: race on stage
    if (i + 1 < kTiles) {
      copy(&stage[(i + 1) % 2][t * 4], tiles + ((i + 1) * kThreads + t) * 4);
    }
    for (int j = 0; j < 4; ++j) {
      sum += stage[i % 2][j * kThreads + t];  // which other threads have copied
    }
  }
  sums[t] = sum;
}

int main() {
  float *tiles, *sums;
  cudaMallocManaged(&tiles, kTiles * kThreads * 4 * sizeof(float));
  cudaMallocManaged(&sums, kThreads * sizeof(float));
  for (int i = 0; i < kTiles * kThreads * 4; ++i) {
    tiles[i] = i;
  }
  add<<<1, kThreads>>>(tiles, sums);
  if (cudaDeviceSynchronize() != cudaSuccess) {
    return 1;
  }
  int wrong = 0;
  for (int t = 0; t < kThreads; ++t) {
    float sum = 0;
    for (int i = 0; i < kTiles * 4; ++i) {
      sum += i * kThreads + t;
    }
    wrong += sums[t] != sum;
  }
  std::printf("%d tiles through 2 stages, %d of %d sums wrong\n", kTiles, wrong, kThreads);
  return wrong != 0;
}

// One warp copies, another one adds. No GPU: tools/course interpret steps/11_warp_specialized/first.cu
// With an H100 or H200: nvcc -gencode arch=compute_90a,code=sm_90a steps/11_warp_specialized/first.cu -o first && ./first
#include <cstdint>
#include <cstdio>

constexpr int kTiles = 6, kStages = 2, kTile = 32;

__device__ uint32_t shared(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void init(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared(barrier)), "r"(arrivals) : "memory");
}
__device__ void arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared(barrier)) : "memory");
}
__device__ void wait(uint64_t* barrier, int parity) {  // until the phase with that parity is over
  asm volatile("{\n.reg .pred over;\nagain: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n@!over bra again;\n}\n" ::"r"(
                   shared(barrier)),
               "r"(parity)
               : "memory");
}

__global__ void add(const int* tiles, int* sums) {
  __shared__ int stage[kStages][kTile];
  __shared__ uint64_t full[kStages], empty[kStages];
  const int lane = threadIdx.x % 32;
  for (int s = 0; s < kStages && threadIdx.x == 0; ++s) {
    init(&full[s], 32);   // the lanes that copy arrive here
    init(&empty[s], 32);  // and here those that add
  }
  __syncthreads();
  int sum = 0;
  for (int t = 0; t < kTiles; ++t) {
    const int s = t % kStages, parity = t / kStages % 2;
    if (threadIdx.x < 32) {
      wait(&empty[s], 1 - parity);  // without it: race on stage
      stage[s][lane] = tiles[t * kTile + lane];
      arrive(&full[s]);
    } else {
      wait(&full[s], parity);  // without it: uninitialised bytes of stage
      sum += stage[s][31 - lane];
      arrive(&empty[s]);  // without it: deadlock
    }
  }
  if (threadIdx.x >= 32) {
    sums[lane] = sum;
    if (lane == 0) printf("warp 1: the sum of %d tiles is %d\n", kTiles, sum);
  }
}

int main() {
  int *tiles, *sums;
  cudaMallocManaged(&tiles, kTiles * kTile * sizeof(int));
  cudaMallocManaged(&sums, kTile * sizeof(int));
  for (int i = 0; i < kTiles * kTile; ++i) tiles[i] = i;
  add<<<1, 64>>>(tiles, sums);
  return cudaDeviceSynchronize() != cudaSuccess || sums[0] != 31 * kTiles + kTile * 15;  // 31, 63, 95, ...
}

// A block stays for two tiles of C; its ring goes on. No GPU: tools/course interpret steps/12_persistent/first.cu
// With an H100 or H200: nvcc -gencode arch=compute_90a,code=sm_90a steps/12_persistent/first.cu -o first && ./first
#include <cstdint>
#include <cstdio>

constexpr int kTiles = 2, kSlices = 3, kStages = 2, kSlice = 32;  // each tile of C adds up 3 slices of k

__device__ uint32_t shared(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void init(uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(barrier)) : "memory");
}

__device__ void wait(uint64_t* barrier, int parity) {
  asm volatile("{\n.reg .pred over;\nagain: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n@!over bra again;\n}\n" ::"r"(
                   shared(barrier)),
               "r"(parity)
               : "memory");
}

__global__ void add(const int* slices) {
  __shared__ alignas(16) int stage[kStages][kSlice];
  __shared__ uint64_t full[kStages];
  const auto copy = [&](int i) {  // the i-th slice of all, whichever tile it is for
    const uint32_t barrier = shared(&full[i % kStages]), to = shared(stage[i % kStages]), bytes = sizeof(stage[0]);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(slices + i * kSlice), "r"(bytes), "r"(barrier)
                 : "memory");
  };
  if (threadIdx.x == 0) {
    for (uint64_t& barrier : full) init(&barrier);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int i = 0; i < kStages; ++i) copy(i);
  }
  __syncthreads();
  int i = 0;  // begins once, not with each tile
  for (int tile = 0; tile < kTiles; ++tile) {
    int sum = 0;
    if (threadIdx.x == 0) printf("tile %d:", tile);
    for (int slice = 0; slice < kSlices; ++slice, ++i) {
      wait(&full[i % kStages], i / kStages % 2);  // without it: the bulk copy
      sum += stage[i % kStages][31 - threadIdx.x];
      if (threadIdx.x == 0) printf(" stage %d parity %d,", i % kStages, i / kStages % 2);
      __syncthreads();                                                            // without it: race on stage
      if (threadIdx.x == 0 && i + kStages < kTiles * kSlices) copy(i + kStages);  // the last ones are the next tile's
    }
    if (threadIdx.x == 0) printf(" sum %d\n", sum);
  }
}

int main() {
  int* slices;
  cudaMallocManaged(&slices, kTiles * kSlices * kSlice * sizeof(int));
  for (int i = 0; i < kTiles * kSlices * kSlice; ++i) slices[i] = i / kSlice;
  add<<<1, 32>>>(slices);
  return cudaDeviceSynchronize() != cudaSuccess;
}

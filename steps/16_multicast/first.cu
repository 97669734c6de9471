// One copy for two blocks. No GPU: tools/course interpret steps/16_multicast/first.cu
// With an H100 or H200: nvcc -gencode arch=compute_90a,code=sm_90a steps/16_multicast/first.cu -lcuda -o first && ./first
#include <cuda.h>

#include <cstdint>
#include <cstdio>

constexpr int kValues = 64, kHalf = kValues / 2;  // each block copies one half, for both

__device__ uint32_t shared(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void cluster_barrier() { asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory"); }

__global__ __cluster_dims__(2) void copy(const __grid_constant__ CUtensorMap map, int* sums) {
  __shared__ alignas(128) int both[kValues];
  __shared__ uint64_t full;
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&full)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    // All bytes that will come here, whoever asks for them.
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(&full)), "r"(int(sizeof(both))) : "memory");
  }
  cluster_barrier();  // without it: no mbarrier has been initialised
  if (threadIdx.x == 0) {
    const uint16_t mask = 0b11;  // blocks 0 and 1: to the same place, at the same barrier of each
    asm volatile(
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2}], [%3], "
        "%4;" ::"r"(shared(both + rank * kHalf)),
        "l"(&map), "r"(rank * kHalf), "r"(shared(&full)), "h"(mask)
        : "memory");
  }
  asm volatile("{\n.reg .pred over;\nagain: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], 0;\n@!over bra again;\n}\n" ::"r"(
                   shared(&full))
               : "memory");
  int sum = 0;
  for (int value : both) sum += value;
  if (threadIdx.x == 0) sums[rank] = sum;
}

int main() {
  int *values, *sums;
  cudaMallocManaged(&values, kValues * sizeof(int));
  cudaMallocManaged(&sums, 2 * sizeof(int));
  for (int i = 0; i < kValues; ++i) values[i] = i;
  CUtensorMap map;
  const cuuint64_t size[] = {kValues}, stride[] = {0};
  const cuuint32_t box[] = {kHalf}, step[] = {1};
  if (cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 1, values, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                             CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
    return 1;
  copy<<<2, 32>>>(map, sums);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  std::printf("each block asked for %d values and has %d; their sums are %d and %d\n", kHalf, kValues, sums[0], sums[1]);
}

// A cluster's barrier that publishes nothing. No GPU: tools/course interpret steps/20_fewer_requests/first.cu
// With an H100 or H200: nvcc -gencode arch=compute_90a,code=sm_90a steps/20_fewer_requests/first.cu -o first && ./first
#include <cstdint>
#include <cstdio>

__device__ uint32_t shared(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// Each block tells the other one something at its mbarrier: so both must know that the mbarriers exist.
__global__ __cluster_dims__(2) void meet(int* met) {
  __shared__ uint64_t barrier;
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&barrier)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");  // without it: race on barrier
  // Relaxed: who arrives does not wait until what he has written is seen. The fence has seen to the mbarrier.
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
  asm volatile("barrier.cluster.wait;" ::: "memory");
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared(&barrier)), "r"(1 - blockIdx.x));
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
  // Its own mbarrier is used by the other block until that has arrived. So a block that waits here needs no barrier at its end.
  asm volatile(
      "{\n.reg .pred over;\nagain: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%0], 0;\n@!over bra "
      "again;\n}\n" ::"r"(shared(&barrier))
      : "memory");
  atomicAdd(met, 1);
}

int main() {
  int* met;
  cudaMallocManaged(&met, sizeof(int));
  *met = 0;
  meet<<<2, 1>>>(met);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  std::printf("%d of 2 blocks have heard of the other one\n", *met);
  return *met != 2;
}

// A block says that it has room for another one's sum. No GPU: tools/course interpret steps/15_few_rows/first_room.cu
// With an H100 or H200: nvcc -gencode arch=compute_90a,code=sm_90a steps/15_few_rows/first_room.cu -o first && ./first
#include <cstdint>
#include <cstdio>

__device__ uint32_t shared(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ uint32_t in_block(int rank, uint32_t here) {  // the same place in another block of the cluster
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
  return there;
}

__device__ void cluster_barrier() { asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory"); }

__device__ void wait(const uint64_t* barrier) {
  asm volatile(
      "{\n.reg .pred over;\nagain: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%0], 0;\n@!over bra "
      "again;\n}\n" ::"r"(shared(barrier))
      : "memory");
}

// Two blocks of one thread each. Block 0 works with `place`, then block 1's sum comes there: the ring's stage of the step.
__global__ __cluster_dims__(2) void send(int* result) {
  __shared__ int place;
  __shared__ uint64_t full, room;  // what was sent is in my place; the other block's place is free
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&full)) : "memory");
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&room)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  cluster_barrier();
  if (blockIdx.x == 0) {
    place = 30;
    const int mine = place;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4;" ::"r"(shared(&full)) : "memory");
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(in_block(1, shared(&room))) : "memory");
    wait(&full);  // without it: race on place
    *result = mine + place;
  } else {
    wait(&room);  // without it: race on place
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];" ::"r"(in_block(0, shared(&place))),
                 "r"(12), "r"(in_block(0, shared(&full)))
                 : "memory");
  }
}

int main() {
  int* result;
  cudaMallocManaged(&result, sizeof(int));
  send<<<2, 1>>>(result);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  std::printf("one place, two sums: %d\n", *result);
  return *result != 42;
}

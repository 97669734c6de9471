// A block sends its sums to another one. No GPU: tools/course interpret steps/15_few_rows/first.cu
// With an H100 or H200: nvcc -gencode arch=compute_90a,code=sm_90a steps/15_few_rows/first.cu -o first && ./first
#include <cstdint>
#include <cstdio>

constexpr int kK = 256, kThreads = 32, kBlocks = 2;

__device__ uint32_t shared(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void cluster_barrier() { asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory"); }

// Dot products of 32 rows with a vector. Each block of the cluster has half of k; block 1 sends its sums into block 0's memory.
__global__ __cluster_dims__(kBlocks) void multiply(const float* A, const float* x, float* y) {
  __shared__ float arrived[kThreads];
  __shared__ uint64_t full;
  const int row = threadIdx.x, share = kK / kBlocks;
  if (row == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&full)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(&full)), "r"(int(sizeof(arrived)))
                 : "memory");
  }
  cluster_barrier();  // without it: race on full
  float sum = 0;
  for (int k = blockIdx.x * share; k < (blockIdx.x + 1) * share; ++k) {
    sum += A[k * kThreads + row] * x[k];
  }
  if (blockIdx.x == 1) {
    uint32_t there, full_there;  // the same places in block 0
    asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(shared(&arrived[row])));
    asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(full_there) : "r"(shared(&full)));
    // A store that counts its bytes at the barrier, as the copy engine does. So the wait below is the only one that is needed.
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(there), "f"(sum), "r"(full_there)
                 : "memory");
    return;
  }
  asm volatile("{\n.reg .pred over;\nagain: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], 0;\n@!over bra again;\n}\n" ::"r"(
                   shared(&full))
               : "memory");
  y[row] = sum + arrived[row];
}

int main() {
  float *A, *x, *y;
  cudaMallocManaged(&A, kK * kThreads * sizeof(float));
  cudaMallocManaged(&x, kK * sizeof(float));
  cudaMallocManaged(&y, kThreads * sizeof(float));
  for (int i = 0; i < kK * kThreads; ++i) A[i] = i % 7 - 3;
  for (int k = 0; k < kK; ++k) x[k] = k % 5 - 2;
  multiply<<<kBlocks, kThreads>>>(A, x, y);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  for (int row = 0; row < kThreads; ++row) {
    float sum = 0;
    for (int k = 0; k < kK; ++k) sum += A[k * kThreads + row] * x[k];
    wrong += y[row] != sum;
  }
  std::printf("%d sums sent from block to block, %d of them wrong\n", kThreads, wrong);
  return wrong != 0;
}

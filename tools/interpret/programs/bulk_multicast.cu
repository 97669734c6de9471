#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>
namespace cg = cooperative_groups;
// Blocks of a cluster share what each has copied, by cp.async.bulk with multicast. BUG: one of the mistakes that are reported.
#ifndef BUG
#define BUG 0
#endif
constexpr unsigned kFloats = 64;  // of a half

__device__ unsigned smem(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// Each block of a cluster of two copies one half for both; each expects all.
__global__ void __cluster_dims__(2) share(const float* in, float* out) {
  alignas(128) __shared__ float tile[2 * kFloats];
  alignas(8) __shared__ uint64_t full;
  const unsigned rank = cg::this_cluster().block_rank();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem(&full)), "r"(1));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem(&full)), "r"(BUG == 1 ? 256 : 512) : "memory");
  }
#if BUG == 2
  __syncthreads();
#else
  cg::this_cluster().sync();
#endif
  if (threadIdx.x == 0) {
    const uint16_t mask = BUG == 3 ? 1 << rank : BUG == 4 ? 7 : 3;
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(
            smem(tile + rank * kFloats)),
        "l"(in + (blockIdx.x / 2 * 2 + rank) * kFloats), "r"(BUG == 5 ? 250 : 256), "r"(smem(&full)), "h"(mask)
        : "memory");
  }
  if (BUG != 6)
    asm volatile(
        "{\n.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@p bra DONE;\nbra WAIT;\nDONE:\n}" ::"r"(
            smem(&full))
        : "memory");
  for (unsigned i = threadIdx.x; i < 2 * kFloats; i += blockDim.x) out[blockIdx.x * 2 * kFloats + i] = tile[i];
  cg::this_cluster().sync();
}

int main() {
  constexpr unsigned kBlocks = 6, kIn = kBlocks * kFloats, kOut = 2 * kIn;
  static float host[kIn], result[kOut];
  for (unsigned i = 0; i < kIn; ++i) host[i] = static_cast<float>(i);
  float *in, *out;
  cudaMalloc(&in, sizeof host);
  cudaMalloc(&out, sizeof result);
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
  share<<<kBlocks, 32>>>(in, out);
  cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost);
  bool right = true;
  for (unsigned i = 0; i < kOut; ++i) right &= result[i] == host[i / (4 * kFloats) * 2 * kFloats + i % (2 * kFloats)];
  std::puts(right ? "right" : "WRONG");
  return !right;
}

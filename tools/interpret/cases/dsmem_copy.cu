// 0 ok : copy from shared memory to the neighbour's shared memory
// 1 bug racecheck|proxy x : the same without fence.proxy.async
// 2 bug racecheck box : read without waiting at one's own barrier
// 3 bug deadlock bar : the neighbour's barrier expects 512 bytes
#include "case.h"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ unsigned mapa(const void* p, int rank) { unsigned r; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(smem(p)), "r"(rank)); return r; }
template <int V> __global__ void __cluster_dims__(2) post(const int* in, int* out, int n) {
  __shared__ alignas(16) int box[64], x[64];
  __shared__ alignas(8) unsigned long long bar;
  auto cluster = cg::this_cluster();
  const int t = threadIdx.x, i = blockIdx.x * 64 + t, rank = cluster.block_rank();
  if (t == 0) {
    init(&bar, 1);
    fence_init();
  }
  cluster.sync();
  x[63 - t] = in[i];  // @1
  if (V != 1) fence_async();
  __syncthreads();
  if (t == 0) {
    expect(&bar, V == 3 ? 512 : 256);
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(mapa(box, rank ^ 1)), "r"(smem(x)), "r"(mapa(&bar, rank ^ 1)) : "memory");  // @1 @2
  }
  if (V != 2) wait_cluster(&bar, 0);  // @3
  out[i] = box[t];  // @2
  cluster.sync();
}
template <int V> int test() { return check(post<V>, 2, 64, 128, 128, [](auto& in, int i) { return in[(i / 64 ^ 1) * 64 + 63 - i % 64]; }); }
MAIN(4)

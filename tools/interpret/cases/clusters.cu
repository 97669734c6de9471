// 0 ok : exchange by cluster.sync and map_shared_rank
// 1 bug racecheck|initcheck x : no cluster.sync between writing and the other block's reading
// 2 bug memcheck|racecheck|cluster|synccheck x : no cluster.sync before the end: the other block may have ended
// 3 ok : barrier.cluster.arrive.release and wait.acquire, independent work in between
// 4 ok : counts added by atomicAdd into block 0's shared memory
// 5 bug racecheck bins : plain += into block 0's shared memory
// 6 bug memcheck|config - : mapa names block 2 of a cluster of 2
// 7 ok : st.async to the neighbour, whose barrier expects the bytes
// 8 bug racecheck|mbarrier|deadlock box|bar : st.async, but the neighbour expects no bytes
// 9 bug racecheck|mbarrier|memcheck|cluster bar|box : no cluster barrier between mbarrier.init and the neighbour's st.async
// 10 ok : the neighbour's barrier by mapa and mbarrier.arrive.release.cluster, waited for with acquire.cluster
// 11 bug racecheck box : waited for with the default scope .cta
// 12 bug racecheck box : the arrival has .relaxed
// 13 ok : bulk multicast to both blocks of the cluster
// 14 bug memcheck|config|cluster - : the multicast's mask names block 3 of 2
// 15 bug racecheck|mbarrier|memcheck|cluster bar|box : the multicast begins before the other block has initialised its barrier
// 16 bug config|error - : the grid is no multiple of the cluster
// 17 bug deadlock|synccheck - : half of the threads come to the cluster's barrier
// 18 ok : ring of four blocks, sums travel, two barriers a step
// 19 bug racecheck slot : ring of four, one barrier a step
// 22 bug deadlock|synccheck - : arrive twice, wait once
// 23 bug racecheck|initcheck x : barrier.cluster.arrive, the read, then the wait
// 24 bug memcheck - : mapa of an array, index beyond its end in the neighbour's memory
// 25 ok : distributed histogram over 4 blocks, cluster_dims at the launch
// 26 bug deadlock|mbarrier bar : the neighbour expects twice the bytes of st.async
#include "case.h"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ unsigned mapa(const void* p, int rank) { unsigned r; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(smem(p)), "r"(rank)); return r; }
template <int V> __global__ void __cluster_dims__(2) exchange(const int* in, int* out, int n) {
  __shared__ alignas(16) int x[64];
  auto cluster = cg::this_cluster();
  const int t = threadIdx.x, i = blockIdx.x * 64 + t, rank = cluster.block_rank();
  x[t] = in[i];  // @1 @23
  if (V == 3 || V == 23 || V == 22) {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    int early = 0;
    if (V == 23) early = *cluster.map_shared_rank(&x[63 - t], rank ^ 1);  // @23
    if (V == 22) asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");  // @22
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");  // @22
    out[i] = V == 23 ? early : *cluster.map_shared_rank(&x[63 - t], rank ^ 1);
    cluster.sync();
    return;
  }
  if (V == 17) {
    if (t < 32) cluster.sync();  // @17
  } else if (V != 1) {
    cluster.sync();
  }
  if (V == 6) {
    int v;
    asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(v) : "r"(mapa(&x[63 - t], rank + 1)) : "memory");  // @6
    out[i] = v;
  } else if (V == 24) {
    out[i] = cluster.map_shared_rank(x, rank ^ 1)[64 - t];  // @24
  } else {
    out[i] = *cluster.map_shared_rank(&x[63 - t], rank ^ 1);  // @1 @2
  }
  if (V != 2) cluster.sync();
}
template <int V> __global__ void __cluster_dims__(2) bins_of(const int* in, int* out, int n) {
  __shared__ int bins[8];
  auto cluster = cg::this_cluster();
  const int t = threadIdx.x, rank = cluster.block_rank();
  if (t < 8) bins[t] = 0;
  cluster.sync();
  int* b = cluster.map_shared_rank(bins, 0);
  const int key = in[blockIdx.x * 64 + t] % 8;
  if (V == 4) atomicAdd(b + key, 1);
  else if (t == 0) b[3] += 32;  // @5
  cluster.sync();
  if (rank == 0 && t < 8) out[blockIdx.x / 2 * 8 + t] = bins[t];
}
template <int V> __global__ void __cluster_dims__(2) post(const int* in, int* out, int n) {
  __shared__ alignas(16) int box[64], x[64];
  __shared__ alignas(8) unsigned long long bar;
  auto cluster = cg::this_cluster();
  const int t = threadIdx.x, i = blockIdx.x * 64 + t, rank = cluster.block_rank();
  if (t == 0) {
    init(&bar, V == 10 || V == 11 || V == 12 ? 64 : 1);
    fence_init();
  }
  if (V == 9) __syncthreads();
  else cluster.sync();
  if (V == 7 || V == 8 || V == 9 || V == 26) {
    if (t == 0) {
      if (V == 8) arrive(&bar);
      else expect(&bar, V == 26 ? 512 : 256);
    }
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];" ::"r"(mapa(&box[63 - t], rank ^ 1)), "r"(in[i]), "r"(mapa(&bar, rank ^ 1)) : "memory");  // @8 @9
    wait_cluster(&bar, 0);  // @26
  } else {
    *cluster.map_shared_rank(&box[63 - t], rank ^ 1) = in[i];  // @11 @12
    if (V == 12) asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(mapa(&bar, rank ^ 1)) : "memory");
    else asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(mapa(&bar, rank ^ 1)) : "memory");
    if (V == 11) wait(&bar, 0);
    else wait_cluster(&bar, 0);
  }
  out[i] = box[t];  // @8 @11 @12
  cluster.sync();
}
template <int V> __global__ void __cluster_dims__(2) multicast(const int* in, int* out, int n) {
  __shared__ alignas(16) int box[64];
  __shared__ alignas(8) unsigned long long bar;
  auto cluster = cg::this_cluster();
  const int t = threadIdx.x, rank = cluster.block_rank();
  if (t == 0) {
    init(&bar, 1);
    fence_init();
  }
  if (V == 15) __syncthreads();
  else cluster.sync();
  if (t == 0) {
    expect(&bar, 256);
    if (rank == 0)
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], %3;" ::"r"(smem(box)), "l"(in), "r"(smem(&bar)), "h"((unsigned short)(V == 14 ? 11 : 3)) : "memory");  // @14 @15
  }
  wait(&bar, 0);
  out[blockIdx.x * 64 + t] = box[t];
  cluster.sync();
}
template <int V> __global__ void __cluster_dims__(4) ring(const int* in, int* out, int n) {
  __shared__ int slot[32];
  auto cluster = cg::this_cluster();
  const int t = threadIdx.x, rank = cluster.block_rank();
  int mine = in[blockIdx.x * 32 + t], sum = mine;
  cluster.sync();
  for (int step = 0; step < 3; ++step) {
    *cluster.map_shared_rank(&slot[t], (rank + 1) % 4) = mine;  // @19
    cluster.sync();
    mine = slot[t];  // @19
    sum += mine;
    if (V == 18) cluster.sync();
  }
  out[blockIdx.x * 32 + t] = sum;
  cluster.sync();
}
template <int V> __global__ void distributed(const int* in, int* out, int n) {
  __shared__ int bins[4];
  auto cluster = cg::this_cluster();
  const int t = threadIdx.x;
  if (t < 4) bins[t] = 0;
  cluster.sync();
  const int key = in[blockIdx.x * 64 + t] % 16;
  atomicAdd(cluster.map_shared_rank(bins, key / 4) + key % 4, 1);
  cluster.sync();
  if (t < 4) out[blockIdx.x * 4 + t] = bins[t];
}
template <int V> int test() {
  if constexpr (V <= 3 || V == 6 || V == 17 || V == 22 || V == 23 || V == 24) return check(exchange<V>, 4, 64, 256, 256, [](auto& in, int i) { return in[(i / 64 ^ 1) * 64 + 63 - i % 64]; });
  else if constexpr (V == 4 || V == 5) return check(bins_of<V>, 4, 64, 256, 16, [](auto& in, int i) { int s = 0; for (int j = 0; j < 128; ++j) s += in[i / 8 * 128 + j] % 8 == i % 8; return s; });
  else if constexpr (V == 13 || V == 14 || V == 15) return check(multicast<V>, 2, 64, 64, 128, [](auto& in, int i) { return in[i % 64]; });
  else if constexpr (V == 16) return check(exchange<0>, 3, 64, 256, 192, [](auto& in, int i) { return in[i]; });
  else if constexpr (V == 18 || V == 19) return check(ring<V>, 4, 32, 128, 128, [](auto& in, int i) { return in[i % 32] + in[32 + i % 32] + in[64 + i % 32] + in[96 + i % 32]; });
  else if constexpr (V == 25) {
    const std::vector<int> host = values(256);
    int *in = upload(host), *out = zeros<int>(16);
    cudaLaunchConfig_t c{};
    c.gridDim = 4;
    c.blockDim = 64;
    cudaLaunchAttribute a;
    a.id = cudaLaunchAttributeClusterDimension;
    a.val.clusterDim.x = 4, a.val.clusterDim.y = a.val.clusterDim.z = 1;
    c.attrs = &a;
    c.numAttrs = 1;
    CUDA(cudaLaunchKernelEx(&c, distributed<V>, (const int*)in, out, 256));
    launched();
    std::vector<int> want(16);
    for (int x : host) ++want[x % 16];
    return verdict(download(out, 16), want);
  } else return check(post<V>, 2, 64, 128, 128, [](auto& in, int i) { return in[(i / 64 ^ 1) * 64 + 63 - i % 64]; });
}
MAIN(27)

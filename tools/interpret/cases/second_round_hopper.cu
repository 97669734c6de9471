// 0 ok : pairs of warps: two compute, one stores by bulk copies, named barriers both ways
// 1 bug racecheck|proxy tile : the compute warps do not fence for the async proxy
// 2 bug racecheck tile : the storing warp does not wait for its reads before it gives the tile back
// 3 bug racecheck|mbarrier|memcheck bar : no fence behind mbarrier.init, a bulk load uses it
// 4 ok : st.async of pairs to block 0, which expects both blocks' bytes
// 5 bug memcheck|misaligned - : st.async.v4 to an address that is a multiple of 8
// 6 bug racecheck|mbarrier|deadlock bar|gathered : block 0 expects one block's bytes
// 7 ok : counts by atom.shared::cluster in block 0
// 8 bug racecheck total : block 0 reads them with a barrier of its own only
// 9 bug deadlock|synccheck - : barrier.cluster.wait without an arrival before it
// 10 ok : tree of four blocks, a cluster barrier for each level
// 11 bug racecheck part : one cluster barrier for both levels
// 12 ok : the state of arrive.expect_tx, test_wait until it is over
// 13 bug racecheck box : the state of the round before is waited for
// 14 bug mbarrier|racecheck|synccheck bar|box : the count is 1, one lane of each of four warps arrives
// 15 bug racecheck|proxy tile : the fence for the async proxy by thread 0 alone, before the barrier
// 16 ok : by all, before the barrier
// 17 ok : wgmma of two stages by mbarrier, the stage is given back behind wait_group
// 18 bug racecheck a|b : the stage is given back at once
// 19 bug racecheck|synccheck d : the sums are scaled between two stages, no fence behind
// 20 ok : they are scaled between two stages, with a fence
// 21 ok : the dependent kernel prefetches weights, waits, loads by bulk copy
// 22 bug racecheck scratch : it clears scratch that the first kernel reads, before it waits
// 23 bug synccheck|deadlock - : the wait for a phase stands behind a __syncthreads that the arriving warp comes to later
// 24 ok : mbarrier.arrive by all, __syncthreads elsewhere, both in one order
// 25 bug memcheck - : the box's store goes to block 1's memory by an address without mapa, beyond the array
#include "case.h"
#include <cooperative_groups.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;
__device__ unsigned mapa(const void* p, int rank) { unsigned r; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(smem(p)), "r"(rank)); return r; }
template <int V> __global__ void put(const int* in, int* out, int n) {
  __shared__ alignas(128) int tile[64];
  const int t = threadIdx.x;
  if (V <= 2) {
    for (int r = 0; r < 4; ++r) {
      if (t < 64) {
        if (r) asm volatile("bar.sync 2, 96;" ::: "memory");
        tile[t] = in[r * 64 + t] + 1;  // @1 @2
        if (V != 1) fence_async();
        asm volatile("bar.arrive 1, 96;" ::: "memory");
      } else {
        asm volatile("bar.sync 1, 96;" ::: "memory");
        if (t == 64) {
          bulk_store(out + r * 64, tile, 256);  // @1 @2
          bulk_commit();
          if (V != 2) bulk_wait_read<0>();
        }
        __syncwarp();
        if (r < 3) asm volatile("bar.arrive 2, 96;" ::: "memory");
      }
    }
    if (t == 64) bulk_wait<0>();
  } else if (V == 15 || V == 16) {
    if (t < 64) tile[t] = in[t] + 1;  // @15
    if (V == 16 || t == 0) fence_async();
    __syncthreads();
    if (t == 0) {
      bulk_store(out, tile, 256);  // @15
      bulk_commit();
      bulk_wait<0>();
    }
  }
}
template <int V> __global__ void get(const int* in, int* out, int n) {
  __shared__ alignas(128) int box[128];
  __shared__ alignas(8) unsigned long long bar;
  const int t = threadIdx.x;
  if (t == 0) {
    init(&bar, V == 24 ? 128 : 1);  // @3
    if (V != 3) fence_init();
  }
  __syncthreads();
  if (V == 23 || V == 24) {
    box[t] = in[t];
    if (V == 23) {
      if (t < 32) {
        wait(&bar, 0);  // @23
        __syncthreads();
      } else {
        __syncthreads();  // @23
        if (t == 32) arrive(&bar);
      }
    } else {
      arrive(&bar);
      __syncthreads();
      wait(&bar, 0);
    }
    out[t] = box[127 - t];
    return;
  }
  if (V == 14) {
    box[t] = in[t];  // @14
    __syncwarp();
    if (t % 32 == 0) arrive(&bar);  // @14
    wait(&bar, 0);
    out[t] = box[127 - t];  // @14
    return;
  }
  unsigned long long state = 0, before = 0;
  int sum = 0;
  for (int r = 0; r < 2; ++r) {
    if (t == 0) {
      before = state;
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;" : "=l"(state) : "r"(smem(&bar)), "r"(512) : "memory");
      bulk_load(box, in + r * 128, 512, &bar);  // @3 @13
      int done = 0;
      while (!done) asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.shared::cta.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(smem(&bar)), "l"(V == 13 && r ? before : state) : "memory");
    }
    __syncthreads();
    sum += box[127 - t];  // @13
    __syncthreads();
  }
  out[t] = sum;
}
template <int V> __global__ void __cluster_dims__(2) pair(const int* in, int* out, int n) {
  __shared__ alignas(16) int gathered[136], total;
  __shared__ alignas(8) unsigned long long bar;
  auto cluster = cg::this_cluster();
  const int t = threadIdx.x, rank = cluster.block_rank(), i = rank * 64 + t;
  if (t == 0) {
    total = 0;
    init(&bar, 1);
    fence_init();
  }
  cluster.sync();
  if (V == 4 || V == 6) {
    if (rank == 0 && t == 0) expect(&bar, V == 6 ? 256 : 512);  // @6
    if (t < 32) asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.s32 [%0], {%1, %2}, [%3];" ::"r"(mapa(&gathered[i + t], 0)), "r"(in[i + t]), "r"(in[i + t + 1]), "r"(mapa(&bar, 0)) : "memory");  // @6
    if (rank == 0) {
      wait_cluster(&bar, 0);  // @6
      out[t] = gathered[127 - t], out[64 + t] = gathered[63 - t];  // @6
    }
  } else if (V == 5) {
    if (rank == 0 && t == 0) expect(&bar, 32);
    if (t == 0) asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.s32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(mapa(&gathered[rank * 4 + 2], 0)), "r"(1), "r"(2), "r"(3), "r"(4), "r"(mapa(&bar, 0)) : "memory");  // @5
    if (rank == 0) {
      wait_cluster(&bar, 0);
      out[t] = gathered[2 + t % 8];
    }
  } else if (V == 7 || V == 8) {
    int old;
    asm volatile("atom.shared::cluster.add.s32 %0, [%1], %2;" : "=r"(old) : "r"(mapa(&total, 0)), "r"(in[i] % 2) : "memory");  // @8
    if (V == 7) cluster.sync();
    else __syncthreads();
    if (rank == 0) out[t] = total;  // @8
  } else if (V == 9) {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");  // @9
    out[i] = in[i];
  } else if (V == 25) {
    gathered[t] = in[i];
    *cluster.map_shared_rank(&gathered[t + 80], 1) = in[i];  // @25
  }
  cluster.sync();  // @9
}
template <int V> __global__ void __cluster_dims__(4) tree(const int* in, int* out, int n) {
  __shared__ int part[32];
  auto cluster = cg::this_cluster();
  const int t = threadIdx.x, rank = cluster.block_rank();
  part[t] = in[rank * 32 + t];
  cluster.sync();
  for (int d = 2; d > 0; d /= 2) {
    if (rank < d) part[t] += *cluster.map_shared_rank(&part[t], rank + d);  // @11
    if (V == 10) cluster.sync();
  }
  if (V == 11) cluster.sync();
  if (rank == 0) out[t] = part[t];
}
__device__ unsigned long long descriptor(const void* p) { return (unsigned long long)(smem(p) >> 4 & 0x3fff) | (unsigned long long)(128 >> 4) << 16 | (unsigned long long)(256 >> 4) << 32; }
__device__ int at(int row, int k) { return row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8; }
template <int V> __global__ void multiply(const int* in, int* out, int n) {  // warps 0 to 3 multiply, warp 4 fills two stages
  __shared__ alignas(128) half a[2][1024], b[2][128];
  __shared__ alignas(8) unsigned long long full[2], empty[2];
  const int t = threadIdx.x, warp = t / 32, lane = t % 32;
  if (t == 0)
    for (int s = 0; s < 2; ++s) init(&full[s], 32), init(&empty[s], 128);
  __syncthreads();
  if (warp == 4) {
    for (int k = 0; k < 4; ++k) {
      const int s = k % 2;
      if (k >= 2) wait(&empty[s], k / 2 - 1);
      for (int i = lane; i < 1024; i += 32) a[s][at(i / 16, i % 16)] = __float2half(in[i / 16 * 64 + k * 16 + i % 16] % 3);  // @18
      for (int i = lane; i < 128; i += 32) b[s][at(i / 16, i % 16)] = __float2half(in[i / 16 * 64 + k * 16 + i % 16] % 2);  // @18
      fence_async();
      arrive(&full[s]);
    }
    return;
  }
  float d[4] = {};
  for (int k = 0; k < 4; ++k) {
    const int s = k % 2;
    wait(&full[s], k / 2);
    if (V != 19 || k == 0) asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(descriptor(a[s])), "l"(descriptor(b[s])));  // @18 @19
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    if (V == 18) arrive(&empty[s]);
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (V != 18) arrive(&empty[s]);
    if (V == 19 || V == 20)
      for (float& x : d) x *= 2;  // @19
  }
  for (int j = 0; j < 4; ++j) out[(warp * 16 + lane / 4 + j / 2 * 8) * 8 + lane % 4 * 2 + j % 2] = int(d[j]);
}
template <int V> __global__ void begin(const int* in, int* scratch, int* mid) { mid[threadIdx.x] = in[threadIdx.x] + scratch[threadIdx.x]; }  // @22
template <int V> __global__ void next(int* scratch, const int* mid, const int* weights, int* out) {
  __shared__ alignas(128) int buf[64];
  __shared__ alignas(8) unsigned long long bar;
  const int t = threadIdx.x, w = weights[t];
  if (V == 22) scratch[t] = 0;  // @22
  if (t == 0) {
    init(&bar, 1);
    fence_init();
    asm volatile("griddepcontrol.wait;" ::: "memory");
    expect(&bar, 256);
    bulk_load(buf, mid, 256, &bar);
  }
  __syncthreads();
  wait(&bar, 0);
  out[t] = buf[t] * w;
}
template <int V> int test() {
  if constexpr (V <= 2) return check(put<V>, 1, 96, 256, 256, [](auto& in, int i) { return in[i] + 1; });
  else if constexpr (V == 15 || V == 16) return check(put<V>, 1, 96, 64, 64, [](auto& in, int i) { return in[i] + 1; });
  else if constexpr (V == 3 || V == 12 || V == 13) return check(get<V>, 1, 128, 256, 128, [](auto& in, int i) { return in[127 - i] + in[255 - i]; });
  else if constexpr (V == 14 || V == 23 || V == 24) return check(get<V>, 1, 128, 128, 128, [](auto& in, int i) { return in[127 - i]; });
  else if constexpr (V == 10 || V == 11) return check(tree<V>, 4, 32, 128, 32, [](auto& in, int i) { return in[i] + in[i + 32] + in[i + 64] + in[i + 96]; });
  else if constexpr (V >= 17 && V <= 20) return check(multiply<V>, 1, 160, 4096, 512, [](auto& in, int i) {
    int s = 0;
    for (int k = 0; k < 64; ++k) {
      s += in[i / 8 * 64 + k] % 3 * (in[i % 8 * 64 + k] % 2);
      if (V == 20 && k % 16 == 15) s *= 2;
    }
    return s;
  });
  else if constexpr (V == 21 || V == 22) {
    const std::vector<int> host = values(64);
    int *in = upload(host), *scratch = upload(host), *mid = fresh<int>(64), *weights = upload(host), *out = zeros<int>(64);
    CUDA(cudaDeviceSynchronize());
    begin<V><<<1, 64>>>((const int*)in, scratch, mid);
    cudaLaunchConfig_t c{};
    c.gridDim = 1;
    c.blockDim = 64;
    cudaLaunchAttribute a;
    a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    a.val.programmaticStreamSerializationAllowed = 1;
    c.attrs = &a;
    c.numAttrs = 1;
    CUDA(cudaLaunchKernelEx(&c, next<V>, scratch, (const int*)mid, (const int*)weights, out));
    launched();
    std::vector<int> want(64);
    for (int i = 0; i < 64; ++i) want[i] = 2 * host[i] * host[i];
    return verdict(download(out, 64), want);
  } else return check(pair<V>, 2, 64, 128, 128, [](auto& in, int i) {
    if (V == 4) return i < 64 ? in[127 - i] : in[127 - i];
    if (V == 7) { int s = 0; for (int x : in) s += x % 2; return i < 64 ? s : 0; }
    return in[i];
  });
}
MAIN(26)

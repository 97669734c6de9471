// Kinds that the interpreter once did not tell, or told elsewhere, and what stands close to them and is right.
// 0 bug synccheck - : the barrier stands inside if (t < d), the others end
// 1 ok : threads with nothing to do leave before the loop with barriers
// 2 bug racecheck s : barrier in one branch inside a loop
// 3 bug racecheck s : a tile's sync in one branch
// 4 bug deadlock empty : the empty barrier expects 64 arrivals, one comes
// 5 bug deadlock - : half of the threads sleep for a flag that nobody raises
// 6 bug racecheck x : bounded counter: volatile read, branch, volatile store
// 7 bug racecheck lock : test and set through volatile
// 8 ok : turns: each block waits until the volatile number is its own, then adds 1
// 9 ok : two blocks play ping-pong through one volatile word
// 10 ok : a flag that all blocks raise if it is not raised
// 11 ok : labels sink: volatile minimum, repeated until the host sees no change
// 12 bug memcheck - : mapa names block 2 of a cluster of 2
// 13 bug memcheck - : a 2-D copy with the map of a 3-D tensor
// 14 bug config - : a box of 257 rows: the call's line
// 15 bug note - : an asm that polls, without volatile
// 16 ok : the loop's rounds differ from thread to thread, without a barrier in it
// 17 ok : threads leave a loop with barriers at a break all take
// 18 bug racecheck last : the block that comes last is told by a word that nobody waits for
// 19 ok : the same with the barrier
// 20 bug synccheck - : two groups of warps use one named barrier at a time
// 21 ok : they use two
// 22 ok : they use one, the second group when the first one has told it
// 23 bug racecheck data : a writer waits for one of two readers
#include <cooperative_groups.h>
#include <cuda.h>

#include "case.h"
namespace cg = cooperative_groups;
template <int V> __global__ void loops(const int* in, int* out, int n) {
  __shared__ int s[128];
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  if (V == 1 && t >= 64) return;
  if (V == 16)
    for (int r = 0; r < t % 7; ++r) out[t] = r;
  for (int d = 64; d > 0; d /= 2) {
    if (t < d) {
      s[t] += s[t + d];  // @2
      if (V == 0 || V == 2) __syncthreads();  // @0 @2
    }
    if (V == 2 && t >= d) out[t] = s[t - d];  // @2
    if (V == 17 && d == 8) break;
    if (V != 0 && V != 2) __syncthreads();
  }
  if (t == 0) out[0] = s[0];
}
template <int V> __global__ void tiles(const int* in, int* out, int n) {
  __shared__ int s[128];
  const int t = threadIdx.x;
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  s[t] = in[t];
  if (tile.thread_rank() < 8) tile.sync();  // @3
  out[t] = s[t ^ 8];
  tile.sync();  // @3
}
template <int V> __global__ void ring(const int* in, int* out, int n) {
  __shared__ int stage[32];
  __shared__ alignas(8) unsigned long long full, empty;
  const int t = threadIdx.x;
  if (t == 0) {
    init(&full, 32);
    init(&empty, 64);
  }
  __syncthreads();
  for (int r = 0; r < 3; ++r) {
    if (t < 32) {
      if (r) wait(&empty, (r - 1) % 2);  // @4
      stage[t] = in[t];
      arrive(&full);
    } else {
      wait(&full, r % 2);
      out[t] = stage[t % 32];
      __syncwarp();
      if (t % 32 == 0) arrive(&empty);
    }
  }
}
template <int V> __global__ void sleepers(const int* in, int* out, int n) {
  __shared__ volatile int flag;
  const int t = threadIdx.x;
  if (t == 0) flag = 0;
  __syncthreads();
  if (t >= 64)
    while (!flag) __nanosleep(100);  // @5
  __syncthreads();
  out[t] = in[t];
}
__device__ int x, lock, turn, ball, raised, label[64];
template <int V> __global__ void updates(const int* in, int* out, int n) {
  const int t = threadIdx.x, b = blockIdx.x;
  if (V == 6) {
    volatile int* p = &x;
    const int old = *p;
    if (old < 1000) *p = old + 1;  // @6
  }
  if (t) return;
  if (V == 7) {
    volatile int* l = &lock;
    while (*l) {}
    *l = 1;  // @7
    __threadfence();
    x += 1;
    __threadfence();
    *l = 0;
  }
  if (V == 8) {
    volatile int* p = &turn;
    while (*p != b) {}
    __threadfence();
    x += 1;
    __threadfence();
    *p = b + 1;
  }
  if (V == 9 && b < 2) {
    volatile int* p = &ball;
    for (int r = 0; r < 4; ++r) {
      while (*p != b) {}
      *p = 1 - b;
    }
  }
  if (V == 10) {
    volatile int* p = &raised;
    if (*p == 0) *p = 1;
  }
}
__global__ void sink(const int* in, int* changed) {
  volatile int* l = label;
  const int v = in[threadIdx.x] % 64, mine = l[threadIdx.x];
  if (mine < l[v]) l[v] = mine, *changed = 1;
}
__device__ unsigned mapa(const void* p, int rank) { unsigned r; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(smem(p)), "r"(rank)); return r; }
template <int V> __global__ void __cluster_dims__(2) beyond(const int* in, int* out, int n) {
  __shared__ int s[32];
  s[threadIdx.x] = in[threadIdx.x];
  cg::this_cluster().sync();
  int v;
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(v) : "r"(mapa(&s[threadIdx.x], cg::this_cluster().block_rank() + 1)) : "memory");  // @12
  out[blockIdx.x * 32 + threadIdx.x] = v;
  cg::this_cluster().sync();
}
__global__ void cube(const __grid_constant__ CUtensorMap map, int* out) {
  __shared__ alignas(128) int box[64];
  __shared__ alignas(8) unsigned long long bar;
  if (threadIdx.x == 0) {
    init(&bar, 1);
    fence_init();
    expect(&bar, 256);
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(smem(box)), "l"(&map), "r"(0), "r"(0), "r"(smem(&bar)) : "memory");  // @13
  }
  __syncthreads();
  wait(&bar, 0);
  out[threadIdx.x] = box[threadIdx.x];
}
__global__ void polls(int* flag, int* out) {
  if (blockIdx.x == 0) {
    __threadfence();
    atomicExch(flag, 1);
  } else {
    int seen;
    do asm("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag)); while (!seen);  // @15
    out[0] = seen;
  }
}
template <int V> __global__ void last_block(const int* in, int* partial, unsigned* ticket, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = in[blockIdx.x];
    __threadfence();
    last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;  // @18
  }
  if (V == 19) __syncthreads();
  if (last) {  // @18
    int sum = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) sum += partial[i];
    atomicAdd(out, sum);
  }
}
template <int V> __global__ void groups(const int* in, int* out, int n) {
  __shared__ int s[128];
  const int t = threadIdx.x, group = t / 64;
  s[t] = in[t];
  if (V == 22 && group == 1) asm volatile("bar.sync 2, 128;" ::: "memory");
  if (V == 21 && group == 1) asm volatile("bar.sync 2, 64;" ::: "memory");
  else asm volatile("bar.sync 1, 64;" ::: "memory");  // @20
  if (V == 22 && group == 0) asm volatile("bar.sync 2, 128;" ::: "memory");
  out[t] = s[t ^ 63];
}
__global__ void waits_for_one(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    data[0] = 5;
    __threadfence();
    atomicExch(&flag[0], 1);
    while (atomicAdd(&flag[1], 0) == 0) {}
    __threadfence();
    data[0] = 6;  // @23
  } else {
    while (atomicAdd(&flag[0], 0) == 0) {}
    __threadfence();
    out[blockIdx.x] = data[0];  // @23
    __threadfence();
    atomicExch(&flag[blockIdx.x], 1);
  }
}
template <int V> int test() {
  auto sum = [](auto& in, int i) { int s = 0; for (int k = 0; k < 128; ++k) s += in[k]; return i ? 0 : s; };
  if constexpr (V == 1 || V == 0 || V == 2) return check(loops<V>, 1, 128, 128, V == 2 ? 128 : 1, sum);
  else if constexpr (V == 16) return check(loops<V>, 1, 128, 128, 128, [=](auto& in, int i) { return i ? std::max(0, i % 7 - 1) : sum(in, 0); });
  else if constexpr (V == 17) return check(loops<V>, 1, 128, 128, 1, [](auto& in, int) { int s = 0; for (int k = 0; k < 128; k += 8) s += in[k]; return s; });
  else if constexpr (V == 3) return check(tiles<V>, 1, 128, 128, 128, [](auto& in, int i) { return in[i ^ 8]; });
  else if constexpr (V == 4) return check(ring<V>, 1, 96, 128, 128, sum);
  else if constexpr (V == 5) return check(sleepers<V>, 1, 128, 128, 128, sum);
  else if constexpr (V >= 6 && V <= 10) return check(updates<V>, 4, 32, 128, 1, [](auto&, int) { return 0; });
  else if constexpr (V == 11) {
    std::vector<int> host = values(64), labels(64);
    int *in = upload(host), *changed = zeros<int>(1);
    for (int i = 0; i < 64; ++i) labels[i] = i;
    CUDA(cudaMemcpyToSymbol(label, labels.data(), 256));
    do {
      CUDA(cudaMemset(changed, 0, 4));
      sink<<<1, 64>>>(in, changed);
    } while (download(changed, 1)[0]);
    return 0;
  } else if constexpr (V == 12) return check(beyond<V>, 2, 32, 128, 64, sum);
  else if constexpr (V == 13 || V == 14) {
    int *in = zeros<int>(1 << 18), *out = zeros<int>(64);
    CUtensorMap map{};
    const cuuint64_t sizes[] = {64, 512, 4}, strides[] = {256, 256 * 512};
    const cuuint32_t box[] = {8, V == 14 ? 257u : 8u, 1}, one[] = {1, 1, 1};
    const CUresult r = cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 3, in, sizes, strides, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);  // @14
    if (r != CUDA_SUCCESS) return 3;
    cube<<<1, 64>>>(map, out);
    launched();
    return 0;
  } else if constexpr (V == 18 || V == 19) {
    const std::vector<int> host = values(6);
    int *in = upload(host), *partial = fresh<int>(6), *out = zeros<int>(1), want = 0;
    for (const int x : host) want += x;
    last_block<V><<<6, 64>>>(in, partial, zeros<unsigned>(1), out);
    launched();
    return verdict(download(out, 1), std::vector<int>{want});
  } else if constexpr (V >= 20 && V <= 22) return check(groups<V>, 1, 128, 128, 128, [](auto& in, int i) { return in[i ^ 63]; });
  else if constexpr (V == 23) {
    waits_for_one<<<3, 1>>>(zeros<int>(1), zeros<int>(4), zeros<int>(4));
    launched();
    return 0;
  } else {
    int *flag = zeros<int>(1), *out = zeros<int>(1);
    polls<<<2, 1>>>(flag, out);
    launched();
    return 0;
  }
}
MAIN(24)

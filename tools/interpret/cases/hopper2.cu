// 0 ok : expect_tx apart from the arrival, before the copy
// 1 ok : warp-specialised pipeline: one producer thread, 3 stages, 2 consumer warps, empty barriers counted by warps
// 2 bug racecheck stage : a consumer warp's lane 0 gives the stage back without __syncwarp
// 3 bug deadlock empty : empty counts threads, one lane per warp arrives
// 4 bug racecheck|mbarrier stage|full : producer's parity for empty begins as the consumer's (no wait in the second turn)
// 5 ok : the producer begins with parity 1 on a fresh barrier, which counts as complete
// 6 ok : elect.sync chooses the producer's lane
// 7 ok : bulk store from registers by way of shared memory, two warps store for themselves, __syncwarp each
// 8 bug racecheck out_tile : the same without __syncwarp before the store
// 9 ok : an arrival at each block of the cluster by mapa, of two in all
// 10 ok : multicast of halves: each block of a pair loads one half for both
// 11 bug deadlock|mbarrier|racecheck bar : each block expects its own half only
// 12 bug racecheck half_of : multicast of halves, second round without asking the other block
// 13 ok : second round behind the cluster's barrier
// 14 ok : stmatrix, fence, barrier, tensor store replaced by bulk store
// 15 bug racecheck|proxy staged : stmatrix, barrier, no fence for the async proxy
// 16 ok : try_wait with a time limit in a loop
// 17 bug racecheck stage : try_wait once with a time limit, result dropped
// 18 ok : test_wait.parity polled with nanosleep
// 19 bug racecheck|deadlock stage : test_wait's result is inverted
// 20 ok : barrier in dynamic shared memory behind the stages, aligned by hand
// 21 bug memcheck dynamic : barrier behind the stages, the launch has forgotten its 8 bytes
// 22 bug racecheck|mbarrier|memcheck bar : barrier and stage overlap in dynamic shared memory
// 23 ok : fence.proxy.async between reading a stage and its next bulk load is not needed behind an mbarrier
// 24 bug racecheck|proxy stage : a stage that threads have zeroed is loaded without a proxy fence
// 25 ok : the same with fence.proxy.async and a barrier
// 26 bug racecheck stage : the consumer waits for a phase two ahead
// 27 bug racecheck stage : the loop over k begins anew (second tile) with parity 0 though the rounds were odd
// 28 ok : the phase is carried over from tile to tile
// 29 bug racecheck out : two blocks' bulk stores overlap by one element row
// 30 ok : bulk stores of two blocks side by side
// 31 bug memcheck out : bulk store beyond the allocation
// 32 bug memcheck|misaligned out : bulk store to an address that is a multiple of 4 only
#include "case.h"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ unsigned mapa(const void* p, int rank) { unsigned r; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(smem(p)), "r"(rank)); return r; }
__device__ bool elected() { unsigned p; asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.b32 %0, 1, 0, p;\n}" : "=r"(p)); return p; }
template <int V> __global__ void special(const int* in, int* out, int n) {  // warp 2 loads, warps 0 and 1 add columns
  constexpr int kStages = 3;
  __shared__ alignas(128) int stage[kStages][64];
  __shared__ alignas(8) unsigned long long full[kStages], empty[kStages];
  const int t = threadIdx.x, warp = t / 32, lane = t % 32, rounds = n / 64 / 2;
  if (t == 0) {
    for (int s = 0; s < kStages; ++s) {
      init(&full[s], 1);
      init(&empty[s], V == 3 ? 64 : 2);
    }
    fence_init();
  }
  __syncthreads();
  if (warp == 2) {
    if (V == 6 ? elected() : lane == 0) {
      for (int r = 0; r < 2 * rounds; ++r) {
        const int s = r % kStages, turn = r / kStages;
        if (V == 5) wait(&empty[s], (turn + 1) % 2);
        else if (V == 4) wait(&empty[s], turn == 0 ? 1 : turn % 2);  // @4
        else if (turn > 0) wait(&empty[s], (turn - 1) % 2);  // @3
        if (V == 0) {
          asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(smem(&full[s])), "r"(256) : "memory");
          bulk_load(stage[s], in + r * 64, 256, &full[s]);
          arrive(&full[s]);
        } else {
          expect(&full[s], 256);  // @4
          bulk_load(stage[s], in + r * 64, 256, &full[s]);  // @2 @4 @17 @19 @27 @26
        }
      }
    }
  } else {
    int sum = 0;
    for (int tile = 0; tile < 2; ++tile)
      for (int k = 0; k < rounds; ++k) {
        const int r = tile * rounds + k, s = V == 27 ? k % kStages : r % kStages;
        const int parity = V == 27 ? k / kStages % 2 : V == 26 && r == 0 ? 1 : r / kStages % 2;
        if (V == 16 || V == 17) {
          int ok;
          do asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, 1000;\nselp.b32 %0, 1, 0, p;\n}" : "=r"(ok) : "r"(smem(&full[s])), "r"(parity) : "memory");
          while (V == 16 && !ok);
        } else if (V == 18 || V == 19) {
          for (;;) {
            int ok;
            asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p;\n}" : "=r"(ok) : "r"(smem(&full[s])), "r"(parity) : "memory");
            if (V == 18 ? ok : !ok) break;
            __nanosleep(20);  // @19
          }
        } else {
          wait(&full[s], V == 26 ? r / kStages % 2 ^ (r == 3) : parity);  // @26 @3
        }
        sum += stage[s][t];  // @2 @4 @17 @19 @27 @26
        if (V != 2) __syncwarp();
        if (lane == 0) arrive(&empty[s]);
      }
    out[t] = sum;
  }
}
template <int V> __global__ void stores(const int* in, int* out, int n) {
  __shared__ alignas(128) int out_tile[64], staged[64];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  if (V == 7 || V == 8) {
    out_tile[t] = in[t] + 5;  // @8
    fence_async();
    if (V == 7) __syncwarp();
    if (lane == 0) {
      bulk_store(out + warp * 32, out_tile + warp * 32, 128);  // @8
      bulk_commit();
      bulk_wait<0>();
    }
  } else if (V == 14 || V == 15) {  // one 8 x 8 matrix of 16-bit elements per warp
    const unsigned word = unsigned(in[lane * 2]) | unsigned(in[lane * 2 + 1]) << 16;
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(smem(staged + warp * 32 + lane % 8 * 4)), "r"(word) : "memory");  // @15
    if (V == 14) fence_async();
    __syncthreads();
    if (t == 0) {
      bulk_store(out, staged, 256);  // @15
      bulk_commit();
      bulk_wait<0>();
    }
  } else {
    const int b = blockIdx.x;
    out_tile[t] = in[t] + 5;
    fence_async();
    __syncthreads();
    if (t == 0) {
      bulk_store(out + (V == 29 ? b * 60 : V == 31 ? b * 68 : V == 32 ? b * 64 + 1 - b : b * 64), out_tile, 256);  // @29 @31 @32
      bulk_commit();
      bulk_wait<0>();
    }
  }
}
template <int V> __global__ void __cluster_dims__(2) halves(const int* in, int* out, int n) {
  __shared__ alignas(128) int half_of[128];
  __shared__ alignas(8) unsigned long long bar;
  auto cluster = cg::this_cluster();
  const int t = threadIdx.x, rank = cluster.block_rank();
  if (t == 0) {
    init(&bar, V == 9 ? 2 : 1);
    fence_init();
  }
  cluster.sync();
  if (V == 9) {
    half_of[t] = in[t];
    __syncthreads();
    if (t < 2) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(mapa(&bar, t)) : "memory");
    wait_cluster(&bar, 0);
    out[blockIdx.x * 64 + t] = *cluster.map_shared_rank(&half_of[t], rank ^ 1);
    cluster.sync();
    return;
  }
  int sum = 0;
  for (int r = 0; r < (V == 12 || V == 13 ? 2 : 1); ++r) {
    if (t == 0) {
      expect(&bar, V == 11 ? 256 : 512);  // @11
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], %3;" ::"r"(smem(half_of + rank * 64)), "l"(in + r * 128 + rank * 64), "r"(smem(&bar)), "h"((unsigned short)3) : "memory");  // @11 @12
    }
    wait(&bar, r);  // @11
    sum += half_of[t] + half_of[t + 64];  // @12
    if (V == 12) __syncthreads();
    if (V == 13) cluster.sync();
  }
  out[blockIdx.x * 64 + t] = sum;
  cluster.sync();
}
template <int V> __global__ void carved(const int* in, int* out, int n) {
  extern __shared__ alignas(128) unsigned char dynamic[];
  int* stage = (int*)dynamic;
  unsigned long long* bar = (unsigned long long*)(dynamic + (V == 22 ? 248 : 256));
  const int t = threadIdx.x;
  if (V == 24 || V == 25) {
    stage[t] = 0;  // @24
    if (V == 25) fence_async();
  }
  if (t == 0) {
    init(bar, 1);  // @21 @22
    fence_init();
  }
  __syncthreads();
  int sum = 0;
  for (int r = 0; r < 2; ++r) {
    if (t == 0) {
      expect(bar, 256);
      bulk_load(stage, in + r * 64, 256, bar);  // @22 @24
    }
    wait(bar, r);  // @22
    sum += stage[63 - t];  // @22
    __syncthreads();
  }
  out[t] = sum;
}
template <int V> int test() {
  auto sums = [](auto& in, int i) { int s = 0; for (size_t r = 0; r < in.size(); r += 64) s += in[r + i]; return s; };
  if constexpr ((V >= 9 && V <= 13)) return check(halves<V>, 2, 64, 256, 128, [](auto& in, int i) {
    i %= 64;
    if (V == 9) return in[i];
    return in[i] + in[i + 64] + (V == 13 ? in[i + 128] + in[i + 192] : 0);
  });
  else if constexpr (V == 7 || V == 8 || V == 14 || V == 15) return check(stores<V>, 1, 64, 64, 64, [](auto& in, int i) { return V == 14 ? in[i % 32 * 2] | in[i % 32 * 2 + 1] << 16 : in[i] + 5; });
  else if constexpr (V >= 29) return check(stores<V>, 2, 64, 64, 128, [](auto& in, int i) { return in[i % 64] + 5; });
  else if constexpr (V >= 20 && V <= 25 && V != 23) return check(carved<V>, 1, 64, 128, 64, [](auto& in, int i) { return in[63 - i] + in[127 - i]; }, V == 21 ? 256 : 264);
  else return check(special<V>, 1, 96, 64 * 14, 64, sums);
}
MAIN(33)

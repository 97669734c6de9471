// 0 ok : m64n8k16 of halves, no swizzle, tiles written by threads
// 1 bug racecheck|proxy a|b : no fence.proxy.async behind the threads' writes
// 2 bug racecheck|initcheck a|b : no barrier behind the threads' writes
// 3 bug racecheck|synccheck d : the accumulators are set, no wgmma.fence
// 4 bug racecheck d : no commit_group, so the wait is for nothing
// 5 bug racecheck d : the accumulators are stored before the wait
// 6 ok : two steps of k in one group, no fence between
// 7 bug racecheck a : the tile of A is overwritten before the wait
// 8 ok : A in registers
// 9 bug racecheck|result - : a register of A changes before the wait
// 10 bug synccheck|wgmma|deadlock - : the last warp of the warpgroup leaves out the wgmma
// 11 ok : two warpgroups, a tile each
// 12 bug racecheck a|b : the second warpgroup reads the tile that the first one has written, with its own named barrier only
// 13 bug racecheck d : two groups, wait_group 1, the second's accumulators are stored
// 14 ok : two groups, wait_group 1, the first's accumulators are stored, then wait_group 0 and the second's
// 15 bug memcheck|initcheck b : the descriptor of B begins behind the array
// 16 bug racecheck|synccheck e : the accumulators are changed between two groups without wgmma.fence
// 17 ok : they are changed behind the wait, with a wgmma.fence
// 18 bug racecheck a : A is refilled by other threads, which know of the issue only
// 19 bug initcheck a : only half of A's rows are written
#include "case.h"
#include <cuda_fp16.h>
__device__ unsigned long long descriptor(const void* p) {  // no swizzle, K-major: 8 x 8 matrices of 128 bytes, 128 apart along k, 256 along rows
  return (unsigned long long)(smem(p) >> 4 & 0x3fff) | (unsigned long long)(128 >> 4) << 16 | (unsigned long long)(256 >> 4) << 32;
}
__device__ int at(int row, int k) { return row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8; }  // of halves
__device__ void gmma(float (&d)[4], unsigned long long a, unsigned long long b, int scale) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, p, 1, 1, 0, 0;\n}" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b), "r"(scale));
}
__device__ void gmma_registers(float (&d)[4], unsigned (&a)[4], unsigned long long b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, 1, 1, 1, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__device__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ void wait_group() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
__device__ void named(int id) { asm volatile("bar.sync %0, 128;" ::"r"(id) : "memory"); }
// c = a b^T of 64 x 32 and 8 x 32 in two steps of k; values are small integers, so sums are exact
template <int V> __global__ void product(const int* in, int* out, int n) {
  constexpr int kGroups = V == 11 || V == 12 ? 2 : 1;
  __shared__ alignas(128) half a[kGroups][2][64 * 16], b[2][8 * 16];
  const int t = threadIdx.x % 128, g = threadIdx.x / 128, warp = t / 32, lane = t % 32;
  const int mine = V == 12 ? 0 : g;
  if (V != 12 || g == 0)
    for (int i = t; i < (V == 19 ? 32 : 64) * 32; i += 128) a[g][i % 32 / 16][at(i / 32, i % 16)] = __float2half(in[i] % 4);  // @1 @2 @12
  if (g == 0)
    for (int i = t; i < 8 * 32; i += 128) b[i % 32 / 16][at(i / 32, i % 16)] = __float2half(in[i] % 5);  // @1 @2 @12
  if (V != 1) fence_async();
  if (V == 12) named(1 + g);
  else if (V != 2) __syncthreads();
  float d[4] = {}, e[4] = {};
  if (V == 8 || V == 9) {
    for (int k = 0; k < 2; ++k) {
      unsigned r[4];
      for (int j = 0; j < 4; ++j) r[j] = *(const unsigned*)&a[g][k][at(warp * 16 + lane / 4 + j % 2 * 8, lane % 4 * 2 + j / 2 * 8)];
      fence();
      gmma_registers(d, r, descriptor(b[k]));  // @9
      commit();
      if (V == 9) r[0] = 0;  // @9
      wait_group<0>();
    }
  } else if (V == 13 || V == 14 || V == 16 || V == 17) {
    fence();
    gmma(d, descriptor(a[g][0]), descriptor(b[0]), 1);
    commit();
    if (V == 16 || V == 17) {
      if (V == 17) wait_group<0>();
      for (float& x : e) x += float(n - 2047);  // @16
      if (V == 17) fence();
    }
    gmma(e, descriptor(a[g][1]), descriptor(b[1]), 1);  // @13 @16
    commit();
    wait_group<1>();
    for (float& x : d) x += 0;
    if (V == 13) for (int j = 0; j < 4; ++j) d[j] += e[j];  // @13
    wait_group<0>();
    if (V != 13) for (int j = 0; j < 4; ++j) d[j] += e[j] - (V == 16 || V == 17);
  } else if (V != 10 || warp < 3) {
    if (V == 3) for (float& x : d) x = t * 0.0f;  // @3
    if (V != 3) fence();
    for (int k = 0; k < 2; ++k) {
      gmma(d, descriptor(a[mine][k]), V == 15 ? descriptor(b[k]) + (512 >> 4) : descriptor(b[k]), 1);  // @3 @1 @2 @4 @5 @7 @10 @12 @15 @18 @19
      if (V != 6 && V != 4) {
        commit();
        if (k == 0) wait_group<0>();
      }
      if (V != 6 && k == 0) fence();
    }
    if (V == 6) commit();
    if (V == 7) a[0][1][t] = __float2half(0);  // @7
    if (V == 18) {
      __syncthreads();
      a[0][1][(t + 64) % 128] = __float2half(0);  // @18
    }
    if (V != 5) wait_group<0>();
  }
  for (int j = 0; j < 4; ++j) out[g * 512 + (warp * 16 + lane / 4 + j / 2 * 8) * 8 + lane % 4 * 2 + j % 2] = int(d[j]);  // @4 @5
  if (V == 5) wait_group<0>();
}
template <int V> int test() {
  constexpr int kGroups = V == 11 || V == 12 ? 2 : 1;
  return check(product<V>, 1, 128 * kGroups, 2048, 512 * kGroups, [](auto& in, int i) {
    int s = 0;
    for (int k = 0; k < 32; ++k) s += in[i % 512 / 8 * 32 + k] % 4 * (in[i % 8 * 32 + k] % 5);
    return s;
  });
}
MAIN(20)

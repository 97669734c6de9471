// 0 ok : ring of two stages, warp 0 fills, warps 1 to 3 add; every lane arrives
// 1 bug mbarrier|racecheck full : full counts 1 arrival, 32 lanes arrive
// 2 bug racecheck|deadlock ring : the consumer's parity never flips
// 3 bug racecheck ring : the producer never waits for an empty stage
// 4 bug racecheck full|empty : no barrier between mbarrier.init and its first use
// 5 bug racecheck full|empty : all threads initialise the barriers
// 6 ok : one lane of the producer arrives, behind __syncwarp
// 7 bug racecheck ring : one lane of the producer arrives, no __syncwarp before
// 8 ok : states: the consumer's arrival gives a token, test_wait with it
// 9 bug mbarrier bar : initialised again though valid, without mbarrier.inval
// 10 ok : mbarrier.inval, barrier, mbarrier.init again with another count
// 11 ok : one lane arrives with a count of 32
// 12 bug mbarrier full : one lane arrives with a count of 64 where 32 are expected
// 13 ok : arrive_drop: half of the threads leave after the first phase
// 14 bug mbarrier|racecheck bar : the barrier's word is used for data while it is valid
// 15 bug memcheck|misaligned words : the barrier lies at a multiple of 4 that is none of 8
// 16 bug memcheck full : stage 2 of two
// 17 bug racecheck|initcheck ring : the consumer begins with parity 1, which counts as complete
// 18 bug deadlock full : the producer leaves out the last round's arrival
// 19 bug racecheck ring : the consumer gives a stage back before it has read it
// 20 ok : consumers of one warp: one lane waits, then __syncwarp
// 21 bug racecheck ring : one lane of each consumer's warp waits, no __syncwarp behind
// 22 ok : three stages through one barrier per stage, phase = round / stages
// 23 bug deadlock bar : the barrier expects 128 threads, 96 get there
#include "case.h"
template <int V> __global__ void ring_sum(const int* in, int* out, int n) {
  __shared__ int ring[2][96];
  __shared__ alignas(8) unsigned long long full[2], empty[2];
  const int t = threadIdx.x, warp = t / 32, lane = t % 32;
  if (V == 5 || t == 0)
    for (int s = 0; s < 2; ++s) {
      init(&full[s], V == 1 || V == 6 || V == 7 ? 1 : 32);  // @5
      init(&empty[s], 96);  // @5
    }
  if (V != 4) __syncthreads();
  const int rounds = n / 96;
  if (warp == 0) {
    for (int r = 0; r < rounds; ++r) {
      const int s = r % 2;
      if (V != 3 && r >= 2) wait(&empty[s], (r / 2 - 1) % 2);
      for (int i = lane; i < 96; i += 32) ring[s][i] = in[r * 96 + i];  // @3 @7 @2 @17 @19 @21
      if (V == 18 && r == rounds - 1) break;
      if (V == 6 || V == 7) {
        if (V == 6) __syncwarp();
        if (lane == 0) arrive(&full[s]);
      } else if (V == 11 || V == 12) {
        __syncwarp();
        if (lane == 0) asm volatile("{\n.reg .b64 t;\nmbarrier.arrive.shared::cta.b64 t, [%0], %1;\n}" ::"r"(smem(&full[s])), "r"(V == 11 ? 32 : 64) : "memory");  // @12
      } else {
        arrive(&full[V == 16 ? r : s]);  // @1 @4 @16
      }
    }
  } else {
    int sum = 0;
    for (int r = 0; r < rounds; ++r) {
      const int s = r % 2, parity = V == 2 ? 0 : V == 17 ? (r / 2 + 1) % 2 : r / 2 % 2;
      if (V == 20 || V == 21) {
        if (lane == 0) wait(&full[s], parity);
        if (V == 20) __syncwarp();
      } else {
        wait(&full[s], parity);  // @18 @4 @2
      }
      if (V == 19) arrive(&empty[s]);
      sum += ring[s][t - 32];  // @2 @17 @3 @7 @19 @21
      if (V != 19) arrive(&empty[s]);  // @4
    }
    out[t - 32] = sum;
  }
}
template <int V> __global__ void phases(const int* in, int* out, int n) {
  __shared__ int x[128];
  __shared__ alignas(8) unsigned long long bar;
  __shared__ alignas(8) int words[4];
  const int t = threadIdx.x;
  void* b = V == 15 ? (void*)(words + 1) : (void*)&bar;
  if (t == 0) init(b, 128);  // @15
  __syncthreads();
  x[t] = in[t];
  if (V == 8) {
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(smem(b)) : "memory");
    int done = 0;
    while (!done) asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.shared::cta.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(smem(b)), "l"(state) : "memory");
    out[t] = x[127 - t];
    return;
  }
  if (V == 23 && t >= 96) return;
  if (V == 13 && t >= 64) {
    asm volatile("{\n.reg .b64 t;\nmbarrier.arrive_drop.shared::cta.b64 t, [%0];\n}" ::"r"(smem(b)) : "memory");
    out[t] = in[127 - t];
    return;
  }
  arrive(b);
  wait(b, 0);  // @23
  int y = x[127 - t];
  if (V == 13) {
    arrive(b);
    wait(b, 1);
    x[t] = y;
    arrive(b);
    wait(b, 0);
    y = x[t];
  }
  if (V == 9 || V == 10) {
    __syncthreads();
    if (V == 10 && t == 0) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(smem(b)) : "memory");
    __syncthreads();
    if (t == 0) init(b, 64);  // @9
    __syncthreads();
    if (t < 64) arrive(b);
    wait(b, 0);
  }
  if (V == 14) {
    __syncthreads();
    if (t == 0) *(volatile int*)&bar = y;  // @14
    __syncthreads();
    arrive(b);  // @14
    wait(b, 1);
  }
  out[t] = y;
}
template <int V> __global__ void three(const int* in, int* out, int n) {
  __shared__ int stage[3][64];
  __shared__ alignas(8) unsigned long long bars[3];
  const int t = threadIdx.x;
  if (t < 3) init(&bars[t], 64);
  __syncthreads();
  int sum = 0;
  for (int r = 0; r < n / 64; ++r) {
    stage[r % 3][t] = in[r * 64 + t];
    arrive(&bars[r % 3]);
    wait(&bars[r % 3], r / 3 % 2);
    sum += stage[r % 3][63 - t];
  }
  out[t] = sum;
}
template <int V> int test() {
  auto columns = [](int w, int c) { return [=](const std::vector<int>& in, int i) { int s = 0; for (int r = 0; r * w < int(in.size()); ++r) s += in[r * w + (c ? w - 1 - i : i)]; return s; }; };
  if constexpr (V <= 7 || V == 11 || V == 12 || (V >= 16 && V <= 21)) return check(ring_sum<V>, 1, 128, 96 * 7, 96, columns(96, 0));
  else if constexpr (V == 22) return check(three<V>, 1, 64, 64 * 10, 64, columns(64, 1));
  else return check(phases<V>, 1, 128, 128, 128, [](auto& in, int i) { return in[127 - i]; });
}
MAIN(24)

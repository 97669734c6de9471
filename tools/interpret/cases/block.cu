// 0 ok : tree sum with a barrier in each step, sequential addressing
// 1 bug racecheck s : the barrier is left out below 32 threads (volatile is not used)
// 2 bug synccheck - : the barrier stands inside if (t < stride)
// 3 ok : last warp by __syncwarp
// 4 bug racecheck s : in-place shift without a barrier between reading and writing
// 5 ok : in-place shift, read, barrier, write
// 6 bug racecheck s : two buffers, one barrier too few (swap without barrier)
// 7 ok : two buffers, one barrier per step
// 8 bug racecheck bins : shared histogram by +=
// 9 ok : shared histogram by atomicAdd, read behind a barrier
// 10 bug racecheck bins : read without a barrier behind the atomics
// 11 bug initcheck bins : histogram is not zeroed
// 12 ok : __syncthreads_count as a condition for all
// 13 bug synccheck|deadlock - : a thread returns between two barriers inside a loop; others go on with fewer rounds
// 14 ok : early return of whole warps before the barriers
// 15 bug synccheck - : barrier in a loop with a data-dependent number of rounds
// 16 ok : named barrier pairs: warp 0 and 1 meet at 1, warp 2 and 3 at 2
// 17 bug deadlock|synccheck - : named barrier with a count of 96, two warps come
// 18 bug racecheck s : named barriers: the consumer arrives, the producer does not sync before writing
// 19 ok : bar.arrive by producers, bar.sync by consumers, both ways
// 20 bug racecheck s : the producer's warp writes after bar.arrive
// 21 ok : odd-even sort with barriers
// 22 bug racecheck s : odd-even sort, compare and swap over overlapping pairs
// 23 bug racecheck flag : every thread with a hit stores its own index in one word
// 24 ok : every thread with a hit stores 1 in one word
// 25 bug racecheck s : 8-bit counters in one word, packed by hand (read, or, write)
// 26 ok : bytes written by neighbours
// 27 bug racecheck s : atomicAdd in one branch, plain += in the other
// 28 ok : shared memory used twice for two types, barrier between
// 29 bug racecheck s : the same without a barrier between
// 30 ok : matrix transposition through a padded tile, in two halves with one tile
// 31 bug racecheck s : one tile for two halves, no barrier before the second half's stores
// 32 bug synccheck - : two different __syncthreads in the branches of a ragged block
#include "case.h"
template <int V> __global__ void k(const int* in, int* out, int n) {
  __shared__ int s[256], bins[16], flag;
  const int t = threadIdx.x, b = blockDim.x, lane = t % 32;
  if (V <= 3) {
    s[t] = in[t];
    __syncthreads();
    for (int d = b / 2; d > 0; d /= 2) {
      if (V == 3 && d < 32) break;
      if (t < d) {
        s[t] += s[t + d];  // @1
        if (V == 2) __syncthreads();  // @2
      }
      if (V == 0 || V == 3 || (V == 1 && d > 32)) __syncthreads();
    }
    if (V == 3 && t < 32)
      for (int d = 16; d > 0; d /= 2) {
        const int x = s[t] + (t < d ? s[t + d] : 0);
        __syncwarp();
        s[t] = x;
        __syncwarp();
      }
    if (t == 0) out[0] = s[0];
  }
  if (V == 4 || V == 5) {
    s[t] = in[t];
    __syncthreads();
    const int x = s[(t + 1) % b];  // @4
    if (V == 5) __syncthreads();
    s[t] = x;  // @4
    out[t] = s[t];
  }
  if (V == 6 || V == 7) {
    s[t] = in[t];
    if (V == 7) __syncthreads();
    for (int r = 0; r < 4; ++r) {
      if (V == 6 && r % 2 == 0) __syncthreads();
      const int x = s[r % 2 * 128 + (t + 1) % 128];  // @6
      s[(r + 1) % 2 * 128 + t] = x;  // @6
      if (V == 7) __syncthreads();
    }
    out[t] = s[t];
  }
  if (V >= 8 && V <= 11) {
    if (V != 11 && t < 16) bins[t] = 0;
    __syncthreads();
    if (V == 8) bins[in[t] % 16]++;  // @8
    else atomicAdd(&bins[in[t] % 16], 1);  // @10 @11
    if (V != 10) __syncthreads();
    if (t < 16) out[t] = bins[t];  // @10 @11
  }
  if (V == 12) {
    int x = in[t], rounds = 0;
    while (__syncthreads_count(x > 0) > 5) x -= 50, ++rounds;
    out[t] = rounds;
  }
  if (V == 13 || V == 15) {
    const int rounds = V == 13 ? 4 : in[t] % 5;
    for (int r = 0; r < rounds; ++r) {
      s[t] = r;
      __syncthreads();  // @13 @15
      if (V == 13 && r == 1 && t % 32 == 7) break;
      out[t] = s[b - 1 - t];
      __syncthreads();  // @13 @15
    }
    if (V == 13) __syncthreads();  // @13
  }
  if (V == 14) {
    if (t >= 96) return;
    s[t] = in[t];
    __syncthreads();
    out[t] = s[95 - t];
  }
  if (V == 16 || V == 17) {
    s[t] = in[t];
    asm volatile("bar.sync %0, %1;" ::"r"(1 + t / 64), "r"(V == 16 ? 64 : 96) : "memory");  // @17
    out[t] = s[t ^ 63];
  }
  if (V == 18 || V == 19 || V == 20) {  // warps 0 and 1 produce, 2 and 3 consume; 3 rounds
    const bool producer = t < 64;
    for (int r = 0; r < 3; ++r) {
      if (producer) {
        if (V != 18 && r > 0) asm volatile("bar.sync 2, 128;" ::: "memory");
        if (V != 20) s[t] = in[t] + r;  // @18
        asm volatile("bar.arrive 1, 128;" ::: "memory");
        if (V == 20) s[t] = in[t] + r;  // @20
      } else {
        asm volatile("bar.sync 1, 128;" ::: "memory");
        out[t - 64] = s[127 - t];  // @18 @20
        if (V != 18 && r < 2) asm volatile("bar.arrive 2, 128;" ::: "memory");
      }
    }
  }
  if (V == 21 || V == 22) {
    s[t] = in[t];
    __syncthreads();
    for (int r = 0; r < b; ++r) {
      const int i = V == 21 ? 2 * t + r % 2 : t;
      if (i + 1 < b && (V == 21 || t % 2 == r % 2 || t % 3 == 0)) {
        const int x = s[i], y = s[i + 1];  // @22
        if (x > y) s[i] = y, s[i + 1] = x;  // @22
      }
      __syncthreads();
    }
    out[t] = s[t];
  }
  if (V == 23 || V == 24) {
    if (t == 0) flag = 0;
    __syncthreads();
    if (in[t] > 500) flag = V == 23 ? t : 1;  // @23
    __syncthreads();
    out[t] = V == 23 ? in[flag] : flag;
  }
  if (V == 25 || V == 26) {
    if (t < 64) s[t] = 0;
    __syncthreads();
    if (V == 25) s[t / 4] |= (in[t] & 255) << t % 4 * 8;  // @25
    else ((unsigned char*)s)[t] = in[t] & 255;
    __syncthreads();
    out[t] = s[t / 4] >> t % 4 * 8 & 255;
  }
  if (V == 27) {
    if (t == 0) s[0] = 0;
    __syncthreads();
    if (in[t] % 2) atomicAdd(&s[0], 1);  // @27
    else s[0] += 2;  // @27
    __syncthreads();
    out[t] = s[0];
  }
  if (V == 28 || V == 29) {
    s[t] = in[t];
    __syncthreads();
    const int x = s[b - 1 - t];  // @29
    if (V == 28) __syncthreads();
    float* f = (float*)s;
    f[t] = float(x);  // @29
    __syncthreads();
    out[t] = int(f[(t + 1) % b]);
  }
  if (V == 30 || V == 31) {
    for (int h = 0; h < 2; ++h) {  // 8 x 9 tiles of 64
      if (t < 64) s[t / 8 * 9 + t % 8] = in[h * 64 + t];  // @31
      __syncthreads();
      if (t < 64) out[h * 64 + t] = s[t % 8 * 9 + t / 8];  // @31
      if (V == 30) __syncthreads();
    }
  }
  if (V == 32) {
    if (t < 100) {
      s[t] = in[t];
      __syncthreads();  // @32
    } else {
      s[t] = 0;
      __syncthreads();  // @32
    }
    out[t] = s[b - 1 - t];
  }
}
template <int V> int test() {
  return check(k<V>, 1, 128, 128, 128, [](auto& in, int i) {
    if (V <= 3) { int s = 0; for (int x : in) s += x; return i ? 0 : s; }
    if (V == 5) return in[(i + 1) % 128];
    if (V == 7) return in[(i + 4) % 128];
    if (V == 9) { int s = 0; for (int x : in) s += x % 16 == i; return s; }
    if (V == 12) { int r = 0; for (;; ++r) { int c = 0; for (int x : in) c += x - 50 * r > 0; if (c <= 5) return r; } }
    if (V == 14) return i < 96 ? in[95 - i] : 0;
    if (V == 16) return in[i ^ 63];
    if (V == 19) return i < 64 ? in[63 - i] + 2 : 0;
    if (V == 21) { auto v = in; std::sort(v.begin(), v.end()); return v[i]; }
    if (V == 24) return 1;
    if (V == 26) return in[i] & 255;
    if (V == 28) return in[127 - (i + 1) % 128];
    if (V == 30) return in[i / 64 * 64 + i % 8 * 8 + i % 64 / 8];
    return in[i];
  });
}
MAIN(33)

// 0 ok : cp.async.bulk to shared memory, one barrier, all read
// 1 bug memcheck|misaligned|config buf : 500 bytes are no multiple of 16
// 2 bug memcheck|misaligned in : the source begins 4 bytes behind a multiple of 16
// 3 bug memcheck|misaligned buf : the destination does
// 4 bug racecheck|mbarrier|deadlock buf : an arrival without expect_tx: the phase is over before the bytes
// 5 bug deadlock bar : 16 bytes too many are expected
// 6 bug racecheck buf : thread 0 alone waits, no barrier behind it
// 7 ok : thread 0 alone waits, then __syncthreads
// 8 bug memcheck in : the source ends beyond the allocation
// 9 bug memcheck buf : the destination ends beyond the array
// 10 ok : bulk store: fence.proxy.async, barrier, one thread stores, waits
// 11 bug racecheck|proxy buf : no fence.proxy.async between the threads' writes and the store
// 12 bug racecheck buf : no barrier between the threads' writes and the store
// 13 bug racecheck buf : the buffer is written again while the store reads it
// 14 ok : wait_group.read, barrier, the buffer is written again
// 15 bug racecheck buf : no commit_group, so the wait is for nothing
// 16 bug racecheck out : the result is read back behind wait_group.read
// 17 ok : the result is read back behind wait_group 0
// 18 bug racecheck|memcheck buf : two loads whose destinations overlap
// 19 ok : two loads into two halves, one barrier expects both
// 20 bug racecheck|proxy out : what the block has written to global memory is loaded without a proxy fence
// 21 ok : with fence.proxy.async and a barrier
// 22 bug racecheck buf : another thread waits than the one that has stored
// 23 bug racecheck|mbarrier|memcheck buf : the block ends while its load is under way
// 24 bug mbarrier|racecheck|memcheck bar : fence and barrier are missing, the barrier may not be initialised
// 25 ok : double-buffered loads through a whole array
// 26 bug racecheck buf : double-buffered loads, the next is issued before all have read
// 27 ok : ring of stores, wait_group.read 1 allows the older buffer
// 28 bug racecheck buf : ring of stores over two buffers, wait_group.read 2
// 29 bug racecheck in : the source is overwritten by the block before the load has landed
#include "case.h"
template <int V> __global__ void load(int* in, int* out, int n) {
  __shared__ alignas(128) int buf[V == 9 ? 124 : 132];
  __shared__ alignas(8) unsigned long long bar;
  const int t = threadIdx.x;
  if (t == 0) {
    init(&bar, 1);
    fence_init();
  }
  if (V != 24) __syncthreads();
  if (V == 20 || V == 21) {
    out[t] = in[t] + 1;  // @20
    if (V == 21) fence_async();
    __syncthreads();
  }
  if (t == (V == 24 ? 32 : 0)) {
    const int bytes = V == 1 ? 500 : 512;
    if (V == 4) arrive(&bar);
    else expect(&bar, V == 5 ? bytes + 16 : V == 18 ? 528 : bytes);  // @24
    if (V == 18) {
      bulk_load(buf, in, 272, &bar);  // @18
      bulk_load(buf + 64, in + 64, 256, &bar);  // @18
    } else if (V == 19) {
      bulk_load(buf, in, 256, &bar);
      bulk_load(buf + 64, in + 64, 256, &bar);
    } else {
      bulk_load(V == 3 ? buf + 1 : buf, V == 20 || V == 21 ? out : V == 2 ? in + 1 : V == 8 ? in + 16 : in, bytes, &bar);  // @1 @2 @3 @4 @8 @9 @20 @23 @29 @24
    }
  }
  if (V == 23) return;
  if (V == 29) in[t] = 0;  // @29
  if (V == 6 || V == 7) {
    if (t == 0) wait(&bar, 0);
    if (V == 7) __syncthreads();
  } else {
    wait(&bar, 0);  // @5 @24
  }
  const int x = buf[127 - t];  // @4 @6
  if (V == 20 || V == 21) __syncthreads();
  out[t] = x;
}
template <int V> __global__ void store(const int* in, int* out, int n) {
  __shared__ alignas(128) int buf[128];
  const int t = threadIdx.x;
  buf[t] = in[127 - t];  // @11 @12
  if (V != 11) fence_async();
  if (V != 12) __syncthreads();
  if (t == 0) {
    bulk_store(out, buf, 512);  // @11 @12 @13 @15 @22 @16
    if (V != 15) bulk_commit();
    if (V == 14 || V == 16) bulk_wait_read<0>();
    else if (V != 13 && V != 22) bulk_wait<0>();
  }
  if (V == 22 && t == 32) bulk_wait<0>();
  if (V == 16 || V == 17) {
    if (t == 0) for (int i = 0; i < 128; ++i) out[128 + i] = out[i];  // @16
    return;
  }
  __syncthreads();
  buf[t] = in[t];  // @13 @15 @22
  __syncthreads();
  out[128 + t] = buf[127 - t];
}
template <int V> __global__ void stream(const int* in, int* out, int n) {
  __shared__ alignas(128) int buf[2][128];
  __shared__ alignas(8) unsigned long long bar[2];
  const int t = threadIdx.x, rounds = n / 128;
  if (t == 0) {
    init(&bar[0], 1);
    init(&bar[1], 1);
    fence_init();
  }
  __syncthreads();
  auto issue = [&](int r) {
    if (t == 0 && r < rounds) {
      expect(&bar[r % 2], 512);
      bulk_load(buf[r % 2], in + r * 128, 512, &bar[r % 2]);  // @26
    }
  };
  issue(0);
  issue(1);
  int sum = 0;
  for (int r = 0; r < rounds; ++r) {
    wait(&bar[r % 2], r / 2 % 2);
    sum += buf[r % 2][127 - t];  // @26
    if (V == 25) __syncthreads();
    issue(r + 2);
  }
  out[t] = sum;
}
template <int V> __global__ void stores(const int* in, int* out, int n) {
  __shared__ alignas(128) int buf[2][128];
  const int t = threadIdx.x, rounds = n / 128;
  for (int r = 0; r < rounds; ++r) {
    if (t == 0) bulk_wait_read<V == 28 ? 2 : 1>();
    __syncthreads();
    buf[r % 2][t] = in[r * 128 + t] * 3;  // @28
    fence_async();
    __syncthreads();
    if (t == 0) {
      bulk_store(out + r * 128, buf[r % 2], 512);  // @28
      bulk_commit();
    }
  }
  if (t == 0) bulk_wait<0>();
}
template <int V> int test() {
  if constexpr (V <= 9 || (V >= 18 && V <= 21) || V == 23 || V == 24 || V == 29) return check(load<V>, 1, 128, 128, 128, [](auto& in, int i) { return in[127 - i] + (V == 20 || V == 21); });
  else if constexpr (V == 25 || V == 26) return check(stream<V>, 1, 128, 128 * 7, 128, [](auto& in, int i) { int s = 0; for (int r = 0; r < 7; ++r) s += in[r * 128 + 127 - i]; return s; });
  else if constexpr (V == 27 || V == 28) return check(stores<V>, 1, 128, 128 * 6, 128 * 6, [](auto& in, int i) { return in[i] * 3; });
  else return check(store<V>, 1, 128, 128, 256, [](auto& in, int i) { return in[127 - i % 128]; });
}
MAIN(30)

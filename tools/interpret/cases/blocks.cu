// 0 ok : decoupled look-back, flag and value in one 64-bit word, relaxed
// 1 ok : value and flag apart, fences on both sides
// 2 bug racecheck sums : no fence between value and flag
// 3 bug racecheck sums : no fence behind the flag
// 4 bug racecheck|initcheck prefix : the prefix is read by the block without a barrier
// 5 ok : tile numbers by an atomic counter, broadcast through shared memory
// 6 bug racecheck|initcheck tile : no barrier behind the broadcast
// 7 bug racecheck tile : no barrier between the last reading of the tile's number and the next
// 8 ok : spin lock, fence behind taking and before giving back
// 9 bug racecheck total : the lock is given back without a fence before
// 10 bug racecheck total : the lock is taken without a fence behind
// 11 bug racecheck lock : given back by a plain store
// 12 ok : message through a third block, release and acquire at each step
// 13 bug racecheck data : the block between passes on with relaxed order and no fence
// 14 ok : cuda::atomic in device memory, counts with fetch_add, last block adds up
// 15 bug racecheck sums : the last block is found by a relaxed fetch_add
// 16 bug racecheck sums : the last block's other threads read without a barrier behind the fetch_add
// 17 ok : double-checked start: one block makes a table, others wait by acquire
// 18 bug racecheck table : the others look at the flag by a relaxed load
// 19 ok : mailbox ring between two blocks, head and tail by release and acquire
// 20 bug racecheck box : the producer does not look at tail
// 21 bug racecheck box : tail is moved before the box is read
// 22 ok : grid barrier by sense, twice
// 23 bug racecheck data : the grid barrier's arrival without __syncthreads before
// 24 bug racecheck data : the other threads go on without __syncthreads behind the grid barrier
// 25 ok : plain flag array of a launch before is read by the next launch
// 26 bug racecheck data : halves of a block write, the other block reads half a row too early by flag count of one
// 27 ok : st.release and ld.acquire of PTX by single threads, barrier around
// 28 bug racecheck data : ld.acquire is looked at once, the loop is missing
// 29 bug racecheck data : st.release stands before the data's store
#include "case.h"
#include <cuda/atomic>
__device__ int sums[8], flags[8], counter, lock, total, data[256], table[64], head, tail, arrived, sense;
__device__ unsigned long long words[8];
__device__ int box[4];
__device__ cuda::atomic<int, cuda::thread_scope_device> done{0};
using ref = cuda::atomic_ref<int, cuda::thread_scope_device>;
template <int V> __global__ void look_back(const int* in, int* out, int n) {
  __shared__ int scan[32], prefix;
  const int t = threadIdx.x, b = blockIdx.x;
  int x = in[b * 32 + t];
  for (int d = 1; d < 32; d *= 2) {
    const int y = __shfl_up_sync(~0u, x, d);
    if (t >= d) x += y;
  }
  scan[t] = x;
  if (t == 31) {
    int before = 0;
    if (V == 0) {
      unsigned long long w = 1;
      if (b) do w = *(volatile unsigned long long*)&words[b - 1]; while (!w);
      before = int(w >> 1);
      *(volatile unsigned long long*)&words[b] = (unsigned long long)(before + x) << 1 | 1;
    } else {
      if (b) {
        while (!*(volatile int*)&flags[b - 1]) {}
        if (V != 3) __threadfence();
        before = sums[b - 1];  // @2 @3
      }
      sums[b] = before + x;  // @2 @3
      if (V != 2) __threadfence();
      *(volatile int*)&flags[b] = 1;
    }
    prefix = before;  // @4
  }
  if (V != 4) __syncthreads();
  out[b * 32 + t] = scan[t] + prefix;  // @4
}
template <int V> __global__ void tiles(const int* in, int* out, int n) {
  __shared__ int tile;
  const int t = threadIdx.x;
  for (;;) {
    if (t == 0) tile = atomicAdd(&counter, 1);  // @6 @7
    if (V != 6) __syncthreads();
    const int i = tile * 64 + t;  // @6 @7
    if (V != 7) __syncthreads();
    if (i >= n) break;
    out[i] = in[i] + 1;
  }
}
template <int V> __global__ void locked(const int* in, int* out, int n) {
  if (threadIdx.x == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {}
    if (V != 10) __threadfence();
    total = total + in[blockIdx.x];  // @9 @10
    if (V != 9) __threadfence();
    if (V == 11) lock = 0;  // @11
    else atomicExch(&lock, 0);
  }
}
__global__ void show(int* out) { out[0] = total; }
template <int V> __global__ void passed_on(const int* in, int* out, int n) {
  const int b = blockIdx.x, t = threadIdx.x;
  if (b == 0) {
    data[t] = in[t];  // @13
    __syncthreads();
    if (t == 0) ref(flags[0]).store(1, cuda::memory_order_release);
  } else if (b == 1) {
    if (t == 0) {
      while (!ref(flags[0]).load(V == 13 ? cuda::memory_order_relaxed : cuda::memory_order_acquire)) {}
      ref(flags[1]).store(1, V == 13 ? cuda::memory_order_relaxed : cuda::memory_order_release);
    }
  } else {
    if (t == 0) while (!ref(flags[1]).load(cuda::memory_order_acquire)) {}
    __syncthreads();
    out[t] = data[63 - t];  // @13
  }
}
template <int V> __global__ void last(const int* in, int* out, int n) {
  __shared__ bool mine;
  const int b = blockIdx.x, t = threadIdx.x;
  const int s = __reduce_add_sync(~0u, in[b * 32 + t]);
  if (t == 0) {
    sums[b] = s;  // @15 @16
    const int before = V == 15 ? done.fetch_add(1, cuda::memory_order_relaxed) : done.fetch_add(1, cuda::memory_order_acq_rel);
    mine = before == gridDim.x - 1;
  }
  if (V == 16) {
    mine = __shfl_sync(~0u, t == 0 ? int(mine) : 0, 0);
    if (mine && t == 1) {
      int all = 0;
      for (int i = 0; i < gridDim.x; ++i) all += *(volatile int*)&sums[0] * 0 + sums[i];  // @16
      out[0] = all;
    }
    return;
  }
  __syncthreads();
  if (mine && t == 1) {
    int all = 0;
    for (int i = 0; i < gridDim.x; ++i) all += sums[i];  // @15
    out[0] = all;
  }
}
template <int V> __global__ void tabled(const int* in, int* out, int n) {
  const int b = blockIdx.x, t = threadIdx.x;
  __shared__ int maker;
  if (t == 0) maker = atomicAdd(&counter, 1) == 0;
  __syncthreads();
  if (maker) {
    table[t] = in[t] * 2;  // @18
    __syncthreads();
    if (t == 0) ref(flags[0]).store(1, cuda::memory_order_release);
  } else {
    while (!ref(flags[0]).load(V == 18 ? cuda::memory_order_relaxed : cuda::memory_order_acquire)) {}
  }
  out[b * 64 + t] = table[63 - t];  // @18
}
template <int V> __global__ void mail(const int* in, int* out, int n) {
  if (threadIdx.x) return;
  for (int i = 0; i < 16; ++i) {
    if (blockIdx.x == 0) {
      if (V != 20) while (i - ref(tail).load(cuda::memory_order_acquire) >= 4) {}
      box[i % 4] = in[i];  // @20 @21
      ref(head).store(i + 1, cuda::memory_order_release);
    } else {
      while (ref(head).load(cuda::memory_order_acquire) <= i) {}
      if (V == 21) ref(tail).store(i + 1, cuda::memory_order_release);
      out[i] = box[i % 4];  // @20 @21
      if (V != 21) ref(tail).store(i + 1, cuda::memory_order_release);
    }
  }
}
__device__ void grid_barrier(int round) {
  __threadfence();
  if (atomicAdd(&arrived, 1) == gridDim.x - 1) {
    arrived = 0;
    __threadfence();
    atomicExch(&sense, round);
  } else {
    while (atomicAdd(&sense, 0) < round) {}
  }
  __threadfence();
}
template <int V> __global__ void relax(const int* in, int* out, int n) {
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  data[i] = in[i];  // @23 @24
  for (int round = 1; round <= 2; ++round) {
    if (V != 23) __syncthreads();
    if (t == 0) grid_barrier(round);
    if (V != 24) __syncthreads();
    const int x = data[255 - i];  // @23 @24
    if (round == 2) out[i] = x;
  }
}
template <int V> __global__ void write_flags(const int* in) { flags[threadIdx.x % 8] = 1, data[threadIdx.x] = in[threadIdx.x]; }
template <int V> __global__ void read_flags(int* out) { out[threadIdx.x] = flags[threadIdx.x % 8] ? data[threadIdx.x] : -1; }
template <int V> __global__ void halves(const int* in, int* out, int n) {
  const int b = blockIdx.x, t = threadIdx.x;
  if (b == 0) {
    if (V == 29 && t == 0) asm volatile("st.release.gpu.s32 [%0], 1;" ::"l"(&flags[0]) : "memory");
    data[t] = in[t];  // @26 @28 @29
    if (V == 26) {
      asm volatile("bar.sync %0, 32;" ::"r"(1 + t / 32) : "memory");
      if (t % 32 == 0) {
        __threadfence();
        atomicAdd(&flags[0], 1);
      }
    } else if (V != 29) {
      __syncthreads();
      if (t == 0) asm volatile("st.release.gpu.s32 [%0], 1;" ::"l"(&flags[0]) : "memory");
    }
  } else {
    if (t == 0) {
      int seen = 0;
      do asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(seen) : "l"(&flags[0]) : "memory");
      while (V != 28 && seen < 1);
    }
    __syncthreads();
    out[t] = data[63 - t];  // @26 @28 @29
  }
}
template <int V> int test() {
  auto same = [](auto& in, int i) { return in[i]; };
  auto reversed = [](auto& in, int i) { return in[in.size() - 1 - i]; };
  if constexpr (V <= 4) return check(look_back<V>, 4, 32, 128, 128, [](auto& in, int i) { int s = 0; for (int j = 0; j <= i; ++j) s += in[j]; return s; });
  else if constexpr (V <= 7) return check(tiles<V>, 3, 64, 640, 640, [](auto& in, int i) { return in[i] + 1; });
  else if constexpr (V <= 11) {
    const std::vector<int> host = values(4);
    int *in = upload(host), *out = zeros<int>(1);
    locked<V><<<4, 32>>>(in, out, 4);
    show<<<1, 1>>>(out);
    launched();
    return verdict(download(out, 1), {host[0] + host[1] + host[2] + host[3]});
  } else if constexpr (V <= 13) return check(passed_on<V>, 3, 64, 64, 64, reversed);
  else if constexpr (V <= 16) return check(last<V>, 4, 32, 128, 1, [](auto& in, int) { int s = 0; for (int x : in) s += x; return s; });
  else if constexpr (V <= 18) return check(tabled<V>, 2, 64, 64, 128, [](auto& in, int i) { return in[63 - i % 64] * 2; });
  else if constexpr (V <= 21) return check(mail<V>, 2, 32, 16, 16, same);
  else if constexpr (V <= 24) return check(relax<V>, 4, 64, 256, 256, reversed);
  else if constexpr (V == 25) {
    const std::vector<int> host = values(64);
    int *in = upload(host), *out = zeros<int>(64);
    write_flags<V><<<1, 64>>>(in);
    read_flags<V><<<1, 64>>>(out);
    launched();
    return verdict(download(out, 64), host);
  } else return check(halves<V>, 2, 64, 64, 64, reversed);
}
MAIN(30)

// 0 ok : cp.async of 4 bytes, gathered in reverse, wait_all, barrier
// 1 bug racecheck buf : wait_all, but no barrier before neighbours' elements are read
// 2 bug racecheck buf : barrier, then wait_all
// 3 bug memcheck|misaligned buf : 16 bytes to a destination at 8
// 4 bug memcheck|misaligned in : 8 bytes from a source at 4
// 5 bug racecheck buf : the thread's own copy is read without a wait
// 6 bug racecheck in : the source is changed while the copy is under way
// 7 bug racecheck buf : the destination is zeroed by another thread while the copy is under way
// 8 ok : cp.async.mbarrier.arrive.noinc, the barrier counts the threads
// 9 bug racecheck|mbarrier|deadlock buf|bar : cp.async.mbarrier.arrive without noinc, nobody else arrives
// 10 ok : cuda::pipeline of a block, two stages
// 11 bug deadlock state : pipeline without producer_commit before the wait
// 12 ok : cooperative_groups::memcpy_async, wait_prior 1 for the older of two
// 13 bug racecheck buf : wait_prior 1 for the newer of two
// 14 ok : cuda::memcpy_async with cuda::barrier, aligned_size_t
// 15 bug racecheck buf : barrier's token is taken before the copy is bound to it
// 16 bug memcheck in : the copy's source is 16 bytes longer than the buffer
// 17 ok : ignored source: src-size 0 reads nothing, fills with zeros
// 18 bug racecheck buf : wait_group 1 with two groups where the newest is read
// 19 ok : three groups, wait_group 2, 1, 0 in turn
// 20 ok : a group of no copies keeps the count of groups
// 21 bug racecheck buf : last round commits no group, so wait_group 1 leaves one under way
#include "case.h"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
template <int N> __device__ void copy(void* to, const void* from, int bytes = N) {
  if (N == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem(to)), "l"(from), "r"(bytes) : "memory");
  else if (N == 8) asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(smem(to)), "l"(from), "r"(bytes) : "memory");
  else asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(smem(to)), "l"(from), "r"(bytes) : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ void wait_group() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
__device__ void wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }
template <int V> __global__ void once(int* in, int* out, int n) {  // out[i] = in[127 - i]
  __shared__ alignas(16) int buf[136];
  __shared__ alignas(8) unsigned long long bar;
  const int t = threadIdx.x;
  if (V == 8 || V == 9) {
    if (t == 0) init(&bar, 128);
    __syncthreads();
  }
  if (V == 3) {
    if (t < 32) copy<16>(buf + 2 + t * 4, in + t * 4);  // @3
  } else if (V == 4) {
    if (t < 63) copy<8>(buf + t * 2, in + 1 + t * 2);  // @4
  } else if (V == 16) {
    if (t < 33) copy<16>(buf + t * 4, in + t * 4);  // @16
  } else if (V == 17) {
    if (t < 34) copy<16>(buf + t * 4, in + t * 4, t < 32 ? 16 : 0);
  } else {
    copy<4>(buf + t, in + t);  // @1 @2 @5 @6 @7 @9
  }
  if (V == 6) in[t] = 0;  // @6
  if (V == 7) buf[t ^ 1] = 0;  // @7
  if (V == 5) {
    out[127 - t] = buf[t];  // @5
    wait_all();
    return;
  }
  if (V == 8 || V == 9) {
    if (V == 8) asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(smem(&bar)) : "memory");
    else asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(smem(&bar)) : "memory");
    wait(&bar, 0);  // @9
  } else if (V == 2) {
    __syncthreads();
    wait_all();
  } else {
    wait_all();
    if (V != 1) __syncthreads();
  }
  out[t] = buf[127 - t] + (V == 17 ? buf[128 + t % 8] : 0);  // @1 @2 @9
}
template <int V> __global__ void pipelined(const int* in, int* out, int n) {  // sums of columns, reversed, 64 wide
  __shared__ alignas(16) int buf[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto p = cuda::make_pipeline(block, &state);
  const int t = threadIdx.x, rounds = n / 64;
  auto issue = [&](int r) {
    p.producer_acquire();
    if (r < rounds) cuda::memcpy_async(block, buf[r % 2], in + r * 64, cuda::aligned_size_t<16>(256), p);  // @11
    if (V != 11) p.producer_commit();
  };
  issue(0);
  int sum = 0;
  for (int r = 0; r < rounds; ++r) {
    issue(r + 1);
    p.consumer_wait();  // @11
    sum += buf[r % 2][63 - t];  // @11
    p.consumer_release();
  }
  out[t] = sum;
}
template <int V> __global__ void grouped(const int* in, int* out, int n) {
  __shared__ alignas(16) int buf[2][64];
  auto block = cg::this_thread_block();
  const int t = threadIdx.x;
  cg::memcpy_async(block, buf[0], in, 256);
  cg::memcpy_async(block, buf[1], in + 64, 256);  // @13
  cg::wait_prior<1>(block);
  const int x = buf[V == 13][63 - t];  // @13
  cg::wait(block);
  out[t] = x + buf[V != 13][63 - t];
}
template <int V> __global__ void barred(const int* in, int* out, int n) {
  using barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ alignas(16) int buf[64];
  __shared__ barrier bar;
  const int t = threadIdx.x;
  if (t == 0) init(&bar, blockDim.x);
  __syncthreads();
  barrier::arrival_token token;
  if (V == 15) token = bar.arrive();
  if (t < 16) cuda::memcpy_async(buf + t * 4, in + t * 4, cuda::aligned_size_t<16>(16), bar);  // @15
  if (V != 15) token = bar.arrive();
  bar.wait(std::move(token));
  out[t] = buf[63 - t];  // @15
}
template <int V> __global__ void groups(const int* in, int* out, int n) {
  __shared__ int buf[3][64];
  const int t = threadIdx.x;
  int sum = 0;
  if (V == 19) {
    for (int s = 0; s < 3; ++s) copy<4>(&buf[s][t], in + s * 64 + t), commit();
    wait_group<2>();
    __syncthreads();
    sum += buf[0][63 - t];
    wait_group<1>();
    __syncthreads();
    sum += buf[1][63 - t];
    wait_group<0>();
    __syncthreads();
    sum += buf[2][63 - t];
  } else {
    const int rounds = 3;
    copy<4>(&buf[0][t], in + t);
    commit();
    for (int r = 0; r < rounds; ++r) {
      if (r + 1 < rounds) copy<4>(&buf[r + 1][t], in + (r + 1) * 64 + t);  // @18 @21
      if (V != 21 || r + 1 < rounds) commit();
      if (V == 18) {
        __syncthreads();
        sum += buf[r][63 - t];  // @18
        wait_group<1>();
      } else {
        wait_group<1>();
        __syncthreads();
        sum += buf[r][63 - t];  // @21
      }
    }
    wait_all();
  }
  out[t] = sum;
}
template <int V> int test() {
  auto columns = [](auto& in, int i) { int s = 0; for (size_t r = 0; r < in.size(); r += 64) s += in[r + 63 - i]; return s; };
  if constexpr (V <= 9 || V == 16 || V == 17) return check(once<V>, 1, 128, 128, 128, [](auto& in, int i) { return in[127 - i]; });
  else if constexpr (V <= 11) return check(pipelined<V>, 1, 64, 64 * 5, 64, columns);
  else if constexpr (V <= 13) return check(grouped<V>, 1, 64, 128, 64, columns);
  else if constexpr (V <= 15) return check(barred<V>, 1, 64, 64, 64, columns);
  else return check(groups<V>, 1, 64, 192, 64, columns);
}
MAIN(22)

// 0 ok : k-means step: sums by shared atomics, then centroids
// 1 bug racecheck sums|counts : centroids are made without a barrier behind the atomics
// 2 ok : string search, tile with a halo, guarded at the end
// 3 bug initcheck text : the halo is not loaded
// 4 bug memcheck in : the halo is read beyond the end
// 5 ok : Hillis and Steele's scan in two buffers
// 6 bug racecheck a : the same in one buffer, barrier behind the store alone
// 7 ok : sparse rows by columns, -1 marks padding
// 8 bug memcheck x : the padding's -1 is used as an index
// 9 ok : Bloom filter by atomicOr
// 10 bug racecheck bits : Bloom filter by |=
// 11 bug synccheck - : a switch whose default leaves out the barrier
// 12 ok : structs of 12 bytes
// 13 bug memcheck|misaligned in : they are read as float4
// 14 bug config|memcheck - : cudaMemcpy2D of one row too many
// 15 ok : cuda::barrier, arrive early, wait late
// 16 bug racecheck s : arrive, then the element is changed, before the wait
// 17 ok : a block's lock by atomicCAS, fences around
// 18 bug racecheck s : the lock is given back before the update
// 19 bug racecheck|deadlock|endless go : spinning on a plain shared word
// 20 ok : rounds until __syncthreads_or says that nobody changes anything
// 21 bug racecheck s : bubble rounds in which neighbours overlap
// 22 ok : two kernels in two streams write two halves of one buffer
// 23 bug memcheck out : a tail of n % 4 elements handled from n instead of n - n % 4
// 24 bug initcheck w : weights are uploaded after the launch
// 25 ok : warp-aggregated push to a list, read by the next launch
// 26 bug racecheck count : the list's length is read plainly while others push
// 27 bug memcheck list : the list has room for half
// 28 ok : in-place reversal by pairs
// 29 bug racecheck io : in-place reversal by all
#include "case.h"
#include <cuda/barrier>
__device__ int count, list[128];
struct Point { float x, y, z; };
template <int V> __global__ void k(int* in, int* out, int n) {
  __shared__ int s[256], sums[4], counts[4], bits[8], go;
  __shared__ char text[160];
  __shared__ int a[2][128];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  const int t = threadIdx.x;
  if (V <= 1) {
    if (t < 4) sums[t] = counts[t] = 0;
    __syncthreads();
    atomicAdd(&sums[in[t] % 4], in[t]);  // @1
    atomicAdd(&counts[in[t] % 4], 1);  // @1
    if (V == 0) __syncthreads();
    if (t < 4) out[t] = counts[t] ? sums[t] / counts[t] : 0;  // @1
  } else if (V <= 4) {
    text[t] = char(in[t] % 3);  // @3
    if (V != 3 && t < 3) text[128 + t] = V == 4 || 128 + t < n ? char(in[128 + t] % 3) : 3;  // @4
    __syncthreads();
    int hit = 1;
    for (int j = 0; j < 3; ++j) hit &= text[t + j] == j;  // @3
    out[t] = hit;
  } else if (V <= 6) {
    int w = 0;
    a[0][t] = in[t];
    __syncthreads();
    for (int d = 1; d < 128; d *= 2) {
      const int r = V == 5 ? 1 - w : w;
      a[r][t] = a[w][t] + (t >= d ? a[w][t - d] : 0);  // @6
      w = r;
      __syncthreads();
    }
    out[t] = a[w][t];
  } else if (V <= 8) {
    int sum = 0;
    for (int c = 0; c < 3; ++c) {
      const int j = c < t % 4 ? in[(t + c) % n] % n : -1;
      if (V == 8 || j >= 0) sum += in[j];  // @8
    }
    out[t] = sum;
  } else if (V <= 10) {
    if (t < 8) bits[t] = 0;
    __syncthreads();
    const int h = in[t] % 256;
    if (V == 9) atomicOr(&bits[h / 32], 1 << h % 32);
    else bits[h / 32] |= 1 << h % 32;  // @10
    __syncthreads();
    out[t] = bits[t / 32] >> t % 32 & 1;
  } else if (V == 11) {
    switch (t / 32) {
      case 0: s[t] = 1; __syncthreads(); break;  // @11
      case 1: s[t] = 2; __syncthreads(); break;  // @11
      default: s[t] = 3;
    }
    out[t] = s[127 - t];
    __syncthreads();  // @11
  } else if (V <= 13) {
    if (V == 12) {
      if (t < n / 3) out[t] = int(((const Point*)in)[t].y);
    } else {
      if (t < n / 4) out[t] = int(((const float4*)(in + 3))[t].y);  // @13
    }
  } else if (V <= 16) {
    if (t == 0) init(&bar, blockDim.x);
    __syncthreads();
    s[t] = in[t];
    auto token = bar.arrive();
    if (V == 16) s[t] = -in[t];  // @16
    const int mine = in[t] * 2;
    bar.wait(std::move(token));
    out[t] = mine + s[127 - t];  // @16
  } else if (V <= 18) {
    if (t == 0) s[0] = s[1] = 0;
    __syncthreads();
    if (t % 32 == 0) {
      while (atomicCAS(&s[1], 0, 1)) {}
      __threadfence_block();
      if (V == 18) atomicExch(&s[1], 0);
      s[0] += in[t];  // @18
      __threadfence_block();
      if (V == 17) atomicExch(&s[1], 0);
    }
    __syncthreads();
    out[t] = s[0];
  } else if (V == 19) {
    if (t == 0) go = 0;
    __syncthreads();
    if (t == 127) {
      s[0] = in[0];
      __threadfence_block();
      go = 1;  // @19
    } else if (t < 32) {
      while (go == 0) {}  // @19
      out[t] = s[0];
    }
  } else if (V <= 21) {
    s[t] = in[t];
    __syncthreads();
    for (int changed = 1, r = 0; changed; ++r) {
      changed = 0;
      for (int half = 0; half < 2; ++half) {
        if (t + 1 < 128 && (V == 21 || t % 2 == half)) {
          const int x = s[t], y = s[t + 1];  // @21
          if (x > y) s[t] = y, s[t + 1] = x, changed = 1;  // @21
        }
        if (V == 20) __syncthreads();
      }
      changed = __syncthreads_or(changed);
    }
    out[t] = s[t];
  } else if (V == 23) {
    if (t < n / 4) ((int4*)out)[t] = ((const int4*)in)[t];
    if (t < n % 4) out[n + t] = in[n - n % 4 + t];  // @23
  } else if (V >= 25 && V <= 27) {
    const unsigned who = __ballot_sync(~0u, in[t] % 2);
    int base = 0;
    if (t % 32 == 0) base = atomicAdd(&count, __popc(who));  // @26
    base = __shfl_sync(~0u, base, 0);
    if (in[t] % 2) (V == 27 ? out : list)[base + __popc(who & (1u << t % 32) - 1)] = in[t];  // @27
    if (V == 26) out[t] = count;  // @26
  } else if (V == 28 || V == 29) {
    if (V == 29 || t < n / 2) {
      const int x = in[t], y = in[n - 1 - t];  // @29
      in[t] = y, in[n - 1 - t] = x;  // @29
    }
  }
}
__global__ void half_of(const int* in, int* out, int k) { out[k * 64 + threadIdx.x] = in[k * 64 + threadIdx.x]; }
__global__ void weighted(const int* in, const int* w, int* out) { out[threadIdx.x] = in[threadIdx.x] * w[threadIdx.x]; }  // @24
__global__ void listed(int* out) { if (threadIdx.x < count) atomicAdd(out, list[threadIdx.x]); }
template <int V> int test() {
  const std::vector<int> host = values(128);
  if constexpr (V == 14) {
    int* p = fresh<int>(8 * 16);
    CUDA(cudaMemcpy2D(p, 64, host.data(), 64, 64, 9, cudaMemcpyHostToDevice));  // @14
    return 0;
  } else if constexpr (V == 22) {
    cudaStream_t a, b;
    CUDA(cudaStreamCreate(&a));
    CUDA(cudaStreamCreate(&b));
    int *in = upload(host), *out = zeros<int>(128);
    half_of<<<1, 64, 0, a>>>(in, out, 0);
    half_of<<<1, 64, 0, b>>>(in, out, 1);
    launched();
    return verdict(download(out, 128), host);
  } else if constexpr (V == 24) {
    int *in = upload(host), *w = fresh<int>(128), *out = zeros<int>(128);
    weighted<<<1, 128>>>(in, w, out);
    CUDA(cudaMemcpy(w, host.data(), 512, cudaMemcpyHostToDevice));
    launched();
    return 0;
  } else if constexpr (V == 25) {
    int *in = upload(host), *out = zeros<int>(1), want = 0;
    k<V><<<1, 128>>>(in, out, 128);
    listed<<<1, 128>>>(out);
    launched();
    for (int x : host) want += x % 2 ? x : 0;
    return verdict(download(out, 1), {want});
  } else if constexpr (V == 28 || V == 29) {
    int* io = upload(host);
    k<V><<<1, 128>>>(io, io, 128);
    launched();
    return verdict(download(io, 128), std::vector<int>(host.rbegin(), host.rend()));
  } else if constexpr (V == 12 || V == 13) {
    std::vector<float> f(129);
    for (int i = 0; i < 129; ++i) f[i] = i;
    float* in = upload(f);
    int* out = zeros<int>(43);
    k<V><<<1, 128>>>((int*)in, out, V == 13 ? 64 : 129);
    launched();
    std::vector<int> want(43);
    for (int i = 0; i < 43; ++i) want[i] = 3 * i + 1;
    return verdict(download(out, 43), want);
  } else {
    constexpr int n = V == 23 ? 126 : 128, m = V == 23 ? 126 : V == 27 ? 20 : V <= 1 ? 4 : 128;
    return check(k<V>, 1, 128, n, m, [](auto& in, int i) {
      if (V <= 1) { int s = 0, c = 0; for (int x : in) if (x % 4 == i) s += x, ++c; return c ? s / c : 0; }
      if (V == 2) { auto at = [&](int j) { return j < 128 ? in[j] % 3 : 3; }; return int(at(i) == 0 && at(i + 1) == 1 && at(i + 2) == 2); }
      if (V == 5) { int s = 0; for (int j = 0; j <= i; ++j) s += in[j]; return s; }
      if (V == 7) { int s = 0; for (int c = 0; c < 3 && c < i % 4; ++c) s += in[in[(i + c) % 128] % 128]; return s; }
      if (V == 9) { for (int x : in) if (x % 256 == i) return 1; return 0; }
      if (V == 15) return 2 * in[i] + in[127 - i];
      if (V == 17) return in[0] + in[32] + in[64] + in[96];
      if (V == 20) { auto v = in; std::sort(v.begin(), v.end()); return v[i]; }
      return in[i % in.size()];
    });
  }
}
MAIN(30)

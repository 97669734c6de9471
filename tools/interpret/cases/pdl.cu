// 0 ok : the second kernel waits by cudaGridDependencySynchronize before it reads
// 1 bug racecheck mid : it reads before it waits
// 2 bug racecheck in : it writes what the first kernel reads, before it waits
// 3 ok : it reads weights before it waits
// 4 bug racecheck mid : thread 0 alone waits
// 5 ok : thread 0 alone waits, then __syncthreads
// 6 bug racecheck mid : the kernel between does not wait, so the third's wait says nothing of the first
// 7 ok : launched without the attribute, no wait
// 8 bug racecheck mid : atomicAdd to the first kernel's result before the wait
// 9 ok : the first kernel triggers early and writes after it; the second waits
// 10 bug racecheck mid : the first triggers early, the second does not wait
// 11 bug racecheck mid : the wait stands in a branch that some blocks do not take
// 12 ok : the same where the other blocks touch nothing of it
// 13 bug racecheck mid : read by cp.async.bulk, issued before the wait
// 14 ok : chain of three, each waits
// 15 bug racecheck mid : prefetched into a register before the wait, used after it
#include "case.h"
template <int V> __global__ void first(const int* in, int* mid) {
  if (V == 9 || V == 10) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  const int i = blockIdx.x * 64 + threadIdx.x;
  mid[i] = in[i] + 1;  // @2 @1 @4 @6 @8 @10 @11 @13 @15
  if (V != 9 && V != 10) cudaTriggerProgrammaticLaunchCompletion();
}
template <int V> __global__ void between(const int* weights, int* other) {
  if (V == 14) cudaGridDependencySynchronize();
  other[blockIdx.x * 64 + threadIdx.x] = weights[threadIdx.x];
}
template <int V> __global__ void second(int* in, int* mid, const int* weights, int* out) {
  __shared__ alignas(128) int buf[64];
  __shared__ alignas(8) unsigned long long bar;
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  const int w = weights[t];
  int x = 0;
  if (V == 1) x = mid[i];  // @1
  if (V == 15) x = mid[i];  // @15
  if (V == 2) in[i] = 0;  // @2
  if (V == 8) x = atomicAdd(mid + i, 0);  // @8
  if (V == 13) {
    if (t == 0) {
      init(&bar, 1);
      fence_init();
      expect(&bar, 256);
      bulk_load(buf, mid + blockIdx.x * 64, 256, &bar);  // @13
    }
    __syncthreads();
  }
  if (V == 4 || V == 5) {
    if (t == 0) asm volatile("griddepcontrol.wait;" ::: "memory");
    if (V == 5) __syncthreads();
  } else if (V == 11 || V == 12) {
    if (blockIdx.x == 0) cudaGridDependencySynchronize();
    if (V == 12 && blockIdx.x != 0) {
      out[i] = w;
      return;
    }
  } else if (V != 7 && V != 10) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
  }
  if (V == 13) {
    wait(&bar, 0);
    x = buf[t];
  } else if (V != 1 && V != 8 && V != 15) {
    x = mid[i];  // @4 @6 @10 @11
  }
  out[i] = x + w;
}
template <class K, class... A> void dependent(bool on, K kernel, A... arguments) {
  cudaLaunchConfig_t c{};
  c.gridDim = 2;
  c.blockDim = 64;
  cudaLaunchAttribute a;
  a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  a.val.programmaticStreamSerializationAllowed = 1;
  c.attrs = &a;
  c.numAttrs = on;
  CUDA(cudaLaunchKernelEx(&c, kernel, arguments...));
}
template <int V> int test() {
  const std::vector<int> host = values(128), w = values(64);
  int *in = upload(host), *mid = fresh<int>(128), *other = fresh<int>(128), *weights = upload(w), *out = zeros<int>(128);
  CUDA(cudaDeviceSynchronize());
  first<V><<<2, 64>>>((const int*)in, mid);
  if (V == 6 || V == 14) dependent(true, between<V>, (const int*)weights, other);
  dependent(V != 7, second<V>, in, mid, (const int*)weights, out);
  launched();
  std::vector<int> want(128);
  for (int i = 0; i < 128; ++i) want[i] = (V == 12 && i >= 64 ? 0 : host[i] + 1) + w[i % 64];
  return verdict(download(out, 128), want);
}
MAIN(16)

// 0 ok : events order two streams
// 1 ok : managed memory, written by both sides in turn
// 2 ok : mapped host memory read by the kernel
// 3 ok : cudaMemcpyFromSymbol of a struct's part, offset
// 4 bug config|error - : cudaMemcpyToSymbol beyond the symbol's end by its offset
// 5 ok : 160 KB of dynamic shared memory with its attribute
// 6 bug config|error - : 160 KB without the attribute
// 7 bug config|error - : copy with source and destination of the wrong direction
// 8 bug memcheck|error p : host copy longer than the device's buffer
// 9 bug error - : cudaFree twice
// 10 bug error - : cudaFree of a pointer inside
// 11 bug config|error - : a block of 2048 threads
// 12 bug config|error - : a grid of zero blocks
// 13 ok : occupancy decides the grid, grid-stride loop
// 14 ok : cooperative launch, grid.sync, sums
// 15 bug config|error - : cooperative launch of more blocks than fit
// 16 ok : cudaMemset2D of a part, then read whole
// 17 bug initcheck p : cudaMemset of half of the buffer, the kernel reads all
// 18 bug initcheck p : cudaMalloc, then atomicAdd without a memset
// 19 ok : async allocation, use, free in one stream
// 20 bug memcheck p : used after cudaFreeAsync
// 21 ok : callback on the host behind the copy
// 22 ok : graph by capture, launched twice
// 23 bug config|error - : pitch smaller than the width in cudaMemcpy2D
// 24 ok : device-side assert that holds, printf of nothing
// 25 bug assert - : device-side assert that fails
// 26 ok : recursion and a function pointer table in constant memory
// 27 bug memcheck|error p : cudaMemcpyPeer-like copy inside one buffer, beyond the end
// 28 ok : kernel with a struct of 3 arrays by value, 2 kB
// 29 bug memcheck - : a struct with a host pointer in it is passed by value
// 30 ok : __launch_bounds__ kept
// 31 bug memcheck q : kernel keeps a pointer to its shared memory in a device variable for the next launch
#include "case.h"
#include <cassert>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
struct Three { int a[4], b[4]; };
__device__ Three three;
__device__ int* kept;
__constant__ int steps[4];
struct View { const int* p; int scale; };
struct Large { int a[200], b[200], c[100]; };
__global__ void add(const int* p, int* out, int k) { out[threadIdx.x + blockIdx.x * blockDim.x] = p[threadIdx.x + blockIdx.x * blockDim.x] + k; }  // @17 @20 @29
__global__ void fill_three() { three.a[threadIdx.x] = threadIdx.x, three.b[threadIdx.x] = 10 + threadIdx.x; }
__global__ void large_shared(const int* in, int* out) {
  extern __shared__ int s[];
  for (int i = threadIdx.x; i < 40000; i += blockDim.x) s[i] = i;
  __syncthreads();
  out[threadIdx.x] = s[39999 - threadIdx.x] + in[threadIdx.x];
}
__global__ void counted(int* p) { atomicAdd(p + threadIdx.x % 4, 1); }  // @18
__global__ void strided(const int* in, int* out, int n) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[i] * 2; }
__global__ void summed(const int* in, int* partial, int* out) {
  const int s = __reduce_add_sync(~0u, in[blockIdx.x * 32 + threadIdx.x]);
  if (threadIdx.x == 0) partial[blockIdx.x] = s;
  cg::this_grid().sync();
  if (blockIdx.x == 0 && threadIdx.x == 0) for (int b = 0; b < gridDim.x; ++b) out[0] += partial[b];
}
template <int V> __global__ void asserted(const int* in, int* out) { assert(in[threadIdx.x] >= (V == 25 ? 500 : 0)); out[threadIdx.x] = in[threadIdx.x]; }  // @25
__device__ int twice(int x) { return 2 * x; }
__device__ int less(int x) { return x < 2 ? x : less(x - 2) + 1; }
__constant__ int which[2] = {1, 0};
__global__ void called(const int* in, int* out) {
  int (*f[2])(int) = {twice, less};
  out[threadIdx.x] = f[which[threadIdx.x % 2]](in[threadIdx.x] % 100);
}
__global__ void by_value(Large l, int* out) { out[threadIdx.x] = l.a[threadIdx.x] + l.b[199 - threadIdx.x] + l.c[threadIdx.x % 100]; }
__global__ void viewed(View v, int* out) { out[threadIdx.x] = v.p[threadIdx.x] * v.scale; }  // @29
__global__ void __launch_bounds__(128, 2) bounded(const int* in, int* out) { out[threadIdx.x] = in[127 - threadIdx.x]; }
__global__ void keep() { __shared__ int s[32]; s[threadIdx.x] = 1; kept = s; }
__global__ void use(int* out) { out[threadIdx.x] = kept[threadIdx.x]; }  // @31
template <int V> int test() {
  const std::vector<int> host = values(128);
  std::vector<int> want = host, got(128);
  int *in = upload(host), *out = zeros<int>(128);
  if constexpr (V == 0) {
    cudaStream_t a, b;
    cudaEvent_t e;
    CUDA(cudaStreamCreate(&a));
    CUDA(cudaStreamCreate(&b));
    CUDA(cudaEventCreate(&e));
    int* mid = fresh<int>(128);
    add<<<2, 64, 0, a>>>(in, mid, 1);
    CUDA(cudaEventRecord(e, a));
    CUDA(cudaStreamWaitEvent(b, e, 0));
    add<<<2, 64, 0, b>>>(mid, out, 1);
    launched();
    for (int& x : want) x += 2;
    return verdict(download(out, 128), want);
  } else if constexpr (V == 1) {
    int* m;
    CUDA(cudaMallocManaged(&m, 512));
    for (int i = 0; i < 128; ++i) m[i] = host[i];
    add<<<1, 128>>>(m, m, 3);
    launched();
    m[5] += 1;
    add<<<1, 128>>>(m, out, 0);
    launched();
    for (int i = 0; i < 128; ++i) want[i] = host[i] + 3 + (i == 5);
    return verdict(download(out, 128), want);
  } else if constexpr (V == 2) {
    int *h, *d;
    CUDA(cudaHostAlloc(&h, 512, cudaHostAllocMapped));
    for (int i = 0; i < 128; ++i) h[i] = host[i];
    CUDA(cudaHostGetDevicePointer(&d, h, 0));
    add<<<1, 128>>>(d, out, 0);
    launched();
    return verdict(download(out, 128), host);
  } else if constexpr (V == 3) {
    fill_three<<<1, 4>>>();
    std::vector<int> b(4);
    CUDA(cudaMemcpyFromSymbol(b.data(), three, 16, 16));
    return verdict(b, {10, 11, 12, 13});
  } else if constexpr (V == 4) {
    CUDA(cudaMemcpyToSymbol(three, host.data(), 24, 16));  // @4
    return 0;
  } else if constexpr (V == 5 || V == 6) {
    if (V == 5) CUDA(cudaFuncSetAttribute(large_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 160000));
    large_shared<<<1, 128, 160000>>>(in, out);  // @6
    launched();
    for (int i = 0; i < 128; ++i) want[i] = 39999 - i + host[i];
    return verdict(download(out, 128), want);
  } else if constexpr (V == 7) {
    CUDA(cudaMemcpy(got.data(), in, 512, cudaMemcpyHostToDevice));  // @7
    return verdict(got, host);
  } else if constexpr (V == 8) {
    int* p = fresh<int>(100);
    CUDA(cudaMemcpy(p, host.data(), 512, cudaMemcpyHostToDevice));  // @8
    return 0;
  } else if constexpr (V == 9 || V == 10) {
    int* p = fresh<int>(100);
    CUDA(cudaFree(V == 10 ? p + 4 : p));  // @10
    CUDA(cudaFree(p));  // @9
    return 0;
  } else if constexpr (V == 11 || V == 12) {
    add<<<V == 12 ? 0 : 1, V == 11 ? 2048 : 128>>>(in, out, 0);  // @11 @12
    launched();
    return 0;
  } else if constexpr (V == 13) {
    int grid, block;
    CUDA(cudaOccupancyMaxPotentialBlockSize(&grid, &block, strided, 0, 0));
    strided<<<std::min(grid, 3), std::min(block, 32)>>>(in, out, 128);
    launched();
    for (int& x : want) x *= 2;
    return verdict(download(out, 128), want);
  } else if constexpr (V == 14 || V == 15) {
    const int blocks = V == 15 ? 100000 : 4;
    int *more = zeros<int>(blocks * 32), *partial = fresh<int>(blocks), *o = zeros<int>(1);
    void* arguments[] = {&more, &partial, &o};
    CUDA(cudaLaunchCooperativeKernel((void*)summed, blocks, 32, arguments, 0, 0));  // @15
    launched();
    return verdict(download(o, 1), {0});
  } else if constexpr (V == 16 || V == 17 || V == 18) {
    int* p = fresh<int>(128);
    if (V == 16) {
      CUDA(cudaMemset2D(p, 64, 0, 32, 8));
      CUDA(cudaMemset2D(p + 8, 64, 0, 32, 8));
    }
    if (V == 17) CUDA(cudaMemset(p, 0, 256));
    if (V == 18) counted<<<1, 32>>>(p);
    else add<<<1, 128>>>(p, out, 0);
    launched();
    return verdict(download(out, 128), std::vector<int>(128));
  } else if constexpr (V == 19 || V == 20) {
    cudaStream_t s;
    CUDA(cudaStreamCreate(&s));
    int* p;
    CUDA(cudaMallocAsync(&p, 512, s));
    CUDA(cudaMemcpyAsync(p, host.data(), 512, cudaMemcpyHostToDevice, s));
    if (V == 20) CUDA(cudaFreeAsync(p, s));
    add<<<1, 128, 0, s>>>(p, out, 0);
    if (V == 19) CUDA(cudaFreeAsync(p, s));
    launched();
    return verdict(download(out, 128), host);
  } else if constexpr (V == 21) {
    static int seen = 0;
    add<<<1, 128>>>(in, out, 0);
    CUDA(cudaMemcpyAsync(got.data(), out, 512, cudaMemcpyDeviceToHost, 0));
    CUDA(cudaLaunchHostFunc(0, [](void* p) { seen = *(int*)p; }, &got[3]));
    launched();
    return verdict(std::vector<int>{seen}, {host[3]});
  } else if constexpr (V == 22) {
    cudaStream_t s;
    CUDA(cudaStreamCreate(&s));
    cudaGraph_t g;
    cudaGraphExec_t e;
    CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    add<<<1, 128, 0, s>>>(in, out, 1);
    CUDA(cudaMemcpyAsync(in, out, 512, cudaMemcpyDeviceToDevice, s));
    CUDA(cudaStreamEndCapture(s, &g));
    CUDA(cudaGraphInstantiate(&e, g, 0));
    CUDA(cudaGraphLaunch(e, s));
    CUDA(cudaGraphLaunch(e, s));
    launched();
    for (int& x : want) x += 2;
    return verdict(download(out, 128), want);
  } else if constexpr (V == 23) {
    CUDA(cudaMemcpy2D(out, 16, in, 64, 64, 2, cudaMemcpyDeviceToDevice));  // @23
    return 0;
  } else if constexpr (V == 24 || V == 25) {
    asserted<V><<<1, 128>>>(in, out);
    launched();
    return verdict(download(out, 128), host);
  } else if constexpr (V == 26) {
    called<<<1, 128>>>(in, out);
    launched();
    for (int i = 0; i < 128; ++i) want[i] = i % 2 ? host[i] % 100 * 2 : host[i] % 100 / 2 + host[i] % 100 % 2;
    return verdict(download(out, 128), want);
  } else if constexpr (V == 27) {
    CUDA(cudaMemcpy(in + 64, in, 512, cudaMemcpyDeviceToDevice));  // @27
    return 0;
  } else if constexpr (V == 28) {
    Large l;
    for (int i = 0; i < 200; ++i) l.a[i] = i, l.b[i] = 2 * i, l.c[i % 100] = 7;
    by_value<<<1, 128>>>(l, out);
    launched();
    for (int i = 0; i < 128; ++i) want[i] = i + 2 * (199 - i) + 7;
    return verdict(download(out, 128), want);
  } else if constexpr (V == 29) {
    viewed<<<1, 128>>>(View{host.data(), 2}, out);
    launched();
    return 0;
  } else if constexpr (V == 30) {
    bounded<<<1, 128>>>(in, out);
    launched();
    std::reverse(want.begin(), want.end());
    return verdict(download(out, 128), want);
  } else {
    keep<<<1, 32>>>();
    use<<<1, 32>>>(out);
    launched();
    return 0;
  }
}
MAIN(32)

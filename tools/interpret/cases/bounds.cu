// 0 ok : pitched rows, padding never touched
// 1 bug memcheck p : pitch taken for elements instead of bytes
// 2 ok : a struct's flexible tail, sized by hand
// 3 bug memcheck out : off by one: i <= n
// 4 bug memcheck in : the neighbour of the last element
// 5 bug memcheck in : int4 load of the last three elements
// 6 bug memcheck|misaligned in : int2 load at an odd element
// 7 bug memcheck s : tile[33][32] read as [32][33]
// 8 bug memcheck s : dynamic shared memory for half of the block
// 9 bug memcheck table : constant table of 16, index 16
// 10 bug memcheck local : local array of 4 with a data-dependent index
// 11 ok : local array, index masked
// 12 bug memcheck in : unsigned difference below zero
// 13 bug memcheck p : kernel's malloc of 10 ints, element 10
// 14 bug memcheck p : freed by another thread, used behind the barrier
// 15 bug memcheck - : null pointer from a failed malloc
// 16 bug memcheck host : the host's pointer is given to the kernel
// 17 bug memcheck in : freed on the host before the launch
// 18 ok : pointers one behind the end are made, never used
// 19 bug memcheck in : binary search whose high end is n, not n - 1
// 20 ok : binary search in [0, n)
// 21 bug memcheck s : partner i + d at the end of a scan without its if
// 22 bug memcheck in : row and column swapped in a ragged matrix
// 23 ok : ragged matrix, 2-D grid
// 24 bug memcheck out : grid of 3 blocks for 150 elements without a guard
// 25 bug memcheck bins : values up to 999 with 512 bins
// 26 bug memcheck in : a gathered index of -1 marks nothing
// 27 ok : the same with a guard
// 28 bug memcheck in : 32-bit index times a row length overflows
// 29 bug memcheck|misaligned in : char pointer cast to int* at an odd byte
// 30 bug memcheck s : two arrays in dynamic shared memory, the second begins in elements, not bytes
// 31 ok : two arrays in dynamic shared memory of different types, aligned by hand
// 32 bug memcheck s : negative index of a halo in shared memory
#include "case.h"
__constant__ int table[16];
struct Packet { int count; int data[1]; };
template <int V> __global__ void pitched(char* p, size_t pitch, int rows, int columns, int* out) {
  const int c = threadIdx.x, r = blockIdx.x;
  if (c < columns && r < rows) out[r * columns + c] = V == 0 ? ((int*)(p + r * pitch))[c] : ((int*)p)[r * pitch + c];  // @1
}
template <int V> __global__ void packet(Packet* p, int* out) {
  if (threadIdx.x < p->count) out[threadIdx.x] = p->data[threadIdx.x];
}
__device__ int* shared_pointer;
template <int V> __global__ void k(const int* in, int* out, int n) {
  extern __shared__ int dynamic[];
  __shared__ int s[33 * 32], bins[512];
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (V == 3) { if (i <= n) out[i] = 1; }  // @3
  if (V == 4) out[i] = in[i] + in[i + 1];  // @4
  if (V == 5) { if (i * 4 < n) { const int4 x = ((const int4*)in)[i]; out[i] = x.x; } }  // @5
  if (V == 6) { if (i < n / 2 - 1) out[i] = ((const int2*)(in + 1))[i].x; }  // @6
  if (V == 7) {
    for (int r = 0; r < 33; ++r) if (t < 32) s[r * 32 + t] = r;
    __syncthreads();
    if (t < 32) out[t] = s[t * 33 + 32] + s[(t + 1) * 33 + 1];  // @7
  }
  if (V == 8) { dynamic[t] = in[i]; __syncthreads(); out[i] = dynamic[blockDim.x - 1 - t]; }  // @8
  if (V == 9) out[i] = table[in[i] % 17];  // @9
  if (V == 10 || V == 11) {
    int local[4] = {1, 2, 3, 4};
    for (int j = 0; j < 4; ++j) local[j] += in[(i + j) % n];
    out[i] = local[V == 10 ? in[i] % 5 : in[i] & 3];  // @10
  }
  if (V == 12) { const unsigned u = i; out[i] = in[u - 1]; }  // @12
  if (V == 13 || V == 15) {
    int* p = (int*)malloc(V == 13 ? 40 : size_t(1) << 40);
    p[V == 13 ? 10 : 0] = t;  // @13 @15
    out[i] = *p;
    free(p);
  }
  if (V == 14) {
    int* p = nullptr;
    if (t == 0) { shared_pointer = (int*)malloc(512); for (int j = 0; j < 128; ++j) shared_pointer[j] = j; }
    __syncthreads();
    p = shared_pointer;
    if (t == 1) free(p);  // @14
    __syncthreads();
    out[i] = p[t];  // @14
  }
  if (V == 16 || V == 17) out[i] = in[i];  // @16 @17
  if (V == 18) {
    int sum = 0;
    for (const int *p = in + t, *end = in + n; p < end; p += blockDim.x) sum += *p;
    out[t] = sum;
  }
  if (V == 19 || V == 20) {
    int lo = 0, hi = n;
    while (lo < hi) {
      const int mid = V == 19 ? (lo + hi + 1) / 2 : (lo + hi) / 2;
      if (in[mid] < 100000) lo = V == 19 ? mid : mid + 1;  // @19
      else hi = V == 19 ? mid - 1 : mid;
    }
    out[i] = lo;
  }
  if (V == 21) {
    s[t] = in[t];
    __syncthreads();
    int x = 0;
    for (int d = 1; d < 2048; d *= 2) x += s[t + d];  // @21
    out[i] = x;
  }
  if (V == 24) out[i] = in[i % n];  // @24
  if (V == 25) { atomicAdd(&bins[in[i]], 1); out[i] = 0; }  // @25
  if (V == 26 || V == 27) { const int j = in[i] % 7 ? in[i] % n : -1; out[i] = V == 26 ? in[j] : j < 0 ? 0 : in[j]; }  // @26
  if (V == 28) { const int row = 70000 + t, length = 40000; out[i] = in[row * length]; }  // @28
  if (V == 29) out[i] = i ? 0 : *(const int*)((const char*)in + 3);  // @29
  if (V == 30 || V == 31) {  // 64 bytes, then 64 ints
    char* bytes = (char*)dynamic;
    int* words = V == 30 ? dynamic + 64 : (int*)(bytes + 64);
    bytes[t] = char(in[t] % 100);
    words[t] = in[t];  // @30
    __syncthreads();
    out[i] = bytes[63 - t] + words[63 - t];
  }
  if (V == 32) { s[t] = in[t]; __syncthreads(); out[i] = s[t - 1] + s[t]; }  // @32
}
template <int V> __global__ void matrix(const int* in, int* out, int rows, int columns) {
  const int r = blockIdx.y * 8 + threadIdx.y, c = blockIdx.x * 8 + threadIdx.x;
  if (r < rows && c < columns) out[r * columns + c] = V == 23 ? in[r * columns + c] : in[c * columns + r];  // @22
}
template <int V> int test() {
  const std::vector<int> host = values(128);
  if constexpr (V <= 1) {
    char* p;
    size_t pitch;
    CUDA(cudaMallocPitch(&p, &pitch, 20 * 4, 6));
    const std::vector<int> m = values(120);
    CUDA(cudaMemcpy2D(p, pitch, m.data(), 80, 80, 6, cudaMemcpyHostToDevice));
    int* out = zeros<int>(120);
    pitched<V><<<6, 32>>>(p, pitch, 6, 20, out);
    launched();
    return verdict(download(out, 120), m);
  } else if constexpr (V == 2) {
    std::vector<int> m = values(65);
    m[0] = 64;
    int *p = upload(m), *out = zeros<int>(64);
    packet<V><<<1, 128>>>((Packet*)p, out);
    launched();
    return verdict(download(out, 64), std::vector<int>(m.begin() + 1, m.end()));
  } else if constexpr (V == 22 || V == 23) {
    const std::vector<int> m = values(20 * 12);
    int *in = upload(m), *out = zeros<int>(240);
    matrix<V><<<dim3(3, 2), dim3(8, 8)>>>(in, out, 12, 20);
    launched();
    return verdict(download(out, 240), m);
  } else if constexpr (V == 16 || V == 17) {
    int *in = upload(host), *out = zeros<int>(128);
    std::vector<int> local = host;
    if (V == 17) CUDA(cudaFree(in));
    k<V><<<1, 128>>>(V == 16 ? local.data() : in, out, 128);
    launched();
    return 0;
  } else if constexpr (V == 5) {
    const std::vector<int> m = values(127);
    int *in = upload(m), *out = zeros<int>(128);
    k<V><<<1, 128>>>(in, out, 127);
    launched();
    return 0;
  } else {
    if (V == 9) CUDA(cudaMemcpyToSymbol(table, host.data(), sizeof table));
    constexpr int block = V == 30 || V == 31 ? 64 : V == 24 ? 64 : 128;
    const int m = V == 24 ? 150 : V == 15 ? 128 : 128;
    return check(k<V>, V == 24 ? 3 : V == 3 ? 2 : 1, block, 128, m, [](auto& in, int i) {
      if (V == 11) { const int j = in[i] & 3; return in[(i + j) % 128] + j + 1; }
      if (V == 20) return 128;
      if (V == 27) return in[i] % 7 ? in[in[i] % 128] : 0;
      if (V == 31) return i < 64 ? in[63 - i] % 100 + in[63 - i] : 0;
      return in[i];
    }, V == 8 ? 256 : V == 30 || V == 31 ? 64 + 256 : 0);
  }
}
MAIN(33)

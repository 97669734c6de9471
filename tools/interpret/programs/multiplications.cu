// Each kind of mma.sync and wgmma beside those of hopper.cu and inline_ptx.cu: small integers, so that every sum is exact. Prints
// "right", or what is wrong. The bits of all other numbers are common/interpreter/tests/mma_forms.cpp's.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

constexpr int kColumns = 8;

// One warp: rows x 8 sums, in words. A lane's registers are those of the words g + 8 r and t, with g = lane / 4 and t = lane % 4.
#define MMA_KERNEL(name, Word, halves, words, sums, ...)                                                       \
  __global__ void name(const Word* a, const Word* b, Word* d) {                                                \
    const int g = threadIdx.x / 4, t = threadIdx.x % 4, wide = sums / halves;                                  \
    Word ra[halves * words / 4], rb[words / 4], rd[sums];                                                      \
    for (int r = 0; r < halves * words / 4; ++r) ra[r] = a[(g + r % halves * 8) * words + t + r / halves * 4]; \
    for (int r = 0; r < words / 4; ++r) rb[r] = b[g * words + t + r * 4];                                      \
    for (int r = 0; r < sums; ++r) rd[r] = d[(g + r / wide * 8) * 4 * wide + t * wide + r % wide];             \
    __VA_ARGS__;                                                                                               \
    for (int r = 0; r < sums; ++r) d[(g + r / wide * 8) * 4 * wide + t * wide + r % wide] = rd[r];             \
  }
#define MMA_442(text)                                                                            \
  asm volatile("mma.sync.aligned." text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
               : "+r"(rd[0]), "+r"(rd[1]), "+r"(rd[2]), "+r"(rd[3])                              \
               : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]))
MMA_KERNEL(mma_half_sums, uint32_t, 2, 8, 2,
           asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
                        : "+r"(rd[0]), "+r"(rd[1])
                        : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1])))
MMA_KERNEL(mma_bytes, uint32_t, 2, 8, 4, MMA_442("m16n8k32.row.col.satfinite.s32.s8.u8.s32"))
MMA_KERNEL(mma_tf32, uint32_t, 2, 8, 4, MMA_442("m16n8k8.row.col.f32.tf32.tf32.f32"))
MMA_KERNEL(mma_fp8, uint32_t, 2, 8, 4, MMA_442("m16n8k32.row.col.f32.e4m3.e5m2.f32"))
MMA_KERNEL(mma_few_bytes, uint32_t, 1, 4, 2,
           asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
                        : "+r"(rd[0]), "+r"(rd[1])
                        : "r"(ra[0]), "r"(rb[0])))
MMA_KERNEL(mma_doubles, double, 1, 4, 2,
           asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                        : "+d"(rd[0]), "+d"(rd[1])
                        : "d"(ra[0]), "d"(rb[0])))

// One warpgroup: 64 x 8 sums, of one tile of 32 bytes along k. No swizzle: patterns of 8 rows of 16 bytes.
__device__ uint64_t descriptor(const uint32_t* matrix) {
  const uint64_t address = static_cast<uint64_t>(__cvta_generic_to_shared(matrix));
  return (address >> 4 & 0x3fff) | uint64_t(128 >> 4) << 16 | uint64_t(256 >> 4) << 32;
}
#define WGMMA_KERNEL(name, sums, ...)                                                                                   \
  __global__ void __launch_bounds__(128) name(const uint32_t* a, const uint32_t* b, uint32_t* d) {                      \
    alignas(128) __shared__ uint32_t tile_a[64 * 8], tile_b[8 * 8];                                                     \
    const int thread = threadIdx.x, lane = thread % 32, g = thread / 32 * 16 + lane / 4, t = lane % 4, wide = sums / 2; \
    const auto place = [](int i) { return (i / 64 * 2 + i % 8 / 4) * 32 + i / 8 % 8 * 4 + i % 4; };                     \
    for (int i = thread; i < 64 * 8; i += 128) tile_a[place(i)] = a[i];                                                 \
    for (int i = thread; i < 8 * 8; i += 128) tile_b[place(i)] = b[i];                                                  \
    asm volatile("fence.proxy.async;" ::: "memory");                                                                    \
    __syncthreads();                                                                                                    \
    [[maybe_unused]] uint32_t ra[4];                                                                                    \
    for (int r = 0; r < 4; ++r) ra[r] = a[(g + r % 2 * 8) * 8 + t + r / 2 * 4];                                         \
    [[maybe_unused]] const uint64_t from_a = descriptor(tile_a), from_b = descriptor(tile_b);                           \
    uint32_t rd[sums];                                                                                                  \
    for (int r = 0; r < sums; ++r) rd[r] = d[(g + r / wide * 8) * 4 * wide + t * wide + r % wide];                      \
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                                             \
    __VA_ARGS__;                                                                                                        \
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");                    \
    for (int r = 0; r < sums; ++r) d[(g + r / wide * 8) * 4 * wide + t * wide + r % wide] = rd[r];                      \
  }
#define SUMS_4 "+r"(rd[0]), "+r"(rd[1]), "+r"(rd[2]), "+r"(rd[3])
#define A_IN_REGISTERS "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "l"(from_b)
WGMMA_KERNEL(wgmma_half_sums, 2,
             asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0,%1}, %2, %3, 1, -1, 1, 0, 0;"
                          : "+r"(rd[0]), "+r"(rd[1])
                          : "l"(from_a), "l"(from_b)
                          : "memory"))
WGMMA_KERNEL(wgmma_registers, 4,
             asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, 1, 1, 1, 0;"
                          : SUMS_4:A_IN_REGISTERS
                          : "memory"))
WGMMA_KERNEL(wgmma_tf32, 4,
             asm volatile("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%0,%1,%2,%3}, %4, %5, 1, 1, 1;"
                          : SUMS_4
                          : "l"(from_a), "l"(from_b)
                          : "memory"))
WGMMA_KERNEL(wgmma_fp8, 4,
             asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, 1, 1, -1;"
                          : SUMS_4:A_IN_REGISTERS
                          : "memory"))
WGMMA_KERNEL(wgmma_bytes, 4,
             asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8.satfinite {%0,%1,%2,%3}, %4, %5, 1;"
                          : SUMS_4
                          : "l"(from_a), "l"(from_b)
                          : "memory"))

int wrong = 0;

template <class A, class B, class Sum, class Word>
void check(const char* name, void (*kernel)(const Word*, const Word*, Word*), int threads, int m, int k, int sign = 1) {
  std::vector<A> a(m * k);
  std::vector<B> b(kColumns * k);
  std::vector<Sum> d(m * kColumns);
  std::vector<int> ints_a(a.size()), ints_b(b.size()), expected(d.size());
  unsigned state = 1;
  const auto integer = [&](bool below_0) { return int((state = state * 1664525 + 1013904223) >> 24) % 5 - (below_0 ? 2 : 0); };
  for (size_t i = 0; i < a.size(); ++i) a[i] = A(float(ints_a[i] = integer(A(-1.0f) < A(0.0f))));
  for (size_t i = 0; i < b.size(); ++i) b[i] = B(float(ints_b[i] = integer(B(-1.0f) < B(0.0f))));
  for (size_t i = 0; i < d.size(); ++i) d[i] = Sum(float(expected[i] = integer(true)));
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < kColumns; ++j)
      for (int l = 0; l < k; ++l) expected[i * kColumns + j] += sign * ints_a[i * k + l] * ints_b[j * k + l];
  Word *da, *db, *dd;
  cudaMalloc(&da, a.size() * sizeof(A)), cudaMalloc(&db, b.size() * sizeof(B)), cudaMalloc(&dd, d.size() * sizeof(Sum));
  cudaMemcpy(da, a.data(), a.size() * sizeof(A), cudaMemcpyHostToDevice);
  cudaMemcpy(db, b.data(), b.size() * sizeof(B), cudaMemcpyHostToDevice);
  cudaMemcpy(dd, d.data(), d.size() * sizeof(Sum), cudaMemcpyHostToDevice);
  kernel<<<1, threads>>>(da, db, dd);
  cudaMemcpy(d.data(), dd, d.size() * sizeof(Sum), cudaMemcpyDeviceToHost);
  cudaFree(da), cudaFree(db), cudaFree(dd);
  for (size_t i = 0; i < d.size(); ++i)
    if (float(d[i]) != float(expected[i])) {
      std::printf("%s: sum %zu is %g instead of %d\n", name, i, double(float(d[i])), expected[i]);
      ++wrong;
      return;
    }
}

// CUDA's types of 8 bits have no comparison.
struct E4m3 {
  __nv_fp8_e4m3 bits;
  E4m3(float x = 0) : bits(x) {}
  operator float() const { return float(bits); }
};
struct E5m2 {
  __nv_fp8_e5m2 bits;
  E5m2(float x = 0) : bits(x) {}
  operator float() const { return float(bits); }
};
struct U8 {
  unsigned char bits;
  U8(float x = 0) : bits(x < 0 ? 0 : static_cast<unsigned char>(x)) {}
  bool operator<(U8 other) const { return bits < other.bits; }
};

int main() {
  check<__half, __half, __half>("mma_half_sums", mma_half_sums, 32, 16, 16);
  check<signed char, U8, int>("mma_bytes", mma_bytes, 32, 16, 32);
  check<float, float, float>("mma_tf32", mma_tf32, 32, 16, 8);
  check<E4m3, E5m2, float>("mma_fp8", mma_fp8, 32, 16, 32);
  check<U8, signed char, int>("mma_few_bytes", mma_few_bytes, 32, 8, 16);
  check<double, double, double>("mma_doubles", mma_doubles, 32, 8, 4);
  check<__half, __half, __half>("wgmma_half_sums", wgmma_half_sums, 128, 64, 16, -1);
  check<__nv_bfloat16, __nv_bfloat16, float>("wgmma_registers", wgmma_registers, 128, 64, 16);
  check<float, float, float>("wgmma_tf32", wgmma_tf32, 128, 64, 8);
  check<E4m3, E5m2, float>("wgmma_fp8", wgmma_fp8, 128, 64, 32, -1);
  check<signed char, U8, int>("wgmma_bytes", wgmma_bytes, 128, 64, 32);
  if (!wrong) std::puts("right");
  return wrong != 0;
}

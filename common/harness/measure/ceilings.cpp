#include "common/harness/measure/ceilings.h"

#include <mma.h>

#include <random>
#include <type_traits>

#include "common/device/device.cuh"
#include "common/device/wgmma.cuh"
#include "common/harness/measure/timing.h"
#include "common/harness/tuning/here.h"

namespace harness {
namespace {

constexpr int kThreads = 256;

// Independent chains of multiply-adds, more than the latency needs.
constexpr int kChains = 16, kFmaRounds = 4096;

__global__ __launch_bounds__(kThreads) void fma_rate(float factor, float* out) {
  float x[kChains];
  for (int i = 0; i < kChains; ++i) x[i] = static_cast<float>(threadIdx.x + i);
#pragma unroll 4
  for (int round = 0; round < kFmaRounds; ++round)
#pragma unroll
    for (int i = 0; i < kChains; ++i) x[i] = x[i] * factor + factor;
  float sum = 0;
  for (int i = 0; i < kChains; ++i) sum += x[i];
  if (sum == 1) *out = sum;  // so that the compiler keeps the work
}

// A warp multiplies fragments that stay in its registers. The compiler makes two mma.sync m16n8k16 of each 16x16x16 product.
constexpr int kFragmentsM = 2, kFragmentsN = 4, kMmaRounds = 2048;
constexpr double kFlopsPerProduct = 2.0 * 16 * 16 * 16;

// bf16 from compute capability 8.0 on; before, there is nothing to compile, and nobody launches it.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr bool kHasBf16 = false;
#else
constexpr bool kHasBf16 = true;
#endif

template <class T>
__device__ void multiply_fragments(const T* random, float* out) {
  namespace wmma = nvcuda::wmma;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> a[kFragmentsM];
  wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> b[kFragmentsN];
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c[kFragmentsM][kFragmentsN];
  for (int i = 0; i < kFragmentsM; ++i) wmma::load_matrix_sync(a[i], random + 256 * i, 16);
  for (int j = 0; j < kFragmentsN; ++j) wmma::load_matrix_sync(b[j], random + 256 * (kFragmentsM + j), 16);
  for (auto& row : c)
    for (auto& fragment : row) wmma::fill_fragment(fragment, 0.0f);
  for (int round = 0; round < kMmaRounds; ++round)
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i)
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j) wmma::mma_sync(c[i][j], a[i], b[j], c[i][j]);
  float sum = 0;
  for (auto& row : c)
    for (auto& fragment : row)
      for (int e = 0; e < fragment.num_elements; ++e) sum += fragment.x[e];
  if (sum == 1) *out = sum;
}

template <class T>
__global__ __launch_bounds__(kThreads) void mma_rate(const T* random, float* out) {
  if constexpr (kHasBf16 || std::is_same_v<T, __half>) multiply_fragments(random, out);
}

// Two warpgroups of a block multiply 64 x 64 tiles of A of their own by one 256 x 64 tile of B, kTiles of them in turn: what a
// block of 128 x 256 does, if all has been copied. A lies in shared memory, or in registers.
constexpr int kWarpgroups = 2, kRows = 64, kColumns = 256, kDepth = 64, kTiles = 4, kWgmmaRounds = 2048;
constexpr int kTileElements = (kWarpgroups * kRows + kColumns) * kDepth, kWgmmaThreads = kWarpgroups * 128;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
template <class T>
__device__ void wgmma_with_registers(float (&d)[kColumns / 2], const uint32_t (&a)[4], uint64_t b) {
#define COURSE_FORM(type)                                                                               \
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {" COURSE_WGMMA_NAMES_256 \
               "}, {%128,%129,%130,%131}, %132, 1, 1, 1, 0;"                                            \
               : COURSE_WGMMA_SUMS_256                                                                  \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)                                     \
               : "memory")
  if constexpr (std::is_same_v<T, __half>)
    COURSE_FORM("f16");
  else
    COURSE_FORM("bf16");
#undef COURSE_FORM
}

template <class T, bool kInRegisters>
__device__ void multiply_tiles(const T* random, float* out) {
  T* const s = device::dynamic_smem<T>();
  for (int i = threadIdx.x; i < kTiles * kTileElements; i += kWgmmaThreads) s[i] = random[i];
  device::fence_proxy_async();
  __syncthreads();
  const auto descriptor = [](const T* matrix) {
    return device::wgmma_descriptor(matrix, device::Swizzle::k128, 0, 8 * kDepth * sizeof(T));
  };
  float d[kColumns / 2] = {};
  uint32_t a[kDepth / 16][4];
  for (int i = 0; i < kDepth / 4; ++i) a[i / 4][i % 4] = reinterpret_cast<const uint32_t*>(random)[threadIdx.x * kDepth / 4 + i];
  for (int round = 0; round < kWgmmaRounds; ++round) {
    const T* const sB = s + round % kTiles * kTileElements;
    const T* const sA = sB + kColumns * kDepth + threadIdx.x / 128 * kRows * kDepth;
    device::wgmma_fence();
#pragma unroll
    for (int slice = 0; slice < kDepth / 16; ++slice) {
      if constexpr (kInRegisters)
        wgmma_with_registers<T>(d, a[slice], descriptor(sB + 16 * slice));
      else
        device::wgmma_m64k16<T, kColumns>(d, descriptor(sA + 16 * slice), descriptor(sB + 16 * slice), true);
    }
    device::wgmma_commit_group();
    device::wgmma_wait_group<kInRegisters ? 0 : 1>();  // the compiler keeps registers still until then
  }
  device::wgmma_wait_group<0>();
  float sum = 0;
  for (const float x : d) sum += x;
  if (sum == 1) *out = sum;
}
#endif

// Elsewhere there is nothing to compile, and nobody launches it.
template <class T, bool kInRegisters>
__global__ __launch_bounds__(kWgmmaThreads, 1) void wgmma_rate([[maybe_unused]] const T* random, [[maybe_unused]] float* out) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  multiply_tiles<T, kInRegisters>(random, out);
#endif
}

double median_seconds(const std::function<void()>& launch, double warm_up = TimingPlan{}.warm_up) {
  TimingPlan plan;
  plan.max_rounds = 21, plan.seconds = 0.1, plan.warm_up = warm_up;
  return time_in_rounds({[&](int) { launch(); }}, plan).sample(0).median;
}

template <class T>
std::vector<T> random_values(int count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  std::mt19937 engine(0);
  std::normal_distribution<float> normal;
  for (T& x : values) x = static_cast<T>(normal(engine));
  return values;
}

template <class T>
double mma_flops() {
  const device::Buffer<T> random(random_values<T>(256 * (kFragmentsM + kFragmentsN)), "random");
  const device::Buffer<float> out(1, "out");
  const unsigned blocks = static_cast<unsigned>(limits_here().multiprocessors);
  const double seconds = median_seconds([&] { device::launch(mma_rate<T>, blocks, kThreads, 0, random.data(), out.data()); });
  return kFlopsPerProduct * kFragmentsM * kFragmentsN * kMmaRounds * (kThreads / 32) * blocks / seconds;
}

// 0 where there is none.
template <class T, bool kInRegisters>
double wgmma_flops() {
  if (limits_here().capability != 90) return 0;
  constexpr double kUntilPowerSettles = 0.4;  // seconds
  const device::Buffer<T> random(random_values<T>(kTiles * kTileElements), "random");
  const device::Buffer<float> out(1, "out");
  const unsigned blocks = static_cast<unsigned>(limits_here().multiprocessors);
  const double seconds = median_seconds(
      [&] {
        device::launch(wgmma_rate<T, kInRegisters>, blocks, kWgmmaThreads, kTiles * kTileElements * sizeof(T), random.data(),
                       out.data());
      },
      kUntilPowerSettles);
  return 2.0 * kWarpgroups * kRows * kColumns * kDepth * kWgmmaRounds * blocks / seconds;
}

double fma_flops() {
  const device::Buffer<float> out(1, "out");
  const unsigned blocks = 8 * static_cast<unsigned>(limits_here().multiprocessors);
  const double seconds = median_seconds([&] { device::launch(fma_rate, blocks, kThreads, 0, 0.5f, out.data()); });
  return 2.0 * kChains * kFmaRounds * kThreads * blocks / seconds;
}

double copy_bytes_per_second() {
  // Far more than any L2 holds, but no more than a quarter of what is free.
  std::size_t free_bytes = 0, total = 0;
  DEVICE_CHECK(cudaMemGetInfo(&free_bytes, &total));
  const std::size_t bytes = std::min<std::size_t>(std::size_t(2) << 30, free_bytes / 4);
  const device::Buffer<unsigned char> from(bytes, "from"), to(bytes, "to");
  const double seconds = median_seconds(
      [&] { DEVICE_CHECK(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, device::stream())); });
  return 2.0 * static_cast<double>(bytes) / seconds;
}

}  // namespace

Ceilings measure_ceilings() {
  const double fma = fma_flops();
  // Where the tensor cores know no bf16, CUDA cores multiply what was converted to float.
  const double bf16 = limits_here().capability >= 80 ? mma_flops<__nv_bfloat16>() : fma;
  return {"measured",
          copy_bytes_per_second(),
          fma,
          mma_flops<__half>(),
          bf16,
          wgmma_flops<__half, false>(),
          wgmma_flops<__nv_bfloat16, false>(),
          wgmma_flops<__half, true>(),
          wgmma_flops<__nv_bfloat16, true>()};
}

}  // namespace harness

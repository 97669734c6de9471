/// @file
/// Correct kernels that look suspicious. Every check stays silent, in all orders, and the result is right.
///
/// A report is an exception, and an uncaught exception fails the test.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <vector>

#include "common/device/device.cuh"
#include "common/interpreter/tests/orders.h"

using device::Buffer;
using device::launch;

namespace {

constexpr unsigned kAll = 0xffffffffu;

std::vector<int> iota(std::size_t n, int first = 0) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}
template <class T>
Buffer<T> zeros(std::size_t n, const char* name) {
  return Buffer<T>(std::vector<T>(n, T(0)), name);
}
int sum(const std::vector<int>& v) { return std::accumulate(v.begin(), v.end(), 0); }

// --------------------------------------------------------------------------------------------------- several buffers
// Each thread needs all elements of each tile.
__global__ void double_buffer(const int* in, int* out, int tiles) {
  __shared__ int tile[2][64];
  int total = 0;
  tile[0][threadIdx.x] = in[threadIdx.x];
  for (int t = 0; t < tiles; ++t) {
    __syncthreads();  // tile t is complete, and everybody has done with tile t - 1, whose place tile t + 1 takes
    if (t + 1 < tiles) tile[(t + 1) % 2][threadIdx.x] = in[(t + 1) * 64 + threadIdx.x];
    for (int i = 0; i < 64; ++i) total += tile[t % 2][i];
  }
  out[threadIdx.x] = total;
}
TEST_CASE("double buffer with one barrier per step") {
  in_all_orders([] {
    Buffer<int> in(iota(64 * 5), "in"), out(64, "out");
    launch(double_buffer, 1, 64, 0, in.data(), out.data(), 5);
    CHECK(out.download() == std::vector<int>(64, sum(iota(64 * 5))));
  });
}

__global__ void triple_buffer(const int* in, int* out, int tiles) {
  __shared__ int tile[3][64];
  int total = 0;
  for (int t = 0; t < 2 && t < tiles; ++t) tile[t][threadIdx.x] = in[t * 64 + threadIdx.x];
  for (int t = 0; t < tiles; ++t) {
    __syncthreads();
    if (t + 2 < tiles) tile[(t + 2) % 3][threadIdx.x] = in[(t + 2) * 64 + threadIdx.x];
    for (int i = 0; i < 64; ++i) total += tile[t % 3][i];
  }
  out[threadIdx.x] = total;
}
TEST_CASE("three buffers, two tiles ahead, one barrier per step") {
  in_all_orders([] {
    for (const int tiles : {1, 2, 7}) {
      const auto host = iota(64 * static_cast<std::size_t>(tiles));
      Buffer<int> in(host, "in"), out(64, "out");
      launch(triple_buffer, 1, 64, 0, in.data(), out.data(), tiles);
      CHECK(out.download() == std::vector<int>(64, sum(host)));
    }
  });
}

__global__ void scan_with_two_buffers(const int* in, int* out) {
  __shared__ int buffer[2][128];
  const unsigned i = threadIdx.x;
  int from = 0;
  buffer[0][i] = in[i];
  for (unsigned step = 1; step < 128; step *= 2, from = 1 - from) {
    __syncthreads();
    buffer[1 - from][i] = buffer[from][i] + (i >= step ? buffer[from][i - step] : 0);
  }
  out[i] = buffer[from][i];  // its own element: no barrier needed
}
TEST_CASE("scan between two buffers") {
  in_all_orders([] {
    Buffer<int> in(std::vector<int>(128, 1), "in"), out(128, "out");
    launch(scan_with_two_buffers, 1, 128, 0, in.data(), out.data());
    CHECK(out.download() == iota(128, 1));
  });
}

// --------------------------------------------------------------------------------------------------- warp-synchronous
__global__ void warp_reduction(const int* in, int* out) {
  __shared__ int part[128];
  int* const mine = part + threadIdx.x / 32 * 32;  // each warp its own 32 elements, without any __syncthreads
  const unsigned lane = threadIdx.x % 32;
  int value = in[threadIdx.x];
  mine[lane] = value;
  __syncwarp();
  for (unsigned step = 16; step > 0; step /= 2) {
    value += mine[lane ^ step];
    __syncwarp();
    mine[lane] = value;
    __syncwarp();
  }
  if (lane == 0) out[threadIdx.x / 32] = value;
}
TEST_CASE("warp-synchronous reduction with __syncwarp") {
  in_all_orders([] {
    Buffer<int> in(iota(128), "in"), out(4, "out");
    launch(warp_reduction, 1, 128, 0, in.data(), out.data());
    CHECK(out.download() == std::vector<int>{496, 496 + 1024, 496 + 2048, 496 + 3072});
  });
}

__global__ void half_warps(const int* in, int* out) {
  __shared__ int pass[32];
  const unsigned lane = threadIdx.x, mask = lane < 16 ? 0xffffu : 0xffff0000u;
  pass[lane] = in[lane];
  __syncwarp(mask);
  out[lane] = pass[lane ^ 15];  // stays in its half
}
TEST_CASE("the halves of a warp by themselves") {
  in_all_orders([] {
    Buffer<int> in(iota(32), "in"), out(32, "out");
    launch(half_warps, 1, 32, 0, in.data(), out.data());
    const auto result = out.download();
    for (int i = 0; i < 32; ++i) CHECK(result[static_cast<std::size_t>(i)] == (i ^ 15));
  });
}

__global__ void shrinking_masks(const int* in, int* out) {
  __shared__ int part[32];
  const unsigned lane = threadIdx.x;
  part[lane] = in[lane];
  __syncwarp();
  for (unsigned step = 16; step > 0; step /= 2) {
    if (lane >= step) break;
    part[lane] += part[lane + step];
    __syncwarp((1u << step) - 1);  // only those who go on
  }
  if (lane == 0) *out = part[0];
}
TEST_CASE("masks that shrink with the reduction") {
  in_all_orders([] {
    Buffer<int> in(iota(32), "in"), out(1, "out");
    launch(shrinking_masks, 1, 32, 0, in.data(), out.data());
    CHECK(out.download() == std::vector<int>{496});
  });
}

__global__ void order_through_a_third_lane(int* out) {
  __shared__ int message;
  const unsigned lane = threadIdx.x;
  if (lane == 0) message = 42;
  if (lane < 2) __syncwarp(0x3);                // lane 0 to lane 1
  if (lane == 1 || lane == 2) __syncwarp(0x6);  // lane 1 to lane 2: order is transitive
  if (lane == 2) *out = message;
}
TEST_CASE("order handed on from lane to lane") {
  in_all_orders([] {
    Buffer<int> out(1, "out");
    launch(order_through_a_third_lane, 1, 32, 0, out.data());
    CHECK(out.download() == std::vector<int>{42});
  });
}

__global__ void warps_and_block_in_turn(const int* in, int* out) {
  __shared__ int part[96];
  __shared__ int total[3];
  part[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  if (threadIdx.x % 32 == 0) {
    int s = 0;
    for (unsigned i = 0; i < 32; ++i) s += part[threadIdx.x + i];
    total[threadIdx.x / 32] = s;
  }
  __syncthreads();
  out[threadIdx.x] = total[0] + total[1] + total[2] + part[95 - threadIdx.x];
}
TEST_CASE("warp by warp, then the block") {
  in_all_orders([] {
    Buffer<int> in(iota(96), "in"), out(96, "out");
    launch(warps_and_block_in_turn, 1, 96, 0, in.data(), out.data());
    const auto result = out.download();
    for (int i = 0; i < 96; ++i) CHECK(result[static_cast<std::size_t>(i)] == sum(iota(96)) + 95 - i);
  });
}

// ------------------------------------------------------------------------------------- threads that leave, and that lack
__global__ void exit_before_a_barrier(const int* in, int* out, int n) {
  __shared__ int tile[64];
  const int i = static_cast<int>(threadIdx.x);
  if (i >= n) return;
  tile[i] = in[i];
  __syncthreads();  // waits for those that have not exited
  out[i] = tile[n - 1 - i];
}
TEST_CASE("threads that exit before a barrier") {
  in_all_orders([] {
    for (const int n : {1, 31, 40, 64}) {
      Buffer<int> in(iota(64), "in"), out = zeros<int>(64, "out");
      launch(exit_before_a_barrier, 1, 64, 0, in.data(), out.data(), n);
      const auto result = out.download();
      for (int i = 0; i < 64; ++i) CHECK(result[static_cast<std::size_t>(i)] == (i < n ? n - 1 - i : 0));
    }
  });
}

__global__ void exit_before_collectives(const int* in, int* out, int n) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane >= n) return;
  const unsigned votes = __ballot_sync(kAll, in[lane] % 2);  // a mask may name lanes that have exited
  const int first = __shfl_sync(kAll, in[lane], 0);
  __syncwarp();
  out[lane] = __popc(votes) * 100 + first;
}
TEST_CASE("lanes that exit before collectives with the full mask") {
  in_all_orders([] {
    Buffer<int> in(iota(32, 7), "in"), out = zeros<int>(32, "out");
    launch(exit_before_collectives, 1, 32, 0, in.data(), out.data(), 20);
    const auto result = out.download();
    for (std::size_t i = 0; i < 32; ++i) CHECK(result[i] == (i < 20 ? 1007 : 0));
  });
}

__global__ void block_sum(const int* in, int* out, int n) {
  __shared__ int part[4];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  int value = static_cast<int>(threadIdx.x) < n ? in[threadIdx.x] : 0;
  for (int step = 16; step > 0; step /= 2) {
    const int other = __shfl_down_sync(kAll, value, static_cast<unsigned>(step));
    // Lanes beyond the block do not exist: what comes from there is not to be used.
    if (warp * 32 + lane + step < n && lane + step < 32) value += other;
  }
  if (lane == 0) part[warp] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    int total = 0;
    for (int w = 0; w < (n + 31) / 32; ++w) total += part[w];
    *out = total;
  }
}
TEST_CASE("blocks that end in a partial warp") {
  in_all_orders([] {
    for (const unsigned threads : {1u, 20u, 33u, 100u, 128u}) {
      const auto host = iota(threads, 3);
      Buffer<int> in(host, "in"), out(1, "out");
      launch(block_sum, 1, threads, 0, in.data(), out.data(), static_cast<int>(threads));
      CHECK(out.download() == std::vector<int>{sum(host)});
    }
  });
}

__global__ void uneven_trips(const int* trips, int* out) {
  int steps = 0;
  for (int i = 0; i < trips[threadIdx.x]; ++i)
    for (int j = 0; j <= i % 3; ++j) ++steps;
  out[threadIdx.x] = steps;
  __syncthreads();  // all meet again
  if (threadIdx.x == 0)
    for (unsigned i = 1; i < blockDim.x; ++i) out[0] += out[i];
}
TEST_CASE("divergent loops with different trip counts") {
  in_all_orders([] {
    Buffer<int> trips(iota(50), "trips"), out(50, "out");
    launch(uneven_trips, 1, 50, 0, trips.data(), out.data());
    int expected = 0;
    for (int t = 0; t < 50; ++t)
      for (int i = 0; i < t; ++i) expected += i % 3 + 1;
    CHECK(out.download()[0] == expected);
  });
}

__global__ void no_trips(const int* in, int* out, int n) {
  __shared__ int tile[32];
  int total = 0;
  for (int first = 0; first < n; first += 32) {
    tile[threadIdx.x] = in[first + static_cast<int>(threadIdx.x)];
    __syncthreads();
    for (int i = 0; i < 32; ++i) total += tile[i];
    __syncthreads();
  }
  out[threadIdx.x] = total;
}
TEST_CASE("a loop without a trip, through a null pointer") {
  in_all_orders([] {
    Buffer<int> out(32, "out");
    launch(no_trips, 1, 32, 0, nullptr, out.data(), 0);
    CHECK(out.download() == std::vector<int>(32, 0));
  });
}

__global__ void barrier_in_a_uniform_branch(const int* in, int* out, bool reverse) {
  __shared__ int tile[64];
  int value = in[blockIdx.x * 64 + threadIdx.x];
  if (reverse && blockIdx.x % 2 == 1) {  // the same for all threads of a block
    tile[threadIdx.x] = value;
    __syncthreads();
    value = tile[63 - threadIdx.x];
  }
  out[blockIdx.x * 64 + threadIdx.x] = value;
}
TEST_CASE("a barrier in a branch that whole blocks take") {
  in_all_orders([] {
    Buffer<int> in(iota(256), "in"), out(256, "out");
    launch(barrier_in_a_uniform_branch, 4, 64, 0, in.data(), out.data(), true);
    auto expected = iota(256);
    std::reverse(expected.begin() + 64, expected.begin() + 128);
    std::reverse(expected.begin() + 192, expected.end());
    CHECK(out.download() == expected);
  });
}

__global__ void counting_barriers(const int* in, int* out) {
  __shared__ int tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  const int odd = __syncthreads_count(in[threadIdx.x] % 2);  // a barrier as well
  const int other = tile[63 - threadIdx.x];
  const int all = __syncthreads_and(other < 64), any = __syncthreads_or(other == 65);
  tile[threadIdx.x] = odd + 100 * all + 1000 * any;
  __syncthreads();
  out[threadIdx.x] = tile[(threadIdx.x + 1) % 64];
}
TEST_CASE("__syncthreads_count, _and, _or are barriers") {
  in_all_orders([] {
    Buffer<int> in(iota(64), "in"), out(64, "out");
    launch(counting_barriers, 1, 64, 0, in.data(), out.data());
    CHECK(out.download() == std::vector<int>(64, 132));
  });
}

// -------------------------------------------------------------------------------------------------------------- memory
__global__ void aliased_views(const float* a, const float* b, const float4* c, float* out) {
  const unsigned i = threadIdx.x;
  const float4 v = c[i / 4];
  const float parts[4] = {v.x, v.y, v.z, v.w};
  out[i] = a[i] + b[63 - i] + parts[i % 4];
}
TEST_CASE("one buffer under three names, all read") {
  in_all_orders([] {
    Buffer<float> in(std::vector<float>(64, 2.0f), "in"), out(64, "out");
    launch(aliased_views, 1, 64, 0, in.data(), in.data(), reinterpret_cast<const float4*>(in.data()), out.data());
    CHECK(out.download() == std::vector<float>(64, 6.0f));
  });
}

__global__ void transpose_in_place(int* matrix, int n) {
  __shared__ int upper[16][17], lower[16][17];  // a column more, against bank conflicts: never written, never read
  if (blockIdx.x < blockIdx.y) return;
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int x = static_cast<int>(blockIdx.x) * 16, y = static_cast<int>(blockIdx.y) * 16;
  upper[ty][tx] = matrix[(y + ty) * n + x + tx];
  lower[ty][tx] = matrix[(x + ty) * n + y + tx];
  __syncthreads();
  matrix[(y + ty) * n + x + tx] = lower[tx][ty];
  if (x != y) matrix[(x + ty) * n + y + tx] = upper[tx][ty];  // on the diagonal it would write the same twice
}
TEST_CASE("transposition in place with padded tiles") {
  in_all_orders([] {
    Buffer<int> matrix(iota(64 * 64), "matrix");
    launch(transpose_in_place, dim3(4, 4), dim3(16, 16), 0, matrix.data(), 64);
    const auto result = matrix.download();
    bool right = true;
    for (int i = 0; i < 64; ++i)
      for (int j = 0; j < 64; ++j) right &= result[static_cast<std::size_t>(i * 64 + j)] == j * 64 + i;
    CHECK(right);
  });
}

__global__ void adjacent_bytes(unsigned char* bytes) {
  bytes[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<unsigned char>(threadIdx.x);
}
TEST_CASE("neighbours write the bytes of one word") {
  in_all_orders([] {
    Buffer<unsigned char> bytes(66, "bytes");
    launch(adjacent_bytes, 6, 11, 0, bytes.data());  // words that two blocks share
    const auto result = bytes.download();
    for (std::size_t i = 0; i < 66; ++i) CHECK(result[i] == i % 11);
  });
}

__global__ void adjacent_halves(__half* out) { out[threadIdx.x] = __float2half(static_cast<float>(threadIdx.x)); }
TEST_CASE("neighbours write the halves of one word") {
  in_all_orders([] {
    Buffer<__half> out(33, "out");
    launch(adjacent_halves, 1, 33, 0, out.data());
    const auto result = out.download();
    for (std::size_t i = 0; i < 33; ++i) CHECK(__half2float(result[i]) == static_cast<float>(i));
  });
}

__global__ void bytes_then_words(const unsigned char* in, unsigned* out) {
  alignas(4) __shared__ unsigned char bytes[64];
  bytes[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 16) out[threadIdx.x] = reinterpret_cast<const unsigned*>(bytes)[threadIdx.x];
}
TEST_CASE("written byte by byte, read word by word") {
  in_all_orders([] {
    Buffer<unsigned char> in(std::vector<unsigned char>(64, 0x11), "in");
    Buffer<unsigned> out(16, "out");
    launch(bytes_then_words, 1, 64, 0, in.data(), out.data());
    CHECK(out.download() == std::vector<unsigned>(16, 0x11111111u));
  });
}

__global__ void reused_as_another_type(const float* in, int* out) {
  float* const as_float = device::dynamic_smem<float>();
  unsigned short* const as_short = device::dynamic_smem<unsigned short>();
  as_float[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  const float value = as_float[63 - threadIdx.x];
  __syncthreads();
  as_short[threadIdx.x] = static_cast<unsigned short>(value);
  __syncthreads();
  out[threadIdx.x] = as_short[63 - threadIdx.x];
}
TEST_CASE("shared memory reused as another type behind a barrier") {
  in_all_orders([] {
    std::vector<float> host(64);
    std::iota(host.begin(), host.end(), 0.0f);
    Buffer<float> in(host, "in");
    Buffer<int> out(64, "out");
    launch(reused_as_another_type, 1, 64, 256, in.data(), out.data());
    CHECK(out.download() == iota(64));
  });
}

union Word {
  float f;
  unsigned u;
  unsigned short half[2];
};
__global__ void unions(const float* in, unsigned* out) {
  __shared__ Word words[32];
  words[threadIdx.x].f = in[threadIdx.x];
  __syncthreads();
  const Word other = words[threadIdx.x ^ 1];
  Word mine;
  mine.half[0] = other.half[1], mine.half[1] = other.half[0];
  out[threadIdx.x] = mine.u;
}
TEST_CASE("unions in shared memory") {
  in_all_orders([] {
    Buffer<float> in(std::vector<float>(32, 1.0f), "in");
    Buffer<unsigned> out(32, "out");
    launch(unions, 1, 32, 0, in.data(), out.data());
    CHECK(out.download() == std::vector<unsigned>(32, 0x00003f80u));
  });
}

__global__ void dynamic_memory_split(const int* in, float* out) {
  double* const wide = device::dynamic_smem<double>();
  float* const narrow = reinterpret_cast<float*>(wide + 33);
  __half* const half = reinterpret_cast<__half*>(narrow + 31);
  unsigned char* const byte = reinterpret_cast<unsigned char*>(half + 33);
  const unsigned i = threadIdx.x;
  wide[i + 1] = in[i], byte[i] = static_cast<unsigned char>(in[i]);
  if (i < 31) narrow[i] = static_cast<float>(in[i]);
  half[i + 1] = __float2half(static_cast<float>(in[i]));
  __syncthreads();
  const unsigned j = 31 - i;
  out[i] = static_cast<float>(wide[j + 1]) + (j < 31 ? narrow[j] : 31.0f) + __half2float(half[j + 1]) + static_cast<float>(byte[j]);
}
TEST_CASE("dynamic shared memory split into arrays of several types") {
  in_all_orders([] {
    Buffer<int> in(iota(32), "in");
    Buffer<float> out(32, "out");
    launch(dynamic_memory_split, 1, 32, 33 * 8 + 31 * 4 + 33 * 2 + 32, in.data(), out.data());
    const auto result = out.download();
    for (int i = 0; i < 32; ++i) CHECK(result[static_cast<std::size_t>(i)] == 4.0f * static_cast<float>(31 - i));
  });
}

struct Padded {
  char tag;  // three bytes follow that mean nothing
  int value;
};
__global__ void padded_structs(const Padded* in, Padded* out) {
  __shared__ Padded shared[32];
  shared[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = shared[31 - threadIdx.x];
}
TEST_CASE("structs with padding") {
  in_all_orders([] {
    std::vector<Padded> host(32);
    for (int i = 0; i < 32; ++i) host[static_cast<std::size_t>(i)] = {static_cast<char>('a' + i % 7), i};
    Buffer<Padded> in(host, "in"), out(32, "out");
    launch(padded_structs, 1, 32, 0, in.data(), out.data());
    const auto result = out.download();
    for (std::size_t i = 0; i < 32; ++i) {
      CHECK(result[i].value == host[31 - i].value);
      CHECK(result[i].tag == host[31 - i].tag);
    }
  });
}

__global__ void vectors(const float4* in, const __half2* halves, const __nv_bfloat162* brains, float* out) {
  const float4 v = in[threadIdx.x];
  const __half2 h = __hadd2(halves[threadIdx.x], halves[31 - threadIdx.x]);
  const __nv_bfloat162 b = brains[threadIdx.x];
  out[threadIdx.x] = v.x + v.y + v.z + v.w + __low2float(h) + __high2float(h) + __bfloat162float(b.x) + __bfloat162float(b.y);
}
TEST_CASE("float4, __half2 and __nv_bfloat162") {
  in_all_orders([] {
    Buffer<float4> in(std::vector<float4>(32, make_float4(1, 2, 3, 4)), "in");
    Buffer<__half2> halves(std::vector<__half2>(32, __floats2half2_rn(0.5f, 0.25f)), "halves");
    Buffer<__nv_bfloat162> brains(std::vector<__nv_bfloat162>(32, __floats2bfloat162_rn(2.0f, 8.0f)), "brains");
    Buffer<float> out(32, "out");
    launch(vectors, 1, 32, 0, in.data(), halves.data(), brains.data(), out.data());
    CHECK(out.download() == std::vector<float>(32, 21.5f));
  });
}

__global__ void negative_strides(const int* in, int* out, long long in_stride, long long out_stride, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) out[i * out_stride] = in[i * in_stride];
}
TEST_CASE("negative and zero strides") {
  in_all_orders([] {
    Buffer<int> in(iota(100), "in"), out(100, "out");
    launch(negative_strides, 1, 32, 0, in.data() + 99, out.data(), -1ll, 1ll, 100);
    auto expected = iota(100);
    std::reverse(expected.begin(), expected.end());
    CHECK(out.download() == expected);
    launch(negative_strides, 1, 32, 0, in.data() + 5, out.data() + 99, 0ll, -1ll, 100);
    CHECK(out.download() == std::vector<int>(100, 5));
  });
}

__global__ void three_dimensions(int* out) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
                 z = blockIdx.z * blockDim.z + threadIdx.z;
  const unsigned width = gridDim.x * blockDim.x, height = gridDim.y * blockDim.y;
  __shared__ int corner;
  if (threadIdx.x + threadIdx.y + threadIdx.z == 0) corner = static_cast<int>((z * height + y) * width + x);
  __syncthreads();
  out[(z * height + y) * width + x] = corner;
}
TEST_CASE("blocks and grids in three dimensions") {
  in_all_orders([] {
    Buffer<int> out(6 * 15 * 14, "out");
    launch(three_dimensions, dim3(2, 3, 7), dim3(3, 5, 2), 0, out.data());
    const auto result = out.download();
    bool right = true;
    for (int z = 0; z < 14; ++z)
      for (int y = 0; y < 15; ++y)
        for (int x = 0; x < 6; ++x)
          right &= result[static_cast<std::size_t>((z * 15 + y) * 6 + x)] == (z / 2 * 2 * 15 + y / 5 * 5) * 6 + x / 3 * 3;
    CHECK(right);
  });
}

// ------------------------------------------------------------------------------------------- functions, constants, more
__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void recursion(int* out) { out[threadIdx.x] = fibonacci(static_cast<int>(threadIdx.x)); }
TEST_CASE("recursion in a device function") {
  in_all_orders([] {
    Buffer<int> out(12, "out");
    launch(recursion, 1, 12, 0, out.data());
    CHECK(out.download() == std::vector<int>{0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89});
  });
}

struct Largest {
  int floor;
  __device__ int operator()(int a, int b) const { return max(floor, a < b ? b : a); }
};
template <int kThreads, class Combine>
__global__ void reduction(const int* in, int* out, Combine combine) {
  __shared__ int part[kThreads];
  part[threadIdx.x] = in[threadIdx.x];
  const auto fold = [&](unsigned a, unsigned b) { part[a] = combine(part[a], part[b]); };
  for (unsigned step = kThreads / 2; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) fold(threadIdx.x, threadIdx.x + step);
  }
  if (threadIdx.x == 0) *out = part[0];
}
TEST_CASE("functors and templates") {
  in_all_orders([] {
    Buffer<int> in(iota(64), "in"), out(1, "out");
    launch(reduction<64, Largest>, 1, 64, 0, in.data(), out.data(), Largest{7});
    CHECK(out.download() == std::vector<int>{63});
    launch(reduction<64, Largest>, 1, 64, 0, in.data(), out.data(), Largest{1000});
    CHECK(out.download() == std::vector<int>{1000});
  });
}

__constant__ int weights[4];
__global__ void constants(const int* in, int* out) {
  int total = 0;
  for (int i = 0; i < 4; ++i) total += weights[i] * in[threadIdx.x + static_cast<unsigned>(i)];
  out[threadIdx.x] = total;
}
TEST_CASE("constant memory") {
  in_all_orders([] {
    const int host[4] = {1, 10, 100, 1000};
    device::copy_to_symbol(weights, host);
    Buffer<int> in(iota(35), "in"), out(32, "out");
    launch(constants, 1, 32, 0, in.data(), out.data());
    const auto result = out.download();
    for (int i = 0; i < 32; ++i) CHECK(result[static_cast<std::size_t>(i)] == 1111 * i + 3210);
  });
}

__device__ unsigned calls;
__device__ int latest[8];
__global__ void device_variables() {
  if (threadIdx.x == 0) latest[blockIdx.x] = static_cast<int>(blockIdx.x) + latest[blockIdx.x];
  atomicAdd(&calls, 1u);
}
TEST_CASE("__device__ variables") {
  in_all_orders([] {
    const int start[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    device::copy_to_symbol(calls, 0u);
    device::copy_to_symbol(latest, start);
    launch(device_variables, 8, 40, 0);
    launch(device_variables, 8, 40, 0);
    unsigned counted = 0;
    int result[8];
    device::copy_from_symbol(counted, calls);
    device::copy_from_symbol(result, latest);
    CHECK(counted == 640u);
    for (int i = 0; i < 8; ++i) CHECK(result[i] == 2 * i + 1);
  });
}

// ------------------------------------------------------------------------------------------------------------- atomics
__global__ void histogram(const unsigned char* in, int n, unsigned* out) {
  __shared__ unsigned bins[16];
  if (threadIdx.x < 16) bins[threadIdx.x] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < static_cast<unsigned>(n); i += gridDim.x * blockDim.x)
    atomicAdd(&bins[in[i] % 16], 1u);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}
TEST_CASE("a histogram with atomics in shared memory") {
  in_all_orders([] {
    std::vector<unsigned char> host(1000);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<unsigned char>(i * i % 23);
    std::vector<unsigned> expected(16, 0);
    for (const unsigned char c : host) ++expected[c % 16u];
    Buffer<unsigned char> in(host, "in");
    auto out = zeros<unsigned>(16, "out");
    launch(histogram, 3, 96, 0, in.data(), 1000, out.data());
    CHECK(out.download() == expected);
  });
}

__global__ void compaction(const int* in, int* out, unsigned* count) {
  const int value = in[blockIdx.x * blockDim.x + threadIdx.x];
  if (value % 3 ==
      0) {  // the CUDA blog's warp-aggregated atomics: however many lanes have converged, they take their places together
    const unsigned mask = __activemask(), lane = threadIdx.x % 32;
    const int leader = __ffs(static_cast<int>(mask)) - 1;
    unsigned first = 0;
    if (static_cast<int>(lane) == leader) first = atomicAdd(count, static_cast<unsigned>(__popc(mask)));
    first = __shfl_sync(mask, first, leader);
    out[first + static_cast<unsigned>(__popc(mask & ((1u << lane) - 1)))] = value;
  }
}
TEST_CASE("warp-aggregated atomics") {
  in_all_orders([] {
    Buffer<int> in(iota(192), "in"), out(64, "out");
    auto count = zeros<unsigned>(1, "count");
    launch(compaction, 3, 64, 0, in.data(), out.data(), count.data());
    CHECK(count.download() == std::vector<unsigned>{64});
    auto found = out.download();
    std::sort(found.begin(), found.end());
    bool right = true;
    for (std::size_t i = 0; i < 64; ++i) right &= found[i] == 3 * static_cast<int>(i);
    CHECK(right);
  });
}

__global__ void spin_lock(unsigned* lock, int* balance) {
  bool done = false;
  while (!done) {  // lanes of one warp compete: the one that has the lock leaves the loop's body first
    if (atomicCAS(lock, 0u, 1u) == 0) {
      __threadfence();
      *balance += 1;
      __threadfence();
      atomicExch(lock, 0u);
      done = true;
    }
  }
}
TEST_CASE("a spin lock within a warp") {
  in_all_orders([] {
    auto lock = zeros<unsigned>(1, "lock");
    auto balance = zeros<int>(1, "balance");
    launch(spin_lock, 1, 32, 0, lock.data(), balance.data());
    CHECK(balance.download() == std::vector<int>{32});
  });
}
TEST_CASE("a spin lock between blocks") {
  in_all_orders([] {
    auto lock = zeros<unsigned>(1, "lock");
    auto balance = zeros<int>(1, "balance");
    launch(spin_lock, 12, 7, 0, lock.data(), balance.data());
    CHECK(balance.download() == std::vector<int>{84});
  });
}

__global__ void ticket_lock(unsigned* next, unsigned* serving, int* order) {
  if (threadIdx.x == 0) {
    const unsigned ticket = atomicAdd(next, 1u);
    while (atomicAdd(serving, 0u) != ticket) __nanosleep(20);
    __threadfence();
    order[0] += 1;
    order[order[0]] = static_cast<int>(blockIdx.x);
    __threadfence();
    atomicAdd(serving, 1u);
  }
}
TEST_CASE("a ticket lock") {
  in_all_orders([] {
    auto next = zeros<unsigned>(1, "next"), serving = zeros<unsigned>(1, "serving");
    auto order = zeros<int>(21, "order");
    launch(ticket_lock, 20, 32, 0, next.data(), serving.data(), order.data());
    auto result = order.download();
    CHECK(result[0] == 20);
    std::sort(result.begin() + 1, result.end());
    CHECK(std::vector<int>(result.begin() + 1, result.end()) == iota(20));
  });
}

// ---------------------------------------------------------------------------------------------- blocks wait for blocks
__global__ void handshake_by_atomics(int* data, unsigned* flag, int* out) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 2 * static_cast<int>(threadIdx.x);
    __syncthreads();  // thread 0 speaks for all
    if (threadIdx.x == 0) {
      __threadfence();
      atomicExch(flag, 1u);
    }
  } else {
    if (threadIdx.x == 0) {
      while (atomicAdd(flag, 0u) == 0) {
      }
      __threadfence();
    }
    __syncthreads();
    out[threadIdx.x] = data[63 - threadIdx.x];
  }
}
TEST_CASE("a handshake between two blocks by fences and atomics") {
  in_all_orders([] {
    Buffer<int> data(64, "data"), out(64, "out");
    auto flag = zeros<unsigned>(1, "flag");
    launch(handshake_by_atomics, 2, 64, 0, data.data(), flag.data(), out.data());
    const auto result = out.download();
    for (int i = 0; i < 64; ++i) CHECK(result[static_cast<std::size_t>(i)] == 2 * (63 - i));
  });
}

__global__ void handshake_by_volatile(int* data, volatile int* flag, int* out) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 2 * static_cast<int>(threadIdx.x);
    __threadfence();  // each thread for itself
    __syncthreads();
    if (threadIdx.x == 0) *flag = 1;
  } else {
    while (*flag == 0) {
    }
    __threadfence();
    out[threadIdx.x] = data[63 - threadIdx.x];
  }
}
TEST_CASE("a handshake between two blocks by fences and a volatile flag") {
  in_all_orders([] {
    Buffer<int> data(64, "data"), out(64, "out");
    auto flag = zeros<int>(1, "flag");
    launch(handshake_by_volatile, 2, 64, 0, data.data(), flag.data(), out.data());
    const auto result = out.download();
    for (int i = 0; i < 64; ++i) CHECK(result[static_cast<std::size_t>(i)] == 2 * (63 - i));
  });
}

__global__ void mailbox(int* data, unsigned* box, int* out) {
  // One word is both flag and receipt: atomicExch releases on one side and acquires on the other.
  if (blockIdx.x == 0) {
    *data = 17;
    __threadfence();
    atomicExch(box, 5u);
  } else {
    unsigned letter;
    do letter = atomicExch(box, 0u);
    while (letter == 0);
    __threadfence();
    *out = *data + static_cast<int>(letter);
  }
}
TEST_CASE("release and acquire by atomicExch") {
  in_all_orders([] {
    Buffer<int> data(1, "data"), out(1, "out");
    auto box = zeros<unsigned>(1, "box");
    launch(mailbox, 2, 1, 0, data.data(), box.data(), out.data());
    CHECK(out.download() == std::vector<int>{22});
  });
}

// Block b waits for block b + direction.
__global__ void chain(int* value, unsigned* done, int direction) {
  const int b = static_cast<int>(blockIdx.x), before = b + direction;
  if (threadIdx.x != 0) return;
  int received = 0;
  if (before >= 0 && before < static_cast<int>(gridDim.x)) {
    while (atomicAdd(&done[before], 0u) == 0) {
    }
    __threadfence();
    received = value[before];
  }
  value[b] = received + 1;
  __threadfence();
  atomicExch(&done[b], 1u);
}
TEST_CASE("a chain of many blocks") {
  in_all_orders([] {
    auto value = zeros<int>(40, "value");
    auto done = zeros<unsigned>(40, "done");
    launch(chain, 40, 32, 0, value.data(), done.data(), -1);
    CHECK(value.download() == iota(40, 1));
  });
}
TEST_CASE("blocks that wait for a block with a higher index") {
  in_all_orders([] {
    auto value = zeros<int>(40, "value");
    auto done = zeros<unsigned>(40, "done");
    launch(chain, 40, 32, 0, value.data(), done.data(), +1);
    auto expected = iota(40, 1);
    std::reverse(expected.begin(), expected.end());
    CHECK(value.download() == expected);
  });
}

__device__ void grid_barrier(unsigned* arrived, unsigned round) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1u);
    while (atomicAdd(arrived, 0u) < round * gridDim.x) {
    }
    __threadfence();
  }
  __syncthreads();
}
__global__ void ping_pong(int* a, int* b, unsigned* arrived, int rounds) {
  const unsigned n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int round = 0; round < rounds; ++round) {
    const int* const from = round % 2 ? b : a;
    int* const to = round % 2 ? a : b;
    to[i] = from[(i + n - 1) % n] + from[(i + 1) % n];  // both neighbour blocks' edges
    grid_barrier(arrived, static_cast<unsigned>(round) + 1);
  }
}
TEST_CASE("a grid-wide barrier, used several times") {
  constexpr int kBlocks = 6, kThreads = 40, kRounds = 5, n = kBlocks * kThreads;
  std::vector<int> expected = iota(n), next(n);
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < n; ++i)
      next[static_cast<std::size_t>(i)] =
          expected[static_cast<std::size_t>((i + n - 1) % n)] + expected[static_cast<std::size_t>((i + 1) % n)];
    expected = next;
  }
  in_all_orders([&] {
    Buffer<int> a(iota(n), "a"), b(n, "b");
    auto arrived = zeros<unsigned>(1, "arrived");
    launch(ping_pong, kBlocks, kThreads, 0, a.data(), b.data(), arrived.data(), kRounds);
    CHECK((kRounds % 2 ? b : a).download() == expected);
  });
}

// --------------------------------------------------------------------------- plain stores and atomics on the same word
// Set by one thread, counted by all, read and set again: a barrier stands between each two.
__global__ void counter_between_barriers(const int* in, int* counts, int rounds) {
  __shared__ int count;
  for (int r = 0; r < rounds; ++r) {
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    if (in[threadIdx.x] > r) atomicAdd(&count, 1);
    if (threadIdx.x % 32 == 0) atomicAdd(&count, 0);
    __syncthreads();
    if (threadIdx.x == 33) counts[blockIdx.x * rounds + r] = count;
    __syncthreads();
  }
}
TEST_CASE("a counter that one thread sets plainly between barriers") {
  in_all_orders([] {
    Buffer<int> in(iota(128), "in"), counts(6, "counts");
    launch(counter_between_barriers, 2, 128, 0, in.data(), counts.data(), 3);
    CHECK(counts.download() == std::vector<int>{127, 126, 125, 127, 126, 125});
  });
}

// Each thread has a word of its own, which others use after the block's barrier, or after the warp's.
__global__ void own_word_first(int* words, int* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  words[i] = 1;
  atomicAdd(&words[i], 1);
  __syncwarp();
  atomicAdd(&words[i ^ 1], 1);
  __syncthreads();
  atomicAdd(&words[i ^ 32], 1);
  __syncthreads();
  out[i] = words[i ^ 33];
  unsigned char* const bytes = reinterpret_cast<unsigned char*>(&words[i ^ 33]);
  bytes[0] = static_cast<unsigned char>(bytes[0] + 1);
  __syncthreads();
  atomicAdd(&words[i], 1);
}
TEST_CASE("a thread's plain store, its own atomic, then others' after barriers") {
  in_all_orders([] {
    Buffer<int> words(128, "words"), out(128, "out");
    for (int again = 0; again < 2; ++again) launch(own_word_first, 2, 64, 0, words.data(), out.data());
    CHECK(out.download() == std::vector<int>(128, 4));
    CHECK(words.download() == std::vector<int>(128, 6));
  });
}

// Zeroed by the host or by the launch before; the last block of all sets it for the next launch.
__global__ void counted_by_all(int* count, unsigned* done, int* result) {
  atomicAdd(count, 1);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0 && atomicInc(done, gridDim.x - 1) == gridDim.x - 1) {
    __threadfence();
    *result = *count;
    *count = 0;
    atomicAdd(count, 0);
  }
}
__global__ void sets_to_zero(int* count) { *count = 0; }
TEST_CASE("a counter that the last block sets to zero for the next launch") {
  in_all_orders([] {
    auto done = zeros<unsigned>(1, "done");
    Buffer<int> count(1, "count"), result(1, "result");
    launch(sets_to_zero, 1, 1, 0, count.data());
    for (int again = 0; again < 3; ++again) {
      launch(counted_by_all, 4, 64, 0, count.data(), done.data(), result.data());
      CHECK(result.download()[0] == 256);
    }
  });
}

// The first block that comes sets the counter; the others wait until it says so.
__global__ void set_by_who_comes_first(int* state, int* count, int* bits) {
  if (threadIdx.x == 0) {
    if (atomicCAS(state, 0, 1) == 0) {
      *count = 100;
      std::atomic_ref(*bits).store(0, std::memory_order_relaxed);
      atomicAdd(count, 1);
      __threadfence();
      atomicExch(state, 2);
    } else {
      while (atomicAdd(state, 0) != 2) {
      }
      __threadfence();
    }
  }
  __syncthreads();
  atomicAdd(count, 1);
  atomicOr(bits, 1 << blockIdx.x);
}
TEST_CASE("a counter that is set once, with a fence and an atomic for all who count") {
  in_all_orders([] {
    auto state = zeros<int>(1, "state");
    Buffer<int> count(1, "count"), bits(std::vector<int>(1, -1), "bits");
    launch(set_by_who_comes_first, 5, 64, 0, state.data(), count.data(), bits.data());
    CHECK(count.download()[0] == 101 + 5 * 64);
    CHECK(bits.download()[0] == 31);
  });
}

// As cuda::atomic_ref is used: plain accesses before and after, with barriers between.
__global__ void mixed_by_atomic_ref(int* out) {
  __shared__ int bins[32];
  const unsigned t = threadIdx.x;
  if (t < 32) bins[t] = 0;
  __syncthreads();
  const std::atomic_ref bin(bins[t * 7 % 32]);
  bin.fetch_add(1, std::memory_order_relaxed);
  bin.fetch_add(1, std::memory_order_acq_rel);
  __syncthreads();
  out[t] = bins[31 - t % 32] + std::atomic_ref(bins[t % 32]).load(std::memory_order_relaxed);
}
TEST_CASE("atomic references between plain accesses") {
  in_all_orders([] {
    Buffer<int> out(128, "out");
    launch(mixed_by_atomic_ref, 1, 128, 0, out.data());
    CHECK(out.download() == std::vector<int>(128, 16));
  });
}

// CUDA C++ Programming Guide, "Memory Fence Functions": the last block that is done adds up what the others left.
__device__ unsigned blocks_done = 0;
__global__ void last_block_adds_up(const int* in, int n, volatile int* partial, int* out) {
  __shared__ int part[64];
  __shared__ bool is_last;
  int mine = 0;
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += static_cast<int>(gridDim.x * blockDim.x))
    mine += in[i];
  part[threadIdx.x] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    int total = 0;
    for (int i = 0; i < 64; ++i) total += part[i];
    partial[blockIdx.x] = total;
    __threadfence();
    is_last = atomicInc(&blocks_done, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    int total = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) total += partial[b];
    *out = total;
    blocks_done = 0;
  }
}
TEST_CASE("the last block adds up, as in the Programming Guide") {
  in_all_orders([] {
    Buffer<int> in(iota(3000), "in"), partial(9, "partial"), out(1, "out");
    for (int again = 0; again < 2; ++again) {
      launch(last_block_adds_up, 9, 64, 0, in.data(), 3000, partial.data(), out.data());
      CHECK(out.download() == std::vector<int>{sum(iota(3000))});
    }
  });
}

// Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back": state in the upper bits, value in the lower.
__global__ void look_back_scan(const int* in, int* out, unsigned long long* state, unsigned* tickets) {
  constexpr unsigned long long kAggregate = 1ull << 32, kPrefix = 2ull << 32, kValue = kAggregate - 1;
  __shared__ unsigned tile;
  __shared__ int local[64];
  __shared__ int before;
  if (threadIdx.x == 0) tile = atomicAdd(tickets, 1u);  // tiles in the order in which blocks start, so that none waits in vain
  __syncthreads();
  local[threadIdx.x] = in[tile * 64 + threadIdx.x];
  for (unsigned step = 1; step < 64; step *= 2) {
    __syncthreads();
    const int add = threadIdx.x >= step ? local[threadIdx.x - step] : 0;
    __syncthreads();
    local[threadIdx.x] += add;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned long long total = static_cast<unsigned>(local[63]);
    int sum_before = 0;
    if (tile > 0) {
      atomicExch(&state[tile], kAggregate | total);
      for (unsigned look = tile - 1;; --look) {
        unsigned long long seen;
        do seen = atomicAdd(&state[look], 0ull);
        while (seen < kAggregate);
        sum_before += static_cast<int>(seen & kValue);
        if (seen >= kPrefix) break;
      }
    }
    atomicExch(&state[tile], kPrefix | (total + static_cast<unsigned>(sum_before)));
    before = sum_before;
  }
  __syncthreads();
  out[tile * 64 + threadIdx.x] = before + local[threadIdx.x];
}
TEST_CASE("a scan with decoupled look-back") {
  in_all_orders([] {
    const auto host = iota(64 * 20);
    Buffer<int> in(host, "in"), out(host.size(), "out");
    auto state = zeros<unsigned long long>(20, "state");
    auto tickets = zeros<unsigned>(1, "tickets");
    launch(look_back_scan, 20, 64, 0, in.data(), out.data(), state.data(), tickets.data());
    std::vector<int> expected(host.size());
    std::partial_sum(host.begin(), host.end(), expected.begin());
    CHECK(out.download() == expected);
  });
}

__global__ void slow_partners(unsigned* turn, unsigned* result, int work) {
  unsigned x = blockIdx.x;
  for (unsigned round = 0; round < 4; ++round) {
    while (atomicAdd(turn, 0u) != 2 * round + blockIdx.x) {
    }
    for (int i = 0; i < work; ++i) x = x * 1664525u + 1013904223u;  // long, and nothing of it is seen outside
    atomicAdd(turn, 1u);
  }
  result[blockIdx.x] = x;
}
TEST_CASE("a block that works long while another one waits is no deadlock") {
  in_all_orders([] {
    auto turn = zeros<unsigned>(1, "turn"), result = zeros<unsigned>(2, "result");
    launch(slow_partners, 2, 1, 0, turn.data(), result.data(), 400'000);
    CHECK(turn.download() == std::vector<unsigned>{8});
  });
}

// -------------------------------------------------------------------------------------------- within a block, by flags
__global__ void warp_specialised(const int* in, int* out, int tiles) {
  // Warp 0 fills a ring of two tiles, warp 1 empties it. They meet by counters in shared memory, not by __syncthreads.
  __shared__ int ring[2][32];
  __shared__ unsigned filled, emptied;
  if (threadIdx.x == 0) filled = emptied = 0;
  __syncthreads();
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (unsigned t = 0; t < static_cast<unsigned>(tiles); ++t) {
      while (t >= 2 && atomicAdd(&emptied, 0u) < 32 * (t - 1)) {
      }
      __threadfence_block();
      ring[t % 2][lane] = in[t * 32 + lane];
      __threadfence_block();
      atomicAdd(&filled, 1u);
    }
  } else {
    int total = 0;
    for (unsigned t = 0; t < static_cast<unsigned>(tiles); ++t) {
      while (atomicAdd(&filled, 0u) < 32 * (t + 1)) {
      }
      __threadfence_block();
      for (int i = 0; i < 32; ++i) total += ring[t % 2][i];
      __threadfence_block();
      atomicAdd(&emptied, 1u);
    }
    out[lane] = total;
  }
}
TEST_CASE("a producer and a consumer warp") {
  in_all_orders([] {
    Buffer<int> in(iota(32 * 6), "in"), out(32, "out");
    launch(warp_specialised, 1, 64, 0, in.data(), out.data(), 6);
    CHECK(out.download() == std::vector<int>(32, sum(iota(32 * 6))));
  });
}

__global__ void volatile_flag_in_the_block(int* out) {
  __shared__ int message;
  __shared__ int flag_storage;
  volatile int* const flag = &flag_storage;
  if (threadIdx.x == 0) *flag = 0;
  __syncthreads();
  if (threadIdx.x == 64) {
    message = 42;
    __threadfence_block();
    *flag = 1;
  } else {
    while (*flag == 0) {
    }
    __threadfence_block();
    out[threadIdx.x] = message;
  }
}
TEST_CASE("a volatile flag between the warps of a block") {
  in_all_orders([] {
    auto out = zeros<int>(96, "out");
    launch(volatile_flag_in_the_block, 1, 96, 0, out.data());
    auto expected = std::vector<int>(96, 42);
    expected[64] = 0;
    CHECK(out.download() == expected);
  });
}

}  // namespace

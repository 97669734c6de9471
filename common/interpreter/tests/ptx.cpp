/// @file
/// What the functions of common/device/ptx.cuh do, against what their documentation says. Their bits against a GPU's: golden.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

#include "common/device/ptx.cuh"
#include "common/interpreter/tests/matrices.h"
#include "common/interpreter/tests/orders.h"

using device::Buffer;
using device::launch;

namespace {

template <class T>
std::vector<T> iota(std::size_t n, T first = T(0)) {
  std::vector<T> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}

template <int kSize>
__device__ __forceinline__ void cp_async(void* shared, const void* global, int source_bytes) {
  if constexpr (kSize == 16)
    device::cp_async_cg_16(shared, global, source_bytes);
  else if constexpr (kSize == 8)
    device::cp_async_ca_8(shared, global, source_bytes);
  else
    device::cp_async_ca_4(shared, global, source_bytes);
}

// ----------------------------------------------------------------------------------------------------------- elect.sync
__global__ void count_elected(int* elected) {
  if (threadIdx.x / 32 != 1 && device::elect_sync()) atomicAdd(&elected[threadIdx.x / 32], 1);
  if (device::elect_sync()) atomicAdd(&elected[threadIdx.x / 32], 10);
}
TEST_CASE("elect.sync: one lane of each warp that comes, the same one each time") {
  in_all_orders([] {
    Buffer<int> elected(std::vector<int>(3), "elected");
    launch(count_elected, 1, 96, 0, elected.data());
    CHECK(elected.download() == std::vector<int>{11, 10, 11});
  });
}

// ------------------------------------------------------------------------------------------------------------- cp.async
// Thread i copies its chunk to every second place, i % (kSize + 1) bytes of it.
template <int kSize>
__global__ void copy_parts(const unsigned char* in, unsigned char* out) {
  alignas(16) __shared__ unsigned char place[64 * kSize];
  for (int i = threadIdx.x; i < 64 * kSize; i += 32) place[i] = 0xa5;
  __syncthreads();
  const int t = threadIdx.x;
  cp_async<kSize>(place + 2 * t * kSize, in + t * kSize, t % (kSize + 1));
  device::cp_async_commit_group();
  device::cp_async_wait_group<0>();
  __syncthreads();
  for (int i = threadIdx.x; i < 64 * kSize; i += 32) out[i] = place[i];
}
template <int kSize>
void test_copy_parts() {
  in_all_orders([] {
    const auto host = iota<unsigned char>(32 * kSize, 7);
    Buffer<unsigned char> in(host, "in"), out(64 * kSize, "out");
    launch(copy_parts<kSize>, 1, 32, 0, in.data(), out.data());
    std::vector<unsigned char> expected(64 * kSize, 0xa5);
    for (std::size_t t = 0; t < 32; ++t)
      for (std::size_t i = 0; i < kSize; ++i)
        expected[2 * t * kSize + i] = i < t % (kSize + 1) ? host[t * kSize + i] : static_cast<unsigned char>(0);
    CHECK(out.download() == expected);
  });
}
TEST_CASE("copies of 16, 8 and 4 bytes read source_bytes and fill with zeros, and touch nothing else") {
  test_copy_parts<16>();
  test_copy_parts<8>();
  test_copy_parts<4>();
}

__global__ void copy_whole(const int4* in, int4* out) {
  __shared__ int4 place[3 * 32];
  const int t = threadIdx.x;
  device::cp_async_cg_16(&place[t], &in[t]);
  device::cp_async_ca_8(&place[32 + t].x, &in[32 + t].x);
  device::cp_async_ca_8(&place[32 + t].z, &in[32 + t].z);
  device::cp_async_ca_4(&place[64 + t].x, &in[64 + t].x);
  device::cp_async_ca_4(&place[64 + t].y, &in[64 + t].y);
  device::cp_async_ca_4(&place[64 + t].z, &in[64 + t].z);
  device::cp_async_ca_4(&place[64 + t].w, &in[64 + t].w);
  device::cp_async_wait_all();
  for (int i = 0; i < 3; ++i) out[i * 32 + t] = place[i * 32 + t];  // its own: no barrier
}
TEST_CASE("without source_bytes, copies are whole") {
  in_all_orders([] {
    const auto host = iota<int>(3 * 32 * 4);
    Buffer<int> in(host, "in"), out(host.size(), "out");
    launch(copy_whole, 1, 32, 0, reinterpret_cast<const int4*>(in.data()), reinterpret_cast<int4*>(out.data()));
    CHECK(out.download() == host);
  });
}

__device__ int table[32];
__global__ void copy_from_variable(int* out) {
  __shared__ int place[32];
  device::cp_async_ca_4(&place[threadIdx.x], &table[threadIdx.x]);
  device::cp_async_wait_all();
  out[threadIdx.x] = place[threadIdx.x];
}
TEST_CASE("a __device__ variable is global memory") {
  in_all_orders([] {
    int multiples[32];
    for (int i = 0; i < 32; ++i) multiples[i] = 5 * i;
    device::copy_to_symbol(table, multiples);
    Buffer<int> out(32, "out");
    launch(copy_from_variable, 1, 32, 0, out.data());
    for (std::size_t i = 0; i < 32; ++i) CHECK(out.download()[i] == 5 * static_cast<int>(i));
  });
}

// What a thread sees that looks too early. Checked, this is an error (pipeline_bugs.cpp).
constexpr int kPoison = -1;
template <class Body>
void unchecked_in_all_orders(Body&& body) {
  const WithOptions unchecked([](interpreter::Options& o) { o.racecheck = o.initcheck = false; });
  in_all_orders(body);
}

// Each thread issues four copies in four groups and looks after each wait.
__global__ void look_after_each_wait(const int* in, int* out) {
  __shared__ int place[4][32];
  const int t = threadIdx.x;
  int seen = 0;
  const auto look = [&] {
    for (int i = 0; i < 4; ++i) out[(seen * 4 + i) * 32 + t] = place[i][t];
    ++seen;
  };
  for (int i = 0; i < 4; ++i) {
    place[i][t] = 99;
    device::cp_async_ca_4(&place[i][t], &in[i * 32 + t]);
    device::cp_async_commit_group();
  }
  look();
  device::cp_async_wait_group<5>(), look();
  device::cp_async_wait_group<4>(), look();
  device::cp_async_wait_group<3>(), look();
  device::cp_async_wait_group<1>(), look();
  device::cp_async_wait_group<2>(), look();
  device::cp_async_wait_group<0>(), look();
}
TEST_CASE("wait_group<N> waits for all groups but the last N; what has not been waited for is poison") {
  unchecked_in_all_orders([] {
    const auto host = iota<int>(4 * 32);
    Buffer<int> in(host, "in"), out(7 * 4 * 32, "out");
    launch(look_after_each_wait, 1, 32, 0, in.data(), out.data());
    const std::vector<int> result = out.download();
    const int landed[7] = {0, 0, 0, 1, 3, 3, 4};
    for (int look = 0; look < 7; ++look)
      for (int i = 0; i < 4; ++i)
        for (int t = 0; t < 32; ++t) {
          CAPTURE(look);
          CAPTURE(i);
          REQUIRE(result[static_cast<std::size_t>((look * 4 + i) * 32 + t)] == (i < landed[look] ? i * 32 + t : kPoison));
        }
  });
}

__global__ void uncommitted(const int* in, int* out) {
  __shared__ int place[2][32];
  const int t = threadIdx.x;
  device::cp_async_ca_4(&place[0][t], &in[t]);
  device::cp_async_commit_group();
  device::cp_async_ca_4(&place[1][t], &in[32 + t]);
  device::cp_async_wait_group<0>();
  out[t] = place[0][t], out[32 + t] = place[1][t];
  device::cp_async_wait_all();
  out[64 + t] = place[0][t], out[96 + t] = place[1][t];
}
TEST_CASE("wait_group<0> leaves out what is not committed, wait_all does not") {
  unchecked_in_all_orders([] {
    Buffer<int> in(iota<int>(64), "in"), out(128, "out");
    launch(uncommitted, 1, 32, 0, in.data(), out.data());
    std::vector<int> expected = iota<int>(32);
    expected.insert(expected.end(), 32, kPoison);
    for (int i = 0; i < 64; ++i) expected.push_back(i);
    CHECK(out.download() == expected);
  });
}

__global__ void empty_groups(const int* in, int* out) {
  __shared__ int place[32];
  const int t = threadIdx.x;
  device::cp_async_ca_4(&place[t], &in[t]);
  device::cp_async_commit_group();
  device::cp_async_commit_group();
  device::cp_async_wait_group<2>();
  out[t] = place[t];
  device::cp_async_commit_group();
  device::cp_async_wait_group<2>();
  out[32 + t] = place[t];
}
TEST_CASE("empty groups count") {
  unchecked_in_all_orders([] {
    Buffer<int> in(iota<int>(32), "in"), out(64, "out");
    launch(empty_groups, 1, 32, 0, in.data(), out.data());
    std::vector<int> expected(32, kPoison);
    for (int i = 0; i < 32; ++i) expected.push_back(i);
    CHECK(out.download() == expected);
  });
}

__global__ void groups_of_each_thread(const int* in, int* out) {
  __shared__ int place[64];
  const int t = threadIdx.x;
  device::cp_async_ca_4(&place[t], &in[t]);
  for (int i = 0; i < t % 4; ++i) device::cp_async_commit_group();
  device::cp_async_wait_group<1>();
  out[t] = place[t];
}
TEST_CASE("each thread counts its own groups") {
  unchecked_in_all_orders([] {
    Buffer<int> in(iota<int>(64), "in"), out(64, "out");
    launch(groups_of_each_thread, 1, 64, 0, in.data(), out.data());
    for (int t = 0; t < 64; ++t) CHECK(out.download()[static_cast<std::size_t>(t)] == (t % 4 >= 2 ? t : kPoison));
  });
}

__global__ void source_changes(int* in, int* out) {
  __shared__ int place[2][32];
  const int t = threadIdx.x;
  device::cp_async_ca_4(&place[0][t], &in[t]);
  device::cp_async_commit_group();
  device::cp_async_ca_4(&place[1][t], &in[t], 0);  // reads nothing
  device::cp_async_commit_group();
  in[t] = 1000 + t;
  device::cp_async_wait_group<0>();
  out[t] = place[0][t], out[32 + t] = place[1][t];
}
TEST_CASE("data are read at the wait: whoever overwrites them before, sees it in the result") {
  unchecked_in_all_orders([] {
    Buffer<int> in(iota<int>(32), "in"), out(64, "out");
    launch(source_changes, 1, 32, 0, in.data(), out.data());
    std::vector<int> expected = iota<int>(32, 1000);
    expected.insert(expected.end(), 32, 0);
    CHECK(out.download() == expected);
  });
}

__global__ void wait_for_nothing(int* out) {
  device::cp_async_wait_all();
  device::cp_async_wait_group<0>();
  device::cp_async_commit_group();
  device::cp_async_wait_group<0>();
  device::cp_async_wait_group<7>();
  out[threadIdx.x] = 1;
}
TEST_CASE("waits without copies") {
  in_all_orders([] {
    Buffer<int> out(40, "out");
    launch(wait_for_nothing, 1, 40, 0, out.data());
    CHECK(out.download() == std::vector<int>(40, 1));
  });
}

// ------------------------------------------------------------------------------------------------------------- ldmatrix
// Element (row, column) of matrix i is 64 i + 8 row + column. The rows lie scattered in shared memory; lanes whose addresses are
// not used give one that nobody may read.
template <int kCount, bool kTransposed>
__global__ void load_matrices(std::uint32_t* out) {
  alignas(16) __shared__ std::uint16_t rows[32][8];
  const int lane = threadIdx.x % 32;
  const auto place = [](int row) { return (row * 11 + 5) % 32; };
  if (threadIdx.x < 32)
    for (int i = 0; i < 8; ++i) rows[place(lane)][i] = static_cast<std::uint16_t>(8 * lane + i);
  __syncthreads();
  const void* const row = lane < 8 * kCount ? rows[place(lane)] : nullptr;
  std::uint32_t r[kCount];
  matrices::load<kCount, kTransposed>(r, row);
  for (int i = 0; i < kCount; ++i) out[threadIdx.x * kCount + i] = r[i];
}
template <int kCount, bool kTransposed>
void test_load_matrices() {
  in_all_orders([] {
    Buffer<std::uint32_t> out(64 * kCount, "out");
    launch(load_matrices<kCount, kTransposed>, 1, 64, 0, out.data());
    const auto result = out.download();
    for (unsigned t = 0; t < 64; ++t)
      for (unsigned i = 0; i < kCount; ++i) {
        const unsigned lane = t % 32, far = lane / 4, near = 2 * (lane % 4);
        const unsigned low = 64 * i + (kTransposed ? 8 * near + far : 8 * far + near), high = low + (kTransposed ? 8 : 1);
        CAPTURE(lane);
        CAPTURE(i);
        REQUIRE(result[t * kCount + i] == (low | high << 16));
      }
  });
}
TEST_CASE("ldmatrix: whose element goes where") {
  SUBCASE("x1") { test_load_matrices<1, false>(); }
  SUBCASE("x1.trans") { test_load_matrices<1, true>(); }
  SUBCASE("x2") { test_load_matrices<2, false>(); }
  SUBCASE("x2.trans") { test_load_matrices<2, true>(); }
  SUBCASE("x4") { test_load_matrices<4, false>(); }
  SUBCASE("x4.trans") { test_load_matrices<4, true>(); }
}

__global__ void one_row_for_all(std::uint32_t* out) {
  alignas(16) __shared__ std::uint16_t row[8];
  if (threadIdx.x < 8) row[threadIdx.x] = static_cast<std::uint16_t>(threadIdx.x);
  __syncwarp();
  std::uint32_t r[4];
  device::ldmatrix_x4(r, row);
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = r[i];
}
TEST_CASE("ldmatrix: all rows at one address") {
  in_all_orders([] {
    Buffer<std::uint32_t> out(128, "out");
    launch(one_row_for_all, 1, 32, 0, out.data());
    for (unsigned i = 0; i < 128; ++i) {
      const unsigned low = i / 4 % 4 * 2;
      REQUIRE(out.download()[i] == (low | (low + 1) << 16));
    }
  });
}

// ------------------------------------------------------------------------------------------------------------------ mma
template <class T>
std::uint16_t bits(int x) {
  if constexpr (std::is_same_v<T, __half>)
    return std::bit_cast<std::uint16_t>(__half(static_cast<float>(x)));
  else
    return std::bit_cast<std::uint16_t>(__nv_bfloat16(static_cast<float>(x)));
}
// Small integers, another matrix for each seed.
std::vector<int> integers(std::size_t n, unsigned seed) {
  std::vector<int> v(n);
  for (int& x : v) x = static_cast<int>((seed = seed * 1664525u + 1013904223u) >> 24) % 17 - 8;
  return v;
}
template <class T>
std::vector<std::uint16_t> bits(const std::vector<int>& v) {
  std::vector<std::uint16_t> result;
  for (const int x : v) result.push_back(bits<T>(x));
  return result;
}
// d (16 x 8) += a (16 x 16, row by row) · b (16 x 8, row by row)
void multiply(std::vector<int>& d, const std::vector<int>& a, const std::vector<int>& b) {
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t j = 0; j < 8; ++j)
      for (std::size_t k = 0; k < 16; ++k) d[i * 8 + j] += a[i * 16 + k] * b[k * 8 + j];
}

// A warp per product, `rounds` times added to the same accumulators; elements are fetched one by one as the documentation says.
template <class T>
__global__ void add_products(const std::uint16_t* a, const std::uint16_t* b, const float* c, float* d, int rounds) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = threadIdx.x / 32;
  a += warp * 256, b += warp * 128, c += warp * 128, d += warp * 128;
  const auto pair = [](std::uint16_t low, std::uint16_t high) { return low | static_cast<std::uint32_t>(high) << 16; };
  const auto pair_of_a = [&](int row, int col) { return pair(a[row * 16 + col], a[row * 16 + col + 1]); };
  const auto pair_of_b = [&](int row, int col) { return pair(b[row * 8 + col], b[(row + 1) * 8 + col]); };
  const std::uint32_t ra[4] = {pair_of_a(g, 2 * t), pair_of_a(g + 8, 2 * t), pair_of_a(g, 2 * t + 8), pair_of_a(g + 8, 2 * t + 8)};
  const std::uint32_t rb[2] = {pair_of_b(2 * t, g), pair_of_b(2 * t + 8, g)};
  float rd[4] = {c[g * 8 + 2 * t], c[g * 8 + 2 * t + 1], c[(g + 8) * 8 + 2 * t], c[(g + 8) * 8 + 2 * t + 1]};
  for (int i = 0; i < rounds; ++i) device::mma_m16n8k16<T>(rd, ra, rb);
  d[g * 8 + 2 * t] = rd[0], d[g * 8 + 2 * t + 1] = rd[1], d[(g + 8) * 8 + 2 * t] = rd[2], d[(g + 8) * 8 + 2 * t + 1] = rd[3];
}
template <class T>
void test_add_products() {
  in_all_orders([] {
    for (const int rounds : {0, 1, 3}) {
      std::vector<int> all_a, all_b, all_d, c;
      for (unsigned warp = 0; warp < 3; ++warp) {
        const auto a = integers(256, 1 + warp), b = integers(128, 11 + warp);
        auto d = integers(128, 21 + warp);
        c.insert(c.end(), d.begin(), d.end());
        for (int i = 0; i < rounds; ++i) multiply(d, a, b);
        all_a.insert(all_a.end(), a.begin(), a.end()), all_b.insert(all_b.end(), b.begin(), b.end());
        all_d.insert(all_d.end(), d.begin(), d.end());
      }
      Buffer<std::uint16_t> a(bits<T>(all_a), "a"), b(bits<T>(all_b), "b");
      Buffer<float> device_c(std::vector<float>(c.begin(), c.end()), "c"), d(c.size(), "d");
      launch(add_products<T>, 1, 96, 0, a.data(), b.data(), device_c.data(), d.data(), rounds);
      CHECK(d.download() == std::vector<float>(all_d.begin(), all_d.end()));
    }
  });
}
TEST_CASE("mma: products of small integers are exact and added to the accumulators") {
  SUBCASE("f16") { test_add_products<__half>(); }
  SUBCASE("bf16") { test_add_products<__nv_bfloat16>(); }
}

// Both ways to the same fragments: b lies column by column and is loaded as it is, or row by row and is transposed; a likewise.
template <class T, bool kATransposed, bool kBTransposed>
__global__ void multiply_from_shared(const std::uint16_t* a, const std::uint16_t* b, float* d) {
  alignas(16) __shared__ std::uint16_t sa[16][16], sb[128];
  const int lane = threadIdx.x, row = lane % 8, matrix = lane / 8;
  device::cp_async_cg_16(&sa[0][0] + lane * 8, a + lane * 8);
  if (lane < 16) device::cp_async_cg_16(sb + lane * 8, b + lane * 8);
  device::cp_async_wait_all();
  __syncwarp();
  std::uint32_t ra[4], rb[2];
  if constexpr (kATransposed)  // sa[k][m]
    device::ldmatrix_x4_trans(ra, &sa[matrix / 2 * 8 + row][matrix % 2 * 8]);
  else  // sa[m][k]
    device::ldmatrix_x4(ra, &sa[matrix % 2 * 8 + row][matrix / 2 * 8]);
  if constexpr (kBTransposed)  // 16 rows of 8
    device::ldmatrix_x2_trans(rb, sb + lane % 16 * 8);
  else  // 8 columns of 16
    device::ldmatrix_x2(rb, sb + row * 16 + matrix % 2 * 8);
  float rd[4] = {};
  device::mma_m16n8k16<T>(rd, ra, rb);
  for (int i = 0; i < 4; ++i) d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = rd[i];
}
template <class T, bool kATransposed, bool kBTransposed>
void test_multiply_from_shared() {
  in_all_orders([] {
    const auto a = integers(256, 5), b = integers(128, 6);
    std::vector<int> product(128, 0);
    multiply(product, a, b);
    const auto transposed = [](const std::vector<int>& v, std::size_t rows) {
      std::vector<int> t(v.size());
      const std::size_t cols = v.size() / rows;
      for (std::size_t i = 0; i < v.size(); ++i) t[i % cols * rows + i / cols] = v[i];
      return t;
    };
    Buffer<std::uint16_t> device_a(bits<T>(kATransposed ? transposed(a, 16) : a), "a"),
        device_b(bits<T>(kBTransposed ? b : transposed(b, 16)), "b");
    Buffer<float> d(128, "d");
    launch(multiply_from_shared<T, kATransposed, kBTransposed>, 1, 32, 0, device_a.data(), device_b.data(), d.data());
    CHECK(d.download() == std::vector<float>(product.begin(), product.end()));
  });
}
TEST_CASE("cp.async, ldmatrix and mma together, from all layouts") {
  SUBCASE("a, b") { test_multiply_from_shared<__half, false, false>(); }
  SUBCASE("a transposed") { test_multiply_from_shared<__nv_bfloat16, true, false>(); }
  SUBCASE("b transposed") { test_multiply_from_shared<__half, false, true>(); }
  SUBCASE("both") { test_multiply_from_shared<__nv_bfloat16, true, true>(); }
}

}  // namespace

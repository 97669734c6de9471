/// @file
/// Counters of hand-computed access patterns, per kernel and per source line.
///
/// A comment "// COUNT name" names a line; the test finds its number in its own source.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/device/bulk_copy.cuh"
#include "common/device/cluster.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/ptx.cuh"
#include "common/device/wgmma.cuh"
#include "common/interpreter/count/counters.h"
#include "common/interpreter/count/teamwork.h"
#include "common/interpreter/count/under_way.h"
#include "common/interpreter/instructions/mma_model.h"
#include "common/interpreter/interpreter.h"
#include "common/interpreter/tests/orders.h"

using device::Buffer;
using device::launch;
using interpreter::Counters;
using interpreter::KernelProfile;

namespace {

int line_of(const std::string& name) {
  std::ifstream source(__FILE__);
  std::string line;
  for (int number = 1; std::getline(source, line); ++number)
    if (line.size() >= name.size() + 9 && line.compare(line.size() - name.size() - 9, std::string::npos, "// COUNT " + name) == 0)
      return number;
  FAIL("no line is marked ", name);
  return 0;
}

// The profile of the one launch that `start` makes.
template <class Start>
KernelProfile profile_of(Start&& start) {
  interpreter::clear_profiles();
  start();
  REQUIRE(interpreter::profiles().size() == 1);
  return interpreter::profiles().front();
}

Counters at_line(const KernelProfile& profile, const std::string& name) {
  for (const auto& line : profile.lines)
    if (line.line == line_of(name) && line.file.find("counters.cpp") != std::string::npos) return line.counters;
  return {};
}

// clang copies a struct straight from where it comes from: the load then belongs to the line of the store.
#ifdef __clang__
constexpr bool kCopiesAtTheStore = true;
#else
constexpr bool kCopiesAtTheStore = false;
#endif
Counters copied_at(const KernelProfile& profile, const std::string& load, const std::string& store) {
  Counters counters = at_line(profile, load);
  if (kCopiesAtTheStore) counters += at_line(profile, store);
  return counters;
}

std::string text(const Counters::Global& g) {
  return std::to_string(g.requests) + " requests, " + std::to_string(g.sectors) + " sectors, " + std::to_string(g.bytes) + " bytes";
}
std::string text(const Counters::Shared& s) {
  return std::to_string(s.requests) + " requests, " + std::to_string(s.wavefronts) + " wavefronts of " +
         std::to_string(s.ideal_wavefronts) + ", " + std::to_string(s.bytes) + " bytes";
}
std::string text(const Counters& c) {
  return text(c.global_load) + "; " + text(c.global_store) + "; " + text(c.global_atomic) + "; " + text(c.shared_load) + "; " +
         text(c.shared_store) + "; " + text(c.shared_atomic);
}
std::string global(std::uint64_t requests, std::uint64_t sectors, std::uint64_t bytes) {
  return text(Counters::Global{requests, sectors, bytes});
}
std::string shared(std::uint64_t requests, std::uint64_t wavefronts, std::uint64_t ideal, std::uint64_t bytes) {
  return text(Counters::Shared{requests, wavefronts, ideal, bytes});
}

// ------------------------------------------------------------------------------------------------------ global patterns
template <class T>
__global__ void copy(const T* in, T* out, int stride, int offset, unsigned lanes) {
  if (!(lanes >> threadIdx.x % 32 & 1)) return;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * stride + offset;
  const T value = in[i];  // COUNT copy load
  out[i] = value;         // COUNT copy store
}

struct GlobalPattern {
  const char* what;
  unsigned size;  // bytes per lane
  unsigned blocks, threads;
  int stride, offset;  // elements
  unsigned lanes;      // of each warp
  std::uint64_t requests, sectors;
};
constexpr unsigned kAllLanes = 0xffffffffu;
const GlobalPattern kGlobalPatterns[] = {
    {"contiguous", 1, 1, 32, 1, 0, kAllLanes, 1, 1},
    {"contiguous", 2, 1, 32, 1, 0, kAllLanes, 1, 2},
    {"contiguous", 4, 1, 32, 1, 0, kAllLanes, 1, 4},
    {"contiguous", 8, 1, 32, 1, 0, kAllLanes, 1, 8},
    {"contiguous", 16, 1, 32, 1, 0, kAllLanes, 1, 16},
    {"one element off the sector", 1, 1, 32, 1, 1, kAllLanes, 1, 2},
    {"one element off the sector", 2, 1, 32, 1, 1, kAllLanes, 1, 3},
    {"one element off the sector", 4, 1, 32, 1, 1, kAllLanes, 1, 5},
    {"one element off the sector", 8, 1, 32, 1, 1, kAllLanes, 1, 9},
    {"one element off the sector", 16, 1, 32, 1, 1, kAllLanes, 1, 17},
    {"a whole sector further", 4, 1, 32, 1, 8, kAllLanes, 1, 4},
    {"stride 2", 4, 1, 32, 2, 0, kAllLanes, 1, 8},
    {"stride 4", 4, 1, 32, 4, 0, kAllLanes, 1, 16},
    {"stride 8", 4, 1, 32, 8, 0, kAllLanes, 1, 32},
    {"stride 8, across sectors never", 4, 1, 32, 8, 7, kAllLanes, 1, 32},
    {"stride 32", 4, 1, 32, 32, 0, kAllLanes, 1, 32},
    {"stride 2", 16, 1, 32, 2, 0, kAllLanes, 1, 32},
    {"backwards", 4, 1, 32, -1, 31, kAllLanes, 1, 4},
    {"every second lane", 4, 1, 32, 1, 0, 0x55555555u, 1, 4},
    {"one lane", 4, 1, 32, 1, 0, 0x00000100u, 1, 1},
    {"the first and the last lane", 4, 1, 32, 1, 0, 0x80000001u, 1, 2},
    {"20 threads", 4, 1, 20, 1, 0, kAllLanes, 1, 3},
    {"33 threads", 4, 1, 33, 1, 0, kAllLanes, 2, 5},
    {"100 threads", 4, 1, 100, 1, 0, kAllLanes, 4, 13},
    {"five blocks of two warps", 4, 5, 64, 1, 0, kAllLanes, 10, 40},
    {"seven blocks of 20 threads", 4, 7, 20, 1, 0, kAllLanes, 7, 7 * 3},  // 80 bytes each, from multiples of 16
};

template <class T>
void check(const GlobalPattern& p) {
  const int last = static_cast<int>(p.blocks * p.threads - 1) * p.stride + p.offset;
  const std::size_t n = static_cast<std::size_t>(std::max(last, p.offset)) + 1;
  Buffer<T> in(n, "in"), out(n, "out");
  in.fill(0);
  const auto profile =
      profile_of([&] { launch(copy<T>, p.blocks, p.threads, 0, in.data(), out.data(), p.stride, p.offset, p.lanes); });
  std::uint64_t active = 0;
  for (unsigned t = 0; t < p.threads; ++t) active += p.lanes >> t % 32 & 1;
  const std::string expected = global(p.requests, p.sectors, active * p.blocks * sizeof(T));
  INFO(std::string(p.what), ", ", p.size, " bytes");
  CHECK(text(copied_at(profile, "copy load", "copy store").global_load) == expected);
  CHECK(text(at_line(profile, "copy store").global_store) == expected);
  CHECK(text(profile.total.global_load) == expected);
  CHECK(text(profile.total.global_store) == expected);
}
// Lines of 128 bytes, which need not be those that the sectors fill.
template <class T>
void check_lines(int stride, int offset, std::uint64_t lines) {
  Buffer<T> in(33 * 40, "in"), out(33 * 40, "out");
  in.fill(0);
  const auto profile = profile_of([&] { launch(copy<T>, 3, 32, 0, in.data(), out.data(), stride, offset, kAllLanes); });
  // Each of the blocks further on by 32 elements.
  CHECK(profile.total.global_load.lines == lines);
  CHECK(profile.total.global_store.lines == lines);
}
TEST_CASE("global loads and stores: lines") {
  check_lines<float>(1, 0, 3 * 1);
  check_lines<float>(1, 1, 3 * 2);
  check_lines<float>(2, 0, 3 * 2);
  check_lines<std::uint8_t>(1, 0, 3 * 1);
  check_lines<double>(1, 0, 3 * 2);
  check_lines<float4>(1, 0, 3 * 4);
  check_lines<float4>(1, 4, 3 * 5);
  check_lines<float>(10, 0, 3 * 10);
  check_lines<float>(10, 30, 3 * 11);  // ends in the line after
}
TEST_CASE("global loads and stores") {
  in_all_orders([] {
    for (const GlobalPattern& p : kGlobalPatterns) switch (p.size) {
        case 1: check<unsigned char>(p); break;
        case 2: check<unsigned short>(p); break;
        case 4: check<float>(p); break;
        case 8: check<float2>(p); break;
        case 16: check<float4>(p); break;
      }
  });
}

__global__ void broadcast(const float* in, float* out) {
  out[threadIdx.x] = in[blockIdx.x];  // COUNT broadcast
}
TEST_CASE("all lanes load the same word") {
  Buffer<float> in(std::vector<float>(4, 1.0f), "in"), out(64, "out");
  const auto profile = profile_of([&] { launch(broadcast, 1, 64, 0, in.data(), out.data()); });
  CHECK(text(at_line(profile, "broadcast").global_load) == global(2, 2, 256));
  CHECK(text(at_line(profile, "broadcast").global_store) == global(2, 8, 256));  // one line may hold both
}

// ------------------------------------------------------------------------------------------------------ shared patterns
template <class T>
__global__ void through_shared(const T* in, T* out, int stride, int offset, int wrap, unsigned lanes) {
  T* const memory = device::dynamic_smem<T>();
  const int lane = static_cast<int>(threadIdx.x), i = lane % wrap * stride + lane / wrap + offset;
  if (!(lanes >> lane & 1)) return;
  const T mine = in[lane];
  memory[i] = mine;  // COUNT shared store
  __syncwarp(lanes);
  const T other = memory[i];  // COUNT shared load
  out[lane] = other;          // COUNT shared load's store
}

// Calibrated against a GPU: see golden.cpp. Ideal: the wavefronts that as many bytes take without a conflict.
struct SharedPattern {
  const char* what;
  unsigned size;
  int stride, offset, wrap;  // elements: lane l takes l % wrap * stride + l / wrap + offset
  unsigned lanes;
  std::uint64_t wavefronts, ideal;
};
const SharedPattern kSharedPatterns[] = {
    {"contiguous bytes", 1, 1, 0, 32, kAllLanes, 1, 1},
    {"contiguous halves", 2, 1, 0, 32, kAllLanes, 1, 1},
    {"contiguous", 4, 1, 0, 32, kAllLanes, 1, 1},
    {"contiguous, one word off", 4, 1, 1, 32, kAllLanes, 1, 1},
    {"stride 2: two lanes a bank", 4, 2, 0, 32, kAllLanes, 2, 1},
    {"stride 3: no conflict", 4, 3, 0, 32, kAllLanes, 1, 1},
    {"stride 4: four lanes a bank", 4, 4, 0, 32, kAllLanes, 4, 1},
    {"stride 8: eight lanes a bank", 4, 8, 0, 32, kAllLanes, 8, 1},
    {"stride 16", 4, 16, 0, 32, kAllLanes, 16, 1},
    {"stride 32: one bank", 4, 32, 0, 32, kAllLanes, 32, 1},
    {"stride 33: the padded column", 4, 33, 0, 32, kAllLanes, 1, 1},
    {"two rows of 16, padded to 32", 4, 32, 0, 16, kAllLanes, 16, 1},
    {"stride 32, every second lane", 4, 32, 0, 32, 0x55555555u, 16, 1},
    {"stride 2, a half warp", 4, 2, 0, 32, 0x0000ffffu, 1, 1},
    {"one lane", 4, 32, 0, 32, 0x00000010u, 1, 1},
    {"8 bytes, contiguous", 8, 1, 0, 32, kAllLanes, 2, 2},
    {"8 bytes, stride 2", 8, 2, 0, 32, kAllLanes, 4, 2},
    {"8 bytes, stride 16", 8, 16, 0, 32, kAllLanes, 32, 2},
    {"8 bytes, stride 17", 8, 17, 0, 32, kAllLanes, 2, 2},
    {"8 bytes, a half warp", 8, 1, 0, 32, 0x0000ffffu, 1, 1},
    {"16 bytes, contiguous", 16, 1, 0, 32, kAllLanes, 4, 4},
    {"16 bytes, stride 2", 16, 2, 0, 32, kAllLanes, 8, 4},
    {"16 bytes, stride 4", 16, 4, 0, 32, kAllLanes, 16, 4},
    {"16 bytes, stride 8: one bank group", 16, 8, 0, 32, kAllLanes, 32, 4},
    {"16 bytes, stride 9: padded rows", 16, 9, 0, 32, kAllLanes, 4, 4},
    {"16 bytes, a quarter warp", 16, 1, 0, 32, 0x000000ffu, 1, 1},
};
template <class T>
void check(const SharedPattern& p) {
  Buffer<T> in(32, "in"), out(32, "out");
  in.fill(0);
  const auto profile = profile_of(
      [&] { launch(through_shared<T>, 1, 32, 34 * 33 * sizeof(T), in.data(), out.data(), p.stride, p.offset, p.wrap, p.lanes); });
  const std::uint64_t bytes = static_cast<std::uint64_t>(__builtin_popcount(p.lanes)) * sizeof(T);
  INFO(std::string(p.what));
  CHECK(text(at_line(profile, "shared store").shared_store) == shared(1, p.wavefronts, p.ideal, bytes));
  CHECK(text(copied_at(profile, "shared load", "shared load's store").shared_load) == shared(1, p.wavefronts, p.ideal, bytes));
  CHECK(text(profile.total.shared_load) == shared(1, p.wavefronts, p.ideal, bytes));
}
TEST_CASE("shared loads and stores") {
  in_all_orders([] {
    for (const SharedPattern& p : kSharedPatterns) switch (p.size) {
        case 1: check<unsigned char>(p); break;
        case 2: check<unsigned short>(p); break;
        case 4: check<float>(p); break;
        case 8: check<float2>(p); break;
        case 16: check<float4>(p); break;
      }
  });
}

__global__ void shared_broadcast(const float* in, float* out) {
  __shared__ float row[4][32];
  row[threadIdx.x / 32][threadIdx.x % 32] = in[threadIdx.x];
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 32; ++k) sum += row[threadIdx.x / 32][k];  // COUNT broadcast shared
  out[threadIdx.x] = sum;
}
TEST_CASE("a broadcast is one wavefront") {
  in_all_orders([] {
    Buffer<float> in(std::vector<float>(128, 1.0f), "in"), out(128, "out");
    const auto profile = profile_of([&] { launch(shared_broadcast, 1, 128, 0, in.data(), out.data()); });
    CHECK(text(at_line(profile, "broadcast shared").shared_load) == shared(4 * 32, 4 * 32, 4 * 32, 4 * 32 * 128));
    CHECK(profile.static_shared_bytes == 512);
  });
}

// --------------------------------------------------------------------------------------------- divergence and unrolling
__global__ void triangle(const int* in, int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  int sum = 0;
  for (int k = 0; k <= lane; ++k) sum += in[k * 32 + lane];  // COUNT triangle
  out[lane] = sum;                                           // COUNT after the triangle
}
TEST_CASE("a loop that lanes leave one by one") {
  in_all_orders([] {
    Buffer<int> in(std::vector<int>(1024, 1), "in"), out(32, "out");
    const auto profile = profile_of([&] { launch(triangle, 1, 32, 0, in.data(), out.data()); });
    // Round k has lanes k to 31: 4 - k / 8 sectors.
    CHECK(text(at_line(profile, "triangle").global_load) == global(32, 8 * (4 + 3 + 2 + 1), 4 * (32 * 33 / 2)));
    CHECK(text(at_line(profile, "after the triangle").global_store) == global(1, 4, 128));
  });
}

__global__ void two_branches(const int* in, int* out) {
  const unsigned lane = threadIdx.x;
  int value;
  if (lane % 4 == 0)
    value = in[lane];  // COUNT then
  else
    value = -in[64 + lane];  // COUNT else
  out[lane] = value;         // COUNT joined
}
TEST_CASE("two branches are two requests, and what follows is one") {
  in_all_orders([] {
    Buffer<int> in(std::vector<int>(128, 1), "in"), out(32, "out");
    const auto profile = profile_of([&] { launch(two_branches, 1, 32, 0, in.data(), out.data()); });
    CHECK(text(at_line(profile, "then").global_load) == global(1, 4, 32));
    CHECK(text(at_line(profile, "else").global_load) == global(1, 4, 96));
    CHECK(text(at_line(profile, "joined").global_store) == global(1, 4, 128));
  });
}

__global__ void nested_loops(const int* in, int* out, int rows) {
  const int lane = static_cast<int>(threadIdx.x);
  int sum = 0;
  for (int r = 0; r < rows; ++r) {
    for (int k = 0; k <= (lane + r) % 4; ++k) sum += in[k * 32 + lane];  // COUNT inner
    sum *= in[r];                                                        // COUNT outer
  }
  out[lane] = sum;
}
TEST_CASE("lanes meet again behind an inner loop") {
  in_all_orders([] {
    Buffer<int> in(std::vector<int>(128, 1), "in"), out(32, "out");
    const auto profile = profile_of([&] { launch(nested_loops, 1, 32, 0, in.data(), out.data(), 6); });
    // In each of 6 rounds, inner round k has a fourth of the lanes less than the one before, spread over all four sectors.
    CHECK(text(at_line(profile, "inner").global_load) == global(6 * 4, 6 * 4 * 4, 6 * (32 + 24 + 16 + 8) * 4));
    CHECK(text(at_line(profile, "outer").global_load) == global(6, 6, 6 * 128));
  });
}

__global__ void unrolled(const float* in, float* out) {
  float sum = 0;
#pragma unroll
  for (unsigned k = 0; k < 4; ++k) sum += in[4 * threadIdx.x + k];  // COUNT unrolled
  out[threadIdx.x] = sum;
}
__global__ void written_out(const float* in, float* out) {
  const float* const mine = in + 4 * threadIdx.x;
  const float a = mine[0];  // COUNT first
  const float b = mine[1];  // COUNT second
  out[threadIdx.x] = a + b;
}
TEST_CASE("scalar loads of neighbours stay scalar") {
  in_all_orders([] {
    Buffer<float> in(std::vector<float>(128, 1.0f), "in"), out(32, "out");
    const auto loop = profile_of([&] { launch(unrolled, 1, 32, 0, in.data(), out.data()); });
    CHECK(text(at_line(loop, "unrolled").global_load) == global(4, 64, 512));
    const auto two = profile_of([&] { launch(written_out, 1, 32, 0, in.data(), out.data()); });
    CHECK(text(at_line(two, "first").global_load) == global(1, 16, 128));
    CHECK(text(at_line(two, "second").global_load) == global(1, 16, 128));
  });
}

// ------------------------------------------------------------------------------------------- vectors that compilers split
struct alignas(16) FourInts {
  int a, b, c, d;
};
struct alignas(8) Complex {
  float re, im;
};
struct alignas(4) FourBytes {
  unsigned char r, g, b, a;
};
template <class T>
__global__ void copy_structs(const T* in, T* out) {
  __shared__ T tile[32];
  tile[threadIdx.x] = in[threadIdx.x];  // COUNT struct in
  __syncthreads();
  const T other = tile[31 - threadIdx.x];  // COUNT struct from shared
  out[threadIdx.x] = other;                // COUNT struct out
}
template <class T>
void check_copy() {
  in_all_orders([] {
    Buffer<T> in(32, "in"), out(32, "out");
    in.fill(1);
    const auto profile = profile_of([&] { launch(copy_structs<T>, 1, 32, 0, in.data(), out.data()); });
    const std::uint64_t passes = sizeof(T) <= 4 ? 1 : sizeof(T) / 4;
    CHECK(text(at_line(profile, "struct in").global_load) == global(1, sizeof(T), 32 * sizeof(T)));
    CHECK(text(at_line(profile, "struct in").shared_store) == shared(1, passes, passes, 32 * sizeof(T)));
    CHECK(text(copied_at(profile, "struct from shared", "struct out").shared_load) == shared(1, passes, passes, 32 * sizeof(T)));
    CHECK(text(at_line(profile, "struct out").global_store) == global(1, sizeof(T), 32 * sizeof(T)));
  });
}
TEST_CASE_TEMPLATE("a vector or an aligned struct is one access", T, float4, uint4, double2, int2, float2, ushort4, uchar4,
                   FourInts, Complex, FourBytes) {
  check_copy<T>();
}
// These have an operator= that copies member by member. clang's checks of the alignment stand between the members.
TEST_CASE_TEMPLATE("a pair of halves is one access" * doctest::skip(kCopiesAtTheStore), T, __half2, __nv_bfloat162) {
  check_copy<T>();
}

__global__ void use_parts(const float4* in, const __half2* halves, float* out) {
  const float4 v = in[threadIdx.x];       // COUNT float4 in parts
  const __half2 h = halves[threadIdx.x];  // COUNT half2 in parts
  out[threadIdx.x] = v.x * v.y + v.z * v.w + __half2float(h.x) * __half2float(h.y);
}
TEST_CASE("a vector whose parts are used one by one is one access, too") {
  in_all_orders([] {
    Buffer<float4> in(32, "in");
    Buffer<__half2> halves(32, "halves");
    Buffer<float> out(32, "out");
    in.fill(0), halves.fill(0);
    const auto profile = profile_of([&] { launch(use_parts, 1, 32, 0, in.data(), halves.data(), out.data()); });
    CHECK(text(at_line(profile, "float4 in parts").global_load) == global(1, 16, 512));
    CHECK(text(at_line(profile, "half2 in parts").global_load) == global(1, 4, 128));
  });
}

__global__ void float3s(const float3* in, float3* out) {
  const float3 v = in[threadIdx.x];                     // COUNT float3 load
  out[threadIdx.x] = make_float3(v.x + v.y, v.y, v.z);  // COUNT float3 store
}
TEST_CASE("a float3 is three accesses") {
  in_all_orders([] {
    Buffer<float3> in(32, "in"), out(32, "out");
    in.fill(0);
    const auto profile = profile_of([&] { launch(float3s, 1, 32, 0, in.data(), out.data()); });
    // 384 bytes are 12 sectors, and each of the three touches all of them.
    CHECK(text(at_line(profile, "float3 load").global_load) == global(3, 36, 384));
    CHECK(text(at_line(profile, "float3 store").global_store) == global(3, 36, 384));
  });
}

// ---------------------------------------------------------------------------------------------- what is counted, and how
__constant__ float table[32];
__device__ float variable;
__global__ void not_global(const float* in, float* out, int k) {
  float local[32];
  for (int i = 0; i < 32; ++i) local[i] = table[i] + static_cast<float>(k);
  out[threadIdx.x] = local[(k + static_cast<int>(threadIdx.x)) % 32] + table[k];  // COUNT only this store
  if (threadIdx.x == 0) variable = in[0];                                         // COUNT a variable
}
TEST_CASE("constants, parameters and local arrays are not global memory, variables are") {
  Buffer<float> in(std::vector<float>{1}, "in"), out(32, "out");
  const auto profile = profile_of([&] { launch(not_global, 1, 32, 0, in.data(), out.data(), 3); });
  float value = 0;
  device::copy_from_symbol(value, variable);
  CHECK(value == 1);
  CHECK(text(at_line(profile, "only this store").global_load) == global(0, 0, 0));
  CHECK(text(at_line(profile, "only this store").global_store) == global(1, 4, 128));
  CHECK(text(at_line(profile, "a variable").global_load) == global(1, 1, 4));
  CHECK(text(at_line(profile, "a variable").global_store) == global(1, 1, 4));
  CHECK(text(profile.total.global_load) == global(1, 1, 4));
}

__global__ void read_modify_write(float* data) {
  data[threadIdx.x] += 1.0f;  // COUNT read-modify-write
}
TEST_CASE("+= is a load and a store") {
  Buffer<float> data(std::vector<float>(32, 1.0f), "data");
  const auto profile = profile_of([&] { launch(read_modify_write, 1, 32, 0, data.data()); });
  CHECK(text(at_line(profile, "read-modify-write").global_load) == global(1, 4, 128));
  CHECK(text(at_line(profile, "read-modify-write").global_store) == global(1, 4, 128));
}

__global__ void atomics(unsigned* spread, unsigned* one) {
  __shared__ unsigned bins[32];
  bins[threadIdx.x] = 0;
  __syncwarp();
  atomicAdd(&spread[threadIdx.x], 1u);  // COUNT spread atomics
  atomicAdd(one, 1u);                   // COUNT one atomic
  atomicAdd(&bins[threadIdx.x], 1u);    // COUNT shared atomics
}
TEST_CASE("atomics have counters of their own") {
  in_all_orders([] {
    Buffer<unsigned> spread(std::vector<unsigned>(32, 0), "spread"), one(std::vector<unsigned>(1, 0), "one");
    const auto profile = profile_of([&] { launch(atomics, 1, 32, 0, spread.data(), one.data()); });
    CHECK(text(at_line(profile, "spread atomics").global_atomic) == global(1, 4, 128));
    CHECK(text(at_line(profile, "one atomic").global_atomic) == global(1, 1, 128));
    CHECK(text(at_line(profile, "shared atomics").shared_atomic) == shared(1, 1, 1, 128));
    CHECK(text(profile.total.global_load) == global(0, 0, 0));
  });
}

__device__ float fetch(const float* p) {
  return p[threadIdx.x];  // COUNT fetch
}
__global__ void calls(const float* a, const float* b, float* out) {
  const float x = fetch(a);
  const float y = __ldg(b + threadIdx.x);  // COUNT ldg
  __stcs(out + threadIdx.x, x + y);        // COUNT stcs
}
TEST_CASE("an access counts for the line that the user wrote") {
  Buffer<float> a(std::vector<float>(32, 1.0f), "a"), b(std::vector<float>(32, 1.0f), "b"), out(32, "out");
  const auto profile = profile_of([&] { launch(calls, 1, 32, 0, a.data(), b.data(), out.data()); });
  CHECK(text(at_line(profile, "fetch").global_load) == global(1, 4, 128));
  CHECK(text(at_line(profile, "ldg").global_load) == global(1, 4, 128));
  CHECK(text(at_line(profile, "stcs").global_store) == global(1, 4, 128));
}

template <int kTile>
__global__ void tiled_sum(const float* in, float* out, int n) {
  __shared__ float tile[kTile];
  float sum = 0;
  for (int first = 0; first < n; first += kTile) {
    const int i = first + static_cast<int>(threadIdx.x);
    tile[threadIdx.x] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += tile[(k + static_cast<int>(threadIdx.x) * 2) % kTile];
    __syncthreads();
  }
  out[blockIdx.x * kTile + threadIdx.x] = sum;
}
TEST_CASE("profiles") {
  Buffer<float> in(std::vector<float>(100, 1.0f), "in"), out(192, "out");
  interpreter::clear_profiles();
  CHECK(interpreter::profiles().empty());
  launch(tiled_sum<64>, 3, 64, 128, in.data(), out.data(), 100);
  Buffer<float> data(std::vector<float>(32, 1.0f), "data");
  launch(read_modify_write, dim3(1, 1, 1), dim3(32, 1, 1), 0, data.data());
  REQUIRE(interpreter::profiles().size() == 2);
  const KernelProfile& p = interpreter::profiles()[0];
  CHECK(p.kernel.find("tiled_sum<64>") != std::string::npos);
  CHECK(p.grid.x == 3);
  CHECK(p.block.x == 64);
  CHECK(p.dynamic_shared_bytes == 128);
  CHECK(p.static_shared_bytes == 256);
  CHECK(p.seconds > 0);
  CHECK(p.l2.reads == 0);
  CHECK(text(p.total.global_load) == global(3 * 4, 3 * 13, 3 * 400));  // 100 elements: 3 full warps and 4 lanes
  CHECK(interpreter::profiles()[1].kernel.find("read_modify_write") != std::string::npos);
  CHECK(interpreter::profiles()[1].block.x == 32);

  CHECK(std::is_sorted(p.lines.begin(), p.lines.end(),
                       [](auto& a, auto& b) { return std::pair(a.file, a.line) < std::pair(b.file, b.line); }));
  Counters sum;
  for (const auto& line : p.lines) sum += line.counters;
  CHECK(text(sum) == text(p.total));

  const std::string table_text = to_text(p);
  for (const char* const part : {"tiled_sum<64>", "counters.cpp:", "global load", "shared load", "sectors/request", "total"})
    CHECK_MESSAGE(table_text.find(part) != std::string::npos, "should contain ", std::string(part));

  std::vector<std::pair<std::string, double>> metrics;
  for (const auto& m : interpreter::metrics(p.total)) metrics.emplace_back(m.name, m.value);
  const auto value = [&](const std::string& name) {
    for (const auto& [n, v] : metrics)
      if (n == name) return v;
    return -1.0;
  };
  CHECK(value("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum") == 12);
  CHECK(value("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum") == 39);
  CHECK(value("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio") == 3.25);
  CHECK(value("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum") == 6);
  CHECK(value("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum") == double(p.total.shared_store.wavefronts));

  interpreter::clear_profiles();
  CHECK(interpreter::profiles().empty());
}
TEST_CASE("neither order nor workers nor checks change a counter") {
  Buffer<float> in(std::vector<float>(1000, 1.0f), "in"), out(64 * 9, "out");
  const auto count = [&] { return text(profile_of([&] { launch(tiled_sum<64>, 9, 64, 0, in.data(), out.data(), 1000); }).total); };
  const std::string reference = count();
  in_all_orders([&] {
    for (const int workers : {1, 2, 5}) {
      interpreter::options().workers = workers;
      CHECK(count() == reference);
    }
  });
  const WithOptions unchecked([](auto& o) { o.memcheck = o.racecheck = o.initcheck = false; });
  CHECK(count() == reference);
}
TEST_CASE("counters can be switched off") {
  const WithOptions off([](auto& o) { o.count = false; });
  Buffer<float> data(std::vector<float>(32, 1.0f), "data");
  const auto profile = profile_of([&] { launch(read_modify_write, 1, 32, 0, data.data()); });
  CHECK(profile.lines.empty());
  CHECK(text(profile.total) == text(Counters{}));
}

// ----------------------------------------------------------------------------------------------- cp.async, ldmatrix, mma
struct CopyPattern {
  const char* what;
  int size;           // bytes per lane
  int row, from_row;  // lanes per row of a tile, and the bytes from one row to the next in global memory ...
  int to_row;         // ... and in shared memory
  bool swizzle;       // 16-byte piece i of row r lies at i ^ r % 8
  unsigned lanes;     // that read something; the others fill with zeros
  int source_bytes;   // of each
  std::uint64_t sectors, wavefronts, ideal, conflicts;
};
const CopyPattern kCopyPatterns[] = {
    {"contiguous", 4, 32, 0, 0, false, kAllLanes, 4, 4, 1, 1, 0},
    {"contiguous", 8, 32, 0, 0, false, kAllLanes, 8, 8, 2, 2, 0},
    {"contiguous", 16, 32, 0, 0, false, kAllLanes, 16, 16, 8, 8, 0},
    {"four rows of 128 bytes", 16, 8, 1024, 128, false, kAllLanes, 16, 16, 8, 8, 0},
    {"four rows of 128 bytes, swizzled", 16, 8, 1024, 128, true, kAllLanes, 16, 16, 8, 8, 0},
    {"four rows of 128 bytes, padded", 16, 8, 1024, 144, false, kAllLanes, 16, 4 + 8 + 4 + 8, 4 + 1 + 3 + 2 + 4, 8, 0},
    {"eight rows of 64 bytes", 16, 4, 1024, 64, false, kAllLanes, 16, 16, 16, 8, 4},
    {"a column of 16 bytes, written to a row", 16, 1, 128, 16, false, kAllLanes, 16, 32, 64, 8, 28},
    {"a row, written to a column of 16 bytes", 16, 1, 16, 128, false, kAllLanes, 16, 32, 64, 8, 28},
    {"a row, written to a swizzled column", 16, 1, 16, 128, true, kAllLanes, 16, 32, 36, 8, 0},
    {"a row, written to a column", 4, 1, 4, 128, false, kAllLanes, 4, 4, 32, 1, 31},
    {"half a row, then zeros", 16, 32, 0, 0, false, 0x0000ffffu, 16, 8, 6, 6, 0},
    {"half of each lane's bytes", 16, 32, 0, 0, false, kAllLanes, 8, 16, 8, 8, 0},
    {"nothing but zeros", 16, 32, 0, 0, false, kAllLanes, 0, 0, 4, 4, 0},
    {"nothing but zeros", 4, 32, 0, 0, false, kAllLanes, 0, 0, 1, 1, 0},
};

template <int kSize>
__global__ void copies(CopyPattern p, const unsigned char* in, float* out) {
  auto* s = device::dynamic_smem<unsigned char>();
  const int lane = threadIdx.x % 32, row = lane / p.row, column = lane % p.row * kSize;
  unsigned char* to = s + row * p.to_row + (p.swizzle ? column ^ row % 8 * 16 : column);
  const unsigned char* from = in + row * p.from_row + column;
  const int bytes = p.lanes >> lane & 1 ? p.source_bytes : 0;
  if constexpr (kSize == 4)
    device::cp_async_ca_4(to, from, bytes);  // COUNT copies of 4
  else if constexpr (kSize == 8)
    device::cp_async_ca_8(to, from, bytes);  // COUNT copies of 8
  else
    device::cp_async_cg_16(to, from, bytes);  // COUNT copies of 16
  device::cp_async_commit_group();
  device::cp_async_wait_group<0>();
  __syncthreads();
  out[threadIdx.x] = *reinterpret_cast<const float*>(to);
}
TEST_CASE("copies in the background") {
  Buffer<unsigned char> in(32 * 1024, "in");
  Buffer<float> out(32, "out");
  in.fill(0);
  for (const CopyPattern& p : kCopyPatterns) {
    INFO(std::string(p.what), ", ", p.size, " bytes");
    const auto kernel = p.size == 4 ? copies<4> : p.size == 8 ? copies<8> : copies<16>;
    const auto profile = profile_of([&] { launch(kernel, 1, 32, 8192, p, in.data(), out.data()); });
    const Counters c = at_line(profile, "copies of " + std::to_string(p.size));
    std::uint64_t readers = 0;
    for (int lane = 0; lane < 32; ++lane) readers += p.source_bytes && p.lanes >> lane & 1;
    CHECK(text(c.copy_read) == global(readers != 0, p.sectors, readers * static_cast<unsigned>(p.source_bytes)));
    CHECK(text(c.copy_write) == shared(1, p.wavefronts, p.ideal, 32u * static_cast<unsigned>(p.size)));
    CHECK(c.copy_conflicts == p.conflicts);
    CHECK(text(profile.total.global_load) == global(0, 0, 0));
    CHECK(text(profile.total.shared_store) == shared(0, 0, 0, 0));
  }
}
__global__ void predicated_copies(unsigned lanes, const uint4* in, uint4* out) {
  auto* s = device::dynamic_smem<uint4>();
  device::cp_async_cg_16_if(lanes >> threadIdx.x & 1, s + threadIdx.x, in + threadIdx.x);  // COUNT predicated copies
  device::cp_async_wait_all();
  out[threadIdx.x] = s[threadIdx.x];
}
TEST_CASE("copies with a predicate: a wavefront for each 128 bytes, whatever they write") {
  Buffer<uint4> in(32, "in"), out(32, "out");
  in.fill(0);
  for (const unsigned lanes : {kAllLanes, 0x0000ffffu, 0u}) {
    const auto profile = profile_of([&] { launch(predicated_copies, 1, 32, 512, lanes, in.data(), out.data()); });
    const Counters c = at_line(profile, "predicated copies");
    const auto readers = static_cast<unsigned>(std::popcount(lanes));
    CHECK(text(c.copy_read) == global(readers != 0, readers / 2, readers * 16));
    CHECK(text(c.copy_write) == shared(1, 4, 4, 512));
    CHECK(c.copy_conflicts == 0);
  }
}
TEST_CASE("lines of the copies that several warps make") {
  Buffer<unsigned char> in(32 * 1024, "in");
  Buffer<float> out(128, "out");
  in.fill(0);
  const WithOptions unchecked([](auto& o) { o.racecheck = false; });  // all warps copy to the same place
  const auto profile = profile_of([&] { launch(copies<16>, 3, 128, 8192, kCopyPatterns[4], in.data(), out.data()); });
  const Counters c = at_line(profile, "copies of 16");
  CHECK(text(c.copy_read) == global(12, 12 * 16, 12 * 512));
  CHECK(c.copy_read.lines == 12 * 4);
  CHECK(text(c.copy_write) == shared(12, 12 * 8, 12 * 8, 12 * 512));
}

template <int kCount>
__global__ void matrices(int row_bytes, bool swizzle, unsigned* out) {
  auto* s = device::dynamic_smem<unsigned char>();
  for (unsigned i = threadIdx.x; i < 8192; i += blockDim.x) s[i] = 0;
  __syncthreads();
  const int row = threadIdx.x % 8, matrix = threadIdx.x / 8;  // side by side
  const void* address = s + row * row_bytes + (swizzle ? matrix ^ row : matrix) * 16;
  uint32_t r[kCount];
  if constexpr (kCount == 4)
    device::ldmatrix_x4(r, address);  // COUNT ldmatrix x4
  else if constexpr (kCount == 2)
    device::ldmatrix_x2_trans(r, address);  // COUNT ldmatrix x2
  else
    device::ldmatrix_x1(r, address);  // COUNT ldmatrix x1
  out[threadIdx.x] = r[kCount - 1];
}
TEST_CASE("matrices from shared memory: swizzled against unswizzled") {
  Buffer<unsigned> out(32, "out");
  struct {
    int row_bytes;
    bool swizzle;
    std::uint64_t of_ideal;
  } const rows[] = {{16, false, 1}, {64, false, 4}, {80, false, 1}, {128, false, 8}, {128, true, 1}, {144, false, 1}};
  for (const auto& r : rows) {
    INFO("rows of ", r.row_bytes, " bytes", r.swizzle ? ", swizzled" : "");
    const auto counted = [&](auto kernel, const char* line) {
      const auto profile = profile_of([&] { launch(kernel, 1, 32, 8192, r.row_bytes, r.swizzle, out.data()); });
      CHECK(text(profile.total.shared_load) == shared(0, 0, 0, 0));
      return text(at_line(profile, line).matrix_load);
    };
    CHECK(counted(matrices<4>, "ldmatrix x4") == shared(1, 4 * r.of_ideal, 4, 512));
    CHECK(counted(matrices<2>, "ldmatrix x2") == shared(1, 2 * r.of_ideal, 2, 256));
    CHECK(counted(matrices<1>, "ldmatrix x1") == shared(1, r.of_ideal, 1, 128));
  }
}

template <class T>
__global__ void products(int rounds, float* out) {
  float d[4] = {}, e[4] = {};
  const uint32_t a[4] = {}, b[2] = {};
  device::mma_m16n8k16<T>(d, a, b);                                   // COUNT one mma
  for (int i = 0; i < rounds; ++i) device::mma_m16n8k16<T>(e, a, b);  // COUNT some mma
  if (threadIdx.x / 32 % 2 == 0) device::mma_m16n8k16<T>(d, a, b);    // COUNT every second warp's mma
  out[blockIdx.x * blockDim.x + threadIdx.x] = d[0] + e[1];
}
TEST_CASE("products of matrices") {
  Buffer<float> out(256, "out");
  for (const bool is_half : {true, false}) {
    const auto profile =
        profile_of([&] { launch(is_half ? products<__half> : products<__nv_bfloat16>, 2, 128, 0, 5, out.data()); });
    CHECK(at_line(profile, "one mma").mma == 8);
    CHECK(at_line(profile, "some mma").mma == 40);
    CHECK(at_line(profile, "every second warp's mma").mma == 4);
    CHECK(profile.total.mma == 52);
    CHECK(profile.most_mma_of_block == 26);
    CHECK(profile.most_mma_of_warp == 7);
  }
}

__global__ void sums_of_ones(float* out) {
  float d[4] = {};
  const uint32_t one = 0x3c003c00, a[4] = {one, one, one, one}, b[2] = {one, one};
  device::mma_m16n8k16<__half>(d, a, b);
  out[threadIdx.x] = d[0];
}
TEST_CASE("mma that adds nothing, or a number") {
  Buffer<float> out(32, "out");
  interpreter::options().mma = false, interpreter::added_without_product() = 3;
  launch(sums_of_ones, 1, 32, 0, out.data());
  CHECK(out.download() == std::vector<float>(32, 3));
  interpreter::added_without_product() = 0;
  for (const bool adds : {false, true}) {
    interpreter::options().mma = adds;
    launch(sums_of_ones, 1, 32, 0, out.data());
    CHECK(out.download()[7] == (adds ? 16 : 0));
  }
}

// Whoever reads shared memory between has something to do while his load is under way.
__global__ void store_what_was_loaded(const float* in, float* out, bool reads, bool loads_behind) {
  __shared__ float s[2][64];
  s[0][threadIdx.x] = static_cast<float>(threadIdx.x);
  for (int i = 0; i < 5; ++i) {
    float x = loads_behind ? 0 : in[threadIdx.x];
    if (reads) out[64 * blockIdx.x + threadIdx.x] = s[0][threadIdx.x];
    if (loads_behind) x = in[threadIdx.x];
    s[1][threadIdx.x] = x;
  }
}
TEST_CASE("stores of what a warp has just loaded") {
  Buffer<float> in(std::vector<float>(64, 1), "in"), out(3 * 64, "out");
  interpreter::count_each_access = true;
  for (const auto& [reads, loads_behind] : {std::pair{false, false}, {true, false}, {true, true}}) {
    interpreter::each_under_way().forget();
    launch(store_what_was_loaded, 3, 64, 0, in.data(), out.data(), reads, loads_behind);
    CHECK(interpreter::each_under_way().straight_stores == (reads && !loads_behind ? 0 : 3 * 2 * 5));
    CHECK(interpreter::each_under_way().late_loads == (loads_behind ? 3 * 2 * 5 : 0));
  }
  interpreter::count_each_access = false;
}

__global__ void wait_in_many_ways(const float* in, float* out) {
  __shared__ float s[96];
  const unsigned thread = threadIdx.x, warp = thread / 32;
  s[thread] = in[thread];
  __syncthreads();
  device::barrier_sync(0, 96);  // __syncthreads() by its number
  device::barrier_sync(2, 96);  // all wait, at another number
  if (warp == 0)
    device::barrier_arrive(0, 96);
  else
    device::barrier_sync(0, 96);
  if (warp > 0) device::barrier_sync(1, 64);
  float sum = 0;
  for (unsigned i = 0; i <= 4 * warp; ++i) sum += s[i];
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();
  out[96 * blockIdx.x + thread] = sum + (blockIdx.x % 2 ? in[96 + thread] : 0);
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();
}
TEST_CASE("where threads wait, and who does most") {
  Buffer<float> in(std::vector<float>(192, 1.0f), "in"), out(4 * 96, "out");
  const interpreter::Teamwork& all = interpreter::teamwork();
  for (const bool counts : {true, false}) {
    interpreter::options().count = interpreter::count_each_access = counts;
    interpreter::teamwork().forget();
    const auto profile = profile_of(
        [&] { device::launch_clusters(wait_in_many_ways, 4, 96, dim3(2), 0, static_cast<const float*>(in.data()), out.data()); });
    interpreter::options().count = true, interpreter::count_each_access = false;
    const unsigned blocks = counts ? 4 : 0;
    CHECK(all.block_meetings == 2 * blocks);
    CHECK(all.cluster_meetings == 2 * blocks);
    CHECK(profile.total.barriers == 4 * blocks);
    CHECK(all.named == 3 * blocks);
    CHECK(all.named_of_all == blocks);
    CHECK(all.loaded_by_block == (counts ? 2 * 96 * 4 : 0));
    CHECK(all.loaded_by_warp == (counts ? 2 * 32 * 4 : 0));
    CHECK(all.shared_bytes_of_warp == (counts ? 9 * 32 * 4 : 0));
  }
}

__global__ void meet(int rounds, unsigned* out) {
  for (int i = 0; i < rounds; ++i) __syncthreads();  // COUNT barrier
  if (threadIdx.x < 2) out[2 * blockIdx.x + threadIdx.x] = atomicAdd(&out[4], 1) < 9;
}
TEST_CASE("barriers, and who stores what") {
  Buffer<unsigned> out(5, "out");
  out.fill(0);
  std::map<std::pair<std::uint64_t, std::ptrdiff_t>, int> stored;  // by block and element
  interpreter::options().workers = 1;
  interpreter::options().on_store = [&](std::uint64_t block, const void* element) {
    ++stored[{block, static_cast<const unsigned*>(element) - out.data()}];
  };
  const auto profile = profile_of([&] { launch(meet, 2, 96, 0, 5, out.data()); });
  interpreter::options().on_store = {}, interpreter::options().workers = 0;
  CHECK(at_line(profile, "barrier").barriers == 10);
  CHECK(profile.total.barriers == 10);
  CHECK(stored == decltype(stored){{{0, 0}, 1}, {{0, 1}, 1}, {{1, 2}, 1}, {{1, 3}, 1}, {{0, 4}, 2}, {{1, 4}, 2}});
}

__global__ void meet_the_cluster(int rounds) {
  if (threadIdx.x == 64) return;
  for (int i = 0; i < rounds; ++i) {
    device::barrier_cluster_arrive();  // COUNT cluster barrier
    device::barrier_cluster_wait();
  }
}
TEST_CASE("barriers of clusters, once for each of their blocks") {
  const auto profile = profile_of([&] { device::launch_clusters(meet_the_cluster, 4, 96, 2, 0, 5); });
  CHECK(at_line(profile, "cluster barrier").barriers == 20);
  CHECK(profile.total.barriers == 20);
}

__global__ void one_lane_arrives_and_all_load(const float* in, float* out) {
  __shared__ device::Mbarrier barrier;
  if (threadIdx.x == 0) {
    device::mbarrier_init(&barrier, 3);
    device::fence_mbarrier_init();
    device::mbarrier_arrive(&barrier);
  }
  float sum = 0;
  for (int i = 0; i < 16; ++i) sum += in[32 * i + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) device::mbarrier_arrive_expect_tx(&barrier, 0);
  for (int i = 0; i < 16; ++i) sum += in[32 * i + threadIdx.x];
  out[threadIdx.x] = sum;
}
TEST_CASE("a lane that makes a barrier, or arrives there, loads with the others") {
  Buffer<float> in(32 * 16, "in"), out(32, "out");
  in.fill(1);
  in_all_orders([&] {
    const KernelProfile p = profile_of([&] { launch(one_lane_arrives_and_all_load, 1, 32, 0, in.data(), out.data()); });
    CHECK(p.total.global_load.requests == 32);
    CHECK(p.total.global_load.sectors == 32 * 4);
  });
}
TEST_CASE("copies, matrices and products: ncu's names, and the table for people") {
  interpreter::clear_profiles();
  Buffer<unsigned char> in(32 * 1024, "in");
  Buffer<float> out(256, "out");
  Buffer<unsigned> words(32, "words");
  in.fill(0);
  launch(copies<16>, 1, 32, 8192, kCopyPatterns[7], in.data(), out.data());
  launch(matrices<4>, 1, 32, 8192, 64, false, words.data());
  launch(products<__half>, 1, 32, 0, 5, out.data());
  Counters total;
  for (const KernelProfile& profile : interpreter::profiles()) total += profile.total;
  const auto metric = [&](const std::string& name) {
    for (const auto& m : interpreter::metrics(total))
      if (m.name == name) return m.value;
    return -1.0;
  };
  CHECK(metric("smsp__inst_executed_op_ldgsts.sum") == 1);
  CHECK(metric("sm__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts.sum") == 1);
  CHECK(metric("sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum") == 32);
  CHECK(metric("sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum") == 64);
  CHECK(metric("sm__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum") == 28);
  CHECK(metric("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum") == 0);
  CHECK(metric("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum") == 1);  // ncu's global loads include cp.async
  CHECK(metric("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum") == 32);
  CHECK(metric("smsp__inst_executed_op_ldsm.sum") == 1);
  CHECK(metric("sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum") == 16);
  CHECK(metric("sm__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum") == 12);
  CHECK(metric("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum") == 4 + 16);  // and its shared loads include ldmatrix
  CHECK(metric("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum") == 3 + 12);
  CHECK(metric("sm__inst_executed_pipe_tensor_op_hmma.sum") == 7);

  std::string table;
  for (const KernelProfile& profile : interpreter::profiles()) table += to_text(profile);
  const auto has_row = [&](const std::string& line, const char* what, const char* amount) {
    const std::string where = "tests/counters.cpp:" + std::to_string(line_of(line));
    for (std::size_t at = table.find(where); at != std::string::npos; at = table.find(where, at + 1)) {
      const std::string row = table.substr(at, table.find('\n', at) - at);
      if (row.find(what) != std::string::npos && row.find(amount) != std::string::npos) return true;
    }
    return false;
  };
  INFO(table);
  CHECK(has_row("copies of 16", "cp.async read", " 32 sectors"));
  CHECK(has_row("copies of 16", "cp.async write", " 64 wavefronts    8.00 of ideal"));
  CHECK(has_row("ldmatrix x4", "ldmatrix", " 16 wavefronts    4.00 of ideal"));
  CHECK(has_row("some mma", "mma", " 5"));
}

// -------------------------------------------------------------------------------------------------- bulk copies, wgmma
// A warpgroup multiplies two boxes, and stores a box and a range of bytes. The left half of the first box is outside of the tensor.
__global__ void hopper(const __grid_constant__ device::TensorMap map, unsigned char* out, int x) {
  unsigned char* const boxes = device::dynamic_smem();
  __shared__ device::Mbarrier full;
  if (threadIdx.x == 0) {
    device::mbarrier_init(&full, 1);
    device::fence_mbarrier_init();
    device::mbarrier_arrive_expect_tx(&full, 2 * 8192);
    device::cp_async_bulk_tensor_2d(boxes, &map, x, 0, &full);                                         // COUNT box outside
    for (int i = 1; i < 2; ++i) device::cp_async_bulk_tensor_2d(boxes + 8192 * i, &map, 8, 0, &full);  // COUNT box inside
  }
  __syncthreads();
  device::mbarrier_wait_parity(&full, 0);
  float d[32] = {};
  const auto descriptor = [&](int i) { return device::wgmma_descriptor(boxes + 8192 * i, device::Swizzle::k128, 1, 1024); };
  device::wgmma_fence();
  for (int i = 0; i < 3; ++i) device::wgmma_m64k16<__half, 64>(d, descriptor(0), descriptor(1), true);  // COUNT wgmma
  device::wgmma_commit_group();
  device::wgmma_wait_group<0>();
  if (threadIdx.x == 0) {
    device::cp_async_bulk_tensor_2d_store(&map, 96, 0, boxes);           // COUNT box store
    device::cp_async_bulk_store(out, boxes + (x < 0 ? 0 : 8192), 1008);  // COUNT range store
    device::cp_async_bulk_commit_group();
    device::cp_async_bulk_wait_group<0>();
  }
}
TEST_CASE("bulk copies and wgmma") {
  Buffer<__half> tensor(64 * 128, "tensor");
  const Buffer<unsigned char> out(1008, "out");
  tensor.fill(0);
  const auto map = device::make_tensor_map<__half>({.data = tensor.data(),
                                                    .rows = 64,
                                                    .columns = 128,
                                                    .row_stride = 128,
                                                    .box_rows = 64,
                                                    .box_columns = 64,
                                                    .swizzle = device::Swizzle::k128});
  interpreter::teamwork().forget();
  const KernelProfile profile = profile_of([&] { launch(hopper, 1, 128, 2 * 8192, map, out.data(), -32); });
  CHECK(interpreter::teamwork().stored_again == 1);
  // 64 rows of 128 bytes: 4 sectors each, or 5 where they begin in the middle of one. What is outside is loaded, but not stored.
  CHECK(text(at_line(profile, "box outside").bulk_read) == global(1, 256, 8192));
  CHECK(text(at_line(profile, "box inside").bulk_read) == global(1, 320, 8192));
  CHECK(text(at_line(profile, "box store").bulk_write) == global(1, 128, 4096));
  CHECK(text(at_line(profile, "range store").bulk_write) == global(1, 32, 1008));
  // Per instruction and warp, 16 rows of a; b's 64 rows once: of 32 bytes each.
  CHECK(text(at_line(profile, "wgmma").wgmma) == shared(12, 96, 96, 12288));
  CHECK(text(profile.total.global_load) == global(0, 0, 0));
  const std::string table = to_text(profile);
  INFO(table);
  CHECK(table.find("bulk read                 1          320 sectors     320.00 sectors/request") != std::string::npos);
  CHECK(table.find("only zeros") == std::string::npos);
  CHECK(table.find("bulk write                1          128 sectors     128.00 sectors/request") != std::string::npos);
  CHECK(table.find("wgmma                    12           96 wavefronts    1.00 of ideal") != std::string::npos);

  interpreter::teamwork().forget();
  const KernelProfile outside = profile_of([&] { launch(hopper, 1, 128, 2 * 8192, map, out.data(), 128); });
  CHECK(interpreter::teamwork().stored_again == 0);
  CHECK(at_line(outside, "box outside").bulk_zeros == 1);
  CHECK(outside.total.bulk_zeros == 1);
  CHECK(to_text(outside).find("only zeros                1\n") != std::string::npos);
}

// ----------------------------------------------------------------------------------------------------------- L2 model
__global__ void read_chunks(const float4* in, float* out, unsigned chunks) {
  const float4 v = in[(blockIdx.x % chunks) * blockDim.x + threadIdx.x];
  if (v.x + v.y + v.z + v.w == 1) out[0] = v.x;
}
__global__ void write_chunks(float4* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = make_float4(1, 2, 3, 4); }
__global__ void one_word_per_sector(const float* in, float* out, unsigned words) {
  const unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) % words;
  if (in[8 * std::size_t(i)] == 1) out[0] = 1;
}
constexpr unsigned kChunks = 40, kThreads = 128, kChunkSectors = kThreads / 2, kSectors = kChunks * kChunkSectors;
// `blocks` blocks that read one of kChunks chunks each, again and again from the first.
interpreter::L2Result l2_of_reads(unsigned blocks, unsigned chunks = kChunks) {
  Buffer<float4> data(kChunks * kThreads, "data");
  Buffer<float> out(1, "out");
  data.fill(0);
  return profile_of([&] { launch(read_chunks, blocks, kThreads, 0, data.data(), out.data(), chunks); }).l2;
}
interpreter::L2Result l2_of_writes(unsigned blocks, unsigned threads) {
  Buffer<float4> data(std::size_t(blocks) * threads, "data");
  return profile_of([&] { launch(write_chunks, blocks, threads, 0, data.data()); }).l2;
}
TEST_CASE("the L2 model") {
  const WithOptions modelled([](auto& o) { o.l2_model = true, o.gpu = "4090"; });  // a cache of one part, no coalescers
  for (const interpreter::Order order : {interpreter::Order::kForward, interpreter::Order::kReverse, interpreter::Order::kRandom}) {
    interpreter::options().order = order;
    const auto once = l2_of_reads(kChunks);
    CHECK(once.requested == kSectors);
    CHECK(once.reads == kSectors);
    CHECK(once.hit_rate() == 0);
    CHECK(once.fabric_reads == 0);
    CHECK(once.dram_read_bytes == kSectors * 32);
    CHECK(once.writes == 0);

    const auto twice = l2_of_reads(2 * kChunks);
    CHECK(twice.requested == 2 * kSectors);
    CHECK(twice.reads == 2 * kSectors);
    CHECK(twice.hit_rate() == 0.5);
    CHECK(twice.fabric_reads == 0);
    CHECK(twice.dram_read_bytes == kSectors * 32);

    const auto written = l2_of_writes(kChunks, kThreads);
    CHECK(written.reads == 0);
    CHECK(written.writes == kSectors);
    CHECK(written.dirty_bytes == kSectors * 32);
    CHECK(written.dram_write_bytes == 0);  // the kernel ends before
    CHECK(written.dram_read_bytes == 0);   // whole sectors need not be read first
  }
}
TEST_CASE("the L2 model: two parts fetch what is at home in the other one, once") {
  const WithOptions modelled([](auto& o) { o.l2_model = true, o.gpu = "a100"; });
  const auto once = l2_of_reads(kChunks);
  CHECK(once.hit_rate() == 0);
  CHECK(once.fabric_reads > kSectors / 4);
  CHECK(once.fabric_reads < kSectors * 3 / 4);
  CHECK(once.dram_read_bytes == kSectors * 32);
  for (const unsigned times : {2u, 4u}) {  // the first two blocks of a chunk run at different parts
    const auto more = l2_of_reads(times * kChunks);
    CHECK(more.reads == times * kSectors);
    CHECK(more.fabric_reads == kSectors);
    CHECK(more.dram_read_bytes == kSectors * 32);
    CHECK(more.reads - more.read_hits >= kSectors);
    CHECK(more.reads - more.read_hits <= 2 * kSectors);
  }
}
TEST_CASE("the L2 model: what the SMs of a cluster read together is read once") {
  const WithOptions modelled([](auto& o) { o.l2_model = true, o.gpu = "h200"; });  // 8 clusters
  const auto together = l2_of_reads(66, 1);
  CHECK(together.requested == 66 * kChunkSectors);
  CHECK(together.reads == 8 * kChunkSectors);
  CHECK(together.dram_read_bytes == kChunkSectors * 32);
  const auto apart = l2_of_reads(2 * kChunks);  // the blocks of a chunk run in different clusters
  CHECK(apart.requested == 2 * kSectors);
  CHECK(apart.reads == 2 * kSectors);
}
// Asks L2 for a box, once or twice, and then copies it or not.
__global__ void box_through_l2(const __grid_constant__ device::TensorMap map, int prefetches, bool copies) {
  alignas(128) __shared__ float box[32 * 32];
  __shared__ device::Mbarrier full;
  if (threadIdx.x != 0) return;
  device::mbarrier_init(&full, 1);
  device::fence_mbarrier_init();
  for (int i = 0; i < prefetches; ++i) device::cp_async_bulk_prefetch_tensor_2d(&map, 0, 0);
  if (!copies) return;
  device::mbarrier_arrive_expect_tx(&full, sizeof box);
  device::cp_async_bulk_tensor_2d(box, &map, 0, 0, &full);
  device::mbarrier_wait_parity(&full, 0);
}
TEST_CASE("the L2 model: what was prefetched is not fetched again") {
  const WithOptions modelled([](auto& o) { o.l2_model = true, o.gpu = "h200"; });
  constexpr unsigned kBytes = 32 * 32 * 4;
  Buffer<float> in(32 * 32, "in");
  in.fill(0);
  const auto map = device::make_tensor_map<float>(
      {.data = in.data(), .rows = 32, .columns = 32, .row_stride = 32, .box_rows = 32, .box_columns = 32});
  const auto l2_of = [&](int prefetches, bool copies) {
    return profile_of([&] { launch(box_through_l2, 1, 32, 0, map, prefetches, copies); }).l2;
  };
  const auto fetched = l2_of(1, false), copied = l2_of(0, true), both = l2_of(2, true);
  CHECK(fetched.dram_read_bytes == kBytes);
  CHECK(copied.dram_read_bytes == kBytes);
  CHECK(both.dram_read_bytes == kBytes);
  CHECK(both.requested == 3 * copied.requested);
}
TEST_CASE("a launch under ncu's names: blocks, waves, room for warps, and what the L2 model says") {
  const WithOptions modelled([](auto& o) { o.l2_model = true, o.gpu = "h200"; });
  constexpr unsigned kBlocks = 3 * 132, kWords = kBlocks * 1024;
  Buffer<float> data(std::size_t{kWords} * 8, "data"), out(1, "out");
  data.fill(0);
  const KernelProfile p = profile_of([&] { launch(one_word_per_sector, kBlocks, 1024, 0, data.data(), out.data(), kWords); });
  std::map<std::string, double> value;
  for (const interpreter::Metric& metric : interpreter::metrics(p)) value[metric.name] = metric.value;
  CHECK(value["launch__grid_size"] == kBlocks);
  CHECK(value["launch__block_size"] == 1024);
  CHECK(value["launch__waves_per_multiprocessor"] == 1.5);  // an SM has room for 2048 threads
  CHECK(value["sm__maximum_warps_per_active_cycle_pct"] == 100);
  CHECK(value["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == kWords / 32);
  CHECK(value["lts__t_sectors_srcunit_tex_op_read.sum"] == double(p.l2.reads));
  CHECK(value["lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"] == double(p.l2.read_hits));
  CHECK(value["dram__bytes_read.sum"] == 32.0 * kWords);
}
TEST_CASE("the L2 model: it gives the same again") {
  const WithOptions modelled([](auto& o) { o.l2_model = true; });
  const auto first = l2_of_reads(7 * kChunks), second = l2_of_reads(7 * kChunks);
  CHECK(first.reads == second.reads);
  CHECK(first.read_hits == second.read_hits);
  CHECK(first.fabric_reads == second.fabric_reads);
}
TEST_CASE("the L2 model: only what still is in the cache is not fetched, or written, again") {
  const WithOptions modelled([](auto& o) { o.l2_model = true, o.gpu = "a100", o.racecheck = false; });
  constexpr std::uint64_t kMiB = 1 << 20, kCache = 40 * kMiB;
  Buffer<float> out(1, "out");
  const auto read_twice = [&](unsigned mebibytes) {
    const unsigned words = mebibytes * kMiB / 32;
    Buffer<float> data(std::size_t(words) * 8, "data");
    data.fill(0);
    return profile_of([&] { launch(one_word_per_sector, 2 * words / 1024, 1024, 0, data.data(), out.data(), words); }).l2;
  };
  CHECK(read_twice(16).dram_read_bytes < 17 * kMiB);               // twice 16 MiB with the copies: some sets of the cache overflow
  CHECK(read_twice(64).dram_read_bytes > 2 * 64 * kMiB * 9 / 10);  // least recently used: what is needed next has just been dropped

  const auto written = l2_of_writes(64 * kMiB / 16 / 1024, 1024);
  CHECK(written.dirty_bytes + written.dram_write_bytes == 64 * kMiB);
  CHECK(written.dirty_bytes <= kCache);
  CHECK(written.dirty_bytes > kCache / 2);  // in the other half are copies of what is at home in the other part
}

}  // namespace

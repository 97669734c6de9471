/// @file
/// Pointers that leave the variable that they were made from, __restrict__ that is not true, and what host and kernel take of each
/// other. Planted bugs, and beside each kind the correct programs that look like it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "common/device/device.cuh"
#include "common/interpreter/tests/orders.h"
#include "common/interpreter/tests/planted.h"

using device::Buffer;
using device::launch;
using interpreter::Check;
using planted::Bug;

namespace {

#ifdef __clang__
#define NOIPA __attribute__((noinline))
constexpr bool kClang = true;  // it follows no pointers, and cannot tell the host's variables; its copies throw nothing
#else
#define NOIPA __attribute__((noipa))
constexpr bool kClang = false;
#endif

void must_be_caught(const Bug& bug, const std::function<void()>& start) { planted::must_be_caught(bug, start, __FILE__); }

template <class T>
Buffer<T> filled(std::size_t n, T value, const char* name) {
  return Buffer<T>(std::vector<T>(n, value), name);
}

// -------------------------------------------------------------------------------------------- where a pointer came from
__device__ float sum_of_five(const float* x) {
  float sum = 0;
  for (int i = 0; i < 5; ++i) sum += x[i];  // BUG: the arrays have 4
  return sum;
}
__global__ void local_array_by_pointer(const float* in, float* out) {
  float a[4], b[4];
  for (int i = 0; i < 4; ++i) a[i] = in[i], b[i] = in[i + 4];
  out[threadIdx.x] = sum_of_five(a) + sum_of_five(b);
}
__global__ void local_array_written_by_pointer(float* out) {
  float a[4] = {}, b[4] = {};
  float* const p = a;
  p[threadIdx.x % 8] = 1;  // BUG
  out[threadIdx.x] = a[0] + b[threadIdx.x % 4];
}
__global__ void shared_array_of_pages(float* out) {
  __shared__ float first[1024];
  __shared__ float second[1024];
  for (int i = threadIdx.x; i < 1024; i += 32) first[i] = 1, second[i] = 2;
  __syncthreads();
  const float* const p = first;
  out[threadIdx.x] = p[1023 - 31 + threadIdx.x + 1] + second[threadIdx.x];  // BUG: first[1024]
}
__device__ int first_table[256];
__device__ int second_table[256];
__global__ void device_array_of_its_alignment(int* out) {
  const int* const p = first_table;
  out[threadIdx.x] = p[threadIdx.x + 225] + second_table[threadIdx.x];  // BUG: first_table[256]
}
TEST_CASE("a pointer that is followed leaves its variable, for another one's place" * doctest::skip(kClang)) {
  must_be_caught(
      {.kernel = "local_array_by_pointer", .check = Check::kMemcheck, .says = {"left its variable"}, .marked_in = "sum_of_five"},
      [] {
        const auto in = filled(8, 1.0f, "in"), out = filled(32, 0.0f, "out");
        launch(local_array_by_pointer, 1, 32, 0, in.data(), out.data());
      });
  must_be_caught({.kernel = "local_array_written_by_pointer", .check = Check::kMemcheck, .variable = "p", .says = {"write"}}, [] {
    const auto out = filled(32, 0.0f, "out");
    launch(local_array_written_by_pointer, 1, 32, 0, out.data());
  });
  must_be_caught({.kernel = "shared_array_of_pages", .check = Check::kMemcheck, .variable = "p", .thread = uint3{31, 0, 0}}, [] {
    const auto out = filled(32, 0.0f, "out");
    launch(shared_array_of_pages, 1, 32, 0, out.data());
  });
  must_be_caught({.kernel = "device_array_of_its_alignment", .check = Check::kMemcheck, .variable = "p", .thread = uint3{31, 0, 0}},
                 [] {
                   const auto out = filled(32, 0, "out");
                   launch(device_array_of_its_alignment, 1, 32, 0, out.data());
                 });
}

struct Row {
  float first[4], second[4];
};
__device__ float sum_between(const float* begin, const float* end) {
  float sum = 0;
  for (; begin != end; ++begin) sum += *begin;
  return sum;
}
__global__ void pointers_that_stay(const float* in, float* out) {
  __shared__ float first[1024];
  __shared__ float second[1024];
  const int t = threadIdx.x;
  float mine[8];
  Row row;
  for (int i = 0; i < 8; ++i) mine[i] = in[i], (&row.first[0])[i] = in[i];  // a struct is one variable
  for (int i = t; i < 1024; i += 32) first[i] = in[i % 32], second[i] = in[i % 32];
  __syncthreads();
  float* const either = t % 2 ? first : second;
  const float4 last = *reinterpret_cast<const float4*>(first + 1020);
  out[t] = sum_between(mine, mine + 8) + either[1023 - t] + last.w + sum_between(second + 1000, second + 1024) + row.second[t % 4];
}
TEST_CASE("pointers that stay inside, up to the last element") {
  in_all_orders([] {
    const auto in = filled(32, 1.0f, "in"), out = filled(32, 0.0f, "out");
    launch(pointers_that_stay, 1, 32, 0, in.data(), out.data());
    CHECK(out.download() == std::vector<float>(32, 8 + 1 + 1 + 24 + 1));
  });
}

// ----------------------------------------------------------------------------------------------------------- __restrict__
__global__ void running_sum(const float* __restrict__ in, float* __restrict__ out, int n) {
  for (int i = 1; i < n; ++i) out[i] = in[i - 1] + 1;  // BUG
}
__global__ void neighbours_sum(const float* __restrict__ from, float* to) {
  const int t = threadIdx.x;
  to[t] = 1;  // BUG
  __syncthreads();
  float sum = from[(t + 1) % 64];  // BUG: written by the neighbour
  __syncthreads();
  to[t] = sum;
}
TEST_CASE("__restrict__ that is not true") {
  must_be_caught({.kernel = "running_sum", .check = Check::kRacecheck, .variable = "data", .says = {"__restrict__", "through out"}},
                 [] {
                   const auto data = filled(64, 0.0f, "data");
                   launch(running_sum, 1, 1, 0, data.data(), data.data(), 64);
                 });
  must_be_caught({.kernel = "neighbours_sum", .check = Check::kRacecheck, .variable = "data", .says = {"read through from"}}, [] {
    const auto data = filled(64, 0.0f, "data");
    launch(neighbours_sum, 1, 64, 0, data.data(), data.data());
  });
}
__global__ void in_place(const float* __restrict__ in, float* __restrict__ out) { out[threadIdx.x] = 2 * in[threadIdx.x]; }
__global__ void without_the_word(const float* in, float* out, int n) {
  for (int i = 1; i < n; ++i) out[i] = in[i - 1] + 1;
}
TEST_CASE("__restrict__ pointers into one buffer that do no harm") {
  in_all_orders([] {
    const auto data = filled(64, 1.0f, "data");
    launch(in_place, 1, 64, 0, data.data(), data.data());
    launch(in_place, 1, 32, 0, data.data(), data.data() + 32);  // its halves
    CHECK(data.download()[32] == 4);
    launch(running_sum, 1, 1, 0, data.data(), data.data() + 32, 32);
    launch(without_the_word, 1, 1, 0, data.data(), data.data(), 64);
    CHECK(data.download()[63] == 65);
  });
}

// ------------------------------------------------------------------------------------------------------- host and kernel
static int never_written = 3;  // to g++ a constant, unless it is told otherwise
__global__ void uses_what_is_never_written(int* out) { out[threadIdx.x] = never_written; }  // BUG
TEST_CASE("a kernel uses a variable of the host that is never written" * doctest::skip(kClang)) {
  must_be_caught({.kernel = "uses_what_is_never_written", .check = Check::kMemcheck, .variable = "never_written"}, [] {
    const Buffer<int> out(32, "out");
    launch(uses_what_is_never_written, 1, 32, 0, out.data());
  });
}

// The report for host code that `act` runs.
template <class Act>
interpreter::Diagnosis reported(Act act) {
  try {
    act();
  } catch (const interpreter::KernelError& e) {
    return e.diagnosis;
  }
  FAIL_CHECK("nothing was reported");
  return {};
}

TEST_CASE("functions that copy, set and compare bytes on the host, given device memory" * doctest::skip(kClang)) {
  const auto buffer = filled(32, 1, "buffer");
  std::vector<int> host(32, 1);
  int* const p = buffer.data();
  const auto check = [&](const interpreter::Diagnosis& d, int line) {
    CHECK(d.check == Check::kMemcheck);
    CHECK(d.variable == "buffer");
    CHECK(d.line == line);
  };
  check(reported([&] { std::memset(p, 0, 32 * sizeof(int)); }), __LINE__);
  check(reported([&] { memset(p + 3, 0, sizeof(int)); }), __LINE__);
  check(reported([&] { std::memcpy(host.data(), p, 32 * sizeof(int)); }), __LINE__);
  check(reported([&] { std::memmove(p, host.data(), 32 * sizeof(int)); }), __LINE__);
  check(reported([&] { std::copy(p, p + 32, host.begin()); }), __LINE__);
  check(reported([&] { std::fill(p, p + 32, 7); }), __LINE__);
  CHECK(buffer.download() == std::vector<int>(32, 1));
  CHECK(host == std::vector<int>(32, 1));
}

__device__ int found;
__device__ int counts[4];
__constant__ float weights[4];
__managed__ int both;
__global__ void count_odd(const int* in) {
  if (in[threadIdx.x] % 2) atomicAdd(&found, 1), atomicAdd(&counts[threadIdx.x % 4], 1), atomicAdd(&both, 1);
}
TEST_CASE("the host uses a kernel's variables" * doctest::skip(kClang)) {
  const auto in = filled(64, 1, "in");
  launch(count_odd, 1, 64, 0, in.data());
  int i = static_cast<int>(in.size()) / 32;  // no constant: g++ takes it that this access may throw
  int sum = 0;
  const interpreter::Diagnosis read = reported([&] { sum = counts[i]; });
  CHECK(read.check == Check::kMemcheck);
  CHECK(read.variable == "counts");
  CHECK(read.line == __LINE__ - 3);
  const interpreter::Diagnosis written = reported([&] { weights[i] = 1; });
  CHECK(written.variable == "weights");
  CHECK(planted::contains(written.what, "__constant__"));
  const float host[4] = {};
  CHECK(reported([&] { std::memcpy(weights, host, sizeof host); }).variable == "weights");
  CHECK(sum == 0);
}
// Of plain variables compilers know that they are there, so these functions let no exception out: their callers get it.
NOIPA int number_found() { return found; }
NOIPA void start_with(int n) { found = n; }
TEST_CASE("the host uses a kernel's variable where no exception is expected" * doctest::skip(kClang)) {
  const Buffer<int> kept(4, "kept");
  const interpreter::Diagnosis read = reported([&] { number_found(); });
  CHECK(read.variable == "found");
  CHECK(read.line == __LINE__ - 6);
  const interpreter::Diagnosis written = reported([&] { start_with(3); });
  CHECK(written.line == __LINE__ - 7);
  CHECK(kept.size() == 4);
}
TEST_CASE("what host code may use") {
  in_all_orders([] {
    const auto in = filled(64, 1, "in");
    both = 0;
    device::copy_to_symbol(found, 0);
    launch(count_odd, 1, 64, 0, in.data());
    int result = 0;
    device::copy_from_symbol(result, found);
    CHECK(result == 64);
    CHECK(both == 64);
    const int* const address = counts;  // no access
    CHECK(address != nullptr);
  });
}

// ------------------------------------------------------------------------------------------------------------- downloads
__global__ void twice(const int* in, int* out, int n) {
  const int i = static_cast<int>(blockIdx.x * 64 + threadIdx.x);
  if (i < n) out[i] = 2 * in[i];
}
TEST_CASE("a note says that a download has bytes that nothing wrote") {
  const auto in = filled(100, 1, "in");
  const Buffer<int> too_short(100, "too_short"), all(100, "all");
  Buffer<int> filled_before(100, "filled_before");
  filled_before.fill(0);
  launch(twice, 1, 64, 0, in.data(), too_short.data(), 100);
  launch(twice, 2, 64, 0, in.data(), all.data(), 100);
  launch(twice, 1, 64, 0, in.data(), filled_before.data(), 100);
  const std::size_t before = interpreter::host_notes().size();
  std::vector<int> host(100);
  const int line = __LINE__ + 2;
  for (int i = 0; i < 2; ++i) {
    too_short.download(host.data(), 100);
    all.download(host.data(), 100);
    filled_before.download(host.data(), 100);
    too_short.download(host.data(), 64);
  }
  const std::vector<std::string> notes = interpreter::host_notes();
  REQUIRE(notes.size() == before + 1);
  CAPTURE(notes.back());
  CHECK(planted::contains(notes.back(), "pointers.cpp:" + std::to_string(line) + ":"));
  CHECK(planted::contains(notes.back(),
                          "of the 400 bytes that are copied from too_short to the host, 144 were written by no kernel"));
  CHECK(planted::contains(notes.back(), "at byte 256 of 400"));
}

// --------------------------------------------------------------------------------------- arrays in dynamic shared memory
__device__ float last_of(const float* row, int n) {
  return row[n];  // BUG
}
__global__ void beyond_dynamic_memory(const float* in, float* out) {
  float* const sA = device::dynamic_smem<float>();
  float* const sB = sA + 64;
  const int t = threadIdx.x;
  sA[t] = in[t];
  sB[t] = in[t];
  __syncthreads();
  out[t] = last_of(sB, t + 1);
}
__global__ void overlapping_arrays(const float* in, float* out) {
  float* const sA = device::dynamic_smem<float>();
  float* const sB = reinterpret_cast<float*>(device::dynamic_smem<char>() + 64);  // bytes, not elements
  const int t = threadIdx.x;
  sA[t] = in[t];      // BUG
  sB[t] = 2 * in[t];  // BUG
  __syncthreads();
  out[t] = sA[t] + sB[t];
}
__global__ void stage_that_nobody_loads(const float* in, float* out) {
  float(*const stages)[64] = reinterpret_cast<float(*)[64]>(device::dynamic_smem<float>());
  const int t = threadIdx.x;
  stages[0][t] = in[t];
  __syncthreads();
  out[t] = stages[1][t];  // BUG
}
TEST_CASE("reports on dynamic shared memory name the element, and the array by which the source knows it") {
  const auto in = filled(64, 1.0f, "in"), out = filled(64, 0.0f, "out");
  const std::string variable = "dynamic shared memory";
  must_be_caught({.kernel = "beyond_dynamic_memory",
                  .check = Check::kMemcheck,
                  .variable = variable,
                  .says = {"byte 512 of 512: float 128), through row"},
                  .thread = uint3{63, 0, 0},
                  .marked_in = "last_of"},
                 [&] { launch(beyond_dynamic_memory, 1, 64, 512, in.data(), out.data()); });
  must_be_caught({.kernel = "overlapping_arrays",
                  .check = Check::kRacecheck,
                  .variable = variable,
                  .says = {": float ", ", through sA, then written", ", through sB, with"}},
                 [&] { launch(overlapping_arrays, 1, 64, 512, in.data(), out.data()); });
  must_be_caught({.kernel = "stage_that_nobody_loads",
                  .check = Check::kInitcheck,
                  .variable = variable,
                  .says = {": float ", "), through stages"}},
                 [&] { launch(stage_that_nobody_loads, 1, 64, 512, in.data(), out.data()); });
}

// Three stages, each 64 floats of A and 32 of B, two mbarriers for each, and the sums of two warps.
constexpr device::SharedBytes kNamed =
    device::ring(3, 64 * 4, 32 * 4).barriers(3).each("warp", 2, {"sums", 16 * 4}).with({"flag", 4});
__global__ void part_that_nobody_fills(int offset, float* out) {
  out[threadIdx.x] = *reinterpret_cast<float*>(device::dynamic_smem<char>() + offset);  // BUG
}
TEST_CASE("reports on dynamic shared memory speak of the parts that a kernel names") {
  const auto out = filled(32, 0.0f, "out");
  const auto caught = [&](int offset, const char* variable, const char* says, const device::SharedBytes& bytes = kNamed) {
    must_be_caught({.kernel = "part_that_nobody_fills", .check = Check::kInitcheck, .variable = variable, .says = {says}},
                   [&] { launch(part_that_nobody_fills, 1, 32, bytes, offset, out.data()); });
  };
  CHECK(kNamed == 3 * (96 * 4 + 2 * 8) + 2 * 64 + 4);
  caught(0, "stage 0, tile of A", "stage 0, tile of A (byte 0 of 256");
  caught(252, "stage 0, tile of A", "stage 0, tile of A (byte 252 of 256");
  caught(256, "stage 0, tile of B", "stage 0, tile of B (byte 0 of 128");
  caught(2 * 384 + 260, "stage 2, tile of B", "stage 2, tile of B (byte 4 of 128");
  caught(3 * 384 + 8, "barrier full[1]", "bytes of barrier full[1]");
  caught(3 * 384 + 28, "barrier empty[0]", "barrier empty[0] (byte 4 of 8");
  caught(3 * 384 + 48 + 68, "warp 1, sums", "warp 1, sums (byte 4 of 64");
  caught(3 * 384 + 48 + 128, "flag", "flag (byte 0 of 4");
  caught(128, "tile of B", "tile of B (byte 0 of 128", device::ring(1, 128, 128));  // one stage has no number
  constexpr device::SharedBytes kPanels = device::ring(2, 1024, 2048, 1024);        // a panel of A, two of B
  caught(3072 + 1024 + 128, "stage 1, tile of B, panel 0", "stage 1, tile of B, panel 0 (byte 128 of 1024, row 1", kPanels);
  caught(3072 + 2048 + 260, "stage 1, tile of B, panel 1", "stage 1, tile of B, panel 1 (byte 260 of 1024, row 2", kPanels);
  caught(1020, "stage 0, tile of A", "stage 0, tile of A (byte 1020 of 1024, row 7", kPanels);  // one panel has no number
  caught(128, "dynamic shared memory", "dynamic shared memory (byte 128 of 256", 256);
  must_be_caught({.kernel = "part_that_nobody_fills",
                  .check = Check::kMemcheck,
                  .variable = "dynamic shared memory",
                  .says = {"out of bounds: dynamic shared memory (byte " + std::to_string(kNamed.bytes()) + " of "}},
                 [&] { launch(part_that_nobody_fills, 1, 32, kNamed, int{kNamed}, out.data()); });
}

}  // namespace

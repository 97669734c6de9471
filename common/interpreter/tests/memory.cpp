/// @file
/// Memory: what is written without a hook, what is misaligned, out of bounds, released, somebody else's or the host's.
///
/// Planted bugs, and beside each kind the correct kernels that look like it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/device/device.cuh"
#include "common/interpreter/tests/orders.h"
#include "common/interpreter/tests/planted.h"

using device::Buffer;
using device::launch;
using interpreter::Check;
using planted::Bug;

// Outside of namespaces, with the names that a mangled name gives to the types char and float.
__device__ int c[8];
__shared__ int f;

namespace {

void must_be_caught(const Bug& bug, const std::function<void()>& start) { planted::must_be_caught(bug, start, __FILE__); }

template <class T>
Buffer<T> filled(std::size_t n, T value, const char* name) {
  return Buffer<T>(std::vector<T>(n, value), name);
}

// ---------------------------------------------------------------------------------------- stores that no hook tells of
struct Best {
  int index;
  float value, weight;
};
__device__ Best best_of(float x) { return {-1, x, 2 * x}; }
__device__ Best worst_of(float x) { return {-1, -x, 2 * x}; }

// A call by pointer stays a call, and g++ shows nobody the store of what it returns. An index of -1 has poison's bits.
__global__ void structs_from_calls(const float* in, Best* middle, int* index, float* value) {
  __shared__ Best best[32];
  Best (*const functions[2])(float) = {best_of, worst_of};
  const int t = threadIdx.x;
  best[t] = functions[t % 2](in[t]);
  middle[t] = functions[(t + 1) % 2](in[t]);
  __syncthreads();
  index[t] = best[31 - t].index;
  value[t] = best[31 - t].value + best[31 - t].weight;
}
__global__ void weights(const Best* in, float* out) { out[threadIdx.x] = in[threadIdx.x].weight - in[threadIdx.x].index; }
TEST_CASE("structs that calls return count as written") {
  in_all_orders([] {
    const auto in = filled<float>(32, 3.0f, "in");
    const Buffer<Best> middle(32, "middle");
    const Buffer<int> index(32, "index");
    const Buffer<float> value(32, "value"), out(32, "out");
    launch(structs_from_calls, 1, 32, 0, in.data(), middle.data(), index.data(), value.data());
    launch(weights, 1, 32, 0, middle.data(), out.data());
    CHECK(index.download() == std::vector<int>(32, -1));
    CHECK(value.download()[0] == 3);
    CHECK(out.download() == std::vector<float>(32, 7.0f));
  });
}

struct Packet {
  int key;
  float payload[11];
};
__global__ void packets_by_memset(const int* in, int* out) {
  __shared__ Packet packets[32];
  __shared__ Packet copies[32];
  const int t = threadIdx.x;
  memset(&packets[t], 0, sizeof(Packet));  // 48 bytes: short enough for the compiler to write them without a call
  packets[t].key = in[t];
  __syncthreads();
  memcpy(&copies[t], &packets[31 - t], sizeof(Packet));
  __syncthreads();
  out[t] = copies[31 - t].key + static_cast<int>(copies[t].payload[10]);
}
TEST_CASE("memset and memcpy of constant sizes count as written") {
  in_all_orders([] {
    const auto in = filled(32, 4, "in");
    const Buffer<int> out(32, "out");
    launch(packets_by_memset, 1, 32, 0, in.data(), out.data());
    CHECK(out.download() == std::vector<int>(32, 4));
  });
}

__global__ void memset_beyond_the_end(Packet* out) {
  memset(&out[threadIdx.x], 0, sizeof(Packet));  // BUG: out has 31 elements
}
TEST_CASE("memset of a constant size out of bounds") {
  must_be_caught({.kernel = "memset_beyond_the_end",
                  .check = Check::kMemcheck,
                  .variable = "out",
                  .says = {"out of bounds"},
                  .thread = uint3{31, 0, 0}},
                 [] {
                   const Buffer<Packet> out(31, "out");
                   launch(memset_beyond_the_end, 1, 32, 0, out.data());
                 });
}

struct Shape {
  __device__ virtual int corners() const = 0;
};
struct Triangle : Shape {
  __device__ int corners() const override { return 3; }
};
struct Square : Shape {
  __device__ int corners() const override { return 4; }
};
__global__ void objects_made_in_the_kernel(unsigned char* memory, Shape** shapes, int* out) {
  const int t = threadIdx.x;
  if (t % 2)
    shapes[t] = new (memory + t * sizeof(Square)) Square;
  else
    shapes[t] = new (memory + t * sizeof(Square)) Triangle;
  __syncthreads();
  out[t] = shapes[31 - t]->corners();
}
TEST_CASE("objects with virtual functions, made in the kernel") {
  in_all_orders([] {
    const Buffer<unsigned char> memory(32 * sizeof(Square), "memory");
    const Buffer<Shape*> shapes(32, "shapes");
    const Buffer<int> out(32, "out");
    launch(objects_made_in_the_kernel, 1, 32, 0, memory.data(), shapes.data(), out.data());
    CHECK(out.download()[0] == 4);
    CHECK(out.download()[1] == 3);
  });
}

__shared__ int outside[64];
__shared__ struct { float first, rest[31]; } outside_struct;
__device__ int neighbours_number() { return outside[threadIdx.x ^ 1]; }
__global__ void shared_outside_of_functions(int* out) {
  outside[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (threadIdx.x < 31) outside_struct.rest[threadIdx.x] = 1;
  if (threadIdx.x == 31) outside_struct.first = 1;
  __syncthreads();
  out[threadIdx.x] = neighbours_number() + static_cast<int>((&outside_struct.first)[threadIdx.x % 32]);
}
TEST_CASE("__shared__ variables outside of functions") {
  in_all_orders([] {
    const Buffer<int> out(64, "out");
    launch(shared_outside_of_functions, 1, 64, 0, out.data());
    launch(shared_outside_of_functions, 1, 64, 0, out.data());
    CHECK(out.download()[6] == 8);
  });
}
__global__ void shared_outside_kept(int* out) { out[threadIdx.x] = outside[threadIdx.x]; }  // BUG: nobody has written it
TEST_CASE("a __shared__ variable outside of functions does not outlive its block") {
  must_be_caught({.kernel = "shared_outside_kept", .check = Check::kInitcheck, .variable = "outside"}, [] {
    const Buffer<int> out(64, "out");
    launch(shared_outside_of_functions, 1, 64, 0, out.data());
    launch(shared_outside_kept, 1, 64, 0, out.data());
  });
}

// Poison beside a slot that the same thread has just written: nobody else did, so there is no unseen store.
__global__ void halo_is_not_set(const float* in, float* out) {
  __shared__ float row[33];
  const int t = threadIdx.x;
  row[t] = in[t];
  __syncwarp();
  out[t] = row[t] + row[t + 1];  // BUG: nobody sets row[32]
}
TEST_CASE("a halo that nobody sets, next to what is set") {
  must_be_caught({.kernel = "halo_is_not_set", .check = Check::kInitcheck, .variable = "row", .thread = uint3{31, 0, 0}}, [] {
    const auto in = filled<float>(32, 1.0f, "in"), out = filled<float>(32, 0.0f, "out");
    launch(halo_is_not_set, 1, 32, 0, in.data(), out.data());
  });
}
__global__ void sum_is_not_set(const float* in, float* sums) {
  sums[threadIdx.x] += in[threadIdx.x];  // BUG: to what?
}
TEST_CASE("a sum in device memory that begins with anything") {
  must_be_caught({.kernel = "sum_is_not_set", .check = Check::kInitcheck, .variable = "sums"}, [] {
    const auto in = filled<float>(32, 1.0f, "in");
    const Buffer<float> sums(32, "sums");
    launch(sum_is_not_set, 1, 32, 0, in.data(), sums.data());
  });
}

// ------------------------------------------------------------------------------------------------------------- padding
struct Checked {
  float value;
  bool valid;  // and three bytes that are nobody's
};
struct Mixed {
  char kind;  // one
  short count;
  int sum;
  char last;  // three
};
struct Halves {
  short a;
  char b;  // one
  short c;
};
template <class T>
__device__ void set(T& to, int i);
template <>
__device__ void set(Checked& to, int i) {
  to.value = static_cast<float>(i);
  to.valid = i % 2 == 0;
}
template <>
__device__ void set(Mixed& to, int i) {
  to.kind = static_cast<char>(i), to.last = static_cast<char>(i + 1);
  to.count = static_cast<short>(i), to.sum = i;
}
template <>
__device__ void set(Halves& to, int i) {
  to.a = static_cast<short>(i), to.c = static_cast<short>(i);
  to.b = static_cast<char>(i);
}
__device__ int get(const Checked& from) { return static_cast<int>(from.value) * 2 + from.valid; }
__device__ int get(const Mixed& from) { return from.kind + from.count + from.sum + from.last; }
__device__ int get(const Halves& from) { return from.a + from.b + from.c; }

template <class T>
__global__ void copies_within_a_block(T* out) {
  __shared__ T all[32];
  const int t = static_cast<int>(threadIdx.x);
  set(all[t], t);
  __syncthreads();
  out[t] = all[31 - t];
}
template <class T>
__global__ void sets_members(T* out) {
  const int t = static_cast<int>(threadIdx.x);
  set(out[t], t);
}
template <class T>
__global__ void copies_structs(const T* in, T* out, int* numbers) {
  const T mine = in[31 - threadIdx.x];
  out[threadIdx.x] = mine;
  numbers[threadIdx.x] = get(mine);
}
template <class T>
void test_padding() {
  in_all_orders([] {
    const Buffer<T> members(32, "members"), copies(32, "copies");
    const Buffer<int> numbers(32, "numbers"), again(32, "again");
    launch(sets_members<T>, 1, 32, 0, members.data());
    launch(copies_structs<T>, 1, 32, 0, members.data(), copies.data(), numbers.data());
    launch(copies_within_a_block<T>, 1, 32, 0, members.data());
    launch(copies_structs<T>, 1, 32, 0, members.data(), copies.data(), again.data());
    const std::vector<int> reversed = numbers.download(), straight = again.download();
    CHECK(std::equal(straight.begin(), straight.end(), reversed.rbegin()));
    CHECK(numbers.download()[31] == get(T{}) + (sizeof(T) == 12 || sizeof(T) == 8));  // of the first: `last` or `valid`
  });
}
TEST_CASE("a copy of padding is no read of what nobody wrote") {
  test_padding<Checked>();
  test_padding<Mixed>();
  test_padding<Halves>();
}

__global__ void value_is_not_set(Checked* out) {
  __shared__ Checked all[32];
  all[threadIdx.x].valid = true;
  __syncthreads();
  out[threadIdx.x] = all[31 - threadIdx.x];  // BUG: nobody sets the values
}
__global__ void valid_is_not_set(Checked* all, int* out) {
  all[threadIdx.x].value = 1;
  out[threadIdx.x] = all[threadIdx.x].valid;  // BUG: a byte of its own
}
__global__ void half_is_not_set(float2* out) {
  __shared__ float2 pairs[32];
  pairs[threadIdx.x].x = 1;
  __syncthreads();
  out[threadIdx.x] = pairs[31 - threadIdx.x];  // BUG
}
__global__ void byte_is_not_set(unsigned char* out) {
  __shared__ unsigned char bytes[64];
  bytes[2 * threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = bytes[threadIdx.x];  // BUG: the odd ones
}
TEST_CASE("members that nobody sets, in structs with padding") {
  const auto caught = [](const char* kernel, const char* variable, const std::function<void()>& start) {
    must_be_caught({.kernel = kernel, .check = Check::kInitcheck, .variable = variable, .says = {"uninitialised"}}, start);
  };
  caught("value_is_not_set", "all", [] {
    const Buffer<Checked> out(32, "out");
    launch(value_is_not_set, 1, 32, 0, out.data());
  });
  caught("valid_is_not_set", "all", [] {
    const Buffer<Checked> all(32, "all");
    const Buffer<int> out(32, "out");
    launch(valid_is_not_set, 1, 32, 0, all.data(), out.data());
  });
  caught("half_is_not_set", "pairs", [] {
    const Buffer<float2> out(32, "out");
    launch(half_is_not_set, 1, 32, 0, out.data());
  });
  caught("byte_is_not_set", "bytes", [] {
    const Buffer<unsigned char> out(32, "out");
    launch(byte_is_not_set, 1, 32, 0, out.data());
  });
}

// g++ would show nobody what a call takes and returns by value: so nothing that a kernel calls by name stays a call.
struct Complex {
  float re, im;
};
__device__ __attribute__((noinline)) Complex squared(Complex a) { return {a.re * a.re - a.im * a.im, 2 * a.re * a.im}; }
__device__ [[gnu::noinline]] float norm(Complex a) { return a.re * a.re + a.im * a.im; }
__global__ void result_of_a_call_out_of_bounds(const Complex* in, Complex* out) {
  out[threadIdx.x] = squared(in[threadIdx.x]);  // BUG: out has 31 elements
}
__global__ void argument_of_a_call_out_of_bounds(const Complex* in, float* out) {
  out[threadIdx.x] = norm(in[threadIdx.x + 1]);  // BUG: in has 32 elements
}
TEST_CASE("what a function takes and returns that asks not to be inlined") {
  must_be_caught(
      {.kernel = "result_of_a_call_out_of_bounds", .check = Check::kMemcheck, .variable = "out", .thread = uint3{31, 0, 0}}, [] {
        const auto in = filled(32, Complex{1, 1}, "in"), out = filled(31, Complex{}, "out");
        launch(result_of_a_call_out_of_bounds, 1, 32, 0, in.data(), out.data());
      });
  must_be_caught(
      {.kernel = "argument_of_a_call_out_of_bounds", .check = Check::kMemcheck, .variable = "in", .thread = uint3{31, 0, 0}}, [] {
        const auto in = filled(32, Complex{1, 1}, "in");
        const auto out = filled(32, 0.0f, "out");
        launch(argument_of_a_call_out_of_bounds, 1, 32, 0, in.data(), out.data());
      });
}

// ------------------------------------------------------------------------------------------------------------ alignment
#ifdef __clang__
constexpr bool kSplitsCopies = true;  // into the members, and its check of alignment does not look at such copies
#else
constexpr bool kSplitsCopies = false;
#endif
__global__ void parts_of_a_misaligned_vector(const float* in, float* out) {
  float r[4];
  const float4 v = *reinterpret_cast<const float4*>(in + 4 * threadIdx.x + 1);  // BUG: 4 bytes off
  r[0] = v.x, r[1] = v.y, r[2] = v.z, r[3] = v.w;
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = 2 * r[i];
}
TEST_CASE("a misaligned float4 that the compiler takes apart" * doctest::skip(kSplitsCopies)) {
  must_be_caught({.kernel = "parts_of_a_misaligned_vector", .check = Check::kMemcheck, .variable = "in", .says = {"misaligned"}},
                 [] {
                   const auto in = filled(132, 1.0f, "in"), out = filled(128, 0.0f, "out");
                   launch(parts_of_a_misaligned_vector, 1, 32, 0, in.data(), out.data());
                 });
}
__global__ void half2_at_odd_halves(const __half* in, __half* out) {
  *reinterpret_cast<__half2*>(out + 2 * threadIdx.x) =              // BUG
      *reinterpret_cast<const __half2*>(in + 2 * threadIdx.x + 1);  // BUG: 2 bytes off
}
TEST_CASE("a misaligned __half2") {
  must_be_caught({.kernel = "half2_at_odd_halves", .check = Check::kMemcheck, .variable = "in", .says = {"misaligned"}}, [] {
    const auto in = filled(66, __float2half(1), "in"), out = filled(64, __float2half(0), "out");
    launch(half2_at_odd_halves, 1, 32, 0, in.data(), out.data());
  });
}
// nvcc keeps such arrays in registers; where the stack puts them says nothing about the kernel. Addresses that are only computed
// need no alignment either.
__global__ void local_arrays_as_vectors(const float* in, float* out) {
  float r[9];
  for (int i = 0; i < 9; ++i) r[i] = in[i];
  const float4 a = *reinterpret_cast<const float4*>(r + threadIdx.x % 4);
  const float4* const next = reinterpret_cast<const float4*>(in + 1) + 1;
  out[threadIdx.x] = a.x + a.w + *reinterpret_cast<const float*>(next);
}
TEST_CASE("local arrays read as vectors") {
  in_all_orders([] {
    const auto in = filled(32, 1.0f, "in"), out = filled(32, 0.0f, "out");
    launch(local_arrays_as_vectors, 1, 32, 0, in.data(), out.data());
    CHECK(out.download() == std::vector<float>(32, 3.0f));
  });
}

// --------------------------------------------------------------------------------------------------- bounds, and whose it is
template <int n>
__device__ void store_row(float (&rows)[n][8], int row, float value) {
  rows[row][threadIdx.x % 8] = value;  // BUG: the arrays have 4 rows
}
__global__ void row_beyond_a_passed_array(const float* in, float* out) {
  __shared__ float first[4][8];
  __shared__ float second[4][8];
  store_row(first, threadIdx.x / 8, in[threadIdx.x]);
  store_row(second, threadIdx.x / 8 + 1, in[threadIdx.x]);
  __syncthreads();
  out[threadIdx.x] = first[3 - threadIdx.x / 8][0] + second[0][0];
}
TEST_CASE("an index out of bounds names the array, though a function has it by another name") {
  must_be_caught({.kernel = "row_beyond_a_passed_array",
                  .check = Check::kMemcheck,
                  .variable = "second",
                  .says = {"index 4", "float"},
                  .marked_in = "store_row"},
                 [] {
                   const auto in = filled(32, 1.0f, "in"), out = filled(32, 0.0f, "out");
                   launch(row_beyond_a_passed_array, 1, 32, 0, in.data(), out.data());
                 });
}
struct Filter {
  float taps[5];
  float bias;
};
__global__ void one_tap_too_many(const Filter* filters, float* out, int taps) {
  float sum = filters->bias;
  for (int i = 0; i <= taps; ++i) sum += filters->taps[i];  // BUG: taps[5] is the bias
  out[threadIdx.x] = sum;
}
TEST_CASE("an index out of bounds of a member") {
  must_be_caught({.kernel = "one_tap_too_many", .check = Check::kMemcheck, .variable = "taps", .says = {"index 5"}}, [] {
    const auto filters = filled(2, Filter{}, "filters");
    const auto out = filled(32, 0.0f, "out");
    launch(one_tap_too_many, 1, 32, 0, filters.data(), out.data(), 5);
  });
}

__device__ int histogram[8];
__global__ void histogram_without_atomics(const int* in) {
  histogram[in[threadIdx.x] % 8] += 1;  // BUG
}
TEST_CASE("a report names the __device__ variable") {
  must_be_caught({.kernel = "histogram_without_atomics", .check = Check::kRacecheck, .variable = "histogram"}, [] {
    const auto in = filled(64, 3, "in");
    launch(histogram_without_atomics, 1, 64, 0, in.data());
  });
}

__global__ void short_name_without_atomics(const int* in) {
  c[in[threadIdx.x] % 8] += 1;  // BUG
}
__global__ void short_name_without_barrier(int* out) {
  if (threadIdx.x == 0) f = 3;  // BUG
  out[threadIdx.x] = f;         // BUG
}
TEST_CASE("a report names variables of one letter") {
  must_be_caught({.kernel = "short_name_without_atomics", .check = Check::kRacecheck, .variable = "c"}, [] {
    const auto in = filled(64, 3, "in");
    launch(short_name_without_atomics, 1, 64, 0, in.data());
  });
  must_be_caught({.kernel = "short_name_without_barrier", .check = Check::kRacecheck, .variable = "f"}, [] {
    const auto out = filled(64, 0, "out");
    launch(short_name_without_barrier, 1, 64, 0, out.data());
  });
}

__device__ int last_of(const int* row) { return row[threadIdx.x + 1]; }  // BUG: row has 32 elements
__global__ void pointer_leaves_its_variable(int* out) {
  __shared__ int row[32];
  __shared__ int other[32];
  row[threadIdx.x] = 1, other[threadIdx.x] = 2;
  __syncthreads();
  out[threadIdx.x] = last_of(row) + other[31 - threadIdx.x];
}
TEST_CASE("a pointer leaves a __shared__ variable") {
  must_be_caught({.kernel = "pointer_leaves_its_variable",
                  .check = Check::kMemcheck,
                  .variable = "row",
                  .thread = uint3{31, 0, 0},
                  .marked_in = "last_of"},
                 [] {
                   const auto out = filled(32, 0, "out");
                   launch(pointer_leaves_its_variable, 1, 32, 0, out.data());
                 });
}

__global__ void index_overflows(float* out, int pitch) {
  const int row = static_cast<int>(blockIdx.x) + 2046;
  out[row * pitch] = 1;  // BUG: 2048 rows of 2^20 elements are too many for an int
}
TEST_CASE("an index that overflows 32 bits names the buffer") {
  const Buffer<float> out(std::size_t(1) << 32, "out");
  must_be_caught({.kernel = "index_overflows", .check = Check::kMemcheck, .variable = "out", .says = {"out of bounds"}},
                 [&] { launch(index_overflows, 4, 1, 0, out.data(), 1 << 20); });
}

__global__ void first_and_last(float* x, std::int64_t count) {
  x[0] = 1, x[count - 1] = 2;
  x[count / 2] = 3;
}
__global__ void far_behind_the_end(float* x, std::int64_t count) {
  x[count] = 1;  // BUG: the last one is x[count - 1]
}
__global__ void stores_to_it(float* x) { x[0] = 1; }
TEST_CASE("a buffer of gigabytes costs no memory but where it is used") {
  const auto in_memory = [] {
    long size = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return resident * 4096;
  };
  const std::int64_t count = (std::int64_t{3} << 31) + 5;
  float* gone = nullptr;
  {
    const long before = in_memory();
    const Buffer<float> x(static_cast<std::size_t>(count), "x");
    gone = x.data() + count / 2;
    launch(first_and_last, 1, 1, 0, x.data(), count);
    float last = 0;
    interpreter::copy_out(&last, x.data() + count - 1, sizeof last);
    CHECK(last == 2);
    CHECK(in_memory() - before < 20'000'000);
    must_be_caught({.kernel = "far_behind_the_end", .check = Check::kMemcheck, .variable = "x"},
                   [&] { launch(far_behind_the_end, 1, 1, 0, x.data(), count); });
  }
  CHECK_THROWS_AS(launch(stores_to_it, 1, 1, 0, gone), interpreter::KernelError);
}

__global__ void plane_of_another_buffer(const float* planes, float* out) {
  out[threadIdx.x] = planes[threadIdx.x / 32 * 4096 + threadIdx.x];  // BUG: there is one plane of 1,024 elements
}
TEST_CASE("a buffer is taken for part of another one") {
  must_be_caught({.kernel = "plane_of_another_buffer", .check = Check::kMemcheck, .variable = "a"}, [] {
    const auto a = filled(1024, 1.0f, "a"), b = filled(1024, 1.0f, "b"), out = filled(64, 0.0f, "out");
    launch(plane_of_another_buffer, 1, 64, 0, a.data(), out.data());
  });
}

__global__ void copy_numbers(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x]; }
constexpr int kReleasedAt = __LINE__ + 1;
__host__ int* released_at_once() { return filled(32, 1, "temporary").data(); }
TEST_CASE("a pointer outlives its buffer, whose place another one takes") {
  in_all_orders([] {
    int* const in = released_at_once();
    const auto other = filled(32, 2, "other"), out = filled(32, 0, "out");
    const int line = __LINE__ + 2;
    try {
      launch(copy_numbers, 1, 32, 0, in, out.data());
      FAIL_CHECK("nothing was reported");
    } catch (const interpreter::KernelError& e) {
      CAPTURE(e.what());
      CHECK(e.diagnosis.check == Check::kMemcheck);
      CHECK(e.diagnosis.variable == "temporary");
      CHECK(e.diagnosis.line == line);
      CHECK(planted::contains(e.diagnosis.what, "released, at "));
      CHECK(planted::contains(e.diagnosis.what, "memory.cpp:" + std::to_string(kReleasedAt) + ";"));
    }
    CHECK_THROWS_AS(interpreter::release(in), std::invalid_argument);
  });
}

__global__ void pointer_to_a_local_variable(const int* in, int* out) {
  __shared__ int* of_thread_0;
  int mine[32];
  for (int i = 0; i < 32; ++i) mine[i] = in[i];
  if (threadIdx.x == 0) of_thread_0 = mine;
  __syncthreads();
  out[threadIdx.x] = of_thread_0[threadIdx.x];  // BUG: local variables are each thread's own
}
TEST_CASE("a thread reads another one's local variable") {
  must_be_caught({.kernel = "pointer_to_a_local_variable", .check = Check::kMemcheck}, [] {
    const auto in = filled(32, 1, "in"), out = filled(32, 0, "out");
    launch(pointer_to_a_local_variable, 1, 32, 0, in.data(), out.data());
  });
}

// --------------------------------------------------------------------------------------------------- what is never written
__global__ void sum_of_local(const float* in, float* out, int n) {
  float sums[2];
  for (int i = 0; i < n; ++i) sums[i % 2] += in[i];
  out[threadIdx.x] = sums[0] + sums[1];
}
TEST_CASE("a local variable that is not set gives a wrong result in all orders") {
  in_all_orders([] {
    const auto in = filled(4, 1.0f, "in"), out = filled(32, 0.0f, "out");
    launch(sum_of_local, 1, 32, 0, in.data(), out.data(), 4);
    for (const float sum : out.download()) CHECK_FALSE(sum == 4);
  });
}

__global__ void ldg_of_own_data(int* data, int* out) {
  data[threadIdx.x] = static_cast<int>(threadIdx.x);  // BUG
  __syncthreads();
  out[threadIdx.x] = __ldg(data + 31 - threadIdx.x);  // BUG: written by this kernel
}
TEST_CASE("__ldg of what the kernel writes") {
  must_be_caught({.kernel = "ldg_of_own_data", .check = Check::kRacecheck, .variable = "data", .says = {"__ldg"}}, [] {
    const auto data = filled(32, 0, "data"), out = filled(32, 0, "out");
    launch(ldg_of_own_data, 1, 32, 0, data.data(), out.data());
  });
}
__global__ void ldg_of_the_last_launch(const int* data, int* out) { out[threadIdx.x] = __ldg(data + 31 - threadIdx.x); }
TEST_CASE("__ldg of what an earlier launch wrote") {
  in_all_orders([] {
    const auto in = filled(32, 5, "in"), data = filled(32, 0, "data"), out = filled(32, 0, "out");
    launch(copy_numbers, 1, 32, 0, in.data(), data.data());
    launch(ldg_of_the_last_launch, 1, 32, 0, data.data(), out.data());
    CHECK(out.download() == std::vector<int>(32, 5));
  });
}

// ------------------------------------------------------------------------------------------------------------- the host
// Of the report for code that `act` runs on the host.
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

#ifdef __clang__
constexpr bool kCannotThrow = true;  // nothing here can, to clang: the program ends with the report
#else
constexpr bool kCannotThrow = false;
#endif
TEST_CASE("the host accesses device memory" * doctest::skip(kCannotThrow)) {
  const auto buffer = filled(32, 1, "buffer");
  int sum = 0;
  const interpreter::Diagnosis read = reported([&] { sum += buffer.data()[3]; });
  CHECK(read.check == Check::kMemcheck);
  CHECK(read.variable == "buffer");
  CHECK(read.line == __LINE__ - 3);
  CHECK(planted::contains(read.what, "byte 12 of 128"));
  const interpreter::Diagnosis written = reported([&] { buffer.data()[31] = 2; });
  CHECK(written.line == __LINE__ - 1);
  CHECK(sum == 0);
  CHECK(buffer.download() == std::vector<int>(32, 1));
}
TEST_CASE("device memory is taken for the host's in a copy" * doctest::skip(kCannotThrow)) {
  const auto from = filled(32, 1, "from");
  auto to = filled(32, 0, "to");
  CHECK(reported([&] { to.upload(from.data(), 32); }).variable == "from");
  interpreter::copy_on_device(to.data(), from.data(), 32 * sizeof(int));
  CHECK(to.download() == std::vector<int>(32, 1));
}
TEST_CASE("managed memory belongs to both") {
  int* const numbers = static_cast<int*>(interpreter::allocate_managed(64 * sizeof(int), "numbers"));
  for (int i = 0; i < 32; ++i) numbers[i] = i;
  interpreter::copy_in(numbers, numbers, 32 * sizeof(int));
  launch(copy_numbers, 1, 32, 0, numbers, numbers + 32);
  CHECK(numbers[63] == 31);
  interpreter::release(numbers);
}

#ifdef __clang__
constexpr bool kCannotTell = true;  // a __device__ variable from one of the host
#else
constexpr bool kCannotTell = false;
#endif
int table_of_host[32] = {1, 2, 3};
int factor_of_host = 3;
const int kTable[4] = {1, 2, 3, 4};
__device__ int before_device_table[32] = {3, 2, 1};
__device__ int device_table[32] = {1, 2, 3};
__device__ int after_device_table[32] = {3, 2, 1};
__managed__ int managed_number = 3;
__global__ void factor_of_the_host(int* out) { out[threadIdx.x] = factor_of_host * static_cast<int>(threadIdx.x); }  // BUG
TEST_CASE("a kernel uses variables of the host" * doctest::skip(kCannotTell)) {
  ++factor_of_host;  // a constant would be no access
  must_be_caught({.kernel = "factor_of_the_host", .check = Check::kMemcheck, .variable = "factor_of_host", .says = {"of the host"}},
                 [] {
                   const Buffer<int> out(32, "out");
                   launch(factor_of_the_host, 1, 32, 0, out.data());
                 });
  const Buffer<int> out(32, "out");
  const interpreter::Diagnosis d = reported([&] { launch(copy_numbers, 1, 32, 0, table_of_host, out.data()); });
  CHECK(d.check == Check::kMemcheck);
  CHECK(d.variable == "table_of_host");
  CHECK(d.line == __LINE__ - 3);
}
__global__ void all_kinds_of_variables(const int* table, int* out) {
  static int calls[32];
  const int t = threadIdx.x;
  calls[t] = 1;
  out[t] = table[t] + device_table[t] + kTable[t % 4] + managed_number + calls[t];
}
TEST_CASE("a kernel uses variables that are not the host's") {
  in_all_orders([] {
    const auto table = filled(32, 1, "table"), out = filled(32, 0, "out");
    managed_number = 3;
    launch(all_kinds_of_variables, 1, 32, 0, table.data(), out.data());
    CHECK(out.download()[2] == 1 + 3 + 3 + 3 + 1);
    launch(copy_numbers, 1, 32, 0, device_table, out.data());
    CHECK(out.download()[1] == 2);
  });
}
__global__ void pointer_leaves_a_device_variable(int* out) {
  const int* const p = device_table;
  out[threadIdx.x] = p[threadIdx.x + 1] + before_device_table[0] + after_device_table[0];  // BUG: device_table[32]
}
TEST_CASE("a pointer leaves a __device__ variable" * doctest::skip(kCannotTell)) {
  must_be_caught({.kernel = "pointer_leaves_a_device_variable",
                  .check = Check::kMemcheck,
                  .says = {"device_table"},  // what lies behind it may be the host's
                  .thread = uint3{31, 0, 0}},
                 [] {
                   const auto out = filled(32, 0, "out");
                   launch(pointer_leaves_a_device_variable, 1, 32, 0, out.data());
                 });
}

// --------------------------------------------------------------------------------------------------- the heap of kernels
__global__ void deleted_twice(int* out, const int* in) {
  int* volatile one = new int(in[0]);  // volatile: so that the compiler does not see it
  out[0] = *one;
  delete one;
  delete one;  // BUG
}
__global__ void deleted_in_the_middle(int* out, const int* in) {
  int* volatile two = new int[2];
  two[0] = two[1] = in[0];
  out[0] = two[1];
  two = two + in[0];
  delete[] two;  // BUG
}
__global__ void hosts_memory_deleted(int* out, const int* in) {
  out[0] = in[0];
  delete out;  // BUG
}
__global__ void local_variable_deleted(int* out, const int* in) {
  int numbers[2] = {in[0], in[1]};
  out[0] = numbers[in[0]];
  int* volatile one = numbers;
  delete one;  // BUG
}
__global__ void null_is_deleted(int* out, int* null) {
  delete null;
  out[0] = 1;
}
TEST_CASE("a kernel frees what is not there to be freed" * doctest::skip(kCannotTell)) {
  const auto caught = [](const char* name, auto kernel, std::string variable, std::vector<std::string> says) {
    must_be_caught({.kernel = name, .check = Check::kMemcheck, .variable = variable, .says = says}, [&] {
      const auto in = filled(2, 1, "in"), out = filled(2, 0, "out");
      launch(kernel, 1, 1, 0, out.data(), in.data());
    });
  };
  caught("deleted_twice", deleted_twice, "malloc in a kernel", {"free of released memory", "(byte 0 of 4)", "memory.cpp:", "once"});
  caught("deleted_in_the_middle", deleted_in_the_middle, "malloc in a kernel", {"into the middle", "(byte 4 of 8)"});
  caught("hosts_memory_deleted", hosts_memory_deleted, "out", {"the host has allocated", "(byte 0 of 8)", "the host frees"});
  caught("local_variable_deleted", local_variable_deleted, "", {"did not give"});
  in_all_orders([] {
    const auto out = filled(1, 0, "out");
    launch(null_is_deleted, 1, 1, 0, out.data(), static_cast<int*>(nullptr));
    CHECK(out.download()[0] == 1);
  });
}

void no_kernel(int* out) { out[threadIdx.x] = 1; }  // nvcc refuses it
TEST_CASE("a function that is no kernel is launched") {
  const Buffer<int> out(32, "out");
  const interpreter::Diagnosis d = reported([&] { launch(no_kernel, 1, 32, 0, out.data()); });
  CHECK(d.check == Check::kLaunch);
  CHECK(planted::contains(d.what, "no kernel"));
  CHECK(d.line == __LINE__ - 6);
}
TEST_CASE("a kernel is called as a function" * doctest::skip(kCannotThrow)) {
  const auto in = filled(32, 1, "in"), out = filled(32, 0, "out");
  const interpreter::Diagnosis d = reported([&] { copy_numbers(in.data(), out.data()); });
  CHECK(d.check == Check::kLaunch);
  CHECK(planted::contains(d.what, "copy_numbers is called as a function"));
  CHECK(d.line == __LINE__ - 3);
}

}  // namespace

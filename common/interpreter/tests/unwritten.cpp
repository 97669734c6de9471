/// @file
/// Memory that nothing has written and somebody reads: whether what comes of it can be seen (checks/two_worlds.cpp).
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/device/device.cuh"
#include "common/interpreter/tests/orders.h"
#include "common/interpreter/tests/planted.h"

using device::Buffer;
using device::launch;
using interpreter::Check;

namespace {

constexpr int kThreads = 256, kWritten = 200;

template <class T>
Buffer<T> filled(std::size_t n, T value, const char* name) {
  return Buffer<T>(std::vector<T>(n, value), name);
}

// ------------------------------------------------------------------------------------------------------------- harmless
// Rows and columns beyond the matrix are not loaded, and nobody stores what is computed with them.
template <class T, int kPerThread>
__global__ void ragged_tiles(const T* A, const T* B, T* C, int m, int n, int k) {
  constexpr int kTile = 8, kRows = kTile * kPerThread;
  __shared__ T As[kRows][kTile], Bs[kTile][kRows];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int row0 = static_cast<int>(blockIdx.y) * kRows, column0 = static_cast<int>(blockIdx.x) * kRows;
  T sums[kPerThread][kPerThread] = {};
  for (int k0 = 0; k0 < k; k0 += kTile) {
    for (int i = 0; i < kPerThread; ++i) {
      if (const int row = row0 + y + i * kTile; row < m) As[y + i * kTile][x] = k0 + x < k ? A[row * k + k0 + x] : T(0);
      if (const int column = column0 + x + i * kTile; column < n)
        Bs[y][x + i * kTile] = k0 + y < k ? B[(k0 + y) * n + column] : T(0);
    }
    __syncthreads();
    for (int p = 0; p < kTile; ++p)
      for (int i = 0; i < kPerThread; ++i)
        for (int j = 0; j < kPerThread; ++j) sums[i][j] += As[y + i * kTile][p] * Bs[p][x + j * kTile];
    __syncthreads();
  }
  for (int i = 0; i < kPerThread; ++i)
    for (int j = 0; j < kPerThread; ++j)
      if (const int row = row0 + y + i * kTile, column = column0 + x + j * kTile; row < m && column < n)
        C[row * n + column] = sums[i][j];
}
template <class T, int kPerThread>
void test_ragged_tiles() {
  const int kM = 19, kN = 21, kK = 13, kRows = 8 * kPerThread;
  in_all_orders([&] {
    const auto A = filled(kM * kK, T(2), "A"), B = filled(kK * kN, T(3), "B");
    const Buffer<T> C(kM * kN, "C");
    launch(ragged_tiles<T, kPerThread>, dim3((kN + kRows - 1) / kRows, (kM + kRows - 1) / kRows), dim3(8, 8), 0, A.data(), B.data(),
           C.data(), kM, kN, kK);
    for (const T sum : C.download()) CHECK(sum == T(6 * kK));
  });
}
TEST_CASE("rows of a tile that nobody loads, and of which nobody stores a thing") {
  test_ragged_tiles<float, 1>();
  test_ragged_tiles<float, 2>();
  test_ragged_tiles<int, 2>();
}

// Each thread adds up what lies before it; those that have read too far store nothing.
__global__ void ragged_scan(const float* in, float* out, int n) {
  __shared__ float values[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  if (t < n) values[t] = in[t];
  __syncthreads();
  float sum = 0;
  for (int i = 0; i <= t; ++i) sum += values[i];
  const float after = __shfl_down_sync(~0u, sum, 1);
  if (t < n) out[t] = t % 32 < 31 && t + 1 < n ? after - sum : 2;
}
// The unwritten one lies beside another, and is read with it.
__global__ void looked_at_for_nothing(const float* in, float* out, int n) {
  __shared__ float values[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  if (t < n) values[t] = in[t];
  __syncthreads();
  const float2 both = reinterpret_cast<const float2*>(values)[t / 2];
  if (t < n) out[t] = t % 2 ? both.y : both.x;
}
TEST_CASE("elements beyond the end that nobody uses") {
  in_all_orders([] {
    const auto in = filled(kThreads, 2.0f, "in"), out = filled(kThreads, 0.0f, "out");
    launch(ragged_scan, 1, kThreads, 0, in.data(), out.data(), kWritten);
    for (int t = 0; t < kWritten; ++t) CHECK(out.download()[static_cast<std::size_t>(t)] == 2);
    launch(looked_at_for_nothing, 1, kThreads, 0, in.data(), out.data(), kWritten - 1);
    CHECK(out.download()[kWritten - 2] == 2);
  });
}

// Rows of 32 lie in global memory with 29 written: the last vector of a row has three more, which only a bug adds.
template <bool kAll>
__global__ void vectors_of_rows(const float4* values, float* out) {
  const int column = static_cast<int>(threadIdx.x) % 8 * 4;
  const float4 v = values[threadIdx.x];  // BUG of kAll
  const bool ragged = !kAll && column + 4 > 29;
  out[threadIdx.x] = ragged ? v.x : v.x + v.y + v.z + v.w;
}
Buffer<float> padded_rows() {
  Buffer<float> rows(4 * 32, "values");
  const std::vector<float> row(29, 1.0f);
  for (std::size_t i = 0; i < 4; ++i) rows.upload(row.data(), row.size(), i * 32);
  return rows;
}
TEST_CASE("vectors of rows in global memory whose padding nobody has written") {
#ifndef __clang__  // it takes the vectors apart
  in_all_orders([] {
    const Buffer<float> rows = padded_rows(), out(32, "out");
    launch(vectors_of_rows<false>, 1, 32, 0, reinterpret_cast<const float4*>(rows.data()), out.data());
    const std::vector<float> got = out.download();
    for (std::size_t i = 0; i < 32; ++i) CHECK(got[i] == (i % 8 == 7 ? 1 : 4));
  });
#endif
  planted::must_be_caught(
      {.kernel = "vectors_of_rows", .check = Check::kInitcheck, .variable = "values", .says = {"uninitialised"}},
      [] {
        const Buffer<float> rows = padded_rows(), out(32, "out");
        launch(vectors_of_rows<true>, 1, 32, 0, reinterpret_cast<const float4*>(rows.data()), out.data());
      },
      __FILE__);
}

// ----------------------------------------------------------------------------------------------------------------- bugs
void must_be_caught(const char* kernel, void (*function)(const float*, float*, int), int threads = kThreads) {
  planted::must_be_caught(
      {.kernel = kernel, .check = Check::kInitcheck, .variable = "values", .says = {"uninitialised"}},
      [&] {
        const auto in = filled(kThreads, 2.0f, "in"), out = filled(kThreads, 0.0f, "out");
        launch(function, 1, threads, 0, in.data(), out.data(), threads == 32 ? 20 : kWritten);
      },
      __FILE__);
}
#define MUST_BE_CAUGHT(kernel, ...) must_be_caught(#kernel, kernel __VA_OPT__(, ) __VA_ARGS__)

// A maximum ignores a NaN.
template <bool kAdds>
__global__ void tail_is_reduced(const float* in, float* out, int n) {
  __shared__ float values[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  if (t < n) values[t] = in[t];
  __syncthreads();
  for (int half = kThreads / 2; half; half /= 2) {
    if (t < half) values[t] = kAdds ? values[t] + values[t + half] : fmaxf(values[t], values[t + half]);  // BUG
    __syncthreads();
  }
  if (t == 0) *out = values[0];
}
__global__ void one_too_many(const float* in, float* out, int n) {
  __shared__ float values[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  if (t < n) values[t] = in[t];
  __syncthreads();
  float least = 1e30f, most = -1e30f;
  for (int i = 0; i <= n && t == 0; ++i) {
    const float value = values[i];  // BUG
    least = fminf(least, value), most = fmaxf(most, value);
  }
  if (t == 0) *out = most - least;
}
// The value crosses a barrier in a register.
__global__ void halo_is_missing(const float* in, float* out, int) {
  __shared__ float values[kThreads + 2];
  const int t = static_cast<int>(threadIdx.x);
  values[t + 1] = in[t];
  __syncthreads();
  const float sum = values[t] + values[t + 1] + values[t + 2];  // BUG: 0 and the last
  __syncthreads();
  values[t + 1] = sum;
  __syncthreads();
  out[t] = values[t + 1];
}
__global__ void a_warp_adds_it(const float* in, float* out, int n) {
  __shared__ float values[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  if (t < n) values[t] = in[t];
  __syncwarp();
  float sum = values[t];  // BUG
  for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
  if (t == 0) *out = sum;
}
__global__ void it_is_counted(const float* in, float* out, int n) {
  __shared__ float values[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  if (t < n) values[t] = in[t];
  __syncthreads();
  const int count = __syncthreads_count(values[t] > 1e9f);  // BUG
  if (t == 0) *out = static_cast<float>(count);
}
__global__ void it_goes_into_an_atomic(const float* in, float* out, int n) {
  __shared__ float values[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  if (t < n) values[t] = in[t];
  __syncthreads();
  atomicAdd(out, values[t]);  // BUG
}
__global__ void it_decides(const float* in, float* out, int) {
  __shared__ bool values;
  if (values) return;  // BUG
  out[threadIdx.x] = in[threadIdx.x];
}
__global__ void it_says_how_often(const float* in, float* out, int) {
  __shared__ int values;
  float sum = 0;
  for (int i = 0; i < values && i < 100; ++i) sum += in[i];  // BUG
  out[threadIdx.x] = sum;
}
struct Big {
  float numbers[8];
};
// The hooks of a struct's copy come before the copy.
__global__ void struct_is_copied(const float* in, float* out, int) {
  __shared__ Big values[8];
  const int t = static_cast<int>(threadIdx.x);
  if (t % 8 && t < 64) values[t / 8].numbers[t % 8] = in[t];
  __syncthreads();
  if (t < 8) reinterpret_cast<Big*>(out)[t] = values[t];  // BUG: the first number
}
TEST_CASE("what comes of unwritten shared memory can be seen") {
  must_be_caught("tail_is_reduced", tail_is_reduced<true>);
  must_be_caught("tail_is_reduced", tail_is_reduced<false>);
  MUST_BE_CAUGHT(one_too_many);
  MUST_BE_CAUGHT(halo_is_missing);
  MUST_BE_CAUGHT(a_warp_adds_it, 32);
  MUST_BE_CAUGHT(it_is_counted);
  MUST_BE_CAUGHT(it_goes_into_an_atomic);
  MUST_BE_CAUGHT(it_decides);
  MUST_BE_CAUGHT(it_says_how_often);
  MUST_BE_CAUGHT(struct_is_copied);
}

// Where the write comes, but too late, the report is of the race.
__global__ void barrier_is_missing(const float* in, float* out, int) {
  __shared__ float values[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  values[t] = in[t];                  // BUG
  out[t] = values[kThreads - 1 - t];  // BUG
}
TEST_CASE("read before it is written") {
  planted::must_be_caught(
      {.kernel = "barrier_is_missing", .check = Check::kRacecheck, .variable = "values"},
      [] {
        const auto in = filled(kThreads, 2.0f, "in"), out = filled(kThreads, 0.0f, "out");
        launch(barrier_is_missing, 1, kThreads, 0, in.data(), out.data(), 0);
      },
      __FILE__);
}

}  // namespace

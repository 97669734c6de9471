/// @file
/// Barriers that threads reach in different rounds of a loop, and correct loops that look like that.
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

Buffer<int> numbers(std::size_t n, const char* name) {
  std::vector<int> host(n);
  for (std::size_t i = 0; i < n; ++i) host[i] = static_cast<int>(i);
  return Buffer<int>(host, name);
}

template <class Kernel>
void must_diverge(Kernel* kernel, const char* name, unsigned blocks = 1) {
  planted::must_be_caught(
      {.kernel = name, .check = Check::kSynccheck, .says = {"different rounds"}},
      [&] {
        const Buffer<int> in = numbers(256, "in"), out(256, "out");
        launch(kernel, blocks, 64, 0, in.data(), out.data());
      },
      __FILE__);
}

// ----------------------------------------------------------------------------------------------------------------- bugs
__global__ void even_threads_first(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  for (int round = 0; round < 2; ++round)
    if (t % 2 == round) {
      s[t] = in[t];
      __syncthreads();  // BUG: half of the threads in round 0, the others in round 1
      out[t] = s[63 - t];
    }
}
__global__ void one_thread_is_late(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  int seen = 0;
  for (int i = 0; i < 4; ++i) {
    if (t == 5 && i == 1) continue;
    s[t] = in[t] + i;
    __syncthreads();  // BUG: thread 5 skips it once
    seen += s[t];
    if (t == 5 && i == 3) {
      s[t] = 0;
      __syncthreads();  // BUG: so that all have waited as often
    }
  }
  out[t] = seen;
}
__global__ void warps_in_turn_in_each_tile(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  int sum = 0;
  for (int tile = 0; tile < 3; ++tile) {
    for (int turn = 0; turn < 2; ++turn)
      if (t / 32 == turn) {
        s[t] = in[tile * 64 + t];
        __syncthreads();  // BUG: warp 0 in the first turn, warp 1 in the second
      }
    sum += s[t];
  }
  out[t] = sum;
}
TEST_CASE("a barrier in different rounds") {
  must_diverge(even_threads_first, "even_threads_first");
  must_diverge(even_threads_first, "even_threads_first", 3);
  must_diverge(warps_in_turn_in_each_tile, "warps_in_turn_in_each_tile");
}
TEST_CASE("a thread that skips a barrier and is waited for at another") {
  planted::must_be_caught(
      {.kernel = "one_thread_is_late", .check = Check::kSynccheck},
      [] {
        const Buffer<int> in = numbers(64, "in"), out(64, "out");
        launch(one_thread_is_late, 1, 64, 0, in.data(), out.data());
      },
      __FILE__);
}

// Where a race shows first: the barrier is named, for nobody knows yet that it stands in the loop.
__global__ void barrier_for_the_lower_half(const int* in, int* out) {
  __shared__ int s[64];
  const int i = threadIdx.x;
  s[i] = in[i];
  __syncthreads();
  for (int j = 1; j < 64; j *= 2)
    if (const int p = i ^ j; p > i) {
      const int a = s[i], b = s[p];
      s[i] = a + b, s[p] = a - b;
      __syncthreads();
    }
  out[i] = s[i];
}
// Blocks in which all threads come have passed it.
__global__ void barrier_for_some_rows(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  int sum = 0;
  for (int k = 0; k < 4; ++k) {
    s[t] = in[k * 64 + t];
    if (blockIdx.x == 0 || t > 60) __syncthreads();
    if (k % 2 == 0) sum += s[t ^ 1];
    if (blockIdx.x == 0 || t > 60) __syncthreads();
  }
  out[blockIdx.x * 64 + t] = sum;
}
std::string expected_of(const std::function<void()>& start) {
  try {
    start();
  } catch (const interpreter::KernelError& error) {
    CHECK(std::string(name(error.diagnosis.check)) == "racecheck");
    return error.diagnosis.expected;
  }
  return "nothing was reported";
}
TEST_CASE("a race that a barrier in a branch leaves open: the barrier is named") {
  const Buffer<int> in = numbers(256, "in"), out(128, "out");
  const std::string half = expected_of([&] { launch(barrier_for_the_lower_half, 1, 64, 0, in.data(), out.data()); });
  CHECK_MESSAGE(planted::contains(half, "waits there, and this thread has begun another round"), half);
  const WithOptions on_one_core([](auto& o) { o.workers = 1; });
  const std::string rows = expected_of([&] { launch(barrier_for_some_rows, 2, 64, 0, in.data(), out.data()); });
  CHECK_MESSAGE(planted::contains(rows, "in each round of the loop"), rows);
}
__global__ void barrier_behind_the_loop(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = in[t];
  out[t] = s[63 - t];
  __syncthreads();
  out[64 + t] = s[t];
}
TEST_CASE("a race that has nothing to do with a loop: no other barrier is named") {
  const Buffer<int> in = numbers(64, "in"), out(128, "out");
  const std::string told = expected_of([&] { launch(barrier_behind_the_loop, 1, 64, 0, in.data(), out.data()); });
  CHECK_MESSAGE(planted::contains(told, "__syncthreads() between the two"), told);
  CHECK_MESSAGE(!planted::contains(told, "round"), told);
}

// -------------------------------------------------------------------------------------------------------------- correct
template <class Kernel>
void must_be_silent(Kernel* kernel) {
  in_all_orders([&] {
    const Buffer<int> in = numbers(512, "in"), out(std::vector<int>(512, 0), "out");
    CHECK_NOTHROW(launch(kernel, 3, 64, 0, in.data(), out.data()));
  });
}

// Each thread walks as far as it likes between two barriers.
__global__ void walks_of_any_length(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  int at = 0;
  for (int round = 0; round < 4; ++round) {
    while (at < in[(t * 7 + round) % 64]) ++at;
    s[t] = at;
    __syncthreads();
    at = s[63 - t] / 2;
    for (int i = 0; i < t % 5; ++i)
      if (in[i] % 2) at += i;
    __syncthreads();
  }
  if (blockIdx.x == 0) out[t] = at;
}
TEST_CASE("inner loops of different lengths") { must_be_silent(walks_of_any_length); }

// The walk begins where the loop around the barrier begins, too.
__global__ void loops_with_one_head(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  int at = t % 3, rounds = 0;
  for (;;) {
    if (at < in[t % 16]) {
      at += 2;
      continue;
    }
    s[t] = at;
    __syncthreads();
    at = s[(t + 1) % 64] - in[(t + rounds) % 8];
    __syncthreads();
    if (++rounds == 5) break;
  }
  if (blockIdx.x == 0) out[t] = at;
}
TEST_CASE("an inner loop and an outer one that begin in the same place") { must_be_silent(loops_with_one_head); }

// All threads skip the same rounds; what they do in them differs.
__global__ void rounds_that_all_skip(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  int sum = 0;
  for (int round = 0; round < 9; ++round) {
    if (round % 3 == 1) {
      if (t % 2) sum += in[round];
      continue;
    }
    s[t] = in[t] + round;
    __syncthreads();
    if (s[t ^ 1] % 4 < 2) sum += s[t ^ 1];
    __syncthreads();
    if (round % 3 == 2) continue;
    sum += in[sum % 64];
    __syncthreads();
  }
  if (blockIdx.x == 0) out[t] = sum;
}
__global__ void rounds_behind_the_last_barrier(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  int sum = 0;
  for (int tile = 0; tile < 3; ++tile) {
    const int rounds = 1 + in[(t + tile) % 64] % 6;
    for (int i = 0; i < rounds; ++i) {
      if (i == 0) {
        __syncthreads();
        s[t] = in[t] + tile;
        __syncthreads();
      }
      sum += s[(t + i) % 64];
    }
  }
  if (blockIdx.x == 0) out[t] = sum;
}
__global__ void fewer_threads_each_round(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = in[t];
  for (int active = 32; active > 0; active /= 2) {
    __syncthreads();
    if (t >= active) return;
    s[t] += s[t + active];
  }
  if (blockIdx.x == 0 && t == 0) out[0] = s[0];
}
// What a thread has found decides its way through all later rounds: compilers make another loop of that.
__global__ void threads_that_have_found(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  bool searches = true;
  int found = -1;
  for (int i = 0; i < 8; ++i) {
    __syncthreads();
    s[t] = in[(t * 5 + i) % 64];
    __syncthreads();
    if (i == 4) continue;
    if (searches && s[(t + i) % 64] % 8 == 3) {
      found = i;
      searches = false;
    }
  }
  if (blockIdx.x == 0) out[t] = found;
}
TEST_CASE("rounds that all threads skip, and those behind the last barrier") {
  must_be_silent(rounds_that_all_skip);
  must_be_silent(rounds_behind_the_last_barrier);
  must_be_silent(fewer_threads_each_round);
  must_be_silent(threads_that_have_found);
}

}  // namespace

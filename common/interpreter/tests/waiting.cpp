/// @file
/// Threads that wait, that work for long, that never end: only those that are stuck are reported, and they soon.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "common/device/device.cuh"
#include "common/interpreter/tests/orders.h"
#include "common/interpreter/tests/planted.h"

using device::Buffer;
using device::launch;
using interpreter::Check;

namespace {

std::vector<int> iota(std::size_t n) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), 0);
  return v;
}
template <class T>
Buffer<T> zeros(std::size_t n, const char* name) {
  return Buffer<T>(std::vector<T>(n, T(0)), name);
}
void must_be_caught(const planted::Bug& bug, const std::function<void()>& start) { planted::must_be_caught(bug, start, __FILE__); }

// ------------------------------------------------------------------------------------- what only looks like waiting
// Nearly all of these atomics change nothing.
__global__ void smallest(const int* in, int n, int* least, unsigned* seen) {
  __shared__ int block_least;
  if (threadIdx.x == 0) block_least = in[0];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) {
    atomicMin(&block_least, in[i]);
    atomicOr(seen, 1u << (in[i] & 15));
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicMin(least, block_least);
}
TEST_CASE("atomics that change nothing, thousands in a row") {
  in_all_orders([] {
    const Buffer<int> in(std::vector<int>(20'000, 7), "in");
    auto least = zeros<int>(1, "least");
    auto seen = zeros<unsigned>(1, "seen");
    least.upload(std::vector<int>{100}.data(), 1);
    launch(smallest, 2, 64, 0, in.data(), 20'000, least.data(), seen.data());
    CHECK(least.download() == std::vector<int>{7});
    CHECK(seen.download() == std::vector<unsigned>{1u << 7});
  });
}

// Bound and step stand in memory that somebody else could change, and nobody does.
__global__ void counts_behind_volatile(const volatile int* bound, const volatile int* step, int* out) {
  int rounds = 0;
  for (int i = 0; i < *bound; i += *step) ++rounds;
  out[threadIdx.x] = rounds;
}
TEST_CASE("a loop whose bound is volatile") {
  in_all_orders([] {
    const Buffer<int> bound(std::vector<int>{30'000}, "bound"), step(std::vector<int>{3}, "step");
    Buffer<int> out(32, "out");
    launch(counts_behind_volatile, 1, 32, 0, bound.data(), step.data(), out.data());
    CHECK(out.download() == std::vector<int>(32, 10'000));
  });
}

__global__ void waits_for_a_time(int* out, long long ticks, bool sleeps) {
  const long long begin = clock64();
  while (clock64() - begin < ticks)
    if (sleeps) __nanosleep(20);
  out[threadIdx.x] = 1;
}
__global__ void gives_up_in_time(const volatile int* flag, int* out, long long ticks) {
  const long long begin = clock64();
  bool came = true;
  while (*flag == 0)
    if (clock64() - begin > ticks) {
      came = false;
      break;
    }
  out[threadIdx.x] = came;
}
TEST_CASE("waiting for a time") {
  in_all_orders([] {
    Buffer<int> out(32, "out");
    for (const bool sleeps : {false, true}) {
      launch(waits_for_a_time, 1, 32, 0, out.data(), 3'000'000ll, sleeps);
      CHECK(out.download() == std::vector<int>(32, 1));
    }
    const auto flag = zeros<int>(1, "flag");
    launch(gives_up_in_time, 1, 32, 0, flag.data(), out.data(), 3'000'000ll);
    CHECK(out.download() == std::vector<int>(32, 0));
  });
}

// One lane walks a list round and round; nothing that it does is seen outside until it has ended.
__global__ void walks_while_others_wait(const int* next, int steps, int* out) {
  __shared__ int done_storage, found;
  volatile int* const done = &done_storage;
  if (threadIdx.x == 0) *done = 0;
  __syncthreads();
  if (threadIdx.x == 5) {
    int at = 0;
    for (int i = 0; i < steps; ++i) at = next[at];
    found = at;
    __threadfence_block();
    *done = 1;
  } else {
    while (*done == 0) {
    }
    __threadfence_block();
    out[threadIdx.x] = found;
  }
}
TEST_CASE("others wait while one thread works alone") {
  in_all_orders([] {
    Buffer<int> next(std::vector<int>{1, 2, 3, 4, 0}, "next");
    auto out = zeros<int>(64, "out");
    launch(walks_while_others_wait, 1, 64, 0, next.data(), 1'000'003, out.data());
    CHECK(out.download()[0] == 3);
    CHECK(out.download()[63] == 3);
  });
}

// The same few elements over and over, longer than it takes to become suspicious.
__global__ void sums_again_and_again(const int* in, unsigned rounds, int* out) {
  unsigned sum = 0;
  for (unsigned r = 0; r < rounds; ++r) sum += static_cast<unsigned>(in[r % 4]);
  out[threadIdx.x] = static_cast<int>(sum);
}
TEST_CASE("a long loop over the same memory is not endless") {
  const WithOptions impatient([](auto& o) { o.hang_seconds = 0.08; });
  const Buffer<int> in(std::vector<int>{1, 2, 3, 4}, "in");
  Buffer<int> out(8, "out");
  launch(sums_again_and_again, 1, 8, 0, in.data(), 1'000'000u, out.data());
  CHECK(out.download() == std::vector<int>(8, 2'500'000));
}

// Two flags in turn, set by a block that has not started when one block runs at a time.
__global__ void waits_for_either(volatile int* left, volatile int* right, int* out) {
  if (blockIdx.x == 0) {
    while (*left == 0 && *right == 0) {
    }
    __threadfence();
    *out = 1;
  } else if (blockIdx.x == 1) {
    *right = 1;
  }
}
TEST_CASE("a thread that looks at two flags in turn") {
  for (const int workers : {0, 1}) {
    in_all_orders([&] {
      interpreter::options().workers = workers;
      auto left = zeros<int>(1, "left"), right = zeros<int>(1, "right"), out = zeros<int>(1, "out");
      launch(waits_for_either, 2, 1, 0, left.data(), right.data(), out.data());
      CHECK(out.download() == std::vector<int>{1});
    });
    interpreter::options().workers = 0;
  }
}

// ------------------------------------------------------------------------------------------------------------- stuck
// How often it has looked makes no difference to what it waits for.
__global__ void counts_its_looks(volatile int* flag, int* looks) {
  int n = 0;
  while (*flag == 0) ++n;  // BUG: nobody sets it
  looks[threadIdx.x] = n;
}
TEST_CASE("a deadlock of threads that count how often they have looked") {
  must_be_caught({.kernel = "counts_its_looks",
                  .check = Check::kSynccheck,
                  .variable = "flag",
                  .says = {"deadlock: block (0,0,0)", "2 threads", "poll flag", "waiting.cpp"}},
                 [] {
                   auto flag = zeros<int>(1, "flag"), looks = zeros<int>(2, "looks");
                   launch(counts_its_looks, 1, 2, 0, flag.data(), looks.data());
                 });
}

__global__ void waits_for_all(volatile int* flags, int n) {
  if (threadIdx.x > 0) flags[threadIdx.x] = 1;
  bool all = false;
  while (!all) {
    all = true;
    for (int i = 0; i < n; ++i) all &= flags[i] != 0;  // BUG: flag 0 is nobody's
  }
}
TEST_CASE("a deadlock of threads that look at many flags") {
  must_be_caught({.kernel = "waits_for_all", .check = Check::kSynccheck, .variable = "flags", .says = {"deadlock", "flags"}}, [] {
    auto flags = zeros<int>(20, "flags");
    launch(waits_for_all, 1, 20, 0, flags.data(), 20);
  });
}

// Each warp's first lane looks at a flag of its own, the last warp's at the one that matters; the other lanes wait for them.
__global__ void warps_wait_for_their_lane(const volatile int* flags, const volatile int* key, int* out) {
  const unsigned warp = threadIdx.x / 32, last = blockDim.x / 32 - 1;
  if (threadIdx.x % 32 == 0 && warp == last) {
    while (*key == 0) {  // BUG: nobody sets it
    }
  } else if (threadIdx.x % 32 == 0) {
    while (flags[warp] == 0) {  // BUG: nor these
    }
  }
  __syncwarp();
  out[threadIdx.x] = 1;
}
TEST_CASE("a deadlock's report has each wait once, however many threads and warps are in it") {
  must_be_caught(
      {.kernel = "warps_wait_for_their_lane",
       .check = Check::kSynccheck,
       .variable = "flags",
       .says = {"496 threads (the first: (1,0,0)) wait in __syncwarp at waiting.cpp:", ", the first for lanes 0x00000001 of warp 0",
                "15 threads (the first: (0,0,0)) poll at waiting.cpp:", ", the first flags (byte 0 of 60)",
                "thread (480,0,0) polls key (byte 0 of 4) at waiting.cpp:"}},
      [] {
        auto flags = zeros<int>(15, "flags"), key = zeros<int>(1, "key"), out = zeros<int>(512, "out");
        launch(warps_wait_for_their_lane, 1, 512, 0, flags.data(), key.data(), out.data());
      });
}

// While it waits it writes a sign of life, so memory changes all the time.
__global__ void waits_with_a_heartbeat(volatile unsigned* flag, volatile unsigned* beat) {
  unsigned n = 0;
  while (*flag == 0) beat[blockIdx.x] = ++n;  // BUG: each block waits for the other one
  flag[0] = 1;
}
TEST_CASE("a deadlock of threads that change something that nobody waits for") {
  const WithOptions impatient([](auto& o) { o.hang_seconds = 0.2; });
  must_be_caught(
      {.kernel = "waits_with_a_heartbeat", .check = Check::kSynccheck, .says = {"deadlock between blocks", "block (1,0,0)"}}, [] {
        auto flag = zeros<unsigned>(1, "flag"), beat = zeros<unsigned>(2, "beat");
        launch(waits_with_a_heartbeat, 2, 1, 0, flag.data(), beat.data());
      });
}

// A test of a timer: each thread for itself takes less than what is endless.
__global__ void spins(long long nanoseconds) {
  const long long begin = clock64();
  while (clock64() - begin < nanoseconds) {
  }
}
TEST_CASE("threads that only look at the clock, one after the other") {
  const WithOptions impatient([](auto& o) { o.hang_seconds = 0.3; });
  launch(spins, 2, 32, 0, 30'000'000LL);
}

__global__ void forgets_to_count(const int* in, int* out, int n) {
  int sum = 0;
  for (int i = 0; i < n;) {
    sum += in[i];        // BUG: nothing ends the loop, for i stays what it is
    if (in[i] < 0) ++i;  // BUG
  }
  out[threadIdx.x] = sum;
}
TEST_CASE("an endless loop over memory, whose sum changes") {
  const WithOptions impatient([](auto& o) { o.hang_seconds = 0.2; });
  must_be_caught({.kernel = "forgets_to_count", .check = Check::kEndless, .variable = "in", .says = {"round in circles"}}, [] {
    auto in = zeros<int>(40, "in"), out = zeros<int>(40, "out");
    launch(forgets_to_count, 1, 40, 0, in.data(), out.data(), 40);
  });
}

__global__ void follows_a_ring(const int* next, int* out) {
  int at = 0;
  while (at >= 0) at = next[at];  // BUG: the list has no end
  out[threadIdx.x] = at;
}
TEST_CASE("an endless walk round a list") {
  const WithOptions impatient([](auto& o) { o.hang_seconds = 0.2; });
  must_be_caught({.kernel = "follows_a_ring", .check = Check::kEndless, .variable = "next", .says = {"round in circles"}}, [] {
    auto next = iota(1000);
    std::rotate(next.begin(), next.begin() + 1, next.end());
    const Buffer<int> ring(next, "next");
    Buffer<int> out(1, "out");
    launch(follows_a_ring, 1, 1, 0, ring.data(), out.data());
  });
}

__global__ void spins_on_a_plain_variable(const int* in, int* out) {
  __shared__ int ready;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x == 32) {
    ready = in[32];  // BUG
  } else if (threadIdx.x == 0) {
    while (ready == 0) {  // BUG: read once, as by nvcc
    }
    out[0] = 1;
  }
}
TEST_CASE("a plain variable that a thread waits for") {
  const WithOptions impatient([](auto& o) { o.hang_seconds = 0.2; });
  must_be_caught({.kernel = "spins_on_a_plain_variable", .check = Check::kEndless, .or_check = Check::kRacecheck}, [] {
    const Buffer<int> in(std::vector<int>(64, 1), "in");
    auto out = zeros<int>(1, "out");
    launch(spins_on_a_plain_variable, 1, 64, 0, in.data(), out.data());
  });
}

}  // namespace

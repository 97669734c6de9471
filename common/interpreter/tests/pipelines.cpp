/// @file
/// Correct kernels that copy in the background and look suspicious. Every check stays silent, in all orders, and the result is
/// right.
///
/// A report is an exception, and an uncaught exception fails the test.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "common/device/ptx.cuh"
#include "common/interpreter/tests/orders.h"
#ifndef __CUDACC__
#include "common/interpreter/count/under_way.h"
#endif

using device::Buffer;
using device::launch;

namespace {

std::vector<int> iota(std::size_t n, int first = 0) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}
int sum(const std::vector<int>& v) { return std::accumulate(v.begin(), v.end(), 0); }

// --------------------------------------------------------------------------------------------------------------- rings
// Each thread needs all elements of each tile. Tiles count differently, so that none can stand for another.
template <int kStages>
__global__ void ring(const int* in, int* out, int tiles) {
  __shared__ int tile[kStages][64];
  constexpr int kAhead = kStages - 1;
  const int t = threadIdx.x;
  const auto copy = [&](int i) {
    if (i < tiles) device::cp_async_ca_4(&tile[i % kStages][t], &in[i * 64 + t]);
    device::cp_async_commit_group();
  };
  for (int i = 0; i < kAhead; ++i) copy(i);
  int total = 0;
  for (int i = 0; i < tiles; ++i) {
    if (kAhead == 0) copy(i);
    device::cp_async_wait_group<(kAhead > 0 ? kAhead - 1 : 0)>();
    __syncthreads();  // also: everybody has read tile i - 1, whose stage tile i + kAhead takes
    if (kAhead > 0) copy(i + kAhead);
    for (int j = 0; j < 64; ++j) total += (i + 1) * tile[i % kStages][j];
    if (kAhead == 0) __syncthreads();
  }
  out[blockIdx.x * 64 + t] = total;
}
int sum_of_ring(const std::vector<int>& in) {
  int total = 0;
  for (std::size_t i = 0; i < in.size(); ++i) total += static_cast<int>(i / 64 + 1) * in[i];
  return total;
}
template <int kStages>
void test_ring() {
  in_all_orders([] {
    for (int tiles = 0; tiles <= 2 * kStages + 1; ++tiles) {  // none, fewer than stages, more
      CAPTURE(tiles);
      const auto host = iota(64 * static_cast<std::size_t>(tiles), 3);
      Buffer<int> in(host, "in"), out(3 * 64, "out");
#ifndef __CUDACC__
      interpreter::most_under_way().forget(), interpreter::each_under_way().forget();
      interpreter::count_each_access = tiles != 3;  // nobody asks for one of them
#endif
      launch(ring<kStages>, 3, 64, 0, in.data(), out.data(), tiles);
#ifndef __CUDACC__  // a copy for each tile that the first wait leaves alone
      CHECK(interpreter::most_under_way().ahead == static_cast<unsigned>(std::max(std::min(kStages - 2, tiles - 1), 0)));
      unsigned bytes =
          0;  // in the order of threads that a warp's program has, whichever runs: 3 blocks, 2 warps, 64 loads of a tile
      for (int i = 0; i < tiles; ++i) bytes += static_cast<unsigned>(3 * 2 * 64 * 32 * 4 * std::min(kStages - 1, tiles - 1 - i));
      const bool is_asked = std::exchange(interpreter::count_each_access, false);
      CHECK(interpreter::each_under_way().bytes_at_loads.load() == (interpreter::options().count && is_asked ? bytes : 0));
#endif
      CHECK(out.download() == std::vector<int>(3 * 64, sum_of_ring(host)));
    }
  });
}
TEST_CASE("rings of 1 to 5 stages, whose tail is empty groups") {
  test_ring<1>();
  test_ring<2>();
  test_ring<3>();
  test_ring<4>();
  test_ring<5>();
}
TEST_CASE("rings with checks switched off or the L2 model on") {
  using Options = interpreter::Options;
  void (*const changes[])(Options&) = {
      [](Options& o) { o.memcheck = false; },
      [](Options& o) { o.racecheck = false; },
      [](Options& o) { o.initcheck = false; },
      [](Options& o) { o.count = false; },
      [](Options& o) { o.memcheck = o.racecheck = o.initcheck = o.count = false; },
      [](Options& o) { o.l2_model = true; },
  };
  for (const auto change : changes) {
    const WithOptions changed(change);
    test_ring<3>();
  }
}

__global__ void tail_without_empty_groups(const int* in, int* out, int tiles) {
  __shared__ int tile[3][64];
  const int t = threadIdx.x;
  const auto copy = [&](int i) {
    device::cp_async_ca_4(&tile[i % 3][t], &in[i * 64 + t]);
    device::cp_async_commit_group();
  };
  for (int i = 0; i < 2 && i < tiles; ++i) copy(i);
  int total = 0;
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles)
      device::cp_async_wait_group<1>();
    else
      device::cp_async_wait_group<0>();  // the last tile's group is the last group
    __syncthreads();
    if (i + 2 < tiles) copy(i + 2);
    for (int j = 0; j < 64; ++j) total += (i + 1) * tile[i % 3][j];
  }
  out[t] = total;
}
TEST_CASE("a tail that waits for all groups instead of committing empty ones") {
  in_all_orders([] {
    for (const int tiles : {1, 2, 3, 7}) {
      const auto host = iota(64 * static_cast<std::size_t>(tiles));
      Buffer<int> in(host, "in"), out(64, "out");
      launch(tail_without_empty_groups, 1, 64, 0, in.data(), out.data(), tiles);
      CHECK(out.download() == std::vector<int>(64, sum_of_ring(host)));
    }
  });
}

__global__ void refill_before_barrier(const int* in, int* out, int tiles) {
  __shared__ int tile[4][64];  // two tiles ahead in four stages: the stage that is refilled was read before the last barrier
  const int t = threadIdx.x;
  const auto copy = [&](int i) {
    if (i < tiles) device::cp_async_ca_4(&tile[i % 4][t], &in[i * 64 + t]);
    device::cp_async_commit_group();
  };
  copy(0), copy(1);
  int total = 0;
  for (int i = 0; i < tiles; ++i) {
    copy(i + 2);
    device::cp_async_wait_group<2>();
    __syncthreads();
    for (int j = 0; j < 64; ++j) total += (i + 1) * tile[i % 4][j];
  }
  out[t] = total;
}
TEST_CASE("refill before the barrier, with a stage to spare") {
  in_all_orders([] {
    const auto host = iota(64 * 9);
    Buffer<int> in(host, "in"), out(64, "out");
    launch(refill_before_barrier, 1, 64, 0, in.data(), out.data(), 9);
    CHECK(out.download() == std::vector<int>(64, sum_of_ring(host)));
  });
}

__global__ void double_buffer_without_groups(const int* in, int* out, int tiles) {
  __shared__ int tile[2][64];
  const int t = threadIdx.x;
  device::cp_async_ca_4(&tile[0][t], &in[t]);
  int total = 0;
  for (int i = 0; i < tiles; ++i) {
    device::cp_async_wait_all();
    __syncthreads();
    if (i + 1 < tiles) device::cp_async_ca_4(&tile[(i + 1) % 2][t], &in[(i + 1) * 64 + t]);
    for (int j = 0; j < 64; ++j) total += (i + 1) * tile[i % 2][j];
  }
  out[t] = total;
}
TEST_CASE("double buffer with one barrier per tile, wait_all and no commit at all") {
  in_all_orders([] {
    const auto host = iota(64 * 5);
    Buffer<int> in(host, "in"), out(64, "out");
    launch(double_buffer_without_groups, 1, 64, 0, in.data(), out.data(), 5);
    CHECK(out.download() == std::vector<int>(64, sum_of_ring(host)));
  });
}

__global__ void two_groups_per_tile(const int* in, const int* weights, int* out, int tiles) {
  __shared__ int tile[2][64], weight[2][64];
  const int t = threadIdx.x;
  const auto copy = [&](int i) {
    if (i < tiles) device::cp_async_ca_4(&tile[i % 2][t], &in[i * 64 + t]);
    device::cp_async_commit_group();
    if (i < tiles) device::cp_async_ca_4(&weight[i % 2][t], &weights[i * 64 + t]);
    device::cp_async_commit_group();
  };
  copy(0);
  int total = 0;
  for (int i = 0; i < tiles; ++i) {
    copy(i + 1);
    device::cp_async_wait_group<3>();  // tile i has landed, its weights may have not
    __syncthreads();
    int part = 0;
    for (int j = 0; j < 64; ++j) part += tile[i % 2][j];
    device::cp_async_wait_group<2>();
    __syncthreads();
    for (int j = 0; j < 64; ++j) total += part * weight[i % 2][j];
    __syncthreads();
  }
  out[t] = total;
}
TEST_CASE("operands that are waited for one after the other") {
  in_all_orders([] {
    const std::vector<int> ones(64 * 4, 1);
    Buffer<int> in(ones, "in"), weights(iota(64 * 4), "weights"), out(64, "out");
    launch(two_groups_per_tile, 1, 64, 0, in.data(), weights.data(), out.data(), 4);
    CHECK(out.download() == std::vector<int>(64, 64 * sum(iota(64 * 4))));
  });
}

// ------------------------------------------------------------------------------------------------------- who copies what
__global__ void ragged(const int4* in, int4* out, int n) {  // n ints
  alignas(16) __shared__ int4 tile[64];
  const int t = threadIdx.x;
  device::cp_async_cg_16(&tile[t], in + t, max(0, min(n - 4 * t, 4)) * 4);  // of some chunks nothing exists
  device::cp_async_commit_group();
  device::cp_async_wait_group<0>();
  __syncthreads();
  out[t] = tile[63 - t];
}
TEST_CASE("addresses past the end with source_bytes 0") {
  in_all_orders([] {
    for (const int n : {1, 4, 101, 256}) {
      const auto host = iota(static_cast<std::size_t>(n), 1);
      Buffer<int> in(host, "in"), out(256, "out");
      launch(ragged, 1, 64, 0, reinterpret_cast<const int4*>(in.data()), reinterpret_cast<int4*>(out.data()), n);
      const std::vector<int> result = out.download();
      for (int i = 0; i < 256; ++i) CHECK(result[static_cast<std::size_t>((63 - i / 4) * 4 + i % 4)] == (i < n ? i + 1 : 0));
    }
  });
}

__global__ void ragged_by_predicate(const int4* in, int4* out, int n) {
  alignas(16) __shared__ int4 tile[64];
  const int t = threadIdx.x;
  device::cp_async_cg_16_if(t < n, &tile[t], in + t);
  device::cp_async_wait_all();
  __syncthreads();
  out[t] = tile[63 - t];
}
TEST_CASE("addresses past the end whose predicate is false") {
  in_all_orders([] {
    for (const int n : {1, 5, 64}) {
      const auto host = iota(static_cast<std::size_t>(4 * n), 1);
      Buffer<int> in(host, "in"), out(256, "out");
      launch(ragged_by_predicate, 1, 64, 0, reinterpret_cast<const int4*>(in.data()), reinterpret_cast<int4*>(out.data()), n);
      const std::vector<int> result = out.download();
      for (int i = 0; i < 256; ++i) CHECK(result[static_cast<std::size_t>((63 - i / 4) * 4 + i % 4)] == (i < 4 * n ? i + 1 : 0));
    }
  });
}

__global__ void mixed_sizes(const int* in, int* out) {
  alignas(16) __shared__ int row[4 * 32];
  const int t = threadIdx.x;
  int* const to = row + 4 * t;
  const int* const from = in + 4 * t;
  if (t % 3 == 0) {
    device::cp_async_cg_16(to, from);
  } else if (t % 3 == 1) {
    device::cp_async_ca_8(to + 2, from + 2);
    device::cp_async_ca_8(to, from);
  } else {
    device::cp_async_ca_4(to + 3, from + 3);
    device::cp_async_ca_8(to, from);
    device::cp_async_ca_4(to + 2, from + 2);
  }
  device::cp_async_commit_group();
  device::cp_async_wait_group<0>();
  __syncwarp();
  for (int i = t; i < 128; i += 32) out[i] = row[127 - i];
}
TEST_CASE("copies of 16, 8 and 4 bytes into one row, different numbers of them per thread and group") {
  in_all_orders([] {
    auto host = iota(128);
    Buffer<int> in(host, "in"), out(128, "out");
    launch(mixed_sizes, 1, 32, 0, in.data(), out.data());
    std::reverse(host.begin(), host.end());
    CHECK(out.download() == host);
  });
}

__global__ void one_warp_copies(const int* in, int* out, int tiles) {
  __shared__ int tile[3][128];
  const int t = threadIdx.x;
  const auto copy = [&](int i) {
    if (i < tiles && t < 32)
      for (int j = t; j < 128; j += 32) device::cp_async_ca_4(&tile[i % 3][j], &in[i * 128 + j]);
    device::cp_async_commit_group();
  };
  copy(0), copy(1);
  int total = 0;
  for (int i = 0; i < tiles; ++i) {
    if (t < 32) device::cp_async_wait_group<1>();  // the others have nothing to wait for
    __syncthreads();
    copy(i + 2);
    for (int j = 0; j < 128; ++j) total += tile[i % 3][j];
  }
  out[t] = total;
}
TEST_CASE("one warp copies for the whole block") {
  in_all_orders([] {
    const auto host = iota(128 * 6);
    Buffer<int> in(host, "in"), out(128, "out");
    launch(one_warp_copies, 1, 128, 0, in.data(), out.data(), 6);
    CHECK(out.download() == std::vector<int>(128, sum(host)));
  });
}

__global__ void copies_in_uneven_shares(const int* in, int* out, int tiles) {
  __shared__ int tile[2][100];  // 100 elements, 64 threads: thread t copies t % 3 elements at a time, until all are copied
  const int t = threadIdx.x;
  const auto copy = [&](int i) {
    if (i < tiles) {
      const int first = t / 3 * 3 + (t % 3 == 2 ? 1 : 0);  // of three threads, the second copies one, the third two
      for (int j = 0; j < t % 3; ++j) device::cp_async_ca_4(&tile[i % 2][first + j], &in[i * 100 + first + j]);
      for (int j = 63 + t; j < 100; j += 64) device::cp_async_ca_4(&tile[i % 2][j], &in[i * 100 + j]);
    }
    device::cp_async_commit_group();
  };
  copy(0);
  int total = 0;
  for (int i = 0; i < tiles; ++i) {
    device::cp_async_wait_group<0>();
    __syncthreads();
    copy(i + 1);
    for (int j = 0; j < 100; ++j) total += tile[i % 2][j];
  }
  out[t] = total;
}
TEST_CASE("threads that issue different numbers of copies") {
  in_all_orders([] {
    const auto host = iota(100 * 5);
    Buffer<int> in(host, "in"), out(64, "out");
    launch(copies_in_uneven_shares, 1, 64, 0, in.data(), out.data(), 5);
    CHECK(out.download() == std::vector<int>(64, sum(host)));
  });
}

__global__ void own_copies(const int* in, int* out) {
  __shared__ int place[3][64];
  const int t = threadIdx.x;
  for (int i = 0; i < 3; ++i) {
    device::cp_async_ca_4(&place[i][t], &in[i * 64 + t]);
    device::cp_async_commit_group();
  }
  device::cp_async_wait_group<2>();
  int total = place[0][t];
  device::cp_async_wait_group<1>();
  total += place[1][t];
  place[0][t] = total;  // its copy is over, the others' need not be
  device::cp_async_wait_group<0>();
  out[t] = place[0][t] + place[2][t];
}
TEST_CASE("who reads only what he copied himself needs no barrier") {
  in_all_orders([] {
    Buffer<int> in(iota(3 * 64), "in"), out(64, "out");
    launch(own_copies, 1, 64, 0, in.data(), out.data());
    for (int t = 0; t < 64; ++t) CHECK(out.download()[static_cast<std::size_t>(t)] == 3 * t + 192);
  });
}

__global__ void ring_of_each_warp(const int* in, int* out, int tiles) {
  __shared__ int tile[4][3][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto copy = [&](int i) {
    if (i < tiles) device::cp_async_ca_4(&tile[warp][i % 3][lane], &in[(warp * tiles + i) * 32 + lane]);
    device::cp_async_commit_group();
  };
  copy(0), copy(1);
  int total = 0;
  for (int i = 0; i < tiles; ++i) {
    device::cp_async_wait_group<1>();
    __syncwarp();
    copy(i + 2);
    for (int j = 0; j < 32; ++j) total += tile[warp][i % 3][j];
  }
  out[threadIdx.x] = total;
}
TEST_CASE("each warp has a ring of its own and __syncwarp only") {
  in_all_orders([] {
    const auto host = iota(4 * 5 * 32);
    Buffer<int> in(host, "in"), out(128, "out");
    launch(ring_of_each_warp, 1, 128, 0, in.data(), out.data(), 5);
    for (int t = 0; t < 128; ++t) CHECK(out.download()[static_cast<std::size_t>(t)] == sum(iota(5 * 32, t / 32 * 5 * 32)));
  });
}

__global__ void early_exit(const int* in, int* out, int n) {
  __shared__ int tile[64];
  const int t = threadIdx.x;
  if (t >= n) return;  // parts of a warp, and whole warps
  device::cp_async_ca_4(&tile[t], &in[t]);
  device::cp_async_wait_all();
  __syncthreads();
  out[t] = tile[n - 1 - t];
}
TEST_CASE("threads that have exited before") {
  in_all_orders([] {
    for (const int n : {5, 32, 47, 64}) {
      auto host = iota(static_cast<std::size_t>(n));
      Buffer<int> in(host, "in"), out(host.size(), "out");
      launch(early_exit, 1, 96, 0, in.data(), out.data(), n);
      std::reverse(host.begin(), host.end());
      CHECK(out.download() == host);
    }
  });
}

// ------------------------------------------------------------------------------------------------------ handed on
__global__ void producer_and_consumer(const int* in, int* out, int tiles) {
  __shared__ int tile[2][32];
  __shared__ int full, empty;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) full = empty = 0;
  __syncthreads();
  int total = 0;
  for (int i = 0; i < tiles; ++i) {
    if (warp == 0) {
      while (atomicAdd(&empty, 0) < i - 1) {
      }
      __threadfence_block();
      device::cp_async_ca_4(&tile[i % 2][lane], &in[i * 32 + lane]);
      device::cp_async_wait_all();
      __syncwarp();
      __threadfence_block();
      if (lane == 0) atomicAdd(&full, 1);
    } else {
      while (atomicAdd(&full, 0) <= i) {
      }
      __threadfence_block();
      for (int j = 0; j < 32; ++j) total += tile[i % 2][j];
      __syncwarp();
      __threadfence_block();
      if (lane == 0) atomicAdd(&empty, 1);
    }
  }
  if (warp == 1) out[lane] = total;
}
TEST_CASE("a warp that copies tells a warp that computes by atomics") {
  in_all_orders([] {
    const auto host = iota(32 * 6);
    Buffer<int> in(host, "in"), out(32, "out");
    launch(producer_and_consumer, 1, 64, 0, in.data(), out.data(), 6);
    CHECK(out.download() == std::vector<int>(32, sum(host)));
  });
}

__global__ void one_lane_polls(const int* in, int* out, int tiles) {
  __shared__ int tile[2][32];
  __shared__ int full, empty;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) full = empty = 0;
  __syncthreads();
  int total = 0;
  for (int i = 0; i < tiles; ++i) {
    if (warp == 0) {
      if (lane == 0) {
        while (atomicAdd(&empty, 0) < i - 1) {
        }
        __threadfence_block();
      }
      __syncwarp();
      device::cp_async_ca_4(&tile[i % 2][lane], &in[i * 32 + lane]);
      device::cp_async_wait_all();
      __syncwarp();
      __threadfence_block();
      if (lane == 0) atomicAdd(&full, 1);
    } else {
      if (lane == 0) {
        while (atomicAdd(&full, 0) <= i) {
        }
        __threadfence_block();
      }
      __syncwarp();
      for (int j = 0; j < 32; ++j) total += tile[i % 2][j];
      __syncwarp();
      __threadfence_block();
      if (lane == 0) atomicAdd(&empty, 1);
    }
  }
  if (warp == 1) out[lane] = total;
}
TEST_CASE("a warp that copies tells a warp that computes by atomics, one lane for all") {
  in_all_orders([] {
    const auto host = iota(32 * 6);
    Buffer<int> in(host, "in"), out(32, "out");
    launch(one_lane_polls, 1, 64, 0, in.data(), out.data(), 6);
    CHECK(out.download() == std::vector<int>(32, sum(host)));
  });
}

__global__ void source_from_another_block(int* data, unsigned* ready, int* out) {
  __shared__ int place[32];
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = 3 * t;
    __threadfence();
    __syncthreads();
    if (t == 0) atomicExch(ready, 1u);
  } else {
    if (t == 0)
      while (atomicAdd(ready, 0u) == 0) {
      }
    __threadfence();
    __syncthreads();
    device::cp_async_ca_4(&place[t], &data[31 - t]);
    device::cp_async_wait_all();
    out[t] = place[t];
  }
}
TEST_CASE("source that another block has written, told by an atomic") {
  in_all_orders([] {
    Buffer<int> data(32, "data"), out(32, "out");
    Buffer<unsigned> ready(std::vector<unsigned>{0}, "ready");
    launch(source_from_another_block, 2, 32, 0, data.data(), ready.data(), out.data());
    for (int t = 0; t < 32; ++t) CHECK(out.download()[static_cast<std::size_t>(t)] == 3 * (31 - t));
  });
}

__global__ void source_of_the_own_block(int* data, int* out) {
  __shared__ int place[64];
  const int t = threadIdx.x;
  data[t] = t;
  data[t] += 100;  // the thread's own latest store is what it copies
  __syncthreads();
  device::cp_async_ca_4(&place[t], &data[63 - t]);
  device::cp_async_wait_all();
  __syncthreads();
  data[t] = 0;  // all copies are over
  out[t] = place[t];
}
TEST_CASE("source that was written before the copy and is overwritten after the wait") {
  in_all_orders([] {
    Buffer<int> data(64, "data"), out(64, "out");
    launch(source_of_the_own_block, 1, 64, 0, data.data(), out.data());
    for (int t = 0; t < 64; ++t) CHECK(out.download()[static_cast<std::size_t>(t)] == 163 - t);
    CHECK(data.download() == std::vector<int>(64, 0));
  });
}

__global__ void source_beside(int* data, int* out) {
  alignas(16) __shared__ int4 place[32];
  const int t = threadIdx.x;
  device::cp_async_cg_16(&place[t], &data[4 * t], 8);
  device::cp_async_commit_group();
  data[4 * t + 2] = 7, data[4 * t + 3] = 8;
  device::cp_async_wait_group<0>();
  out[t] = place[t].x + place[t].y + place[t].z + place[t].w;
}
TEST_CASE("stores beside the bytes that a copy reads") {
  in_all_orders([] {
    Buffer<int> data(iota(128), "data"), out(32, "out");
    launch(source_beside, 1, 32, 0, data.data(), out.data());
    for (int t = 0; t < 32; ++t) CHECK(out.download()[static_cast<std::size_t>(t)] == 8 * t + 1);
  });
}

__global__ void source_in_pieces(const int* data, int* out) {
  __shared__ int place[32];
  const int t = threadIdx.x;
  device::cp_async_ca_4(&place[t], &data[t]);
  device::cp_async_commit_group();
  const short* const pieces = reinterpret_cast<const short*>(data);
  const int other = pieces[2 * (31 - t)] + pieces[2 * (31 - t) + 1];
  out[t] = other;
  device::cp_async_wait_all();
  out[t] += place[t];
}
TEST_CASE("others read the source in smaller pieces meanwhile") {
  in_all_orders([] {
    Buffer<int> data(iota(32), "data"), out(32, "out");
    launch(source_in_pieces, 1, 32, 0, data.data(), out.data());
    CHECK(out.download() == std::vector<int>(32, 31));
  });
}

// ---------------------------------------------------------------------------------------------------- places used again
__global__ void one_place(const int* in, int* out, int rounds) {
  __shared__ int tile[64];
  const int t = threadIdx.x;
  int total = 0;
  for (int i = 0; i < rounds; ++i) {
    device::cp_async_ca_4(&tile[(t + i) % 64], &in[i * 64 + t]);  // another thread's place each time
    device::cp_async_commit_group();
    device::cp_async_wait_group<0>();
    __syncthreads();
    for (int j = 0; j < 64; ++j) total += tile[j];
    __syncthreads();
    tile[t] = -1;  // and plain stores in between
    __syncthreads();
    total -= tile[63 - t];
    __syncthreads();
  }
  out[t] = total;
}
TEST_CASE("one place for copies and stores in turn") {
  in_all_orders([] {
    const auto host = iota(64 * 4);
    Buffer<int> in(host, "in"), out(64, "out");
    launch(one_place, 1, 64, 0, in.data(), out.data(), 4);
    CHECK(out.download() == std::vector<int>(64, sum(host) + 4));
  });
}

__global__ void stores_beside_copies(const int* in, int* out) {
  alignas(16) __shared__ int row[4 * 64];
  const int t = threadIdx.x;
  device::cp_async_ca_8(row + 4 * t, in + 2 * t);
  device::cp_async_commit_group();
  row[4 * t + 2] = -t;  // beside the copy, while it is under way
  reinterpret_cast<short*>(row)[8 * ((t + 1) % 64) + 6] = 5;
  reinterpret_cast<short*>(row)[8 * ((t + 1) % 64) + 7] = 0;
  device::cp_async_wait_group<0>();
  __syncthreads();
  const int* const p = row + 4 * (63 - t);
  out[t] = p[0] + p[1] + p[2] + p[3];
}
TEST_CASE("copies and plain stores, even of single bytes, to different parts of one chunk") {
  in_all_orders([] {
    Buffer<int> in(iota(128), "in"), out(64, "out");
    launch(stores_beside_copies, 1, 64, 0, in.data(), out.data());
    for (int t = 0; t < 64; ++t) CHECK(out.download()[static_cast<std::size_t>(t)] == 3 * (63 - t) + 6);
  });
}

__global__ void epilogue_in_the_ring(const int* in, int* out, int tiles) {
  int* const ring = device::dynamic_smem<int>();
  const int t = threadIdx.x;
  const auto copy = [&](int i) {
    if (i < tiles) device::cp_async_ca_4(&ring[i % 2 * 64 + t], &in[i * 64 + t]);
    device::cp_async_commit_group();
  };
  copy(0);
  int total = 0;
  for (int i = 0; i < tiles; ++i) {
    device::cp_async_wait_group<0>();
    __syncthreads();
    copy(i + 1);
    for (int j = 0; j < 64; ++j) total += ring[i % 2 * 64 + j];
  }
  __syncthreads();  // empty groups may be under way, copies are not
  short* const results = reinterpret_cast<short*>(ring);
  results[t] = static_cast<short>(total + t);
  __syncthreads();
  out[t] = results[63 - t];
}
TEST_CASE("the ring's memory holds the results at last, as another type") {
  in_all_orders([] {
    const std::vector<int> host(64 * 3, 2);
    Buffer<int> in(host, "in"), out(64, "out");
    launch(epilogue_in_the_ring, 1, 64, 512, in.data(), out.data(), 3);
    for (int t = 0; t < 64; ++t) CHECK(out.download()[static_cast<std::size_t>(t)] == 384 + 63 - t);
  });
}

// Half of the blocks leave copies under way; those that follow in the same memory must not see anything of them.
__global__ void never_waited_for(const int* in, int* out) {
  __shared__ int tile[2][32];
  int* const more = device::dynamic_smem<int>();
  const int t = threadIdx.x;
  device::cp_async_ca_4(&tile[0][t], &in[t]);
  device::cp_async_commit_group();
  if (blockIdx.x % 2 == 0) {
    device::cp_async_ca_4(&tile[1][t], &in[t]);  // one tile too many, which nobody reads
    device::cp_async_ca_4(&more[t], &in[t]);
  } else {
    tile[1][t] = more[t] = 1;
    __syncwarp();
    out[blockIdx.x * 32 + t] = tile[1][31 - t] + more[31 - t];
  }
  device::cp_async_commit_group();
  device::cp_async_wait_group<1>();
  __syncwarp();
  if (blockIdx.x % 2 == 0) out[blockIdx.x * 32 + t] = tile[0][31 - t];
}
TEST_CASE("a copy that nobody waits for and nobody reads") {
  in_all_orders([] {
    Buffer<int> in(std::vector<int>(32, 2), "in"), out(20 * 32, "out");
    launch(never_waited_for, 20, 32, 128, in.data(), out.data());
    CHECK(out.download() == std::vector<int>(20 * 32, 2));
  });
}

// -------------------------------------------------------------------------------------------------------- with fragments
// d (16 x 8) = a (16 x 16 · tiles, row by row) · b (as many x 8, column by column), by each of two warps. The fragments of the
// next tile are loaded before those of this one are multiplied: across the barrier.
__global__ void fragments_ahead(const std::uint16_t* a, const std::uint16_t* b, float* d, int tiles) {
  alignas(16) __shared__ std::uint16_t sa[4][16 * 16], sb[4][8 * 16];
  const int t = threadIdx.x, lane = t % 32, pitch = 16 * tiles;
  const auto copy = [&](int i) {
    if (i < tiles) {
      if (t < 32) device::cp_async_cg_16(&sa[i % 4][8 * t], a + t / 2 * pitch + i * 16 + t % 2 * 8);
      if (t >= 48) device::cp_async_cg_16(&sb[i % 4][8 * (t - 48)], b + (t - 48) / 2 * pitch + i * 16 + t % 2 * 8);
    }
    device::cp_async_commit_group();
  };
  std::uint32_t ra[2][4], rb[2][2];
  const auto load = [&](int i) {
    device::ldmatrix_x4(ra[i % 2], &sa[i % 4][(lane / 8 % 2 * 8 + lane % 8) * 16 + lane / 16 * 8]);
    device::ldmatrix_x2(rb[i % 2], &sb[i % 4][lane % 8 * 16 + lane / 8 % 2 * 8]);
  };
  copy(0), copy(1), copy(2);
  device::cp_async_wait_group<2>();
  __syncthreads();
  load(0);
  float rd[4] = {};
  for (int i = 0; i < tiles; ++i) {
    device::cp_async_wait_group<1>();
    __syncthreads();
    if (i + 1 < tiles) load(i + 1);
    copy(i + 3);  // into the stage of tile i - 1, whose fragments everybody loaded before the last barrier
    device::mma_m16n8k16<__half>(rd, ra[i % 2], rb[i % 2]);
  }
  for (int i = 0; i < 4; ++i) d[t / 32 * 128 + (lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = rd[i];
}
TEST_CASE("fragments loaded ahead, across the barrier") {
  in_all_orders([] {
    for (const int tiles : {1, 2, 3, 8}) {
      const int k = 16 * tiles;
      const auto value = [](int i) { return i * 29 % 17 - 8; };
      const auto operand = [&](int n) {
        std::vector<std::uint16_t> v;
        for (int i = 0; i < n; ++i) v.push_back(std::bit_cast<std::uint16_t>(__half(static_cast<float>(value(i)))));
        return v;
      };
      Buffer<std::uint16_t> a(operand(16 * k), "a"), b(operand(8 * k), "b");
      Buffer<float> d(256, "d");
      launch(fragments_ahead, 1, 64, 0, a.data(), b.data(), d.data(), tiles);
      const std::vector<float> result = d.download();
      for (int i = 0; i < 256; ++i) {
        int expected = 0;
        for (int j = 0; j < k; ++j) expected += value(i % 128 / 8 * k + j) * value(i % 8 * k + j);
        REQUIRE(result[static_cast<std::size_t>(i)] == static_cast<float>(expected));
      }
    }
  });
}

__global__ void warps_at_different_instructions(const std::uint16_t* in, std::uint32_t* out) {
  alignas(16) __shared__ std::uint16_t tile[2][8 * 32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  device::cp_async_cg_16(&tile[warp][8 * lane], in + 8 * lane);
  device::cp_async_wait_all();
  __syncwarp();
  std::uint32_t r[4];
  if (warp == 0)  // whole warps may go different ways
    device::ldmatrix_x4(r, &tile[0][8 * lane]);
  else
    device::ldmatrix_x4_trans(r, &tile[1][8 * lane]);
  std::uint32_t sum = 0;
  for (const std::uint32_t x : r) sum += (x & 0xffff) + (x >> 16);
  out[threadIdx.x] = sum;
}
TEST_CASE("warps that execute different ldmatrix at the same time") {
  in_all_orders([] {
    std::vector<std::uint16_t> host(256);
    std::iota(host.begin(), host.end(), std::uint16_t(0));
    Buffer<std::uint16_t> in(host, "in");
    Buffer<std::uint32_t> out(64, "out");
    launch(warps_at_different_instructions, 1, 64, 0, in.data(), out.data());
    const auto result = out.download();
    for (unsigned t = 0; t < 64; ++t) {
      const unsigned far = t % 32 / 4, near = 2 * (t % 4);
      // Of matrix i: 64 i + 8 row + column; the sum over 4 matrices and two elements.
      const unsigned low = t < 32 ? 8 * far + near : 8 * near + far;
      CHECK(result[t] == 2 * 64 * 6 + 4 * (2 * low + (t < 32 ? 1 : 8)));
    }
  });
}

}  // namespace

/// @file
/// Correct kernels with mbarriers, bulk copies and named barriers that look suspicious. Every check stays silent, in all orders,
/// and the result is right.
///
/// A report is an exception, and an uncaught exception fails the test.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "common/device/bulk_copy.cuh"
#include "common/interpreter/tests/orders.h"

using device::Buffer;
using device::launch;
using device::Mbarrier;
using device::Swizzle;
using device::TensorMap;

namespace {

std::vector<int> iota(std::size_t n, int first = 0) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}

constexpr int kRows = 4, kColumns = 32, kTile = kRows * kColumns;  // of a tile

// A map of tiles, one below the other.
TensorMap map_of(const Buffer<int>& tensor, int tiles) {
  return device::make_tensor_map<int>({.data = tensor.data(),
                                       .rows = static_cast<std::uint64_t>(tiles) * kRows,
                                       .columns = kColumns,
                                       .row_stride = kColumns,
                                       .box_rows = kRows,
                                       .box_columns = kColumns});
}
// Tiles count differently, so that none can stand for another.
int sum_of_tiles(const std::vector<int>& tensor) {
  int sum = 0;
  for (std::size_t i = 0; i < tensor.size(); ++i) sum += static_cast<int>(i / kTile + 1) * tensor[i];
  return sum;
}
__device__ int sum_of_tile(const int* tile, int t) {
  int sum = 0;
  for (int j = 0; j < kTile; ++j) sum += tile[(j + t) % kTile];
  return sum;
}
__device__ void init_ring(Mbarrier* full, Mbarrier* empty, int stages, unsigned producers, unsigned consumers) {
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      device::mbarrier_init(&full[s], producers);
      device::mbarrier_init(&empty[s], consumers);
    }
    device::fence_mbarrier_init();
  }
  __syncthreads();
}

// Each thread of the last `consumers` sums all numbers of the `tiles` tiles.
void test_sums(const std::function<void(const TensorMap&, Buffer<int>&, int)>& start, std::size_t consumers) {
  in_all_orders([&] {
    for (const int tiles : {1, 2, 3, 4, 14}) {
      CAPTURE(tiles);
      const auto host = iota(static_cast<std::size_t>(tiles) * kTile, 3);
      const Buffer<int> tensor(host, "tensor");
      Buffer<int> out(consumers, "out");
      start(map_of(tensor, tiles), out, tiles);
      CHECK(out.download() == std::vector<int>(consumers, sum_of_tiles(host)));
    }
  });
}

// --------------------------------------------------------------------------------------------------------------- rings
enum class Arrivals { kElectedLane, kAllThreads, kLaneForWarp };

// Warp 0 produces, two warps consume; the number of tiles is no multiple of that of the stages, which are passed through many
// times.
template <int kStages, Arrivals arrivals>
__global__ void ring(const __grid_constant__ TensorMap map, int* out, int tiles) {
  alignas(128) __shared__ int tile[kStages][kTile];
  __shared__ Mbarrier full[kStages], empty[kStages];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  init_ring(full, empty, kStages, 1, arrivals == Arrivals::kElectedLane ? 2 : 64);
  if (warp == 0) {
    if (lane != 0) return;
    for (int i = 0; i < tiles; ++i) {
      const int s = i % kStages;
      device::mbarrier_wait_parity(&empty[s], (i / kStages & 1) ^ 1);  // the first round passes: the phase before the first is over
      device::mbarrier_arrive_expect_tx(&full[s], kTile * 4);
      device::cp_async_bulk_tensor_2d(tile[s], &map, 0, kRows * i, &full[s]);
    }
    return;
  }
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    const int s = i % kStages;
    device::mbarrier_wait_parity(&full[s], i / kStages & 1);
    sum += (i + 1) * sum_of_tile(tile[s], lane);
    if (arrivals == Arrivals::kAllThreads) {
      device::mbarrier_arrive(&empty[s]);
    } else {
      __syncwarp();
      if (lane == 7) device::mbarrier_arrive(&empty[s], arrivals == Arrivals::kLaneForWarp ? 32 : 1);
    }
  }
  out[threadIdx.x - 32] = sum;
}
template <int kStages, Arrivals arrivals>
void test_ring() {
  test_sums([](auto& map, auto& out, int tiles) { launch(ring<kStages, arrivals>, 1, 96, 0, map, out.data(), tiles); }, 64);
}
TEST_CASE("rings of 1 to 4 stages; one lane of each warp arrives, or all do, or one with all arrivals") {
  test_ring<1, Arrivals::kElectedLane>();
  test_ring<2, Arrivals::kElectedLane>();
  test_ring<3, Arrivals::kElectedLane>();
  test_ring<4, Arrivals::kElectedLane>();
  test_ring<3, Arrivals::kAllThreads>();
  test_ring<3, Arrivals::kLaneForWarp>();
}
#ifndef __CUDACC__
TEST_CASE("a ring with checks switched off") {
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
    test_ring<3, Arrivals::kElectedLane>();
  }
}
#endif

__global__ void producer_consumes(const __grid_constant__ TensorMap map, int* out, int tiles) {
  constexpr int kStages = 3;
  alignas(128) __shared__ int tile[kStages][kTile];
  __shared__ Mbarrier full[kStages], empty[kStages];
  const int t = threadIdx.x;
  init_ring(full, empty, kStages, 1, 64);
  const auto produce = [&](int i) {
    if (t != 0 || i >= tiles) return;
    const int s = i % kStages;
    device::mbarrier_wait_parity(&empty[s], (i / kStages & 1) ^ 1);
    device::mbarrier_arrive_expect_tx(&full[s], kTile * 4);
    device::cp_async_bulk_tensor_2d(tile[s], &map, 0, kRows * i, &full[s]);
  };
  for (int i = 0; i < kStages - 1; ++i) produce(i);
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    produce(i + kStages - 1);  // into the stage of tile i - 1, at which this thread has arrived
    device::mbarrier_wait_parity(&full[i % kStages], i / kStages & 1);
    sum += (i + 1) * sum_of_tile(tile[i % kStages], t);
    device::mbarrier_arrive(&empty[i % kStages]);
  }
  out[t] = sum;
}
TEST_CASE("the producer is a thread of a consuming warp") {
  test_sums([](auto& map, auto& out, int tiles) { launch(producer_consumes, 1, 64, 0, map, out.data(), tiles); }, 64);
}

__global__ void barrier_instead_of_empty(const __grid_constant__ TensorMap map, int* out, int tiles) {
  alignas(128) __shared__ int tile[2][kTile];
  __shared__ Mbarrier full[2];
  const int t = threadIdx.x;
  if (t == 33) {
    device::mbarrier_init(&full[0], 1), device::mbarrier_init(&full[1], 1);
    device::fence_mbarrier_init();
    device::mbarrier_arrive_expect_tx(&full[0], kTile * 4);  // who has initialised may go on at once
    device::cp_async_bulk_tensor_2d(tile[0], &map, 0, 0, &full[0]);
  }
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    if (t == 33 && i + 1 < tiles) {
      Mbarrier* const next = &full[(i + 1) % 2];
      device::mbarrier_arrive_expect_tx(next, kTile * 4);
      device::cp_async_bulk_tensor_2d(tile[(i + 1) % 2], &map, 0, kRows * (i + 1), next);
    }
    device::mbarrier_wait_parity(&full[i % 2], i / 2 & 1);
    sum += (i + 1) * sum_of_tile(tile[i % 2], t);
    __syncthreads();  // all have read
  }
  out[t] = sum;
}
TEST_CASE("__syncthreads instead of empty; the first copy before it") {
  test_sums([](auto& map, auto& out, int tiles) { launch(barrier_instead_of_empty, 1, 64, 0, map, out.data(), tiles); }, 64);
}

// The producer waits for empty[s] of one tile after the other, so an arrival that comes too early for its own stage is late enough.
__global__ void arrives_elsewhere(const __grid_constant__ TensorMap map, int* out, int tiles) {
  constexpr int kStages = 3;
  alignas(128) __shared__ int tile[kStages][kTile];
  __shared__ Mbarrier full[kStages], empty[kStages];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  init_ring(full, empty, kStages, 1, 1);
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    const int s = i % kStages;
    if (warp == 0 && lane == 0) {
      device::mbarrier_wait_parity(&empty[s], (i / kStages & 1) ^ 1);
      device::mbarrier_arrive_expect_tx(&full[s], kTile * 4);
      device::cp_async_bulk_tensor_2d(tile[s], &map, 0, kRows * i, &full[s]);
    }
    if (warp == 0) continue;
    device::mbarrier_wait_parity(&full[s], i / kStages & 1);
    sum += (i + 1) * sum_of_tile(tile[s], lane);
    __syncwarp();
    if (lane == 0) device::mbarrier_arrive(&empty[(i + 1) % kStages]);
  }
  if (warp == 1) out[lane] = sum;
}
TEST_CASE("arrivals at another stage's empty, where the producer's order makes up for it") {
  test_sums([](auto& map, auto& out, int tiles) { launch(arrives_elsewhere, 1, 64, 0, map, out.data(), tiles); }, 32);
}

// One thread of each warp waits, and tells the others: by __syncwarp, a named barrier, __syncthreads in turn.
__global__ void one_waits_for_all(const __grid_constant__ TensorMap map, int* out, int tiles) {
  alignas(128) __shared__ int tile[kTile];
  __shared__ Mbarrier full, empty;
  const int t = threadIdx.x, lane = t % 32;
  init_ring(&full, &empty, 1, 1, 2);
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    if (t == 0) {
      device::mbarrier_wait_parity(&empty, (i & 1) ^ 1);
      device::mbarrier_arrive_expect_tx(&full, sizeof tile);
      device::cp_async_bulk_tensor_2d(tile, &map, 0, kRows * i, &full);
    }
    if (i % 3 == 0) {
      if (lane == 9) device::mbarrier_wait_parity(&full, i & 1);
      __syncwarp();
    } else if (i % 3 == 1) {
      if (t == 40) device::mbarrier_wait_parity(&full, i & 1);
      device::barrier_sync(3, 64);
    } else {
      if (t == 50) device::mbarrier_wait_parity(&full, i & 1);
      __syncthreads();
    }
    sum += (i + 1) * sum_of_tile(tile, t);
    __syncwarp();
    if (lane == i % 32) device::mbarrier_arrive(&empty);
  }
  out[t] = sum;
}
TEST_CASE("one thread waits for the others, which learn of it at barriers") {
  test_sums([](auto& map, auto& out, int tiles) { launch(one_waits_for_all, 1, 64, 0, map, out.data(), tiles); }, 64);
}

// Each stage has one consumer warp: the others never look at its barriers.
__global__ void stage_of_each_warp(const __grid_constant__ TensorMap map, int* out, int tiles) {
  constexpr int kStages = 3;
  alignas(128) __shared__ int tile[kStages][kTile];
  __shared__ Mbarrier full[kStages], empty[kStages];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) out[lane] = 0;
  init_ring(full, empty, kStages, 1, 1);
  if (warp == kStages) {
    for (int i = lane; lane == 0 && i < tiles; ++i) {
      const int s = i % kStages;
      device::mbarrier_wait_parity(&empty[s], (i / kStages & 1) ^ 1);
      device::mbarrier_arrive_expect_tx(&full[s], kTile * 4);
      device::cp_async_bulk_tensor_2d(tile[s], &map, 0, kRows * i, &full[s]);
    }
    return;
  }
  int sum = 0;
  unsigned phase = 0;
  for (int i = warp; i < tiles; i += kStages, phase ^= 1) {
    device::mbarrier_wait_parity(&full[warp], phase);
    sum += (i + 1) * sum_of_tile(tile[warp], lane);
    __syncwarp();
    if (lane == 31) device::mbarrier_arrive(&empty[warp]);
  }
  atomicAdd(&out[lane], sum);
}
TEST_CASE("a stage for each consumer warp") {
  test_sums([](auto& map, auto& out, int tiles) { launch(stage_of_each_warp, 1, 128, 0, map, out.data(), tiles); }, 32);
}

// Blocks take tiles in turn, out of dynamic shared memory; stage and parity go on from one run of tiles to the next.
__global__ void persistent(const __grid_constant__ TensorMap map, int* out, int tiles, int runs) {
  constexpr int kStages = 2;
  int* const tile = device::dynamic_smem<int>();
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(tile + kStages * kTile);
  Mbarrier* const empty = full + kStages;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  init_ring(full, empty, kStages, 1, 1);
  int stage = 0;
  unsigned phase = 0;
  const auto next = [&] {
    if (++stage == kStages) stage = 0, phase ^= 1;
  };
  for (int run = static_cast<int>(blockIdx.x); run < runs; run += static_cast<int>(gridDim.x)) {
    if (warp == 0) {
      for (int i = 0; i < tiles; ++i, next()) {
        if (lane != 0) continue;
        device::mbarrier_wait_parity(&empty[stage], phase ^ 1);
        device::mbarrier_arrive_expect_tx(&full[stage], kTile * 4);
        device::cp_async_bulk_tensor_2d(tile + stage * kTile, &map, 0, kRows * (run * tiles + i), &full[stage]);
      }
    } else {
      int sum = 0;
      for (int i = 0; i < tiles; ++i, next()) {
        device::mbarrier_wait_parity(&full[stage], phase);
        sum += (i + 1) * sum_of_tile(tile + stage * kTile, lane);
        __syncwarp();
        if (lane == 0) device::mbarrier_arrive(&empty[stage]);
      }
      out[run * 32 + lane] = sum;
    }
  }
}
TEST_CASE("persistent blocks carry stage and parity over; dynamic shared memory") {
  in_all_orders([] {
    constexpr int kTiles = 3, kRuns = 7;
    const auto host = iota(kRuns * kTiles * kTile);
    const Buffer<int> tensor(host, "tensor"), out(kRuns * 32, "out");
    launch(persistent, 2, 64, 2 * kTile * 4 + 4 * 8, map_of(tensor, kRuns * kTiles), out.data(), kTiles, kRuns);
    const std::vector<int> got = out.download();
    for (int run = 0; run < kRuns; ++run) {
      const auto first = host.begin() + run * kTiles * kTile;
      CHECK(got[static_cast<std::size_t>(run) * 32 + 5] == sum_of_tiles(std::vector<int>(first, first + kTiles * kTile)));
    }
  });
}

// ------------------------------------------------------------------------------------------------------ who expects what
// Two copies complete at one mbarrier. Bytes are expected copy by copy, before and after their issue; the arrival comes last.
__global__ void expects_copy_by_copy(const __grid_constant__ TensorMap map, const int* bias, int* out, int tiles) {
  alignas(128) __shared__ int tile[kTile];
  alignas(16) __shared__ int biases[32];
  __shared__ Mbarrier full;
  const int t = threadIdx.x;
  if (t == 0) {
    device::mbarrier_init(&full, 1);
    device::fence_mbarrier_init();
  }
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    if (t == 0) {
      device::mbarrier_expect_tx(&full, kTile * 4);
      device::cp_async_bulk_tensor_2d(tile, &map, 0, kRows * i, &full);
      device::cp_async_bulk(biases, bias, sizeof biases, &full);
      device::mbarrier_expect_tx(&full, sizeof biases);  // its bytes may have come already; the phase cannot end before the arrival
      device::mbarrier_arrive(&full);
    }
    device::mbarrier_wait_parity(&full, i & 1);
    sum += (i + 1) * sum_of_tile(tile, t) + biases[t];
    __syncthreads();
  }
  out[t] = sum;
}
TEST_CASE("one mbarrier for two copies, one expect_tx for each, before and after the copy; a bias as plain bytes") {
  const Buffer<int> zeros(std::vector<int>(32), "zeros");
  test_sums([&](auto& map, auto& out, int tiles) { launch(expects_copy_by_copy, 1, 32, 0, map, zeros.data(), out.data(), tiles); },
            32);
}

// Every lane copies a row of its own; one of them expects the bytes of all.
__global__ void row_by_row(const int* in, int* out, int tiles) {
  alignas(16) __shared__ int tile[2][kTile];
  __shared__ Mbarrier full[2];
  const int t = threadIdx.x;
  if (t < 2) device::mbarrier_init(&full[t], 32);  // two threads initialise, each one
  device::fence_mbarrier_init();
  __syncthreads();
  const auto copy = [&](int i) {
    if (t >= 32 || i >= tiles) return;
    if (t == 0) device::mbarrier_expect_tx(&full[i % 2], kTile * 4);
    if (t < 8) device::cp_async_bulk(&tile[i % 2][t * 16], &in[i * kTile + t * 16], 64, &full[i % 2]);
    device::mbarrier_arrive(&full[i % 2]);
  };
  copy(0);
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    copy(i + 1);
    device::mbarrier_wait_parity(&full[i % 2], i / 2 & 1);
    sum += (i + 1) * sum_of_tile(tile[i % 2], t);
    __syncthreads();
  }
  out[t] = sum;
}
TEST_CASE("several threads copy a part each, all of them arrive, one expects the bytes of all") {
  in_all_orders([] {
    const auto host = iota(7 * kTile);
    const Buffer<int> in(host, "in"), out(64, "out");
    launch(row_by_row, 1, 64, 0, in.data(), out.data(), 7);
    CHECK(out.download() == std::vector<int>(64, sum_of_tiles(host)));
  });
}

// --------------------------------------------------------------------------------------------------------------- boxes
// Boxes walk over the edges of a tensor, on all sides.
__global__ void ragged_boxes(const __grid_constant__ TensorMap map, int* out, int boxes_x, int boxes_y, int x0, int y0) {
  alignas(128) __shared__ int box[kTile];
  __shared__ Mbarrier full;
  const int t = threadIdx.x;
  if (t == 0) {
    device::mbarrier_init(&full, 1);
    device::fence_mbarrier_init();
  }
  __syncthreads();
  for (int i = 0; i < boxes_x * boxes_y; ++i) {
    const int x = i % boxes_x * kColumns + x0, y = i / boxes_x * kRows + y0;
    if (t == 0) {
      device::mbarrier_arrive_expect_tx(&full, sizeof box);  // the whole box, whatever of it exists
      device::cp_async_bulk_tensor_2d(box, &map, x, y, &full);
    }
    device::mbarrier_wait_parity(&full, i & 1);
    for (int j = t; j < kTile; j += 32) out[(y - y0 + j / kColumns) * boxes_x * kColumns + x - x0 + j % kColumns] = box[j];
    __syncthreads();
  }
}
TEST_CASE("ragged boxes are filled with zeros, at negative coordinates too") {
  in_all_orders([] {
    constexpr int kHeight = 10, kWidth = 45, kStride = 48, kBoxesX = 3, kBoxesY = 4;
    const auto host = iota(kHeight * kStride, 1);
    const Buffer<int> tensor(host, "tensor"), out(kBoxesX * kBoxesY * kTile, "out");
    const TensorMap map = device::make_tensor_map<int>({.data = tensor.data(),
                                                        .rows = kHeight,
                                                        .columns = kWidth,
                                                        .row_stride = kStride,
                                                        .box_rows = kRows,
                                                        .box_columns = kColumns});
    for (const auto& [x0, y0] : {std::pair(0, 0), {-20, -3}, {-36, -5}}) {
      launch(ragged_boxes, 1, 32, 0, map, out.data(), kBoxesX, kBoxesY, x0, y0);
      const std::vector<int> got = out.download();
      for (int i = 0; i < static_cast<int>(got.size()); ++i) {
        const int x = i % (kBoxesX * kColumns) + x0, y = i / (kBoxesX * kColumns) + y0;
        const bool exists = x >= 0 && x < kWidth && y >= 0 && y < kHeight;
        REQUIRE(got[static_cast<std::size_t>(i)] == (exists ? host[static_cast<std::size_t>(y * kStride + x)] : 0));
      }
    }
  });
}

// Element (row, column) of a box whose rows have kBytes bytes, with a swizzle of as many.
template <int kBytes>
__device__ int place(int row, int column) {
  constexpr int kPerPiece = 8, kPieces = kBytes / 16, kRowsPerPattern = 128 / kBytes;  // of 16-bit elements
  return row * kBytes / 2 + ((column / kPerPiece) ^ (row / kRowsPerPattern % kPieces)) * kPerPiece + column % kPerPiece;
}
template <int kBytes>
__global__ void swizzled(const __grid_constant__ TensorMap map, std::uint16_t* out, std::uint32_t* fragments) {
  alignas(1024) __shared__ std::uint16_t box[16 * kBytes / 2];
  __shared__ Mbarrier full;
  const int t = threadIdx.x;
  if (t == 0) {
    device::mbarrier_init(&full, 1);
    device::fence_mbarrier_init();
    device::mbarrier_arrive_expect_tx(&full, sizeof box);
    device::cp_async_bulk_tensor_2d(box, &map, 0, 0, &full);
  }
  __syncthreads();
  device::mbarrier_wait_parity(&full, 0);
  for (int i = t; i < 16 * kBytes / 2; i += 32) out[i] = box[place<kBytes>(i / (kBytes / 2), i % (kBytes / 2))];
  std::uint32_t four[4];
  device::ldmatrix_x4(four, &box[place<kBytes>(t % 16, t / 16 * 8)]);  // the first 16 columns
  for (int i = 0; i < 4; ++i) fragments[i * 32 + t] = four[i];
}
template <int kBytes>
void test_swizzled() {
  in_all_orders([] {
    std::vector<std::uint16_t> host(16 * kBytes / 2);
    std::iota(host.begin(), host.end(), 100);
    const Buffer<std::uint16_t> tensor(host, "tensor"), out(host.size(), "out");
    const Buffer<std::uint32_t> fragments(128, "fragments");
    const TensorMap map = device::make_tensor_map<std::uint16_t>({.data = tensor.data(),
                                                                  .rows = 16,
                                                                  .columns = kBytes / 2,
                                                                  .row_stride = kBytes / 2,
                                                                  .box_rows = 16,
                                                                  .box_columns = kBytes / 2,
                                                                  .swizzle = static_cast<Swizzle>(kBytes)});
    launch(swizzled<kBytes>, 1, 32, 0, map, out.data(), fragments.data());
    CHECK(out.download() == host);
    const std::vector<std::uint32_t> got = fragments.download();
    for (int i = 0; i < 128; ++i) {
      const int lane = i % 32, row = lane / 4 + i / 32 % 2 * 8, column = lane % 4 * 2 + i / 64 * 8;
      const std::size_t at = static_cast<std::size_t>(row * kBytes / 2 + column);
      CHECK(got[static_cast<std::size_t>(i)] == (host[at] | static_cast<std::uint32_t>(host[at + 1]) << 16));
    }
  });
}
TEST_CASE("swizzled boxes of 32, 64, 128 bytes, read element by element and by ldmatrix") {
  test_swizzled<32>();
  test_swizzled<64>();
  test_swizzled<128>();
}

// What lies between the rows of a box that is narrower than the swizzle belongs to threads, while the copy is under way too.
__global__ void narrow_boxes(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap out, int* between) {
  alignas(1024) __shared__ int box[16 * 32];
  __shared__ Mbarrier full;
  const int t = threadIdx.x;
  if (t == 0) {
    device::mbarrier_init(&full, 1);
    device::fence_mbarrier_init();
    device::mbarrier_arrive_expect_tx(&full, 16 * 12 * 4);
    device::cp_async_bulk_tensor_2d(box, &in, 0, 0, &full);
  }
  if (t >= 5 && t < 8) box[t * 4] = t;  // of the 8 pieces of the first row, 3 are the box's
  __syncthreads();
  device::mbarrier_wait_parity(&full, 0);
  if (t == 0) {
    device::cp_async_bulk_tensor_2d_store(&out, 0, 0, box);
    device::cp_async_bulk_commit_group();
    device::cp_async_bulk_wait_group<0>();
  }
  if (t >= 5 && t < 8) between[t] = box[t * 4];
}
TEST_CASE("boxes narrower than the swizzle come in and go out; what is between their rows stays") {
  in_all_orders([] {
    const auto host = iota(16 * 12, 1);
    const Buffer<int> in(host, "in"), out(host.size(), "out"), between(std::vector<int>(8), "between");
    const auto map_of_narrow = [](const Buffer<int>& tensor) {
      return device::make_tensor_map<int>({.data = tensor.data(),
                                           .rows = 16,
                                           .columns = 12,
                                           .row_stride = 12,
                                           .box_rows = 16,
                                           .box_columns = 12,
                                           .swizzle = Swizzle::k128});
    };
    launch(narrow_boxes, 1, 32, 0, map_of_narrow(in), map_of_narrow(out), between.data());
    CHECK(out.download() == host);
    CHECK(between.download() == std::vector<int>{0, 0, 0, 0, 0, 5, 6, 7});
  });
}

// -------------------------------------------------------------------------------------------------------------- stores
// One buffer: a tile comes in, is changed in place, goes out, and the next one comes in over it. A warp looks on.
__global__ void in_place(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap out, int tiles) {
  alignas(128) __shared__ int tile[kTile];
  __shared__ Mbarrier full;
  const int t = threadIdx.x;
  if (t == 0) {
    device::mbarrier_init(&full, 1);
    device::fence_mbarrier_init();
  }
  __syncthreads();
  if (t >= 64) return;
  for (int i = 0; i < tiles; ++i) {
    if (t == 0) {
      device::mbarrier_arrive_expect_tx(&full, sizeof tile);
      device::cp_async_bulk_tensor_2d(tile, &in, 0, kRows * i, &full);
    }
    device::mbarrier_wait_parity(&full, i & 1);
    for (int j = t; j < kTile; j += 64) tile[j] = 2 * tile[j] + 1;
    device::fence_proxy_async();
    device::barrier_sync(1, 64);  // the warps that write
    if (t == 0) {
      device::cp_async_bulk_tensor_2d_store(&out, 0, kRows * i, tile);
      device::cp_async_bulk_commit_group();
      device::cp_async_bulk_wait_group_read<0>();  // then the next tile may come in
    }
  }
}
TEST_CASE("tiles changed in place: load, generic writes, fence, named barrier, store, wait_group.read, load") {
  in_all_orders([] {
    auto host = iota(6 * kTile);
    const Buffer<int> in(host, "in"), out(host.size(), "out");
    launch(in_place, 1, 96, 0, map_of(in, 6), map_of(out, 6), 6);
    for (int& x : host) x = 2 * x + 1;
    CHECK(out.download() == host);
  });
}

// Two groups of warps, each with two buffers of its own, a named barrier, and a thread that stores; tiles in turn. The fence is the
// storing thread's, after the barrier, in one of them: it covers what the thread knows to have been written.
__global__ void two_groups_store(const __grid_constant__ TensorMap out, int tiles) {
  alignas(128) __shared__ int buffer[2][2][kTile];
  const int group = threadIdx.x / 64, t = threadIdx.x % 64;
  const bool stores = t == (group ? 33 : 0);
  int b = 0;
  for (int i = group; i < tiles; i += 2, b ^= 1) {
    if (stores) device::cp_async_bulk_wait_group_read<1>();
    device::barrier_sync(1 + group, 64);
    for (int j = t; j < kTile; j += 64) buffer[group][b][j] = 1000 * i + j;
    if (group == 0) device::fence_proxy_async();
    device::barrier_sync(1 + group, 64);
    if (stores) {
      if (group == 1) device::fence_proxy_async();
      device::cp_async_bulk_tensor_2d_store(&out, 0, kRows * i, buffer[group][b]);
      device::cp_async_bulk_commit_group();
    }
  }
  if (stores) device::cp_async_bulk_wait_group_read<0>();
}
TEST_CASE("double-buffered stores of two groups, with wait_group.read 1; the fence before the barrier or after it") {
  in_all_orders([] {
    for (const int tiles : {1, 2, 3, 9}) {
      const Buffer<int> out(static_cast<std::size_t>(tiles) * kTile, "out");
      launch(two_groups_store, 1, 128, 0, map_of(out, tiles), tiles);
      const std::vector<int> got = out.download();
      for (int i = 0; i < tiles * kTile; ++i) REQUIRE(got[static_cast<std::size_t>(i)] == 1000 * (i / kTile) + i % kTile);
    }
  });
}

__global__ void clipped_stores(const __grid_constant__ TensorMap out, int boxes) {
  alignas(128) __shared__ int box[kTile];
  const int t = threadIdx.x;
  for (int j = t; j < kTile; j += 32) box[j] = j + 1;
  device::fence_proxy_async();
  __syncwarp();
  if (t != 5) return;
  device::cp_async_bulk_commit_group();  // an empty group
  device::cp_async_bulk_wait_group<0>();
  for (int i = 0; i < boxes; ++i) device::cp_async_bulk_tensor_2d_store(&out, 40 * i, 3, box);  // all of one group, of one source
  device::cp_async_bulk_commit_group();
  device::cp_async_bulk_wait_group<0>();
}
// 50 columns have 200 bytes; the copy engine writes them in pieces of 16 bytes, and with the last one 2 columns that are no
// columns.
TEST_CASE("stores write nothing outside of the tensor but a row's last 16 bytes; several of one source in one group") {
  in_all_orders([] {
    constexpr int kHeight = 5, kWidth = 50, kWritten = 52, kStride = 56;
    const Buffer<int> out(std::vector<int>(kHeight * kStride, -1), "out");
    const TensorMap map = device::make_tensor_map<int>({.data = out.data(),
                                                        .rows = kHeight,
                                                        .columns = kWidth,
                                                        .row_stride = kStride,
                                                        .box_rows = kRows,
                                                        .box_columns = kColumns});
    launch(clipped_stores, 1, 32, 0, map, 3);
    const std::vector<int> got = out.download();
    for (int i = 0; i < kHeight * kStride; ++i) {
      const int x = i % kStride, y = i / kStride, column = x < 40 ? x : x - 40;
      const bool stored = y >= 3 && x < kWritten && column < kColumns;
      REQUIRE(got[static_cast<std::size_t>(i)] == (stored ? (y - 3) * kColumns + column + 1 : -1));
    }
  });
}

// What bulk stores have written comes back by bulk loads of the same thread: one proxy on both sides.
__global__ void out_and_in(int* scratch, int* out) {
  alignas(16) __shared__ int from[64];
  alignas(16) __shared__ int to[64];
  __shared__ Mbarrier full;
  const int t = threadIdx.x;
  from[t] = 3 * t;
  device::fence_proxy_async();
  if (t == 0) device::mbarrier_init(&full, 1);
  if (t == 0) device::fence_mbarrier_init();
  __syncthreads();
  if (t == 0) {
    device::cp_async_bulk_store(scratch, from, sizeof from);
    device::cp_async_bulk_commit_group();
    device::cp_async_bulk_wait_group<0>();
    device::mbarrier_arrive_expect_tx(&full, sizeof to);
    device::cp_async_bulk(to, scratch, sizeof to, &full);
  }
  device::mbarrier_wait_parity(&full, 0);
  out[t] = to[63 - t] + scratch[t];
}
TEST_CASE("bulk stores are read back, by a bulk load and by plain ones") {
  in_all_orders([] {
    const Buffer<int> scratch(64, "scratch"), out(64, "out");
    launch(out_and_in, 1, 64, 0, scratch.data(), out.data());
    CHECK(out.download() == std::vector<int>(64, 3 * 63));
  });
}

// Whoever has waited for a copy knows that its source has been read.
__global__ void source_changed_after_wait(const __grid_constant__ TensorMap map, int* in, int tiles) {
  alignas(128) __shared__ int tile[kTile];
  __shared__ Mbarrier full, empty;
  const int t = threadIdx.x;
  init_ring(&full, &empty, 1, 1, 64);
  for (int i = 0; i < tiles; ++i) {
    if (t == 0) {
      device::mbarrier_wait_parity(&empty, (i & 1) ^ 1);
      device::mbarrier_arrive_expect_tx(&full, sizeof tile);
      device::cp_async_bulk_tensor_2d(tile, &map, 0, kRows * i, &full);
    }
    device::mbarrier_wait_parity(&full, i & 1);
    for (int j = t; j < kTile; j += 64) in[i * kTile + j] = tile[kTile - 1 - j];
    device::mbarrier_arrive(&empty);
  }
}
TEST_CASE("the source of a copy changes after a wait for it") {
  in_all_orders([] {
    const auto host = iota(5 * kTile);
    const Buffer<int> in(host, "in");
    launch(source_changed_after_wait, 1, 64, 0, map_of(in, 5), in.data(), 5);
    const std::vector<int> got = in.download();
    for (int i = 0; i < 5 * kTile; ++i) REQUIRE(got[static_cast<std::size_t>(i)] == i / kTile * kTile + kTile - 1 - i % kTile);
  });
}

// ------------------------------------------------------------------------------------------------------ threads alone
__global__ void handed_on(const int* in, int* out, int rounds) {
  __shared__ int numbers[32];
  __shared__ Mbarrier full, empty;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  init_ring(&full, &empty, 1, 32, 32);
  int sum = 0;
  for (int i = 0; i < rounds; ++i) {
    if (warp == 0) {
      device::mbarrier_wait_parity(&empty, (i & 1) ^ 1);
      numbers[lane] = in[i * 32 + lane];
      device::mbarrier_arrive(&full);
    } else {
      device::mbarrier_wait_parity(&full, i & 1);
      for (int j = 0; j < 32; ++j) sum += (i + 1) * numbers[(lane + j) % 32];
      device::mbarrier_arrive(&empty);
    }
  }
  if (warp == 1) out[lane] = sum;
}
TEST_CASE("mbarriers order threads without any copy") {
  in_all_orders([] {
    const auto host = iota(9 * 32);
    const Buffer<int> in(host, "in"), out(32, "out");
    launch(handed_on, 1, 64, 0, in.data(), out.data(), 9);
    int expected = 0;
    for (int i = 0; i < 9 * 32; ++i) expected += (i / 32 + 1) * i;
    CHECK(out.download() == std::vector<int>(32, expected));
  });
}

// Polls for the next tile while it works on something of its own; gives up after some tries, and comes back.
__global__ void polls_while_working(const __grid_constant__ TensorMap map, int* out, int* worked, int tiles) {
  alignas(128) __shared__ int tile[2][kTile];
  __shared__ int own[64];
  __shared__ Mbarrier full[2], empty[2];
  const int t = threadIdx.x;
  init_ring(full, empty, 2, 1, 64);
  if (t == 64) {
    for (int i = 0; i < tiles; ++i) {
      device::mbarrier_wait_parity(&empty[i % 2], (i / 2 & 1) ^ 1);
      device::mbarrier_arrive_expect_tx(&full[i % 2], kTile * 4);
      device::cp_async_bulk_tensor_2d(tile[i % 2], &map, 0, kRows * i, &full[i % 2]);
    }
  }
  if (t >= 64) return;
  own[t] = 0;
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    while (!device::mbarrier_test_wait_parity(&full[i % 2], i / 2 & 1)) own[t] += 1;
    sum += (i + 1) * sum_of_tile(tile[i % 2], t);
    device::mbarrier_arrive(&empty[i % 2]);
  }
  out[t] = sum;
  worked[t] = own[t];
}
TEST_CASE("test_wait between pieces of other work") {
  const Buffer<int> worked(64, "worked");
  test_sums([&](auto& map, auto& out, int tiles) { launch(polls_while_working, 1, 65, 0, map, out.data(), worked.data(), tiles); },
            64);
}

// Whichever of two comes first is taken first; the second comes only when somebody has taken the first.
__global__ void whichever_comes(const int* in, int* out) {
  alignas(16) __shared__ int parts[2][32];
  __shared__ Mbarrier full[2], go;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  init_ring(full, &go, 1, 1, 32);
  if (threadIdx.x == 0) {
    device::mbarrier_init(&full[1], 1);
    device::fence_mbarrier_init();
  }
  __syncthreads();
  if (warp == 0) {
    if (lane != 0) return;
    device::mbarrier_arrive_expect_tx(&full[1], 128);
    device::cp_async_bulk(parts[1], in + 32, 128, &full[1]);
    device::mbarrier_wait_parity(&go, 0);
    device::mbarrier_arrive_expect_tx(&full[0], 128);
    device::cp_async_bulk(parts[0], in, 128, &full[0]);
    return;
  }
  int sum = 0;
  for (unsigned missing = 3; missing;)
    for (int i = 0; i < 2; ++i) {
      if (!(missing >> i & 1) || !device::mbarrier_try_wait_parity(&full[i], 0)) continue;
      sum += (i + 1) * parts[i][lane];
      missing &= ~(1u << i);
      if (missing) device::mbarrier_arrive(&go);
    }
  bool never = false;
  for (int tries = 0; tries < 20; ++tries) never |= device::mbarrier_try_wait_parity(&full[0], 1);  // nobody copies once more
  out[lane] = never ? -1 : sum;
}
TEST_CASE("try_wait on two mbarriers in turn, and a wait that is given up") {
  in_all_orders([] {
    const Buffer<int> in(iota(64), "in"), out(32, "out");
    launch(whichever_comes, 1, 64, 0, in.data(), out.data());
    const std::vector<int> got = out.download();
    for (int lane = 0; lane < 32; ++lane) CHECK(got[static_cast<std::size_t>(lane)] == lane + 2 * (32 + lane));
  });
}

__global__ void memory_of_mbarriers(const int* in, int* out) {
  alignas(16) __shared__ unsigned long long memory[32];  // mbarriers first, then numbers, then mbarriers again
  alignas(16) __shared__ int numbers[64];
  const int t = threadIdx.x;
  int sum = 0;
  for (unsigned round = 0; round < 3; ++round) {
    Mbarrier* const full = reinterpret_cast<Mbarrier*>(&memory[round]);
    if (t == 0) {
      device::mbarrier_init(full, 1);
      device::fence_mbarrier_init();
    }
    __syncthreads();
    if (t == 0) {
      device::mbarrier_arrive_expect_tx(full, sizeof numbers);
      device::cp_async_bulk(numbers, in + 64 * round, sizeof numbers, full);
    }
    device::mbarrier_wait_parity(full, 0);
    const int mine = numbers[63 - t];
    __syncthreads();  // all have waited
    if (t == 0) device::mbarrier_inval(full);
    __syncthreads();
    if (t < 32) memory[t] = static_cast<unsigned long long>(mine);
    __syncthreads();
    sum += static_cast<int>(memory[t % 32]);
    __syncthreads();
  }
  out[t] = sum;
}
TEST_CASE("memory that is mbarriers in turn with something else") {
  in_all_orders([] {
    const Buffer<int> in(iota(192), "in"), out(64, "out");
    launch(memory_of_mbarriers, 1, 64, 0, in.data(), out.data());
    const std::vector<int> got = out.download();
    for (int t = 0; t < 64; ++t) CHECK(got[static_cast<std::size_t>(t)] == 3 * (63 - t % 32) + 64 + 128);
  });
}

// Two groups of warps take tiles in turn; barriers 1 and 2 say whose turn it is to use what they share.
__global__ void ping_pong(const __grid_constant__ TensorMap map, int* out, int tiles) {
  constexpr int kStages = 3;
  alignas(128) __shared__ int tile[kStages][kTile];
  __shared__ int shared_sum[64];
  __shared__ Mbarrier full[kStages], empty[kStages];
  const int t = threadIdx.x % 64, group = threadIdx.x / 64;
  init_ring(full, empty, kStages, 1, 64);
  if (threadIdx.x < 64) shared_sum[t] = 0;
  if (group == 2) {
    if (t != 0) return;
    for (int i = 0; i < tiles; ++i) {
      device::mbarrier_wait_parity(&empty[i % kStages], (i / kStages & 1) ^ 1);
      device::mbarrier_arrive_expect_tx(&full[i % kStages], kTile * 4);
      device::cp_async_bulk_tensor_2d(tile[i % kStages], &map, 0, kRows * i, &full[i % kStages]);
    }
    return;
  }
  for (int i = group; i < tiles; i += 2) {
    device::mbarrier_wait_parity(&full[i % kStages], i / kStages & 1);
    const int sum = (i + 1) * sum_of_tile(tile[i % kStages], t);
    device::mbarrier_arrive(&empty[i % kStages]);
    if (i > 0) device::barrier_sync(1 + group, 128);
    shared_sum[t] += sum;
    if (i + 1 < tiles) device::barrier_arrive(2 - group, 128);
    if (i + 1 == tiles) out[t] = shared_sum[t];
  }
}
TEST_CASE("ping-pong of two groups by barrier_sync and barrier_arrive") {
  test_sums([](auto& map, auto& out, int tiles) { launch(ping_pong, 1, 192, 0, map, out.data(), tiles); }, 64);
}

// One thread copies, another one has waited and makes memory of the barriers again: the copies have used them after the last
// arrival.
__global__ void another_thread_invalidates(const __grid_constant__ TensorMap map, int* out, int tiles) {
  constexpr int kStages = 2;
  alignas(128) __shared__ int tile[kStages][kTile];
  __shared__ Mbarrier full[kStages], empty[kStages];
  const int t = threadIdx.x;
  init_ring(full, empty, kStages, 1, 32);
  if (t >= 32) {
    if (t != 32) return;
    for (int i = 0; i < tiles; ++i) {
      device::mbarrier_wait_parity(&empty[i % kStages], (i / kStages & 1) ^ 1);
      device::mbarrier_arrive_expect_tx(&full[i % kStages], kTile * 4);
      device::cp_async_bulk_tensor_2d(tile[i % kStages], &map, 0, kRows * i, &full[i % kStages]);
    }
    return;
  }
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    device::mbarrier_wait_parity(&full[i % kStages], i / kStages & 1);
    sum += (i + 1) * sum_of_tile(tile[i % kStages], t);
    device::mbarrier_arrive(&empty[i % kStages]);
  }
  out[t] = sum;
  __syncwarp();
  if (t < kStages) {
    device::mbarrier_inval(&full[t]);
    device::mbarrier_inval(&empty[t]);
    full[t] = empty[t] = 0;
  }
}
TEST_CASE("who has waited for the last phase makes memory of a barrier again, whoever has copied") {
  test_sums([](auto& map, auto& out, int tiles) { launch(another_thread_invalidates, 1, 64, 0, map, out.data(), tiles); }, 32);
}

// A copy over what threads have written before: the fence is theirs, as for reads.
__global__ void filled_then_copied(const __grid_constant__ TensorMap map, int* out) {
  alignas(128) __shared__ int tile[2][kTile];
  __shared__ Mbarrier full;
  const int t = threadIdx.x;
  for (int j = t; j < 2 * kTile; j += 32) tile[j / kTile][j % kTile] = -1;
  device::fence_proxy_async();
  if (t == 31) {
    device::mbarrier_init(&full, 1);
    device::fence_mbarrier_init();
  }
  __syncwarp();
  if (t == 3) {
    device::mbarrier_arrive_expect_tx(&full, kTile * 4);
    device::cp_async_bulk_tensor_2d(tile[1], &map, 0, 0, &full);
  }
  int sum = 0;
  for (int j = 0; j < kTile; ++j) sum += tile[0][j];  // the other tile is nobody's concern
  device::mbarrier_wait_parity(&full, 0);
  out[t] = sum + sum_of_tile(tile[1], t);
}
TEST_CASE("a copy over what threads have written, of a single warp, while they read something else") {
  in_all_orders([] {
    const auto host = iota(kTile);
    const Buffer<int> tensor(host, "tensor"), out(32, "out");
    launch(filled_then_copied, 1, 32, 0, map_of(tensor, 1), out.data());
    CHECK(out.download() == std::vector<int>(32, sum_of_tiles(host) - kTile));
  });
}

}  // namespace

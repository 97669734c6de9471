/// @file
/// Correct kernels whose blocks work together in clusters: the cluster's barrier, distributed shared memory, mbarriers of other
/// blocks, multicast. Every check stays silent, in all orders, and the result is right.
///
/// A report is an exception, and an uncaught exception fails the test.
#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include "common/device/bulk_copy.cuh"
#include "common/device/cluster.cuh"
#include "common/device/wgmma.cuh"
#include "common/interpreter/tests/orders.h"

using device::Buffer;
using device::launch;
using device::launch_clusters;
using device::Mbarrier;
using device::Swizzle;
using device::TensorMap;

namespace {

std::vector<int> iota(std::size_t n, int first = 0) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}

__device__ void cluster_sync() {
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();
}

// ---------------------------------------------------------------------------------------------------------- who is who
__global__ void ranks(int* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  cluster_sync();
  if (threadIdx.x == 0) out[block] = static_cast<int>(device::cluster_ctarank() * 100 + device::cluster_nctarank());
}
TEST_CASE("ranks, x first, then y, then z; a block without a cluster is alone in its own") {
  in_all_orders([] {
    const Buffer<int> out(4 * 6 * 2, "out");
    launch_clusters(ranks, dim3(4, 6, 2), 1, dim3(2, 3, 1), 0, out.data());
    const auto found = out.download();
    for (unsigned z = 0; z < 2; ++z)
      for (unsigned y = 0; y < 6; ++y)
        for (unsigned x = 0; x < 4; ++x) CHECK(found[(z * 6 + y) * 4 + x] == static_cast<int>((x % 2 + y % 3 * 2) * 100 + 6));
    const Buffer<int> alone(3, "alone");
    launch(ranks, 3, 32, 0, alone.data());
    CHECK(alone.download() == std::vector<int>(3, 1));
  });
}

// ------------------------------------------------------------------------------------------------------------- random order
__global__ void take_places(int* next, int* places) {
  cluster_sync();
  if (threadIdx.x == 0) places[atomicAdd(next, 1)] = static_cast<int>(blockIdx.x);
}
TEST_CASE("a hundred seeds let the blocks of a cluster run in many orders, each as often") {
  const WithOptions restored([](auto& options) { options.order = interpreter::Order::kRandom; });
  std::map<std::vector<int>, int> orders;
  for (interpreter::options().seed = 0; interpreter::options().seed < 100; ++interpreter::options().seed) {
    const Buffer<int> next(std::vector<int>{0}, "next"), places(3, "places");
    launch_clusters(take_places, dim3(3), 32, dim3(3), 0, next.data(), places.data());
    ++orders[places.download()];
  }
  CHECK(orders.size() == 6);  // 3!
  for (const auto& [order, times] : orders) CHECK(times > 5);
}

// --------------------------------------------------------------------------------------------- distributed shared memory
// Each block sums its numbers; the cluster's first block adds what the others have.
__global__ void sums(const int* in, int* out) {
  __shared__ int partial[64];
  __shared__ int total;
  const unsigned t = threadIdx.x, rank = device::cluster_ctarank(), size = device::cluster_nctarank();
  partial[t] = in[blockIdx.x * 64 + t];
  __syncthreads();
  if (t == 0) {
    total = 0;
    for (int i = 0; i < 64; ++i) total += partial[i];
  }
  cluster_sync();  // all totals are there
  if (rank == 0 && t == 1) {
    int sum = 0;
    for (unsigned r = 0; r < size; ++r) sum += *device::mapa(&total, r);
    out[blockIdx.x / size] = sum;
  }
  cluster_sync();  // and stay until they have been read
}
TEST_CASE("a sum through distributed shared memory, in clusters of 1 to 8 blocks") {
  in_all_orders([] {
    for (const unsigned size : {1u, 2u, 4u, 7u, 8u}) {
      CAPTURE(size);
      const auto host = iota(3 * size * 64, 1);
      const Buffer<int> in(host, "in"), out(3, "out");
      launch_clusters(sums, 3 * size, 64, size, 0, in.data(), out.data());
      std::vector<int> expected(3);
      for (std::size_t i = 0; i < host.size(); ++i) expected[i / (size * 64)] += host[i];
      CHECK(out.download() == expected);
    }
  });
}

// Numbers go round: each block writes into the next one's shared memory, dynamic and static in turn.
__global__ void rounds(int* out, int steps) {
  __shared__ int odd[32];
  int* const even = device::dynamic_smem<int>();
  const unsigned t = threadIdx.x, rank = device::cluster_ctarank(), size = device::cluster_nctarank();
  even[t] = static_cast<int>(blockIdx.x * 32 + t);
  cluster_sync();
  for (int i = 0; i < steps; ++i) {
    int* const from = i % 2 ? odd : even;
    int* const to = i % 2 ? even : odd;
    device::mapa(to, (rank + 1) % size)[(t + 1) % 32] = from[t] + 1;
    cluster_sync();
  }
  out[blockIdx.x * 32 + t] = (steps % 2 ? odd : even)[t];
}
TEST_CASE("each block writes into the next one's shared memory") {
  in_all_orders([] {
    const int steps = 5;
    const Buffer<int> out(6 * 32, "out");
    launch_clusters(rounds, 6, 32, 3, 32 * 4, out.data(), steps);
    const auto found = out.download();
    for (int block = 0; block < 6; ++block)
      for (int t = 0; t < 32; ++t) {
        const int from = block / 3 * 3 + (block % 3 + 3 * steps - steps) % 3, of = (t + 32 - steps) % 32;
        CHECK(found[static_cast<std::size_t>(block * 32 + t)] == from * 32 + of + steps);
      }
  });
}

// The programming guide's example: the bins of a histogram lie spread over the cluster.
__global__ void histogram(const int* in, int* bins, int count) {
  __shared__ int mine[16];
  const unsigned t = threadIdx.x, rank = device::cluster_ctarank(), size = device::cluster_nctarank();
  if (t < 16) mine[t] = 0;
  cluster_sync();
  for (int i = static_cast<int>(rank * blockDim.x + t); i < count; i += static_cast<int>(size * blockDim.x)) {
    const unsigned bin = static_cast<unsigned>(in[i]) % (16 * size);
    atomicAdd(device::mapa(mine, bin / 16) + bin % 16, 1);
  }
  cluster_sync();
  if (t < 16) bins[rank * 16 + t] = mine[t];
}
TEST_CASE("a histogram in distributed shared memory") {
  in_all_orders([] {
    std::vector<int> host(1000), expected(64);
    for (std::size_t i = 0; i < host.size(); ++i) ++expected[static_cast<std::size_t>(host[i] = static_cast<int>(i * i * 7 % 64))];
    const Buffer<int> in(host, "in"), bins(64, "bins");
    launch_clusters(histogram, 4, 64, 4, 0, in.data(), bins.data(), 1000);
    CHECK(bins.download() == expected);
  });
}

// One block sets the counter and counts itself; the others follow after the cluster's barrier.
__global__ void counter_of_cluster(int* out) {
  __shared__ int count;
  const unsigned t = threadIdx.x, rank = device::cluster_ctarank();
  if (rank == 0) {
    if (t == 0) count = 0;
    __syncthreads();
    atomicAdd(&count, 1);
  }
  cluster_sync();
  atomicAdd(device::mapa(&count, 0), 1);
  cluster_sync();
  if (rank == 0 && t == 32) out[blockIdx.x / device::cluster_nctarank()] = count;
}
TEST_CASE("a counter in distributed shared memory that one block sets") {
  in_all_orders([] {
    const Buffer<int> out(2, "out");
    launch_clusters(counter_of_cluster, 8, 64, 4, 0, out.data());
    CHECK(out.download() == std::vector<int>(2, 64 + 4 * 64));
  });
}

// ------------------------------------------------------------------------------------------------------ the cluster's barrier
__global__ void split_barrier(int* out, int steps) {
  __shared__ int box;
  const unsigned t = threadIdx.x, rank = device::cluster_ctarank(), size = device::cluster_nctarank();
  int own = static_cast<int>(t);
  for (int i = 0; i < steps; ++i) {
    if (t == 33) box = static_cast<int>(rank) + 10 * i;
    device::barrier_cluster_arrive();
    for (int j = 0; j < 3; ++j) own += j;  // meanwhile
    device::barrier_cluster_wait();
    const int read = *device::mapa(&box, (rank + 1) % size);
    device::barrier_cluster_arrive();
    own += read;
    device::barrier_cluster_wait();
  }
  out[blockIdx.x * blockDim.x + t] = own;
}
TEST_CASE("arrival and wait apart from each other") {
  in_all_orders([] {
    const Buffer<int> out(2 * 64, "out");
    launch_clusters(split_barrier, 2, 64, 2, 0, out.data(), 4);
    const auto found = out.download();
    for (int i = 0; i < 128; ++i)
      CHECK(found[static_cast<std::size_t>(i)] == i % 64 + 4 * 3 + 4 * (i < 64 ? 1 : 0) + 10 * (0 + 1 + 2 + 3));
  });
}

// Some threads end before the barrier, some between arrival and wait, one block but for a warp.
__global__ void early_ends(int* out) {
  __shared__ int box;
  const unsigned t = threadIdx.x, rank = device::cluster_ctarank();
  if (rank == 1 && t >= 32) return;
  if (t % 32 == 5) return;
  if (t == 0) box = static_cast<int>(rank) + 1;
  device::barrier_cluster_arrive();
  if (t == 7) return;
  device::barrier_cluster_wait();
  const int sum = *device::mapa(&box, 0) * 10 + *device::mapa(&box, 1);
  cluster_sync();
  out[blockIdx.x * 64 + t] = sum;
}
TEST_CASE("the cluster's barrier waits for no thread that has ended") {
  in_all_orders([] {
    Buffer<int> out(128, "out");
    out.fill(0);
    launch_clusters(early_ends, 2, 64, 2, 0, out.data());
    std::vector<int> expected(128);
    for (int i = 0; i < 128; ++i)
      if (i % 32 != 5 && i % 64 != 7 && i < 96) expected[static_cast<std::size_t>(i)] = 12;
    CHECK(out.download() == expected);
  });
}

// ------------------------------------------------------------------------------------------------------ mbarriers of others
// Block 0 writes into block 1's shared memory, block 1 answers: what is written needs release and acquire for the cluster.
__global__ void ping_pong(int* out, int steps) {
  __shared__ int box[32];
  __shared__ Mbarrier come;
  const unsigned t = threadIdx.x, rank = device::cluster_ctarank(), other = rank ^ 1;
  if (t == 0) {
    device::mbarrier_init(&come, 32);
    device::fence_mbarrier_init();
  }
  box[t] = static_cast<int>(t);
  cluster_sync();
  int* const theirs = device::mapa(box, other);
  for (int i = 0; i < steps; ++i) {
    if (rank == 1 || i > 0) device::mbarrier_wait_parity_acquire_cluster(&come, (i - (rank ^ 1)) & 1);
    theirs[t] = box[t] * 2 + static_cast<int>(rank);
    device::mbarrier_arrive_release_cluster(&come, other);
  }
  if (rank == 0) {
    device::mbarrier_wait_parity_acquire_cluster(&come, (steps - 1) & 1);
    out[t] = box[t];
  }
  cluster_sync();
}
TEST_CASE("ping-pong between two blocks") {
  in_all_orders([] {
    for (const int steps : {1, 2, 5}) {
      const Buffer<int> out(32, "out");
      launch_clusters(ping_pong, 2, 32, 2, 0, out.data(), steps);
      const auto found = out.download();
      for (int t = 0; t < 32; ++t) {
        int expected = t;
        for (int i = 0; i < steps; ++i) expected = expected * 2 * 2 + 1;
        CHECK(found[static_cast<std::size_t>(t)] == expected);
      }
    }
  });
}

// A flag in the other block's shared memory, by volatile and fences.
__global__ void flags(int* out) {
  __shared__ int box;
  __shared__ volatile int flag;
  const unsigned rank = device::cluster_ctarank();
  if (threadIdx.x == 0) flag = 0;
  cluster_sync();
  if (threadIdx.x == 0) {
    if (rank == 0) {
      *device::mapa(&box, 1) = 42;
      __threadfence();
      *device::mapa(&flag, 1) = 1;
    } else {
      while (flag == 0) {
      }
      __threadfence();
      *out = box;
    }
  }
  cluster_sync();
}
TEST_CASE("a flag in another block's shared memory") {
  in_all_orders([] {
    const Buffer<int> out(1, "out");
    launch_clusters(flags, 2, 32, 2, 0, out.data());
    CHECK(out.download()[0] == 42);
  });
}

// --------------------------------------------------------------------------------------------------------------- multicast
constexpr int kRows = 8, kColumns = 32, kTile = kRows * kColumns;

TensorMap map_of(const Buffer<int>& tensor, int rows, unsigned box_rows) {
  return device::make_tensor_map<int>({.data = tensor.data(),
                                       .rows = static_cast<std::uint64_t>(rows),
                                       .columns = kColumns,
                                       .row_stride = kColumns,
                                       .box_rows = box_rows,
                                       .box_columns = kColumns});
}
__device__ int sum_of_tile(const int* tile, int t) {
  int sum = 0;
  for (int j = 0; j < kTile; ++j) sum += (j % 3 + 1) * tile[(j + t) / kTile * 0 + j];
  return sum;
}
int sum_of_tile_on_host(const int* tile) {
  int sum = 0;
  for (int j = 0; j < kTile; ++j) sum += (j % 3 + 1) * tile[j];
  return sum;
}

// Each block loads its share of every tile and gives it to all. A stage is free when the consumers of all blocks have read it: so
// each of them arrives at the barrier of every block.
template <int kStages>
__global__ void multicast_ring(const __grid_constant__ TensorMap map, int* out, int tiles) {
  int(*const tile)[kTile] = reinterpret_cast<int(*)[kTile]>(device::dynamic_smem<int>());
  __shared__ Mbarrier full[kStages], empty[kStages];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned rank = device::cluster_ctarank(), size = device::cluster_nctarank();
  const int rows = kRows / static_cast<int>(size);
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      device::mbarrier_init(&full[s], 1);
      device::mbarrier_init(&empty[s], 2 * size);
    }
    device::fence_mbarrier_init();
  }
  cluster_sync();
  if (warp == 0 && lane == 0) {
    for (int i = 0; i < tiles; ++i) {
      const int s = i % kStages;
      device::mbarrier_wait_parity(&empty[s], (i / kStages & 1) ^ 1);
      device::mbarrier_arrive_expect_tx(&full[s], kTile * 4);
      const int first = static_cast<int>(rank) * rows;
      device::cp_async_bulk_tensor_2d_multicast(tile[s] + first * kColumns, &map, 0, kRows * i + first, &full[s],
                                                static_cast<uint16_t>((1 << size) - 1));
    }
  }
  if (warp > 0) {
    int sum = 0;
    for (int i = 0; i < tiles; ++i) {
      const int s = i % kStages;
      device::mbarrier_wait_parity(&full[s], i / kStages & 1);
      sum += (i + 1) * sum_of_tile(tile[s], lane);
      __syncwarp();
      if (lane < static_cast<int>(size)) device::mbarrier_arrive_cluster(&empty[s], static_cast<unsigned>(lane));
    }
    out[blockIdx.x * 64 + threadIdx.x - 32] = sum;
  }
  cluster_sync();  // until the last arrivals have come
}
template <int kStages>
void test_multicast_ring(unsigned size) {
  in_all_orders([&] {
    for (const int tiles : {0, 1, 6}) {
      CAPTURE(tiles);
      CAPTURE(size);
      const auto host = iota(static_cast<std::size_t>(tiles + 1) * kTile, 3);
      const Buffer<int> tensor(host, "tensor"), out(2 * size * 64, "out");
      launch_clusters(multicast_ring<kStages>, 2 * size, 96, size, kStages * kTile * 4,
                      map_of(tensor, (tiles + 1) * kRows, kRows / size), out.data(), tiles);
      int expected = 0;
      for (int i = 0; i < tiles; ++i) expected += (i + 1) * sum_of_tile_on_host(host.data() + i * kTile);
      CHECK(out.download() == std::vector<int>(2 * size * 64, expected));
    }
  });
}
TEST_CASE("a multicast ring: each block loads a share, all read the whole") {
  test_multicast_ring<1>(2);
  test_multicast_ring<2>(1);
  test_multicast_ring<2>(4);
  test_multicast_ring<3>(2);
  test_multicast_ring<4>(8);
}

// A cluster of 2 x 2: blocks of one row share A, those of one column share B.
__global__ void rows_and_columns(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, int* out, int tiles) {
  alignas(128) __shared__ int sA[2][kTile], sB[2][kTile];
  __shared__ Mbarrier full[2], empty[2];
  const unsigned rank = device::cluster_ctarank(), x = rank % 2, y = rank / 2;
  const int t = threadIdx.x;
  if (t == 0) {
    for (int s = 0; s < 2; ++s) {
      device::mbarrier_init(&full[s], 1);
      device::mbarrier_init(&empty[s], 3);  // this block's, that of the same row's other block, of the same column's
    }
    device::fence_mbarrier_init();
  }
  cluster_sync();
  const int half = kTile / 2;
  const auto produce = [&](int i) {
    const int s = i % 2;
    device::mbarrier_wait_parity(&empty[s], (i / 2 & 1) ^ 1);
    device::mbarrier_arrive_expect_tx(&full[s], 2 * kTile * 4);
    const int first = kRows / 2;
    device::cp_async_bulk_tensor_2d_multicast(sA[s] + x * half, &a, 0, (2 * i + y) * kRows + x * first, &full[s],
                                              static_cast<uint16_t>(3 << 2 * y));
    device::cp_async_bulk_tensor_2d_multicast(sB[s] + y * half, &b, 0, (2 * i + x) * kRows + y * first, &full[s],
                                              static_cast<uint16_t>(5 << x));
  };
  if (t == 0) produce(0);
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    const int s = i % 2;
    if (t == 0 && i + 1 < tiles) produce(i + 1);
    device::mbarrier_wait_parity(&full[s], i / 2 & 1);
    for (int j = 0; j < kTile; ++j) sum += sA[s][j] * sB[s][(j + t) % kTile] % 1000;
    __syncthreads();
    if (t < 4 && t != static_cast<int>(rank ^ 3)) device::mbarrier_arrive_cluster(&empty[s], static_cast<unsigned>(t));
  }
  out[rank * 32 + t] = sum;
  cluster_sync();
}
TEST_CASE("multicast along the rows and the columns of a cluster of 2 x 2 blocks") {
  in_all_orders([] {
    for (const int tiles : {1, 2, 5}) {
      const auto host_a = iota(static_cast<std::size_t>(tiles) * 2 * kTile),
                 host_b = iota(static_cast<std::size_t>(tiles) * 2 * kTile, 5);
      const Buffer<int> a(host_a, "a"), b(host_b, "b"), out(4 * 32, "out");
      const int rows = tiles * 2 * kRows;
      launch_clusters(rows_and_columns, dim3(2, 2), 32, dim3(2, 2), 0, map_of(a, rows, kRows / 2), map_of(b, rows, kRows / 2),
                      out.data(), tiles);
      const auto found = out.download();
      for (int rank = 0; rank < 4; ++rank)
        for (int t = 0; t < 32; ++t) {
          int sum = 0;
          for (int i = 0; i < tiles; ++i)
            for (int j = 0; j < kTile; ++j)
              sum += host_a[static_cast<std::size_t>((2 * i + rank / 2) * kTile + j)] *
                     host_b[static_cast<std::size_t>((2 * i + rank % 2) * kTile + (j + t) % kTile)] % 1000;
          CHECK(found[static_cast<std::size_t>(rank * 32 + t)] == sum);
        }
    }
  });
}

// Two blocks multiply: each has rows of A of its own, and loads one half of what both need of B.
constexpr int kM = 64, kN = 64, kK = 64, kGemmStages = 2;
constexpr unsigned kMatrixBytes = 64 * 64 * sizeof(__half);
__global__ void __launch_bounds__(160)
    multiply(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* c, int slices) {
  __half* const sA = device::dynamic_smem<__half>();
  __half* const sB = sA + kGemmStages * kM * kK;
  __shared__ Mbarrier full[kGemmStages], empty[kGemmStages];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, rank = device::cluster_ctarank();
  if (threadIdx.x == 0) {
    for (int s = 0; s < kGemmStages; ++s) {
      device::mbarrier_init(&full[s], 1);
      device::mbarrier_init(&empty[s], 2 * 4);
    }
    device::fence_mbarrier_init();
  }
  cluster_sync();
  if (warp == 4) {
    for (int i = 0; i < slices && lane == 0; ++i) {
      const int s = i % kGemmStages;
      device::mbarrier_wait_parity(&empty[s], (i / kGemmStages & 1) ^ 1);
      device::mbarrier_arrive_expect_tx(&full[s], 2 * kMatrixBytes);
      device::cp_async_bulk_tensor_2d(sA + s * kM * kK, &a, i * kK, static_cast<int>(blockIdx.x) * kM, &full[s]);
      const int half = static_cast<int>(rank) * kN / 2;
      device::cp_async_bulk_tensor_2d_multicast(sB + s * kN * kK + half * kK, &b, i * kK, half, &full[s], 3);
    }
  } else {
    float d[kN / 2];
    for (int i = 0; i < slices; ++i) {
      const int s = i % kGemmStages;
      device::mbarrier_wait_parity(&full[s], i / kGemmStages & 1);
      const uint64_t descriptor_a = device::wgmma_descriptor(sA + s * kM * kK, Swizzle::k128, 0, 1024);
      const uint64_t descriptor_b = device::wgmma_descriptor(sB + s * kN * kK, Swizzle::k128, 0, 1024);
      device::wgmma_fence();
      for (unsigned k = 0; k < 4; ++k)
        device::wgmma_m64k16<__half, kN>(d, descriptor_a + k * 2, descriptor_b + k * 2, i > 0 || k > 0);
      device::wgmma_commit_group();
      device::wgmma_wait_group<0>();
      if (lane < 2) device::mbarrier_arrive_cluster(&empty[s], lane);
    }
    for (unsigned i = 0; i < kN / 2; ++i)
      c[(blockIdx.x * kM + warp * 16 + lane / 4 + i / 2 % 2 * 8) * kN + i / 4 * 8 + lane % 4 * 2 + i % 2] = d[i];
  }
  cluster_sync();
}
TEST_CASE("two blocks multiply by wgmma and share B by multicast") {
  in_all_orders([] {
    const int slices = 5, k = slices * kK;
    std::vector<__half> host_a(static_cast<std::size_t>(4 * kM * k)), host_b(static_cast<std::size_t>(kN * k));
    for (std::size_t i = 0; i < host_a.size(); ++i) host_a[i] = __half(static_cast<float>(i * 37 % 9) - 4);
    for (std::size_t i = 0; i < host_b.size(); ++i) host_b[i] = __half(static_cast<float>(i * 53 % 7) - 3);
    const Buffer<__half> a(host_a, "a"), b(host_b, "b");
    const Buffer<float> c(4 * kM * kN, "c");
    const auto map = [&](const Buffer<__half>& matrix, int rows, unsigned box_rows) {
      return device::make_tensor_map<__half>({.data = matrix.data(),
                                              .rows = static_cast<std::uint64_t>(rows),
                                              .columns = static_cast<std::uint64_t>(k),
                                              .row_stride = static_cast<std::uint64_t>(k),
                                              .box_rows = box_rows,
                                              .box_columns = kK,
                                              .swizzle = Swizzle::k128});
    };
    launch_clusters(multiply, 4, 160, 2, 2 * kGemmStages * kMatrixBytes, map(a, 4 * kM, kM), map(b, kN, kN / 2), c.data(), slices);
    const auto found = c.download();
    for (int i = 0; i < 4 * kM; i += 7)
      for (int j = 0; j < kN; j += 3) {
        float sum = 0;
        for (int l = 0; l < k; ++l)
          sum += static_cast<float>(host_a[static_cast<std::size_t>(i * k + l)]) *
                 static_cast<float>(host_b[static_cast<std::size_t>(j * k + l)]);
        CHECK(found[static_cast<std::size_t>(i * kN + j)] == sum);
      }
  });
}

// The largest cluster of the largest blocks.
__global__ void many_threads(int* out, int steps) {
  __shared__ int turn[1024];
  const unsigned t = threadIdx.x, rank = device::cluster_ctarank(), size = device::cluster_nctarank();
  turn[t] = static_cast<int>(t);
  for (int i = 0; i < steps; ++i) {
    cluster_sync();
    const int next = device::mapa(turn, (rank + 1) % size)[(t + 1) % 1024];
    cluster_sync();
    turn[t] = next;
  }
  out[rank * 1024 + t] = turn[t];
  cluster_sync();
}
TEST_CASE("8 blocks of 1024 threads") {
  in_all_orders([] {
    const Buffer<int> out(8 * 1024, "out");
    launch_clusters(many_threads, 8, 1024, 8, 0, out.data(), 3);
    const auto found = out.download();
    for (int i = 0; i < 8 * 1024; ++i) CHECK(found[static_cast<std::size_t>(i)] == (i + 3) % 1024);
  });
}

#ifndef __CUDACC__
TEST_CASE("a multicast ring with checks switched off, one worker, and the model of the L2 cache") {
  using Options = interpreter::Options;
  void (*const changes[])(Options&) = {
      [](Options& o) { o.memcheck = false; },  [](Options& o) { o.racecheck = false; },
      [](Options& o) { o.initcheck = false; }, [](Options& o) { o.memcheck = o.racecheck = o.initcheck = o.count = false; },
      [](Options& o) { o.workers = 1; },       [](Options& o) { o.l2_model = true; },
  };
  for (const auto change : changes) {
    const WithOptions changed(change);
    test_multicast_ring<2>(2);
  }
}
TEST_CASE("clusters that cannot be") {
  const auto refused = [](dim3 grid, dim3 cluster, const char* what) {
    const Buffer<int> out(64, "out");
    try {
      launch_clusters(ranks, grid, 32, cluster, 0, out.data());
      FAIL("started");
    } catch (const interpreter::KernelError& error) {
      CHECK(error.diagnosis.check == interpreter::Check::kLaunch);
      CHECK_MESSAGE(error.diagnosis.what.find(what) != std::string::npos, error.diagnosis.what);
    }
  };
  refused(5, 2, "grid of 5x1x1 blocks in clusters of 2x1x1");
  refused(dim3(4, 3), dim3(2, 2), "grid of 4x3x1 blocks in clusters of 2x2x1");
  refused(16, 16, "grid of 16x1x1 blocks in clusters of 16x1x1");
  refused(16, dim3(0, 1, 1), "in clusters of 0x1x1");
  const WithOptions older([](auto& options) { options.gpu = "a100"; });
  refused(4, 2, "clusters on NVIDIA A100");
}
#endif

}  // namespace

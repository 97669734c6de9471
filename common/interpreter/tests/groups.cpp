// Cooperative groups: who belongs to a group, what its threads exchange, and that the interpreter sees who is missing.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <doctest/doctest.h>

#include "common/interpreter/cuda_runtime/program.h"
#include "common/interpreter/tests/orders.h"

namespace cg = cooperative_groups;
using device::Buffer;

namespace {

template <class Kernel, class... Arguments>
interpreter::Diagnosis diagnosis_of(Kernel kernel, dim3 grid, dim3 block, Arguments... arguments) {
  try {
    device::launch(kernel, grid, block, 0, arguments...);
  } catch (const interpreter::KernelError& e) {
    return e.diagnosis;
  }
  FAIL("no error");
  return {};
}

__global__ void ranks(int* out) {
  const cg::thread_block block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  const cg::thread_block_tile<8> tile = cg::tiled_partition<8>(warp);
  const cg::thread_group dynamic = cg::tiled_partition(block, 4);
  const cg::grid_group grid = cg::this_grid();
  const int t = static_cast<int>(grid.thread_rank());
  out[8 * t + 0] = static_cast<int>(block.thread_rank());
  out[8 * t + 1] = static_cast<int>(block.size());
  out[8 * t + 2] = static_cast<int>(warp.meta_group_rank());
  out[8 * t + 3] = static_cast<int>(tile.thread_rank());
  out[8 * t + 4] = static_cast<int>(tile.meta_group_rank());
  out[8 * t + 5] = static_cast<int>(dynamic.thread_rank());
  out[8 * t + 6] = static_cast<int>(dynamic.size());
  out[8 * t + 7] = static_cast<int>(grid.size());
}

TEST_CASE("ranks and sizes of groups") {
  in_all_orders([] {
    const Buffer<int> out(8 * 128, "out");
    device::launch(ranks, 2, dim3(8, 4, 2), 0, out.data());
    const std::vector<int> host = out.download();
    for (int t = 0; t < 128; ++t) {
      const int rank = t % 64;
      const std::vector<int> expected{rank, 64, rank / 32, rank % 8, rank % 32 / 8, rank % 4, 4, 128};
      CHECK(std::vector<int>(host.begin() + 8 * t, host.begin() + 8 * t + 8) == expected);
    }
  });
}

__global__ void exchange(int* out) {
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const int rank = static_cast<int>(tile.thread_rank()), base = static_cast<int>(threadIdx.x) - rank;
  int right = tile.shfl(static_cast<int>(threadIdx.x), 3) == base + 3;
  right &= tile.shfl_up(rank, 2) == (rank >= 2 ? rank - 2 : rank);
  right &= tile.shfl_down(rank, 5) == (rank + 5 < 16 ? rank + 5 : rank);
  right &= tile.shfl_xor(rank, 6) == (rank ^ 6);
  right &= tile.ballot(rank % 3 == 0) == 0x9249u;
  right &= tile.any(rank == 7) && !tile.all(rank == 7) && tile.all(rank < 16);
  right &= tile.match_any(rank / 4) == 0xfu << rank / 4 * 4;
  right &= cg::reduce(tile, rank, cg::plus<int>()) == 120;
  right &= cg::reduce(tile, rank + 5, cg::less<int>()) == 5 && cg::reduce(tile, rank, cg::greater<int>()) == 15;
  right &= cg::reduce(tile, 1 << rank, cg::bit_or<int>()) == 0xffff;
  right &= cg::inclusive_scan(tile, rank) == rank * (rank + 1) / 2;
  right &= cg::exclusive_scan(tile, rank) == rank * (rank - 1) / 2;
  const auto odd = cg::binary_partition(tile, rank & 1);
  right &= odd.size() == 8 && odd.thread_rank() == static_cast<unsigned>(rank / 2) && odd.shfl(rank, 0) == (rank & 1);
  const auto third = cg::labeled_partition(tile, rank % 3);
  right &= third.size() == (rank % 3 ? 5u : 6u);
  out[threadIdx.x] = right;
}

TEST_CASE("shuffles, votes, reductions, scans and partitions of a tile") {
  in_all_orders([] {
    const Buffer<int> out(64, "out");
    device::launch(exchange, 1, 64, 0, out.data());
    for (const int right : out.download()) CHECK(right == 1);
  });
}

__global__ void aggregated(const int* in, int* count, int* sizes) {
  if (in[threadIdx.x] % 2) {
    const cg::coalesced_group active = cg::coalesced_threads();
    int first = 0;
    if (active.thread_rank() == 0) first = atomicAdd(count, static_cast<int>(active.size()));
    sizes[active.shfl(first, 0) + static_cast<int>(active.thread_rank())] = static_cast<int>(active.size());
  }
}

TEST_CASE("lanes that take a branch together are coalesced") {
  in_all_orders([] {
    std::vector<int> numbers(64);
    for (int i = 0; i < 64; ++i) numbers[static_cast<std::size_t>(i)] = i;
    const Buffer<int> in(numbers, "in"), count(std::vector<int>(1, 0), "count"), sizes(32, "sizes");
    device::launch(aggregated, 1, 64, 0, in.data(), count.data(), sizes.data());
    CHECK(count.download()[0] == 32);
    for (const int size : sizes.download()) CHECK(size == 16);
  });
}

__global__ void every_block_reads_all(int* data, int* out) {
  data[blockIdx.x] = static_cast<int>(blockIdx.x) + 1;
  cg::this_grid().sync();
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += data[i];
  cg::this_grid().sync();
  data[blockIdx.x] = 0;
  cg::this_grid().sync();
  out[blockIdx.x] = sum + data[(blockIdx.x + 1) % gridDim.x];
}

template <class... Parameters>
void launch_cooperative(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, Parameters... parameters) {
  void* arguments[] = {&parameters...};
  CHECK(cudaLaunchCooperativeKernel(kernel, dim3(blocks), dim3(threads), arguments) == cudaSuccess);
}

TEST_CASE("blocks of a cooperative launch meet") {
  in_all_orders([] {
    Buffer<int> data(20, "data"), out(20, "out");
    launch_cooperative(every_block_reads_all, 20, 1, data.data(), out.data());
    for (const int sum : out.download()) CHECK(sum == 210);
  });
}

__global__ void one_block_sets_and_all_count(int* count, int* out) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *count = 0;
  cg::this_grid().sync();
  atomicAdd(count, 1);
  cg::this_grid().sync();
  if (threadIdx.x == 0) out[blockIdx.x] = *count;
}
TEST_CASE("a counter that one block sets before a barrier of all blocks") {
  in_all_orders([] {
    Buffer<int> count(1, "count"), out(20, "out");
    launch_cooperative(one_block_sets_and_all_count, 20, 64, count.data(), out.data());
    for (const int seen : out.download()) CHECK(seen == 1280);
  });
}

TEST_CASE("a grid meets in a cooperative launch alone") {
  const Buffer<int> data(2, "data"), out(2, "out");
  const interpreter::Diagnosis d = diagnosis_of(every_block_reads_all, 2, 1, data.data(), out.data());
  CHECK(d.check == interpreter::Check::kSynccheck);
  CHECK(d.what.find("not cooperative") != std::string::npos);
  CHECK(d.line > 0);
}

template <bool waits>
__global__ void copies_a_row(const float* in, float* out) {
  __shared__ float row[64];
  const cg::thread_block block = cg::this_thread_block();
  cg::memcpy_async(block, row, in, sizeof row);
  if (waits) cg::wait(block);
  if (!waits) block.sync();
  out[threadIdx.x] = row[63 - threadIdx.x];
}

TEST_CASE("memcpy_async copies in the background") {
  std::vector<float> numbers(64);
  for (int i = 0; i < 64; ++i) numbers[static_cast<std::size_t>(i)] = static_cast<float>(i);
  const Buffer<float> in(numbers, "in"), out(64, "out");
  in_all_orders([&] {
    device::launch(copies_a_row<true>, 1, 64, 0, in.data(), out.data());
    CHECK(out.download()[5] == 58);
  });
  const interpreter::Diagnosis d = diagnosis_of(copies_a_row<false>, 1, 64, in.data(), out.data());
  CHECK(d.variable == "row");
}

__global__ void half_of_a_tile_syncs() {
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  if (tile.thread_rank() < 4) tile.sync();
  __syncthreads();
}

TEST_CASE("threads that are missing in a tile are found") {
  const interpreter::Diagnosis d = diagnosis_of(half_of_a_tile_syncs, 1, 32);
  CHECK(d.check == interpreter::Check::kSynccheck);
}

// ------------------------------------------------------------------------------------------------------------- clusters
__global__ void around(int* out) {
  __shared__ int number;
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) number = static_cast<int>(blockIdx.x + 10 * blockIdx.y);
  cluster.sync();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  const int* const theirs = cluster.map_shared_rank(&number, next);
  out[(blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] =
      *theirs * 1000 + static_cast<int>(cluster.query_shared_rank(theirs) * 100 + cluster.thread_rank());
  cluster.barrier_wait(cluster.barrier_arrive());
}
void check_around(const std::vector<int>& found) {
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 2; ++x)
      for (int t = 0; t < 3; ++t) {
        const int rank = y % 2 * 2 + x, next = (rank + 1) % 4;
        CHECK(found[static_cast<std::size_t>((y * 2 + x) * 3 + t)] ==
              (next % 2 + 10 * (y / 2 * 2 + next / 2)) * 1000 + next * 100 + rank * 3 + t);
      }
}
TEST_CASE("clusters") {
  in_all_orders([] {
    const Buffer<int> out(24, "out");
    device::launch_clusters(around, dim3(2, 4), 3, dim3(2, 2), 0, out.data());
    check_around(out.download());
  });
}
// Who is who by CUDA's own functions, of which groups are made. A named barrier is passed on the way.
__global__ void own_functions(unsigned* out) {
  __shared__ unsigned block;
  if (threadIdx.x == 0) block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  __barrier_sync(3);
  if (threadIdx.x == 64) {
    const unsigned here = *static_cast<unsigned*>(__cvta_shared_to_generic(__cvta_generic_to_shared(&block)));
    const dim3 found[] = {__clusterRelativeBlockIdx(),
                          cg::this_cluster().block_index(),
                          __clusterIdx(),
                          __clusterDim(),
                          __clusterGridDimInClusters(),
                          {__clusterSizeInBlocks(), __clusterRelativeBlockRank(), __clusterDimIsSpecified()}};
    for (unsigned i = 0; i < 6; ++i) {
      unsigned* const three = out + (here * 6 + i) * 3;
      three[0] = found[i].x, three[1] = found[i].y, three[2] = found[i].z;
    }
  }
}
TEST_CASE("who is who, by CUDA's own functions") {
  in_all_orders([] {
    const Buffer<unsigned> out(4 * 6 * 2 * 18, "out");
    device::launch_clusters(own_functions, dim3(4, 6, 2), 96, dim3(2, 3, 1), 0, out.data());
    std::vector<unsigned> expected;
    for (unsigned z = 0; z < 2; ++z)
      for (unsigned y = 0; y < 6; ++y)
        for (unsigned x = 0; x < 4; ++x)
          for (const unsigned number :
               {x % 2, y % 3, 0u, x % 2, y % 3, 0u, x / 2, y / 3, z, 2u, 3u, 1u, 2u, 2u, 2u, 6u, x % 2 + y % 3 * 2, 1u})
            expected.push_back(number);
    CHECK(out.download() == expected);
  });
}

TEST_CASE("a launch in clusters by the CUDA runtime, and those that it refuses") {
  const Buffer<int> out(24, "out");
  const auto start = [&](dim3 grid, dim3 cluster) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster.x, cluster.y, cluster.z};
    const cudaLaunchConfig_t config{grid, dim3(3), 0, nullptr, &attribute, 1};
    return cudaLaunchKernelEx(&config, around, out.data());
  };
  CHECK(start(dim3(2, 4), dim3(2, 2)) == cudaSuccess);
  check_around(out.download());
  CHECK(start(dim3(2, 4), dim3(0, 0, 0)) == cudaSuccess);
  CHECK(out.download()[0] == 0);  // each block alone
  for (const auto& [grid, cluster] :
       {std::pair{dim3(5), dim3(2)}, {dim3(4, 3), dim3(2, 2)}, {dim3(9), dim3(9)}, {dim3(4), dim3(0, 1)}})
    CHECK(start(grid, cluster) == cudaErrorInvalidClusterSize);
  cudaGetLastError();
}

// What tools/interpret makes of __cluster_dims__(2, 2).
__global__ void says_itself(int* out) {
  interpreter::cuda_runtime::in_clusters_of(dim3(2, 2));
  around(out);
}
TEST_CASE("a kernel that says its clusters itself") {
  using interpreter::cuda_runtime::Configuration;
  const auto start = [](Configuration configuration, int* out) {
    return interpreter::cuda_runtime::start_function(configuration, says_itself, std::tuple<int*>(out));
  };
  for (int i = 0; i < 2; ++i) {
    const Buffer<int> out(24, "out");
    CHECK(start({dim3(2, 4), 3}, out.data()) == cudaSuccess);
    check_around(out.download());
    CHECK(start({dim3(3, 4), 3}, out.data()) == cudaErrorInvalidClusterSize);
    Configuration other(dim3(2, 4), 3);
    other.cluster = dim3(2, 1);
    CHECK(start(other, out.data()) == cudaErrorInvalidClusterSize);
  }
  cudaGetLastError();
}

}  // namespace

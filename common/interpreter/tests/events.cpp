// Events for pictures: what is recorded adds up to the counters, is in each warp's order, and changes nothing.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "common/device/cluster.cuh"
#include "common/device/dependent_launch.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/ptx.cuh"
#include "common/interpreter/observe/events.h"
#include "common/interpreter/tests/orders.h"

using device::Buffer;
using device::launch;
using nlohmann::json;

namespace {

// Records the launches of `body`. @return a document for each
template <class Body>
std::vector<json> events_of(Body&& body) {
  const std::string file = (std::filesystem::temp_directory_path() / ("events-" + std::to_string(::getpid()))).string();
  std::filesystem::remove(file);
  interpreter::events_file() = file;
  try {
    body();
  } catch (const interpreter::KernelError&) {
  }
  interpreter::events_file().clear();
  std::vector<json> launches;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) launches.push_back(json::parse(line));
  std::filesystem::remove(file);
  return launches;
}

// Of one kind, the sum of a number (4 to 8: a to e), or how many there are (-1).
std::uint64_t sum(const json& launch, const std::string& kind, int number = -1) {
  std::uint64_t total = 0;
  for (const json& event : launch["events"])
    if (launch["kinds"][event[1].get<std::size_t>()] == kind) total += number < 0 ? 1 : event[number].get<std::uint64_t>();
  return total;
}
std::vector<std::string> kinds_of_warp(const json& launch, int warp) {
  std::vector<std::string> kinds;
  for (const json& event : launch["events"])
    if (event[0] == warp) kinds.push_back(launch["kinds"][event[1].get<std::size_t>()]);
  return kinds;
}

// A tile of two stages by cp.async, read with bank conflicts, written back; then a fragment.
__global__ void everything(const float* in, float* out, const std::uint32_t* halves) {
  __shared__ float4 tile[2][64];
  __shared__ uint4 matrix[16];
  const int t = threadIdx.x;
  for (int stage = 0; stage < 2; ++stage) {
    device::cp_async_cg_16(&tile[stage][t], &in[stage * 256 + 4 * t]);
    device::cp_async_commit_group();
  }
  reinterpret_cast<std::uint32_t*>(matrix)[t] = halves[t];
  device::cp_async_wait_group<1>();
  __syncthreads();
  float sum = tile[0][t].x;
  device::cp_async_wait_group<0>();
  __syncthreads();
  sum += tile[1][63 - t].x;
  std::uint32_t a[2], zero[4] = {}, b[2];
  float d[4] = {};
  device::ldmatrix_x2(a, &matrix[t % 16]);
  b[0] = a[0], b[1] = a[1];
  const std::uint32_t four[4] = {a[0], a[1], zero[0], zero[1]};
  device::mma_m16n8k16<__half>(d, four, b);
  out[blockIdx.x * 64 + t] = sum + d[0];
}

void run_everything(unsigned blocks = 1) {
  std::vector<float> numbers(512);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const Buffer<float> in(numbers), out(64 * blocks, "out");
  const Buffer<std::uint32_t> halves(std::vector<std::uint32_t>(64, 0));
  launch(everything, blocks, 64, 0, in.data(), const_cast<float*>(out.data()), halves.data());
}

__global__ void phases(int* out) {
  __shared__ device::Mbarrier barrier;
  if (threadIdx.x == 0) device::mbarrier_init(&barrier, 2);
  __syncthreads();
  for (unsigned phase = 0; phase < 3; ++phase) {
    if (threadIdx.x % 32 == 0) device::mbarrier_arrive(&barrier);
    device::mbarrier_wait_parity(&barrier, phase & 1);
  }
  out[threadIdx.x] = 1;
}

__global__ void deadlock() {
  if (threadIdx.x < 32) __syncthreads();
  __shared__ device::Mbarrier barrier;
  if (threadIdx.x == 0) device::mbarrier_init(&barrier, 2);
  __syncwarp();
  if (threadIdx.x < 32) device::mbarrier_wait_parity(&barrier, 0);
}

// Two blocks: each stores into the other one's memory, asynchronously and not, and arrives there.
__global__ void neighbours(float* out) {
  __shared__ device::Mbarrier barrier;
  __shared__ device::Floats<1> landed[32];
  __shared__ float stored[32];
  const unsigned other = device::cluster_ctarank() ^ 1;
  if (threadIdx.x == 0) {
    device::mbarrier_init(&barrier, 2);
    device::mbarrier_arrive_expect_tx(&barrier, sizeof landed);
  }
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();
  const float mine[1] = {static_cast<float>(threadIdx.x)};
  device::st_async(&landed[threadIdx.x], mine, &barrier, other);
  if (threadIdx.x == 5) device::mbarrier_arrive_release_cluster(&barrier, other);
  device::mbarrier_wait_parity_acquire_cluster(&barrier, 0);
  *device::mapa(&stored[threadIdx.x], other) = landed[threadIdx.x].x[0];
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();
  out[blockIdx.x * 32 + threadIdx.x] = stored[threadIdx.x];
}

// In that block thread 40 writes beyond an array.
__global__ void fails_in(unsigned block) {
  __shared__ int numbers[64];
  if (blockIdx.x > 0) numbers[threadIdx.x] = 1;
  __syncthreads();
  if (blockIdx.x == block && threadIdx.x == 40) numbers[block + 4096] = 2;
}

__global__ void dependent() {
  device::griddepcontrol_launch_dependents();
  device::griddepcontrol_wait();
}

}  // namespace

TEST_CASE("the events of a launch of one block add up to its counters") {
  in_all_orders([] {
    interpreter::clear_profiles();
    const std::vector<json> launches = events_of([] { run_everything(); });
    REQUIRE(launches.size() == 1);
    const json& events = launches[0];
    interpreter::Counters all;
    for (const auto& line : interpreter::profiles().back().lines) all += line.counters;
    CHECK(events["whole"] == true);
    CHECK(sum(events, "global load") == all.global_load.requests);
    CHECK(sum(events, "global load", 5) == all.global_load.sectors);
    CHECK(sum(events, "global store", 5) == all.global_store.sectors);
    CHECK(sum(events, "shared load") == all.shared_load.requests);
    CHECK(sum(events, "shared load", 5) == all.shared_load.wavefronts);
    CHECK(sum(events, "shared load", 7) == all.shared_load.ideal_wavefronts);
    CHECK(sum(events, "shared store", 5) == all.shared_store.wavefronts);
    CHECK(sum(events, "ldmatrix") == all.matrix_load.requests);
    CHECK(sum(events, "ldmatrix", 5) == all.matrix_load.wavefronts);
    CHECK(sum(events, "copy") == all.copy_read.requests);
    CHECK(sum(events, "copy", 7) == all.copy_read.bytes);
    CHECK(sum(events, "copy", 4) == all.copy_write.bytes);
    CHECK(sum(events, "mma") == all.mma);
    CHECK(sum(events, "barrier") == 2 * all.barriers);  // two warps
    CHECK(all.mma == 2);
    CHECK(all.shared_load.wavefronts > all.shared_load.ideal_wavefronts);
  });
}

TEST_CASE("a warp's events are in the order of its program, and name their lines") {
  in_all_orders([] {
    const json events = events_of([] { run_everything(); }).at(0);
    for (const int warp : {0, 1})
      CHECK(kinds_of_warp(events, warp) == std::vector<std::string>{"copy", "copy commit", "copy", "copy commit", "global load",
                                                                    "shared store", "copy wait", "barrier", "shared load",
                                                                    "copy wait", "barrier", "shared load", "ldmatrix", "mma",
                                                                    "global store"});
    for (const json& event : events["events"]) {
      const json& place = events["places"][event[2].get<std::size_t>()];
      CHECK(place[0].get<std::string>().ends_with("events.cpp"));
      CHECK(place[1] > 50);
      CHECK(event[3] == (events["kinds"][event[1].get<std::size_t>()] == "ldmatrix" ? 0xffffu : 0xffffffffu));
    }
  });
}

TEST_CASE("a product names the registers that ldmatrix has loaded") {
  const json events = events_of([] { run_everything(); }).at(0);
  CHECK(sum(events, "ldmatrix", 8) != 0);
  CHECK(sum(events, "ldmatrix", 8) % 2 == 0);  // none is transposed
  CHECK(sum(events, "mma", 5) != 0);
  CHECK(sum(events, "mma", 7) == 2 * 8);  // words along k
  CHECK(sum(events, "mma", 4) == 2 * 2 * 16 * 8 * 16);
}

TEST_CASE("of several blocks the first one is recorded") {
  const json events = events_of([] { run_everything(3); }).at(0);
  CHECK(events["grid"] == json({3, 1, 1}));
  CHECK(sum(events, "copy") == 4);
}

TEST_CASE("an mbarrier's arrivals and the phases that were waited for") {
  in_all_orders([] {
    const Buffer<int> out(64, "out");
    const json events = events_of([&] { launch(phases, 1, 64, 0, const_cast<int*>(out.data())); }).at(0);
    CHECK(sum(events, "mbarrier init", 5) == 2);
    CHECK(sum(events, "mbarrier arrive") == 2 * 3);
    CHECK(events["names"].size() == 1);
    CHECK(events["names"].begin().value().get<std::string>().find("barrier") != std::string::npos);
    std::vector<int> lanes(3);
    for (const json& event : events["events"])
      if (events["kinds"][event[1].get<std::size_t>()] == "mbarrier wait") {
        CHECK(event[5] == event[6].get<std::uint64_t>() % 2);
        lanes.at(event[6]) += std::popcount(event[3].get<std::uint32_t>());
      }
    CHECK(lanes == std::vector<int>{64, 64, 64});
  });
}

TEST_CASE("of a cluster all blocks are recorded, and what they do in each other's memory") {
  in_all_orders([] {
    const Buffer<float> out(4 * 32, "out");
    const auto run = [&] { device::launch_clusters(neighbours, 4, 32, dim3(2), 0, const_cast<float*>(out.data())); };
    const json events = events_of(run).at(0);
    CHECK(events["cluster"] == json({2, 1, 1}));
    std::map<std::string, int> to_neighbour;  // lanes: they may come one after the other
    for (const json& event : events["events"]) {
      const std::string kind = events["kinds"][event[1].get<std::size_t>()];
      const unsigned other = 1 - event[0].get<unsigned>();
      if (event[7] == other || kind.starts_with("cluster ")) to_neighbour[kind] += std::popcount(event[3].get<std::uint32_t>());
    }
    CHECK(to_neighbour["st.async"] == 2 * 32);
    CHECK(to_neighbour["cluster store"] == 2 * 32);
    CHECK(to_neighbour["mbarrier arrive"] == 2);
    CHECK(to_neighbour["cluster arrive"] == 2 * 2 * 32);
    CHECK(to_neighbour["cluster wait"] == 2 * 2 * 32);
    CHECK(sum(events, "mbarrier init") == 2);
    CHECK(sum(events, "st.async", 4) == 4 * sum(events, "st.async"));
    CHECK(events["names"].size() == 1);
  });
}

TEST_CASE("what a check ends is written so far, with the reason") {
  const json events = events_of([] { launch(deadlock, 1, 64, 0); }).at(0);
  CHECK(events["diagnosis"]["check"] == "synccheck");
  CHECK(events["diagnosis"]["line"] > 0);
  CHECK(events["diagnosis"]["rank"] == 0);
  CHECK(events["diagnosis"]["warp"] == 0);
  CHECK(events["diagnosis"]["lane"] == 0);
  CHECK(sum(events, "barrier") == 1);
}

TEST_CASE("of several blocks that in which a check fails is recorded") {
  for (const unsigned block : {0u, 2u}) {
    const json events = events_of([&] { launch(fails_in, 3, 64, 0, block); }).at(0);
    CHECK(events["first"] == json({block, 0, 0}));
    CHECK(events["diagnosis"]["rank"] == 0);
    CHECK(events["diagnosis"]["warp"] == 1);
    CHECK(sum(events, "barrier") == 2);
    CHECK(sum(events, "shared store") == (block ? 2 : 0));
  }
}

TEST_CASE("another block, or another one's cluster, is recorded if its number is asked for") {
  const auto of_block = [](std::uint64_t number, auto&& run) {
    interpreter::events_block() = number;
    const json events = events_of(run).at(0);
    interpreter::events_block() = 0;
    return events;
  };
  const auto blocks = [] { launch(fails_in, dim3(1, 3), 64, 0, 9); };  // blockIdx.x is 0 in all
  CHECK(of_block(2, blocks)["first"] == json({0, 2, 0}));
  CHECK(of_block(3, blocks)["first"] == json({0, 0, 0}));  // there is none
  const auto row = [] { launch(fails_in, 3, 64, 0, 1); };
  CHECK(sum(of_block(0, [] { launch(fails_in, 3, 64, 0, 9); }), "shared store") == 0);
  CHECK(sum(of_block(2, [] { launch(fails_in, 3, 64, 0, 9); }), "shared store") == 2);
  CHECK(of_block(2, row)["first"] == json({1, 0, 0}));  // what a check ends is what somebody looks for
  const Buffer<float> out(4 * 32, "out");
  const auto clusters = [&] { device::launch_clusters(neighbours, 4, 32, dim3(2), 0, const_cast<float*>(out.data())); };
  CHECK(of_block(3, clusters)["first"] == json({2, 0, 0}));
}

TEST_CASE("what dependent launches say of each other") {
  const json events = events_of([] { device::launch_dependent(dependent, 1, 64, 0); }).at(0);
  CHECK(kinds_of_warp(events, 1) == std::vector<std::string>{"launch hint", "launch wait"});
}

TEST_CASE("a file that is full still gets what a check has ended") {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / ("full-" + std::to_string(::getpid()));
  std::ofstream(file).put('{');
  const auto full = interpreter::EventLog::kMostBytes + 1;
  std::filesystem::resize_file(file, full);  // it takes no room on the disk
  interpreter::events_file() = file.string();
  run_everything();
  CHECK(std::filesystem::file_size(file) == full);
  CHECK_THROWS_AS(launch(deadlock, 1, 64, 0), interpreter::KernelError);
  CHECK(std::filesystem::file_size(file) > full);
  interpreter::events_file().clear();
  std::filesystem::remove(file);
}

TEST_CASE("nothing is recorded, and nothing written, if nobody asks") {
  CHECK(interpreter::events_file().empty());
  run_everything();
}

TEST_CASE("a file that cannot be written is an error") {
  interpreter::events_file() = "/nowhere/events";
  CHECK_THROWS_WITH(run_everything(), doctest::Contains("cannot write the events to /nowhere/events"));
  interpreter::events_file().clear();
}

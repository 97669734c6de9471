/// @file
/// Who runs when: orders, blocks that are resident together, workers, limits, and what a launch leaves behind.
#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/device/device.cuh"
#include "common/interpreter/interpreter.h"
#include "common/interpreter/tests/orders.h"

using device::Buffer;
using device::launch;
using interpreter::Check;
using interpreter::KernelError;
using interpreter::Order;

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

// -------------------------------------------------------------------------------------------------------------- orders
// Everybody signs in, in the order in which they come by.
__global__ void sign_in(unsigned* count, int* list) {
  const int me = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  list[atomicAdd(count, 1u)] = me;
}
std::vector<int> order_of(Order order, std::uint64_t seed, unsigned blocks, unsigned threads) {
  const WithOptions restored([&](auto& o) { o.order = order, o.seed = seed, o.workers = 1; });
  auto count = zeros<unsigned>(1, "count");
  Buffer<int> list(blocks * threads, "list");
  launch(sign_in, blocks, threads, 0, count.data(), list.data());
  return list.download();
}

TEST_CASE("forward and reverse order") {
  struct Shape {
    unsigned blocks, threads;
  };
  for (const Shape& s : {Shape{1, 32}, Shape{20, 1}, Shape{5, 32}, Shape{1, 17}}) {
    auto expected = iota(s.blocks * s.threads);
    CHECK(order_of(Order::kForward, 1, s.blocks, s.threads) == expected);
    std::reverse(expected.begin(), expected.end());
    CHECK(order_of(Order::kReverse, 1, s.blocks, s.threads) == expected);
  }
}

TEST_CASE("random order: by the seed, and nobody is forgotten") {
  struct Shape {
    unsigned blocks, threads;
  };
  for (const Shape& s : {Shape{1, 32}, Shape{40, 1}, Shape{3, 96}}) {
    std::set<std::vector<int>> seen;
    for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
      auto order = order_of(Order::kRandom, seed, s.blocks, s.threads);
      CHECK(order == order_of(Order::kRandom, seed, s.blocks, s.threads));
      seen.insert(order);
      std::sort(order.begin(), order.end());
      CHECK(order == iota(s.blocks * s.threads));
    }
    seen.insert(order_of(Order::kForward, 1, s.blocks, s.threads));
    seen.insert(order_of(Order::kReverse, 1, s.blocks, s.threads));
    CAPTURE(s.blocks);
    CHECK(seen.size() == 7);  // all different
  }
}

// ------------------------------------------------------------------------------------------------------ every one once
__global__ void count_visits(unsigned* visits) {
  const std::size_t block = (std::size_t(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  atomicAdd(&visits[block * (blockDim.x * blockDim.y * blockDim.z) + thread], 1u);
}
TEST_CASE("every thread of every block runs exactly once") {
  struct Shape {
    dim3 grid, block;
  };
  const Shape shapes[] = {{1, 1},
                          {1, 31},
                          {1, 33},
                          {3, 1024},
                          {dim3(1, 1, 5), dim3(1, 1, 64)},
                          {257, 3},
                          {dim3(7, 5, 3), dim3(3, 5, 2)},
                          {dim3(1, 300), dim3(1, 7)},
                          {2, dim3(1, 1024)}};
  for (const int workers : {0, 1, 2, 3}) {
    const WithOptions restored([&](auto& o) { o.workers = workers; });
    in_all_orders([&] {
      for (const Shape& s : shapes) {
        const std::size_t threads = std::size_t(s.grid.x) * s.grid.y * s.grid.z * s.block.x * s.block.y * s.block.z;
        auto visits = zeros<unsigned>(threads, "visits");
        launch(count_visits, s.grid, s.block, 0, visits.data());
        CHECK(visits.download() == std::vector<unsigned>(threads, 1));
      }
    });
  }
}

TEST_CASE("a grid as high as CUDA allows") {
  auto visits = zeros<unsigned>(65535, "visits");
  launch(count_visits, dim3(1, 65535), 1, 0, visits.data());
  CHECK(visits.download() == std::vector<unsigned>(65535, 1));
}

// --------------------------------------------------------------------------------------------- blocks resident together
__global__ void grid_barriers(unsigned* arrived, const int* in, int* out, unsigned rounds) {
  int value = in[blockIdx.x];
  for (unsigned round = 1; round <= rounds; ++round) {
    if (threadIdx.x == 0) {
      out[blockIdx.x] = value;
      __threadfence();
      atomicAdd(arrived, 1u);
      while (atomicAdd(arrived, 0u) < (2 * round - 1) * gridDim.x) {
      }
      __threadfence();
      value = out[(blockIdx.x + 1) % gridDim.x];
      __threadfence();
      atomicAdd(arrived, 1u);  // nobody overwrites what others still read
      while (atomicAdd(arrived, 0u) < 2 * round * gridDim.x) {
      }
      __threadfence();
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = value;
}
TEST_CASE("132 blocks wait for each other, on any number of workers") {
  for (const int workers : {0, 1}) {
    const WithOptions restored([&](auto& o) { o.workers = workers; });
    for (const Order order : {Order::kForward, Order::kReverse, Order::kRandom}) {
      interpreter::options().order = order;
      Buffer<int> in(iota(132), "in"), out(132, "out");
      auto arrived = zeros<unsigned>(1, "arrived");
      launch(grid_barriers, 132, 33, 0, arrived.data(), in.data(), out.data(), 3u);
      auto expected = iota(132);
      std::rotate(expected.begin(), expected.begin() + 3, expected.end());
      CHECK(out.download() == expected);
    }
  }
}

__global__ void wait_for_my_neighbour_lane(unsigned* turn, int* out, int direction) {
  // Lanes of one warp wait for each other, as they may since Volta.
  const int lane = static_cast<int>(threadIdx.x), place = direction > 0 ? lane : 31 - lane;
  while (atomicAdd(turn, 0u) != static_cast<unsigned>(place)) {
  }
  __threadfence_block();
  out[lane] = place;
  atomicAdd(turn, 1u);
}
__global__ void wait_for_a_volatile(volatile int* flags, int* out, int direction) {
  const int lane = static_cast<int>(threadIdx.x), before = lane - direction;
  if (before >= 0 && before < 32)
    while (flags[before] == 0) {
    }
  out[lane] = 1;
  flags[lane] = 1;
}
TEST_CASE("lanes of a warp that wait for each other go on") {
  in_all_orders([] {
    for (const int direction : {1, -1}) {
      auto turn = zeros<unsigned>(1, "turn");
      Buffer<int> out(32, "out");
      launch(wait_for_my_neighbour_lane, 1, 32, 0, turn.data(), out.data(), direction);
      CHECK(turn.download()[0] == 32);
      auto flags = zeros<int>(32, "flags");
      launch(wait_for_a_volatile, 1, 32, 0, flags.data(), out.data(), direction);
      CHECK(flags.download() == std::vector<int>(32, 1));
    }
  });
}

__global__ void sleepers(unsigned* turn, unsigned last) {
  while (atomicAdd(turn, 0u) != blockIdx.x) __nanosleep(1000);
  if (blockIdx.x < last) atomicAdd(turn, 1u);
}
TEST_CASE("blocks that sleep while they wait") {
  in_all_orders([] {
    auto turn = zeros<unsigned>(1, "turn");
    launch(sleepers, 9, 1, 0, turn.data(), 8u);
    CHECK(turn.download()[0] == 8);
  });
}

// -------------------------------------------------------------------------------------------------------------- limits
__global__ void nothing() {}
__global__ void touch_dynamic_memory(int* out, int bytes) {
  unsigned char* const memory = device::dynamic_smem();
  memory[0] = 1, memory[bytes - 1] = 2;
  *out = memory[0] + memory[bytes - 1];
}
TEST_CASE("what CUDA allows is launched") {
  launch(nothing, 1, 1024, 0);
  launch(nothing, 1, dim3(1, 1024), 0);
  launch(nothing, 1, dim3(4, 4, 64), 0);
  launch(nothing, dim3(1, 1, 65535), 1, 0);
  struct Limit {
    const char* gpu;
    int bytes;
  };
  for (const Limit& limit : {Limit{"a100", 163 * 1024}, {"h100", 227 * 1024}, {"h200", 227 * 1024}, {"4090", 99 * 1024}}) {
    const WithOptions restored([&](auto& o) { o.gpu = limit.gpu; });
    Buffer<int> out(1, "out");
    launch(touch_dynamic_memory, 1, 1, static_cast<std::size_t>(limit.bytes), out.data(), limit.bytes);
    CHECK(out.download()[0] == 3);
    CHECK_THROWS_AS(launch(nothing, 1, 1, static_cast<std::size_t>(limit.bytes) + 1), KernelError);
  }
}
TEST_CASE("a GPU that is not modelled") {
  const WithOptions restored([](auto& o) { o.gpu = "b4000"; });
  CHECK_THROWS_AS(launch(nothing, 1, 1, 0), std::invalid_argument);
}

__device__ int frames(const int* in, int depth) {
  volatile int frame[32];
  frame[depth % 32] = in[0];
  return depth == 0 ? 0 : frames(in, depth - 1) + frame[depth % 32];
}
__global__ void deep(const int* in, int* out) { out[threadIdx.x] = frames(in, 2'000); }
TEST_CASE("a larger stack for those who need it") {
  const Buffer<int> in(std::vector<int>{1}, "in");
  Buffer<int> out(3, "out");
  CHECK_THROWS_AS(launch(deep, 1, 3, 0, in.data(), out.data()), KernelError);
  const WithOptions restored([](auto& o) { o.stack_bytes = 4 << 20; });
  launch(deep, 1, 3, 0, in.data(), out.data());
  CHECK(out.download() == std::vector<int>(3, 2000));
}

// ----------------------------------------------------------------------------------------------------- what can be chosen
__global__ void races(int* out) { *out = static_cast<int>(threadIdx.x); }
__global__ void reads_uninitialised(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x]; }
__global__ void one_too_far(const int* in, int* out, int n) { out[threadIdx.x] = in[threadIdx.x + static_cast<unsigned>(n)]; }
TEST_CASE("each check can be switched off") {
  Buffer<int> in(std::vector<int>(32, 1), "in"), out(32, "out");
  const Buffer<int> empty(32, "empty");
  const auto caught = [](auto&& start) {
    try {
      start();
    } catch (const KernelError& e) {
      return std::string(name(e.diagnosis.check));
    }
    return std::string();
  };
  const auto all = [&] {
    return std::array{caught([&] { launch(races, 1, 32, 0, out.data()); }),
                      caught([&] { launch(reads_uninitialised, 1, 32, 0, empty.data(), out.data()); }),
                      caught([&] { launch(one_too_far, 1, 32, 0, in.data(), out.data(), 1); })};
  };
  CHECK(all() == std::array<std::string, 3>{"racecheck", "initcheck", "memcheck"});
  {
    const WithOptions restored([](auto& o) { o.racecheck = false; });
    CHECK(all() == std::array<std::string, 3>{"", "initcheck", "memcheck"});
  }
  {
    const WithOptions restored([](auto& o) { o.initcheck = false; });
    CHECK(all() == std::array<std::string, 3>{"racecheck", "", "memcheck"});
  }
  {
    const WithOptions restored([](auto& o) { o.memcheck = o.initcheck = false; });
    CHECK(all() == std::array<std::string, 3>{"racecheck", "", ""});
  }
}

// -------------------------------------------------------------------------------------------------- what launches leave
std::size_t os_threads() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}
__global__ void fails_in_one_block(const int* in, int* out, unsigned faulty) {
  __shared__ int tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (blockIdx.x == faulty && threadIdx.x == 40) __trap();
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}
TEST_CASE("failed launches leave nothing behind") {
  Buffer<int> in(iota(64), "in"), out(64 * 30, "out");
  const auto fail = [&](unsigned faulty) {
    try {
      launch(fails_in_one_block, 30, 64, 0, in.data(), out.data(), faulty);
      FAIL("nothing was reported");
    } catch (const KernelError& error) {
      CHECK(error.diagnosis.check == Check::kException);
      CHECK(error.diagnosis.block.x == faulty);
      CHECK(error.diagnosis.thread.x == 40);
    }
  };
  fail(3);
  const std::size_t before = os_threads(), launches = interpreter::profiles().size();
  in_all_orders([&] {
    for (unsigned faulty = 0; faulty < 30; faulty += 7) fail(faulty);
  });
  CHECK(os_threads() == before);
  CHECK(interpreter::profiles().size() == launches);  // only launches that ended well are counted

  launch(fails_in_one_block, 30, 64, 0, in.data(), out.data(), 1000u);
  auto expected = iota(64);
  std::reverse(expected.begin(), expected.end());
  const auto result = out.download();
  for (std::ptrdiff_t b = 0; b < 30; ++b) CHECK(std::equal(expected.begin(), expected.end(), result.begin() + 64 * b));
}

__global__ void add_one(int* data) { data[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
TEST_CASE("many launches one after the other") {
  auto data = zeros<int>(96, "data");
  const std::size_t before = os_threads();
  for (int i = 0; i < 500; ++i) launch(add_one, 3, 32, 0, data.data());
  CHECK(data.download() == std::vector<int>(96, 500));
  CHECK(os_threads() <= before + 8);
}

TEST_CASE("launches from several host threads take turns") {
  auto data = zeros<int>(96, "data");
  std::vector<std::thread> hosts;
  for (int h = 0; h < 4; ++h)
    hosts.emplace_back([&] {
      for (int i = 0; i < 25; ++i) launch(add_one, 3, 32, 0, data.data());
    });
  for (std::thread& host : hosts) host.join();
  CHECK(data.download() == std::vector<int>(96, 100));
}

// Runs the test case `name` of this file, which may be one that is skipped here, in a process of its own.
int run_alone(const std::string& shell, const std::string& name, std::string& output) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  FILE* const child = popen((shell + "'" + self + "' --no-skip --test-case='" + name + "' 2>&1").c_str(), "r");
  REQUIRE(child != nullptr);
  for (char buffer[256]; std::fgets(buffer, sizeof buffer, child);) output += buffer;
  const int status = pclose(child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("launch without a handler" * doctest::skip()) {
  Buffer<int> out(32, "the contested one");
  std::thread([&] { launch(races, 1, 32, 0, out.data()); }).join();  // doctest catches only what its own thread throws
}
TEST_CASE("an uncaught error prints its report and ends the program with 1") {
  std::string output;
  CHECK(run_alone("", "launch without a handler", output) == 1);
  CAPTURE(output);
  CHECK(output.find("interpreter: racecheck: race on the contested one") != std::string::npos);
  CHECK(output.find("scheduler.cpp:") != std::string::npos);
}

TEST_CASE("too little address space is told with what is needed, and is exit code 2") {
  for (const char* const option : {"v", "d"}) {
    std::string output;
    if (std::system((std::string("ulimit -") + option + " 64000000 && test $(ulimit -" + option + ") = 64000000").c_str()) != 0) {
      MESSAGE("not tried: 'ulimit -" << option << "' limits nothing here, as under qemu");
      continue;
    }
    CHECK(run_alone(std::string("ulimit -") + option + " 64000000; ", "launch without a handler", output) == 2);
    CHECK(output.find("interpreter: needs 11 TB of address space") != std::string::npos);
    CHECK(output.find(std::string("the limit is 0.0655 TB; 'ulimit -") + option + " unlimited'") != std::string::npos);
  }
}

__global__ void takes_its_time(unsigned* out, int work) {
  unsigned x = threadIdx.x;
  for (int i = 0; i < work; ++i) x = x * 1664525u + 1013904223u;
  out[blockIdx.x] = x;
}
TEST_CASE("progress of a long launch") {
  std::vector<double> shares;
  const WithOptions restored([&](auto& o) { o.progress = [&](double share) { shares.push_back(share); }; });
  Buffer<unsigned> out(64, "out");
  launch(takes_its_time, 1, 1, 0, out.data(), 100);
  CHECK(shares.empty());  // too short to talk about
  for (int work = 1'000'000; shares.empty() && work < 2'000'000'000; work *= 2) launch(takes_its_time, 64, 1, 0, out.data(), work);
  REQUIRE_FALSE(shares.empty());
  CHECK(shares.back() == 1);
  CHECK(std::is_sorted(shares.begin(), shares.end()));
  CHECK(shares.front() >= 0);
}
// On a machine of any speed.
__global__ void sleeps(unsigned* out) {
  usleep(20000);
  out[blockIdx.x] = 1;
}
TEST_CASE("launch that takes its time" * doctest::skip()) {
  const WithOptions impatient([](auto& o) { o.patience_seconds = 0.1; });
  Buffer<unsigned> out(64, "out");
  launch(sleeps, 64, 1, 0, out.data());
}
TEST_CASE("a long launch says that it runs and how far it is, ever less often") {
  std::string output;
  CHECK(run_alone("", "launch that takes its time", output) == 0);
  CAPTURE(output);
  CHECK(output.starts_with("interpreter: the kernel (anonymous namespace)::sleeps has run for 0 s: "));
  CHECK(output.find(" of 64 blocks have ended") != std::string::npos);
  CHECK(std::count(output.begin(), output.end(), '\n') < 30);
}

// ------------------------------------------------------------------------------------------------------- device memory
// As if the machine were busy with something else.
__global__ void not_scheduled_for_long(int* out) {
  usleep(400000);
  out[threadIdx.x] = 1;
}
TEST_CASE("a thread that the machine does not run is no endless loop") {
  const WithOptions impatient([](auto& o) { o.hang_seconds = 0.1; });
  auto out = zeros<int>(1, "out");
  launch(not_scheduled_for_long, 1, 1, 0, out.data());
  CHECK(out.download() == std::vector<int>{1});
}

TEST_CASE("device memory") {
  CHECK_THROWS_AS(Buffer<char>(std::size_t(200) << 30), std::bad_alloc);  // more than the modelled GPU has
  Buffer<int> buffer(10, "ten");
  CHECK_THROWS_AS(buffer.upload(iota(11).data(), 11), std::out_of_range);
  CHECK_THROWS_AS(interpreter::copy_in(buffer.data() + 5, iota(6).data(), 6 * sizeof(int)), std::out_of_range);
  int out[11];
  CHECK_THROWS_AS(interpreter::copy_out(out, buffer.data() - 1, sizeof(int)), std::out_of_range);
  CHECK_THROWS_AS(interpreter::fill(buffer.data() + 10, 0, 4), std::out_of_range);
  CHECK_THROWS_AS(interpreter::release(buffer.data() + 1), std::invalid_argument);
  const Buffer<int> none(0, "none");
  CHECK(none.data() == nullptr);
  CHECK(none.download().empty());

  buffer.upload(iota(4).data(), 4, 3);
  buffer.download(out, 4, 3);
  CHECK(std::vector<int>(out, out + 4) == iota(4));
  Buffer<int> moved = std::move(buffer);
  CHECK(moved.size() == 10);
  moved.fill(0x01);
  CHECK(moved.download() == std::vector<int>(10, 0x01010101));
}
TEST_CASE("fresh memory is not a number") {
  const Buffer<float> buffer(100, "fresh");
  for (const float x : buffer.download()) CHECK(x != x);
}
TEST_CASE("memory that has been freed can be had again") {
  for (int i = 0; i < 6; ++i) {                              // 180 GiB in all
    const Buffer<char> much(std::size_t(30) << 30, "much");  // only address space: nobody touches it
    CHECK(much.data() != nullptr);
  }
}

__global__ void where_am_i(int* out) { out[threadIdx.x] = interpreter::at(2, 0, 0, 5, 0, 0); }
TEST_CASE("at() picks one thread, for breakpoints") {
  auto out = zeros<int>(32, "out");
  CHECK_FALSE(interpreter::at(0, 0, 0, 0, 0, 0));  // not in a kernel
  const WithOptions restored([](auto& o) { o.racecheck = false; });
  launch(where_am_i, 1, 32, 0, out.data());
  CHECK(out.download() == std::vector<int>(32, 0));
}

}  // namespace

/// @file
/// cuda::barrier, cuda::pipeline and cuda::memcpy_async: kernels that are right in all orders, and each broken in one place.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <doctest/doctest.h>

#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <functional>
#include <numeric>
#include <vector>

#include "common/device/device.cuh"
#include "common/interpreter/tests/labelled.h"

namespace cg = cooperative_groups;
using device::Buffer;
using device::launch;
using interpreter::Check;
using labelled::Bug;
using labelled::must_be_right;

namespace {

void must_be_caught(const Bug& bug, const std::function<bool()>& start) { labelled::must_be_caught(bug, start, __FILE__); }

using BlockBarrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int kThreads = 64;

std::vector<int> iota(std::size_t n) {
  std::vector<int> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 5);
  return numbers;
}
// What `kernel` does with `tiles` tiles of 64 numbers: each thread sums the numbers of its neighbour on the other side.
template <class Kernel>
bool sums_are_right(Kernel kernel, int tiles) {
  const std::vector<int> numbers = iota(static_cast<std::size_t>(tiles) * kThreads);
  const Buffer<int> in(numbers, "in");
  Buffer<int> out(kThreads, "out");
  launch(kernel, 1, kThreads, 0, in.data(), out.data(), tiles);
  const std::vector<int> found = out.download();
  for (int t = 0; t < kThreads; ++t) {
    int sum = 0;
    for (int tile = 0; tile < tiles; ++tile) sum += numbers[static_cast<std::size_t>(tile * kThreads + kThreads - 1 - t)];
    if (found[static_cast<std::size_t>(t)] != sum) return false;
  }
  return true;
}

enum Plant {
  kNone,
  kSyncthreadsAlone,
  kOnlyOneWaits,
  kWaitsForTheLastPhase,
  kOneArrivalMore,
  kArrivesTwice,
  kOneArrivalLess,
  kNotInitialised,
  kNoBarrierAfterInit,
  kOverwritten,
  kSourceCleared,
  kNoWait,
  kOneGroupLate,
  kNoRelease,
  kNoAcquire,
  kReadsBeforeWait,
  kNoCommit,
  kNoFence,
  kOtherBarrier,
  kWaitsForGroups,
  kLooksOnce
};

// ----------------------------------------------------------------------------------------------------------- atomics' scope
template <cuda::thread_scope kScope>
__global__ void hands_on(int* data, int* flag, int* out) {
  cuda::atomic_ref<int, kScope> ref(*flag);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    *data = 7;  // <- store
    ref.store(1, cuda::memory_order_release);
  }
  if (blockIdx.x + 1 == gridDim.x && threadIdx.x == 32) {
    while (ref.load(cuda::memory_order_acquire) == 0) {
    }
    *out = *data;  // <- look
  }
}
template <cuda::thread_scope kScope>
bool is_handed_on(unsigned blocks) {
  const Buffer<int> data(std::vector<int>{0}, "data"), flag(std::vector<int>{0}, "flag"), out(std::vector<int>{0}, "out");
  launch(hands_on<kScope>, blocks, 64, 0, data.data(), flag.data(), out.data());
  return out.download()[0] == 7;
}
// Blocks that only look race with nobody, whatever the scope.
__global__ void all_look(int* flag, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_block> ref(*flag);
  out[blockIdx.x * blockDim.x + threadIdx.x] = ref.load();
}
TEST_CASE("an atomic_ref's scope: of the block it orders the block's threads alone") {
  must_be_right([] { return is_handed_on<cuda::thread_scope_device>(2) && is_handed_on<cuda::thread_scope_system>(2); });
  must_be_right([] { return is_handed_on<cuda::thread_scope_block>(1); });
  must_be_right([] {
    const Buffer<int> flag(std::vector<int>{3}, "flag"), out(128, "out");
    launch(all_look, 4, 32, 0, flag.data(), out.data());
    return out.download() == std::vector<int>(128, 3);
  });
  must_be_caught({"hands_on", Check::kRacecheck, "data", {}, {"look", "store"}, {"look", "store"}},
                 [] { return is_handed_on<cuda::thread_scope_block>(2); });
}

// --------------------------------------------------------------------------------------------------------------- barriers
// The whole block copies, and its barrier says when.
template <Plant plant>
__global__ void by_block(const int* in, int* out, int tiles) {
  __shared__ int row[kThreads];
  __shared__ BlockBarrier bar;
  const cg::thread_block block = cg::this_thread_block();
  if (threadIdx.x == 0 && plant != kNotInitialised)
    init(&bar, kThreads - (plant == kOneArrivalMore) + (plant == kOneArrivalLess));  // <- init
  if (plant != kNoBarrierAfterInit) block.sync();
  int sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    cuda::memcpy_async(block, row, in + tile * kThreads, sizeof row, bar);  // <- copy
    if (plant == kSyncthreadsAlone) {
      block.sync();
    } else if (plant == kOnlyOneWaits) {
      auto token = bar.arrive();
      if (threadIdx.x == 0) bar.wait(std::move(token));
    } else if (plant == kArrivesTwice) {
      (void)bar.arrive();
      block.sync();
      bar.arrive_and_wait();  // <- second arrival
    } else {
      bar.arrive_and_wait();  // <- arrival
    }
    sum += row[kThreads - 1 - threadIdx.x];  // <- read
    block.sync();
  }
  out[threadIdx.x] = sum;
}

TEST_CASE("a block copies and waits at its barrier") {
  must_be_right([] { return sums_are_right(by_block<kNone>, 1) && sums_are_right(by_block<kNone>, 5); });
}
TEST_CASE("__syncthreads is no wait for copies in the background") {
  must_be_caught(
      {"by_block", Check::kRacecheck, "row", {"before its cp.async was waited for", "barrier or pipeline"}, {"read"}, {"copy"}},
      [] { return sums_are_right(by_block<kSyncthreadsAlone>, 1); });
}
TEST_CASE("one arrival more while a copy is under way: the copy is named") {
  must_be_caught({"by_block",
                  Check::kSynccheck,
                  "bar",
                  {"one arrival more, but all of the phase's 64 have come, and it ends when the cp.async issued at", "has landed"},
                  {"second arrival"}},
                 [] { return sums_are_right(by_block<kArrivesTwice>, 1); });
}
TEST_CASE("somebody else's wait tells a thread nothing") {
  must_be_caught({"by_block", Check::kRacecheck, "row", {}, {"read", "copy"}, {"copy", "read"}},
                 [] { return sums_are_right(by_block<kOnlyOneWaits>, 1); });
}
TEST_CASE("an arrival more than init says") {
  must_be_caught({"by_block", Check::kSynccheck, "bar", {"arrival"}, {"arrival"}, {}, Check::kRacecheck, {"read", "copy"}},
                 [] { return sums_are_right(by_block<kOneArrivalMore>, 1); });
}
TEST_CASE("an arrival less than init says") {
  must_be_caught({"by_block", Check::kSynccheck, "bar", {"deadlock", "1 of 65 arrivals"}, {"arrival"}},
                 [] { return sums_are_right(by_block<kOneArrivalLess>, 1); });
}
TEST_CASE("a barrier that nobody has initialised") {
  must_be_caught({"by_block", Check::kSynccheck, "bar", {"no mbarrier has been initialised"}, {"copy"}},
                 [] { return sums_are_right(by_block<kNotInitialised>, 1); });
}
TEST_CASE("no order between init and the first use") {
  must_be_caught({"by_block", Check::kRacecheck, "bar", {"initialised by"}, {"copy"}, {}, Check::kSynccheck, {"copy"}},
                 [] { return sums_are_right(by_block<kNoBarrierAfterInit>, 1); });
}

// Two tiles in pieces of 16 bytes, which an sm_90 copies by its engine: each barrier tells of its own tile alone.
template <Plant plant>
__global__ void by_engine(const int* in, int* out, int) {
  alignas(16) __shared__ int first[kThreads], second[kThreads];
  __shared__ BlockBarrier bars[2];
  const cg::thread_block block = cg::this_thread_block();
  if (threadIdx.x < 2) init(&bars[threadIdx.x], kThreads);
  block.sync();
  const cuda::aligned_size_t<16> bytes(sizeof first);
  cuda::memcpy_async(block, first, in, bytes, bars[0]);              // <- copy
  cuda::memcpy_async(block, second, in + kThreads, bytes, bars[1]);  // <- second copy
  BlockBarrier::arrival_token tokens[2] = {bars[0].arrive(), bars[1].arrive()};
  bars[1].wait(std::move(tokens[1]));
  if (plant == kWaitsForGroups) {
    __pipeline_commit();
    __pipeline_wait_prior(0);
    block.sync();
  } else if (plant == kLooksOnce) {
    (void)bars[0].try_wait_for(std::move(tokens[0]), cuda::std::chrono::nanoseconds(1));
  } else if (plant != kOtherBarrier) {
    bars[0].wait(std::move(tokens[0]));
  }
  const int there = kThreads - 1 - static_cast<int>(threadIdx.x);
  out[threadIdx.x] = first[there] + second[there];  // <- read
}
TEST_CASE("copies in pieces of 16 bytes end with the phase of their barrier, and with nothing else") {
  must_be_right([] { return sums_are_right(by_engine<kNone>, 2); });
  const Bug bug{"by_engine", Check::kRacecheck, "first", {"before its cp.async was waited for"}, {"read"}, {"copy"}};
  must_be_caught(bug, [] { return sums_are_right(by_engine<kOtherBarrier>, 2); });
  must_be_caught(bug, [] { return sums_are_right(by_engine<kWaitsForGroups>, 2); });
  must_be_caught({"by_engine", Check::kRacecheck, "first", {"copy"}, {"read"}, {"copy"}},
                 [] { return sums_are_right(by_engine<kLooksOnce>, 2); });
}

// Each thread copies its own number, twice a phase, and looks at it before others do.
template <Plant plant>
__global__ void by_thread(const int* in, int* out, int tiles) {
  __shared__ int row[2][kThreads];
  __shared__ BlockBarrier bars[2];
  const int t = static_cast<int>(threadIdx.x);
  if (t < 2) init(&bars[t], kThreads);
  __syncthreads();
  BlockBarrier::arrival_token tokens[2];
  const auto copy = [&](int tile) {
    if (tile < tiles) cuda::memcpy_async(&row[tile % 2][t], in + tile * kThreads + t, sizeof(int), bars[tile % 2]);  // <- copy
    tokens[tile % 2] = bars[tile % 2].arrive();
  };
  copy(0);
  int sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    copy(tile + 1);
    if (plant == kSourceCleared && tile == 0 && t == 3) const_cast<int*>(in)[3] = 0;  // <- clears
    if (plant == kWaitsForTheLastPhase)
      bars[tile % 2].wait_parity(tile / 2 % 2 == 0);
    else
      bars[tile % 2].wait(std::move(tokens[tile % 2]));
    if (row[tile % 2][t] < 5) sum = -1000;   // <- own
    sum += row[tile % 2][kThreads - 1 - t];  // <- read
    __syncthreads();
  }
  bars[tiles % 2].wait(std::move(tokens[tiles % 2]));
  out[t] = sum;
}

TEST_CASE("each thread copies its number, a tile ahead") {
  must_be_right([] { return sums_are_right(by_thread<kNone>, 1) && sums_are_right(by_thread<kNone>, 6); });
}
TEST_CASE("a wait for the phase before is none") {
  must_be_caught({"by_thread", Check::kRacecheck, "row", {"before its cp.async was waited for"}, {"own", "read"}, {"copy"}},
                 [] { return sums_are_right(by_thread<kWaitsForTheLastPhase>, 1); });
}
TEST_CASE("the source is written while its copy is under way") {
  must_be_caught({"by_thread", Check::kRacecheck, "in", {"copy"}, {"copy", "clears"}, {"clears", "copy"}},
                 [] { return sums_are_right(by_thread<kSourceCleared>, 1); });
}

// One thread waits, and tells the others by a flag.
template <Plant plant>
__global__ void by_flag(const int* in, int* out, int) {
  __shared__ int row[kThreads], flag;
  __shared__ BlockBarrier bar;
  const int t = static_cast<int>(threadIdx.x);
  if (t == 0) init(&bar, 1), flag = 0;
  __syncthreads();
  if (t == 0) {
    cuda::memcpy_async(row, in, cuda::aligned_size_t<16>(sizeof row), bar);  // <- copy
    bar.arrive_and_wait();
    if (plant != kNoFence) __threadfence_block();
    atomicExch(&flag, 1);
  }
  while (atomicAdd(&flag, 0) == 0) {
  }
  if (plant != kNoFence) __threadfence_block();
  out[t] = row[kThreads - 1 - t];  // <- read
}
TEST_CASE("who learns of a copy from somebody who has waited") {
  must_be_right([] { return sums_are_right(by_flag<kNone>, 1); });
  must_be_caught({"by_flag",
                  Check::kRacecheck,
                  "row",
                  {"written by a copy in the background", "waited for the copy's barrier"},
                  {"read"},
                  {"copy"}},
                 [] { return sums_are_right(by_flag<kNoFence>, 1); });
}

// ... and what else barriers can do.
__global__ void other_uses(const int* in, int* out, int) {
  __shared__ int numbers[kThreads];
  __shared__ BlockBarrier bar;
  __shared__ cuda::barrier<cuda::thread_scope_device> wide;
  const int t = static_cast<int>(threadIdx.x);
  for (int round = 0; round < 2; ++round) {  // anew, where nobody uses the old one
    if (t == 0) init(&bar, 2 * kThreads), new (&wide) cuda::barrier<cuda::thread_scope_device>(kThreads);
    __syncthreads();
    numbers[t] = in[t] + round;
    const auto token = bar.arrive(2);
    for (auto again = token; !bar.try_wait_for(std::move(again), cuda::std::chrono::nanoseconds(100));) again = token;
    if (numbers[kThreads - 1 - t] != in[kThreads - 1 - t] + round) out[t] = -1;
    wide.arrive_and_wait();
    __syncthreads();
  }
  cuda::memcpy_async(&numbers[t], in + t, cuda::aligned_size_t<4>(4), wide);
  wide.arrive_and_wait();
  out[t] = numbers[kThreads - 1 - t];
  if (t == 0) bar.~BlockBarrier();
  __syncthreads();
  if (t == 0) init(&bar, kThreads);
  __syncthreads();
  if (t % 2) {  // these leave
    bar.arrive_and_drop();
    return;
  }
  for (int i = 0; i < 3; ++i) bar.arrive_and_wait();
}
TEST_CASE("barriers: counts, looks, other scopes, another life, threads that drop out") {
  must_be_right([] { return sums_are_right(other_uses, 1); });
}

template <Plant plant>
__global__ void misused(const int*, int* out, int) {
  __shared__ BlockBarrier bar;
  if (threadIdx.x == 0) init(&bar, kThreads);
  __syncthreads();
  if (threadIdx.x == 0 && plant == kOverwritten) *reinterpret_cast<int*>(&bar) = 0;  // <- overwrites
  __syncthreads();
  bar.arrive_and_wait();  // <- arrival
  out[threadIdx.x] = 0;
}
TEST_CASE("a barrier whose memory somebody overwrites") {
  must_be_caught({"misused", Check::kSynccheck, "bar", {"overwritten"}, {"arrival"}, {"overwrites"}},
                 [] { return sums_are_right(misused<kOverwritten>, 1); });
}

// -------------------------------------------------------------------------------------------------------------- pipelines
constexpr int kStages = 3;

// All threads of the block copy and use: as in CUDA's programming guide.
template <Plant plant>
__global__ void ring(const int* in, int* out, int tiles) {
  __shared__ int stages[kStages][kThreads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  const cg::thread_block block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int sum = 0, copied = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    for (; copied < tiles && copied < tile + kStages - (plant == kNoRelease ? 0 : 1); ++copied) {
      if (plant != kNoAcquire) pipe.producer_acquire();                                                           // <- acquire
      cuda::memcpy_async(block, stages[copied % kStages], in + copied * kThreads, sizeof(int) * kThreads, pipe);  // <- copy
      if (plant != kNoCommit) pipe.producer_commit();
    }
    if (plant != kNoWait) pipe.consumer_wait();                         // <- wait
    sum += stages[tile % kStages][kThreads - 1 - block.thread_rank()];  // <- read
    if (plant != kNoRelease) pipe.consumer_release();
  }
  out[block.thread_rank()] = sum;
}
TEST_CASE("a ring of a whole block") {
  must_be_right([] { return sums_are_right(ring<kNone>, 1) && sums_are_right(ring<kNone>, 2) && sums_are_right(ring<kNone>, 9); });
}
TEST_CASE("a ring: nobody waits for its copies") {
  must_be_caught({"ring", Check::kRacecheck, "stages", {}, {"read", "copy"}, {"copy", "read"}},
                 [] { return sums_are_right(ring<kNoWait>, 2); });
}
TEST_CASE("a ring: nobody says that a stage is free") {
  must_be_caught({"ring", Check::kSynccheck, "state", {"deadlock", "64 of 64 arrivals"}, {"acquire"}},
                 [] { return sums_are_right(ring<kNoRelease>, 5); });
}
TEST_CASE("a ring: nobody asks whether a stage is free") {
  must_be_caught({"ring", Check::kRacecheck, "stages", {}, {"copy", "read"}, {"read", "copy"}},
                 [] { return sums_are_right(ring<kNoAcquire>, 9); });
}
TEST_CASE("a ring: copies that belong to no stage") {
  must_be_caught({"ring", Check::kSynccheck, "state", {"deadlock"}, {"wait"}}, [] { return sums_are_right(ring<kNoCommit>, 1); });
}

// A warp copies, the other one uses what it gets for both.
template <bool by_role>
__global__ void halves(const int* in, int* out, int tiles) {
  __shared__ int stages[2][kThreads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  const cg::thread_block block = cg::this_thread_block();
  const bool produces = block.thread_rank() < 32;
  auto pipe = [&] {
    if constexpr (by_role)
      return cuda::make_pipeline(block, &state, produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
    else
      return cuda::make_pipeline(block, &state, 32);
  }();
  const auto warp = cg::tiled_partition<32>(block);
  const int lane = static_cast<int>(warp.thread_rank());
  int sums[2] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    if (produces) {
      pipe.producer_acquire();
      cuda::memcpy_async(warp, stages[tile % 2], in + tile * kThreads, cuda::aligned_size_t<16>(sizeof stages[0]), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      for (int i = 0; i < 2; ++i) sums[i] += stages[tile % 2][kThreads - 1 - lane - 32 * i];
      pipe.consumer_release();
    }
  }
  if (!produces)
    for (int i = 0; i < 2; ++i) out[lane + 32 * i] = sums[i];
}
TEST_CASE("a warp copies for the other one") {
  must_be_right([] { return sums_are_right(halves<false>, 1) && sums_are_right(halves<false>, 7); });
  must_be_right([] { return sums_are_right(halves<true>, 1) && sums_are_right(halves<true>, 7); });
}

// A pipeline of one thread: its own numbers, and those of others behind a barrier.
template <Plant plant>
__global__ void alone(const int* in, int* out, int tiles) {
  __shared__ int stages[2][kThreads];
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  const int t = static_cast<int>(threadIdx.x);
  const auto copy = [&](int tile) {
    pipe.producer_acquire();
    if (tile < tiles) cuda::memcpy_async(&stages[tile % 2][t], in + tile * kThreads + t, sizeof(int), pipe);  // <- copy
    if (plant != kNoCommit) pipe.producer_commit();
  };
  copy(0);
  int sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    copy(tile + 1);
    if (plant == kReadsBeforeWait && stages[tile % 2][t] < 5) sum = 1;  // <- early
    if (plant == kOneGroupLate)
      cuda::pipeline_consumer_wait_prior<2>(pipe);
    else if (plant != kNoWait)
      pipe.consumer_wait();
    __syncthreads();
    sum += stages[tile % 2][kThreads - 1 - t];  // <- read
    __syncthreads();
    pipe.consumer_release();
  }
  out[t] = sum;
}
TEST_CASE("a pipeline of one thread") {
  must_be_right([] { return sums_are_right(alone<kNone>, 1) && sums_are_right(alone<kNone>, 6); });
}
TEST_CASE("a pipeline of one thread: no wait, one for older groups, one that comes late, nothing committed") {
  const Bug bug{"alone", Check::kRacecheck, "stages", {"before its cp.async was waited for"}, {"read"}, {"copy"}};
  must_be_caught(bug, [] { return sums_are_right(alone<kNoWait>, 1); });
  must_be_caught(bug, [] { return sums_are_right(alone<kOneGroupLate>, 1); });
  must_be_caught(bug, [] { return sums_are_right(alone<kNoCommit>, 1); });
  must_be_caught({"alone", Check::kRacecheck, "stages", {"this thread issued"}, {"early"}, {"copy"}},
                 [] { return sums_are_right(alone<kReadsBeforeWait>, 1); });
}

}  // namespace

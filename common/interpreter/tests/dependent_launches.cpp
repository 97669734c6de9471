/// @file
/// Launches that may begin before those before them have ended: kernels that touch too early what those use, with one planted bug
/// each, and the diagnosis that they must get in every order. The same without the bug, and others that may do what they do, are
/// silent.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/device/bulk_copy.cuh"
#include "common/device/cluster.cuh"
#include "common/device/dependent_launch.cuh"
#include "common/device/ptx.cuh"
#include "common/interpreter/cuda_runtime/program.h"
#include "common/interpreter/tests/labelled.h"

// Words of the language in kernels, members of a struct here.
#undef gridDim
#undef blockDim

using device::Buffer;
using device::launch;
using device::launch_dependent;
using device::Mbarrier;
using device::TensorMap;
using interpreter::Check;
using labelled::Bug;
using labelled::must_be_right;

namespace {

constexpr int kThreads = 64, kBlocks = 2, kCount = kThreads * kBlocks;

enum Plant {
  kNone,
  // consume
  kLoad,
  kStoreToRead,
  kUpdateOfRead,
  kUpdateAfterBarrier,
  kStoreToWritten,
  kStoreOfBytes,
  kAtomic,
  kCopy,
  kVolatileLoad,
  kNobodyWaits,
  kOneWarpWaits,
  kSomeLanesWait,
  kSomeLanesMeet,
  kBarrierBeforeWait,
  // bulk
  kTensorLoad,
  kTensorStore,
  kBulkLoad,
  kBulkStore,
  kOtherThreadIssues,
  kNoArrivalAfterWait,
  // clusters
  kBlockBarrierAlone,
};

__device__ int global_index() { return static_cast<int>(blockIdx.x * kThreads + threadIdx.x); }

// The launch before: it reads `source` and writes `data`.
__global__ void produce(const int* source, int* data) {
  data[global_index()] = source[global_index()] + 1;  // <- produce
  device::griddepcontrol_launch_dependents();
}

__global__ void add_atomically(int* data) {
  atomicAdd(&data[global_index()], 1);  // <- add
}

// Uses both. Everything before the wait is wrong, but for the weights, which no launch writes.
template <Plant plant>
__global__ void consume(const int* weights, int* source, int* data, int* out) {
  alignas(16) __shared__ int weight[kThreads];
  __shared__ int copied[kThreads];
  const int t = static_cast<int>(threadIdx.x), i = global_index();
  weight[t] = weights[t];
  device::griddepcontrol_launch_dependents();
  if (plant == kLoad) out[i] = data[i];                                            // <- load
  if (plant == kVolatileLoad) out[i] = static_cast<const volatile int*>(data)[i];  // <- volatile load
  if (plant == kStoreToRead) source[i] = 7;                                        // <- store to read
  if (plant == kUpdateOfRead) source[i] += 1;                                      // <- update
  if (plant == kStoreToWritten) data[i] = 7;                                       // <- store to written
  if (plant == kStoreOfBytes) reinterpret_cast<char*>(data)[4 * i + 2] = 7;        // <- store of bytes
  if (plant == kAtomic) atomicAdd(&data[i], 1);                                    // <- atomic
  if (plant == kCopy) {
    device::cp_async_ca_4(&copied[t], &data[i]);  // <- copy
    device::cp_async_wait_all();
  }
  if (plant == kUpdateAfterBarrier) {
    copied[t] = source[kThreads * blockIdx.x + (t + 32) % kThreads];
    __syncthreads();
    source[i] = copied[t];  // <- update after barrier
  }
  if (plant == kBarrierBeforeWait) __syncthreads();
  if (plant == kOneWarpWaits) {
    if (t < 32) device::griddepcontrol_wait();
  } else if (plant == kSomeLanesWait) {
    if (i % 2 == 0) device::griddepcontrol_wait();
  } else if (plant == kSomeLanesMeet) {
    if (t % 32 == 0) device::griddepcontrol_wait();
    if (t % 32 < 16) __syncwarp(0xffff);
  } else if (plant == kBarrierBeforeWait) {
    if (t == 0) device::griddepcontrol_wait();
  } else if (plant != kNobodyWaits) {
    device::griddepcontrol_wait();
  }
  out[i] = data[i] * weight[t];  // <- after the wait
  source[i] = 5;
}

struct Memory {
  Buffer<int> weights{std::vector<int>(kThreads, 3), "weights"}, source{std::vector<int>(kCount, 1), "source"};
  Buffer<int> data{std::vector<int>(kCount, 0), "data"}, out{kCount, "out"};

  void run_produce() const { launch(produce, kBlocks, kThreads, 0, source.data(), data.data()); }
  void run_consume(void (*kernel)(const int*, int*, int*, int*)) const {
    launch_dependent(kernel, kBlocks, kThreads, 0, weights.data(), source.data(), data.data(), out.data());
  }
  bool out_is(int value) const { return out.download() == std::vector<int>(kCount, value); }
};

// "dependent_launches.cpp:76"
std::string line_of(const std::string& function, const std::string& label) {
  return "dependent_launches.cpp:" + std::to_string(labelled::labelled_line(function, label, __FILE__));
}

Bug bug(const std::string& kernel, const std::string& variable, const std::string& at, const std::vector<std::string>& says) {
  return {.kernel = kernel, .check = Check::kRacecheck, .variable = variable, .says = says, .at = {at}};
}
void must_be_caught(const Bug& bug, const std::function<void()>& start) {
  labelled::must_be_caught(
      bug,
      [&] {
        start();
        return true;
      },
      __FILE__);
}

// ----------------------------------------------------------------------------------------------------- planted in consume
template <Plant plant>
void must_be_caught_in_consume(const std::string& variable, const std::string& at, const std::string& before,
                               const std::string& now) {
  const std::vector<std::string> says = {before + " by thread (",       "produce, the launch before, at ",
                                         line_of("produce", "produce"), "then " + now,
                                         "before griddepcontrol.wait",  "cudaGridDependencySynchronize()"};
  must_be_caught(bug("consume", variable, at, says), [] {
    const Memory m;
    m.run_produce();
    m.run_consume(consume<plant>);
  });
}

TEST_CASE("dependent launch: a load, a store, an update, an atomic, a copy before the wait") {
  must_be_caught_in_consume<kLoad>("data", "load", "written", "read by this thread");
  must_be_caught_in_consume<kVolatileLoad>("data", "volatile load", "written", "read by this thread");
  must_be_caught_in_consume<kStoreToRead>("source", "store to read", "read", "written by this thread");
  must_be_caught_in_consume<kUpdateOfRead>("source", "update", "read", "written by this thread");
  must_be_caught_in_consume<kUpdateAfterBarrier>("source", "update after barrier", "read", "written by this thread");
  must_be_caught_in_consume<kStoreToWritten>("data", "store to written", "written", "written by this thread");
  must_be_caught_in_consume<kStoreOfBytes>("data", "store of bytes", "written", "written by this thread");
  must_be_caught_in_consume<kAtomic>("data", "atomic", "written", "accessed atomically by this thread");
  must_be_caught_in_consume<kCopy>("data", "copy", "written", "read by the cp.async that this thread issues");
}

TEST_CASE("dependent launch: some wait, and the others do not learn of it") {
  must_be_caught_in_consume<kNobodyWaits>("data", "after the wait", "written", "read by this thread");
  must_be_caught_in_consume<kOneWarpWaits>("data", "after the wait", "written", "read by this thread");
  must_be_caught_in_consume<kSomeLanesWait>("data", "after the wait", "written", "read by this thread");
  must_be_caught_in_consume<kSomeLanesMeet>("data", "after the wait", "written", "read by this thread");
  must_be_caught_in_consume<kBarrierBeforeWait>("data", "after the wait", "written", "read by this thread");
}

TEST_CASE("dependent launch: an atomic after an atomic, before the wait") {
  const std::vector<std::string> says = {"accessed atomically by thread (", "add_atomically, the launch before",
                                         "then accessed atomically by this thread, before"};
  must_be_caught(bug("add_atomically", "data", "add", says), [] {
    const Memory m;
    launch(add_atomically, kBlocks, kThreads, 0, m.data.data());
    launch_dependent(add_atomically, kBlocks, kThreads, 0, m.data.data());
  });
}

TEST_CASE("dependent launch: all wait") {
  must_be_right([] {
    const Memory m;
    m.run_produce();
    m.run_consume(consume<kNone>);
    return m.out_is(6);
  });
}

TEST_CASE("dependent launch: nothing before it can still run") {
  const auto consumes = [](const Memory& m) {
    m.run_consume(consume<kNobodyWaits>);
    return m.out_is(6);
  };
  SUBCASE("the program's first, or the first after a download") {
    must_be_right([&] {
      const Memory m;
      m.data.download();
      m.run_consume(consume<kLoad>);
      return m.out_is(0);
    });
  }
  SUBCASE("a copy to the host") {
    must_be_right([&] {
      const Memory m;
      m.run_produce();
      m.data.download();
      return consumes(m);
    });
  }
  SUBCASE("a copy from the host") {
    must_be_right([&] {
      Memory m;
      m.run_produce();
      const int three[] = {3};
      m.weights.upload(three, 1);
      return consumes(m);
    });
  }
  SUBCASE("a fill") {
    must_be_right([&] {
      Memory m;
      m.run_produce();
      m.out.fill(0);
      return consumes(m);
    });
  }
  SUBCASE("synchronize()") {
    must_be_right([&] {
      const Memory m;
      m.run_produce();
      device::synchronize();
      return consumes(m);
    });
  }
  SUBCASE("an ordinary launch, of which it touches nothing") {
    must_be_right([&] {
      const Memory m, others;
      m.run_produce();
      others.run_produce();
      return consumes(m);
    });
  }
  SUBCASE("an ordinary launch is no dependent one") {
    must_be_right([&] {
      const Memory m;
      m.run_produce();
      launch(consume<kLoad>, kBlocks, kThreads, 0, m.weights.data(), m.source.data(), m.data.data(), m.out.data());
      return m.out_is(6);
    });
  }
  SUBCASE("other buffers") {
    must_be_right([&] {
      const Memory m, others;
      m.run_produce();
      device::synchronize();
      others.run_produce();
      return consumes(m);
    });
  }
  SUBCASE("racecheck is off") {
    const WithOptions off([](interpreter::Options& o) { o.racecheck = false; });
    must_be_right([&] {
      const Memory m;
      m.run_produce();
      return consumes(m);
    });
  }
}

// ------------------------------------------------------------------------------------------------ one waits, others learn
enum Way { kSyncthreads, kSyncwarp, kNamedBarrier, kMbarrier, kFlag };

template <Way way>
__global__ void learn(const int* weights, const int* data, int* out) {
  __shared__ int weight[kThreads];
  __shared__ Mbarrier ready;
  __shared__ int flag;
  const int t = static_cast<int>(threadIdx.x), i = global_index();
  if (t == 0) {
    device::mbarrier_init(&ready, 1);
    flag = 0;
  }
  weight[t] = weights[t];  // a prologue in shared memory
  __syncthreads();
  const bool waits = way == kSyncwarp ? t % 32 == 5 : t == 0;
  if (waits) device::griddepcontrol_wait();
  if (way == kSyncthreads) __syncthreads();
  if (way == kSyncwarp) __syncwarp();
  if (way == kNamedBarrier) device::barrier_sync(1, kThreads);
  if (way == kMbarrier) {
    if (waits) device::mbarrier_arrive(&ready);
    device::mbarrier_wait_parity(&ready, 0);
  }
  if (way == kFlag) {
    if (waits) {
      __threadfence_block();
      atomicExch(&flag, 1);
    } else {
      while (atomicAdd(&flag, 0) == 0) {
      }
    }
    __threadfence_block();
  }
  out[i] = data[i] * weight[t];
  if (i % 2) device::griddepcontrol_launch_dependents();
}

template <Way way>
void must_learn() {
  must_be_right([] {
    const Memory m;
    m.run_produce();
    launch_dependent(learn<way>, kBlocks, kThreads, 0, m.weights.data(), m.data.data(), m.out.data());
    return m.out_is(6);
  });
}

TEST_CASE("dependent launch: one waits, and the others learn of it") {
  must_learn<kSyncthreads>();
  must_learn<kSyncwarp>();
  must_learn<kNamedBarrier>();
  must_learn<kMbarrier>();
  must_learn<kFlag>();
}

// ---------------------------------------------------------------------------------------------------------- bulk copies
// Thread 32 waits, loads the block's part of `data` and then tells the others by the mbarrier where the copy completes; the result
// is stored by thread 0, who has learnt of the wait there.
template <Plant plant>
__global__ void bulk(const __grid_constant__ TensorMap map, int* data, int* out) {
  alignas(128) __shared__ int tile[kThreads];
  alignas(128) __shared__ int zeros[kThreads];
  __shared__ Mbarrier full;
  const int t = static_cast<int>(threadIdx.x);
  const int first = static_cast<int>(blockIdx.x) * kThreads;
  if (t == 32) {
    device::mbarrier_init(&full, 1);
    device::fence_mbarrier_init();
  }
  zeros[t] = 0;
  device::fence_proxy_async();
  __syncthreads();
  if (plant == kTensorStore && t == 0) {
    device::cp_async_bulk_tensor_2d_store(&map, 0, first / 32, zeros);  // <- tensor store
    device::cp_async_bulk_commit_group();
    device::cp_async_bulk_wait_group<0>();
  }
  if (plant == kBulkStore && t == 0) {
    device::cp_async_bulk_store(data + first, zeros, sizeof zeros);  // <- bulk store
    device::cp_async_bulk_commit_group();
    device::cp_async_bulk_wait_group<0>();
  }
  if (plant == kOtherThreadIssues && t == 0) device::griddepcontrol_wait();
  if (t == 32) {
    if (plant != kTensorLoad && plant != kBulkLoad && plant != kOtherThreadIssues) device::griddepcontrol_wait();
    device::mbarrier_arrive_expect_tx(&full, sizeof tile);
    if (plant == kBulkLoad)
      device::cp_async_bulk(tile, data + first, sizeof tile, &full);  // <- bulk load
    else
      device::cp_async_bulk_tensor_2d(tile, &map, 0, first / 32, &full);  // <- tensor load
  }
  if (plant == kNoArrivalAfterWait && t == 1) out[first] = data[first];  // <- load by another
  device::mbarrier_wait_parity(&full, 0);
  if (t == 0) data[first] = 3;  // nobody else touches it: the copy has read it
  out[first + t] = tile[t] * 3;
}

template <Plant plant>
void run_bulk(const Memory& m) {
  const TensorMap map = device::make_tensor_map<int>(
      {.data = m.data.data(), .rows = kCount / 32, .columns = 32, .row_stride = 32, .box_rows = kThreads / 32, .box_columns = 32});
  m.run_produce();
  launch_dependent(bulk<plant>, kBlocks, kThreads, 0, map, m.data.data(), m.out.data());
}

template <Plant plant>
void must_be_caught_in_bulk(const std::string& at, const std::string& now) {
  const std::vector<std::string> says = {"written by thread (", "produce, the launch before, at ", line_of("produce", "produce"),
                                         "then " + now};
  must_be_caught(bug("bulk", "data", at, says), [] { run_bulk<plant>(Memory()); });
}

TEST_CASE("dependent launch: bulk copies before the wait") {
  must_be_caught_in_bulk<kTensorLoad>("tensor load", "read by the cp.async.bulk.tensor that this thread issues");
  must_be_caught_in_bulk<kBulkLoad>("bulk load", "read by the cp.async.bulk that this thread issues");
  must_be_caught_in_bulk<kTensorStore>("tensor store", "written by the cp.async.bulk.tensor that this thread issues");
  must_be_caught_in_bulk<kBulkStore>("bulk store", "written by the cp.async.bulk that this thread issues");
  must_be_caught_in_bulk<kOtherThreadIssues>("tensor load", "read by the cp.async.bulk.tensor that this thread issues");
  must_be_caught_in_bulk<kNoArrivalAfterWait>("load by another", "read by this thread");
}

TEST_CASE("dependent launch: who copies waits, and the others learn of it where the copy completes") {
  must_be_right([] {
    const Memory m;
    run_bulk<kNone>(m);
    return m.out_is(6);
  });
}

// What a bulk store of the launch before has written.
__global__ void store_in_bulk(int* data) {
  alignas(128) __shared__ int tile[kThreads];
  tile[threadIdx.x] = 2;
  device::fence_proxy_async();
  __syncthreads();
  if (threadIdx.x != 0) return;
  device::cp_async_bulk_store(data + blockIdx.x * kThreads, tile, sizeof tile);  // <- store
  device::cp_async_bulk_commit_group();
  device::cp_async_bulk_wait_group_read<0>();
}

TEST_CASE("dependent launch: what the launch before has stored in bulk") {
  const auto starts = [](const Memory& m, void (*kernel)(const int*, int*, int*, int*)) {
    launch(store_in_bulk, kBlocks, kThreads, 0, m.data.data());
    m.run_consume(kernel);
    return m.out_is(6);
  };
  must_be_right([&] { return starts(Memory(), consume<kNone>); });
  must_be_caught(bug("consume", "data", "load", {"store_in_bulk, the launch before, at ", line_of("store_in_bulk", "store")}),
                 [&] { starts(Memory(), consume<kLoad>); });
}

// ------------------------------------------------------------------------------------------------------------- clusters
// One block of the cluster waits for both.
template <Plant plant>
__global__ void in_clusters(const int* data, int* out) {
  if (device::cluster_ctarank() == 1 && threadIdx.x == 3) device::griddepcontrol_wait();
  if (plant == kBlockBarrierAlone) {
    __syncthreads();
  } else {
    device::barrier_cluster_arrive();
    device::barrier_cluster_wait();
  }
  out[global_index()] = data[global_index()];  // <- load
}

TEST_CASE("dependent launch: a block of a cluster waits for the others") {
  const auto starts = [](const Memory& m, void (*kernel)(const int*, int*)) {
    m.run_produce();
    const auto invoke = [kernel, data = m.data.data(), out = m.out.data()] { kernel(data, out); };
    using Invoke = decltype(invoke);
    interpreter::Launch in_pairs{reinterpret_cast<const void*>(kernel),
                                 kBlocks,
                                 kThreads,
                                 0,
                                 [](const void* p) { (*static_cast<const Invoke*>(p))(); },
                                 &invoke,
                                 sizeof invoke};
    in_pairs.cluster = {2, 1, 1}, in_pairs.dependent = true;
    interpreter::run(in_pairs);
    return m.out_is(2);
  };
  must_be_right([&] { return starts(Memory(), in_clusters<kNone>); });
  must_be_caught(bug("in_clusters", "data", "load", {"produce, the launch before"}),
                 [&] { starts(Memory(), in_clusters<kBlockBarrierAlone>); });
}

// --------------------------------------------------------------------------------------------------------------- chains
enum Waits { kAllWait, kOneWaits, kNoneWaits };

template <Waits waits>
__global__ void copy(const int* from, int* to) {
  if (waits == kAllWait || (waits == kOneWaits && global_index() == 0)) device::griddepcontrol_wait();
  if (waits == kOneWaits) __syncthreads();
  if (waits == kOneWaits && blockIdx.x > 0) return;
  to[global_index()] = from[global_index()];  // <- copy
}
template <Waits waits>
__global__ void last(const int* from, int* to) {
  if (waits == kAllWait) device::griddepcontrol_wait();
  to[global_index()] = from[global_index()];  // <- copy
}

TEST_CASE("dependent launch: chains of three") {
  const auto start = [](const Memory& m, void (*second)(const int*, int*), const Buffer<int>& read_by_second,
                        void (*third)(const int*, int*)) {
    const Buffer<int> between(kCount, "between");
    m.run_produce();
    launch_dependent(second, kBlocks, kThreads, 0, read_by_second.data(), between.data());
    launch_dependent(third, kBlocks, kThreads, 0, m.data.data(), m.out.data());
    return m.out_is(2);
  };
  SUBCASE("both wait, all of it or one thread") {
    must_be_right([&] {
      const Memory m;
      return start(m, copy<kAllWait>, m.data, last<kAllWait>);
    });
    must_be_right([&] {
      const Memory m;
      return start(m, copy<kOneWaits>, m.data, last<kAllWait>);
    });
  }
  SUBCASE("the last does not wait, and reads what the first wrote") {
    must_be_caught(
        bug("last", "data", "copy", {"produce, 2 launches before, at ", line_of("produce", "produce"), "before griddep"}), [&] {
          const Memory m;
          start(m, copy<kAllWait>, m.data, last<kNoneWaits>);
        });
  }
  SUBCASE("the second does not wait, so the last one's wait is not for the first") {
    const std::vector<std::string> says = {"produce, 2 launches before, at ", line_of("produce", "produce"), "did not wait itself",
                                           "copy<", "griddepcontrol.wait in"};
    must_be_caught(bug("last", "data", "copy", says), [&] {
      const Memory m, others;
      start(m, copy<kNoneWaits>, others.source, last<kAllWait>);
    });
  }
}

TEST_CASE("dependent launch: a launch does not wait, and what the next one uses is its own") {
  must_be_right([] {
    const Memory m;
    const Buffer<int> other(kCount, "other");
    m.run_produce();
    launch_dependent(copy<kNoneWaits>, kBlocks, kThreads, 0, m.source.data(), other.data());
    launch_dependent(last<kAllWait>, kBlocks, kThreads, 0, other.data(), m.out.data());
    return m.out_is(1);
  });
}

TEST_CASE("dependent launch: a chain of many, and numbers of launches that come again") {
  constexpr int kLaunches = 9000;
  const WithOptions quick([](interpreter::Options& o) { o.count = false; });
  const Buffer<int> a(std::vector<int>(32, 1), "a"), b(32, "b");
  launch(copy<kNoneWaits>, 1, 32, 0, a.data(), b.data());
  for (int i = 0; i < kLaunches; ++i)
    launch_dependent(copy<kAllWait>, 1, 32, 0, i % 2 ? a.data() : b.data(), i % 2 ? b.data() : a.data());
  // So many launches later, the number of the one that wrote here is that of one in a chain again.
  const Buffer<int> old(32, "old"), other(32, "other"), outs[3] = {Buffer<int>(32), Buffer<int>(32), Buffer<int>(32)};
  launch(copy<kNoneWaits>, 1, 32, 0, a.data(), old.data());
  for (int i = 0; i < 0x1fff - 1; ++i) launch(last<kNoneWaits>, 1, 32, 0, a.data(), other.data());
  for (const Buffer<int>& out : outs) launch_dependent(last<kNoneWaits>, 1, 32, 0, old.data(), out.data());
  CHECK(b.download() == std::vector<int>(32, 1));
}

// ---------------------------------------------------------------------------------------------------- the CUDA runtime
template <bool waits>
__global__ void consume_of_runtime(const int* data, int* out) {
  if (waits) cudaGridDependencySynchronize();
  out[global_index()] = data[global_index()];
  cudaTriggerProgrammaticLaunchCompletion();
}

cudaError_t launch_by_runtime(void (*kernel)(const int*, int*), const int* data, int* out, cudaStream_t stream) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = kBlocks, config.blockDim = kThreads, config.stream = stream;
  config.attrs = &attribute, config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, data, out);
}

// produce(), whatever the caller does then, and the dependent launch.
template <bool waits>
bool run_by_runtime(
    const std::function<void()>& between = [] {}, cudaStream_t first = nullptr, cudaStream_t second = nullptr) {
  const Memory m;
  const int *source = m.source.data(), *read = m.data.data();
  int* written = m.data.data();
  void* arguments[] = {&source, &written};
  CHECK(cudaLaunchKernel(produce, kBlocks, kThreads, arguments, 0, first) == cudaSuccess);
  between();
  CHECK(launch_by_runtime(consume_of_runtime<waits>, read, m.out.data(), second) == cudaSuccess);
  return m.out_is(2);
}

TEST_CASE("dependent launch: the CUDA runtime's names") {
  must_be_right([] { return run_by_runtime<true>(); });
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  must_be_right([&] { return run_by_runtime<true>([] {}, stream, stream); });
  SUBCASE("another stream: nothing is known") {
    must_be_right([&] { return run_by_runtime<false>([] {}, nullptr, stream); });
  }
  SUBCASE("waits of the host") {
    cudaEvent_t event = nullptr;
    REQUIRE(cudaEventCreate(&event) == cudaSuccess);
    must_be_right([&] { return run_by_runtime<false>([&] { cudaStreamSynchronize(stream); }, stream, stream); });
    must_be_right([&] { return run_by_runtime<false>([] { cudaDeviceSynchronize(); }); });
    must_be_right([&] { return run_by_runtime<false>([&] { cudaEventRecord(event, nullptr); }); });
    must_be_right([&] { return run_by_runtime<false>([&] { cudaEventSynchronize(event); }); });
    CHECK(cudaEventDestroy(event) == cudaSuccess);
  }
  SUBCASE("copies, fills, and memory that is released") {
    int *p = nullptr, host[4] = {};
    REQUIRE(cudaMalloc(&p, sizeof host) == cudaSuccess);
    must_be_right([&] { return run_by_runtime<false>([&] { cudaMemset(p, 0, sizeof host); }); });
    must_be_right([&] { return run_by_runtime<false>([&] { cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost); }); });
    CHECK(cudaFree(p) == cudaSuccess);
    must_be_right([&] {
      REQUIRE(cudaMalloc(&p, sizeof host) == cudaSuccess);
      return run_by_runtime<false>([&] { cudaFree(p); });
    });
  }
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

// A failed check ends a program of the runtime, so this one is started by the next test.
TEST_CASE("dependent launch: the runtime's bug" * doctest::skip()) { run_by_runtime<false>(); }

TEST_CASE("dependent launch: the CUDA runtime ends the program with the report") {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "'" + program + "' --no-skip --test-case=\"*the runtime's bug\" 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string output;
  for (char part[256]; std::fgets(part, sizeof part, pipe);) output += part;
  const int status = pclose(pipe);
  CAPTURE(output);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  CHECK(output.find("produce, the launch before, at") != std::string::npos);
  CHECK(output.find("cudaGridDependencySynchronize()") != std::string::npos);
}

}  // namespace

/// @file
/// What orders two accesses, who may do without, and what is only noted: where the memory model and code that NVIDIA publishes
/// disagree.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "common/device/device.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/ptx.cuh"
#include "common/device/relaxed.cuh"
#include "common/interpreter/tests/orders.h"
#include "common/interpreter/tests/planted.h"

using device::Buffer;
using device::launch;
using interpreter::Check;

namespace {

template <class T>
Buffer<T> zeros(std::size_t n, const char* name) {
  return Buffer<T>(std::vector<T>(n, T(0)), name);
}
void must_be_caught(const planted::Bug& bug, const std::function<void()>& start) { planted::must_be_caught(bug, start, __FILE__); }
// Whether the last launch was noted for something that `part` belongs to.
bool noted(const std::string& part) {
  const auto& notes = interpreter::profiles().back().notes;
  return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) { return planted::contains(note, part); });
}

// ---------------------------------------------------------------------------------------------------- the first write
__global__ void cleared_by_exchange(const int* in, int* out) {
  __shared__ int largest;
  __shared__ unsigned long long bits;
  if (threadIdx.x == 3) atomicExch(&largest, -1), atomicExch_block(&bits, 0ull);
  __syncthreads();
  atomicMax(&largest, in[threadIdx.x]);
  atomicOr(&bits, 1ull << threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = largest + static_cast<int>(bits >> 63);
}
TEST_CASE("an exchange writes memory that nobody has written") {
  in_all_orders([] {
    const Buffer<int> in(std::vector<int>(64, 6), "in");
    Buffer<int> out(64, "out");
    launch(cleared_by_exchange, 1, 64, 0, in.data(), out.data());
    CHECK(out.download() == std::vector<int>(64, 7));
  });
}

// ------------------------------------------------------------------------------------------------ fences of many lanes
// Every lane fences its own part, the warp meets, and one of them tells the other block.
template <bool kFence>
__global__ void told_by_one_lane(int* parts, unsigned* ready, int* out) {
  const unsigned lane = threadIdx.x;
  if (blockIdx.x == 0) {
    parts[lane] = static_cast<int>(lane);  // BUG without the fence
    if (kFence) __threadfence();
    __syncwarp();
    if (lane == 9) atomicAdd(ready, 1u);
  } else {
    if (lane == 4)
      while (atomicAdd(ready, 0u) == 0) {
      }
    __syncwarp();
    __threadfence();
    out[lane] = parts[31 - lane];  // BUG without the fence
  }
}
TEST_CASE("fences reach through __syncwarp, on both sides") {
  in_all_orders([] {
    Buffer<int> parts(32, "parts"), out(32, "out");
    auto ready = zeros<unsigned>(1, "ready");
    launch(told_by_one_lane<true>, 2, 32, 0, parts.data(), ready.data(), out.data());
    CHECK(out.download()[0] == 31);
  });
  must_be_caught({.kernel = "told_by_one_lane", .check = Check::kRacecheck, .variable = "parts", .says = {"of block (0,0,0)"}}, [] {
    Buffer<int> parts(32, "parts"), out(32, "out");
    auto ready = zeros<unsigned>(1, "ready");
    launch(told_by_one_lane<false>, 2, 32, 0, parts.data(), ready.data(), out.data());
  });
}

// A flag in shared memory: whoever polls it comes to no barrier, so none is what is missing.
__global__ void flag_stored_plainly(int* out) {
  __shared__ int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    flag = 1;  // BUG: a plain store
  } else if (threadIdx.x == 32) {
    while (*static_cast<volatile int*>(&flag) == 0) {  // BUG
    }
    out[0] = 1;
  }
}
__global__ void flag_read_plainly(int* out) {
  __shared__ int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(&flag, 1);  // BUG
  if (threadIdx.x == 32) out[0] = flag;        // BUG: a plain read
}
TEST_CASE("what is said of flags in shared memory: a fence and an atomic") {
  const auto out = zeros<int>(1, "out");
  must_be_caught({.kernel = "flag_stored_plainly",
                  .check = Check::kRacecheck,
                  .variable = "flag",
                  .says = {"a fence and an atomic on both sides where the reader polls"}},
                 [&] { launch(flag_stored_plainly, 1, 64, 0, out.data()); });
  must_be_caught({.kernel = "flag_read_plainly",
                  .check = Check::kRacecheck,
                  .variable = "flag",
                  .says = {"a fence and an atomic on both sides where one of the two polls"}},
                 [&] { launch(flag_read_plainly, 1, 64, 0, out.data()); });
}

// ------------------------------------------------------------------------------------------------ volatile variables
__device__ unsigned meeting_arrived;
__device__ volatile unsigned meeting_round;
__device__ void meet_all_blocks() {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned round = meeting_round;
    __threadfence();
    if (atomicInc(&meeting_arrived, gridDim.x - 1) == gridDim.x - 1) {
      __threadfence();
      meeting_round = round + 1;
    } else {
      while (meeting_round == round) {
      }
    }
    __threadfence();
  }
  __syncthreads();
}
__global__ void rounds_with_meetings(int* values, int rounds) {
  const unsigned n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int r = 0; r < rounds; ++r) {
    const int right = values[(i + 1) % n];
    meet_all_blocks();
    values[i] = right;
    meet_all_blocks();
  }
}
TEST_CASE("a __device__ variable that is volatile") {
  in_all_orders([] {
    std::vector<int> expected(96);
    for (std::size_t i = 0; i < 96; ++i) expected[i] = static_cast<int>(i);
    Buffer<int> values(expected, "values");
    launch(rounds_with_meetings, 3, 32, 0, values.data(), 2);
    std::rotate(expected.begin(), expected.begin() + 2, expected.end());
    CHECK(values.download() == expected);
  });
}

// ---------------------------------------------------------------------------------------------------- relaxed accesses
// Block 0 leaves four words, each its own flag. As a flag for something else it lacks fences.
template <bool kAlsoPlain, bool kFences>
__global__ void leaves_words(float4* places, int* plain, float* out) {
  float4* const place = places + threadIdx.x;
  if (blockIdx.x == 0) {
    if (kAlsoPlain) plain[threadIdx.x] = 7;  // BUG without the fences
    if (kFences) __threadfence();
    device::st_relaxed_gpu(place, {1, 2, 3, static_cast<float>(threadIdx.x + 1)});
  } else {
    float r[4];
    do {
      device::ld_relaxed_gpu(r, place);
    } while (r[0] == 0 || r[1] == 0 || r[2] == 0 || r[3] == 0);
    if (kFences) __threadfence();
    out[threadIdx.x] = r[0] + r[1] + r[2] + r[3] + (kAlsoPlain ? static_cast<float>(plain[threadIdx.x]) : 0);  // BUG
  }
}
template <bool kAlsoPlain, bool kFences>
std::vector<float> words_left() {
  const Buffer<float4> places(std::vector<float4>(32, float4{0, 0, 0, 0}), "places");
  const Buffer<int> plain(std::vector<int>(32, 0), "plain");
  Buffer<float> out(32, "out");
  launch(leaves_words<kAlsoPlain, kFences>, 2, dim3(32), 0, places.data(), plain.data(), out.data());
  return out.download();
}
TEST_CASE("words that are their own flags need no order; flags for others do") {
  in_all_orders([] {
    CHECK(words_left<false, false>()[31] == 1 + 2 + 3 + 32);
    CHECK(words_left<true, true>()[31] == 1 + 2 + 3 + 32 + 7);
  });
  must_be_caught({.kernel = "leaves_words", .check = Check::kRacecheck, .variable = "plain"}, [] { words_left<true, false>(); });
}

// ------------------------------------------------------------------------------------------------- a look before atomicCAS
// As the programming guide makes atomics of other types.
__device__ void multiply(float* address, float factor) {
  int* const word = reinterpret_cast<int*>(address);
  int old = *word, assumed;
  do {
    assumed = old;
    old = atomicCAS(word, assumed, __float_as_int(__int_as_float(assumed) * factor));
  } while (assumed != old);
}
__global__ void multiply_often(float* product, const float* factors, int n) {
  __shared__ float mine;
  if (threadIdx.x == 0) mine = 1;
  __syncthreads();
  for (int i = 0; i < n; ++i) {
    multiply(&mine, factors[i % 2]);
    if (threadIdx.x % 3 == 0) multiply(product, factors[i % 2]);
  }
  __syncthreads();
  if (threadIdx.x == 0) multiply(product, mine);
}
TEST_CASE("a plain look before atomicCAS is noted, however it falls") {
  in_all_orders([] {
    auto product = Buffer<float>(std::vector<float>{1.0f}, "product");
    const Buffer<float> factors(std::vector<float>{2.0f, 0.5f}, "factors");
    launch(multiply_often, 3, 64, 0, product.data(), factors.data(), 150);
    CHECK(product.download()[0] == 1.0f);
    CHECK(noted("atomicCAS"));
  });
}

// A maximum: who finds a larger one asks no atomicCAS, by an instruction that others ask it behind.
__device__ void raise_to(float* address, float value) {
  int* const word = reinterpret_cast<int*>(address);
  int old = *word, assumed;
  do {
    assumed = old;
    if (__int_as_float(assumed) >= value) break;
    old = atomicCAS(word, assumed, __float_as_int(value));
  } while (assumed != old);
}
__global__ void maximum(float* largest, const float* in) {
  __shared__ float mine;
  if (threadIdx.x == 0) mine = 0;
  __syncthreads();
  raise_to(&mine, in[blockIdx.x * blockDim.x + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) raise_to(largest, mine);
}
TEST_CASE("a plain look that finds enough is noted too") {
  in_all_orders([] {
    std::vector<float> host(16 * 64);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i * 37 % 1001);
    auto largest = Buffer<float>(std::vector<float>{0}, "largest");
    const Buffer<float> in(host, "in");
    launch(maximum, 16, 64, 0, largest.data(), in.data());
    CHECK(largest.download()[0] == 1000);
    CHECK(noted("atomicCAS"));
  });
}

// A fence between the look and atomicCAS, for what the exchange publishes.
struct Node {
  int value;
  Node* next;
};
__global__ void push(Node* nodes, Node** head, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  nodes[i].value = i;
  Node *old = *head, *assumed;
  do {
    assumed = old;
    nodes[i].next = assumed;
    __threadfence();
    const unsigned long long found =
        atomicCAS(reinterpret_cast<unsigned long long*>(head), reinterpret_cast<unsigned long long>(assumed),
                  reinterpret_cast<unsigned long long>(nodes + i));
    old = reinterpret_cast<Node*>(found);
  } while (old != assumed);
}
__global__ void sum_list(Node* const* head, int* sum) {
  for (const Node* node = *head; node; node = node->next) *sum += node->value;
}
TEST_CASE("a plain look before a fence and atomicCAS is none either") {
  in_all_orders([] {
    const Buffer<Node> nodes(150, "nodes");
    const Buffer<Node*> head(std::vector<Node*>{nullptr}, "head");
    const Buffer<int> sum(std::vector<int>{0}, "sum");
    launch(push, 3, 64, 0, nodes.data(), head.data(), 150);
    CHECK(noted("atomicCAS"));
    launch(sum_list, 1, 1, 0, head.data(), sum.data());
    CHECK(sum.download()[0] == 149 * 150 / 2);
  });
}
__global__ void pops_without_asking(Node** head, int* out) {
  Node* const old = *head;  // BUG: another thread may have taken it
  __threadfence();
  out[blockIdx.x * blockDim.x + threadIdx.x] = old->value;
  atomicExch(reinterpret_cast<unsigned long long*>(head), reinterpret_cast<unsigned long long>(old->next));  // BUG
}
TEST_CASE("a plain look, a fence and another atomic are a race") {
  must_be_caught({.kernel = "pops_without_asking", .check = Check::kRacecheck, .variable = "head"}, [] {
    const Buffer<Node> nodes(std::vector<Node>(100, {1, nullptr}), "nodes");
    const Buffer<Node*> head(std::vector<Node*>{nodes.data()}, "head");
    const Buffer<int> out(64, "out");
    launch(pops_without_asking, 2, 32, 0, head.data(), out.data());
  });
}

__global__ void looks_and_goes_on(int* best, const int* in, int* out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  out[i] = *best;          // BUG: no atomicCAS asks whether this was true
  atomicMax(best, in[i]);  // BUG
}
TEST_CASE("a plain look before another atomic is a race") {
  must_be_caught({.kernel = "looks_and_goes_on", .check = Check::kRacecheck, .variable = "best"}, [] {
    auto best = zeros<int>(1, "best"), in = zeros<int>(64, "in"), out = zeros<int>(64, "out");
    launch(looks_and_goes_on, 2, 32, 0, best.data(), in.data(), out.data());
  });
}

// --------------------------------------------------------------------------------------------------------- equal stores
__global__ void raise_flags(const int* in, unsigned char* changed, int* seen) {
  __shared__ int any;
  if (threadIdx.x == 0) any = 0;
  __syncthreads();
  const int value = in[blockIdx.x * blockDim.x + threadIdx.x];
  if (value % 2) any = 1;
  if (value % 3 == 0) *changed = 1;
  seen[value % 5] = 12;
  __syncthreads();
  if (threadIdx.x == 0 && any) *changed = 1;
}
TEST_CASE("several threads store the same value: noted") {
  in_all_orders([] {
    std::vector<int> host(4 * 96);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<int>(i * 7 % 31);
    const Buffer<int> in(host, "in");
    Buffer<unsigned char> changed(1, "changed");
    changed.fill(0);
    auto seen = zeros<int>(5, "seen");
    launch(raise_flags, 4, 96, 0, in.data(), changed.data(), seen.data());
    CHECK(changed.download()[0]);
    CHECK(seen.download() == std::vector<int>(5, 12));
    CHECK(noted("store the same value in seen"));
    CHECK(noted("store the same value in any"));
  });
}

__global__ void all_but_one_agree(int* winner, unsigned odd_one) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  *winner = i == odd_one ? 2 : 1;  // BUG
}
TEST_CASE("all but one store the same value") {
  // What a store leaves behind is seen after it. On another core, a block may have put back by then what the odd one changed.
  const WithOptions on_one_core([](auto& o) { o.workers = 1; });
  for (const unsigned odd_one : {0u, 13u, 40u, 95u})
    must_be_caught({.kernel = "all_but_one_agree", .check = Check::kRacecheck, .variable = "winner"}, [&] {
      auto winner = zeros<int>(1, "winner");
      launch(all_but_one_agree, 3, 32, 0, winner.data(), odd_one);
    });
}

// ------------------------------------------------------------------------------------------------- atomics of a block
__global__ void counts_for_its_block(unsigned* counts, unsigned stride) {
  atomicAdd_block(&counts[blockIdx.x * stride], 1u);  // BUG with stride 0
}
TEST_CASE("an atomic of the block, used by one block and by several") {
  in_all_orders([] {
    auto counts = zeros<unsigned>(4, "counts");
    launch(counts_for_its_block, 4, 64, 0, counts.data(), 1u);
    CHECK(counts.download() == std::vector<unsigned>(4, 64));
  });
  must_be_caught(
      {.kernel = "counts_for_its_block", .check = Check::kRacecheck, .variable = "counts", .says = {"an atomic of its block"}}, [] {
        auto counts = zeros<unsigned>(4, "counts");
        launch(counts_for_its_block, 4, 64, 0, counts.data(), 0u);
      });
}

__global__ void hands_on_in_its_block(int* payload, unsigned* flag, int* out) {
  if (blockIdx.x == 0) {
    *payload = 7;
    __threadfence();
    atomicExch_block(flag, 1u);  // BUG: the other block may never see it
  } else {
    while (atomicAdd(flag, 0u) == 0) {  // BUG
    }
    __threadfence();
    *out = *payload;
  }
}
TEST_CASE("what an atomic of the block does not hand on to another one is named") {
  must_be_caught({.kernel = "hands_on_in_its_block",
                  .check = Check::kRacecheck,
                  .variable = "flag",
                  .says = {"has stored before, such as payload (byte 0 of 4)", "is not made known by that"}},
                 [] {
                   auto payload = zeros<int>(1, "payload"), out = zeros<int>(1, "out");
                   auto flag = zeros<unsigned>(1, "flag");
                   launch(hands_on_in_its_block, 2, 1, 0, payload.data(), flag.data(), out.data());
                 });
}

// ---------------------------------------------------------------------------------------------------- readers to wait for
// Block 0 hands a word to the other blocks, all of which read it, and then writes it again.
template <bool kWaitsForAll>
__global__ void hands_on_twice(int* word, unsigned* flag, unsigned* read, int* out) {
  const unsigned others = gridDim.x - 1;
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) {
      *word = 5;
      __threadfence();
      atomicExch(flag, 1u);
      if (kWaitsForAll)
        for (unsigned i = 0; i < others; ++i)
          while (atomicAdd(&read[i], 0u) == 0) {
          }
      else
        while (atomicAdd(&read[0], 0u) == 0) {
        }
      __threadfence();
      *word = 6;  // BUG without a look at all
    }
  } else {
    if (threadIdx.x == 0) {
      while (atomicAdd(flag, 0u) == 0) {
      }
      __threadfence();
    }
    __syncthreads();
    out[(blockIdx.x - 1) * blockDim.x + threadIdx.x] = *word;  // BUG without a look at all
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicExch(&read[blockIdx.x - 1], 1u);
    }
  }
}
template <bool kWaitsForAll>
void hand_on_twice(unsigned blocks, unsigned threads) {
  auto word = zeros<int>(1, "word"), out = zeros<int>(16 * 64, "out");
  auto flag = zeros<unsigned>(1, "flag"), read = zeros<unsigned>(16, "read");
  launch(hands_on_twice<kWaitsForAll>, blocks, threads, 0, word.data(), flag.data(), read.data(), out.data());
  const auto found = out.download();
  CHECK(std::count(found.begin(), found.end(), 5) == (blocks - 1) * threads);
}
TEST_CASE("a writer that waits for one of several readers") {
  must_be_caught({.kernel = "hands_on_twice", .check = Check::kRacecheck, .variable = "word"}, [] { hand_on_twice<false>(3, 1); });
  must_be_caught({.kernel = "hands_on_twice", .check = Check::kRacecheck, .variable = "word"}, [] { hand_on_twice<false>(4, 32); });
  in_all_orders([] {
    hand_on_twice<true>(3, 1);
    hand_on_twice<true>(4, 64);   // as many warps as are kept
    hand_on_twice<true>(12, 64);  // and more
  });
}

// A word that some look at atomically and others plainly, and that its writer changes atomically. The plain read is one to wait
// for.
__global__ void flag_is_also_read(unsigned* flag, unsigned* read, unsigned* out) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    atomicExch(flag, 1u);
    while (atomicAdd(read, 0u) == 0) {
    }
    __threadfence();
    atomicExch(flag, 2u);
  } else if (blockIdx.x == 1) {
    while (atomicAdd(flag, 0u) == 0) {
    }
    __threadfence();
    out[1] = *flag;
    __threadfence();
    atomicExch(read, 1u);
  } else {
    while (*static_cast<volatile unsigned*>(flag) != 2) {
    }
  }
}
TEST_CASE("who polls a word races with no atomic, whoever else reads it") {
  in_all_orders([] {
    auto flag = zeros<unsigned>(1, "flag"), read = zeros<unsigned>(1, "read"), out = zeros<unsigned>(4, "out");
    launch(flag_is_also_read, 4, 32, 0, flag.data(), read.data(), out.data());
    CHECK(flag.download()[0] == 2);
  });
}

// ------------------------------------------------------------------------------------------------------ named barriers
enum class Groups { kOneNumber, kTwoNumbers, kOneAfterTheOther, kSameWarps };  // to come to the barrier
template <Groups kHow>
__global__ void groups_of_warps(int* out) {
  __shared__ int s[128];
  const int t = threadIdx.x, group = t / 64;
  s[t] = t;
  if (kHow == Groups::kOneAfterTheOther && group == 1) device::barrier_sync(3, 128);
  device::barrier_sync(kHow == Groups::kTwoNumbers ? 1 + group : 1, kHow == Groups::kSameWarps ? 128 : 64);
  if (kHow == Groups::kSameWarps) device::barrier_sync(1, 128);
  if (kHow == Groups::kOneAfterTheOther && group == 0) device::barrier_sync(3, 128);
  out[t] = s[t ^ 63];
}
template <Groups kHow>
void run_groups() {
  auto out = zeros<int>(128, "out");
  launch(groups_of_warps<kHow>, 1, 128, 0, out.data());
  CHECK(out.download()[100] == (100 ^ 63));
}
TEST_CASE("two groups of warps and one named barrier") {
  in_all_orders([] { CHECK_THROWS_AS(run_groups<Groups::kOneNumber>(), interpreter::KernelError); });
  const auto says = doctest::Contains("number 1 for two groups of warps at a time");  // in the order of the threads
  CHECK_THROWS_WITH_AS(run_groups<Groups::kOneNumber>(), says, interpreter::KernelError);
  in_all_orders(run_groups<Groups::kTwoNumbers>);
  in_all_orders(run_groups<Groups::kOneAfterTheOther>);
  in_all_orders(run_groups<Groups::kSameWarps>);
}

// ------------------------------------------------------------------------------------------------------------- launches
__global__ void all_arrive(unsigned* arrived) {
  __shared__ float tile[10 * 1024];  // 40 KB: a 4090's SM holds two such blocks
  tile[threadIdx.x] = 0;
  atomicAdd(arrived, 1u);
  while (atomicAdd(arrived, 0u) < gridDim.x) {  // BUG: with more blocks than the GPU holds
  }
}
TEST_CASE("static shared memory limits how many blocks are resident") {
  const WithOptions restored([](auto& o) { o.gpu = "4090"; });
  in_all_orders([] {
    auto arrived = zeros<unsigned>(1, "arrived");
    launch(all_arrive, 256, 1, 0, arrived.data());
    CHECK(arrived.download()[0] == 256);
  });
  must_be_caught({.kernel = "all_arrive",
                  .check = Check::kSynccheck,
                  .variable = "arrived",
                  .says = {"deadlock between blocks", "1 blocks have not started", "holds 256"}},
                 [] {
                   auto arrived = zeros<unsigned>(1, "arrived");
                   launch(all_arrive, 257, 1, 0, arrived.data());
                 });
}

template <int kThreads>
__global__ void __launch_bounds__(kThreads, 2) at_most(int* out) {
  out[threadIdx.y * blockDim.x + threadIdx.x] = 1;
}
__global__ __launch_bounds__(96) void at_most_96(int* out) { out[threadIdx.x] = 1; }
TEST_CASE("__launch_bounds__") {
  Buffer<int> out(1024, "out");
  launch(at_most<128>, 1, 128, 0, out.data());
  launch(at_most<1024>, 1, dim3(32, 32), 0, out.data());
  launch(at_most_96, 1, 96, 0, out.data());
#ifndef __clang__  // cannot tell, see language.h
  for (const auto& start : std::vector<std::function<void()>>{[&] { launch(at_most<128>, 1, 129, 0, out.data()); },
                                                              [&] { launch(at_most_96, 1, dim3(49, 2), 0, out.data()); }}) {
    try {
      start();
      FAIL("nothing was reported");
    } catch (const interpreter::KernelError& error) {
      CHECK(error.diagnosis.check == Check::kLaunch);
      CHECK(planted::contains(error.diagnosis.expected, "__launch_bounds__"));
    }
  }
#endif
}

__global__ void odd_segments(const int* in, int* out, int width) {
  out[threadIdx.x] = __shfl_up_sync(0xffffffffu, in[threadIdx.x], 1, width);  // BUG with a width of 12
}
TEST_CASE("the width of a shuffle") {
  in_all_orders([] {
    const auto in = zeros<int>(32, "in");
    auto out = zeros<int>(32, "out");
    for (const int width : {1, 2, 4, 8, 16, 32}) launch(odd_segments, 1, 32, 0, in.data(), out.data(), width);
  });
  for (const int width : {0, 12, 64, -8})
    must_be_caught({.kernel = "odd_segments", .check = Check::kSynccheck, .says = {"width"}}, [&] {
      const auto in = zeros<int>(32, "in");
      auto out = zeros<int>(32, "out");
      launch(odd_segments, 1, 32, 0, in.data(), out.data(), width);
    });
}

// -------------------------------------------------------------------------------------------- values that no lane gave
// Half a warp adds up. From a distance of 8 on, its upper lanes read beyond the mask, and nobody uses what they compute.
__global__ void sums_of_half_warps(const int* in, int* out, int first) {
  const unsigned half = 0xffffu << (threadIdx.x & 16);
  int v = in[threadIdx.x];
  for (int d = first; d > 0; d /= 2) v += __shfl_down_sync(half, v, d);  // BUG with a distance of 16
  const int sum = __shfl_sync(half, v, static_cast<int>(threadIdx.x & 16));
  if ((threadIdx.x & 15) == 0) out[threadIdx.x / 16] = v;
  out[2 + threadIdx.x] = sum;
}
// Lanes beyond n have left; those that stay ask before they use what they get.
__global__ void guarded_maximum(const float* in, float* out, int n, bool branches) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane >= n) return;
  float most = in[lane];
  for (int d = 16; d > 0; d /= 2) {
    const float other = __shfl_down_sync(0xffffffffu, most, d);
    if (branches) {
      if (lane + d < n) most = fmaxf(most, other);
    } else {
      most = lane + d < n && other > most ? other : most;
    }
  }
  out[lane] = most;
}
TEST_CASE("values that no lane gave, and nobody uses") {
  in_all_orders([] {
    const Buffer<int> in(std::vector<int>(32, 3), "in");
    Buffer<int> out(34, "out");
    launch(sums_of_half_warps, 1, 32, 0, in.data(), out.data(), 8);
    CHECK(out.download() == std::vector<int>(34, 48));
    std::vector<float> host(32);
    for (std::size_t i = 0; i < 32; ++i) host[i] = static_cast<float>(i * 5 % 21);
    const Buffer<float> numbers(host, "numbers");
    for (const bool branches : {true, false}) {
      auto most = zeros<float>(32, "most");
      launch(guarded_maximum, 1, 32, 0, numbers.data(), most.data(), 19, branches);
      CHECK(most.download()[0] == *std::max_element(host.begin(), host.begin() + 19));
    }
  });
}

template <class T, class Fold>
__device__ void fold_warp(const T* in, T* out, unsigned mask, Fold fold) {
  T v = in[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v = fold(v, __shfl_xor_sync(mask, v, d));  // BUG: not all lanes are there
  if (threadIdx.x == 0) *out = v;
}
template <class T>
__global__ void folds_what_nobody_gave(const T* in, T* out, int lanes, int which, unsigned mask) {
  if (static_cast<int>(threadIdx.x) >= lanes) return;
  if (which == 0) fold_warp(in, out, mask, [](T a, T b) { return a + b; });
  if (which == 1) fold_warp(in, out, mask, [](T a, T b) { return max(a, b); });
  if (which == 2) fold_warp(in, out, mask, [](T a, T b) { return min(a, b); });
}
TEST_CASE_TEMPLATE("values that no lane gave, and that are stored", T, int, unsigned, float, double, long long) {
  struct Situation {
    unsigned block;
    int lanes;
    unsigned mask;
    const char* why;
  };
  // Exited, not there, and each lane by itself: which is all that __activemask() promises.
  for (const Situation& s : {Situation{32, 20, 0xffffffffu, "has exited"}, {24, 24, 0xffffffffu, "does not exist"}})
    for (const int which : {0, 1, 2})
      must_be_caught({.kernel = "folds_what_nobody_gave",
                      .check = Check::kSynccheck,
                      .variable = "out",
                      .says = {"__shfl_xor_sync", s.why, "undefined"},
                      .thread = uint3{0, 0, 0},
                      .marked_in = "fold_warp"},
                     [&] {
                       const Buffer<T> in(std::vector<T>(32, T(7)), "in");
                       Buffer<T> out(1, "out");
                       launch(folds_what_nobody_gave<T>, 1, s.block, 0, in.data(), out.data(), s.lanes, which, s.mask);
                     });
}
__global__ void shuffles_in_the_loop(const int* in, int* out, int n) {
  int sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 32) {
    sum += in[i];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);  // BUG: some lanes are a call behind
  out[threadIdx.x] = sum;
}
TEST_CASE("lanes that are a call apart when some have exited: where they parted is named") {
  const Buffer<int> in(std::vector<int>(75, 1), "in");
  Buffer<int> out(32, "out");
  launch(shuffles_in_the_loop, 1, 32, 0, in.data(), out.data(), 64);  // all lanes go round as often
  must_be_caught({.kernel = "shuffles_in_the_loop",
                  .check = Check::kSynccheck,
                  .variable = "out",
                  .says = {"which has exited", "met in one __shfl_xor_sync: since then they are a call apart"}},
                 [&] { launch(shuffles_in_the_loop, 1, 32, 0, in.data(), out.data(), 75); });
}

TEST_CASE("a value from beyond the mask that is stored") {
  must_be_caught({.kernel = "sums_of_half_warps",
                  .check = Check::kSynccheck,
                  .variable = "out",
                  .says = {"__shfl_down_sync", "not in the mask"}},
                 [] {
                   const Buffer<int> in(std::vector<int>(32, 3), "in");
                   Buffer<int> out(34, "out");
                   launch(sums_of_half_warps, 1, 32, 0, in.data(), out.data(), 16);
                 });
}

__global__ void all_by_itself(const int* in, int* out) {
  int v = in[threadIdx.x];
  const unsigned mask = __activemask();
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(mask, v, d);  // BUG
  out[threadIdx.x] = v;
}
TEST_CASE("__activemask() for a reduction") {
  must_be_caught({.kernel = "all_by_itself", .check = Check::kSynccheck, .variable = "out", .says = {"not in the mask"}}, [] {
    const Buffer<int> in(std::vector<int>(32, 3), "in");
    Buffer<int> out(32, "out");
    launch(all_by_itself, 1, 32, 0, in.data(), out.data());
  });
}

// What comes from a lane that is not there, computed with in ways that no rule about sums would see.
enum class Use {
  kNone,       // nothing: the value is computed with, and not taken
  kProduct,    // stored, after a product
  kShared,     // stored in shared memory
  kAtomic,     // added by an atomic
  kPlace,      // where something is stored
  kBranch,     // whether something is stored
  kTrips,      // how often
  kPredicate,  // given to a barrier
  kBallot,     // given to a vote, whose result is stored by another lane
  kStruct,     // stored with others
  kHalves,     // stored as a pair of small numbers
};
struct Pair {
  unsigned a;
  float b, c;
};
__global__ void uses_what_nobody_gave(const unsigned* in, unsigned* out, Pair* pairs, Use use) {
  __shared__ unsigned s[32];
  const unsigned lane = threadIdx.x;
  s[lane] = 0, out[lane] = 0;
  __syncwarp();
  if (lane >= 20) return;
  const unsigned mine = in[lane], other = __shfl_down_sync(0xffffffffu, mine, 8);  // BUG but for kNone
  unsigned x = mine * 9 + other;                                                   // of lanes 12 to 19
  unsigned local[4] = {x, x ^ mine, x * mine, 1};
  x = local[other % 3] + local[3];
  for (unsigned i = 0; i < x % 5; ++i) local[i % 4] += i * x;
  x += local[mine % 4];
  switch (use) {
    case Use::kNone: out[lane] = lane < 12 ? x : mine; break;
    case Use::kProduct: out[lane] = x; break;
    case Use::kShared: s[lane] = x; break;
    case Use::kAtomic: atomicAdd(&s[lane], x); break;
    case Use::kPlace: s[x % 32] = 1; break;
    case Use::kBranch:
      if (x % 2) s[lane] = 1;
      break;
    case Use::kTrips:
      for (unsigned i = 0; i < x % 7; ++i) s[lane] = i;
      break;
    case Use::kPredicate: out[lane] = static_cast<unsigned>(__syncthreads_count(static_cast<int>(x >> 3 & 1))); break;
    case Use::kBallot: {
      const unsigned votes = __ballot_sync(0xfffffu, static_cast<int>(x >> 5 & 1));
      if (lane == 3) out[lane] = votes;
      break;
    }
    case Use::kStruct: pairs[lane] = {mine, 1.0f, static_cast<float>(x)}; break;
    case Use::kHalves: {
      const __half2 pair = __shfl_down_sync(0xfffffu, __floats2half2_rn(1, 2), 8);  // BUG
      out[lane] = __float_as_uint(__low2float(pair) + __high2float(pair));
      break;
    }
  }
}
TEST_CASE("what is computed from values that no lane gave is followed to where others can see it") {
  std::vector<unsigned> host(32, 0x12345677u);
  for (unsigned i = 0; i < 32; ++i) host[i] += i * 0x9e3779b9u;
  const Buffer<unsigned> in(host, "in");
  Buffer<unsigned> out(32, "out");
  Buffer<Pair> pairs(32, "pairs");
  const auto start = [&](Use use) { launch(uses_what_nobody_gave, 1, 32, 0, in.data(), out.data(), pairs.data(), use); };
  in_all_orders([&] {
    start(Use::kNone);
    CHECK(out.download()[19] == host[19]);
  });
  const auto caught = [&](Use use, const std::string& variable, const std::string& says) {
    CAPTURE(static_cast<int>(use));
    must_be_caught({.kernel = "uses_what_nobody_gave",
                    .check = Check::kSynccheck,
                    .variable = variable,
                    .says = {"__shfl_down_sync by lane", "undefined", says}},
                   [&] { start(use); });
  };
  caught(Use::kProduct, "out", "has stored in out");
  caught(Use::kShared, "s", "has stored in s");
  caught(Use::kAtomic, "", "by an atomic");
  caught(Use::kPlace, "s", "decides what this thread does: writes to s");
  caught(Use::kBranch, "", "decides");
  caught(Use::kTrips, "", "");
  caught(Use::kPredicate, "", "decides what this thread does: calls __syncthreads");
  caught(Use::kBallot, "out", "has stored in out");
  caught(Use::kStruct, "pairs", "has stored in pairs");
  caught(Use::kHalves, "out", "has stored in out");
}

// Each store takes place, for what is read between them might be the same memory.
__global__ void stores_again_beside(const unsigned* in, unsigned* out) {
  const unsigned lane = threadIdx.x, mine = in[lane];
  if (lane >= 20) return;
  const unsigned other = __shfl_down_sync(0xffffffffu, mine, 8);
  unsigned sum = 0;
  for (unsigned i = 0; i < 4; ++i) {
    out[lane] = mine + i;
    sum += in[i];
    reinterpret_cast<unsigned char*>(out + lane)[i] = static_cast<unsigned char>(sum);
  }
  if (lane < 12) out[lane] = other;
}
TEST_CASE("threads with a value that nobody gave may store at the same place again") {
  in_all_orders([] {
    const Buffer<unsigned> in(std::vector<unsigned>(32, 0x01020304u), "in");
    Buffer<unsigned> out(32, "out");
    launch(stores_again_beside, 1, 32, 0, in.data(), out.data());
    CHECK(out.download()[11] == 0x01020304u);
    CHECK(out.download()[19] == 0x10020307u);
  });
}

// What threads do while they have a value that nobody gave, and do not use: each of these is done once. Only lane 0 counts.
__global__ void does_much_beside(const int* in, int* out, unsigned* counter, volatile unsigned* flag, unsigned blocks) {
  __shared__ int s[64];
  __shared__ int stages[2][64];
  __shared__ int progress;
  const int t = static_cast<int>(threadIdx.x);
  int v = in[t];
  if (t >= 40) return;  // of the second warp, eight lanes stay
  v = v * 3 + __shfl_down_sync(0xffffffffu, v, 8);
  device::cp_async_ca_4(&stages[0][t], &in[t]);
  device::cp_async_commit_group();
  s[t] = t;
  __syncthreads();
  const int before = atomicAdd(&s[t % 2], 0);
  if (t == 32) {
    volatile int* const steps = &progress;
    *steps = 0;
    for (int i = 0; i < 5; ++i) *steps = *steps + 1;
    if (atomicAdd(counter, 2u) == 2 * blocks - 2) *flag = 1;
    while (*flag == 0) __nanosleep(10);
    __threadfence();
  }
  device::cp_async_wait_all();
  __syncthreads();
  const int votes = __syncthreads_count(s[t] == t);
  for (int d = 4; d > 0; d /= 2) v += __shfl_xor_sync(0xffu << (t & 24), v, d);
  s[t] += stages[0][t] + before;
  if (t == 32) out[blockIdx.x] = votes * 1000 + s[32] + progress * 100000 + (t < 32 ? v : 0);
}
TEST_CASE("threads with a value that nobody gave do everything once") {
  in_all_orders([] {
    const Buffer<int> in(std::vector<int>(64, 33), "in");
    Buffer<int> out(3, "out");
    auto counter = zeros<unsigned>(1, "counter"), flag = zeros<unsigned>(1, "flag");
    launch(does_much_beside, 3, 64, 0, in.data(), out.data(), counter.data(), flag.data(), 3u);
    CHECK(counter.download()[0] == 6);
    CHECK(flag.download()[0] == 1);
    CHECK(out.download() == std::vector<int>(3, 500000 + 40000 + 32 + 33));
  });
}

// ------------------------------------------------------------------------------------------- updates through volatile
__global__ void counts_through_volatile(volatile unsigned* counts, const int* in, unsigned places) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, place = i % places;
  if (in[i] >= 0) counts[place] = counts[place] + 1;  // BUG with fewer places than threads
}
TEST_CASE("an update through volatile gets lost, unless the place is the thread's own") {
  const Buffer<int> in(std::vector<int>(128, 1), "in");
  in_all_orders([&] {
    auto counts = zeros<unsigned>(128, "counts");
    launch(counts_through_volatile, 2, 64, 0, counts.data(), in.data(), 128u);
    CHECK(counts.download() == std::vector<unsigned>(128, 1));
  });
  for (const unsigned places : {1u, 16u, 32u, 64u})  // by lanes, warps and blocks
    must_be_caught({.kernel = "counts_through_volatile", .check = Check::kRacecheck, .variable = "counts", .says = {"gets lost"}},
                   [&] {
                     auto counts = zeros<unsigned>(128, "counts");
                     launch(counts_through_volatile, 2, 64, 0, counts.data(), in.data(), places);
                   });
}

// Whose turn it is stands in volatile memory; so does what everybody counts up in his turn. No data go with it, so no fence.
__global__ void counts_in_turn(volatile unsigned* turn, volatile unsigned* count, unsigned* lock) {
  const unsigned me = blockIdx.x * blockDim.x + threadIdx.x;
  while (*turn != me) {
  }
  *count = *count + 2;
  *turn = *turn + 1;
  while (atomicCAS(lock, 0u, 1u) != 0) {
  }
  count[1] = count[1] + 3;
  atomicExch(lock, 0u);
}
__global__ void raises_once(volatile int* flag, volatile int* progress, const int* in) {
  if (in[threadIdx.x] == 3 && *flag == 0) *flag = 1;
  if (threadIdx.x == 0)
    for (int i = 0; i < 5; ++i) *progress = *progress + 1;
  else if (*progress > 100)
    *flag = 2;
}
TEST_CASE("updates through volatile of who has his turn, or a lock, or is alone") {
  in_all_orders([] {
    auto turn = zeros<unsigned>(1, "turn"), count = zeros<unsigned>(2, "count"), lock = zeros<unsigned>(1, "lock");
    launch(counts_in_turn, 2, 32, 0, turn.data(), count.data(), lock.data());
    CHECK(count.download() == std::vector<unsigned>{128, 192});
    auto flag = zeros<int>(1, "flag"), progress = zeros<int>(1, "progress");
    const Buffer<int> in(std::vector<int>(64, 3), "in");
    launch(raises_once, 1, 64, 0, flag.data(), progress.data(), in.data());
    CHECK(flag.download()[0] == 1);
    CHECK(progress.download()[0] == 5);
  });
}

template <bool kWaits>
__global__ void doubles_in_step(const int* in, int* out) {
  __shared__ int storage[64];
  volatile int* const s = storage;
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  if (t >= 32) return;
  int sum = s[t];
  for (unsigned d = 32; d > 0; d /= 2) {
    sum += s[t + d];  // BUG without waiting
    if (kWaits) __syncwarp();
    s[t] = sum;  // BUG
    if (kWaits) __syncwarp();
  }
  if (t == 0) *out = sum;
}
template <bool kWaits>
__global__ void sums_in_step(const int* in, int* out) {
  __shared__ int storage[64];
  volatile int* const s = storage;  // clang's checks of array bounds are branches
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  for (unsigned d = 32; d > 0; d /= 2) {
    if (t < d) s[t] = s[t] + s[t + d];  // BUG without waiting
    if (d > 32 || kWaits) __syncthreads();
  }
  if (t == 0) *out = s[0];
}
TEST_CASE("lanes that take each other's data through volatile") {
  const Buffer<int> in(std::vector<int>(64, 2), "in");
  Buffer<int> out(1, "out");
  in_all_orders([&] {
    launch(doubles_in_step<true>, 1, 64, 0, in.data(), out.data());
    launch(sums_in_step<true>, 1, 64, 0, in.data(), out.data());
    CHECK(out.download()[0] == 128);
  });
  must_be_caught(
      {.kernel = "doubles_in_step", .check = Check::kRacecheck, .variable = "storage", .says = {"volatile makes no lane wait"}},
      [&] { launch(doubles_in_step<false>, 1, 64, 0, in.data(), out.data()); });
  must_be_caught(
      {.kernel = "sums_in_step", .check = Check::kRacecheck, .variable = "storage", .says = {"volatile makes no lane wait"}},
      [&] { launch(sums_in_step<false>, 1, 64, 0, in.data(), out.data()); });
}

// --------------------------------------------------------------------------------------------- one barrier, many calls
__device__ int swap_with_neighbour(int* s, int value) {
  s[threadIdx.x] = value;
  __syncthreads();
  return s[threadIdx.x ^ 1];
}
__global__ void swaps_in_branches(const int* in, int* out, int divisor) {
  __shared__ int s[64];
  int v = in[threadIdx.x];
  if (v % divisor == 0)
    v = swap_with_neighbour(s, v + 1);  // BUG with some threads in each branch
  else
    v = swap_with_neighbour(s, v * 3);  // BUG
  out[threadIdx.x] = v;
}
TEST_CASE("a barrier of a function that is called in two branches") {
  in_all_orders([] {
    Buffer<int> in(std::vector<int>(64, 4), "in"), out(64, "out");
    for (const int divisor : {2, 3}) launch(swaps_in_branches, 1, 64, 0, in.data(), out.data(), divisor);  // all the same way
    CHECK(out.download() == std::vector<int>(64, 12));
  });
  must_be_caught({.kernel = "swaps_in_branches", .check = Check::kSynccheck, .says = {"divergent barrier", "through the call"}},
                 [] {
                   std::vector<int> host(64, 4);
                   host[40] = 5;
                   Buffer<int> in(host, "in"), out(64, "out");
                   launch(swaps_in_branches, 1, 64, 0, in.data(), out.data(), 2);
                 });
}

}  // namespace

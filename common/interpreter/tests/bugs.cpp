/// @file
/// One planted bug per kernel, and the diagnosis that it must get in every order.
///
/// Marks and expectations: planted.h.
#include <doctest/doctest.h>

#include <cassert>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/device/device.cuh"
#include "common/device/mbarrier.cuh"
#include "common/interpreter/tests/orders.h"
#include "common/interpreter/tests/planted.h"

using device::Buffer;
using device::launch;
using interpreter::Check;
using interpreter::Diagnosis;
using interpreter::KernelError;

namespace {

constexpr unsigned kAll = 0xffffffffu;

void must_be_caught(const planted::Bug& bug, const std::function<void()>& start) { planted::must_be_caught(bug, start, __FILE__); }

Buffer<float> floats(std::size_t n, const char* name) { return Buffer<float>(std::vector<float>(n, 1.0f), name); }
Buffer<int> ints(std::size_t n, const char* name) { return Buffer<int>(std::vector<int>(n, 0), name); }
Buffer<unsigned> flags(std::size_t n, const char* name) { return Buffer<unsigned>(std::vector<unsigned>(n, 0u), name); }

// ------------------------------------------------------------------------------------------------ __syncthreads: races
__global__ void barrier_missing_after_store(const float* in, float* out) {
  __shared__ float tile[64];
  tile[threadIdx.x] = in[threadIdx.x];        // BUG: no barrier before others read
  out[threadIdx.x] = tile[63 - threadIdx.x];  // BUG
}
TEST_CASE("barrier missing after the store") {
  must_be_caught({.kernel = "barrier_missing_after_store", .check = Check::kRacecheck, .variable = "tile", .says = {"race"}}, [] {
    auto in = floats(64, "in"), out = floats(64, "out");
    launch(barrier_missing_after_store, 1, 64, 0, in.data(), out.data());
  });
}

__global__ void barrier_missing_before_refill(const float* in, float* out, int tiles) {
  __shared__ float tile[64];
  float sum = 0;
  for (int t = 0; t < tiles; ++t) {
    tile[threadIdx.x] = in[t * 64 + threadIdx.x];  // BUG: others may still read the tile before
    __syncthreads();
    for (int i = 0; i < 64; ++i) sum += tile[(threadIdx.x + i) % 64];  // BUG
  }
  out[threadIdx.x] = sum;
}
TEST_CASE("barrier missing before the refill") {
  must_be_caught({.kernel = "barrier_missing_before_refill", .check = Check::kRacecheck, .variable = "tile"}, [] {
    auto in = floats(256, "in"), out = floats(64, "out");
    launch(barrier_missing_before_refill, 1, 64, 0, in.data(), out.data(), 4);
  });
}

__global__ void in_place_scan_with_one_barrier(int* data) {
  __shared__ int sum[128];
  const unsigned i = threadIdx.x;
  sum[i] = data[i];
  for (unsigned step = 1; step < 128; step *= 2) {
    __syncthreads();
    if (i >= step) sum[i] += sum[i - step];  // BUG: reads what a neighbour writes in the same step
  }
  data[i] = sum[i];
}
TEST_CASE("scan in place with one barrier per step") {
  must_be_caught({.kernel = "in_place_scan_with_one_barrier", .check = Check::kRacecheck, .variable = "sum"}, [] {
    auto data = ints(128, "data");
    launch(in_place_scan_with_one_barrier, 1, 128, 0, data.data());
  });
}

__global__ void shared_memory_reused_too_early(const float* in, float* out) {
  float* const first = device::dynamic_smem<float>();
  int* const second = device::dynamic_smem<int>();  // the same bytes, later
  first[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  const float mine = first[(threadIdx.x + 32) % 64];  // BUG
  second[threadIdx.x] = static_cast<int>(mine);       // BUG: no barrier before the bytes get another meaning
  __syncthreads();
  out[threadIdx.x] = static_cast<float>(second[63 - threadIdx.x]);
}
TEST_CASE("shared memory reused as another array without a barrier") {
  must_be_caught({.kernel = "shared_memory_reused_too_early", .check = Check::kRacecheck, .variable = "dynamic shared memory"}, [] {
    auto in = floats(64, "in"), out = floats(64, "out");
    launch(shared_memory_reused_too_early, 1, 64, 256, in.data(), out.data());
  });
}

__global__ void two_lanes_one_element(int* out) {
  __shared__ int slot[16];
  slot[threadIdx.x / 2] = static_cast<int>(threadIdx.x);  // BUG: lanes 2i and 2i + 1 write the same word
  __syncthreads();
  out[threadIdx.x] = slot[threadIdx.x / 2];
}
TEST_CASE("two lanes store to one element in one instruction") {
  must_be_caught({.kernel = "two_lanes_one_element", .check = Check::kRacecheck, .variable = "slot"}, [] {
    auto out = ints(32, "out");
    launch(two_lanes_one_element, 1, 32, 0, out.data());
  });
}

__global__ void shared_counter(int* out) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  count += 1;  // BUG: not atomic
  __syncthreads();
  if (threadIdx.x == 0) *out = count;
}
TEST_CASE("a counter in shared memory without an atomic") {
  must_be_caught({.kernel = "shared_counter", .check = Check::kRacecheck, .variable = "count"}, [] {
    auto out = ints(1, "out");
    launch(shared_counter, 1, 64, 0, out.data());
  });
}

__global__ void global_counter(int* count) {
  *count = *count + 1;  // BUG: not atomic
}
TEST_CASE("a counter in global memory without an atomic") {
  must_be_caught({.kernel = "global_counter", .check = Check::kRacecheck, .variable = "count"}, [] {
    auto count = ints(1, "count");
    launch(global_counter, 4, 32, 0, count.data());
  });
}

__global__ void plain_store_beside_atomics(int* count) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;  // BUG: no barrier between the reset and the atomics
  atomicAdd(&total, 1);             // BUG
  __syncthreads();
  if (threadIdx.x == 0) *count = total;
}
TEST_CASE("a plain store beside atomics") {
  must_be_caught({.kernel = "plain_store_beside_atomics", .check = Check::kRacecheck, .variable = "total", .says = {"atomic"}}, [] {
    auto count = ints(1, "count");
    launch(plain_store_beside_atomics, 1, 64, 0, count.data());
  });
}

__global__ void plain_store_beneath_atomics(int* count) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;                  // BUG: no barrier between the reset and the other warps' atomics
  if (threadIdx.x % 32 == 0) atomicAdd(&total, 1);  // BUG
  __syncthreads();
  if (threadIdx.x == 0) *count = total;
}
__global__ void store_of_one_block_beneath_atomics(int* count) {
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) *count = 0;  // BUG: no barrier orders the other blocks' atomics after that
    __syncthreads();
  }
  atomicAdd(count, 1);  // BUG
}
// The word gets cells for its bytes between the two.
__global__ void store_of_bytes_beneath_atomics(unsigned* word) {
  __shared__ unsigned flags;
  if (threadIdx.x == 0) {
    flags = 0;                                                 // BUG
    atomicOr(&flags, 1u);                                      // BUG
    *word = reinterpret_cast<unsigned char*>(&flags)[0] + 0u;  // BUG
  }
  if (threadIdx.x == 32) atomicOr(&flags, 2u);  // BUG
}
TEST_CASE("a plain store, an atomic that is ordered after it, then atomics that are not") {
  must_be_caught({.kernel = "plain_store_beneath_atomics", .check = Check::kRacecheck, .variable = "total"}, [] {
    auto count = ints(1, "count");
    launch(plain_store_beneath_atomics, 1, 128, 0, count.data());
  });
  must_be_caught({.kernel = "store_of_one_block_beneath_atomics", .check = Check::kRacecheck, .variable = "count"}, [] {
    auto count = ints(1, "count");
    launch(store_of_one_block_beneath_atomics, 4, 64, 0, count.data());
  });
  must_be_caught({.kernel = "store_of_bytes_beneath_atomics", .check = Check::kRacecheck, .variable = "flags"}, [] {
    auto word = flags(1, "word");
    launch(store_of_bytes_beneath_atomics, 1, 64, 0, word.data());
  });
}

__global__ void syncwarp_across_warps(const float* in, float* out) {
  __shared__ float tile[64];
  tile[threadIdx.x] = in[threadIdx.x];  // BUG
  __syncwarp();
  out[threadIdx.x] = tile[(threadIdx.x + 32) % 64];  // BUG: another warp's half
}
TEST_CASE("__syncwarp where warps exchange data") {
  must_be_caught({.kernel = "syncwarp_across_warps", .check = Check::kRacecheck, .variable = "tile"}, [] {
    auto in = floats(64, "in"), out = floats(64, "out");
    launch(syncwarp_across_warps, 1, 64, 0, in.data(), out.data());
  });
}

// --------------------------------------------------------------------------------------------- warp-synchronous: races
__global__ void syncwarp_missing(int* data) {
  __shared__ int sum[32];
  const unsigned lane = threadIdx.x;
  sum[lane] = data[lane];  // BUG
  for (unsigned step = 16; step > 0; step /= 2)
    if (lane < step) sum[lane] += sum[lane + step];  // BUG: lanes of a warp do not run in step
  data[lane] = sum[0];                               // BUG
}
TEST_CASE("warp-synchronous reduction without __syncwarp") {
  must_be_caught({.kernel = "syncwarp_missing", .check = Check::kRacecheck, .variable = "sum"}, [] {
    auto data = ints(32, "data");
    launch(syncwarp_missing, 1, 32, 0, data.data());
  });
}

__global__ void syncwarp_mask_too_small(const int* in, int* out) {
  __shared__ int pass[32];
  pass[threadIdx.x] = in[threadIdx.x];  // BUG
  __syncwarp(threadIdx.x < 16 ? 0xffffu : 0xffff0000u);
  out[threadIdx.x] = pass[(threadIdx.x + 1) % 32];  // BUG: lanes 15 and 31 read across the halves
}
TEST_CASE("__syncwarp with too small a mask") {
  must_be_caught({.kernel = "syncwarp_mask_too_small", .check = Check::kRacecheck, .variable = "pass"}, [] {
    auto in = ints(32, "in"), out = ints(32, "out");
    launch(syncwarp_mask_too_small, 1, 32, 0, in.data(), out.data());
  });
}

__global__ void shuffle_as_barrier(const int* in, int* out) {
  __shared__ int pass[32];
  pass[threadIdx.x] = in[threadIdx.x];  // BUG
  const int other = __shfl_xor_sync(kAll, in[threadIdx.x], 1);
  out[threadIdx.x] = pass[31 - threadIdx.x] + other;  // BUG: a shuffle orders no memory
}
TEST_CASE("a shuffle taken for a barrier") {
  must_be_caught({.kernel = "shuffle_as_barrier", .check = Check::kRacecheck, .variable = "pass"}, [] {
    auto in = ints(32, "in"), out = ints(32, "out");
    launch(shuffle_as_barrier, 1, 32, 0, in.data(), out.data());
  });
}

__global__ void vote_as_barrier(const int* in, int* out) {
  __shared__ int pass[32];
  pass[threadIdx.x] = in[threadIdx.x];                                                    // BUG
  if (__any_sync(kAll, in[threadIdx.x] >= 0)) out[threadIdx.x] = pass[31 - threadIdx.x];  // BUG: a vote orders no memory
}
TEST_CASE("a vote taken for a barrier") {
  must_be_caught({.kernel = "vote_as_barrier", .check = Check::kRacecheck, .variable = "pass"}, [] {
    auto in = ints(32, "in"), out = ints(32, "out");
    launch(vote_as_barrier, 1, 32, 0, in.data(), out.data());
  });
}

// ------------------------------------------------------------------------------------------- barriers and collectives
__global__ void barrier_in_divergent_branch(float* out) {
  __shared__ float total[64];
  total[threadIdx.x] = 1;
  if (threadIdx.x < 32) __syncthreads();  // BUG: only the first warp
  out[threadIdx.x] = total[threadIdx.x];
  __syncthreads();  // BUG: where the second warp waits meanwhile
  out[threadIdx.x] += total[63 - threadIdx.x];
}
__global__ void barrier_for_some_warps(float* out) {
  __shared__ float tile[64];
  tile[threadIdx.x] = 1;  // BUG: of the first warp
  if (threadIdx.x < 32) __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];  // BUG: the second warp has gone past the barrier
}
__global__ void barrier_of_another_round(float* out) {
  __shared__ float tile[64];
  float sum = 0;
  for (int i = 0; i < 3; ++i) {
    tile[threadIdx.x] = 1;  // BUG: nobody waits for those who still read
    __syncthreads();
    sum += tile[63 - threadIdx.x];  // BUG
  }
  out[threadIdx.x] = sum;
}
TEST_CASE("of a race, whether one of the two has gone past a barrier") {
  const WithOptions in_order([](auto& o) { o.order = interpreter::Order::kForward; });
  for (const bool skips : {true, false}) {
    auto out = floats(64, "out");
    CAPTURE(skips);
    try {
      launch(skips ? barrier_for_some_warps : barrier_of_another_round, 1, 64, 0, out.data());
      FAIL("nothing was reported");
    } catch (const interpreter::KernelError& error) {
      CHECK(error.diagnosis.check == Check::kRacecheck);
      CHECK(planted::contains(error.diagnosis.expected, "waits there, this thread has gone past it") == skips);
    }
  }
}

__global__ void role_without_a_wait(float* out) {
  __shared__ device::Mbarrier full;
  __shared__ float tile[32];
  if (threadIdx.x == 0) device::mbarrier_init(&full, 32), device::fence_mbarrier_init();
  tile[threadIdx.x % 32] = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    tile[threadIdx.x] = 1;  // BUG: of the other warp, nobody waits for it
    device::mbarrier_arrive(&full);
  } else {
    out[threadIdx.x - 32] = tile[63 - threadIdx.x];  // BUG
  }
}
TEST_CASE("what orders warps that have roles is no __syncthreads() alone") {
  must_be_caught(
      {.kernel = "role_without_a_wait", .check = Check::kRacecheck, .variable = "tile", .says = {"where warps have roles"}}, [] {
        auto out = floats(32, "out");
        launch(role_without_a_wait, 1, 64, 0, out.data());
      });
}

TEST_CASE("a barrier in a divergent branch") {
  must_be_caught(
      {.kernel = "barrier_in_divergent_branch", .check = Check::kSynccheck, .says = {"divergent barrier", "(0,0,0)", "(32,0,0)"}},
      [] {
        auto out = floats(64, "out");
        launch(barrier_in_divergent_branch, 1, 64, 0, out.data());
      });
}

__global__ void two_different_barriers(float* out) {
  if (threadIdx.x % 2 == 0) {
    out[threadIdx.x] = 1;
    __syncthreads();  // BUG
  } else {
    out[threadIdx.x] = 2;
    __syncthreads();  // BUG: another barrier than the even threads'
  }
}
TEST_CASE("two different barriers") {
  must_be_caught({.kernel = "two_different_barriers", .check = Check::kSynccheck, .says = {"divergent barrier"}}, [] {
    auto out = floats(64, "out");
    launch(two_different_barriers, 1, 64, 0, out.data());
  });
}

__global__ void barrier_in_uneven_loop(const int* trips, int* out) {
  int sum = 0;
  for (int i = 0; i < trips[threadIdx.x]; ++i) {
    sum += i;
    __syncthreads();  // BUG: threads leave the loop at different times
  }
  out[threadIdx.x] = sum;
  __syncthreads();  // BUG
  out[threadIdx.x] += out[(threadIdx.x + 1) % 64];
}
TEST_CASE("a barrier in a loop whose trip count depends on the thread") {
  must_be_caught({.kernel = "barrier_in_uneven_loop", .check = Check::kSynccheck, .says = {"divergent barrier"}}, [] {
    std::vector<int> trips(64, 3);
    trips[40] = 5;
    Buffer<int> counts(trips, "trips"), out = ints(64, "out");
    launch(barrier_in_uneven_loop, 1, 64, 0, counts.data(), out.data());
  });
}

__global__ void shuffle_that_one_lane_misses(const int* in, int* out) {
  int value = in[threadIdx.x];
  if (threadIdx.x != 5) value += __shfl_down_sync(kAll, value, 1);  // BUG: waits for lane 5
  __syncthreads();                                                  // where lane 5 waits
  out[threadIdx.x] = value;
}
TEST_CASE("a shuffle that waits for a lane that never comes") {
  must_be_caught({.kernel = "shuffle_that_one_lane_misses",
                  .check = Check::kSynccheck,
                  .says = {"deadlock", "31 threads", "__shfl_down_sync", "for lanes 0x00000020", "(5,0,0)", "__syncthreads"}},
                 [] {
                   auto in = ints(32, "in"), out = ints(32, "out");
                   launch(shuffle_that_one_lane_misses, 1, 32, 0, in.data(), out.data());
                 });
}

__global__ void syncwarp_with_a_barrier_in_between(int* out) {
  if (threadIdx.x < 16) __syncwarp();  // BUG: the full mask, in half a warp
  __syncthreads();
  out[threadIdx.x] = 1;
}
TEST_CASE("__syncwarp with the full mask in half a warp") {
  must_be_caught({.kernel = "syncwarp_with_a_barrier_in_between",
                  .check = Check::kSynccheck,
                  .says = {"deadlock", "__syncwarp", "0xffff0000"}},
                 [] {
                   auto out = ints(32, "out");
                   launch(syncwarp_with_a_barrier_in_between, 1, 32, 0, out.data());
                 });
}

__global__ void lane_outside_its_mask(int* out) {
  out[threadIdx.x] = __shfl_sync(0x7fffffffu, static_cast<int>(threadIdx.x), 0);  // BUG: lane 31 calls, too
}
TEST_CASE("a lane that is not in its own mask") {
  must_be_caught({.kernel = "lane_outside_its_mask",
                  .check = Check::kSynccheck,
                  .says = {"__shfl_sync", "0x7fffffff"},
                  .thread = uint3{31, 0, 0},
                  .block = uint3{0, 0, 0}},
                 [] {
                   auto out = ints(32, "out");
                   launch(lane_outside_its_mask, 1, 32, 0, out.data());
                 });
}

__global__ void different_collectives(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane < 16)
    out[lane] = __shfl_sync(kAll, lane, 3);  // BUG
  else
    out[lane] = static_cast<int>(__ballot_sync(kAll, lane % 2));  // BUG
}
TEST_CASE("lanes of one mask in different collectives") {
  must_be_caught(
      {.kernel = "different_collectives", .check = Check::kSynccheck, .says = {"deadlock", "__shfl_sync", "__ballot_sync"}}, [] {
        auto out = ints(32, "out");
        launch(different_collectives, 1, 32, 0, out.data());
      });
}

__global__ void different_masks(int* out) {
  const unsigned mask = threadIdx.x < 16 ? kAll : 0xffff0000u;
  out[threadIdx.x] = __any_sync(mask, 1);  // BUG: the lower half waits for an upper half that has other company
  __syncthreads();
  out[threadIdx.x] += 1;
}
TEST_CASE("lanes whose masks disagree") {
  must_be_caught({.kernel = "different_masks", .check = Check::kSynccheck, .says = {"deadlock", "__any_sync", "0xffff0000"}}, [] {
    auto out = ints(32, "out");
    launch(different_masks, 1, 32, 0, out.data());
  });
}

// ----------------------------------------------------------------------------------------------------------- memcheck
__global__ void static_shared_out_of_bounds(float* out, int n) {
  __shared__ float first[33];
  __shared__ float second[33];
  for (int i = static_cast<int>(threadIdx.x); i < 33; i += 32) first[i] = second[i] = 0;
  __syncthreads();
  if (threadIdx.x < 2) {
    first[n + 1] = 1;   // BUG: one variable's end is the beginning of another, or nobody's
    second[n + 1] = 1;  // BUG
  }
  __syncthreads();
  out[threadIdx.x] = first[threadIdx.x] + second[threadIdx.x];
}
TEST_CASE("static shared memory out of bounds") {
  must_be_caught({.kernel = "static_shared_out_of_bounds", .check = Check::kMemcheck, .says = {"out of bounds"}}, [] {
    auto out = floats(32, "out");
    launch(static_shared_out_of_bounds, 1, 32, 0, out.data(), 32);
  });
}

__global__ void static_shared_into_the_neighbour(float* out, int n) {
  alignas(16) __shared__ float first[32];
  alignas(16) __shared__ float second[32];
  first[threadIdx.x] = 1;
  second[threadIdx.x] = 2;
  __syncthreads();
  if (threadIdx.x == 7) first[n + 32] = second[n - 32] = 3;  // BUG: whichever lies behind, one of them hits the other
  __syncthreads();
  out[threadIdx.x] = first[threadIdx.x] + second[threadIdx.x];
}
TEST_CASE("static shared memory out of bounds, into a neighbouring variable") {
  must_be_caught({.kernel = "static_shared_into_the_neighbour",
                  .check = Check::kMemcheck,
                  .says = {"out of bounds"},
                  .thread = uint3{7, 0, 0}},
                 [] {
                   auto out = floats(32, "out");
                   launch(static_shared_into_the_neighbour, 1, 32, 0, out.data(), 0);
                 });
}

__global__ void row_overrun(float* out, int n) {
  __shared__ float tile[4][8];
  tile[threadIdx.x / 8][threadIdx.x % 8] = 1;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i <= n; ++i) sum += tile[3][i];  // BUG: the last row has no element 8
  out[threadIdx.x] = sum;
}
TEST_CASE("a loop that runs over the end of a shared array") {
  must_be_caught({.kernel = "row_overrun", .check = Check::kMemcheck, .says = {"out of bounds"}}, [] {
    auto out = floats(32, "out");
    launch(row_overrun, 1, 32, 0, out.data(), 8);
  });
}

__global__ void dynamic_shared_out_of_bounds(float* out) {
  float* const tile = device::dynamic_smem<float>();
  tile[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x + 1];  // BUG: the last thread reads past the end
}
TEST_CASE("dynamic shared memory out of bounds") {
  must_be_caught({.kernel = "dynamic_shared_out_of_bounds",
                  .check = Check::kMemcheck,
                  .variable = "dynamic shared memory",
                  .says = {"read of 4 bytes", "out of bounds", "byte 256 of 256"},
                  .thread = uint3{63, 0, 0},
                  .block = uint3{0, 0, 0}},
                 [] {
                   auto out = floats(64, "out");
                   launch(dynamic_shared_out_of_bounds, 1, 64, 64 * sizeof(float), out.data());
                 });
}

__global__ void arrays_that_overlap(float* out) {
  float* const rows = device::dynamic_smem<float>();
  float* const cols = rows + 32;  // one warp's part, and there are two
  const int t = static_cast<int>(threadIdx.x);
  rows[t] = 1;                 // BUG: into the other warp's cols
  cols[t] = 2;                 // BUG
  out[t] = rows[t] + cols[t];  // BUG
}
TEST_CASE("two arrays in dynamic shared memory overlap") {
  must_be_caught({.kernel = "arrays_that_overlap",
                  .check = Check::kRacecheck,
                  .variable = "dynamic shared memory",
                  .says = {"through rows", "through cols", "are two arrays, they overlap here"}},
                 [] {
                   auto out = floats(64, "out");
                   launch(arrays_that_overlap, 1, 64, 128 * sizeof(float), out.data());
                 });
}

__global__ void read_past_the_end(const float* in, float* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i <= n) out[i] = in[i];  // BUG: <= for <
}
TEST_CASE("global read out of bounds by one") {
  must_be_caught({.kernel = "read_past_the_end",
                  .check = Check::kMemcheck,
                  .variable = "in",
                  .says = {"read of 4 bytes", "out of bounds", "byte 400 of 400"},
                  .thread = uint3{4, 0, 0},
                  .block = uint3{3, 0, 0}},
                 [] {
                   auto in = floats(100, "in"), out = floats(128, "out");
                   launch(read_past_the_end, 4, 32, 0, in.data(), out.data(), 100);
                 });
}

__global__ void write_past_the_end(const float* in, float* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i <= n) out[i] = in[i];  // BUG: <= for <
}
TEST_CASE("global write out of bounds by one") {
  must_be_caught({.kernel = "write_past_the_end",
                  .check = Check::kMemcheck,
                  .variable = "out",
                  .says = {"write of 4 bytes", "out of bounds"},
                  .thread = uint3{4, 0, 0},
                  .block = uint3{3, 0, 0}},
                 [] {
                   auto in = floats(128, "in"), out = floats(100, "out");
                   launch(write_past_the_end, 4, 32, 0, in.data(), out.data(), 100);
                 });
}

__global__ void negative_index(const float* in, float* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = in[i] - in[i - 1];  // BUG: thread 0 reads in[-1]
}
TEST_CASE("a negative index") {
  must_be_caught({.kernel = "negative_index",
                  .check = Check::kMemcheck,
                  .variable = "in",
                  .says = {"read", "out of bounds", "byte -4"},
                  .thread = uint3{0, 0, 0}},
                 [] {
                   auto in = floats(32, "in"), out = floats(32, "out");
                   launch(negative_index, 1, 32, 0, in.data(), out.data());
                 });
}

__global__ void unsigned_underflow(const float* in, float* out) {
  const unsigned left = threadIdx.x - 1;
  out[threadIdx.x] = in[left];  // BUG: thread 0 reads element 4294967295
}
TEST_CASE("an unsigned index that wraps around") {
  must_be_caught({.kernel = "unsigned_underflow", .check = Check::kMemcheck, .thread = uint3{0, 0, 0}}, [] {
    auto in = floats(32, "in"), out = floats(32, "out");
    launch(unsigned_underflow, 1, 32, 0, in.data(), out.data());
  });
}

__global__ void vector_at_a_ragged_end(const float4* in, float* out, int n) {
  for (int i = static_cast<int>(threadIdx.x); 4 * i < n; i += 32) {
    const float4 v = in[i];  // BUG: the last vector is only half there
    out[i] = v.x + v.y + v.z + v.w;
  }
}
TEST_CASE("a 16-byte load over a ragged end") {
  must_be_caught({.kernel = "vector_at_a_ragged_end", .check = Check::kMemcheck, .variable = "in", .thread = uint3{12, 0, 0}}, [] {
    auto in = floats(50, "in"), out = floats(32, "out");
    launch(vector_at_a_ragged_end, 1, 32, 0, reinterpret_cast<const float4*>(in.data()), out.data(), 50);
  });
}

__global__ void reads_the_host(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x];  // BUG: `in` came from the host's heap
}
TEST_CASE("a host pointer") {
  must_be_caught({.kernel = "reads_the_host", .check = Check::kMemcheck, .says = {"read of 4 bytes", "host pointer"}}, [] {
    const std::vector<float> host(32, 1.0f);
    auto out = floats(32, "out");
    launch(reads_the_host, 1, 32, 0, host.data(), out.data());
  });
}

__global__ void writes_through_null(float* out) {
  out[threadIdx.x] = 1;  // BUG: `out` is null
}
TEST_CASE("a null pointer") {
  must_be_caught({.kernel = "writes_through_null", .check = Check::kMemcheck, .says = {"write of 4 bytes", "null pointer"}},
                 [] { launch(writes_through_null, 1, 32, 0, nullptr); });
}

__global__ void reads_freed_memory(const float* const* rows, float* out) {
  out[threadIdx.x] = rows[0][threadIdx.x];  // BUG: the row has been freed
}
TEST_CASE("use after free") {
  must_be_caught({.kernel = "reads_freed_memory", .check = Check::kMemcheck, .variable = "row", .says = {"released"}}, [] {
    auto out = floats(32, "out");
    auto row = floats(32, "row");
    const Buffer<const float*> rows(std::vector<const float*>(1, row.data()), "rows");
    row = Buffer<float>();
    launch(reads_freed_memory, 1, 32, 0, rows.data(), out.data());
  });
}

#ifdef __clang__
constexpr bool kSplitsCopies = true;  // into the members, and its check of alignment does not look at such copies
#else
constexpr bool kSplitsCopies = false;
#endif
__global__ void misaligned_global_vector(const float* in, float* out, int first) {
  const float4 v = *reinterpret_cast<const float4*>(in + first + 4 * threadIdx.x);  // BUG: 4 bytes off a 16-byte boundary
  out[threadIdx.x] = v.x + v.w;
}
TEST_CASE("a misaligned float4 in global memory" * doctest::skip(kSplitsCopies)) {
  must_be_caught({.kernel = "misaligned_global_vector", .check = Check::kMemcheck, .variable = "in", .says = {"misaligned"}}, [] {
    auto in = floats(256, "in"), out = floats(32, "out");
    launch(misaligned_global_vector, 1, 32, 0, in.data(), out.data(), 1);
  });
}

__global__ void misaligned_shared_vector(float* out, int first) {
  alignas(16) __shared__ float tile[256];
  for (unsigned i = threadIdx.x; i < 256; i += 32) tile[i] = 1;
  __syncthreads();
  const float4 v = *reinterpret_cast<const float4*>(tile + first + 4 * threadIdx.x);  // BUG: 8 bytes off a 16-byte boundary
  out[threadIdx.x] = v.x + v.w;
}
TEST_CASE("a misaligned float4 in shared memory" * doctest::skip(kSplitsCopies)) {
  must_be_caught({.kernel = "misaligned_shared_vector", .check = Check::kMemcheck, .variable = "tile", .says = {"misaligned"}}, [] {
    auto out = floats(32, "out");
    launch(misaligned_shared_vector, 1, 32, 0, out.data(), 2);
  });
}

__global__ void misaligned_word(const unsigned char* in, unsigned* out, int first) {
  out[threadIdx.x] = *reinterpret_cast<const unsigned*>(in + first + 4 * threadIdx.x);  // BUG: odd addresses
}
TEST_CASE("a misaligned 4-byte word") {
  must_be_caught({.kernel = "misaligned_word", .check = Check::kMemcheck, .variable = "in", .says = {"misaligned"}}, [] {
    Buffer<unsigned char> in(std::vector<unsigned char>(256, 1), "in");
    auto out = flags(32, "out");
    launch(misaligned_word, 1, 32, 0, in.data(), out.data(), 1);
  });
}

__constant__ float table[4];
__global__ void writes_a_constant(float* out, int i) {
  table[i] = 1;  // BUG: constants are the host's to write
  out[0] = table[3 - i];
}
TEST_CASE("a write to __constant__ memory") {
  must_be_caught({.kernel = "writes_a_constant",
                  .check = Check::kMemcheck,
                  .says = {"write of 4 bytes", "__constant__"},
                  .thread = uint3{0, 0, 0}},
                 [] {
                   auto out = floats(1, "out");
                   launch(writes_a_constant, 1, 1, 0, out.data(), 2);
                 });
}

// ---------------------------------------------------------------------------------------------------------- initcheck
__global__ void static_shared_uninitialised(float* out) {
  __shared__ float tile[64];
  if (threadIdx.x < 63) tile[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];  // BUG: nobody wrote the last element
}
TEST_CASE("an uninitialised read of static shared memory") {
  must_be_caught({.kernel = "static_shared_uninitialised",
                  .check = Check::kInitcheck,
                  .variable = "tile",
                  .says = {"uninitialised", "byte 252 of 256"},
                  .thread = uint3{63, 0, 0}},
                 [] {
                   auto out = floats(64, "out");
                   launch(static_shared_uninitialised, 1, 64, 0, out.data());
                 });
}

__global__ void shared_left_by_another_block(float* out) {
  __shared__ float tile[32];
  if (blockIdx.x == 0) tile[threadIdx.x] = 1;
  __syncthreads();
  out[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x];  // BUG: block 1 reads what block 0 may have left there
}
TEST_CASE("shared memory taken for persistent") {
  must_be_caught({.kernel = "shared_left_by_another_block",
                  .check = Check::kInitcheck,
                  .variable = "tile",
                  .says = {"uninitialised"},
                  .block = uint3{1, 0, 0}},
                 [] {
                   const WithOptions one_at_a_time([](auto& o) { o.workers = 1; });
                   auto out = floats(64, "out");
                   launch(shared_left_by_another_block, 2, 32, 0, out.data());
                 });
}

__global__ void dynamic_shared_uninitialised(float* out) {
  float* const tile = device::dynamic_smem<float>();
  tile[2 * threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];  // BUG: odd elements were never written
}
TEST_CASE("an uninitialised read of dynamic shared memory") {
  must_be_caught({.kernel = "dynamic_shared_uninitialised",
                  .check = Check::kInitcheck,
                  .variable = "dynamic shared memory",
                  .says = {"uninitialised"}},
                 [] {
                   auto out = floats(32, "out");
                   launch(dynamic_shared_uninitialised, 1, 32, 64 * sizeof(float), out.data());
                 });
}

__global__ void global_uninitialised(float* sum) {
  sum[threadIdx.x] += 1;  // BUG: adds to what cudaMalloc left there
}
TEST_CASE("an uninitialised read of global memory") {
  must_be_caught({.kernel = "global_uninitialised", .check = Check::kInitcheck, .variable = "sum", .says = {"uninitialised", "4"}},
                 [] {
                   Buffer<float> sum(32, "sum");
                   launch(global_uninitialised, 1, 32, 0, sum.data());
                 });
}

__global__ void atomic_on_uninitialised(int* count) {
  atomicAdd(count, 1);  // BUG: nobody set the counter to zero
}
TEST_CASE("an atomic on uninitialised memory") {
  must_be_caught({.kernel = "atomic_on_uninitialised", .check = Check::kInitcheck, .variable = "count"}, [] {
    Buffer<int> count(1, "count");
    launch(atomic_on_uninitialised, 1, 32, 0, count.data());
  });
}

// Where what nobody wrote leads to is no mistake of its own.
__global__ void unwritten_index(const int* order, const float* in, float* out) {
  out[threadIdx.x] = in[order[threadIdx.x]];  // BUG: nobody has written the order
}
struct Link {
  Link* next;
};
__global__ void unwritten_pointer(const Link* first, Link** out) {
  const Link* const second = first->next;  // BUG: nobody has written the links
  *out = second->next;
}
__global__ void unwritten_index_in_shared(const float* in, float* out, int) {
  __shared__ int order[32];
  if (threadIdx.x > 0) order[threadIdx.x] = threadIdx.x;
  __syncwarp();
  out[threadIdx.x] = in[order[threadIdx.x]];  // BUG: all were written but one
}
TEST_CASE("an address or an index that nobody has written is told as that") {
  auto out = floats(32, "out"), in = floats(32, "in");
  Buffer<int> order(32, "order");
  Buffer<Link> links(1, "links");
  Buffer<Link*> found(1, "found");
  must_be_caught({.kernel = "unwritten_index", .check = Check::kInitcheck, .variable = "order", .says = {"uninitialised"}},
                 [&] { launch(unwritten_index, 1, 32, 0, order.data(), in.data(), out.data()); });
  must_be_caught({.kernel = "unwritten_pointer", .check = Check::kInitcheck, .variable = "links", .says = {"8 uninitialised"}},
                 [&] { launch(unwritten_pointer, 1, 1, 0, links.data(), found.data()); });
  must_be_caught({.kernel = "unwritten_index_in_shared", .check = Check::kInitcheck, .variable = "order"},
                 [&] { launch(unwritten_index_in_shared, 1, 32, 0, in.data(), out.data(), 0); });
}

// ------------------------------------------------------------------------------------------------------ between blocks
__global__ void two_blocks_one_element(float* out) {
  if (threadIdx.x == 0) out[0] = static_cast<float>(blockIdx.x);  // BUG: the last block wins, whichever that is
}
TEST_CASE("two blocks write the same element") {
  must_be_caught({.kernel = "two_blocks_one_element",
                  .check = Check::kRacecheck,
                  .variable = "out",
                  .says = {"of block"},
                  .thread = uint3{0, 0, 0}},
                 [] {
                   auto out = floats(1, "out");
                   launch(two_blocks_one_element, 4, 32, 0, out.data());  // of two at the same moment: see Stored
                 });
}

__global__ void halo_of_another_block(float* data, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const float right = data[(i + 1) % n];  // BUG: the neighbour block's element
  __syncthreads();
  data[i] = right;  // BUG
}
TEST_CASE("a barrier of one block taken for one of the grid") {
  must_be_caught({.kernel = "halo_of_another_block", .check = Check::kRacecheck, .variable = "data", .says = {"of block"}}, [] {
    auto data = floats(128, "data");
    launch(halo_of_another_block, 4, 32, 0, data.data(), 128);
  });
}

// Two blocks: block 0 has a message for block 1. Only one thread each, so that nothing but the handshake is at stake.
enum class Mistake { kNoFence, kBlockFence, kFenceBeforeData, kNoAcquire };
template <Mistake mistake>
__global__ void handshake(int* data, unsigned* flag, int* out) {
  if (blockIdx.x == 0) {
    if (mistake == Mistake::kFenceBeforeData) __threadfence();
    *data = 42;  // BUG
    if (mistake == Mistake::kBlockFence) __threadfence_block();
    if (mistake == Mistake::kNoAcquire) __threadfence();
    atomicExch(flag, 1u);
  } else {
    while (atomicAdd(flag, 0u) == 0) {
    }
    if (mistake != Mistake::kNoAcquire) __threadfence();
    *out = *data;  // BUG
  }
}
template <Mistake mistake>
void check_handshake() {
  must_be_caught({.kernel = "handshake",
                  .check = Check::kRacecheck,
                  .variable = "data",
                  .says = {"written by thread (0,0,0) of block (0,0,0)", "read by this thread"},
                  .thread = uint3{0, 0, 0},
                  .block = uint3{1, 0, 0}},
                 [] {
                   auto data = ints(1, "data"), out = ints(1, "out");
                   auto flag = flags(1, "flag");
                   launch(handshake<mistake>, 2, 1, 0, data.data(), flag.data(), out.data());
                 });
}
TEST_CASE("a handshake between blocks without a fence") { check_handshake<Mistake::kNoFence>(); }
TEST_CASE("a handshake between blocks with the block's fence only") { check_handshake<Mistake::kBlockFence>(); }
TEST_CASE("a handshake between blocks with the fence before the data") { check_handshake<Mistake::kFenceBeforeData>(); }
TEST_CASE("a handshake between blocks whose reader has no fence") { check_handshake<Mistake::kNoAcquire>(); }

__global__ void flag_read_plainly(int* data, unsigned* flag, int* out) {
  if (blockIdx.x == 0) {
    *data = 42;  // BUG
    __threadfence();
    atomicExch(flag, 1u);  // BUG
  } else {
    while (*flag == 0) {  // BUG: a plain load, which the compiler may take out of the loop
    }
    __threadfence();
    *out = *data;  // BUG: so this may come before the data
  }
}
TEST_CASE("a flag that is read with a plain load") {
  // What is seen depends on what the compiler made of the loop: a race on the flag, one on the data, or a loop without an end.
  must_be_caught({.kernel = "flag_read_plainly", .check = Check::kRacecheck, .or_check = Check::kEndless}, [] {
    const WithOptions impatient([](auto& o) { o.hang_seconds = 0.2; });
    auto data = ints(1, "data"), out = ints(1, "out");
    auto flag = flags(1, "flag");
    launch(flag_read_plainly, 2, 1, 0, data.data(), flag.data(), out.data());
  });
}

// The threadFenceReduction sample of CUDA, without its fence.
__global__ void last_block_without_fence(const int* in, int* partial, unsigned* done, int* out) {
  __shared__ bool last;
  const int sum = __reduce_add_sync(kAll, in[blockIdx.x * 32 + threadIdx.x]);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;  // BUG
    last = atomicInc(done, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int total = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) total += partial[b];  // BUG: may come before the other blocks' stores
    *out = total;
  }
}
TEST_CASE("the last block adds up without a fence") {
  must_be_caught({.kernel = "last_block_without_fence",
                  .check = Check::kRacecheck,
                  .variable = "partial",
                  .says = {"of block"},
                  .thread = uint3{0, 0, 0}},
                 [] {
                   auto in = ints(8 * 32, "in"), partial = ints(8, "partial"), out = ints(1, "out");
                   auto done = flags(1, "done");
                   launch(last_block_without_fence, 8, 32, 0, in.data(), partial.data(), done.data(), out.data());
                 });
}

__global__ void lock_without_fences(unsigned* lock, int* balance) {
  while (atomicCAS(lock, 0u, 1u) != 0) {
  }
  *balance = *balance + 1;  // BUG: the lock keeps threads apart, but nothing carries the value from one to the next
  atomicExch(lock, 0u);
}
TEST_CASE("a spin lock without fences, between blocks and in one") {
  const auto on = [](int blocks, int threads) {
    auto lock = flags(1, "lock");
    auto balance = ints(1, "balance");
    launch(lock_without_fences, blocks, threads, 0, lock.data(), balance.data());
  };
  must_be_caught({.kernel = "lock_without_fences", .check = Check::kRacecheck, .variable = "balance"}, [&] { on(4, 1); });
  must_be_caught(
      {.kernel = "lock_without_fences", .check = Check::kRacecheck, .variable = "balance", .says = {"behind taking the lock"}},
      [&] { on(1, 64); });
}

__global__ void blocks_wait_for_each_other(unsigned* turn) {
  while (atomicAdd(&turn[1 - blockIdx.x], 0u) == 0) {  // BUG: nobody begins
  }
  atomicExch(&turn[blockIdx.x], 1u);
}
TEST_CASE("two blocks wait for each other") {
  must_be_caught({.kernel = "blocks_wait_for_each_other",
                  .check = Check::kSynccheck,
                  .says = {"deadlock between blocks", "block (0,0,0)", "block (1,0,0)", "polls turn (byte 0 of 8)",
                           "polls turn (byte 4 of 8)"}},
                 [] {
                   auto turn = flags(2, "turn");
                   launch(blocks_wait_for_each_other, 2, 1, 0, turn.data());
                 });
}

__global__ void grid_barrier_of_too_many(unsigned* arrived) {
  device::dynamic_smem<int>()[threadIdx.x] = 1;
  atomicAdd(arrived, 1u);
  while (atomicAdd(arrived, 0u) < gridDim.x) {  // BUG: the GPU never holds all blocks at the same time
  }
}
TEST_CASE("more blocks wait than a GPU can hold") {
  // 200 KB of shared memory: one block per SM.
  must_be_caught({.kernel = "grid_barrier_of_too_many",
                  .check = Check::kSynccheck,
                  .says = {"deadlock between blocks", "1 blocks have not started", "holds 132"}},
                 [] {
                   auto arrived = flags(1, "arrived");
                   launch(grid_barrier_of_too_many, 133, 1, 200 * 1024, arrived.data());
                 });
}

// ------------------------------------------------------------------------------------------------------ parts of words
__global__ void same_half_of_a_word(__half* out) {
  out[(threadIdx.x + 1) / 2] = __float2half(static_cast<float>(threadIdx.x));  // BUG: threads 2i - 1 and 2i write one half
}
TEST_CASE("two threads write one __half") {
  must_be_caught({.kernel = "same_half_of_a_word", .check = Check::kRacecheck, .variable = "out"}, [] {
    Buffer<__half> out(17, "out");
    launch(same_half_of_a_word, 1, 32, 0, out.data());
  });
}

__global__ void word_and_half(unsigned* words) {
  __half* const halves = reinterpret_cast<__half*>(words);
  if (threadIdx.x == 0) words[0] = 0;                    // BUG: both halves at once
  if (threadIdx.x == 1) halves[1] = __float2half(1.0f);  // BUG
}
TEST_CASE("one thread writes a word, another one half of it") {
  must_be_caught({.kernel = "word_and_half", .check = Check::kRacecheck, .variable = "words"}, [] {
    auto words = flags(1, "words");
    launch(word_and_half, 1, 32, 0, words.data());
  });
}

// ------------------------------------------------------------------------------------------ threads that end otherwise
__device__ int deep_recursion(const int* in, int depth) {  // BUG: 10,000 frames of 256 bytes
  volatile int frame[64];                                  // BUG
  frame[depth % 64] = in[0];                               // BUG
  if (depth == 0) return 0;
  return deep_recursion(in, depth - 1) + frame[depth % 64];  // BUG
}
__global__ void recursion_overflows(const int* in, int* out) {
  if (threadIdx.x == 3) out[0] = deep_recursion(in, 10'000);
}
TEST_CASE("stack overflow by recursion") {
  must_be_caught({.kernel = "recursion_overflows",
                  .check = Check::kStackOverflow,
                  .says = {"stack overflow"},
                  .thread = uint3{3, 0, 0},
                  .marked_in = "deep_recursion"},
                 [] {
                   auto in = ints(1, "in"), out = ints(1, "out");
                   launch(recursion_overflows, 1, 32, 0, in.data(), out.data());
                 });
}

__global__ void large_local_array(const int* in, int* out) {  // BUG: 160 KB on a stack of 64 KB
  int scratch[40'000];
  for (int i = 0; i < 40'000; ++i) scratch[i] = in[i % 32] + i;  // BUG
  out[threadIdx.x] = scratch[in[threadIdx.x] + 17];
}
TEST_CASE("stack overflow by a large local array") {
  must_be_caught({.kernel = "large_local_array", .check = Check::kStackOverflow, .says = {"stack overflow"}}, [] {
    auto in = ints(32, "in"), out = ints(32, "out");
    launch(large_local_array, 1, 32, 0, in.data(), out.data());
  });
}

#ifndef __CUDACC__  // device code cannot throw; a host library that a kernel calls by mistake can
void library_call(int i) {
  if (i == 9) throw std::out_of_range("index 9");
}
__global__ void throws_an_exception() { library_call(static_cast<int>(threadIdx.x)); }
TEST_CASE("an exception leaves a kernel") {
  in_all_orders([] {
    try {
      launch(throws_an_exception, 1, 32, 0);
      FAIL("nothing was reported");
    } catch (const KernelError& error) {
      const Diagnosis& d = error.diagnosis;
      CAPTURE(d.text());
      CHECK(d.check == Check::kException);
      CHECK(planted::contains(d.what, "index 9"));
      CHECK(planted::equal(d.thread, uint3{9, 0, 0}));
      CHECK_FALSE(d.expected.empty());
    }
  });
}
#endif

__global__ void assertion_fails(const int* in) {
  assert(in[threadIdx.x] < 7);  // BUG
}
TEST_CASE("a failed assert") {
  must_be_caught({.kernel = "assertion_fails",
                  .check = Check::kException,
                  .says = {"assertion failed", "in[threadIdx.x] < 7"},
                  .thread = uint3{11, 0, 0},
                  .block = uint3{0, 0, 0}},
                 [] {
                   std::vector<int> host(32, 0);
                   host[11] = 7;
                   Buffer<int> in(host, "in");
                   launch(assertion_fails, 1, 32, 0, in.data());
                 });
}

__global__ void traps(const int* in) {
  if (in[threadIdx.y * 16 + threadIdx.x] == 1) __trap();  // BUG
}
TEST_CASE("__trap") {
  must_be_caught({.kernel = "traps", .check = Check::kException, .says = {"__trap"}, .thread = uint3{2, 1, 0}}, [] {
    std::vector<int> host(32, 0);
    host[18] = 1;
    Buffer<int> in(host, "in");
    launch(traps, 1, dim3(16, 2), 0, in.data());
  });
}

__global__ void divides_by_zero(const int* in, int* out) {
  out[threadIdx.x] = 100 / in[threadIdx.x];  // BUG: in[5] is 0
}
TEST_CASE("integer division by zero") {
  must_be_caught({.kernel = "divides_by_zero", .check = Check::kException, .says = {"division by zero"}, .thread = uint3{5, 0, 0}},
                 [] {
                   std::vector<int> host(32, 3);
                   host[5] = 0;
                   Buffer<int> in(host, "in"), out = ints(32, "out");
                   launch(divides_by_zero, 1, 32, 0, in.data(), out.data());
                 });
}

__global__ void endless_with_accesses(const int* in, int* out) {
  for (int i = 0; in[i % 32] == 0; ++i) out[threadIdx.x] = i;  // BUG: the value that ends the loop never comes
}
TEST_CASE("an endless loop that accesses memory") {
  must_be_caught({.kernel = "endless_with_accesses", .check = Check::kEndless, .says = {"100000"}}, [] {
    const WithOptions small([](auto& o) { o.step_budget = 100'000; });
    auto in = ints(32, "in"), out = ints(32, "out");
    launch(endless_with_accesses, 1, 32, 0, in.data(), out.data());
  });
}

__global__ void endless_without_accesses(int* out) {
  for (;;) {
    asm volatile("");  // BUG: for the compiler, this may be what the loop is for
  }
  out[threadIdx.x] = 1;
}
TEST_CASE("an endless loop that accesses nothing") {
  must_be_caught({.kernel = "endless_without_accesses", .check = Check::kEndless, .says = {"endless"}}, [] {
    const WithOptions impatient([](auto& o) { o.hang_seconds = 0.2; });
    auto out = ints(32, "out");
    launch(endless_without_accesses, 1, 32, 0, out.data());
  });
}

__global__ void waits_for_its_own_block(volatile int* flag, int* out) {
  if (threadIdx.x == 0) {
    while (*flag == 0) {  // BUG: thread 1 sets the flag only after the barrier
    }
  }
  __syncthreads();
  if (threadIdx.x == 1) *flag = 1;
  out[threadIdx.x] = 1;
}
TEST_CASE("a thread waits for a flag that is set behind a barrier") {
  must_be_caught(
      {.kernel = "waits_for_its_own_block", .check = Check::kSynccheck, .says = {"deadlock", "polls flag", "__syncthreads"}}, [] {
        auto flag = ints(1, "flag"), out = ints(32, "out");
        launch(waits_for_its_own_block, 1, 32, 0, flag.data(), out.data());
      });
}

// ------------------------------------------------------------------------------------------------------------- launches
__global__ void does_nothing() {}
__global__ void much_static_shared(float* out) {
  __shared__ float tile[10'240];         // 40 KB
  tile[threadIdx.x] = out[threadIdx.x];  // BUG: 40 KB and 200 KB of dynamic shared memory are more than an SM can give a block
  __syncthreads();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}

TEST_CASE("launches that CUDA refuses") {
  struct Refused {
    const char* why;
    dim3 grid, block;
    std::size_t shared;
    const char* says;
  };
  const Refused cases[] = {
      {"1025 threads", 1, 1025, 0, "1025x1x1"},
      {"too many in two dimensions", 1, dim3(64, 17), 0, "64x17x1"},
      {"block.z beyond 64", 1, dim3(1, 1, 65), 0, "1x1x65"},
      {"no thread", 1, dim3(0, 1, 1), 0, "0x1x1"},
      {"zero grid", 0, 32, 0, "0x1x1"},
      {"zero grid.z", dim3(1, 1, 0), 32, 0, "1x1x0"},
      {"grid.y beyond 65535", dim3(1, 65536), 32, 0, "1x65536x1"},
      {"grid.z beyond 65535", dim3(1, 1, 65536), 32, 0, "1x1x65536"},
      {"grid.x beyond 2^31 - 1", dim3(0x80000000u), 32, 0, "2147483648x1x1"},
      {"more dynamic shared memory than a block can have", 1, 32, 227 * 1024 + 1, "232449 bytes"},
  };
  for (const Refused& c : cases) {
    CAPTURE(c.why);
    must_be_caught({.kernel = "does_nothing", .check = Check::kLaunch, .says = {c.says}, .nobodys_fault = true},
                   [&] { launch(does_nothing, c.grid, c.block, c.shared); });
  }
}
TEST_CASE("too much static and dynamic shared memory together") {
  must_be_caught({.kernel = "much_static_shared", .check = Check::kLaunch, .variable = "tile", .says = {"40960 bytes", "204800"}},
                 [] {
                   auto out = floats(32, "out");
                   launch(much_static_shared, 1, 32, 200 * 1024, out.data());
                 });
}
TEST_CASE("the modelled GPU sets the limits") {
  const WithOptions ada([](auto& o) { o.gpu = "4090"; });
  launch(does_nothing, 1, 32, 99 * 1024);
  CHECK_THROWS_AS(launch(does_nothing, 1, 32, 99 * 1024 + 1), KernelError);
}

// ------------------------------------------------------------------------------------------------------ after an error
__global__ void sum_of_block(const int* in, int* out) {
  __shared__ int part[64];
  part[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (unsigned step = 32; step > 0; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
TEST_CASE("after a failed launch the next one is right") {
  const auto must_fail = [](auto&& start) { CHECK_THROWS_AS(start(), KernelError); };
  const auto must_work = [] {
    std::vector<int> host(64);
    for (int i = 0; i < 64; ++i) host[static_cast<std::size_t>(i)] = i;
    Buffer<int> in(host, "in"), out(5, "out");
    launch(sum_of_block, 5, 64, 0, in.data(), out.data());
    CHECK(out.download() == std::vector<int>(5, 2016));
  };
  in_all_orders([&] {
    const WithOptions impatient([](auto& o) { o.hang_seconds = 0.2; });
    auto in = floats(64, "in"), out = floats(64, "out");
    auto zeros = ints(64, "zeros");
    auto turn = flags(2, "turn");
    must_work();
    must_fail([&] { launch(barrier_missing_after_store, 3, 64, 0, in.data(), out.data()); });
    must_work();
    must_fail([&] { launch(two_different_barriers, 3, 64, 0, out.data()); });
    must_work();
    must_fail([&] { launch(writes_through_null, 3, 64, 0, nullptr); });
    must_work();
    must_fail([&] { launch(divides_by_zero, 3, 64, 0, zeros.data(), zeros.data()); });
    must_work();
    must_fail([&] { launch(recursion_overflows, 3, 64, 0, zeros.data(), zeros.data()); });
    must_work();
    must_fail([&] { launch(endless_without_accesses, 1, 64, 0, zeros.data()); });
    must_work();
    must_fail([&] { launch(blocks_wait_for_each_other, 2, 1, 0, turn.data()); });
    must_work();
    must_fail([&] { launch(does_nothing, 1, 2048, 0); });
    must_work();
  });
}

}  // namespace

/// @file
/// Kernels with mbarriers, bulk copies and named barriers that have one planted bug each, and the diagnosis that they must get in
/// every order; those that no check can see show in the result.
///
/// Each kernel is right as it stands, which is tested too; a Plant breaks it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/device/bulk_copy.cuh"
#include "common/device/ptx.cuh"
#include "common/interpreter/tests/labelled.h"

using device::Buffer;
using device::launch;
using device::Mbarrier;
using device::TensorMap;
using interpreter::Check;
using labelled::Bug;
using labelled::must_be_right;
using labelled::must_be_wrong;

namespace {

void must_be_caught(const Bug& bug, const std::function<bool()>& start) { labelled::must_be_caught(bug, start, __FILE__); }

enum Plant {
  kNone,
  // ring
  kWrongParity,
  kPhaseNeverFlips,
  kEmptyParityNotFlipped,
  kParityOfTile,
  kParityTwo,
  kTooFewBytes,
  kTooManyBytes,
  kNoBytesExpected,
  kExpectAfterArrival,
  kEmptyNotWaitedFor,
  kFullNotWaitedFor,
  kWaitBySomeLanes,
  kWaitsForNextStage,
  kReadsNextStage,
  kArrivesBeforeRead,
  kOneWarpArrivesBeforeRead,
  kNoSyncwarp,
  kAllLanesArrive,
  kOneWarpNeverArrives,
  kTooManyArrivalsInInit,
  kTooFewArrivalsInInit,
  kNoInit,
  kNoBarrierAfterInit,
  kNoFenceAfterInit,
  kTwoProducers,
  kCopiesTwice,
  kCopiesToNextStage,
  kCopiesToNextBarrier,
  kReadsBeforeFirstWait,
  kProducesTooManyTiles,
  kStoreInFlight,
  kInitOnceMore,
  kInitInUse,
  kInvalInUse,
  kTileOverBarriers,
  kStoreOverBarriers,
  kPollsForWrongPhase,
  kPollsInVain,
  // boxes
  kClippedBytes,
  kDestinationMisaligned,
  kDestinationBeyondShared,
  kRowsBeyondAllocation,
  kSourceWritten,
  kSourceWrittenBefore,
  kSourceWrittenByIssuer,
  kNoMap,
  kNeverWaitedFor,
  kSourceMisaligned,
  kWrittenWithoutFence,
  kSwizzleIgnored,
  kSwizzleOfOtherWidth,
  // stores
  kNoFence,
  kFenceBeforeWrites,
  kFenceByOtherWarps,
  kFenceAfterBarrierByOthers,
  kNoBarrierBeforeStore,
  kNoWaitForRead,
  kWaitForOneFewer,
  kWaitByOtherThread,
  kNoBarrierAfterWait,
  kNoCommit,
  kNoWaitAtEnd,
  kSameRow,
  kStoreBeyondTheRow,
  kStoreMisaligned,
  kStoreBeforeFirstRow,
  kStoreBeforeFirstColumn,
  kReadsBackAfterRead,
  kStoresOverlap,
  // named barriers
  kDifferentCounts,
  kTooFewWarps,
  kNumberSixteen,
  kCountNoMultiple,
  kCountTooLarge,
  kNobodyArrives,
  kArrivesInsteadOfSync,
  kSameNumberForBoth,
  kNumberOfSyncthreads,
};

constexpr int kStages = 3, kTileInts = 8 * 32, kWeights = 64;
constexpr unsigned kTileBytes = kTileInts * 4 + kWeights * 4;

// ----------------------------------------------------------------------------------------------------------------- ring
// Warp 0's first lane produces tiles: a box of 8 x 32 numbers and 64 weights. The two other warps consume them, every thread all.
template <Plant plant>
__global__ void ring(const __grid_constant__ TensorMap map, const int* weights, int* out, int tiles) {
  alignas(1024) __shared__ int tile[kStages][kTileInts];
  alignas(16) __shared__ int weight[kStages][kWeights];
  alignas(16) __shared__ Mbarrier full[kStages + 1];
  __shared__ Mbarrier empty[kStages];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto parity = [](int i) {
    if (plant == kPhaseNeverFlips) return 0;
    if (plant == kParityOfTile) return i & 1;
    return i / kStages & 1;
  };
  if (threadIdx.x == 0) {
    const unsigned consumers = plant == kTooManyArrivalsInInit ? 3 : plant == kTooFewArrivalsInInit ? 1 : 2;
    for (int s = 0; s < kStages; ++s) {
      if (plant == kNoInit && s == 2) continue;
      device::mbarrier_init(&full[s], 1);  // <- init
      device::mbarrier_init(&empty[s], consumers);
    }
    if (plant != kNoFenceAfterInit) device::fence_mbarrier_init();
  }
  if (plant != kNoBarrierAfterInit) __syncthreads();

  if (warp == 0) {
    if (lane > (plant == kTwoProducers ? 1 : 0)) return;
    const int produced = plant == kProducesTooManyTiles ? tiles + 1 : tiles;
    for (int i = 0; i < produced; ++i) {
      const int s = i % kStages;
      const int phase = plant == kEmptyParityNotFlipped ? parity(i) : parity(i) ^ 1;
      if (plant != kEmptyNotWaitedFor) device::mbarrier_wait_parity(&empty[s], phase);  // <- wait for empty
      const unsigned bytes = plant == kTooFewBytes                             ? kTileInts * 4
                             : plant == kTooManyBytes || plant == kPollsInVain ? kTileBytes + 16
                                                                               : kTileBytes;
      if (plant == kNoBytesExpected || plant == kExpectAfterArrival)
        device::mbarrier_arrive(&full[s]);  // <- arrival without bytes
      else
        device::mbarrier_arrive_expect_tx(&full[s], bytes);                   // <- arrival
      if (plant == kInitInUse && i == 4) device::mbarrier_init(&full[s], 1);  // <- init in use
      const int to = plant == kCopiesToNextStage ? (i + 1) % kStages : s;
      const int at = plant == kCopiesToNextBarrier ? (i + 1) % kStages : s;
      device::cp_async_bulk_tensor_2d(tile[to], &map, 0, 8 * i, &full[at]);                              // <- copy
      if (plant == kCopiesTwice) device::cp_async_bulk_tensor_2d(tile[s], &map, 0, 8 * i, &full[s]);     // <- second copy
      device::cp_async_bulk(weight[to], weights + kWeights * i, kWeights * 4, &full[at]);                // <- copy of weights
      if (plant == kTileOverBarriers && i == 1) device::cp_async_bulk(&full[2], weights, 16, &full[s]);  // <- copy over barriers
      if (plant == kExpectAfterArrival) device::mbarrier_expect_tx(&full[s], bytes);                     // <- late expectation
      if (plant == kStoreInFlight && i == 4) tile[s][7] = 0;                                             // <- store
    }
    return;
  }

  if (plant == kReadsBeforeFirstWait && threadIdx.x == 40) out[0] = tile[0][0];  // <- early read
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    const int s = i % kStages;
    const bool waits = plant != kFullNotWaitedFor && (plant != kWaitBySomeLanes || lane == 0);
    const int at = plant == kWaitsForNextStage ? (i + 1) % kStages : s;
    int phase = parity(i);
    if (plant == kWrongParity || (plant == kPollsForWrongPhase && i == 5)) phase ^= 1;
    if (plant == kParityTwo) phase = 2;
    if (plant == kPollsForWrongPhase || plant == kPollsInVain) {
      while (!device::mbarrier_test_wait_parity(&full[at], phase)) {  // <- poll
      }
    } else if (waits) {
      device::mbarrier_wait_parity(&full[at], phase);  // <- wait for full
    }
    const bool early = plant == kArrivesBeforeRead || (plant == kOneWarpArrivesBeforeRead && warp == 2);
    if (early && lane == 0) device::mbarrier_arrive(&empty[s]);  // <- early arrival
    const int from = plant == kReadsNextStage ? (i + 1) % kStages : s;
    for (int j = 0; j < kTileInts; ++j) sum += tile[from][(j + lane) % kTileInts] * weight[from][j % kWeights];  // <- read
    if (plant == kStoreOverBarriers && i == 3 && threadIdx.x == 64) reinterpret_cast<int*>(full)[1] = 0;  // <- store over barriers
    if (plant == kInvalInUse && i == 3 && threadIdx.x == 64) device::mbarrier_inval(&full[(i + 1) % kStages]);  // <- inval
    if (plant != kNoSyncwarp) __syncwarp();  // all lanes have read
    const bool never = plant == kOneWarpNeverArrives && warp == 2;
    if (!early && !never && (lane == 0 || plant == kAllLanesArrive)) device::mbarrier_arrive(&empty[s]);  // <- arrival at empty
  }
  if (plant == kInitOnceMore && threadIdx.x == 32) device::mbarrier_init(&full[0], 1);  // <- second init
  out[threadIdx.x - 32] = sum;
}

template <Plant plant>
bool run_ring(int tiles = 11) {
  const int more = tiles + 1;  // for who copies too much
  std::vector<int> host(static_cast<std::size_t>(more) * kTileInts), weights(static_cast<std::size_t>(more) * kWeights);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<int>(i * 37 % 101);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<int>(i * 7 % 13) - 6;
  std::vector<int> expected(64);
  for (int t = 0; t < 64; ++t)
    for (int i = 0; i < tiles; ++i)
      for (int j = 0; j < kTileInts; ++j)
        expected[static_cast<std::size_t>(t)] += host[static_cast<std::size_t>(i * kTileInts + (j + t % 32) % kTileInts)] *
                                                 weights[static_cast<std::size_t>(i * kWeights + j % kWeights)];
  const Buffer<int> in(host, "in"), weight(weights, "weights"), out(64, "out");
  const TensorMap map = device::make_tensor_map<int>({.data = in.data(),
                                                      .rows = static_cast<std::uint64_t>(more) * 8,
                                                      .columns = 32,
                                                      .row_stride = 32,
                                                      .box_rows = 8,
                                                      .box_columns = 32});
  launch(ring<plant>, 1, 96, 0, map, weight.data(), out.data(), tiles);
  return out.download() == expected;
}

Bug in_ring(Check check, std::string variable, std::vector<std::string> says, std::vector<std::string> at,
            std::vector<std::string> other = {}) {
  return {"ring", check, std::move(variable), std::move(says), std::move(at), std::move(other)};
}
const std::string kUnderWay = "is under way there", kNotWaited = "has not waited at full", kNoOrder = "no order between them";

TEST_CASE("ring without a bug") {
  must_be_right([] { return run_ring<kNone>() && run_ring<kNone>(2) && run_ring<kNone>(3) && run_ring<kNone>(0); });
}
__global__ void map_by_pointer(const TensorMap* map) {
  device::cp_async_bulk_prefetch_tensor_2d(map, 0, 0);  // <- host's map
}
__global__ void map_in_shared_memory(const __grid_constant__ TensorMap map) {
  __shared__ TensorMap copy;
  copy = map;
  device::cp_async_bulk_prefetch_tensor_2d(&copy, 0, 0);  // <- copied map
}
TEST_CASE("a tensor map that is not where the copy engine may read it") {
  const Buffer<int> in(std::vector<int>(64 * 32), "in");
  const TensorMap map = device::make_tensor_map<int>(
      {.data = in.data(), .rows = 64, .columns = 32, .row_stride = 32, .box_rows = 8, .box_columns = 32});
  must_be_caught({"map_by_pointer", Check::kMemcheck, "", {"in the host's memory", "__grid_constant__"}, {"host's map"}}, [&] {
    launch(map_by_pointer, 1, 1, 0, &map);
    return true;
  });
  must_be_caught({"map_in_shared_memory", Check::kMemcheck, "", {"in shared memory"}, {"copied map"}}, [&] {
    launch(map_in_shared_memory, 1, 1, 0, map);
    return true;
  });
  must_be_right([&] {  // a copy in global memory
    const Buffer<TensorMap> there(std::vector<TensorMap>{map}, "there");
    launch(map_by_pointer, 1, 1, 0, there.data());
    return true;
  });
}
__global__ void store_narrow_rows(const __grid_constant__ TensorMap map, int written) {
  __shared__ __align__(128) int box[8 * 8];
  if (static_cast<int>(threadIdx.x) % 8 < written) box[threadIdx.x] = static_cast<int>(threadIdx.x);
  device::fence_proxy_async();
  __syncthreads();
  if (threadIdx.x != 0) return;
  device::cp_async_bulk_tensor_2d_store(&map, 0, 0, box);  // <- store
  device::cp_async_bulk_commit_group();
  device::cp_async_bulk_wait_group_read<0>();
}
TEST_CASE("a box that is wider than the tensor, of which only what the tensor has was written, or less") {
  const auto is_stored = [](int written) {
    const Buffer<int> tensor(6 * 4, "tensor");
    const TensorMap map = device::make_tensor_map<int>(
        {.data = tensor.data(), .rows = 6, .columns = 4, .row_stride = 4, .box_rows = 8, .box_columns = 8});
    launch(store_narrow_rows, 1, 64, 0, map, written);
    int wrong = 0;
    for (int i = 0; i < 24; ++i) wrong += tensor.download()[static_cast<std::size_t>(i)] != i / 4 * 8 + i % 4;
    return wrong == 0;
  };
  must_be_right([&] { return is_stored(4); });
  must_be_caught({"store_narrow_rows", Check::kInitcheck, "box", {"of which not all 16 bytes have been written"}, {"store"}},
                 [&] { return is_stored(3); });
}
TEST_CASE("wait for the other parity") {
  Bug bug = in_ring(Check::kRacecheck, "tile", {}, {"copy", "read"}, {"copy", "read"});
  bug.or_check = Check::kInitcheck, bug.or_at = {"read"};
  must_be_caught(bug, [] { return run_ring<kWrongParity>(); });
  // Who comes before the copy reads what nobody has written: it is not the copy that comes too early.
  try {
    run_ring<kWrongParity>();
    FAIL("nothing was reported");
  } catch (const interpreter::KernelError& error) {
    CAPTURE(error.diagnosis.text());
    CHECK(labelled::contains(error.diagnosis.expected, "the other parity of a new mbarrier returns at once"));
  }
}
TEST_CASE("parity that stays when the ring begins again") {
  must_be_caught({"ring",
                  Check::kRacecheck,
                  "tile",
                  {"written by the bulk copy", "has waited for the phase of full"},
                  {"copy"},
                  {"copy"},
                  Check::kSynccheck,
                  {"arrival"}},
                 [] { return run_ring<kPhaseNeverFlips>(); });
}
TEST_CASE("empty waited for with full's parity: a deadlock that names arrivals and bytes") {
  must_be_caught(in_ring(Check::kSynccheck, "empty",
                         {"deadlock", "for phase 0 of empty (byte 0 of 24), which lacks 0 bytes and 2 of 2 arrivals",
                          "for phase 0 of full (byte 0 of 32), which lacks 0 bytes and 1 of 1 arrivals", "right parity",
                          "before the first phase, parity 1 counts as over"},
                         {"wait for empty"}, {"wait for full"}),
                 [] { return run_ring<kEmptyParityNotFlipped>(); });
}
TEST_CASE("parity of the tile's number instead of the round's") {
  must_be_caught(in_ring(Check::kInitcheck, "tile", {"uninitialised"}, {"read"}), [] { return run_ring<kParityOfTile>(); });
}
TEST_CASE("a phase instead of its parity") {
  must_be_caught(in_ring(Check::kSynccheck, "full", {"for parity 2"}, {"wait for full"}), [] { return run_ring<kParityTwo>(); });
}
TEST_CASE("too few bytes expected: those of one of two copies") {
  must_be_caught({"ring",
                  Check::kRacecheck,
                  "weight",
                  {kUnderWay, kNotWaited, "expects the bytes of all its copies"},
                  {"read"},
                  {"copy of weights"},
                  Check::kSynccheck,
                  {"copy of weights"}},
                 [] { return run_ring<kTooFewBytes>(); });
}
TEST_CASE("too many bytes expected: a deadlock that names arrivals and bytes") {
  must_be_caught(
      in_ring(Check::kSynccheck, "full",
              {"deadlock", "full (byte 0 of 32), which lacks 16 bytes and 0 of 1 arrivals", "as many bytes as the phase's copies"},
              {"wait for full"}, {"wait for empty"}),
      [] { return run_ring<kTooManyBytes>(); });
}
TEST_CASE("no bytes expected") {
  must_be_caught(
      in_ring(Check::kRacecheck, "tile", {kUnderWay, kNotWaited, "expects the bytes of all its copies"}, {"read"}, {"copy"}),
      [] { return run_ring<kNoBytesExpected>(); });
}
TEST_CASE("bytes expected after the phase's last arrival") {
  must_be_caught(in_ring(Check::kRacecheck, "tile", {kUnderWay, kNotWaited}, {"read"}, {"copy"}),
                 [] { return run_ring<kExpectAfterArrival>(); });
}
TEST_CASE("empty not waited for") {
  must_be_caught(
      {"ring", Check::kRacecheck, "tile", {"has waited for the phase of full"}, {"copy"}, {"copy"}, Check::kSynccheck, {"arrival"}},
      [] { return run_ring<kEmptyNotWaitedFor>(); });
}
TEST_CASE("full not waited for") {
  must_be_caught(in_ring(Check::kRacecheck, "tile", {}, {"read", "copy"}, {"read", "copy"}),
                 [] { return run_ring<kFullNotWaitedFor>(); });
}
TEST_CASE("one lane of each warp waits for full") {
  must_be_caught(in_ring(Check::kRacecheck, "tile", {}, {"read", "copy"}, {"read", "copy"}),
                 [] { return run_ring<kWaitBySomeLanes>(); });
}
TEST_CASE("wait for the next stage's full") {
  must_be_caught(in_ring(Check::kRacecheck, "tile",
                         {"tile (byte 0 ", kNotWaited + " (byte 0 ", "last wait, at", "of full (byte 8 "}, {"read"}, {"copy"}),
                 [] { return run_ring<kWaitsForNextStage>(); });
}
TEST_CASE("read of the next stage") {
  must_be_caught(in_ring(Check::kRacecheck, "tile", {"tile (byte 1024 ", kNotWaited + " (byte 8 "}, {"read"}, {"copy"}),
                 [] { return run_ring<kReadsNextStage>(); });
}
TEST_CASE("arrival at empty before the read") {
  must_be_caught(
      in_ring(Check::kRacecheck, "tile", {"read by thread (32,0,0)", kNoOrder, "arrive at an mbarrier"}, {"copy"}, {"read"}),
      [] { return run_ring<kArrivesBeforeRead>(); });
}
TEST_CASE("arrival at empty before the read, of one warp among those that read the same numbers") {
  must_be_caught(in_ring(Check::kRacecheck, "tile", {"read by thread (64,0,0)", kNoOrder}, {"copy"}, {"read"}),
                 [] { return run_ring<kOneWarpArrivesBeforeRead>(); });
}
TEST_CASE("one lane arrives for its warp without __syncwarp") {
  must_be_caught(in_ring(Check::kRacecheck, "tile", {"read by thread (33,0,0)", kNoOrder}, {"copy"}, {"read"}),
                 [] { return run_ring<kNoSyncwarp>(); });
}
TEST_CASE("too many arrivals: all lanes arrive, where init counts warps") {
  Bug bug = in_ring(Check::kRacecheck, "tile", {}, {"read", "copy"}, {"read", "copy"});
  bug.or_check = Check::kSynccheck, bug.or_at = {"wait for empty"};  // a phase too far, in which nobody arrives any more
  must_be_caught(bug, [] { return run_ring<kAllLanesArrive>(); });
}
TEST_CASE("too few arrivals: a warp does not arrive") {
  must_be_caught(
      in_ring(Check::kSynccheck, "empty", {"deadlock", "phase 0 of empty (byte 0 of 24), which lacks 0 bytes and 1 of 2 arrivals"},
              {"wait for empty"}, {"wait for full"}),
      [] { return run_ring<kOneWarpNeverArrives>(); });
}
TEST_CASE("init counts more arrivals than come") {
  must_be_caught(
      in_ring(Check::kSynccheck, "empty", {"deadlock", "phase 0 of empty (byte 0 of 24), which lacks 0 bytes and 1 of 3 arrivals"},
              {"wait for empty"}, {"wait for full"}),
      [] { return run_ring<kTooManyArrivalsInInit>(); });
}
TEST_CASE("init counts fewer arrivals than come") {
  must_be_caught(in_ring(Check::kRacecheck, "tile", {}, {"read", "copy"}, {"read", "copy"}),
                 [] { return run_ring<kTooFewArrivalsInInit>(); });
}
TEST_CASE("no init") {
  must_be_caught(in_ring(Check::kSynccheck, "empty",
                         {"mbarrier.try_wait on empty (byte 16 of 24)", "no mbarrier has been initialised"}, {"wait for empty"}),
                 [] { return run_ring<kNoInit>(); });
}
TEST_CASE("no __syncthreads after init") {
  must_be_caught(
      {"ring", Check::kRacecheck, "full", {"__syncthreads()"}, {"wait for full"}, {"init"}, Check::kSynccheck, {"wait for full"}},
      [] { return run_ring<kNoBarrierAfterInit>(); });
}
TEST_CASE("no fence after init") {
  must_be_caught(in_ring(Check::kRacecheck, "full", {"no fence.mbarrier_init between"}, {"copy"}, {"init"}),
                 [] { return run_ring<kNoFenceAfterInit>(); });
}
TEST_CASE("two threads issue the same copy") {
  must_be_caught(in_ring(Check::kSynccheck, "full", {"one arrival more, but all of the phase's 1 have come"}, {"arrival"}),
                 [] { return run_ring<kTwoProducers>(); });
}
TEST_CASE("a copy is issued twice") {
  must_be_caught(in_ring(Check::kRacecheck, "tile", {"then written by the cp.async.bulk.tensor that this thread issues"},
                         {"second copy"}, {"copy"}),
                 [] { return run_ring<kCopiesTwice>(); });
}
TEST_CASE("copy to the next stage") {
  must_be_caught(in_ring(Check::kRacecheck, "tile", {"tile (byte 0 ", kUnderWay, kNotWaited + " (byte 16 "}, {"read"}, {"copy"}),
                 [] { return run_ring<kCopiesToNextStage>(); });
}
TEST_CASE("copy completes at the next stage's barrier") {
  must_be_caught(in_ring(Check::kRacecheck, "tile", {"tile (byte 0 ", kUnderWay, kNotWaited + " (byte 8 "}, {"read"}, {"copy"}),
                 [] { return run_ring<kCopiesToNextBarrier>(); });
}
TEST_CASE("read before the first wait") {
  // Where the copy comes second, it is not that which is to blame.
  must_be_caught(in_ring(Check::kRacecheck, "tile", {"wait"}, {"early read", "copy"}, {"early read", "copy"}),
                 [] { return run_ring<kReadsBeforeFirstWait>(); });
}
TEST_CASE("a tile too many: the block ends before it has come") {
  must_be_caught(in_ring(Check::kRacecheck, "full",
                         {"the block ends while a bulk copy", "nobody has waited for phase 3 of full (byte 16 "}, {"copy"}),
                 [] { return run_ring<kProducesTooManyTiles>(); });
}
TEST_CASE("store to a stage that is being filled") {
  must_be_caught(in_ring(Check::kRacecheck, "tile", {kUnderWay, "written by this thread"}, {"store"}, {"copy"}),
                 [] { return run_ring<kStoreInFlight>(); });
}
TEST_CASE("init of an mbarrier, once more and in use") {
  must_be_caught(in_ring(Check::kSynccheck, "full", {"an mbarrier already"}, {"second init"}, {"init"}),
                 [] { return run_ring<kInitOnceMore>(); });
  must_be_caught(in_ring(Check::kSynccheck, "full", {"its phase is under way"}, {"init in use"}, {"init"}),
                 [] { return run_ring<kInitInUse>(); });
}
TEST_CASE("inval of an mbarrier in use") {
  must_be_caught({"ring", Check::kRacecheck, "full", {}, {"inval"}, {}, Check::kSynccheck, {"inval"}},
                 [] { return run_ring<kInvalInUse>(); });
}
TEST_CASE("a copy over mbarriers") {
  must_be_caught(in_ring(Check::kSynccheck, "full", {"full (byte 16 of 32), whose memory has been overwritten"}, {"arrival"}),
                 [] { return run_ring<kTileOverBarriers>(); });
}
TEST_CASE("a store over mbarriers") {
  must_be_caught({"ring",
                  Check::kRacecheck,
                  "full",
                  {"full (byte 4 of 32)"},
                  {"store over barriers"},
                  {},
                  Check::kSynccheck,  // who waits there next finds them overwritten
                  {"wait for full"}},
                 [] { return run_ring<kStoreOverBarriers>(); });
}
TEST_CASE("test_wait with the other parity") {
  must_be_caught(in_ring(Check::kRacecheck, "tile", {kUnderWay, kNotWaited + " (byte 16 "}, {"read"}, {"copy"}),
                 [] { return run_ring<kPollsForWrongPhase>(); });
}
TEST_CASE("test_wait without end: a deadlock that names arrivals and bytes") {
  must_be_caught(
      in_ring(Check::kSynccheck, "full", {"deadlock", "phase 0 of full (byte 0 of 32), which lacks 16 bytes and 0 of 1 arrivals"},
              {"poll"}, {"wait for empty"}),
      [] { return run_ring<kPollsInVain>(); });
}

// ---------------------------------------------------------------------------------------------------------------- boxes
// One box of 8 x 32 numbers of a tensor comes in, from column x and row y on, and goes out as it is.
template <Plant plant>
__global__ void boxes(const __grid_constant__ TensorMap map, int* in, int* out, int x, int y) {
  alignas(1024) __shared__ int box[kTileInts];
  __shared__ Mbarrier full;
  const int t = threadIdx.x;
  if (t == 0) {
    device::mbarrier_init(&full, 1);
    device::fence_mbarrier_init();
  }
  if (plant == kWrittenWithoutFence) box[t] = 0;  // <- clear
  if (plant == kSourceWrittenBefore) in[t] += 1;  // <- write before
  __syncthreads();
  if (t == 0) {
    const unsigned rows = plant == kClippedBytes ? 5 : 8;
    int* const to = plant == kDestinationMisaligned ? box + 16 : plant == kDestinationBeyondShared ? box + 64 : box;
    const TensorMap* const described = plant == kNoMap ? reinterpret_cast<const TensorMap*>(in) : &map;
    device::mbarrier_arrive_expect_tx(&full, rows * 32 * 4);
    device::cp_async_bulk_tensor_2d(to, described, x, y, &full);  // <- copy
  }
  if (plant == kSourceWritten && t == 33) in[5] = 7;         // <- write
  if (plant == kSourceWrittenByIssuer && t == 0) in[6] = 7;  // <- issuer's write
  if (plant == kNeverWaitedFor) return;
  device::mbarrier_wait_parity(&full, 0);  // <- wait
  for (int i = t; i < kTileInts; i += 64) out[i] = box[i];
}
template <Plant plant>
bool run_boxes(int y = 0, int rows = 20, int allocated_rows = 20, int x = 0) {
  std::vector<int> host(static_cast<std::size_t>(allocated_rows) * 32), expected(kTileInts);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<int>(i) + 1;
  for (int i = 0; i < kTileInts; ++i)
    if (y + i / 32 < allocated_rows) expected[static_cast<std::size_t>(i)] = host[static_cast<std::size_t>(y * 32 + i)];
  const Buffer<int> in(host, "in"), out(kTileInts, "out");
  const TensorMap map = device::make_tensor_map<int>({.data = in.data(),
                                                      .rows = static_cast<std::uint64_t>(rows),
                                                      .columns = 32,
                                                      .row_stride = 32,
                                                      .box_rows = 8,
                                                      .box_columns = 32});
  launch(boxes<plant>, 1, 64, 0, map, in.data(), out.data(), x, y);
  return out.download() == expected;
}

// Numbers come in as plain bytes, into dynamic shared memory behind the barrier.
template <Plant plant>
__global__ void range(const int* in, int* out, unsigned bytes) {
  char* const shared = device::dynamic_smem<char>();
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(shared);
  int* const numbers = reinterpret_cast<int*>(shared + 16);
  const int t = threadIdx.x;
  if (t == 0) {
    device::mbarrier_init(full, 1);
    device::fence_mbarrier_init();
  }
  __syncthreads();
  if (t == 0) {
    device::mbarrier_arrive_expect_tx(full, bytes);
    device::cp_async_bulk(numbers, in + (plant == kSourceMisaligned ? 1 : 0), bytes, full);  // <- copy
  }
  device::mbarrier_wait_parity(full, 0);
  for (unsigned i = t; i < bytes / 4; i += 32) out[i] = numbers[i];
}
template <Plant plant>
bool run_range(unsigned bytes = 1024, std::size_t shared_bytes = 1040) {
  std::vector<int> host(256);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<int>(i) + 1;
  const Buffer<int> in(host, "in"), out(512, "out");
  launch(range<plant>, 1, 32, shared_bytes, in.data(), out.data(), bytes);
  std::vector<int> got = out.download();
  got.resize(256);
  return got == host;
}

// A box whose rows have 128 bytes, swizzled by as many; each thread reads a column of 16-byte pieces.
template <Plant plant>
__global__ void swizzled_box(const __grid_constant__ TensorMap map, int* out) {
  alignas(1024) __shared__ int box[16 * 32];
  __shared__ Mbarrier full;
  const int t = threadIdx.x;
  if (t == 0) {
    device::mbarrier_init(&full, 1);
    device::fence_mbarrier_init();
  }
  __syncthreads();
  if (t == 0) {
    device::mbarrier_arrive_expect_tx(&full, sizeof box);
    device::cp_async_bulk_tensor_2d(box, &map, 0, 0, &full);
  }
  device::mbarrier_wait_parity(&full, 0);
  for (int i = t; i < 16 * 32; i += 32) {
    const int row = i / 32, piece = i % 32 / 4;
    const int place = plant == kSwizzleIgnored ? piece : plant == kSwizzleOfOtherWidth ? piece ^ (row / 2 % 4) : piece ^ (row % 8);
    out[i] = box[row * 32 + place * 4 + i % 4];
  }
}
template <Plant plant>
bool run_swizzled() {
  std::vector<int> host(16 * 32);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<int>(i) + 1;
  const Buffer<int> in(host, "in"), out(host.size(), "out");
  const TensorMap map = device::make_tensor_map<int>({.data = in.data(),
                                                      .rows = 16,
                                                      .columns = 32,
                                                      .row_stride = 32,
                                                      .box_rows = 16,
                                                      .box_columns = 32,
                                                      .swizzle = device::Swizzle::k128});
  launch(swizzled_box<plant>, 1, 32, 0, map, out.data());
  return out.download() == host;
}

TEST_CASE("boxes, ranges, swizzled boxes without a bug") {
  must_be_right([] { return run_boxes<kNone>() && run_boxes<kNone>(15) && run_range<kNone>() && run_swizzled<kNone>(); });
}
TEST_CASE("bytes of the box's part inside of the tensor instead of the whole box") {
  must_be_caught({"boxes",
                  Check::kSynccheck,
                  "full",
                  {"deadlock", "got 384 bytes more than expected", "those outside of the tensor too"},
                  {"wait"}},
                 [] { return run_boxes<kClippedBytes>(15); });
}
TEST_CASE("destination misaligned") {
  must_be_caught({"boxes", Check::kMemcheck, "box", {"cp.async.bulk.tensor at box (byte 64 of 1024), misaligned", "128"}, {"copy"}},
                 [] { return run_boxes<kDestinationMisaligned>(); });
}
TEST_CASE("a box begins in the middle of 16 bytes of its row, inside of the tensor and outside") {
  must_be_caught(
      {"boxes",
       Check::kMemcheck,
       "in",
       {"cp.async.bulk.tensor from a box that begins at (2, 8) of in", "misaligned", "multiple of 16 bytes, here of 4 elements"},
       {"copy"}},
      [] { return run_boxes<kNone>(8, 20, 20, 2); });
  must_be_caught({"boxes", Check::kMemcheck, "in", {"begins at (-33, 0) of in", "misaligned"}, {"copy"}},
                 [] { return run_boxes<kNone>(0, 20, 20, -33); });
}
// L2 fetches boxes: nobody's memory changes, and they may lie outside of the tensor.
__global__ void fetched(const __grid_constant__ TensorMap map, int x) {
  if (threadIdx.x == 0) device::cp_async_bulk_prefetch_tensor_2d(&map, x, 0);  // <- prefetch
}
bool run_fetched(int x) {
  const std::vector<int> host(8 * 32, 5);
  const Buffer<int> in(host, "in");
  const TensorMap map = device::make_tensor_map<int>(
      {.data = in.data(), .rows = 8, .columns = 32, .row_stride = 32, .box_rows = 8, .box_columns = 32});
  launch(fetched, 1, 32, 0, map, x);
  return in.download() == host;
}
TEST_CASE("a prefetch of a box that begins in the middle of 16 bytes") {
  must_be_right([] { return run_fetched(0) && run_fetched(-32) && run_fetched(1 << 20); });
  must_be_caught({"fetched",
                  Check::kMemcheck,
                  "in",
                  {"cp.async.bulk.prefetch.tensor from a box that begins at (2, 0) of in", "misaligned"},
                  {"prefetch"}},
                 [] { return run_fetched(2); });
}
TEST_CASE("box out of the variable, and of dynamic shared memory") {
  must_be_caught({"boxes", Check::kMemcheck, "box", {"box (byte 256 of 1024): 1024 bytes from there are out of bounds"}, {"copy"}},
                 [] { return run_boxes<kDestinationBeyondShared>(); });
  must_be_caught({"range",
                  Check::kMemcheck,
                  "dynamic shared memory",
                  {"(byte 16 of 1024): 1024 bytes from there are out of bounds"},
                  {"copy"}},
                 [] { return run_range<kNone>(1024, 1024); });
}
TEST_CASE("map of more rows than were allocated") {
  must_be_caught(
      {"boxes", Check::kMemcheck, "in", {"cp.async.bulk.tensor from in (byte 2560 of 2560): out of bounds", "the map"}, {"copy"}},
      [] { return run_boxes<kRowsBeyondAllocation>(15, 30); });
}
TEST_CASE("source written while the copy is under way") {
  must_be_caught({"boxes", Check::kRacecheck, "in", {}, {"copy", "write"}, {"copy", "write"}},
                 [] { return run_boxes<kSourceWritten>(); });
  must_be_caught({"boxes", Check::kRacecheck, "in", {"written"}, {"copy", "issuer's write"}, {"copy", "issuer's write"}},
                 [] { return run_boxes<kSourceWrittenByIssuer>(); });
}
TEST_CASE("source written in the same launch: no fence for shared memory helps") {
  must_be_caught({"boxes",
                  Check::kRacecheck,
                  "in",
                  {"in this launch", "fence.proxy.async for global memory", "another launch"},
                  {"copy"},
                  {"write before"}},
                 [] { return run_boxes<kSourceWrittenBefore>(); });
}
TEST_CASE("something else instead of a tensor map") {
  must_be_caught({"boxes", Check::kMemcheck, "", {"no tensor map", "__grid_constant__"}, {"copy"}},
                 [] { return run_boxes<kNoMap>(); });
}
TEST_CASE("a copy that nobody waits for") {
  must_be_caught({"boxes", Check::kRacecheck, "full", {"the block ends", "phase 0 of full"}, {"copy"}},
                 [] { return run_boxes<kNeverWaitedFor>(); });
}
TEST_CASE("destination written before, without fence.proxy.async") {
  must_be_caught({"boxes",
                  Check::kRacecheck,
                  "box",
                  {"then overwritten by cp.async.bulk.tensor", "no fence.proxy.async"},
                  {"copy"},
                  {"clear"}},
                 [] { return run_boxes<kWrittenWithoutFence>(); });
}
TEST_CASE("plain bytes: number of them, source misaligned, source out of bounds") {
  must_be_caught({"range", Check::kMemcheck, "in", {"cp.async.bulk of 1000 bytes", "multiples of 16"}, {"copy"}},
                 [] { return run_range<kNone>(1000); });
  must_be_caught({"range", Check::kMemcheck, "in", {"in (byte 4 of 1024), misaligned"}, {"copy"}},
                 [] { return run_range<kSourceMisaligned>(); });
  must_be_caught(
      {"range", Check::kMemcheck, "in", {"cp.async.bulk from in (byte 1024 of 1024): out of bounds", "one allocation"}, {"copy"}},
      [] { return run_range<kNone>(1040, 2000); });
}
TEST_CASE("the reader ignores the swizzle, or takes another one: only the result shows it") {
  must_be_wrong([] { return run_swizzled<kSwizzleIgnored>(); });
  must_be_wrong([] { return run_swizzled<kSwizzleOfOtherWidth>(); });
}

// --------------------------------------------------------------------------------------------------------------- stores
// Four warps write tiles of 16 x 32 numbers into two buffers in turn; one thread stores them. A fifth warp takes part in barriers.
template <Plant plant>
__global__ void stores(const __grid_constant__ TensorMap map, const int* c, int* out, int tiles) {
  alignas(128) __shared__ int buffer[2][16 * 32];
  const int t = threadIdx.x;
  const bool writes = t < 128;
  for (int i = 0; i < tiles; ++i) {
    int* const tile = buffer[i % 2];
    if (plant == kWaitForOneFewer && t == 0) device::cp_async_bulk_wait_group_read<2>();
    if (t == (plant == kWaitByOtherThread ? 32 : 0) && plant != kNoWaitForRead && plant != kWaitForOneFewer)
      device::cp_async_bulk_wait_group_read<1>();
    if (plant != kNoBarrierAfterWait) device::barrier_sync(1, 160);  // the store of two tiles ago has read the buffer
    if (plant == kFenceBeforeWrites) device::fence_proxy_async();
    if (writes)
      for (int j = t; j < 16 * 32; j += 128) tile[j] = 1000 * i + j;  // <- write
    if (plant == kNone || plant > kFenceAfterBarrierByOthers) device::fence_proxy_async();
    if (plant == kFenceByOtherWarps && !writes) device::fence_proxy_async();
    if (plant != kNoBarrierBeforeStore) device::barrier_sync(2, 160);
    if (plant == kFenceAfterBarrierByOthers && t != 0) device::fence_proxy_async();
    if (t == 0) {
      const int x = plant == kStoreBeforeFirstColumn ? -4 : 0;
      const int y = plant == kStoresOverlap ? 15 * i : plant == kStoreBeforeFirstRow ? 16 * i - 1 : 16 * i;
      device::cp_async_bulk_tensor_2d_store(&map, x, y, plant == kStoreMisaligned ? tile + 4 : tile);  // <- store
      if (plant != kNoCommit) device::cp_async_bulk_commit_group();
    }
  }
  if (t == 0 && plant != kNoWaitAtEnd) {
    if (plant == kReadsBackAfterRead)
      device::cp_async_bulk_wait_group_read<0>();
    else
      device::cp_async_bulk_wait_group<0>();
  }
  __syncthreads();
  if (plant != kNoWaitAtEnd && plant != kNoCommit) out[t] = c[t];  // <- read back
}
template <Plant plant>
bool run_stores(int tiles = 5) {
  const auto numbers = static_cast<std::size_t>(tiles) * 16 * 32;
  const Buffer<int> c(numbers, "c"), out(160, "out");
  const TensorMap map = device::make_tensor_map<int>({.data = c.data(),
                                                      .rows = static_cast<std::uint64_t>(tiles) * 16,
                                                      .columns = 32,
                                                      .row_stride = 32,
                                                      .box_rows = 16,
                                                      .box_columns = 32});
  launch(stores<plant>, 1, 160, 0, map, c.data(), out.data(), tiles);
  const std::vector<int> stored = c.download(), read = out.download();
  for (std::size_t i = 0; i < numbers; ++i)
    if (stored[i] != static_cast<int>(1000 * (i / 512) + i % 512)) return false;
  return std::equal(read.begin(), read.end(), stored.begin());
}

Bug in_stores(std::string variable, std::vector<std::string> says, std::vector<std::string> at,
              std::vector<std::string> other = {}) {
  return {"stores", Check::kRacecheck, std::move(variable), std::move(says), std::move(at), std::move(other)};
}
TEST_CASE("stores without a bug") {
  must_be_right([] { return run_stores<kNone>() && run_stores<kNone>(1); });
}
TEST_CASE("fence.proxy.async missing, before the writes, of other warps, after the barrier by others than who stores") {
  const Bug bug = in_stores("buffer", {"then read by cp.async.bulk.tensor", "no fence.proxy.async between"}, {"store"}, {"write"});
  must_be_caught(bug, [] { return run_stores<kNoFence>(); });
  must_be_caught(bug, [] { return run_stores<kFenceBeforeWrites>(); });
  must_be_caught(bug, [] { return run_stores<kFenceByOtherWarps>(); });
  must_be_caught(bug, [] { return run_stores<kFenceAfterBarrierByOthers>(); });
}
TEST_CASE("no barrier between the writes and the store") {
  must_be_caught(in_stores("buffer", {"written by thread (1,0,0)", "that this thread issues", kNoOrder}, {"store"}, {"write"}),
                 [] { return run_stores<kNoBarrierBeforeStore>(); });
}
TEST_CASE("buffer written again: no wait, for one group too few, by another thread, without a barrier") {
  const Bug bug = in_stores("buffer", {"reads was written while that was under way", "waited"}, {"store"}, {"write"});
  must_be_caught(bug, [] { return run_stores<kNoWaitForRead>(); });
  must_be_caught(bug, [] { return run_stores<kWaitForOneFewer>(); });
  must_be_caught(bug, [] { return run_stores<kWaitByOtherThread>(); });
  // Here one thread has waited, and others may write before it has or after it.
  must_be_caught(in_stores("buffer", {}, {"store", "write"}, {"store", "write"}), [] { return run_stores<kNoBarrierAfterWait>(); });
}
TEST_CASE("commit_group forgotten") {
  must_be_caught({"stores", Check::kRacecheck, "buffer", {"thread ends", "no commit_group has come after it"}, {"store"}},
                 [] { return run_stores<kNoCommit>(1); });
}
TEST_CASE("no wait at the end") {
  must_be_caught(
      in_stores("buffer", {"the thread ends while its cp.async.bulk.tensor from buffer", "wait_group.read 0"}, {"store"}),
      [] { return run_stores<kNoWaitAtEnd>(); });
}
TEST_CASE("source of a store misaligned") {
  must_be_caught(
      {"stores", Check::kMemcheck, "buffer", {"cp.async.bulk.tensor at buffer (byte 16 of 4096), misaligned"}, {"store"}},
      [] { return run_stores<kStoreMisaligned>(); });
}
TEST_CASE("a stored box begins before the tensor") {
  must_be_caught({"stores", Check::kMemcheck, "c", {"to a box that begins at (0, -1) of c", "at least 0"}, {"store"}},
                 [] { return run_stores<kStoreBeforeFirstRow>(); });
  must_be_caught({"stores", Check::kMemcheck, "c", {"to a box that begins at (-4, 0) of c", "at least 0"}, {"store"}},
                 [] { return run_stores<kStoreBeforeFirstColumn>(); });
}
TEST_CASE("what was stored is read back after wait_group.read") {
  must_be_caught(in_stores("c", {"the bulk store that", kUnderWay, "without .read"}, {"read back"}, {"store"}),
                 [] { return run_stores<kReadsBackAfterRead>(); });
}
TEST_CASE("two stores to the same rows") {
  must_be_caught(in_stores("c", {"the bulk store issued", kUnderWay, "wait_group, without .read"}, {"store"}, {"store"}),
                 [] { return run_stores<kStoresOverlap>(); });
}

// ------------------------------------------------------------------------------------------------------------- stmatrix
// Four warps store two matrices of 8 x 8 numbers each, side by side; one thread stores all of them as a box. Twice.
template <Plant plant>
__global__ void matrices(const __grid_constant__ TensorMap map) {
  alignas(128) __shared__ std::uint16_t panel[8 * 64];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < 2; ++i) {
    if (threadIdx.x == 0 && plant != kNoWaitForRead) device::cp_async_bulk_wait_group_read<0>();
    __syncthreads();  // the panel has been read
    const std::uint32_t pairs[] = {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(warp)};
    std::uint16_t* row = panel + lane % 8 * 64 + (2 * warp + lane / 8 % 2) * 8;
    if (plant == kSameRow && warp == 3) row = panel + lane % 8 * 64;
    if (plant == kStoreMisaligned && lane == 5) row += 4;
    if (plant == kStoreBeyondTheRow && warp == 3 && lane == 7) row = panel + 8 * 64;
    device::stmatrix_x2_trans(row, pairs);  // <- write
    if (plant != kNoFence) device::fence_proxy_async();
    if (plant != kNoBarrierBeforeStore) __syncthreads();
    if (threadIdx.x == 0) {
      device::cp_async_bulk_tensor_2d_store(&map, 0, 8 * i, panel);  // <- store
      device::cp_async_bulk_commit_group();
    }
  }
  if (threadIdx.x == 0) device::cp_async_bulk_wait_group<0>();
}
template <Plant plant>
bool run_matrices() {
  const Buffer<std::uint16_t> c(16 * 64, "c");
  const TensorMap map = device::make_tensor_map<std::uint16_t>(
      {.data = c.data(), .rows = 16, .columns = 64, .row_stride = 64, .box_rows = 8, .box_columns = 64});
  launch(matrices<plant>, 1, 128, 0, map);
  const std::vector<std::uint16_t> stored = c.download();
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned j = 0; j < 64; ++j)  // transposed: the lower halves are in even rows
      if (stored[row * 64 + j] != (row % 2 ? 0 : j / 8 % 2 ? j / 16 : row / 8)) return false;
  return true;
}
Bug in_matrices(std::string variable, std::vector<std::string> says, std::vector<std::string> at,
                std::vector<std::string> other = {}) {
  return {"matrices", Check::kRacecheck, std::move(variable), std::move(says), std::move(at), std::move(other)};
}
TEST_CASE("stmatrix without a bug") { must_be_right(run_matrices<kNone>); }
TEST_CASE("stmatrix and the copy engine: no fence, no barrier, no wait before the next tile") {
  must_be_caught(in_matrices("panel", {"then read by cp.async.bulk.tensor", "no fence.proxy.async between"}, {"store"}, {"write"}),
                 run_matrices<kNoFence>);
  must_be_caught(in_matrices("panel", {"that this thread issues", kNoOrder}, {"store"}, {"write"}),
                 run_matrices<kNoBarrierBeforeStore>);
  must_be_caught(in_matrices("panel", {"reads was written while that was under way", "waited"}, {"store"}, {"write"}),
                 run_matrices<kNoWaitForRead>);
}
TEST_CASE("stmatrix: two warps store the same rows, a row misaligned, a row outside of the variable") {
  must_be_caught(in_matrices("panel", {"written by"}, {"write"}, {"write"}), run_matrices<kSameRow>);
  must_be_caught({"matrices", Check::kMemcheck, "panel", {"misaligned"}, {"write"}}, run_matrices<kStoreMisaligned>);
  must_be_caught({"matrices", Check::kMemcheck, "panel", {"out of bounds"}, {"write"}}, run_matrices<kStoreBeyondTheRow>);
}

// ------------------------------------------------------------------------------------------------------- named barriers
// Two groups of two warps take turns at the same numbers: barrier 1 says that it is the first group's turn, barrier 2 the other's.
template <Plant plant>
__global__ void turns(int* out, int rounds) {
  __shared__ int numbers[64];
  const int t = threadIdx.x, group = t / 64;
  const unsigned mine = plant == kSameNumberForBoth ? 1 : plant == kNumberSixteen ? 15 + group : 1 + group;
  const unsigned theirs = plant == kSameNumberForBoth ? 1 : plant == kNumberSixteen ? 16 - group : 2 - group;
  const unsigned threads = plant == kDifferentCounts && group == 1 ? 96
                           : plant == kTooFewWarps                 ? 160
                           : plant == kCountNoMultiple             ? 100
                           : plant == kCountTooLarge               ? 256
                                                                   : 128;
  if (plant == kNumberOfSyncthreads) {
    if (group == 0) device::barrier_sync(0, 64);  // <- barrier 0
  }
  if (group == 0) numbers[t] = t;
  __syncthreads();                                                                // <- barrier of all
  if (group == 1 && plant != kNobodyArrives) device::barrier_arrive(1, threads);  // <- first arrival
  for (int i = 0; i < rounds; ++i) {
    if (plant == kArrivesInsteadOfSync && group == 1)
      device::barrier_arrive(mine, threads);  // <- arrival instead
    else
      device::barrier_sync(mine, threads);                                      // <- sync
    numbers[t % 64] = numbers[t % 64] * 3 + group;                              // <- turn
    if (group == 0 || i + 1 < rounds) device::barrier_arrive(theirs, threads);  // <- arrival
  }
  if (group == 1) out[t % 64] = numbers[t % 64];
}
template <Plant plant>
bool run_turns(int rounds = 4) {
  const Buffer<int> out(64, "out");
  const unsigned threads = plant == kTooFewWarps ? 160 : 128;
  launch(turns<plant>, 1, threads, 0, out.data(), rounds);
  std::vector<int> expected(64);
  for (int t = 0; t < 64; ++t) {
    int number = t;
    for (int i = 0; i < rounds; ++i) number = number * 9 + 1;
    expected[static_cast<std::size_t>(t)] = number;
  }
  return out.download() == expected;
}

Bug in_turns(std::vector<std::string> says, std::vector<std::string> at, std::vector<std::string> other = {}) {
  return {"turns", Check::kSynccheck, "", std::move(says), std::move(at), std::move(other)};
}
TEST_CASE("turns without a bug") {
  must_be_right([] { return run_turns<kNone>() && run_turns<kNone>(1); });
}
TEST_CASE("different counts at one named barrier") {
  must_be_caught(
      in_turns({"number 1 for ", " for 96", " for 128", "the same number"}, {"sync", "first arrival"}, {"sync", "first arrival"}),
      [] { return run_turns<kDifferentCounts>(); });
}
TEST_CASE("too few warps come to a named barrier") {
  must_be_caught(in_turns({"deadlock", "barrier 1, where 128 of 160 threads have arrived", "as many threads arrive"}, {"sync"}),
                 [] { return run_turns<kTooFewWarps>(); });
  must_be_caught(in_turns({"deadlock", "barrier 1, where 64 of 128 threads have arrived"}, {"sync"}),
                 [] { return run_turns<kNobodyArrives>(); });
}
TEST_CASE("a named barrier's number and count") {
  must_be_caught(in_turns({"number 16", "0 to 15"}, {"sync", "first arrival"}), [] { return run_turns<kNumberSixteen>(); });
  must_be_caught(in_turns({"for 100 threads", "a multiple of 32"}, {"sync", "first arrival"}),
                 [] { return run_turns<kCountNoMultiple>(); });
  must_be_caught(in_turns({"for 256 threads, of which the block has only 128"}, {"sync", "first arrival"}),
                 [] { return run_turns<kCountTooLarge>(); });
  must_be_caught(in_turns({"number 0 for 64 of the block's 128 threads", "__syncthreads()"}, {"barrier 0"}),
                 [] { return run_turns<kNumberOfSyncthreads>(); });
}
TEST_CASE("arrive instead of sync, and one number for both turns") {
  const Bug bug = {"turns", Check::kRacecheck, "numbers", {kNoOrder}, {"turn"}, {"turn"}};
  must_be_caught(bug, [] { return run_turns<kArrivesInsteadOfSync>(); });
  must_be_caught(bug, [] { return run_turns<kSameNumberForBoth>(); });
}

}  // namespace

/// @file
/// Kernels whose blocks work together in clusters and that have one planted bug each, and the diagnosis that they must get in every
/// order.
///
/// Each kernel is right as it stands, which is tested too; a Plant breaks it.
#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/device/bulk_copy.cuh"
#include "common/device/cluster.cuh"
#include "common/interpreter/tests/labelled.h"

using device::Buffer;
using device::launch_clusters;
using device::Mbarrier;
using device::TensorMap;
using interpreter::Check;
using labelled::Bug;
using labelled::must_be_right;

namespace {

void must_be_caught(const Bug& bug, const std::function<bool()>& start) { labelled::must_be_caught(bug, start, __FILE__); }

enum Plant {
  kNone,
  // ring
  kWaitsForOwnConsumersAlone,
  kHalfOfTheBytes,
  kNoBytesInOneBlock,
  kTooManyBytes,
  kNoRemoteArrival,
  kArrivesAtOwnTwice,
  kArrivesBeforeRead,
  kArrivesWithoutSyncwarp,
  kRankBeyondCluster,
  kMaskBeyondCluster,
  kEmptyMask,
  kMaskWithoutPeer,
  kNoMulticast,
  kNoClusterBarrierAfterInit,
  kNoFenceAfterInit,
  kNoInitInOneBlock,
  kNoClusterBarrierAtEnd,
  kOneBlockEnds,
  kWritesBeforeArrival,
  kWaitsAtOthersBarrier,
  kInitCountsOwnBlockAlone,
  kNoneRelaxed,
  // shares
  kNoBarrierBeforeRead,
  kEndsAfterRead,
  kBlockBarrierInstead,
  kNoWaitBeforeRead,
  kArrivesTwice,
  kWaitsWithoutArrival,
  kOneWarpSkipsBarrier,
  kOneBlockSkipsBarrier,
  kWritesAfterArrival,
  kArrivesRelaxed,
  kOneWritesAfterArrival,
  kMapaBeyondCluster,
  kMapaOfGlobal,
  kMapaOfMapped,
  kReadsBeyondArray,
  kReadsUnwritten,
  kPlainAddInsteadOfAtomic,
  kAtomicOfBlock,
  // handshake
  kNoClusterBarrierAtStart,
  kReleaseOfBlock,
  kAcquireOfBlock,
  kArrivesAtOwnBarrier,
  kWritesAfterRelease,
  // exchange
  kNoWaitForSums,
  kNoWaitForRoom,
  kNoWaitForEnd,
  kTooFewSums,
  kTooManySums,
  kNoSums,
  kBarrierOfOwnBlock,
  kMisalignedSums,
  kSumsBeyondArray,
  kSumsToGlobal,
  kNoClusterBarrierBeforeSums,
  // vain
  kAssertionOfOneBlock,
  kPollsAtOwnCopy,
  kNeverEnds,
};

// ------------------------------------------------------------------------------------------------------------------ ring
constexpr int kStages = 2, kRows = 8, kColumns = 32, kTile = kRows * kColumns;
constexpr unsigned kTileBytes = kTile * 4;

// Clusters of two blocks. Warp 0's first lane loads half of each tile for both; the two other warps of both read the whole.
template <Plant plant>
__global__ void ring(const __grid_constant__ TensorMap map, int* out, int tiles) {
  alignas(128) __shared__ int tile[kStages][kTile];
  __shared__ Mbarrier full[kStages], empty[kStages];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned rank = device::cluster_ctarank(), other = rank ^ 1;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      if (plant == kNoInitInOneBlock && rank == 1) continue;
      device::mbarrier_init(&full[s], 1);  // <- init of full
      device::mbarrier_init(&empty[s],
                            plant == kWaitsForOwnConsumersAlone || plant == kInitCountsOwnBlockAlone ? 2 : 4);  // <- init
    }
    if (plant != kNoFenceAfterInit) device::fence_mbarrier_init();
  }
  if (plant == kNoClusterBarrierAfterInit) {
    __syncthreads();
  } else {
    if (plant == kNoneRelaxed)
      device::barrier_cluster_arrive_relaxed();
    else
      device::barrier_cluster_arrive();
    device::barrier_cluster_wait();
  }
  if (plant == kOneBlockEnds && rank == 1) return;
  if (threadIdx.x == 0) {
    for (int i = 0; i < tiles; ++i) {
      const int s = i % kStages;
      device::mbarrier_wait_parity(&empty[s], (i / kStages & 1) ^ 1);  // <- wait for empty
      const unsigned bytes = plant == kHalfOfTheBytes ? kTileBytes / 2 : plant == kTooManyBytes ? kTileBytes + 16 : kTileBytes;
      if (plant == kNoBytesInOneBlock && rank == 1)
        device::mbarrier_arrive(&full[s]);  // <- arrival without bytes
      else
        device::mbarrier_arrive_expect_tx(&full[s], bytes);  // <- expectation
      const int first = static_cast<int>(rank) * kRows / 2;
      const auto mask = static_cast<uint16_t>(plant == kMaskBeyondCluster ? 7
                                              : plant == kEmptyMask       ? 0
                                              : plant == kMaskWithoutPeer ? 1 << rank
                                                                          : 3);
      int* const to = tile[s] + first * kColumns;
      if (plant == kNoMulticast)
        device::cp_async_bulk_tensor_2d(to, &map, 0, kRows * i + first, &full[s]);  // <- copy for one block
      else
        device::cp_async_bulk_tensor_2d_multicast(to, &map, 0, kRows * i + first, &full[s], mask);  // <- copy
    }
  }
  if (warp > 0) {
    int sum = 0;
    for (int i = 0; i < tiles; ++i) {
      const int s = i % kStages;
      Mbarrier* const at = plant == kWaitsAtOthersBarrier ? device::mapa(&full[s], other) : &full[s];
      device::mbarrier_wait_parity(at, i / kStages & 1);  // <- wait for full
      const auto arrive = [&](unsigned to) {
        if (plant == kWaitsForOwnConsumersAlone && to != rank) return;
        if (plant == kNoRemoteArrival && to != rank && rank == 1) return;
        if (plant == kArrivesAtOwnTwice) to = rank;
        if (plant == kRankBeyondCluster && to == 1) to = 2;
        device::mbarrier_arrive_cluster(&empty[s], to);  // <- arrival
      };
      const bool early = plant == kArrivesBeforeRead && rank == 1;
      if (early && lane < 2) arrive(static_cast<unsigned>(lane));
      for (int j = 0; j < kTile; ++j) sum += (j % 3 + 1) * tile[s][(j + lane) % kTile];  // <- read
      if (plant == kWritesBeforeArrival && rank == 1 && lane == 0) tile[s][5] = 0;       // <- store
      if (plant != kArrivesWithoutSyncwarp) __syncwarp();
      if (!early && lane < 2) arrive(static_cast<unsigned>(lane));
    }
    out[blockIdx.x * 64 + threadIdx.x - 32] = sum;
  }
  if (plant == kNoClusterBarrierAtEnd) return;
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();
}

template <Plant plant>
bool run_ring(int tiles = 7) {
  std::vector<int> host(static_cast<std::size_t>(tiles) * kTile);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<int>(i * 37 % 101);
  std::vector<int> expected(2 * 64);
  for (std::size_t t = 0; t < expected.size(); ++t)
    for (int i = 0; i < tiles; ++i)
      for (int j = 0; j < kTile; ++j)
        expected[t] += (j % 3 + 1) * host[static_cast<std::size_t>(i * kTile + (j + static_cast<int>(t) % 32) % kTile)];
  const Buffer<int> in(host, "in"), out(2 * 64, "out");
  const TensorMap map = device::make_tensor_map<int>({.data = in.data(),
                                                      .rows = static_cast<std::uint64_t>(tiles) * kRows,
                                                      .columns = kColumns,
                                                      .row_stride = kColumns,
                                                      .box_rows = kRows / 2,
                                                      .box_columns = kColumns});
  launch_clusters(ring<plant>, 2, 96, 2, 0, map, out.data(), tiles);
  return out.download() == expected;
}

Bug in_ring(Check check, std::string variable, std::vector<std::string> says, std::vector<std::string> at,
            std::vector<std::string> other = {}) {
  return {"ring", check, std::move(variable), std::move(says), std::move(at), std::move(other)};
}

TEST_CASE("ring without a bug") {
  must_be_right([] { return run_ring<kNone>() && run_ring<kNone>(1); });
  must_be_right([] { return run_ring<kNoneRelaxed>(); });  // the fence publishes the mbarriers
}
TEST_CASE("multicast into a stage that the other block's consumers have not given back") {
  must_be_caught(
      {"ring", Check::kRacecheck, "tile", {" of block ("}, {"copy", "read"}, {"copy", "read"}, Check::kSynccheck, {"copy"}},
      [] { return run_ring<kWaitsForOwnConsumersAlone>(); });
}
TEST_CASE("half of the bytes expected: those of the block's own copy") {
  must_be_caught({"ring", Check::kRacecheck, "tile", {}, {"copy", "read"}, {"copy", "read"}, Check::kSynccheck, {"copy"}},
                 [] { return run_ring<kHalfOfTheBytes>(); });
}
TEST_CASE("one of the destinations expects no bytes") {
  must_be_caught({"ring", Check::kRacecheck, "tile", {}, {"copy", "read"}, {"copy", "read"}, Check::kSynccheck, {"copy"}},
                 [] { return run_ring<kNoBytesInOneBlock>(); });
}
TEST_CASE("too many bytes expected: a deadlock that names the blocks' bytes") {
  must_be_caught(in_ring(Check::kSynccheck, "full",
                         {"deadlock", "block (0,0,0): ", "block (1,0,0): ", "lacks 16 bytes and 0 of 1 arrivals",
                          "as many bytes as the phase's copies"},
                         {"wait for full"}),
                 [] { return run_ring<kTooManyBytes>(); });
}
TEST_CASE("a remote arrival is missing: a deadlock that names the arrivals") {
  must_be_caught(
      in_ring(Check::kSynccheck, "empty", {"deadlock", "of empty (byte 0 of 16), which lacks 0 bytes and 2 of 4 arrivals"},
              {"wait for empty"}, {"wait for full"}),
      [] { return run_ring<kNoRemoteArrival>(); });
}
TEST_CASE("an arrival at the own barrier instead of the other block's") {
  must_be_caught({"ring",
                  Check::kRacecheck,
                  "tile",
                  {},
                  {"copy", "read"},
                  {"copy", "read"},
                  Check::kSynccheck,
                  {"copy", "wait for empty", "arrival"}},
                 [] { return run_ring<kArrivesAtOwnTwice>(); });
}
TEST_CASE("a remote arrival before the read") {
  must_be_caught(in_ring(Check::kRacecheck, "tile", {}, {"copy", "read"}, {"copy", "read"}),
                 [] { return run_ring<kArrivesBeforeRead>(); });
}
TEST_CASE("one lane arrives at the other block's barrier for its warp without __syncwarp") {
  must_be_caught(in_ring(Check::kRacecheck, "tile", {}, {"copy", "read"}, {"copy", "read"}),
                 [] { return run_ring<kArrivesWithoutSyncwarp>(); });
}
TEST_CASE("a rank beyond the cluster") {
  must_be_caught(in_ring(Check::kMemcheck, "empty", {"mbarrier.arrive", "in block 2 of a cluster of 2"}, {"arrival"}),
                 [] { return run_ring<kRankBeyondCluster>(); });
}
TEST_CASE("a mask beyond the cluster, and one without a bit") {
  must_be_caught(in_ring(Check::kMemcheck, "tile", {"mask 0x00000007 in a cluster of 2"}, {"copy"}),
                 [] { return run_ring<kMaskBeyondCluster>(); });
  must_be_caught(in_ring(Check::kMemcheck, "tile", {"mask 0x00000000 "}, {"copy"}), [] { return run_ring<kEmptyMask>(); });
}
TEST_CASE("a mask without the other block, and no multicast at all: bytes are missing") {
  must_be_caught(in_ring(Check::kSynccheck, "full", {"deadlock", "which lacks 512 bytes and 0 of 1 arrivals"}, {"wait for full"}),
                 [] { return run_ring<kMaskWithoutPeer>(); });
  must_be_caught(in_ring(Check::kSynccheck, "full", {"deadlock", "which lacks 512 bytes and 0 of 1 arrivals"}, {"wait for full"}),
                 [] { return run_ring<kNoMulticast>(); });
}
TEST_CASE("initialised, but no cluster barrier before the other block's multicast") {
  must_be_caught({"ring",
                  Check::kRacecheck,
                  "full",
                  {"initialised by thread (0,0,0) of block (", "a cluster barrier between"},
                  {"copy"},
                  {"init of full"},
                  Check::kSynccheck,
                  {"copy"}},
                 [] { return run_ring<kNoClusterBarrierAfterInit>(); });
}
TEST_CASE("no fence.mbarrier_init before a multicast") {
  must_be_caught(in_ring(Check::kRacecheck, "full", {"no fence.mbarrier_init"}, {"copy"}, {"init of full"}),
                 [] { return run_ring<kNoFenceAfterInit>(); });
}
TEST_CASE("mbarriers that one block does not initialise") {
  must_be_caught(
      in_ring(Check::kSynccheck, "", {"where no mbarrier has been initialised"}, {"copy", "wait for empty", "wait for full"}), [] {
        try {
          return run_ring<kNoInitInOneBlock>();
        } catch (interpreter::KernelError& error) {
          CHECK((error.diagnosis.variable == "full" || error.diagnosis.variable == "empty"));
          error.diagnosis.variable = "";
          throw;
        }
      });
}
TEST_CASE("a block ends while the other one may still arrive at its barriers") {
  must_be_caught(in_ring(Check::kRacecheck, "empty", {"race on empty", "a cluster barrier between the last access"}, {"arrival"}),
                 [] { return run_ring<kNoClusterBarrierAtEnd>(); });
}
TEST_CASE("multicast to a block that ends") {
  must_be_caught(in_ring(Check::kRacecheck, "", {" ended", "block"}, {"copy"}), [] {
    try {
      return run_ring<kOneBlockEnds>();
    } catch (interpreter::KernelError& error) {
      interpreter::Diagnosis& d = error.diagnosis;
      CHECK((d.variable == "tile" || d.variable == "full"));
      d.variable = "";
      if (d.what.starts_with("the block ends while a bulk copy to its shared memory is under way")) d.what += ", and has ended";
      throw;
    }
  });
}
TEST_CASE("a store into a stage that goes back by an arrival without release.cluster") {
  must_be_caught(in_ring(Check::kRacecheck, "tile", {}, {"copy", "store", "read"}, {"store", "read"}),
                 [] { return run_ring<kWritesBeforeArrival>(); });
}
TEST_CASE("a wait at the other block's barrier") {
  must_be_caught(in_ring(Check::kMemcheck, "full", {"takes an address of its own block"}, {"wait for full"}),
                 [] { return run_ring<kWaitsAtOthersBarrier>(); });
}
TEST_CASE("init counts the own block's consumers alone") {
  must_be_caught({"ring", Check::kSynccheck, "empty", {"arrivals have come"}, {"arrival"}, {}, Check::kRacecheck, {"copy", "read"}},
                 [] { return run_ring<kInitCountsOwnBlockAlone>(); });
}

// ---------------------------------------------------------------------------------------------------------------- shares
// Each block fills a share, and reads the other one's.
template <Plant plant>
__global__ void shares(int* out) {
  __shared__ int share[64];
  __shared__ int sum, unwritten[4];
  const unsigned t = threadIdx.x, rank = device::cluster_ctarank(), other = rank ^ 1;
  const bool skips = (plant == kOneWarpSkipsBarrier && rank == 1 && t >= 32) || (plant == kOneBlockSkipsBarrier && rank == 1);
  if (t == 0) sum = 0;
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();
  share[t] = static_cast<int>(rank * 64 + t);  // <- write
  if (plant == kBlockBarrierInstead) {
    __syncthreads();
  } else if (plant != kNoBarrierBeforeRead && !skips) {
    if (plant == kArrivesRelaxed)
      device::barrier_cluster_arrive_relaxed();
    else if (plant != kWaitsWithoutArrival)
      device::barrier_cluster_arrive();                            // <- arrival
    if (plant == kArrivesTwice) device::barrier_cluster_arrive();  // <- second arrival
    if (plant == kWritesAfterArrival || (plant == kOneWritesAfterArrival && rank == 0 && t == 5)) share[t] += 1;  // <- late write
    if (plant != kNoWaitBeforeRead) device::barrier_cluster_wait();                                               // <- wait
  }
  if (plant == kOneWarpSkipsBarrier || plant == kOneBlockSkipsBarrier) __syncthreads();  // <- barrier of the block
  const unsigned from = plant == kMapaBeyondCluster ? 2 : other;
  const int* theirs = device::mapa(plant == kMapaOfGlobal ? out : share, from);                   // <- mapa
  if (plant == kMapaOfMapped) theirs = device::mapa(theirs, rank);                                // <- second mapa
  if (plant == kReadsUnwritten && rank == 0 && t == 3) *out = device::mapa(unwritten, other)[1];  // <- read of nothing
  const int read = theirs[plant == kReadsBeyondArray ? t + 1 : t];                                // <- read
  if (plant == kEndsAfterRead) {
    if (t == 0 && rank == 0) *out = read;
    return;
  }
  int* const all = device::mapa(&sum, 0);
  if (plant == kPlainAddInsteadOfAtomic)
    *all += read;  // <- addition
  else if (plant == kAtomicOfBlock)
    atomicAdd_block(all, read);  // <- block's atomic
  else
    atomicAdd(all, read);
  if (plant == kNoWaitBeforeRead) device::barrier_cluster_wait();
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();
  if (rank == 0 && t == 0) *out = sum;
}
template <Plant plant>
bool run_shares() {
  const Buffer<int> out(1, "out");
  launch_clusters(shares<plant>, 2, 64, 2, 0, out.data());
  return out.download()[0] == 128 * 127 / 2;
}
Bug in_shares(Check check, std::string variable, std::vector<std::string> says, std::vector<std::string> at,
              std::vector<std::string> other = {}) {
  return {"shares", check, std::move(variable), std::move(says), std::move(at), std::move(other)};
}
const std::string kNoOrder = "no order between them";

TEST_CASE("shares without a bug") {
  must_be_right([] { return run_shares<kNone>(); });
}
TEST_CASE("a read of distributed shared memory without a cluster barrier") {
  const Bug bug = {"shares",          Check::kRacecheck, "share",           {kNoOrder, "a cluster barrier between"},
                   {"read", "write"}, {"read", "write"}, Check::kInitcheck, {"read"}};
  must_be_caught(bug, [] { return run_shares<kNoBarrierBeforeRead>(); });
  must_be_caught(bug, [] { return run_shares<kBlockBarrierInstead>(); });
}
TEST_CASE("an arrival without a wait before the read") {
  must_be_caught(
      {"shares", Check::kRacecheck, "share", {kNoOrder}, {"read", "write"}, {"read", "write"}, Check::kInitcheck, {"read"}},
      [] { return run_shares<kNoWaitBeforeRead>(); });
}
TEST_CASE("a relaxed arrival publishes no writes") {
  must_be_caught({"shares", Check::kRacecheck, "share", {kNoOrder}, {"read", "write"}, {"read", "write"}},
                 [] { return run_shares<kArrivesRelaxed>(); });
}
TEST_CASE("a write after the arrival") {
  must_be_caught({"shares", Check::kRacecheck, "share", {kNoOrder}, {"read", "late write"}, {"read", "late write"}},
                 [] { return run_shares<kWritesAfterArrival>(); });
  // The others stand still; that does not make this write known.
  must_be_caught({"shares", Check::kRacecheck, "share", {kNoOrder}, {"read", "late write"}, {"read", "late write"}},
                 [] { return run_shares<kOneWritesAfterArrival>(); });
}
TEST_CASE("a block ends while the other one may still use its shared memory") {
  must_be_caught({"shares", Check::kRacecheck, "share", {"a cluster barrier between the last access"}, {"read"}},
                 [] { return run_shares<kEndsAfterRead>(); });
}
TEST_CASE("two arrivals without a wait between, and a wait without an arrival") {
  must_be_caught(in_shares(Check::kSynccheck, "", {"not waited since"}, {"second arrival"}, {"arrival"}),
                 [] { return run_shares<kArrivesTwice>(); });
  must_be_caught(in_shares(Check::kSynccheck, "", {"would wait for itself"}, {"wait"}),
                 [] { return run_shares<kWaitsWithoutArrival>(); });
}
TEST_CASE("a warp passes the cluster's barrier by: a deadlock that names the arrivals") {
  must_be_caught(in_shares(Check::kSynccheck, "",
                           {"deadlock", "for the cluster's barrier, where 96 of 128 threads have arrived", "block (1,0,0)"},
                           {"wait"}, {"barrier of the block"}),
                 [] { return run_shares<kOneWarpSkipsBarrier>(); });
}
TEST_CASE("a block passes the cluster's barrier by") {
  must_be_caught({"shares", Check::kRacecheck, "share", {}, {"read", "write"}, {"read", "write"}, Check::kInitcheck, {"read"}},
                 [] { return run_shares<kOneBlockSkipsBarrier>(); });
}
TEST_CASE("mapa of a block that is not there, of global memory, of another block's memory") {
  must_be_caught(in_shares(Check::kMemcheck, "share", {"mapa of share", "in block 2 of a cluster of 2"}, {"mapa"}),
                 [] { return run_shares<kMapaBeyondCluster>(); });
  must_be_caught(in_shares(Check::kMemcheck, "out", {"mapa at out", "not shared memory"}, {"mapa"}),
                 [] { return run_shares<kMapaOfGlobal>(); });
  must_be_caught(in_shares(Check::kMemcheck, "share", {"an address of its own block"}, {"second mapa"}),
                 [] { return run_shares<kMapaOfMapped>(); });
}
TEST_CASE("a read beyond the other block's array, and of what nobody wrote") {
  must_be_caught(in_shares(Check::kMemcheck, "share", {"out of bounds", "share (byte 256 of 256) of block ("}, {"read"}),
                 [] { return run_shares<kReadsBeyondArray>(); });
  must_be_caught(in_shares(Check::kInitcheck, "unwritten", {"unwritten (byte 4 of 16) of block ("}, {"read of nothing"}),
                 [] { return run_shares<kReadsUnwritten>(); });
}
TEST_CASE("a plain addition, and an atomic of the block alone, to one place of the cluster") {
  must_be_caught(in_shares(Check::kRacecheck, "sum", {kNoOrder}, {"addition"}, {"addition"}),
                 [] { return run_shares<kPlainAddInsteadOfAtomic>(); });
  must_be_caught(in_shares(Check::kRacecheck, "sum", {kNoOrder, "an atomic of its block"}, {"block's atomic"}, {"block's atomic"}),
                 [] { return run_shares<kAtomicOfBlock>(); });
}

// ------------------------------------------------------------------------------------------------------------- handshake
// Block 0 writes into block 1's shared memory and arrives at its barrier.
template <Plant plant>
__global__ void handshake(int* out) {
  __shared__ int box[32];
  __shared__ Mbarrier come;
  const unsigned t = threadIdx.x, rank = device::cluster_ctarank();
  if (t == 0) {
    device::mbarrier_init(&come, 32);
    device::fence_mbarrier_init();
  }
  if (plant == kNoClusterBarrierAtStart) {
    __syncthreads();
  } else {
    device::barrier_cluster_arrive();
    device::barrier_cluster_wait();
  }
  if (rank == 0) {
    int* const theirs = device::mapa(box, 1);
    theirs[t] = static_cast<int>(t);  // <- write
    if (plant == kReleaseOfBlock)
      device::mbarrier_arrive_cluster(&come, 1);
    else
      device::mbarrier_arrive_release_cluster(&come, plant == kArrivesAtOwnBarrier ? 0 : 1);  // <- arrival
    if (plant == kWritesAfterRelease) theirs[t] = 2;                                          // <- late write
  } else {
    if (plant == kAcquireOfBlock)
      device::mbarrier_wait_parity(&come, 0);
    else
      device::mbarrier_wait_parity_acquire_cluster(&come, 0);  // <- wait
    out[t] = box[t ^ 1];                                       // <- read
  }
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();  // <- last wait
}
template <Plant plant>
bool run_handshake() {
  const Buffer<int> out(32, "out");
  launch_clusters(handshake<plant>, 2, 32, 2, 0, out.data());
  const auto found = out.download();
  for (int t = 0; t < 32; ++t)
    if (found[static_cast<std::size_t>(t)] != (t ^ 1)) return false;
  return true;
}
TEST_CASE("handshake without a bug") {
  must_be_right([] { return run_handshake<kNone>(); });
}
TEST_CASE("a write to a block that may not have begun") {
  must_be_caught(
      {"handshake",
       Check::kRacecheck,
       "box",
       {"of block (1,0,0), which may not have begun: written by this thread", "a cluster barrier before the first access"},
       {"write"}},
      [] { return run_handshake<kNoClusterBarrierAtStart>(); });
}
// What has come through global memory says so too.
__global__ void told(int* flag, int* out) {
  __shared__ int box;
  if (device::cluster_ctarank() == 1) {
    __threadfence();
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {
    }
    __threadfence();
    *device::mapa(&box, 1) = 42;
  }
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();
  if (device::cluster_ctarank() == 1) *out = box;
}
TEST_CASE("a write to a block that has said in global memory that it has begun") {
  must_be_right([] {
    const Buffer<int> flag(std::vector<int>(1), "flag"), out(1, "out");
    launch_clusters(told, 2, 1, 2, 0, flag.data(), out.data());
    return out.download()[0] == 42;
  });
}
TEST_CASE("release or acquire for the block alone: what was written need not be seen") {
  const Bug bug = {"handshake", Check::kRacecheck,
                   "box",       {"written by thread (", " of block (0,0,0)", "release.cluster", "acquire.cluster"},
                   {"read"},    {"write"}};
  must_be_caught(bug, [] { return run_handshake<kReleaseOfBlock>(); });
  must_be_caught(bug, [] { return run_handshake<kAcquireOfBlock>(); });
}
TEST_CASE("an arrival at the own barrier: the other block waits in vain") {
  must_be_caught({"handshake",
                  Check::kSynccheck,
                  "come",
                  {"deadlock", "block (1,0,0)", "for phase 0 of come (byte 0 of 8), which lacks 0 bytes and 32 of 32 arrivals",
                   "for the cluster's barrier, where 32 of 64 threads have arrived"},
                  {"wait"},
                  {"last wait"}},
                 [] { return run_handshake<kArrivesAtOwnBarrier>(); });
}
TEST_CASE("a write after the arrival with release") {
  must_be_caught({"handshake", Check::kRacecheck, "box", {kNoOrder}, {"read", "late write"}, {"read", "late write"}},
                 [] { return run_handshake<kWritesAfterRelease>(); });
}

// -------------------------------------------------------------------------------------------------------------- exchange
// In each round, each thread sends four floats to the other block by st.async, and reads what has come.
template <Plant plant>
__global__ void exchange(float* out, int rounds) {
  alignas(16) __shared__ float sums[32 * 4];
  __shared__ Mbarrier come, room;
  const unsigned t = threadIdx.x, rank = device::cluster_ctarank(), other = rank ^ 1;
  if (t == 0) {
    device::mbarrier_init(&come, 1);   // <- init
    device::mbarrier_init(&room, 32);  // <- init
  }
  if (plant == kNone) {  // what st.async overwrites needs no fence between the proxies
    for (int i = 0; i < 4; ++i) sums[4 * t + i] = 0;
  }
  if (plant == kNoClusterBarrierBeforeSums) {
    __syncthreads();
  } else {
    device::barrier_cluster_arrive();
    device::barrier_cluster_wait();
  }
  float sum = 0;
  for (int round = 0; round < rounds; ++round) {
    const unsigned bytes = plant == kTooFewSums ? sizeof sums / 2 : plant == kTooManySums ? 2 * sizeof sums : sizeof sums;
    if (t == 0) device::mbarrier_arrive_expect_tx(&come, bytes);
    if (round > 0 && plant != kNoWaitForRoom) device::mbarrier_wait_parity(&room, (round & 1) ^ 1);  // <- wait for room
    const float x[] = {float(t), float(round), float(rank), 1};
    float* const place = sums + 4 * t + (plant == kMisalignedSums ? 1 : 0);
    auto* const to = reinterpret_cast<device::Floats<4>*>(place);
    if (plant == kBarrierOfOwnBlock)
      interpreter::st_async(device::mapa(to, other), x, sizeof x, &come);  // <- mixed st.async
    else if (plant == kSumsBeyondArray)
      interpreter::st_async(device::mapa(sums, other) + 4 * t + 4, x, sizeof x, device::mapa(&come, other));  // <- st.async beyond
    else if (plant == kSumsToGlobal)
      interpreter::st_async(out, x, sizeof x, device::mapa(&come, other));  // <- st.async to global memory
    else if (plant != kNoSums || rank == 0 || t != 5)
      device::st_async(to, x, &come, other);                                                      // <- st.async
    if (plant != kNoWaitForSums) device::mbarrier_wait_parity_acquire_cluster(&come, round & 1);  // <- wait for sums
    for (int i = 0; i < 4; ++i) sum += sums[4 * (t ^ 1) + i];                                     // <- read
    device::mbarrier_arrive_cluster(&room, other);                                                // <- arrival
  }
  if (plant != kNoWaitForEnd) device::mbarrier_wait_parity(&room, (rounds & 1) ^ 1);  // <- last wait
  out[rank * 32 + t] = sum;
}
template <Plant plant>
bool run_exchange() {
  constexpr int kRounds = 3;
  const Buffer<float> out(64, "out");
  launch_clusters(exchange<plant>, 2, 32, 2, 0, out.data(), kRounds);
  const auto found = out.download();
  for (unsigned i = 0; i < 64; ++i)
    if (found[i] != kRounds * float((i % 32 ^ 1) + (i < 32 ? 1 : 0) + 1) + 3) return false;
  return true;
}
Bug in_exchange(Check check, std::string variable, std::vector<std::string> says, std::vector<std::string> at,
                std::vector<std::string> other = {}) {
  return {"exchange", check, std::move(variable), std::move(says), std::move(at), std::move(other)};
}
TEST_CASE("exchange without a bug: no fence between the proxies is asked for") {
  must_be_right([] { return run_exchange<kNone>(); });
}
TEST_CASE("a read of what st.async brings without a wait") {
  must_be_caught({"exchange",
                  Check::kRacecheck,
                  "sums",
                  {},
                  {"read", "st.async", "arrival"},
                  {"read", "st.async", "arrival"},
                  Check::kInitcheck,
                  {"read"}},
                 [] { return run_exchange<kNoWaitForSums>(); });
}
TEST_CASE("st.async to where the other block still reads") {
  must_be_caught({"exchange",
                  Check::kRacecheck,
                  "sums",
                  {"st.async"},
                  {"st.async", "read"},
                  {"st.async", "read"},
                  Check::kSynccheck,
                  {"st.async", "arrival"}},
                 [] { return run_exchange<kNoWaitForRoom>(); });
}
TEST_CASE("a block ends while the other one may still arrive at its barrier") {
  must_be_caught(in_exchange(Check::kRacecheck, "room", {"a cluster barrier between the last access"}, {"arrival"}),
                 [] { return run_exchange<kNoWaitForEnd>(); });
}
TEST_CASE("fewer and more bytes expected than st.async brings, and a thread that sends nothing") {
  must_be_caught({"exchange",
                  Check::kSynccheck,
                  "come",
                  {"but a st.async that completes there is still under way"},
                  {"st.async"},
                  {},
                  Check::kRacecheck,
                  {"read", "st.async"}},
                 [] { return run_exchange<kTooFewSums>(); });
  must_be_caught(
      in_exchange(Check::kSynccheck, "come", {"deadlock", "which lacks 512 bytes and 0 of 1 arrivals"}, {"wait for sums"}),
      [] { return run_exchange<kTooManySums>(); });
  must_be_caught(
      in_exchange(Check::kSynccheck, "come", {"deadlock", "which lacks 16 bytes and 0 of 1 arrivals"}, {"wait for sums"}),
      [] { return run_exchange<kNoSums>(); });
}
TEST_CASE("st.async with the own block's barrier, misaligned, beyond the array and to global memory") {
  must_be_caught(
      in_exchange(Check::kMemcheck, "sums", {"whose mbarrier come (byte 0 of 8)", "is not of the same block"}, {"mixed st.async"}),
      [] { return run_exchange<kBarrierOfOwnBlock>(); });
  must_be_caught(in_exchange(Check::kMemcheck, "sums", {"misaligned", "a multiple of the 16 bytes"}, {"st.async"}),
                 [] { return run_exchange<kMisalignedSums>(); });
  must_be_caught(
      in_exchange(Check::kMemcheck, "sums", {"st.async to sums (byte 512 of 512)", "out of bounds"}, {"st.async beyond"}),
      [] { return run_exchange<kSumsBeyondArray>(); });
  must_be_caught(in_exchange(Check::kMemcheck, "out", {"which is no shared memory of the cluster"}, {"st.async to global memory"}),
                 [] { return run_exchange<kSumsToGlobal>(); });
}
TEST_CASE("st.async before the other block's barrier is initialised") {
  must_be_caught({"exchange",
                  Check::kRacecheck,
                  "come",
                  {"a cluster barrier between"},
                  {"st.async"},
                  {"init"},
                  Check::kSynccheck,
                  {"st.async"}},
                 [] { return run_exchange<kNoClusterBarrierBeforeSums>(); });
}

// ---------------------------------------------------------------------------------------- one block brings the others down
template <Plant plant>
__global__ void vain(int* out) {
  __shared__ volatile int flag;
  const unsigned t = threadIdx.x, rank = device::cluster_ctarank();
  if (t == 0) flag = 0;
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();
  if (plant == kAssertionOfOneBlock) assert(rank == 0 || t != 7);  // <- assertion
  if (plant == kPollsAtOwnCopy && t == 0) {
    if (rank == 0) {
      flag = 1;
    } else {
      while (flag == 0) {  // <- poll
      }
    }
  }
  if (plant == kNeverEnds && rank == 1) {
    while (t == 3) out[1] += 0;  // <- endless
  }
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();  // <- wait
  if (rank == 0 && t == 0) out[0] = 1;
}
template <Plant plant>
bool run_vain() {
  const Buffer<int> out(std::vector<int>(2), "out");
  launch_clusters(vain<plant>, 2, 32, 2, 0, out.data());
  return out.download()[0] == 1;
}
TEST_CASE("a failed assertion in one block of a cluster") {
  must_be_right([] { return run_vain<kNone>(); });
  must_be_caught({"vain", Check::kException, "", {"assertion failed"}, {"assertion"}},
                 [] { return run_vain<kAssertionOfOneBlock>(); });
  must_be_right([] { return run_vain<kNone>(); });
}
TEST_CASE("a flag that is set in the own block, and polled in another one's") {
  must_be_caught({"vain",
                  Check::kSynccheck,
                  "flag",
                  {"deadlock between blocks", "block (0,0,0)", "block (1,0,0)", "polls flag"},
                  {"poll"},
                  {"wait"}},
                 [] { return run_vain<kPollsAtOwnCopy>(); });
}
TEST_CASE("a thread that never ends, while the other block waits for it") {
  const WithOptions changed([](auto& options) { options.hang_seconds = 0.2; });
  must_be_caught({"vain", Check::kEndless, "", {}, {"endless"}}, [] { return run_vain<kNeverEnds>(); });
}

}  // namespace

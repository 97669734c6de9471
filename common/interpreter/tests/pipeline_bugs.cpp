/// @file
/// Pipelines with one planted bug each, and the diagnosis that they must get in every order; those that no check can see show in
/// the result.
///
/// Each kernel is right as it stands, which is tested too; a Plant breaks it. A comment "// <- label" names a line, and a test says
/// which lines a report may name.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/device/ptx.cuh"
#include "common/interpreter/tests/labelled.h"

using device::Buffer;
using device::launch;
using interpreter::Check;
using labelled::Bug;
using labelled::must_be_right;
using labelled::must_be_wrong;

namespace {

void must_be_caught(const Bug& bug, const std::function<bool()>& start) { labelled::must_be_caught(bug, start, __FILE__); }

enum Plant {
  kNone,
  // ring
  kNoWait,
  kWaitOneGroupLate,
  kWaitBySomeThreads,
  kWaitByOtherWarp,
  kNoBarrier,
  kWarpBarrier,
  kBarrierBeforeWait,
  kRefillBeforeBarrier,
  kRefillTooFarAhead,
  kNoCommitOnTail,
  kCommitBeforeCopy,
  kCommitBySomeThreads,
  kCommitOnceForAll,
  kReadsNextStage,
  kReadsLastStage,
  kCopiesOldTile,
  kOneStageInPrologue,
  kTwoThreadsOnePlace,
  kStageBeyondRing,
  kStoreInFlight,
  kAtomicInFlight,
  kSourceCleared,
  kSourceClearedByNeighbour,
  kTailNeverWaitedFor,
  kExitsUnderWay,
  // ragged
  kNoMask,
  kSourceBytesTooLarge,
  kSourceBytesNegative,
  kSourceBytesInElements,
  kSkipsInsteadOfZeros,
  kDestinationMisaligned,
  kExchanged,
  kSourceShared,
  // product
  kSwizzledCopyOnly,
  kSwizzledLoadOnly,
  kSwizzledByOtherRow,
  kTransposed,
  kMatricesExchanged,
  kLoadInFlight,
  kLoadMisaligned,
  kLoadOutOfBounds,
  kLoadFromGlobal,
  kLoadDiverges,
  kLoadByHalfWarp,
  kLoadAfterExit,
  kMmaDiverges,
  kMmaByHalfWarp,
  // grouped
  kLastGroupNotShrunk,
  kLastGroupClamped,
  kLastGroupUnmasked,
};

// ----------------------------------------------------------------------------------------------------------------- ring
// Sums tiles of 64 chunks, each thread all of them. Copies run kStages - 1 tiles ahead.
template <Plant plant, int kStages>
__global__ void ring(int4* in, int* out, int tiles) {
  alignas(16) __shared__ int4 tile[kStages][64];
  constexpr int kAhead = plant == kRefillTooFarAhead ? kStages : kStages - 1;
  const int t = threadIdx.x;
  const auto commit = [&](int i) {
    if (plant == kNoCommitOnTail && i >= tiles) return;
    if (plant == kCommitBySomeThreads && t % 2 == 0) return;
    if (plant == kCommitOnceForAll && i >= kAhead) return;
    device::cp_async_commit_group();
  };
  const auto copy = [&](int i) {
    if (plant == kCommitBeforeCopy) commit(i);
    const bool all = plant == kTailNeverWaitedFor;  // `in` has kAhead more tiles
    int stage = i % kStages, from = i;
    if (plant == kOneStageInPrologue && i < kAhead) stage = 0;
    if (plant == kCopiesOldTile && i >= kAhead) from = i - 1;
    const int place = plant == kTwoThreadsOnePlace ? t & ~1 : t;
    if (plant == kStageBeyondRing) stage = i % (kStages + 1);
    if (plant == kWaitByOtherWarp) {
      if (t < 32 && i < tiles)
        for (int j = t; j < 64; j += 32) device::cp_async_cg_16(&tile[stage][j], &in[i * 64 + j]);  // <- warp's copy
    } else if (i < tiles || all) {
      device::cp_async_cg_16(&tile[stage][place], &in[from * 64 + t]);  // <- copy
    }
    if (plant == kStoreInFlight && i < tiles) tile[stage][t].x = 0;              // <- store
    if (plant == kAtomicInFlight && i < tiles) atomicAdd(&tile[stage][t].y, 1);  // <- atomic
    if (plant == kSourceCleared && i < tiles) in[i * 64 + t].z = 0;              // <- clear
    if (plant != kCommitBeforeCopy) commit(i);
  };
  const auto wait = [&] {
    if (plant == kNoWait || (plant == kWaitBySomeThreads && t != 5) || (plant == kWaitByOtherWarp && t < 32)) return;
    device::cp_async_wait_group<(plant == kWaitOneGroupLate || plant == kRefillBeforeBarrier ? kAhead : kAhead - 1)>();
  };

  for (int i = 0; i < kAhead; ++i) copy(i);
  if (plant == kExitsUnderWay && t >= 32) return;
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    if (plant == kBarrierBeforeWait) __syncthreads();
    if (plant == kRefillBeforeBarrier) copy(i + kAhead);
    wait();
    if (plant == kWarpBarrier)
      __syncwarp();
    else if (plant != kNoBarrier && plant != kBarrierBeforeWait)
      __syncthreads();  // tile i is complete, and everybody has read tile i - 1, whose stage is refilled
    if (plant != kRefillBeforeBarrier) copy(i + kAhead);
    if (plant == kSourceClearedByNeighbour && i + 1 < tiles) in[(i + 1) * 64 + (t + 1) % 64].w = 0;  // <- neighbour's clear
    const int stage = (plant == kReadsNextStage ? i + 1 : plant == kReadsLastStage ? i + kStages - 1 : i) % kStages;
    for (int j = 0; j < 64; ++j) {
      const int4 x = tile[stage][(t + j) % 64];  // <- read
      sum += (i + 1) * (x.x + 2 * x.y + 3 * x.z + 4 * x.w);
    }
  }
  if (plant == kTailNeverWaitedFor) sum += tile[tiles % kStages][t].x;  // <- late read
  out[t] = sum;
}

template <Plant plant, int kStages = 3>
bool run_ring(int tiles = 7) {
  std::vector<int> host(static_cast<std::size_t>(tiles + kStages) * 256);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<int>(i * 37 % 101);
  int expected = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tiles) * 256; ++i)
    expected += static_cast<int>(i / 256 + 1) * static_cast<int>(i % 4 + 1) * host[i];
  Buffer<int> in(host, "in"), out(64, "out");
  launch(ring<plant, kStages>, 1, 64, 0, reinterpret_cast<int4*>(in.data()), out.data(), tiles);
  return out.download() == std::vector<int>(64, expected);
}
const std::string kInFlight = "before its cp.async was waited for";
Bug in_ring(std::vector<std::string> says, std::vector<std::string> at, std::vector<std::string> other) {
  return {"ring", Check::kRacecheck, "tile", std::move(says), std::move(at), std::move(other)};
}

TEST_CASE("ring without a bug") {
  must_be_right([] { return run_ring<kNone, 2>() && run_ring<kNone, 3>() && run_ring<kNone, 4>(1) && run_ring<kNone, 5>(0); });
}
TEST_CASE("no wait") {
  must_be_caught(in_ring({kInFlight, "issued the copy"}, {"read", "copy"}, {"copy"}), [] { return run_ring<kNoWait>(); });
}
TEST_CASE("wait for one group too few") {
  must_be_caught(in_ring({kInFlight}, {"read"}, {"copy"}), [] { return run_ring<kWaitOneGroupLate>(); });
  must_be_caught(in_ring({kInFlight}, {"read"}, {"copy"}), [] { return run_ring<kWaitOneGroupLate, 2>(); });
}
TEST_CASE("one thread waits for all") {
  must_be_caught(in_ring({kInFlight}, {"read"}, {"copy"}), [] { return run_ring<kWaitBySomeThreads>(); });
}
TEST_CASE("one warp copies, the other waits") {
  must_be_caught(in_ring({kInFlight}, {"read"}, {"warp's copy"}), [] { return run_ring<kWaitByOtherWarp>(); });
}
TEST_CASE("wait without a barrier") {
  must_be_caught(in_ring({}, {"read", "copy"}, {"read", "copy"}), [] { return run_ring<kNoBarrier>(); });
}
TEST_CASE("__syncwarp where the tile is the block's") {
  must_be_caught(in_ring({}, {"read", "copy"}, {"read", "copy"}), [] { return run_ring<kWarpBarrier>(); });
}
TEST_CASE("barrier before the wait instead of after it") {
  must_be_caught(in_ring({}, {"read"}, {"copy"}), [] { return run_ring<kBarrierBeforeWait>(); });
}
TEST_CASE("refill before the barrier") {
  must_be_caught(in_ring({}, {"read", "copy"}, {"read", "copy"}), [] { return run_ring<kRefillBeforeBarrier>(); });
}
TEST_CASE("refill of the stage that is being read: one tile too far ahead") {
  must_be_caught(in_ring({}, {"read", "copy"}, {"read", "copy"}), [] { return run_ring<kRefillTooFarAhead>(); });
}
TEST_CASE("no commit on the tail") {
  must_be_caught(in_ring({kInFlight, "older groups"}, {"read"}, {"copy"}), [] { return run_ring<kNoCommitOnTail>(); });
}
TEST_CASE("commit before the copy instead of after it") {
  must_be_caught(in_ring({kInFlight}, {"read"}, {"copy"}), [] { return run_ring<kCommitBeforeCopy>(); });
}
TEST_CASE("some threads do not commit") {
  must_be_caught(in_ring({kInFlight}, {"read"}, {"copy"}), [] { return run_ring<kCommitBySomeThreads>(); });
}
TEST_CASE("commits in the prologue only") {
  must_be_caught(in_ring({kInFlight}, {"read"}, {"copy"}), [] { return run_ring<kCommitOnceForAll>(); });
}
TEST_CASE("reads the stage after the right one") {
  must_be_caught(in_ring({kInFlight}, {"read"}, {"copy"}), [] { return run_ring<kReadsNextStage>(); });
}
TEST_CASE("reads the stage before the right one") {
  must_be_caught(in_ring({kInFlight}, {"read"}, {"copy"}), [] { return run_ring<kReadsLastStage>(); });
}
TEST_CASE("copies the tile before the right one: only the result shows it") {
  must_be_wrong([] { return run_ring<kCopiesOldTile>(); });
}
TEST_CASE("two copies in flight to one place") {
  must_be_caught(in_ring({kInFlight, "written", "this thread issued the copy"}, {"copy"}, {"copy"}),
                 [] { return run_ring<kOneStageInPrologue>(); });
}
TEST_CASE("two threads copy to one place") {
  must_be_caught(in_ring({kInFlight, "written", "issued the copy"}, {"copy"}, {"copy"}),
                 [] { return run_ring<kTwoThreadsOnePlace>(); });
}
TEST_CASE("a stage beyond the ring") {
  const Bug bug{"ring", Check::kMemcheck, "tile", {"index 3 out of bounds"}, {"copy"}, {}};
  must_be_caught(bug, [] { return run_ring<kStageBeyondRing>(); });
}
TEST_CASE("store to a place that is being copied to") {
  must_be_caught(in_ring({kInFlight, "written"}, {"store"}, {"copy"}), [] { return run_ring<kStoreInFlight>(); });
}
TEST_CASE("atomic on a place that is being copied to") {
  must_be_caught(in_ring({kInFlight, "accessed atomically"}, {"atomic"}, {"copy"}), [] { return run_ring<kAtomicInFlight>(); });
}
TEST_CASE("source overwritten while it is copied, by the thread itself") {
  const Bug bug{"ring", Check::kRacecheck, "in", {"race on in", "source of a cp.async"}, {"copy"}, {"clear"}};
  must_be_caught(bug, [] { return run_ring<kSourceCleared>(); });
}
TEST_CASE("source overwritten while it is copied, by another thread, with a barrier between") {
  const Bug bug{"ring", Check::kRacecheck, "in", {"race on in"}, {"copy", "neighbour's clear"}, {"copy", "neighbour's clear"}};
  must_be_caught(bug, [] { return run_ring<kSourceClearedByNeighbour>(); });
}
TEST_CASE("a last copy that nobody waits for is read") {
  must_be_caught(in_ring({kInFlight}, {"late read"}, {"copy"}), [] { return run_ring<kTailNeverWaitedFor>(); });
}
TEST_CASE("threads exit while their copies are under way") {
  must_be_caught(in_ring({kInFlight}, {"read"}, {"copy"}), [] { return run_ring<kExitsUnderWay>(); });
}
TEST_CASE("without racecheck, initcheck finds the missing wait") {
  const WithOptions unchecked([](interpreter::Options& o) { o.racecheck = false; });
  const Bug bug{"ring", Check::kInitcheck, "tile", {"uninitialised"}, {"read"}, {}};
  must_be_caught(bug, [] { return run_ring<kNoWait>(); });
}

// --------------------------------------------------------------------------------------------------------------- ragged
// A warp sums rows whose lengths shrink by 8; a row's place is as long as the longest row, and rows are padded with zeros there.
template <Plant plant>
__global__ void ragged(float* in, int pitch, int rows, int n, float* out) {
  float* const row = device::dynamic_smem<float>();
  const int lane = threadIdx.x, first = 4 * lane;
  float sum = 0;
  for (int r = 0; r < rows; ++r, in += pitch, n -= 8) {
    const int bytes = max(0, min(n - first, 4)) * 4;
    if (plant == kNoMask) {
      device::cp_async_cg_16(row + first, in + first);  // <- unmasked copy
    } else if (plant == kSourceBytesTooLarge) {
      device::cp_async_cg_16(row + first, in + first, max(0, n - first) * 4);  // <- large copy
    } else if (plant == kSourceBytesNegative) {
      device::cp_async_cg_16(row + first, in + first, min(n - first, 4) * 4);  // <- negative copy
    } else if (plant == kSourceBytesInElements) {
      device::cp_async_cg_16(row + first, in + first, bytes / 4);
    } else if (plant == kSkipsInsteadOfZeros) {
      if (first < n) device::cp_async_cg_16(row + first, in + first, bytes);
    } else if (plant == kDestinationMisaligned) {
      if (lane < 31) device::cp_async_cg_16(row + first + 1, in + first, bytes);  // <- shifted copy
    } else if (plant == kExchanged) {
      device::cp_async_cg_16(in + first, row + first, bytes);  // <- exchanged copy
    } else if (plant == kSourceShared) {
      device::cp_async_cg_16(row + first, row + first, bytes);  // <- shared copy
    } else {
      device::cp_async_cg_16(row + first, in + first, bytes);  // <- copy
    }
    device::cp_async_commit_group();
    device::cp_async_wait_group<0>();
    __syncwarp();
    for (int i = 0; i < 128; ++i) sum += row[(i + lane) % 128];  // <- read
    __syncwarp();
  }
  out[lane] = sum;
}
template <Plant plant>
bool run_ragged(int n, int pitch = 128, std::size_t shared_bytes = 512) {
  constexpr int kRows = 3;
  std::vector<float> host(static_cast<std::size_t>((kRows - 1) * pitch + n - (kRows - 1) * 8));
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i % 13 + 1);
  float expected = 0;
  for (int r = 0; r < kRows; ++r)
    for (int i = 0; i < n - 8 * r; ++i) expected += host[static_cast<std::size_t>(r * pitch + i)];
  Buffer<float> in(host, "in"), out(32, "out");
  launch(ragged<plant>, 1, 32, shared_bytes, in.data(), pitch, kRows, n, out.data());
  return out.download() == std::vector<float>(32, expected);
}
Bug in_ragged(std::string variable, std::vector<std::string> says, std::string at) {
  return {"ragged", Check::kMemcheck, std::move(variable), std::move(says), {std::move(at)}, {}};
}
const std::string kDynamic = "dynamic shared memory";

TEST_CASE("ragged rows without a bug") {
  must_be_right([] { return run_ragged<kNone>(128) && run_ragged<kNone>(101) && run_ragged<kNone>(18, 20); });
}
TEST_CASE("source out of bounds: ragged tile without a mask") {
  must_be_caught(in_ragged("in", {"cp.async of 16 bytes from in", "out of bounds"}, "unmasked copy"),
                 [] { return run_ragged<kNoMask>(121); });
}
TEST_CASE("source_bytes larger than the copy") {
  must_be_caught(in_ragged("in", {"with source_bytes "}, "large copy"), [] { return run_ragged<kSourceBytesTooLarge>(121); });
}
TEST_CASE("source_bytes negative") {
  must_be_caught(in_ragged("in", {"with source_bytes -"}, "negative copy"), [] { return run_ragged<kSourceBytesNegative>(101); });
}
TEST_CASE("source_bytes in elements: only the result shows it") {
  must_be_wrong([] { return run_ragged<kSourceBytesInElements>(101); });
}
TEST_CASE("chunks beyond the edge are left out instead of filled with zeros: nothing was there") {
  must_be_caught({"ragged", Check::kInitcheck, kDynamic, {"uninitialised"}, {"read"}, {}},
                 [] { return run_ragged<kSkipsInsteadOfZeros>(101); });
}
TEST_CASE("chunks beyond the edge are left out instead of filled with zeros: the last row is still there") {
  must_be_wrong([] { return run_ragged<kSkipsInsteadOfZeros>(128); });
}
TEST_CASE("source that nobody has written") {
  must_be_caught({"ragged", Check::kInitcheck, "in", {"uninitialised"}, {"copy"}, {}}, [] {
    Buffer<float> in(3 * 128, "in"), out(32, "out");
    launch(ragged<kNone>, 1, 32, 512, in.data(), 128, 3, 128, out.data());
    return true;
  });
}
TEST_CASE("source in the host's memory") {
  must_be_caught(in_ragged("", {"not global memory"}, "copy"), [] {
    std::vector<float4> in(32);
    Buffer<float> out(32, "out");
    launch(ragged<kNone>, 1, 32, 512, reinterpret_cast<float*>(in.data()), 128, 1, 128, out.data());
    return true;
  });
}
TEST_CASE("source misaligned: an odd pitch") {
  must_be_caught(in_ragged("in", {"from in", "misaligned"}, "copy"), [] { return run_ragged<kNone>(101, 123); });
}
TEST_CASE("destination misaligned") {
  must_be_caught(in_ragged(kDynamic, {"to dynamic shared memory (byte ", "misaligned"}, "shifted copy"),
                 [] { return run_ragged<kDestinationMisaligned>(101); });
}
TEST_CASE("destination out of bounds: too little shared memory") {
  must_be_caught(in_ragged(kDynamic, {"to dynamic shared memory (byte 496 of 500)", "out of bounds"}, "copy"),
                 [] { return run_ragged<kNone>(128, 128, 500); });
}
TEST_CASE("source and destination exchanged") {
  must_be_caught(in_ragged("in", {"cp.async of 16 bytes to in"}, "exchanged copy"), [] { return run_ragged<kExchanged>(128); });
}
TEST_CASE("copy from shared to shared memory") {
  must_be_caught(in_ragged(kDynamic, {"not global memory"}, "shared copy"), [] { return run_ragged<kSourceShared>(128); });
}

// -------------------------------------------------------------------------------------------------------------- product
// d (32 x 8) = a (32 x 64 · tiles, row by row) · b (as many x 8, column by column). Each of two warps computes 16 rows. Tiles have
// 64 columns: 8 chunks, which XOR places.
template <Plant plant>
__global__ void product(const std::uint16_t* a, const std::uint16_t* b, float* d, int tiles) {
  std::uint16_t *const sa = device::dynamic_smem<std::uint16_t>(), *const sb = sa + 32 * 64;
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  const auto place = [](int row, int chunk, bool swizzles) { return row * 64 + (chunk ^ (swizzles ? row % 8 : 0)) * 8; };
  const auto to = [&](int row, int chunk) { return place(row, chunk, plant != kSwizzledLoadOnly); };
  const auto from = [&](int row, int chunk) {
    if (plant == kSwizzledByOtherRow) return row * 64 + (chunk ^ (row / 2 % 8)) * 8;
    return place(row, chunk, plant != kSwizzledCopyOnly);
  };
  const int pitch = 64 * tiles;
  float rd[4] = {};
  if (plant == kLoadAfterExit && t == 63) return;
  for (int tile = 0; tile < tiles; ++tile) {
    for (int i = t; i < 32 * 8; i += 64)
      device::cp_async_cg_16(sa + to(i / 8, i % 8), a + i / 8 * pitch + tile * 64 + i % 8 * 8);  // <- copy of a
    device::cp_async_cg_16(sb + to(t / 8, t % 8), b + t / 8 * pitch + tile * 64 + t % 8 * 8);    // <- copy of b
    if (plant == kLoadAfterExit && t == 62)                                                      // who has exited copies nothing
      device::cp_async_cg_16(sb + to(7, 7), b + 7 * pitch + tile * 64 + 7 * 8);
    if (plant == kLoadAfterExit && t == 62)
      for (int i = 63; i < 32 * 8; i += 64)
        device::cp_async_cg_16(sa + to(i / 8, i % 8), a + i / 8 * pitch + tile * 64 + i % 8 * 8);
    device::cp_async_commit_group();
    if (plant != kLoadInFlight) device::cp_async_wait_group<0>();
    __syncthreads();
    for (int k = 0; k < 4; ++k) {
      std::uint32_t ra[4], rb[2];
      const int m_half = plant == kMatricesExchanged ? lane / 16 : lane / 8 % 2;
      const int k_half = plant == kMatricesExchanged ? lane / 8 % 2 : lane / 16;
      const std::uint16_t* row = sa + from(16 * warp + 8 * m_half + lane % 8, 2 * k + k_half);
      if (plant == kLoadMisaligned) row += 4;
      if (plant == kLoadFromGlobal) row = a;
      if (plant == kLoadDiverges) {
        if (lane % 2 == 0) {
          device::ldmatrix_x4(ra, row);  // <- even load
          rd[0] += 1;
        } else {
          device::ldmatrix_x4(ra, row + 8 * (k % 2));  // <- odd load
          rd[1] += 1;
        }
      } else if (plant != kLoadByHalfWarp || lane < 16) {
        device::ldmatrix_x4(ra, row);  // <- load
      }
      const std::uint16_t* column = sb + from(lane % 8, 2 * k + lane / 8 % 2);
      if (plant == kLoadOutOfBounds) column += 64;
      if (plant == kTransposed)
        device::ldmatrix_x2_trans(rb, column);
      else
        device::ldmatrix_x2(rb, column);  // <- load of b
      if (plant == kMmaDiverges) {
        if (lane < 8) {
          device::mma_m16n8k16<__half>(rd, ra, rb);  // <- low mma
          d[lane] = rd[0];
        } else {
          rd[3] += 1;
          device::mma_m16n8k16<__half>(rd, ra, rb);  // <- high mma
        }
      } else if (plant == kMmaByHalfWarp) {
        if (lane >= 16) device::mma_m16n8k16<__half>(rd, ra, rb);  // <- half mma
        __syncwarp();                                              // <- wait of the others
      } else {
        device::mma_m16n8k16<__half>(rd, ra, rb);
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) d[(16 * warp + lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = rd[i];
}
template <Plant plant>
bool run_product(int tiles = 2) {
  const int k = 64 * tiles;
  const auto value = [](int i) { return i * 29 % 17 - 8; };
  const auto operand = [&](int n) {
    std::vector<std::uint16_t> v;
    for (int i = 0; i < n; ++i) v.push_back(std::bit_cast<std::uint16_t>(__half(static_cast<float>(value(i)))));
    return v;
  };
  std::vector<float> expected;
  for (int m = 0; m < 32; ++m)
    for (int n = 0; n < 8; ++n) {
      int sum = 0;
      for (int i = 0; i < k; ++i) sum += value(m * k + i) * value(n * k + i);
      expected.push_back(static_cast<float>(sum));
    }
  Buffer<std::uint16_t> a(operand(32 * k), "a"), b(operand(8 * k), "b");
  Buffer<float> d(256, "d");
  launch(product<plant>, 1, 64, (32 + 8) * 64 * 2, a.data(), b.data(), d.data(), tiles);
  return d.download() == expected;
}

TEST_CASE("product without a bug") {
  must_be_right([] { return run_product<kNone>(1) && run_product<kNone>(3); });
}
TEST_CASE("swizzle on one side, or by different rows: only the result shows it") {
  must_be_wrong([] { return run_product<kSwizzledCopyOnly>(); });
  must_be_wrong([] { return run_product<kSwizzledLoadOnly>(); });
  must_be_wrong([] { return run_product<kSwizzledByOtherRow>(); });
}
TEST_CASE("a fragment is transposed, or its matrices are exchanged: only the result shows it") {
  must_be_wrong([] { return run_product<kTransposed>(); });
  must_be_wrong([] { return run_product<kMatricesExchanged>(); });
}
TEST_CASE("ldmatrix of bytes in flight") {
  must_be_caught({"product", Check::kRacecheck, kDynamic, {kInFlight, "read"}, {"load"}, {"copy of a"}},
                 [] { return run_product<kLoadInFlight>(); });
}
TEST_CASE("ldmatrix: misaligned row") {
  must_be_caught({"product", Check::kMemcheck, kDynamic, {"misaligned", "16 bytes"}, {"load"}, {}},
                 [] { return run_product<kLoadMisaligned>(); });
}
TEST_CASE("ldmatrix: row out of bounds") {
  must_be_caught({"product", Check::kMemcheck, kDynamic, {"out of bounds", "read of 16 bytes"}, {"load of b"}, {}},
                 [] { return run_product<kLoadOutOfBounds>(); });
}
TEST_CASE("ldmatrix from global memory") {
  must_be_caught({"product", Check::kMemcheck, "a", {"ldmatrix from a", "not shared memory"}, {"load"}, {}},
                 [] { return run_product<kLoadFromGlobal>(); });
}
TEST_CASE("ldmatrix: lanes execute different ones") {
  must_be_caught({"product", Check::kSynccheck, "", {"divergent ldmatrix"}, {"even load", "odd load"}, {"even load", "odd load"}},
                 [] { return run_product<kLoadDiverges>(); });
}
TEST_CASE("ldmatrix by half a warp") {
  must_be_caught({"product", Check::kSynccheck, "", {"ldmatrix"}, {"load", "load of b"}, {}},
                 [] { return run_product<kLoadByHalfWarp>(); });
}
TEST_CASE("ldmatrix after a lane has exited") {
  must_be_caught({"product", Check::kSynccheck, "", {"ldmatrix by lanes 0x7fffffff", "exited"}, {"load"}, {}},
                 [] { return run_product<kLoadAfterExit>(); });
}
TEST_CASE("mma: lanes execute different ones") {
  must_be_caught({"product", Check::kSynccheck, "", {"divergent mma"}, {"low mma", "high mma"}, {"low mma", "high mma"}},
                 [] { return run_product<kMmaDiverges>(); });
}
TEST_CASE("mma by half a warp") {
  must_be_caught({"product", Check::kSynccheck, "", {"deadlock", "mma"}, {"half mma", "wait of the others"}, {}},
                 [] { return run_product<kMmaByHalfWarp>(); });
}

// ----------------------------------------------------------------------------------------------------------- elect.sync
template <bool kLanesMissing>
__global__ void elected_writes(float* out) {
  __shared__ float sums[1];
  if (kLanesMissing && threadIdx.x > 15) return;
  if (device::elect_sync()) sums[0] = 1;  // <- write
  out[threadIdx.x] = sums[0];             // <- read
}
TEST_CASE("elect.sync by half a warp") {
  must_be_caught({"elected_writes", Check::kSynccheck, "", {"elect.sync by lanes 0x0000ffff of the warp alone"}, {"write"}, {}},
                 [] {
                   Buffer<float> out(32, "out");
                   launch(elected_writes<true>, 1, 32, 0, out.data());
                   return false;
                 });
}
TEST_CASE("elect.sync orders nothing: the others read what the elected lane writes") {
  must_be_caught({"elected_writes", Check::kRacecheck, "sums", {"race"}, {"write", "read"}, {"write", "read"}}, [] {
    Buffer<float> out(32, "out");
    launch(elected_writes<false>, 1, 32, 0, out.data());
    return false;
  });
}

// -------------------------------------------------------------------------------------------------------------- grouped
// A block computes 32 elements of c. Blocks go down groups of 3 rows; the last group may have fewer.
template <Plant plant>
__global__ void grouped(float* c, int tiles_m, int tiles_n) {
  constexpr int kGroupM = 3;
  const int block = blockIdx.x, first_m = block / (kGroupM * tiles_n) * kGroupM, in_group = block % (kGroupM * tiles_n);
  const int rows = plant == kNone ? min(kGroupM, tiles_m - first_m) : kGroupM;
  int m = first_m + in_group % rows;
  const int n = in_group / rows;
  if (plant == kLastGroupNotShrunk && m >= tiles_m) return;
  if (plant == kLastGroupClamped) m = min(m, tiles_m - 1);
  c[(m * tiles_n + n) * 32 + threadIdx.x] = static_cast<float>(m * 100 + n);  // <- store
}
template <Plant plant>
std::vector<float> run_grouped(int tiles_m, int tiles_n) {
  const auto tiles = static_cast<unsigned>(tiles_m * tiles_n);
  Buffer<float> c(tiles * 32, "c");
  launch(grouped<plant>, tiles, 32, 0, c.data(), tiles_m, tiles_n);
  return c.download();
}
TEST_CASE("grouped order without a bug") {
  must_be_right([] {
    for (const int tiles_m : {1, 2, 3, 4, 5, 7}) {
      const std::vector<float> c = run_grouped<kNone>(tiles_m, 5);
      for (std::size_t i = 0; i < c.size(); ++i)
        if (c[i] != static_cast<float>(i / 32 / 5 * 100 + i / 32 % 5)) return false;
    }
    return true;
  });
}
TEST_CASE("last group not shrunk: tiles that nobody writes are NaN") {
  in_all_orders([] {
    const std::vector<float> c = run_grouped<kLastGroupNotShrunk>(4, 5);
    CHECK(std::any_of(c.begin(), c.end(), [](float x) { return std::isnan(x); }));
  });
}
TEST_CASE("last group clamped: tiles that several blocks write") {
  must_be_caught({"grouped", Check::kRacecheck, "c", {"race on c", "of block"}, {"store"}, {"store"}},
                 [] { return run_grouped<kLastGroupClamped>(4, 5).empty(); });
}
TEST_CASE("last group not shrunk: tiles out of bounds") {
  must_be_caught({"grouped", Check::kMemcheck, "c", {"out of bounds"}, {"store"}, {}},
                 [] { return run_grouped<kLastGroupUnmasked>(4, 5).empty(); });
}

}  // namespace

#include "common/harness/tuning/tuning_model.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <initializer_list>
#include <iterator>

#include "common/gemm/matrix.h"
#include "common/gemm/two_widths.h"
#include "common/harness/problem/problem.h"
#include "common/harness/program/text.h"

namespace harness {
namespace {

constexpr int kWarp = 32, kWarpgroup = 128;
constexpr int kSchedulers = 4;      // of an SM
constexpr int kMaxRegisters = 255;  // of a thread; a kernel needs about kOtherRegisters beside fragments
constexpr int kOtherRegisters = 24;
constexpr int kRegisterUnit = 256;                  // a warp's registers are given out in such units
constexpr std::size_t kReservedSharedBytes = 1024;  // the driver's own share of each block, from compute capability 8.0 on
constexpr double kSharedBytesPerClock = 128, kL2BytesPerClock = 64;  // of an SM

// Ceilings are measured at the power limit, where clocks are lower than in a short kernel.
constexpr double kHeadroom = 1.25;

// For the estimate alone, in clocks: a trip to the L2 cache, and what a block does before its first product and after its last.
constexpr double kL2Latency = 800, kPrologueAndEpilogue = 2500;
// The same of a block with wgmma; its wait for each tile along k; and how much of shared memory's traffic takes time of its own.
// Fitted to the times of 10's tiles on an H200 (docs/results/h200/wgmma-f16.json).
constexpr double kWgmmaPrologueAndEpilogue = 4800, kWgmmaWait = 490, kWgmmaShared = 0.8;
// Of kernels that copy by boxes, in clocks, as all that follows up to kFmaSharedBytes. Searched with tools/fit: the choice is to be
// good at random shapes, models' weights and squares on an H200, and at squares on an H100; library_test.cpp says how good it is at
// those, and at shapes that the search had not seen. What an SM does for a step along k, of 64 or
// more: products, and a wait for each; of one warpgroup alone, products take longer and the wait is shorter; in those of a cluster
// that splits k, too.
constexpr double kOneWarpgroup = 1.15, kWait = 132, kOneWait = 61, kSplitWait = 90;
// The same of step 20, whose products follow each other with fewer instructions between them, but read more of shared memory; its
// wait: of blocks alone, in pairs, in more.
constexpr double kColumnsProducts = 1.05, kColumnsWait = 78, kColumnsPairWait = 67, kColumnsClusterWait = 53;
// Shared memory as the warpgroups read it, in bytes: of blocks that stay, and of others.
constexpr double kStayingShared = 88, kSplitShared = 55;
// What the SM asks the L2 cache for, each row of 128 bytes by its requests: of one warpgroup, of several, of blocks that do not
// stay, and of step 20.
constexpr double kOneRequest = 0.7, kRequest = 1.6, kSplitRequest = 1.39, kAsking = 195, kColumnsRequest = 0.94,
                 kColumnsAsking = 150;
// Rows that begin with a line take a little less than their one request.
constexpr double kWholeLine = 0.86;
// What all SMs together ask it for at the same time, requests for each clock; an operand's tile that several of them ask for counts
// once, and for each more of them so much of that.
constexpr double kRequestsPerClock = 30, kAskedAgain = 0.45, kAskedAgainOfDram = 0.55;
// A trip to the L2 cache; and more of it to DRAM. So many bytes come from DRAM. Operands are there, and not in the cache, where all
// three matrices take more than that part of it: it has two parts, and both hold what all SMs read.
constexpr double kTrip = 530, kTripToDram = 1040, kDramBytes = 2250, kCached = 0.58, kCachedSharply = 6;
// A row of a box that lies beyond the matrix is written as zeros. It takes time of a block, and where each SM has one, of all.
constexpr double kRowOfZeros = 7;
// A launch; the exchange between blocks that share a tile. What a tile's end takes: of two warpgroups that take turns, of
// warpgroups that have 64 columns of all rows, and of others. So many bytes of C go out of an SM.
constexpr double kLaunch = 1400, kSharedLaunch = 110, kTurnsEnd = 1400, kColumnsEnd = 2470, kTileEnd = 2760, kStoredBytes = 12.7;
// The next launch begins early on SMs that are idle. Where more than half of them are not, its beginning is seen.
constexpr double kSeenBeginning = 1170, kSeenSharedBeginning = 280;
// Where blocks of a cluster split k: a launch; each block of it, for they begin one after the other; each round, and its exchange
// of sums; and bytes of C.
// Where blocks that share a tile also split k: the exchange of sums, and that of each block of the cluster; and bytes of sums.
constexpr double kSumsExchange = 2600, kOfCluster = 72, kExchangedBytes = 63;
constexpr double kSplitLaunch = 460, kLaunchOfBlock = 15, kRound = 200, kExchange = 506, kAnotherRound = 140,
                 kSplitStoredBytes = 6.3;
constexpr int kPanelColumns = 64;
constexpr int kGroup = 8;  // rows of tiles that are computed together
// A cluster lies within one part of the GPU, a GPC, and the SMs of some are no multiple of four: of an H200's 132 SMs, 120 hold
// clusters of four or eight (cudaOccupancyMaxActiveClusters). Pairs lose nothing.
constexpr int kPair = 2, kSmsOfLargeClusters = 10, kOfSms = 11;
constexpr double kOverlap = 8;  // of units that work at the same time: the norm of their times
// Multiply-adds read floats from shared memory, and lanes of a warp share a quarter of them.
constexpr double kFmaSharedBytes = 4 * 0.75;

// Accumulators, and what is multiplied: two sets of fragments of A and B, of which each 16 x 16 takes four; with multiply-adds a
// column and a row; with wgmma nothing.
int fragment_registers(const TileNumbers& t) {
  switch (t.unit) {
    case Unit::kFma: return t.warp_m * t.warp_n + t.warp_m + t.warp_n;
    case Unit::kWgmma: return t.warp_m * t.warp_n / (4 * kWarp);
    case Unit::kMma: break;
  }
  return t.warp_m * t.warp_n / kWarp + 2 * 4 * (t.warp_m + t.warp_n) / 16;
}

int registers_of_block(const TileNumbers& t, const std::optional<KernelResources>& kernel) {
  const int of_thread = kernel ? kernel->registers : std::min(fragment_registers(t) + kOtherRegisters, kMaxRegisters);
  return t.threads / kWarp * ((of_thread * kWarp + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit);
}

double real(std::integral auto x) { return static_cast<double>(x); }

// Units that work at the same time: as long as the slowest of them, and a little longer where several are about as slow.
double norm(std::initializer_list<double> times) {
  double sum = 0;
  for (const double each : times) sum += std::pow(each, kOverlap);
  return std::pow(sum, 1 / kOverlap);
}

// How many SMs hold clusters of so many blocks.
int sms_for_clusters(const GpuLimits& gpu, int blocks) {
  return blocks > kPair ? gpu.multiprocessors * kSmsOfLargeClusters / kOfSms : gpu.multiprocessors;
}

// An operand as one block's tile needs it.
struct Slice {
  double rows;      // of 128 bytes, for 64 of k
  double requests;  // for them
  double tiles;     // that the operand has, of clusters
  double zeros;     // rows beyond the matrix, of the last tile; along k alone
};

// @param extent of the matrix  @param block of the tile  @param sharing blocks of a cluster that share it  @param apart ... that do
// not
Slice slice(std::int64_t extent, int block, int sharing, int apart, bool along_k, double requests) {
  const std::int64_t whole = std::int64_t{block} * apart, tiles = gemm::ceil_div<std::int64_t>(extent, whole);
  const int panels = along_k ? block : gemm::ceil_div(block, kPanelColumns) * kPanelColumns;
  const double inside = real(extent) / real(std::max<std::int64_t>(1, tiles) * whole);
  // Tiles next to each other begin where the matrix's lines do, or elsewhere.
  if (!along_k && block % kPanelColumns != 0) requests = std::max(requests, requests_for_rows(0, block * std::int64_t{2}));
  const double rows = panels * inside / sharing;
  return {rows, rows * (requests > 1 ? requests : kWholeLine), real(tiles), along_k ? real((block - extent % block) % block) : 0};
}

// How a problem is cut, and how the GPU computes it.
struct Plan {
  int cluster;             // blocks that run together, since they share tiles or the parts of k
  std::int64_t slots;      // clusters at the same time, where an SM has one block
  gemm::TwoWidths cut;     // of C, into tiles of a cluster
  std::int64_t turns;      // that the SM with the most of them has
  double narrow, columns;  // of its tiles, on average: how many are narrow, and their columns
  std::int64_t steps;      // along k, of a block
};

Plan plan_of(const TileNumbers& t, const Spec& spec, const GpuLimits& gpu) {
  const int cluster = t.sharing_a * t.sharing_b * (t.clusters || t.stays ? t.splits : 1), sms = sms_for_clusters(gpu, cluster);
  const std::int64_t slots = std::max(1, sms / cluster), parts = t.clusters || t.stays ? 1 : t.splits;
  const std::int64_t tiles_m = gemm::ceil_div<std::int64_t>(spec.m, t.block_m * t.sharing_b);
  const gemm::TwoWidths cut =
      gemm::in_two_widths(tiles_m, spec.n, t.block_n * t.sharing_a, t.narrow_n, t.narrow_n > 0 ? sms : slots);
  const std::int64_t turns = gemm::ceil_div(cut.tiles * parts, slots), wide = gemm::ceil_div(cut.wide_tiles, slots);
  const double narrow = t.narrow_n > 0 ? real(turns - wide) / real(std::max<std::int64_t>(1, turns)) : 0;
  return {cluster,
          slots,
          cut,
          turns,
          narrow,
          t.block_n - narrow * (t.block_n - t.narrow_n),
          gemm::ceil_div<std::int64_t>(gemm::ceil_div<std::int64_t>(spec.k, t.block_k), t.splits)};
}

// A kernel that copies by boxes and multiplies by wgmma, with operands of 16 bits. All times are in clocks.
struct WithBoxes {
  WithBoxes(const TileNumbers& tile, const Spec& problem, const GpuLimits& of_gpu, const Requests& requests, const Plan& its_plan)
      : t(tile), spec(problem), gpu(of_gpu), plan(its_plan) {
    a = slice(spec.m, t.block_m, t.sharing_a, t.sharing_b, !spec.transpose_a, requests.a);
    b = slice(spec.n, t.block_n, t.sharing_b, t.sharing_a, spec.transpose_b, requests.b);
    if (plan.narrow > 0 && !spec.transpose_b) {
      const double begin_elsewhere = b.rows * requests_for_rows(0, t.narrow_n * std::int64_t{2});
      b.requests += plan.narrow * std::max(0.0, begin_elsewhere - b.requests);
    }
    take_turns = t.stays && t.block_m == kPanelColumns && t.warp_n == t.block_n && t.threads == 3 * kWarpgroup;
    columns_each = !t.stays || (t.warp_m == t.block_m && (t.block_m != kPanelColumns || t.warp_n < t.block_n));
    single = plan.cut.tiles <= plan.slots;
    steps = real(std::max<std::int64_t>(1, plan.steps));
    stored = t.block_m * plan.columns * real(bytes(spec.out)) / (t.stays ? t.splits : 1);
    asking = !t.stays ? 0 : columns_each ? kColumnsAsking : kAsking;
    of_sm = step_of_sm();
    const double all_bytes = matrix_bytes(spec);
    missed = gpu.l2_bytes > 0 ? 1 / (1 + std::pow(kCached * real(gpu.l2_bytes) / all_bytes, kCachedSharply)) : 0;
    trip = (kTrip + missed * kTripToDram) / std::max(1, t.stages - 1) + asking;
    from_dram = all_bytes * missed / kDramBytes / (std::max(1.0, real(plan.cut.tiles) / real(plan.slots)) * steps);
  }

  double clocks() const { return t.stays ? of_blocks_that_stay() : of_blocks_that_end(); }

  // What one block's step takes of its SM.
  double step_of_sm() const {
    const double deep = t.block_k / 64.0, element = real(bytes(spec.in));
    const bool one = columns_each ? t.block_n == kPanelColumns : t.block_m == kPanelColumns;  // a warpgroup for a tile
    const double products = 2.0 * t.block_m * plan.columns * t.block_k / (gpu.flops(t.unit) / gpu.multiprocessors / gpu.clock_hz) /
                            kHeadroom *
                            (one && (!take_turns || single) ? kOneWarpgroup
                             : columns_each && t.stays      ? kColumnsProducts
                                                            : 1);
    const double wait = !t.stays                ? kSplitWait
                        : !columns_each         ? (one ? kOneWait : kWait)
                        : plan.cluster == 1     ? kColumnsWait
                        : plan.cluster == kPair ? kColumnsPairWait
                                                : kColumnsClusterWait;
    const double panels = columns_each ? t.block_n / kPanelColumns : t.block_m / kPanelColumns;
    const double read = panels * (kPanelColumns + (columns_each ? t.block_m : plan.columns)) * t.block_k * element;
    const double asked = (a.requests + b.requests) * deep;
    // Rows of zeros: 15's boxes have as many rows as A has, where these are fewer than the tile's.
    const bool fitted = !t.stays && spec.m <= t.block_m;
    const double zeros = (!t.stays ? std::max(fitted ? 0 : a.zeros, b.zeros)
                          : single ? std::max(a.zeros / t.sharing_a, b.zeros / t.sharing_b)
                                   : 0) *
                         deep;
    return norm({products + wait, read / (t.stays ? kStayingShared : kSplitShared),
                 asked * (!t.stays       ? kSplitRequest
                          : columns_each ? kColumnsRequest
                          : one          ? kOneRequest
                                         : kRequest) +
                     asking + zeros * kRowOfZeros});
  }

  // A step of so many clusters at the same time, of which an SM has several blocks; and what it waits for: a trip for each ring of
  // stages, and DRAM.
  double step(double active, double in_an_sm) const {
    const double again = kAskedAgain + (t.stays ? 0 : missed * kAskedAgainOfDram);
    const double across = single ? std::min(a.tiles, active) : std::min<double>(a.tiles, kGroup);
    const double along = single ? std::min(b.tiles, active) : std::min(b.tiles, std::ceil(active / across));
    const auto asking = [&](const Slice& x, double tiles) { return x.requests * (tiles + again * (active - tiles)); };
    const double together = plan.cluster * (t.block_k / 64.0) * (asking(a, across) + asking(b, along)) / kRequestsPerClock;
    return norm({of_sm * in_an_sm, together, trip, from_dram});
  }

  double of_blocks_that_stay() const {
    const bool shares = t.sharing_a * t.sharing_b > 1;
    const double exchanged =
        t.splits > 1 ? kSumsExchange + kOfCluster * plan.cluster + t.block_m * plan.columns * 4 / kExchangedBytes : 0;
    const double last = real(plan.cut.tiles - (plan.turns - 1) * plan.slots);
    const double end = take_turns ? kTurnsEnd : columns_each ? kColumnsEnd : kTileEnd;
    const double before = plan.turns > 1 ? std::max(steps * step(real(plan.slots), 1) + end, stored / kStoredBytes) + exchanged : 0;
    const double beginning = 2 * last > real(plan.slots) ? (shares ? kSeenSharedBeginning : kSeenBeginning) : 0;
    return kLaunch + (shares ? kSharedLaunch : 0) + beginning + real(plan.turns - 1) * before + steps * step(last, 1) + exchanged +
           stored / kStoredBytes;
  }

  double of_blocks_that_end() const {
    const std::int64_t held = std::max(1, occupancy(t, {}, gpu).blocks), at_a_time = plan.slots * held;
    const std::int64_t rounds = gemm::ceil_div(plan.cut.tiles, at_a_time), last = plan.cut.tiles - (rounds - 1) * at_a_time;
    const double around = kRound + (t.splits > 1 ? kExchange : 0);
    const double before = rounds > 1 ? steps * step(real(at_a_time), real(held)) + around + kAnotherRound : 0;
    return kSplitLaunch + kLaunchOfBlock * real(plan.cut.tiles * t.splits) + real(rounds - 1) * before +
           steps * step(real(last), real(gemm::ceil_div(last, plan.slots))) + around + stored / kSplitStoredBytes;
  }

  const TileNumbers& t;
  const Spec& spec;
  const GpuLimits& gpu;
  const Plan& plan;
  Slice a, b;
  bool columns_each, take_turns;          // warpgroups: each with some columns of all rows; each with a tile of its own
  bool single;                            // no SM has a second tile
  double steps, stored;                   // of a block: along k; bytes of C
  double asking, of_sm, trip, from_dram;  // of a step
  double missed;                          // how much of the operands is in DRAM alone
};

std::string kilobytes(std::size_t bytes) { return digits(static_cast<double>(bytes) / 1024) + " KiB"; }

}  // namespace

double requests_for_rows(std::uintptr_t first, std::int64_t pitch_bytes) {
  constexpr unsigned kByPlace[] = {1, 3, 2, 4, 2, 4, 2, 3};  // in 16 bytes from the beginning of a line
  unsigned sum = 0;
  for (std::uintptr_t row = 0; row < std::size(kByPlace); ++row)
    sum += kByPlace[(first + row * static_cast<std::uintptr_t>(pitch_bytes)) / 16 % std::size(kByPlace)];
  return sum / static_cast<double>(std::size(kByPlace));
}
Requests requests_of(const Spec& spec) {
  const auto element = static_cast<std::int64_t>(bytes(spec.in));
  return {requests_for_rows(0, (spec.transpose_a ? spec.m : spec.k) * element),
          requests_for_rows(0, (spec.transpose_b ? spec.k : spec.n) * element)};
}

double GpuLimits::flops(Unit unit) const { return unit == Unit::kFma ? fma_flops : unit == Unit::kMma ? mma_flops : wgmma_flops; }

Rates typical_rates(int capability) {
  if (capability < 80) return {0, 0, 128};
  if (capability == 80) return {2048, 0, 128};
  if (capability == 90) return {2460, 2680, 256};
  return {512, 0, 256};
}

Occupancy occupancy(const TileNumbers& t, const std::optional<KernelResources>& kernel, const GpuLimits& gpu) {
  Occupancy least{gpu.blocks_per_sm, "blocks"};
  const auto at_most = [&](std::size_t blocks, const char* limit) {
    if (blocks < static_cast<std::size_t>(least.blocks)) least = {static_cast<int>(blocks), limit};
  };
  at_most(static_cast<std::size_t>(gpu.threads_per_sm / std::max(1, t.threads)), "threads");
  at_most(static_cast<std::size_t>(gpu.registers_per_sm / std::max(1, registers_of_block(t, kernel))), "registers");
  at_most(gpu.shared_per_sm / (t.shared_bytes + kReservedSharedBytes), "shared memory");
  return least;
}

std::string why_pruned(const TileNumbers& t, const std::optional<KernelResources>& kernel, const Spec& spec, const GpuLimits& gpu) {
  if (t.threads == 0) return "";  // of a peer: nobody knows its numbers
  if (!t.every_layout && (spec.transpose_a || spec.transpose_b))
    return "compiled for nn alone, not for " + spec.layout() + "; the CMake option COURSE_EVERY_TILE compiles the rest";
  const auto chunk = static_cast<std::int64_t>(16 / bytes(spec.in));
  if (!t.every_layout && (spec.k % chunk || spec.n % chunk))
    return "compiled for rows of whole 16-byte chunks alone: n and k must be multiples of " + std::to_string(chunk) +
           "; the fallback runs the rest";
  if (t.shared_bytes > gpu.shared_per_block)
    return "shared memory: a block needs " + kilobytes(t.shared_bytes) + ", " + gpu.name + " gives it at most " +
           kilobytes(gpu.shared_per_block);
  if (const int needed = fragment_registers(t) + kOtherRegisters; !kernel && needed > kMaxRegisters)
    return "registers: a thread needs about " + std::to_string(needed) + ", and has at most " + std::to_string(kMaxRegisters);
  if (kernel && kernel->local_bytes > 0)
    return "registers: " + std::to_string(kernel->local_bytes) + " bytes of a thread did not fit into its " +
           std::to_string(kernel->registers) + " and are in local memory";
  if (const Occupancy o = occupancy(t, kernel, gpu); o.blocks == 0)
    return "occupancy: an SM of " + gpu.name + " holds no block of " + std::to_string(t.threads) + " threads and " +
           std::to_string(registers_of_block(t, kernel)) + " registers, for lack of " + o.limit;
  return "";
}

Prediction predict(const TileNumbers& t, const Spec& spec, const GpuLimits& gpu) {
  return predict(t, spec, gpu, requests_of(spec));
}

Prediction predict(const TileNumbers& t, const Spec& spec, const GpuLimits& gpu, const Requests& requests) {
  if (t.threads == 0) return {};
  const Plan plan = plan_of(t, spec, gpu);
  const int warps = t.threads / kWarp, held = std::max(1, occupancy(t, {}, gpu).blocks);
  const std::int64_t parts = std::int64_t{t.block_m / t.warp_m} * (t.block_n / t.warp_n);  // each reads what it multiplies
  const double k = real(plan.steps * t.block_k), element = real(bytes(spec.in));

  // What one block asks of the units of its SM, in clocks.
  const double flops_per_clock = gpu.flops(t.unit) / gpu.multiprocessors / gpu.clock_hz;
  const double copied = real(t.block_m + t.block_n) * k * element;
  const double read = real(parts) * real(t.warp_m + t.warp_n) * k * (t.unit == Unit::kFma ? kFmaSharedBytes : element);
  // Only the products are fewer in a narrow tile.
  const double mma = 2.0 * t.block_m * plan.columns * k / flops_per_clock;
  const double reading = read / kSharedBytesPerClock, arriving = copied / kSharedBytesPerClock, l2 = copied / kL2BytesPerClock;
  // Where k is shorter than the ring, the rest of it is filled with zeros.
  const double zeros = real(std::max<std::int64_t>(0, t.stages - 1 - plan.steps) * (t.block_m + t.block_n) * t.block_k) * element /
                       kSharedBytesPerClock;
  // Each of the SM's schedulers has tensor cores of its own, and a warp stays with its scheduler.
  const double busiest = real(plan.turns),
               schedulers = real(gemm::ceil_div<std::int64_t>(plan.turns * warps, kSchedulers) * kSchedulers) / warps;

  Prediction p;
  p.waves = real(plan.cut.tiles * t.splits * t.sharing_a * t.sharing_b) / (real(held) * sms_for_clusters(gpu, plan.cluster));
  p.bound = std::max({schedulers * mma / kHeadroom, busiest * reading, busiest * l2}) / gpu.clock_hz;
  if (t.stays || t.clusters) {
    p.seconds = std::max(WithBoxes(t, spec, gpu, requests, plan).clocks() / gpu.clock_hz, p.bound);
    return p;
  }
  const double together = real(std::min<std::int64_t>(held, plan.turns));
  const double in_flight = together * std::max(1, t.stages - 1) * real(t.block_m + t.block_n) * t.block_k * element;
  const double copying = busiest * std::max(l2, copied / in_flight * kL2Latency);
  const auto multiplying = [&] {
    switch (t.unit) {
      case Unit::kFma: return schedulers * mma + busiest * reading;
      case Unit::kMma: return schedulers * mma + busiest * (reading + arriving) / 2;
      case Unit::kWgmma: break;
    }
    return busiest * std::max(mma, kWgmmaShared * (reading + arriving) + kWgmmaWait * real(plan.steps));
  };
  const double around = std::ceil(busiest / held) * (t.unit == Unit::kWgmma ? kWgmmaPrologueAndEpilogue : kPrologueAndEpilogue);
  p.seconds = std::max((std::max(multiplying(), copying) + busiest * zeros + around) / gpu.clock_hz, p.bound);
  return p;
}

}  // namespace harness

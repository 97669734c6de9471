#include "common/harness/tuning/tuning_model.h"

#include <algorithm>
#include <cmath>
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
// The same two where warps that only copy run ahead, and blocks stay; and how much longer the wait is where a panel's rows are
// narrow, for such a row takes the copy engine about as long as a whole one. (17 copies whole panels instead, which costs as much.)
// Panels of an operand that is contiguous along k have no narrow rows: B's in nt, A's in nn. The prologue is short, for 14's
// launches begin early. These and the constants below were fitted to the times of all ways at 56 random shapes
// in four layouts, the shapes of two models, squares and odd sizes on an H200, and of tiles at squares on an H100; clusters of four
// came later. At 24 shapes that the fit had not seen, what the model chooses takes 1.082 times as long as the best way on average
// (library_test.cpp).
constexpr double kStayingPrologueAndEpilogue = 180, kStayingWait = 210, kNarrowPanelWait = 280;
constexpr int kPanelColumns = 64;
// Two warpgroups that take turns: while one waits, the other multiplies. In nt an H100 shows none of it.
constexpr double kTurns = 0.76;
// Tiles of two widths, and more for narrow ones in nn and tn. Those begin where no row of 128 bytes does, so each row of a panel
// lies in two lines of L2: once that, if they begin at multiples of 64 bytes, and twice that elsewhere.
constexpr double kTwoWidthsWait = 8, kMisaligned = 53;
constexpr int kLineBytes = 128;
// Where the blocks of a cluster share a tile, each round has its beginning and its end, and the exchange of sums if there are
// several blocks, for more than two a little more.
constexpr double kClusterPrologueAndEpilogue = 660, kExchange = 1370, kAnotherBlock = 0.016, kClusterWait = 26;
// An SM asks the L2 cache once in two clocks (a kernel that only copies had 0.5 requests a clock on an H200, whatever they are
// for); with products beside it, a little less often. Where rows straddle lines, that is what limits most tiles. Blocks that share
// a tile wait for each other, and their launch takes longer.
constexpr double kClocksPerRequest = 2.6, kSharedWait = 30, kSharedPrologue = 580;
// What a tile's end takes at least, so many bytes of C go out per clock and SM; blocks that stay store while they multiply, but for
// the last tile. Each block takes so many clocks to begin, one after the other.
constexpr double kTileEnd = 15, kStoredPerClock = 19, kLaunchOfBlock = 13;
constexpr int kRowBytes = 128;  // of a tile, along k or not
// A trip to DRAM, in clocks, where operands do not fit into the L2 cache: of blocks that stay, and of a cluster of one block that
// has an SM alone. What such a block has under way may be too little for DRAM's speed. Nor do all SMs together get 64 bytes per
// clock each. Operands fit that take three quarters of the cache, for it has two parts, and both hold what all SMs read; with a
// cluster of one block, times were those of DRAM only where they take more than all of it
// (docs/results/h200/long-rows-{,nt-}f16-cold.json, wide-rows-f16-cold.json).
constexpr double kDramLatency = 3600, kL2BytesTogether = 34, kL2ForOperands = 0.77;
// A cluster lies within one part of the GPU, a GPC, and the SMs of some are no multiple of four: of an H200's 132 SMs, 120 hold
// clusters of four or eight (cudaOccupancyMaxActiveClusters). Pairs lose nothing.
constexpr int kPair = 2, kSmsOfLargeClusters = 10, kOfSms = 11;
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
  const auto real = [](auto x) { return static_cast<double>(x); };
  // Blocks that share a tile are taken to have equal parts of k, and to hand over their sums for nothing.
  const int sharing = t.sharing_a * t.sharing_b;  // blocks of a cluster, each with a tile of its own
  const int cluster = t.clusters ? t.splits : sharing;
  const int sms = cluster > kPair ? gpu.multiprocessors * kSmsOfLargeClusters / kOfSms : gpu.multiprocessors;
  const std::int64_t tiles_m = gemm::ceil_div<std::int64_t>(spec.m, t.block_m * t.sharing_b);  // of a cluster that shares
  const gemm::TwoWidths cut = gemm::in_two_widths(tiles_m, spec.n, t.block_n * t.sharing_a, t.narrow_n, sms);
  const std::int64_t blocks = cut.tiles * t.splits * sharing,
                     k_tiles = gemm::ceil_div<std::int64_t>(gemm::ceil_div<std::int64_t>(spec.k, t.block_k), t.splits);
  const std::int64_t on_busiest = gemm::ceil_div<std::int64_t>(cut.tiles * t.splits, std::max(1, sms / sharing));  // SM
  const std::int64_t wide = t.narrow_n > 0 ? gemm::ceil_div<std::int64_t>(cut.wide_tiles, sms) : on_busiest;
  const int warps = t.threads / kWarp, held = std::max(1, occupancy(t, {}, gpu).blocks);
  const std::int64_t parts = std::int64_t{t.block_m / t.warp_m} * (t.block_n / t.warp_n);  // each reads what it multiplies
  const double k = real(k_tiles * t.block_k), element = real(bytes(spec.in));

  // What one block asks of the units of its SM, in clocks.
  const double flops_per_clock = gpu.flops(t.unit) / gpu.multiprocessors / gpu.clock_hz;
  const double copied = real(t.block_m + t.block_n) * k * element;
  const double read = real(parts) * real(t.warp_m + t.warp_n) * k * (t.unit == Unit::kFma ? kFmaSharedBytes : element);
  // Of the busiest SM's tiles, on average; only the products are fewer in a narrow one.
  const double columns = real(wide * t.block_n + (on_busiest - wide) * t.narrow_n) / real(std::max<std::int64_t>(1, on_busiest));
  const double mma = 2.0 * t.block_m * columns * k / flops_per_clock;
  const double reading = read / kSharedBytesPerClock, arriving = copied / kSharedBytesPerClock, l2 = copied / kL2BytesPerClock;
  // Where k is shorter than the ring, the rest of it is filled with zeros.
  const double zeros = real(std::max<std::int64_t>(0, t.stages - 1 - k_tiles) * (t.block_m + t.block_n) * t.block_k) * element /
                       kSharedBytesPerClock;
  // Each of the SM's schedulers has tensor cores of its own, and a warp stays with its scheduler.
  const double busiest = real(on_busiest),
               schedulers = real(gemm::ceil_div<std::int64_t>(on_busiest * warps, kSchedulers) * kSchedulers) / warps;

  Prediction p;
  p.waves = real(blocks) / (real(held) * sms);
  p.bound = std::max({schedulers * mma / kHeadroom, busiest * reading, busiest * l2}) / gpu.clock_hz;
  const double together = real(std::min<std::int64_t>(held, on_busiest));
  const double in_flight = together * std::max(1, t.stages - 1) * real(t.block_m + t.block_n) * t.block_k * element;
  const double operands = gpu.l2_bytes > 0 ? matrix_bytes(spec) / real(gpu.l2_bytes) : 0;  // where nobody asks, they fit
  const bool large = operands > kL2ForOperands;
  const bool from_dram = t.stays ? large : t.clusters && t.splits == 1 && on_busiest == 1 && operands > 1;
  const double together_l2 = large && (t.stays || t.clusters) ? real(blocks) * copied / sms / kL2BytesTogether : 0;
  const double trips = busiest * copied / in_flight * (from_dram ? kDramLatency : kL2Latency);
  const double copying = std::max({busiest * l2, trips, together_l2});
  const double rounds = std::ceil(busiest / held);
  const double stored = real(t.block_m) * columns * real(bytes(spec.out)) / kStoredPerClock;  // of a tile
  const auto multiplying = [&] {
    switch (t.unit) {
      case Unit::kFma: return schedulers * mma + busiest * reading;
      case Unit::kMma: return schedulers * mma + busiest * (reading + arriving) / 2;
      case Unit::kWgmma: break;
    }
    if (t.clusters) return busiest * (mma + kClusterWait * real(k_tiles));
    if (t.stays) {  // warps that only copy run ahead
      const bool narrow_columns = t.block_n % kPanelColumns != 0 && !spec.transpose_b,
                 narrow_rows = t.block_m % kPanelColumns != 0 && spec.transpose_a;
      const auto misaligned = [&] {  // of its narrow tiles
        const int begin = t.narrow_n * static_cast<int>(bytes(spec.in)) % kLineBytes;
        const double each = spec.transpose_b || begin == 0 ? 0 : begin == kLineBytes / 2 ? kMisaligned : 2 * kMisaligned;
        return each * real(on_busiest - wide) / busiest;
      };
      const double narrow = t.narrow_n > 0 ? kTwoWidthsWait + misaligned() : narrow_columns || narrow_rows ? kNarrowPanelWait : 0;
      const bool turns =
          t.block_m == kPanelColumns && t.threads == 3 * kWarpgroup && sharing == 1 && on_busiest > 1 && !spec.transpose_b;
      const double wait = kStayingWait * (turns ? kTurns : 1) + narrow + (sharing > 1 ? kSharedWait : 0);
      return busiest * std::max(mma + wait * real(k_tiles), kTileEnd + stored);
    }
    return busiest * std::max(mma, kWgmmaShared * (reading + arriving) + kWgmmaWait * real(k_tiles));
  };
  const double exchange = t.splits > 1 ? kExchange * (1 + kAnotherBlock * (t.splits - kPair)) : 0;
  const double around = t.stays                  ? kStayingPrologueAndEpilogue + (sharing > 1 ? kSharedPrologue : 0)
                        : t.clusters             ? rounds * (kClusterPrologueAndEpilogue + exchange)
                        : t.unit == Unit::kWgmma ? rounds * kWgmmaPrologueAndEpilogue
                                                 : rounds * kPrologueAndEpilogue;
  const double of_each = real(t.block_m) / t.sharing_a * requests.a + real(t.block_n) / t.sharing_b * requests.b;
  const double rows = of_each * real(k_tiles * t.block_k) * element / kRowBytes;
  const double asking = t.unit == Unit::kFma ? 0 : busiest * rows * kClocksPerRequest;
  // Of kernels whose launches follow each other closely: in others that is a part of the prologue.
  const double once = t.stays      ? kLaunchOfBlock * real(std::min<std::int64_t>(blocks, sms)) + stored
                      : t.clusters ? kLaunchOfBlock * real(blocks) + busiest * stored
                                   : 0;
  p.seconds = std::max((std::max({multiplying(), copying, asking}) + busiest * zeros + around + once) / gpu.clock_hz, p.bound);
  return p;
}

}  // namespace harness

/// @file
/// What can be said of a tile before it runs: whether a GPU can run it, and how fast it can be at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/harness/problem/problem.h"
#include "common/harness/program/step.h"

namespace harness {

/// The limits of a GPU that decide what it can run, and how fast.
struct GpuLimits {
  std::string name;
  int multiprocessors = 1;
  int threads_per_sm = 2048, blocks_per_sm = 32, registers_per_sm = 65536;
  std::size_t shared_per_sm = 0, shared_per_block = 0;  ///< bytes; a block's is what it may ask for
  double clock_hz = 0;                                  ///< of the SMs, at most
  double mma_flops = 0;                                 ///< operations per second of mma.sync, sums in float
  double wgmma_flops = 0;                               ///< of wgmma; 0 where there is none
  double fma_flops = 0;                                 ///< of multiply-adds in float, outside of tensor cores
  int capability = 0;                                   ///< 90 is compute capability 9.0; 0 where nobody asks
  std::size_t l2_bytes = 0;                             ///< of the L2 cache; 0 where nobody asks

  double flops(Unit unit) const;  ///< of these three
};

/// Operations that an SM does per clock, two for a multiply-add, where nobody has measured them.
struct Rates {
  double mma = 0, wgmma = 0, fma = 0;
};
/// Of a GPU with that compute capability. mma and fma: NVIDIA's architecture papers (A100, GA102, AD102, Hopper), dense, f16 or
/// bf16 with sums in float; of later GPUs as of the RTX 40 series. Hopper's mma and wgmma: what an H200 at its limit of 700 W does,
/// which is less than the paper's 4096.
Rates typical_rates(int capability);

/// What a compiled kernel takes.
struct KernelResources {
  int registers = 0;            ///< of a thread
  std::size_t local_bytes = 0;  ///< of a thread: what did not fit into registers
};

/// How many blocks an SM holds at the same time, and what keeps it from holding more.
struct Occupancy {
  int blocks = 0;
  std::string limit;  ///< "shared memory", "registers", "threads" or "blocks"
};
/// @param kernel what the compiler made of the tile; without it, registers are counted from the tile: accumulators and fragments
Occupancy occupancy(const TileNumbers& tile, const std::optional<KernelResources>& kernel, const GpuLimits& gpu);

/// Why `gpu` cannot run the tile on `spec`, or should not, in words with both numbers; an empty string if it can.
/// A tile without numbers is never pruned: only its launcher knows what it takes.
/// @param kernel as above
std::string why_pruned(const TileNumbers& tile, const std::optional<KernelResources>& kernel, const Spec& spec,
                       const GpuLimits& gpu);

/// Requests to the L2 cache for each row of 128 bytes that the copy engine copies, of A and of B.
struct Requests {
  double a = 1, b = 1;
};
/// Of rows of an operand, the first at an address and each so many bytes behind the one before, both multiples of 16. A row that
/// does not begin with a line of 128 bytes lies in two, and one that begins in the middle of a sector of 32 is asked for by halves:
/// ncu counts 1 to 4 on an H200, by the place where it begins.
double requests_for_rows(std::uintptr_t first, std::int64_t pitch_bytes);
/// Of operands without gaps, that begin with a line.
Requests requests_of(const Spec& spec);

/// What the model says of a tile on a problem.
struct Prediction {
  double waves = 0;    ///< blocks / (blocks that the GPU holds at the same time)
  double bound = 0;    ///< seconds that it takes at least: no kernel of this shape can be faster
  double seconds = 0;  ///< what it may take: an estimate, to try the best first
};
/// Of a tile without numbers the model says nothing: all zeros.
///
/// The SM with the most blocks decides: it has ceil(blocks / SMs) of them. Its tensor cores, fragments from its shared memory (128
/// bytes per clock) and copies from the L2 cache (64 bytes per clock) each take so many clocks for them; no kernel is faster than
/// the slowest of these three, which is the bound. Copies that arrive in shared memory do not count there: an H200 does both in
/// fewer clocks than their sum. The estimate adds them, as it adds some of what should overlap; it also knows that a ring of stages
/// brings at most its own size per trip to the L2 cache, or to DRAM where operands do not fit there, that the first stage and the
/// epilogue are waited for, and that a ring longer than k is filled with zeros.
///
/// With wgmma, products and the reads of shared memory that belong to them overlap: the slower of the two counts, and for each step
/// along k a wait. With multiply-adds nothing overlaps: products, and the reads that they wait for, are added.
///
/// A kernel that copies by boxes (its tile `stays`, or has `clusters`) works in rounds of as many tiles as are computed at the same
/// time. A step along k takes as long as the slowest of these: its products and a wait; what its warpgroups read of shared memory;
/// what its SM asks the L2 cache for; what all SMs of the round ask it for, where a tile that several of them ask for counts little
/// more than once; a trip to L2, or to DRAM, for each ring of stages; and DRAM's speed, where the matrices do not fit into L2. The
/// last round has fewer SMs, so its steps may be shorter. Rows of an operand that straddle lines are asked for more than once, and
/// so are those of tiles that begin where no line does.
Prediction predict(const TileNumbers& tile, const Spec& spec, const GpuLimits& gpu, const Requests& requests);
/// The same for requests_of(spec).
Prediction predict(const TileNumbers& tile, const Spec& spec, const GpuLimits& gpu);

}  // namespace harness

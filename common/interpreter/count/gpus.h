/// @file
/// The GPUs whose limits and caches the interpreter can model.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace interpreter {

/// Limits and sizes of one GPU. Bytes unless said otherwise; sources stand beside the table in gpus.cpp.
struct Gpu {
  std::string_view name;  ///< as accepted by `Options::gpu`
  std::string_view title;
  int compute_capability;        ///< 90 for 9.0
  int multiprocessors;           ///< streaming multiprocessors (SMs)
  int max_threads_per_sm;        ///< resident threads
  int max_blocks_per_sm;         ///< resident blocks
  std::size_t shared_per_sm;     ///< shared memory of one SM
  std::size_t shared_per_block;  ///< static + dynamic shared memory that one block may have (opt-in limit)
  std::size_t l1_per_sm;         ///< unified L1 cache and shared memory
  std::size_t l2_bytes;          ///< L2 cache
  unsigned l2_parts;             ///< parts of it, each next to its share of the SMs
  unsigned coalescers;           ///< clusters of SMs (GPCs) whose reads of the same sector are merged before the L2 cache; 0: none
  std::size_t dram_bytes;        ///< device memory
  double dram_bytes_per_second;  ///< datasheet bandwidth
  int fma_lanes_per_sm;          ///< multiply-adds in float that one SM does per clock
  double clock_hz;               ///< boost clock of the SMs
  double tensor_flops;           ///< f16 or bf16, sums in float, dense: datasheet
  double mma_flops;              ///< the same through mma.sync, which Hopper's tensor cores cannot be kept busy with

  /// Multiply-adds of the CUDA cores in float, 2 operations each; what datasheets call the FP32 peak.
  constexpr double fma_flops() const { return 2.0 * multiprocessors * fma_lanes_per_sm * clock_hz; }
};

inline constexpr std::size_t kReservedSharedPerBlock = 1024;  ///< the driver's own share, compute capability 8.0 and later
inline constexpr std::size_t kMaxStaticShared = 48 * 1024;    ///< ptxas refuses more in `__shared__` variables

/// Every modelled GPU.
std::span<const Gpu> gpus();

/// The GPU called `name`.
/// @throws std::invalid_argument naming the known GPUs when there is none of that name.
const Gpu& find_gpu(std::string_view name);

/// Blocks of `threads` threads and `shared_bytes` of shared memory that one SM holds at a time (registers not counted).
int resident_blocks_per_sm(const Gpu& gpu, int threads, std::size_t shared_bytes);

}  // namespace interpreter

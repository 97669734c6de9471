/// @file
/// Bytes, arithmetic intensity and bounds of a multiplication, in numbers and in words. docs/roofline.md explains them.
#pragma once

#include <optional>
#include <string>

#include "common/harness/problem/problem.h"

namespace harness {

/// What a GPU can do at most. Rates per second.
struct Ceilings {
  std::string source;                ///< "measured" or "datasheet"
  double copy_bytes = 0;             ///< device memory, bytes read + written
  double fma_f32 = 0;                ///< operations of the CUDA cores' multiply-adds in float
  double mma_f16 = 0, mma_bf16 = 0;  ///< operations of the tensor cores through mma.sync, sums in float
  /// The same through wgmma: both matrices in shared memory, or A in registers. 0 where there is none.
  double wgmma_f16 = 0, wgmma_bf16 = 0, wgmma_registers_f16 = 0, wgmma_registers_bf16 = 0;
  /// FLOP/s for inputs of that type. @param wgmma by a kernel that multiplies with it
  double peak(DType in, bool wgmma = false) const {
    if (in == DType::kF32) return fma_f32;
    const double with_wgmma = in == DType::kF16 ? wgmma_f16 : wgmma_bf16;
    return wgmma && with_wgmma > 0 ? with_wgmma : in == DType::kF16 ? mma_f16 : mma_bf16;
  }
};

/// One way to count bytes, and what follows from it.
struct ByteModel {
  double bytes = 0;
  std::optional<double> intensity;  ///< operations per byte; none without bytes
  std::optional<double> bound;      ///< operations per second: intensity times copy bandwidth, at most the peak
};

/// The roofline model (S. Williams, A. Waterman, D. Patterson, 2009) of one multiplication on one GPU.
struct Roofline {
  double flops = 0;  ///< 2 m n k
  /// Reads of A and B if every multiply-add loads both of its operands: size · (m k n + k n m).
  ByteModel no_reuse;
  /// Reads of A and B if each tile of C loads its rows of A and its columns of B once.
  ByteModel tile_reuse;
  /// Reads of A and B and writes of C, every element once.
  ByteModel compulsory;
  double peak = 0;   ///< operations per second
  double ridge = 0;  ///< intensity from which on the peak, not memory, is the bound: peak / bandwidth

  /// What a fused epilogue saves: a separate kernel would read and write C once more. 0 without an epilogue.
  double saved_bytes = 0;

  int tile_m = 1, tile_n = 1;
};

/// @param tile_m, tile_n the part of C whose operands are loaded together; 1 x 1 when nothing is shared
/// @param wgmma the kernel multiplies with it
Roofline roofline(const Spec& spec, int tile_m, int tile_n, const Ceilings& ceilings, bool wgmma = false);

/// The model in words, one or two sentences. @param rate measured operations per second, if any
std::string note(const Roofline& roofline, std::optional<double> rate);

}  // namespace harness

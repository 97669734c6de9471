/// @file
/// Access patterns whose counters are known from a GPU: launched by the same table on the GPU (under ncu) and on the interpreter.
#pragma once

#include <string>
#include <vector>

namespace patterns {

/// One warp-wide access per warp: lanes of `mask` access element (lane / div % mod) * stride + lane % low * low_stride + offset.
struct Pattern {
  const char* what;
  char space;      ///< 's' shared, 'g' global
  char operation;  ///< 'l' load, 's' store
  int size;        ///< bytes per lane
  int div, mod, stride, low, low_stride, offset;
  unsigned mask = 0xffffffffu;
  int threads = 32;
  bool half = false;  ///< lanes 0-15 access element `offset` instead
};

/// In the order in which launch_all() launches them, one kernel each.
const std::vector<Pattern>& all();
void launch_all();

/// One instruction of common/device/ptx.cuh per warp.
struct PtxPattern {
  const char* what;
  /// 'g': cp.async whose sources lie as the pattern says, 's': whose destinations do, 'b': both; 'm': ldmatrix; 't': mma.
  char operation;
  int size;      ///< of cp.async: bytes per lane; of ldmatrix: matrices; of mma: instructions
  bool variant;  ///< of cp.async: lanes outside `mask` copy no bytes of their source; of ldmatrix: .trans; of mma: __half
  int div, mod, stride, low, low_stride, offset;  ///< as in Pattern; of ldmatrix in rows of 16 bytes
  bool swizzle = false;                           ///< element i lies at i ^ i / 8 % 8
  unsigned mask = 0xffffffffu;
  int threads = 32;
  int source_bytes = -1;  ///< -1: all
};
/// In the order in which launch_ptx() launches them, one kernel each.
const std::vector<PtxPattern>& ptx();
void launch_ptx();

}  // namespace patterns

/// @file
/// A step as the harness sees it: its name and, for each tile and element type, a function to call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/harness/dtype.h"

namespace harness {

/// A gemm::Matrix whose element type is chosen at run time; data in device memory.
struct AnyMatrix {
  void* data = nullptr;
  std::int64_t rows = 0, cols = 0, row_stride = 0, col_stride = 0;
};

/// x -> 2 x + 1: tells epilogue(A · B) from A · B, also where the product is zero.
struct Affine;

/// One tile of a step, for one pair of element types.
struct Variant {
  std::string tile;    ///< "128x128x8, 8x8 per thread" or a name of the step's own
  int tile_m, tile_n;  ///< the part of C whose operands are loaded from global memory together; 1 x 1 when nothing is shared
  DType in, out;
  void (*gemm)(const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C);
  void (*gemm_affine)(const AnyMatrix& A, const AnyMatrix& B,
                      const AnyMatrix& C);  ///< with Affine as epilogue; null where not built
};

/// A folder below steps/.
struct Step {
  std::string name;               ///< "01_naive"
  std::vector<Variant> variants;  ///< the first of each pair of types is the step's best
};

/// The step that this program is linked with.
const Step& this_step();

}  // namespace harness

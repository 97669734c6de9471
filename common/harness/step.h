/// @file
/// A step as the harness sees it: its name and, for each tile and element type, a function to call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/harness/dtype.h"
#include "common/harness/epilogue.h"

namespace harness {

/// A gemm::Matrix whose element type is chosen at run time; data in device memory.
struct AnyMatrix {
  void* data = nullptr;
  std::int64_t rows = 0, cols = 0, row_stride = 0, col_stride = 0;
};

/// x -> 2 x + 1: tells epilogue(A · B) from A · B, also where the product is zero.
struct Affine;

/// C = epilogue(A · B) with an epilogue other than identity.
struct Fused {
  Activation activation;
  bool takes_bias;  ///< whether `bias` may be other than null
  /// @param bias in device memory: as many elements of C's type as C has columns, or null for none
  void (*gemm)(const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C, const void* bias);
};

/// One tile of a step, for one pair of element types.
struct Variant {
  std::string tile;    ///< "128x128x8, 8x8 per thread" or a name of the step's own
  int tile_m, tile_n;  ///< the part of C whose operands are loaded from global memory together; 1 x 1 when nothing is shared
  DType in, out;
  void (*gemm)(const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C);
  void (*gemm_affine)(const AnyMatrix& A, const AnyMatrix& B,
                      const AnyMatrix& C);  ///< with Affine as epilogue; null where not built
  std::vector<Fused> fused = {};            ///< empty where the step has no activations

  /// Whether it was built for that epilogue.
  bool has(const Epilogue& e) const;
  /// C = epilogue(A · B). @param bias see Fused; null where the epilogue has none
  void run(const Epilogue& e, const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C, const void* bias) const;
};

/// A folder below steps/.
struct Step {
  std::string name;                               ///< "01_naive"
  std::vector<Variant> variants;                  ///< the first of each pair of types is the step's best
  Activation activation = Activation::kIdentity;  ///< what the step is about; its program's default
};

/// The step that this program is linked with.
const Step& this_step();

}  // namespace harness

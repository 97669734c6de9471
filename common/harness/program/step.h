/// @file
/// A step as the harness sees it: its name and, for each tile and element type, a function to call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/gemm/gemm.h"
#include "common/harness/problem/dtype.h"
#include "common/harness/problem/epilogue.h"

namespace harness {

/// A gemm::Matrix whose element type is chosen at run time; data in device memory.
struct AnyMatrix {
  void* data = nullptr;
  std::int64_t rows = 0, cols = 0, row_stride = 0, col_stride = 0;
};

/// x -> 2 x + 1: tells epilogue(A · B) from A · B, also where the product is zero. Who asks for it in a column (lesson 07) gets
/// 2 x + 1 + col % 16.
struct Affine;

/// C = epilogue(A · B) with an epilogue other than identity.
struct Fused {
  Activation activation;
  bool takes_bias;  ///< whether `bias` may be other than null
  /// @param bias in device memory: as many elements of C's type as C has columns, or null for none
  void (*gemm)(const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C, const void* bias);
};

/// What a tile multiplies with: multiply-adds of CUDA cores, or one of the two instructions of tensor cores.
enum class Unit { kFma, kMma, kWgmma };

/// A tile in numbers, for those who choose among tiles. Zeros where a step's tiles have no such number.
struct TileNumbers {
  int block_m = 0, block_n = 0, block_k = 0;  ///< of C, and steps along k
  int warp_m = 0, warp_n = 0;                 ///< a warp's part of C; a warpgroup's with wgmma, a thread's with multiply-adds
  int stages = 1;                             ///< tiles of A and B in shared memory
  int threads = 0;                            ///< of a block
  std::size_t shared_bytes = 0;               ///< of a block, dynamic
  bool every_layout = true;                   ///< else another tile runs what is not nn
  Unit unit = Unit::kMma;
  int splits = 1;                    ///< blocks that share a tile of C, each with a part of k
  bool clusters = false;             ///< they are a cluster: they hand over their sums in shared memory
  int sharing_a = 1, sharing_b = 1;  ///< blocks of a cluster, with a tile of C each, that share the tile of A, or that of B
  int narrow_n = 0;                  ///< columns of its narrow tiles, by in_two_widths(); 0 where all have block_n
  bool stays = false;  ///< a block computes one tile of C after the other, and stores one while the next is multiplied
};

/// One tile of a step, for one pair of element types.
struct Variant {
  std::string tile;    ///< "128x128x8, 8x8 per thread" or a name of the step's own
  int tile_m, tile_n;  ///< the part of C whose operands are loaded from global memory together; 1 x 1 when nothing is shared
  DType in, out;
  void (*gemm)(const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C);  ///< null in the short program of a step that fuses
  void (*gemm_affine)(const AnyMatrix& A, const AnyMatrix& B,
                      const AnyMatrix& C);  ///< with Affine as epilogue; null where not built
  TileNumbers numbers{};
  std::vector<Fused> fused = {};  ///< empty where the step has no activations
  bool unfused = false;           ///< another kernel applies the epilogue, after this one has stored C

  /// Whether it was built for that epilogue.
  bool has(const Epilogue& e) const;
  /// C = epilogue(A · B). @param bias see Fused; null where the epilogue has none
  void run(const Epilogue& e, const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C, const void* bias) const;
};

/// The same tile with a kernel of its own for the epilogue, whichever it is: for a problem without a good fused tile. Sums are
/// rounded to C's type before the epilogue, so one beyond its range is infinite there.
Variant without_fusing(const Variant& v);

/// What a step asks of a GPU, as steps/CMakeLists.txt says it.
struct Needs {
  std::string capability{};  ///< "80": compute capability 8.0 or higher; "90a": 9.0 and no other
  std::string what{};        ///< for what: "wgmma"; may be empty

  int least() const { return std::stoi(capability); }      ///< the lowest one, 80
  bool only() const { return capability.ends_with('a'); }  ///< whether higher ones will not do
};

/// A folder below steps/.
struct Step {
  std::string name;                                     ///< "01_naive"
  std::vector<Variant> variants;                        ///< the first of each pair of types is the step's best
  bool tuned = false;                                   ///< the variants are candidates: tuning.h says which is best for a problem
  std::string kernel_version{};                         ///< changes with the kernels; of a tuned step
  Activation activation = kActivation<gemm::Identity>;  ///< what the step is about; its program's default
  bool is_short = false;     ///< built with its first tile alone, for one type and its default activation
  std::size_t left_out = 0;  ///< tiles for that type that a short program was built without
  Needs needs{};
  std::vector<std::string> architectures{};  ///< that it was compiled for: "80-real"; empty on the interpreter
};

/// The step that this program is linked with.
const Step& this_step();

/// What a step's program and its test do about a GPU.
struct Availability {
  std::string why_not{};    ///< and what to do instead, behind the step's name and a colon; empty if it can run
  bool gpu_is_able = true;  ///< and only the build is for another one
};
/// Whether a GPU can run a step. @param gpu its name  @param capability its compute capability: 80 is 8.0
Availability availability(const Step& step, const std::string& gpu, int capability);

/// What a step's namespace may leave out.
namespace step_defaults {

/// The activations that a step is built with besides gemm::Identity, what it is about first. Each is built with a bias too;
/// gemm::Identity among them stands for the bias alone.
using Activations = gemm::TypeList<>;

}  // namespace step_defaults

}  // namespace harness

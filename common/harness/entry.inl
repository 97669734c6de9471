// The entry that all steps share: instantiates each of a step's tiles for each pair of element types. Included once per step, after
// the step's gemm.cuh, by a generated file that names the step.
#include <type_traits>

#include "common/harness/step.h"

namespace harness {

struct Affine {
  GEMM_HOST_DEVICE float operator()(float x) const { return 2 * x + 1; }
};

namespace {

template <class T>
gemm::Matrix<T> typed(const AnyMatrix& m) {
  return {static_cast<T*>(m.data), m.rows, m.cols, m.row_stride, m.col_stride};
}

template <class Tile, class In, class Out, class Epilogue>
void run(const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C) {
  this_step_namespace::gemm<Tile>(typed<const In>(A), typed<const In>(B), typed<Out>(C), Epilogue{});
}

// Tiles that are not named are called by their numbers.
template <class Tile>
std::string tile_name() {
  if constexpr (requires { Tile::kName; }) {
    return Tile::kName;
  } else {
    return std::to_string(Tile::kBlockM) + "x" + std::to_string(Tile::kBlockN) + "x" + std::to_string(Tile::kBlockK) + ", " +
           std::to_string(Tile::kThreadM) + "x" + std::to_string(Tile::kThreadN) + " per thread";
  }
}

template <class Tile, class In, class Out>
Variant variant() {
  Variant v{tile_name<Tile>(), 1, 1, kDType<In>, kDType<Out>, run<Tile, In, Out, gemm::Identity>, nullptr};
  // A tile that has slices along k is loaded by its block as a whole; without them, each thread loads for itself.
  if constexpr (requires { Tile::kBlockK; }) v.tile_m = Tile::kBlockM, v.tile_n = Tile::kBlockN;
  if constexpr (std::is_same_v<In, float>) v.gemm_affine = run<Tile, In, Out, Affine>;
  return v;
}

template <class... Tiles>
std::vector<Variant> variants(gemm::TypeList<Tiles...>) {
  return {variant<Tiles, float, float>()...,
          variant<Tiles, __half, __half>()...,
          variant<Tiles, __half, float>()...,
          variant<Tiles, __nv_bfloat16, __nv_bfloat16>()...,
          variant<Tiles, __nv_bfloat16, float>()...};
}

}  // namespace

const Step& this_step() {
  static const Step step{COURSE_STEP_NAME, variants(this_step_namespace::Tiles{})};
  return step;
}

}  // namespace harness

// A step's kernels for the library. Included once, after the step's gemm.cuh, by a generated file that names the step and an epilogue,
// LeakyRelu.
#include <sstream>
#include <type_traits>

#include "common/harness/program/tile.h"
#include "common/library/kernels.h"

namespace gemm::library {
namespace {

template <class Tile, class In, class Out>
void run(const harness::AnyMatrix& A, const harness::AnyMatrix& B, const harness::AnyMatrix& C, float slope) {
  this_step_namespace::gemm<Tile>(harness::typed<const In>(A), harness::typed<const In>(B), harness::typed<Out>(C),
                                  this_step_namespace::LibraryEpilogue{{slope}});
}

template <class Tile, class In, class Out>
Kernel kernel(const harness::Step& step, Operands operands) {
  constexpr harness::TileNumbers kNumbers = harness::numbers_of<Tile>();
  const std::string name = step.name + " " + harness::tile_name<Tile>();
  return {step,
          {name, kNumbers.block_m, kNumbers.block_n, harness::kDType<In>, harness::kDType<Out>, nullptr, nullptr, kNumbers},
          operands,
          run<Tile, In, Out>};
}

template <class In, class... Tiles>
void add(std::vector<Kernel>& all, const harness::Step& step, Operands operands, TypeList<Tiles...>) {
  (all.push_back(kernel<Tiles, In, In>(step, operands)), ...);
  if constexpr (!std::is_same_v<In, float>) (all.push_back(kernel<Tiles, In, float>(step, operands)), ...);
}

harness::Step step_of(const char* name, const harness::Needs& needs, const char* architectures) {
  harness::Step step{name, {}};
  step.needs = needs;
  std::istringstream each(architectures);
  for (std::string architecture; each >> architecture;) step.architectures.push_back(architecture);
  return step;
}

}  // namespace
}  // namespace gemm::library

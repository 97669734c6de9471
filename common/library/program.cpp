// gemm::run() as a step of the harness: verified and measured beside cuBLAS as every step is. Which kernel runs is its own choice.
#include <sstream>

#include "common/device/device.cuh"
#include "common/harness/program/step.h"
#include "common/library/choose.h"

namespace harness {
namespace {

template <DType in, DType out>
void run(const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C) {
  gemm::library::run(gemm::library::Call{A, B, C, in, out, 1}, device::stream());
}
template <DType in, DType out>
void run_leaky(const AnyMatrix& A, const AnyMatrix& B, const AnyMatrix& C, const void*) {
  gemm::library::run(gemm::library::Call{A, B, C, in, out, gemm::LeakyRelu{}.slope}, device::stream());
}

template <DType in, DType out>
Variant variant() {
  return {"chosen", 1, 1, in, out, run<in, out>, nullptr, {}, {{kActivation<gemm::LeakyRelu>, false, run_leaky<in, out>}}, false};
}

}  // namespace

const Step& this_step() {
  static const Step step = [] {
    Step s{"one_call", {}};
    s.needs = {"80", "the steps that it chooses among"};
    std::istringstream architectures(COURSE_STEP_ARCHITECTURES);
    for (std::string each; architectures >> each;) s.architectures.push_back(each);
    s.variants = {variant<DType::kF16, DType::kF16>(), variant<DType::kF16, DType::kF32>(), variant<DType::kBF16, DType::kBF16>(),
                  variant<DType::kBF16, DType::kF32>(), variant<DType::kF32, DType::kF32>()};
    return s;
  }();
  return step;
}

}  // namespace harness

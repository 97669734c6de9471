#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<__half> C, const __half* bias);

void check(Coach& coach) {
  coach.lesson("steps/07_fused_leaky_relu/README.md, \"Walk\"");
  const harness::Epilogue epilogue = {harness::kActivation<gemm::LeakyRelu>, true};
  const Function with_bias = [](const Operands& o) { gemm(o.A<__half>(), o.B<__half>(), o.C<__half>(), o.bias<__half>()); };
  const auto multiply = [&](Case c) {
    c.epilogue = epilogue;
    return coach.multiply(c, harness::kDType<__half>, harness::kDType<__half>, with_bias);
  };

  const auto zero = [](std::int64_t, std::int64_t) { return 0; };
  multiply({.m = 32,
            .n = 64,
            .k = 32,
            .a = zero,
            .what = "A is all zeros, so C is LeakyReLU(bias)",
            .hint = "Each column has a bias of its own. Which bias does this element get? What does LeakyReLU make of it if it is "
                    "below 0? If it is nearly right: what rounds it, and to which of its neighbours?"});
  for (Case c : {Case{32, 32, 32}, Case{64, 96, 16}, Case{64, 32, 40}, Case{33, 31, 29}, Case{37, 70, 45}, Case{1, 40, 70},
                 Case{40, 1, 7}, Case{1, 1, 1}}) {
    c.hint = "C is LeakyReLU(A · B + bias): the bias comes first, and all of it is in float until one rounding in the end.";
    multiply(c);
  }
  multiply({.m = 35, .n = 45, .k = 50, .padding = 3});

  for (const Case& c : coach.drawn({})) multiply(c);
  coach.multiply_far_rows(Case{.m = 3, .n = 3, .k = 3, .epilogue = epilogue}, harness::kDType<__half>, harness::kDType<__half>,
                          with_bias);

  for (const Case& c : coach.draw().ragged(
           32, 32, 32, "nn", {Case{64, 64, 64}, coach.draw().tiles(64, 128, 32, 1), coach.draw().tiles(64, 64, 32, 1)})) {
    const Counts counts = multiply(c);
    counts.launches(1, "A second kernel reads all of C again. The sums are still in registers here: finish them in this kernel.");
    const double bias = tiles(c, 32, c.n, c.k) * 8 * sector_bytes(1, c.n, harness::DType::kF16);  // 8 warps of each block
    counts
        .at_most(stored(sector_bytes(c.m, c.n, harness::DType::kF16)), 1, "Each element of C is stored once, when it is finished.")
        .at_most(loaded(tile_bytes(c, 32, 32, harness::DType::kF16) + bias), 1,
                 "Beside the tiles a warp loads 32 elements of the bias, once. Who reads C, or loads a bias more than once?");
  }

  coach.multiply_on_gpu(
      {.m = 2048,
       .n = 2048,
       .k = 2048,
       .epilogue = epilogue,
       .slow =
           "Is C stored once, when it is finished? What is read or stored again costs more than all of the epilogue's arithmetic."},
      harness::kDType<__half>, harness::kDType<__half>, with_bias);
}

}  // namespace exercise

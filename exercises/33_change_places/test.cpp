#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C);

namespace {

Figure wgmma_wavefronts(double of) {
  return {"passes through shared memory by wgmma, as a multiple of what is needed",
          [](const interpreter::Counters& c) { return static_cast<double>(c.wgmma.wavefronts); },
          [of](const interpreter::Counters&) { return of; }};
}

// What a report of the interpreter cannot know of this exercise.
std::string meant(const std::string& report) {
  return report.find("out of bounds: sA") != std::string::npos
             ? "wgmma reads 64 rows of its first operand. sA has fewer: it is the second one."
             : "";
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/15_few_rows/README.md, and common/device/wgmma.cuh, wgmma_m64k16");
  const auto row = [](std::int64_t r, std::int64_t) { return r; };
  const auto col = [](std::int64_t, std::int64_t c) { return c; };
  const auto one = [](std::int64_t, std::int64_t) { return 1; };
  const auto ask = [&](const char* what, const auto& a, const auto& b, const char* hint) {
    coach.multiply<__half, float>(
        {.m = 8, .n = 64, .k = 64, .layout = "nt", .a = a, .b = b, .what = what, .hint = hint, .meant = meant}, gemm);
  };
  ask("row i of A is all i, B is all ones", row, one,
      "This asks for rows of C alone. A's few rows are wgmma's n: of its sums (i, j), j is the row of C. For sum i of a thread, j "
      "is "
      "2 t + i % 2, and 8\nmore with each four sums. A's rows have to be there: sA is the second operand.");
  ask("A is all ones, column j of B is all j", one, col,
      "This asks for columns of C alone. B's columns are wgmma's m: of its sums (i, j), i is the column of C. It is 16 times the "
      "warp + g, and 8 more\nfor every second pair of sums.");
  ask("in each row of A and each column of B, element k is k", col, row,
      "This asks for k alone: the next 16 of k are 16 elements further in the row, of both operands.");

  const auto multiply = [&](Case c) {
    c.hint =
        "A block has 8 rows of C from row_0 on, and 64 columns from col_0 on. Are there blocks for all of C, and does each product "
        "add "
        "to what\nthose before it left in rC?";
    return coach.multiply<__half, float>(c, gemm);
  };
  for (const Case& c : {Case{8, 64, 64, "nt"}, Case{8, 128, 192, "nt"}, Case{5, 72, 80, "nt"}, Case{1, 64, 8, "nt"}}) multiply(c);
  multiply({.m = 20, .n = 70, .k = 136, .layout = "nt", .padding = 8});
  for (Case c : coach.drawn({.layout = "nt", .aligned_a = 8, .aligned_b = 8})) {
    if (c.m > 100) continue;  // few rows are what this is for
    multiply(c);
  }

  Draw& draw = coach.draw();
  for (const Case& c :
       {Case{8, 128, 256, "nt"}, Case{draw.between(1, 8), 64 * draw.between(1, 4), 64 * draw.between(2, 6), "nt"}}) {
    const double blocks = static_cast<double>(c.n) / 64, slices = static_cast<double>(c.k) / 64;
    multiply(c)
        .at_least(wgmma_wavefronts(blocks * slices * 4 * 18), 1, "The products come from wgmma.")
        .at_most(
            wgmma_wavefronts(blocks * slices * 4 * 18), 1,
            "A wgmma reads 64 rows of its first operand, 16 passes of 128 bytes, and n rows of the second, n / 4. A has 8 rows at "
            "most. As the\nfirst operand it is padded to 64 with zeros; as the second one it takes 2 passes.")
        .at_most(loaded(blocks * slices * (64 + 8) * 128), 1,
                 "A box of A has 8 rows, one of B 64: no zeros are fetched to be multiplied.")
        .at_most(stored(sector_bytes(c.m, c.n, harness::DType::kF32)), 1,
                 "Each element of C is stored once, and eight lanes of a warp have neighbours in a row.");
    coach.require_tensor_core<__half, float>(c, gemm);
  }

  // A ring is left out here, so the time says little: no bar for it.
}

}  // namespace exercise

#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C);

void check(Coach& coach) {
  coach.lesson("steps/10_wgmma/README.md, \"Walk\": the table of K-major and MN-major, and common/device/wgmma.cuh");
  // One panel of A, two of B: matrices that tell one mistake from the others.
  const auto one = [](std::int64_t, std::int64_t) { return 1; };
  const auto row = [](std::int64_t r, std::int64_t) { return r; };
  const auto col = [](std::int64_t, std::int64_t c) { return c; };
  const auto slice_of_row = [](std::int64_t r, std::int64_t) { return r / 16 == 1 ? 1 + r % 16 : 0; };
  const auto slice_of_col = [](std::int64_t, std::int64_t c) { return c / 16 == 1 ? 1 + c % 16 : 0; };
  const auto ask = [&](const char* what, const auto& a, const auto& b, const char* hint) {
    return coach.multiply<__half, float>(
        {.m = 64,
         .n = 128,
         .k = 64,
         .a = a,
         .b = b,
         .what = what,
         .hint = hint,
         .meant = [](const std::string&) -> std::string {
           return "Which bytes a wgmma reads follows from where its slice begins, from the two strides, and from which is "
                  "K-major: a\nmatrix whose rows run along k, as A's do. B's rows run along n, so it is MN-major.";
         }},
        gemm);
  };
  ask("A and B are all ones", one, one, "Each sum is 64: four wgmma, of 16 products each. Does each of them add to what is there?")
      .at_least(wgmma(4), 1, "The products come from wgmma: one for each slice of 16 of k.");
  ask("row i of A is all i, B is all ones", row, one,
      "This asks for rows of A alone: 8 rows are a pattern of 1024 bytes, and `stride_bytes` leads to the next 8.");
  ask("row k of B is k - 15 for k from 16 to 31, else 0, A is all ones", one, slice_of_row,
      "This asks for slices of B alone: B's rows run along n, so the next 16 of k are 16 rows further down, and `stride_bytes` "
      "leads\n"
      "from 8 rows to the next 8.");
  ask("column k of A is k - 15 for k from 16 to 31, else 0, B is all ones", slice_of_col, one,
      "This asks for slices of A alone: A's rows run along k, so the next 16 of k are 32 bytes further on, in the same rows.");
  ask("A is all ones, column j of B is all j", one, col,
      "This asks for columns of B alone. B's rows run along n, so it is MN-major: of each row a panel has 64 columns, and\n"
      "`leading_bytes` leads to the next 64, in the next panel.");
  ask("in each row of A and each column of B, element k is k", col, row,
      "Each element k of A's row has to meet element k of B's column: is it the same slice of both?");

  const auto multiply = [&](Case c) {
    if (c.k > 64) c.hint = "k has several panels: does each product add to what the panels before it left in rC?";
    return coach.multiply<__half, float>(c, gemm);
  };
  Draw& draw = coach.draw();
  for (const Case& c :
       {Case{64, 128, 16}, Case{64, 128, 192}, Case{72, 136, 40}, Case{1, 8, 72}, Case{200, 8, 8}, Case{8, 16, 1032}})
    multiply(c);
  Case random{draw.between(1, 140), draw.between(1, 280), draw.between(1, 140)};
  random.padding = draw.padding(random.k, 8), random.padding_b = draw.padding(random.n, 8), random.drawn = draw.seed();
  multiply(random);

  for (const Case& c : {Case{64, 256, 128}, draw.tiles(64, 128, 64, 2)}) {
    const double panels = tiles(c, 64, 128, 64), of_k = panels * 4;
    multiply(c)
        .at_least(wgmma(of_k), 1, "The products come from wgmma: one for each slice of 16 of k.")
        .at_most(wgmma(of_k), 1, "One wgmma multiplies 64 x 16 by 16 x 128: one for each slice of 16 of k is enough.")
        .at_least(boxes(3 * panels), 1, "A panel comes by the copy engine.")
        .at_most(boxes(3 * panels), 1, "Each panel is copied once.")
        .at_most(asked(panels), 0, "No thread loads elements of A or B: the engine brings them.")
        .at_most(shared_loads(panels), 0, "No thread reads the panels: wgmma does, out of shared memory.")
        .at_most(mma(panels), 0, "wgmma multiplies, and no mma.sync.");
  }
  // A single stage, whose copies nothing hides: there is no bar for the time.
}

}  // namespace exercise

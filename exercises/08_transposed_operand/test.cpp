#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C);

void check(Coach& coach) {
  coach.lesson("steps/03_tensor_core/README.md, \"Walk\"");
  // One fragment of matrices that tell one mistake from the others.
  const auto row = [](int64_t r, int64_t) { return r; };
  const auto col = [](int64_t, int64_t c) { return c; };
  const auto one = [](int64_t, int64_t) { return 1; };
  const auto ask = [&](const char* what, const auto& a, const auto& b, const char* hint) {
    coach.multiply<__half, float>({.m = 16, .n = 16, .k = 16, .layout = "tt", .a = a, .b = b, .what = what, .hint = hint}, gemm);
  };
  ask("row i of A is all i, B is all ones", row, one,
      "This asks for rows of A alone. Row g is in rA[0] and rA[2] of lanes 4 g to 4 g + 3. In sA it is a column: which "
      "instruction\n"
      "gives a lane elements of a column? And which lanes give the rows of sA with m from 8 to 15?");
  ask("in each row of A and each column of B, element k is k", col, row,
      "This asks for k alone. rA[0] and rA[1] hold k from 0 to 7, rA[2] and rA[3] hold the rest. k is the row in sA: which lanes "
      "give\n"
      "these rows?");

  // Columns of A and B begin at multiples of 8 elements: m and the padding together are one, k and the padding too.
  for (const Case& c : {Case{64, 32, 64, "tt"}, Case{128, 64, 128, "tt"}, Case{80, 48, 72, "tt"}, Case{37, 41, 61, "tt", 11},
                        Case{1, 70, 9, "tt", 7}, Case{73, 1, 161, "tt", 7}})
    coach.multiply<__half, float>(c, gemm);

  for (const Case& c : coach.drawn({.layout = "tt", .aligned_a = 8, .aligned_b = 8})) coach.multiply<__half, float>(c, gemm);
  coach.multiply_far_rows<__half, float>(Case{3, 3, 3, "tt", 5}, gemm);

  constexpr const char* kRows =
      "Eight lanes give the rows of a matrix of 8 x 8. These rows should lie in different banks, and place() sees to it "
      "for the same\n"
      "chunk of eight rows.";
  // a block may be larger
  for (const Case& c : coach.draw().ragged(
           128, 64, 64, "tt",
           {Case{128, 64, 128, "tt"}, coach.draw().tiles(128, 128, 64, 1, "tt"), coach.draw().tiles(128, 64, 64, 1, "tt")})) {
    const double rounds = tiles(c, 64, 32, 64), blocks = tiles(c, 64, 32, c.k), warps = 4, slices = 4;
    const bool is_whole = c.m % 64 == 0 && c.n % 32 == 0 && c.k % 64 == 0;  // a copy at the edge writes less at a time
    const std::string are = are_pieces(c);
    coach.multiply<__half, float>(c, gemm)
        .at_least(mma(pieces(c)), 1, are + "The tensor core should multiply all of them.")
        .at_most(mma(rounds * 4 * 4 * 4), 1, are + "One mma.sync is enough for a piece.")
        .at_most(shared_loads(rounds * warps * slices * 3), 1,
                 "For a slice of 16 along k a warp needs one fragment of A and two squares of B. One instruction loads each, "
                 "transposed or not.")
        .at_most(shared_stores(rounds * 24), 1,
                 "A tile can be copied as it lies, 16 bytes at a time: 96 x 8 chunks are 24 stores of a warp, and none with "
                 "cp.async. Who\n"
                 "transposes A then?")
        .at_most(global_loads(rounds * 24), 2,
                 "A tile can be loaded as it lies, 16 bytes at a time: 96 x 8 chunks are 24 loads of a warp. Who loads single "
                 "elements,\nto transpose A?")
        .at_most(wavefronts_of_ideal(), is_whole ? 1 : 2, kRows)
        .at_most(wavefronts_of_ldmatrix(), 1, kRows)
        .at_most(barriers(2 * rounds + 2 * blocks), 1,
                 "Two barriers for each pair of tiles are enough. What do the others wait for?");
    coach.require_tensor_core<__half, float>(c, gemm);
  }
  // Zeros are multiplied as all other numbers are.
  for (const Case& c : with_zeros({.m = 64, .n = 32, .k = 64, .layout = "tt"})) {
    coach.multiply<__half, float>(c, gemm).at_least(
        mma(pieces(c)), 1,
        are_pieces(c) + "Each has its mma.sync, whatever is in it: a warp that looks for zeros first does more.");
  }
  coach.require_tensor_core<__half, float>(Case{37, 41, 61, "tt", 11}, gemm);

  coach.multiply_on_gpu<__half, float>({.m = 2048,
                                        .n = 2048,
                                        .k = 2048,
                                        .layout = "tt",
                                        .bar = 1.4,  // copies through registers are right, and slower
                                        .slow = "Who transposes A, and do the rows of a fragment conflict?"},
                                       gemm);
}

}  // namespace exercise

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
    coach.multiply<__half, float>({.m = 16, .n = 16, .k = 16, .layout = "nt", .a = a, .b = b, .what = what, .hint = hint}, gemm);
  };
  ask("row i of A is all i, B is all ones", row, one,
      "This asks for rows of A alone. Row g of the fragment is in rA[0], row g + 8 in rA[1]: which lanes give these rows?");
  ask("in each row of A and each column of B, element k is k", col, row,
      "This asks for k alone. rA[0] and rA[1] hold k from 0 to 7, rA[2] and rA[3] hold the rest: which lanes give these chunks?");

  // Rows of A and columns of B begin at multiples of 8 elements: k and the padding together are one.
  for (const Case& c : {Case{16, 16, 16, "nt"}, Case{64, 32, 64, "nt"}, Case{128, 64, 128, "nt"}, Case{80, 48, 72, "nt"},
                        Case{37, 41, 61, "nt", 11}, Case{1, 70, 150, "nt", 2}, Case{70, 1, 9, "nt", 7}})
    coach.multiply<__half, float>(c, gemm);

  for (const Case& c : coach.drawn({.layout = "nt", .aligned_a = 8, .aligned_b = 8})) coach.multiply<__half, float>(c, gemm);
  coach.multiply_far_rows<__half, float>(Case{3, 3, 3, "nt", 5}, gemm);

  // a block may be larger
  for (const Case& c : coach.draw().ragged(
           128, 64, 64, "nt",
           {Case{128, 64, 128, "nt"}, coach.draw().tiles(128, 128, 64, 1, "nt"), coach.draw().tiles(128, 64, 64, 1, "nt")})) {
    const double rounds = tiles(c, 64, 32, 64), blocks = tiles(c, 64, 32, c.k), warps = 4, slices = 4;
    const bool is_whole = c.m % 64 == 0 && c.n % 32 == 0 && c.k % 64 == 0;  // a copy at the edge writes less at a time
    const std::string are = are_pieces(c);
    coach.multiply<__half, float>(c, gemm)
        .at_least(mma(pieces(c)), 1, are + "The tensor core should multiply all of them.")
        .at_most(mma(rounds * 4 * 4 * 4), 1, are + "One mma.sync is enough for a piece.")
        .at_most(shared_loads(rounds * warps * slices * 3), 1,
                 "For a slice of 16 along k a warp needs one fragment of A and two squares of B. ldmatrix_x4 loads each at once.")
        .at_most(
            wavefronts_of_ldmatrix(), 1,
            "ldmatrix reads a matrix of 8 x 8 at once: the same chunk of eight rows. A chunk is 4 of the 32 banks. Where do the "
            "eight\nchunks lie?")
        .at_most(wavefronts_of_ideal(),
                 is_whole ? 1.25 : 2,  // where chunks are rotated instead of exchanged, some copies take longer
                 "Eight lanes that copy a row of 128 bytes should write one row, in order, rotated or exchanged by XOR.")
        .at_most(barriers(2 * rounds + 2 * blocks), 1,
                 "Two barriers for each pair of tiles are enough. What do the others wait for?");
    coach.require_tensor_core<__half, float>(c, gemm);
  }
  // Zeros are multiplied as all other numbers are.
  for (const Case& c : with_zeros({.m = 64, .n = 32, .k = 64, .layout = "nt"})) {
    coach.multiply<__half, float>(c, gemm).at_least(
        mma(pieces(c)), 1,
        are_pieces(c) + "Each has its mma.sync, whatever is in it: a warp that looks for zeros first does more.");
  }
  coach.require_tensor_core<__half, float>(Case{37, 41, 61, "nt", 11}, gemm);

  coach.multiply_on_gpu<__half, float>(
      {.m = 2048, .n = 2048, .k = 2048, .layout = "nt", .slow = "Which instruction fills a fragment, and do its rows conflict?"},
      gemm);
}

}  // namespace exercise

#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C);

void check(Coach& coach) {
  coach.lesson("steps/03_tensor_core/README.md, the picture of the lanes, and common/device/ptx.cuh, mma_m16n8k16");
  // One mma.sync of matrices that tell one mistake from the others.
  const auto row = [](int64_t r, int64_t) { return r; };
  const auto col = [](int64_t, int64_t c) { return c; };
  const auto one = [](int64_t, int64_t) { return 1; };
  const auto ask = [&](const char* what, const auto& a, const auto& b, const char* hint) {
    coach.multiply<__half, float>({.m = 16, .n = 8, .k = 16, .a = a, .b = b, .what = what, .hint = hint}, gemm);
  };
  ask("A and B are all ones", one, one,
      "Each element of C is the sum of 16 products. Does each lane fill all of rA and rB, and store its four elements of C?");
  ask("row i of A is all i, B is all ones", row, one,
      "This asks for rows alone: which row of A is in rA[0], which in rA[1]? Which row of C is in rC[0], which in rC[2]?");
  ask("A is all ones, column j of B is all j", one, col,
      "This asks for columns alone: which column of B is in rB[0] and rB[1]? Which column of C is in rC[0], which in rC[1]?");
  ask("in each row of A and each column of B, element k is k", col, row,
      "This asks for k alone: element k of A's row has to meet element k of B's column. Which k are in the halves of rA[0] and\n"
      "rA[2]? Which in those of rB[0] and rB[1]?");

  for (const Case& c : {Case{16, 8, 16}, Case{16, 8, 48}, Case{48, 24, 32}, Case{37, 19, 23}, Case{1, 33, 50}, Case{33, 1, 7}})
    coach.multiply<__half, float>(c, gemm);
  coach.multiply<__half, float>({.m = 20, .n = 12, .k = 40, .padding = 3}, gemm);

  for (const Case& c : coach.drawn({})) coach.multiply<__half, float>(c, gemm);
  coach.multiply_far_rows<__half, float>(Case{3, 3, 3}, gemm);

  // a block may be larger
  for (const Case& c : coach.draw().ragged(
           64, 32, 16, "nn", {Case{64, 64, 64}, coach.draw().tiles(64, 64, 16, 2), coach.draw().tiles(64, 64, 16, 1)})) {
    const bool is_whole = c.n % 8 == 0;  // else lanes that skip an element store the next one with others
    const double of_blocks = tiles(c, 64, 32, 16) * 4 * 4;
    const std::string are = are_pieces(c);
    coach.multiply<__half, float>(c, gemm)
        .at_least(mma(pieces(c)), 1, are + "The tensor core should multiply all of them.")
        .at_most(mma(of_blocks), 1, are + "One mma.sync is enough for a piece.")
        .at_most(global_loads(of_blocks * 12), 1,
                 "For a piece a lane needs 8 elements of A and 4 of B: 12 loads. Does each lane load what its own registers hold?")
        .at_most(stored(sector_bytes(c.m, c.n, harness::DType::kF32)), is_whole ? 2 : 3,
                 "Each element of C is stored once: neighbours one after the other, so each sector twice.");
    coach.require_tensor_core<__half, float>(c, gemm);
  }
  // Zeros are multiplied as all other numbers are.
  for (const Case& c : with_zeros({.m = 32, .n = 32, .k = 64})) {
    coach.multiply<__half, float>(c, gemm).at_least(
        mma(pieces(c)), 1,
        are_pieces(c) + "Each has its mma.sync, whatever is in it: a warp that looks for zeros first does more.");
  }
  // What is left of k, and of m and n, comes from the tensor core as well.
  coach.require_tensor_core<__half, float>(Case{37, 19, 23}, gemm);

  // Which lane holds what is all that this is about. Loads of single elements are slow by design, so there is no bar for the time.
}

}  // namespace exercise

#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C);

void check(Coach& coach) {
  coach.lesson("steps/06_autotune/README.md, \"Predict\", and docs/glossary.md, \"wave\"");
  constexpr const char* kParts =
      "A warp multiplies the slices of its warp_k alone. Are all kWarpsK parts of each element's sum added up, in float?";
  for (const Case& c :
       {Case{8, 64, 256}, Case{8, 32, 128}, Case{16, 72, 136}, Case{1, 80, 64}, Case{20, 40, 200}, Case{8, 8, 16}}) {
    Case hinted = c;
    hinted.hint = kParts;
    coach.multiply<__half, float>(hinted, gemm);
  }
  // Rows of A and of B begin at multiples of 8 elements: k and the padding together are one, and n and the padding.
  coach.multiply<__half, float>({.m = 5, .n = 35, .k = 75, .padding = 5}, gemm);
  coach.multiply<__half, float>({.m = 33, .n = 1, .k = 9, .padding = 7}, gemm);

  for (const Case& c : coach.drawn({.aligned_a = 8, .aligned_b = 8, .hint = kParts})) coach.multiply<__half, float>(c, gemm);
  coach.multiply_far_rows<__half, float>(Case{3, 3, 3, "nn", 5}, gemm);

  // The same as (8 x 4096) · (4096 x 4096) on 132 SMs: about 31 columns for each SM. k is a multiple of each kBlockK that is usual.
  Case few = {coach.draw().between(1, 16), 32 * coach.draw().between(1, 3), 3072};
  few.drawn = coach.draw().seed();
  Case ragged = {coach.draw().between(1, 8), 32 * coach.draw().between(0, 2) + coach.draw().between(17, 31), 3072};
  ragged.padding_b = (ragged.n + 15) / 16 * 16 - ragged.n;
  ragged.drawn = coach.draw().seed();
  for (const Case& c : {Case{8, 256, 3072}, few, ragged}) {
    const std::uint64_t steps = static_cast<std::uint64_t>(c.k) / 16, columns = static_cast<std::uint64_t>(c.n + 31) / 32;
    const double n = static_cast<double>(32 * columns), k = static_cast<double>(c.k);
    const Counts counts = coach.multiply<__half, float>(c, gemm);
    counts.at_least(mma(tiles(c, 16, 16, 16)), 1, "The tensor core should multiply all of it.")
        .at_most(mma(n / 8 * k / 16), 1,
                 "A has few rows, and mma.sync multiplies 16 at once. With how many rows of zeros does a block multiply besides?\n"
                 "Or does a warp multiply slices that are another warp's, or lie behind the end of k?")
        .at_least_blocks(
            columns,
            "4096 columns for 132 SMs are 31 for each. How many blocks does a tile of kBlockN columns give at n = 4096?\n"
            "The other SMs have nothing to do. This problem is a part of it: with 32 columns for a block it has " +
                std::to_string(columns) + " blocks.")
        .at_least_warps(
            4 * columns,
            "With one block on an SM, its warps are all that the SM has. It has four schedulers, and a scheduler without a\n"
            "warp does nothing. What can four warps share if a tile is as small as a fragment or two?")
        .at_most_mma_of("block", 4 * steps, "Each 32 columns have a block of their own. Which blocks have nothing to multiply?")
        .at_most_mma_of(
            "warp", steps,
            "Four warps share what 32 columns need: each multiplies as much as the others. Which warps only copy and wait?")
        .at_most(
            loaded(2 * k * n), c.m > 8 ? 2 : 1.5,
            "Most of it is B, and each element of B is used for 8 rows only. Is every byte of B loaded once? A is loaded again by\n"
            "each block: do its 8 rows stay few against the columns of B?");
#ifdef COURSE_ON_INTERPRETER
    double most = 0;  // if each warp multiplied as much as the busiest one of its launch
    for (const interpreter::KernelProfile& launch : counts.launches())
      most += static_cast<double>(launch.most_mma_of_warp * launch.grid.x * launch.grid.y * launch.grid.z) *
              ((launch.block.x * launch.block.y * launch.block.z + 31) / 32);
    coach.require(
        c.n % 32 || static_cast<double>(counts.total().mma) >= 0.75 * most,
        "The result is right, but some warps multiply much less than the others: all together " +
            std::to_string(counts.total().mma) + " mma instructions, and " + std::to_string(static_cast<std::uint64_t>(most)) +
            " if each warp had as many as the busiest one.\nWhich warps have no slice, no rows and no columns of their own?");
#endif
    if (!c.drawn) coach.require_tensor_core<__half, float>(c, gemm);
  }

  coach.multiply_on_gpu<__half, float>(
      {.m = 8,
       .n = 4096,
       .k = 4096,
       .bar = 1.6,  // the tile is yours to choose
       .slow = "B is 32 MiB, and each byte of it is needed once. Do all SMs load all of the time, with enough warps to wait?"},
      gemm);
}

}  // namespace exercise

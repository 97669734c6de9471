#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<__half> C);

void check(Coach& coach) {
  coach.lesson("steps/03_tensor_core/README.md, \"Walk\", and common/device/chunk_access.cuh");
  // Rows of A begin at multiples of 8 elements: k and the padding together are one.
  for (const Case& c : {Case{64, 64, 64}, Case{64, 65, 64}, Case{70, 97, 40}, Case{33, 128, 61, "nn", 3}, Case{20, 43, 91, "nn", 5},
                        Case{5, 7, 8}, Case{1, 130, 72}, Case{65, 1, 16}})
    coach.multiply<__half, __half>(c, gemm);
  coach.multiply<__half, __half>({.m = 16, .n = 64, .k = 64, .b_offset = 1}, gemm);
  coach.multiply<__half, __half>({.m = 16, .n = 56, .k = 24, .b_offset = 4}, gemm);

  coach.multiply<__half, __half>({64, 72, 64}, gemm)
      .launches(1, "Rows of B are 72 elements apart, 9 chunks. What is a copy of B good for here?");
  coach.multiply<__half, __half>({.m = 64, .n = 50, .k = 58, .padding = 6}, gemm)
      .launches(
          1,
          "Rows of B have 50 elements, but they are 56 apart, 7 chunks: all of them begin at a chunk. What is a copy of B good "
          "for here?");

  // 3 x 2 tiles of C, each with one tile of A and one of B. A warp's 32 chunks are a quarter of a kilobyte and more of a tile.
  constexpr int kM = 192, kN = 97, kK = 64, kTiles = 3 * 2, kChunksOfTile = 64 * 64 / 8, kWarpsOfRow = 4;
  const Counts counts = coach.multiply<__half, __half>({kM, kN, kK}, gemm);
  counts.at_most(global_loads(kK * kWarpsOfRow + kTiles * 2 * kChunksOfTile / 32), 1,
                 "C has 3 rows of tiles, and each of them loads B anew. In chunks of 16 bytes a warp loads 256 elements at once, "
                 "one by one only "
                 "32.\n"
                 "Who loads B one by one, and how often?");
  counts.launches(2, "One kernel copies B to where its rows begin at chunks, another one multiplies. Both run on the GPU.");

  coach.multiply_on_gpu<__half, __half>(
      {.m = 1024,
       .n = 50257,
       .k = 768,
       .slow = "How long are the rows of the copy of B? What it has too much is copied and multiplied, too."},
      gemm);
}

}  // namespace exercise

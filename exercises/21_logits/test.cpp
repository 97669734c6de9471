#include <array>
#include <vector>

#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<__half> C);

namespace {

// What a report of the interpreter cannot know of this exercise.
std::string meant(const std::string& report) {
  const auto says = [&](const char* words) { return report.find(words) != std::string::npos; };
  if (says("misaligned") && says("from B"))
    return "B was taken as it is, and a row of it does not begin at a chunk. Row r begins at B.data + r * B.row_stride: both have "
           "to\n"
           "be right, and what a row holds, B.cols, says nothing about it. Of one row, the stride counts as well.";
  if (says("uninitialised") && says("of padded"))
    return "multiply_kernel reads all of the copy's rows, also behind B's last column. Who writes there?";
  if (says("padded")) return "How long is a row of the copy? padded_cols() says it, and pad_kernel writes so many elements.";
  return "";
}

Case with_hint(Case c) {
  c.hint =
      "Is B's copy long enough for all of its columns, and is element (row, col) of B at (row, col) of the copy? Where B has no\n"
      "such element the copy has 0.";
  c.meant = meant;
  return c;
}

Counts multiply(const Coach& coach, const Case& c) { return coach.multiply<__half, __half>(with_hint(c), gemm); }

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/03_tensor_core/README.md, \"Walk\", and common/device/chunk_access.cuh");
  // Rows of A begin at multiples of 8 elements: k and the padding together are one.
  for (const Case& c : {Case{64, 64, 64}, Case{64, 65, 64}, Case{70, 97, 40}, Case{33, 128, 61, "nn", 3}, Case{20, 43, 91, "nn", 5},
                        Case{5, 7, 8}, Case{1, 130, 72}, Case{65, 1, 16}})
    multiply(coach, c);
  multiply(coach, {.m = 16, .n = 64, .k = 64, .b_offset = 1});
  multiply(coach, {.m = 16, .n = 56, .k = 24, .b_offset = 4});

  coach.multiply<__half, __half>({.m = 16, .n = 65, .k = 40, .again = true}, gemm);
  std::vector<Case> drawn = coach.drawn({.aligned_a = 8, .b_offsets = 7});
  for (int64_t i = 0; i <= 8; ++i)  // all that B's rows, and B itself, can be away from a chunk
    for (const bool stride : {false, true}) {
      Case c = {5, 8 * coach.draw().between(1, 12), 8 * coach.draw().between(1, 6)};
      c.drawn = coach.draw().seed();
      c.padding_b = stride ? i : 0, c.b_offset = stride ? 0 : i % 8;
      drawn.push_back(c);
    }
  for (const int64_t chunks : {int64_t{1}, int64_t{3}, coach.draw().between(1, 16)}) {  // B begins at a chunk, and at nothing wider
    Case c = {5, 8 * coach.draw().between(1, 12), 8 * coach.draw().between(1, 6)};
    c.padding_b = 0, c.b_offset = 8 * chunks, c.drawn = coach.draw().seed();
    drawn.push_back(c);
  }
  for (int64_t i = 1; i < 8; ++i) {  // a single row of B
    Case c = {5, 8 * coach.draw().between(1, 12), 1};
    c.padding = 7, c.padding_b = i % 2 ? i : 0, c.b_offset = i % 2 ? 0 : i;
    c.drawn = coach.draw().seed();
    drawn.push_back(c);
  }
  for (const std::int64_t i : {std::int64_t{4}, coach.draw().between(1, 7)}) {  // stride and address together are a multiple
    Case c = {5, 8 * coach.draw().between(1, 12), 8 * coach.draw().between(1, 6)};
    c.padding_b = i, c.b_offset = 8 - i, c.drawn = coach.draw().seed();
    drawn.push_back(c);
  }
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{12, 7, 12}, {200, 12, 12}, {12, 12, 300}, {12, 1200, 12}}) {
    Case c = {coach.draw().length(m), coach.draw().length(n), coach.draw().length(k)};  // B has chunks, whatever is short or long
    c.padding = coach.draw().padding(c.k, 8), c.padding_b = coach.draw().padding(c.n, 8), c.drawn = coach.draw().seed();
    drawn.push_back(c);
  }
  for (const int64_t padding_b : {5, 4})  // B's rows begin at chunks, or it is copied
    coach.multiply_far_rows<__half, __half>(Case{.m = 3, .n = 3, .k = 3, .padding = 5, .padding_b = padding_b}, gemm);
  multiply(coach, {64, 72, 64}).launches(1, "Rows of B are 72 elements apart, 9 chunks. What is a copy of B good for here?");
  multiply(coach, {.m = 64, .n = 50, .k = 58, .padding = 6})
      .launches(
          1,
          "Rows of B have 50 elements, but they are 56 apart, 7 chunks: all of them begin at a chunk. What is a copy of B good "
          "for here?");
  for (const Case& c : drawn) {
    const bool has_chunks = (c.n + c.padding_b) % 8 == 0 && c.b_offset % 8 == 0;
    const Counts counts = multiply(coach, c);
    if (has_chunks) counts.launches(1, "All rows of B begin at a chunk. What is a copy of B good for here?");
  }

  // Tiles of C, each with tiles of A and of B. A warp's 32 chunks are a quarter of a kilobyte and more of a tile.
  Case odd = coach.draw().tiles(64, 64, 64, 2);
  odd.m += 64, odd.n += 1 + 2 * coach.draw().between(0, 31);
  for (const Case& c : {Case{192, 97, 64}, odd}) {
    constexpr int64_t kChunksOfTile = 64 * 64 / 8;
    const int64_t tiles_m = c.m / 64, tiles = tiles_m * ((c.n + 63) / 64) * (c.k / 64), warps_of_row = (c.n + 63) / 64 * 2;
    const Counts counts = multiply(coach, c);
    counts.at_most(global_loads(static_cast<double>(c.k * warps_of_row + tiles * 2 * kChunksOfTile / 32)), 1,
                   "C has " + std::to_string(tiles_m) +
                       " rows of tiles, and each of them loads B anew. In chunks of 16 bytes a warp loads 256 elements at once, "
                       "one by one only 32.\n"
                       "Who loads B one by one, and how often?");
    counts.at_most(asked(static_cast<double>(c.k * c.n * 2 + tiles * 2 * 64 * 64 * 2)), 1,
                   "Elements of B that exist are copied, and nothing else is loaded for the copy. What is written where B has no "
                   "element?");
    counts.launches(2, "One kernel copies B to where its rows begin at chunks, another one multiplies. Both run on the GPU.");
    coach.require_tensor_core<__half, __half>(c, gemm);
  }

  coach.multiply_on_gpu<__half, __half>(
      {.m = 1024,
       .n = 50257,
       .k = 768,
       .slow = "How long are the rows of the copy of B? What it has too much is copied and multiplied, too."},
      gemm);
}

}  // namespace exercise

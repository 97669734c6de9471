#include <string>
#include <utility>
#include <vector>

#include "common/exercise/coach.h"

namespace exercise {

void scores(Matrix<const __half> Q, Matrix<const __half> K, Matrix<__half> S);

namespace {

// Scores of so many heads, queries and keys.
Heads heads(std::int64_t count, std::int64_t queries, std::int64_t keys, std::int64_t padding, std::string hint) {
  Heads h;
  h.each = {.m = queries, .n = keys, .k = 128, .layout = "nt", .padding = padding, .hint = std::move(hint)};
  h.count = count;
  h.c_beside = false;
  h.factor = 0.08838834764831845;  // 1 / sqrt(128)
  h.names = "QKS";
  return h;
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/07_fused_leaky_relu/README.md, and common/gemm/matrix.h");
  coach.multiply_heads<__half, __half>(heads(1, 64, 64, 0,
                                             "There is one head only. Is the sum divided by the square root of 128, about 11.3, in "
                                             "float, before it is rounded to f16?"),
                                       scores);
  // The sums are 128 * 32 * 32, more than f16 can hold.
  Heads large = heads(1, 16, 16, 0, "f16 ends at 65504. Is the sum divided before it is rounded to f16?");
  large.each.a = large.each.b = [](std::int64_t, std::int64_t) { return 32; };
  large.each.what = "Q and K are all 32";
  coach.multiply_heads<__half, __half>(large, scores);

  const std::string hint =
      "Head h is columns 128 h to 128 h + 127 of Q and K, and rows h * queries to (h + 1) * queries - 1 of S. A row of Q is as "
      "long "
      "as\nall heads together, and longer with padding: Q.row_stride. The same goes for K.";
  coach.multiply_heads<__half, __half>(heads(2, 64, 64, 0, hint), scores);
  coach.multiply_heads<__half, __half>(heads(3, 37, 70, 8, hint), scores);
  coach.multiply_heads<__half, __half>(heads(2, 1, 72, 0, hint), scores);
  coach.multiply_heads<__half, __half>(heads(2, 80, 1, 16, hint), scores);

  // Rows of S are chunks only if they are so far apart, whatever they hold.
  const auto with_strides = [](Heads h, std::int64_t of_q, std::int64_t of_k, std::int64_t of_s) {
    h.each.padding = of_q, h.each.padding_b = of_k, h.each.padding_c = of_s;
    return h;
  };
  coach.multiply_heads<__half, __half>(with_strides(heads(2, 20, 68, 0, hint), 8, 24, 4), scores);
  coach.multiply_heads<__half, __half>(with_strides(heads(2, 20, 72, 0, hint), 24, 0, 4), scores);
  Draw& draw = coach.draw();
  for (int i = 0; i < 3; ++i) {
    Heads h =
        with_strides(heads(i == 0 ? draw.between(4, 9) : draw.between(1, 3), i == 1 ? draw.between(129, 300) : draw.length(70),
                           i == 2 ? draw.between(129, 300) : draw.length(70), 0, hint),
                     8 * draw.between(0, 3), 8 * draw.between(0, 3), draw.between(0, 9));
    h.each.drawn = draw.seed(), h.each.again = i == 0;
    coach.multiply_heads<__half, __half>(h, scores);
  }
  for (const std::int64_t offset : {std::int64_t{4}, draw.between(1, 7)}) {
    Heads behind = with_strides(heads(2, 20, 72, 0, hint), 0, 0, 8);  // its rows are chunks as far as the stride goes
    behind.each.c_offset = offset, behind.each.drawn = draw.seed();
    coach.multiply_heads<__half, __half>(behind, scores);
  }
  coach.multiply_far_rows<__half, __half>(heads(2, 3, 3, 0, hint), scores);

  Heads other = heads(draw.between(1, 3), 128 * draw.between(1, 2), 128, 0, hint);
  other.each.drawn = draw.seed();
  std::vector<Heads> counted = {heads(2, 128, 64, 0, hint), other};
  for (const Case& c : draw.ragged(128, 64, 128, "nt")) {  // a block may be larger
    const std::int64_t chunks = (c.n + 7) / 8;             // of a row of S: single elements at its end would be more stores
    counted.push_back(with_strides(heads(2, c.m, 8 * chunks, 0, hint), 0, 0, 8 * (chunks % 2)));
    counted.back().each.drawn = draw.seed();
  }
  for (const Heads& h : counted) {
    const double count = static_cast<double>(h.count);
    const Case& c = h.each;
    const Counts counts = coach.multiply_heads<__half, __half>(h, scores);
    counts.launches(1,
                    "K need not be transposed first: in memory K row by row is K transposed column by column. And one launch has\n"
                    "blocks enough for all heads, where a single head has too few.");
    counts
        .at_most(loaded(count * tile_bytes(c, 64, 64, harness::DType::kF16)), 1,
                 "A block of 64 x 64 scores loads 64 rows of the head's Q and 64 rows of its K, each once. Who loads more?")
        .at_most(stored(count * sector_bytes(c.m, c.n, harness::DType::kF16)), 1,
                 "A score is stored once, when it is scaled. S is most of what is moved here.")
        .at_least(mma(count * pieces(c)), 1, "The tensor core should multiply all of it.")
        .at_most(mma(count * tiles(c, 64, 64, 64) * 4 * 8 * 4), 1, "One mma.sync is enough for each piece of 16 x 8 x 16.");
    coach.require_tensor_core<__half, __half>(h, scores);
  }

  Heads whole = heads(4, 2048, 2048, 0, hint);
  whole.each.slow = "S is most of what is moved. Is each score stored once, and do neighbouring blocks share rows of Q or K?";
  coach.multiply_heads_on_gpu<__half, __half>(whole, scores);
}

}  // namespace exercise

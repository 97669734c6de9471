#include <string>
#include <utility>
#include <vector>

#include "common/exercise/coach.h"

namespace exercise {

void scores(Matrix<const __half> Q, Matrix<const __half> K, Matrix<__half> S);
void values(Matrix<const __half> P, Matrix<const __half> V, Matrix<__half> O);

namespace {

// What a report of the interpreter cannot know of this exercise.
std::string meant(const std::string& report) {
  const auto says = [&](const char* words) { return report.find(words) != std::string::npos; };
  if (says("race on S") || says("race on O"))
    return "Two blocks store the same element. Where does a head's part begin: do the heads of S lie one below the other, those of "
           "O\n"
           "side by side?";
  const std::string beyond = "A view goes beyond the matrix. ";
  if (!says("out of bounds")) return "";
  if (says("variable K"))
    return beyond + "K transposed has rows and columns exchanged, and both strides too. Is it as long as the head's keys?";
  if (says("variable S") || says("variable P"))
    return beyond + "S and P have the heads one below the other, each with a row for each *query*: as many as Q and O have.";
  if (says("variable Q") || says("variable V") || says("variable O"))
    return beyond + "In Q, K, V and O the heads lie side by side: head h begins h * 128 columns to the right, in row 0.";
  return "";
}

// Scores of so many heads, queries and keys.
Heads scores_of(std::int64_t count, std::int64_t queries, std::int64_t keys, std::int64_t padding, std::string hint) {
  Heads h;
  h.each = {.m = queries, .n = keys, .k = 128, .layout = "nt", .padding = padding, .hint = std::move(hint), .meant = meant};
  h.count = count;
  h.c_beside = false;
  h.factor = 0.08838834764831845;  // 1 / sqrt(128)
  h.names = "QKS";
  return h;
}

// Values of so many heads, queries and keys.
Heads values_of(std::int64_t count, std::int64_t queries, std::int64_t keys, std::int64_t padding = 0) {
  Heads h;
  h.each = {
      .m = queries,
      .n = 128,
      .k = keys,
      .padding = padding,
      .hint =
          "Head h is columns 128 h to 128 h + 127 of V and of O. Rows are O.row_stride apart in O, and V.row_stride in V.\nP has "
          "the heads one below the other, each with as many rows as O.",
      .meant = meant};
  h.count = count;
  h.a_beside = false;
  h.names = "PVO";
  return h;
}

// With so much between the rows of the first operand, the second one and the result.
Heads with_strides(Heads h, std::int64_t of_a, std::int64_t of_b, std::int64_t of_c) {
  h.each.padding = of_a, h.each.padding_b = of_b, h.each.padding_c = of_c;
  return h;
}

void check_scores(Coach& coach) {
  coach.lesson("steps/07_fused_leaky_relu/README.md, and common/gemm/matrix.h");
  coach.multiply_heads<__half, __half>(scores_of(1, 64, 64, 0,
                                                 "There is one head only. Is the sum divided by the square root of 128, which is "
                                                 "11.3137085, once, in float, and before it is\nrounded to f16?"),
                                       scores);
  // The sums are 128 * 32 * 32, more than f16 can hold.
  Heads large = scores_of(1, 16, 16, 0, "f16 ends at 65504. Is the sum divided before it is rounded to f16?");
  large.each.a = large.each.b = [](std::int64_t, std::int64_t) { return 32; };
  large.each.what = "Q and K are all 32";
  coach.multiply_heads<__half, __half>(large, scores);

  const std::string hint =
      "Head h is columns 128 h to 128 h + 127 of Q and K, and rows h * queries to (h + 1) * queries - 1 of S. A row of Q is as "
      "long as\nall heads together, and longer with padding: Q.row_stride. The same goes for K.";
  coach.multiply_heads<__half, __half>(scores_of(2, 64, 64, 0, hint), scores);
  coach.multiply_heads<__half, __half>(scores_of(3, 37, 70, 8, hint), scores);
  coach.multiply_heads<__half, __half>(scores_of(2, 1, 72, 0, hint), scores);
  coach.multiply_heads<__half, __half>(scores_of(2, 80, 1, 16, hint), scores);

  // Rows of S are chunks only if they are so far apart, whatever they hold.
  coach.multiply_heads<__half, __half>(with_strides(scores_of(2, 20, 68, 0, hint), 8, 24, 4), scores);
  coach.multiply_heads<__half, __half>(with_strides(scores_of(2, 20, 72, 0, hint), 24, 0, 4), scores);
  Draw& draw = coach.draw();
  for (int i = 0; i < 3; ++i) {
    Heads h =
        with_strides(scores_of(i == 0 ? draw.between(4, 9) : draw.between(1, 3), i == 1 ? draw.between(129, 300) : draw.length(70),
                               i == 2 ? draw.between(129, 300) : draw.length(70), 0, hint),
                     8 * draw.between(0, 3), 8 * draw.between(0, 3), draw.between(0, 9));
    h.each.drawn = draw.seed(), h.each.again = i == 0;
    coach.multiply_heads<__half, __half>(h, scores);
  }
  for (const std::int64_t offset : {std::int64_t{4}, draw.between(1, 7)}) {
    Heads behind = with_strides(scores_of(2, 20, 72, 0, hint), 0, 0, 8);  // its rows are chunks as far as the stride goes
    behind.each.c_offset = offset, behind.each.drawn = draw.seed();
    coach.multiply_heads<__half, __half>(behind, scores);
  }
  coach.multiply_far_rows<__half, __half>(scores_of(2, 3, 3, 0, hint), scores);

  Heads other = scores_of(draw.between(1, 3), 128 * draw.between(1, 2), 128, 0, hint);
  other.each.drawn = draw.seed();
  std::vector<Heads> counted = {scores_of(2, 128, 64, 0, hint), other};
  for (const Case& c : draw.ragged(128, 64, 128, "nt")) {  // a block may be larger
    const std::int64_t chunks = (c.n + 7) / 8;             // of a row of S: single elements at its end would be more stores
    counted.push_back(with_strides(scores_of(2, c.m, 8 * chunks, 0, hint), 0, 0, 8 * (chunks % 2)));
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

  Heads whole = scores_of(4, 2048, 2048, 0, hint);
  whole.each.slow = "S is most of what is moved. Is each score stored once, and do neighbouring blocks share rows of Q or K?";
  coach.multiply_heads_on_gpu<__half, __half>(whole, scores);
}

void check_values(Coach& coach) {
  coach.lesson("docs/roofline.md, \"Bytes\", and common/gemm/matrix.h");
  // Rows of P begin at multiples of 8 elements: keys and the padding together are one, and the padding of V is the same.
  for (const Heads& h :
       {values_of(1, 64, 64), values_of(2, 64, 64), values_of(3, 37, 72, 8), values_of(2, 1, 136), values_of(2, 70, 8)})
    coach.multiply_heads<__half, __half>(h, values);

  coach.multiply_heads<__half, __half>(with_strides(values_of(2, 20, 72), 0, 24, 4), values);
  coach.multiply_heads<__half, __half>(with_strides(values_of(2, 20, 72), 16, 0, 8), values);
  Draw& draw = coach.draw();
  for (int i = 0; i < 3; ++i) {
    const std::int64_t keys = i == 2 ? draw.between(257, 600) : draw.length(70);
    Heads h = with_strides(
        values_of(i == 0 ? draw.between(4, 7) : draw.between(1, 3), i == 1 ? draw.between(129, 300) : draw.length(70), keys),
        draw.padding(keys, 8), 8 * draw.between(0, 3), draw.between(0, 9));
    h.each.drawn = draw.seed(), h.each.again = i == 0;
    coach.multiply_heads<__half, __half>(h, values);
  }
  for (const std::int64_t offset : {std::int64_t{4}, draw.between(1, 7)}) {
    Heads behind = with_strides(values_of(2, 20, 72), 0, 0, 8);  // its rows are chunks as far as the stride goes
    behind.each.c_offset = offset, behind.each.drawn = draw.seed();
    coach.multiply_heads<__half, __half>(behind, values);
  }
  coach.multiply_far_rows<__half, __half>(with_strides(values_of(2, 3, 3), 5, 0, 3), values);

  // 16 rows are one tile, however many rows that has: what is loaded beyond P and V is P again.
  constexpr std::int64_t kHeads = 2, kN = 128, kK = 128;
  const Counts few = coach.multiply_heads<__half, __half>(values_of(2, 16, 128), values);
  few.launches(1, "One launch has blocks enough for all heads, where a single head has too few.");
  few.at_most(loaded(static_cast<double>(kHeads * (16 * kK * 2 + kN * kK * 2))), 1,
              "The large operand is P: with 2048 tokens its rows have 2048 numbers, those of V and O have 128 for each head.\n"
              "How many tiles lie beside each other in a head's O? Each of them reads the same rows of P.");
  Heads other = values_of(draw.between(1, 3), 128, 128 * draw.between(1, 3));  // a block may take 128 keys at once
  other.each.drawn = draw.seed();
  std::vector<Heads> counted = {values_of(2, 128, 128), other};
  for (const Case& c : draw.ragged(128, kN, 128)) {  // a block may have 128 rows
    Heads h = values_of(2, c.m, (c.k + 7) / 8 * 8);
    h.each.padding = 8 * (h.each.k / 8 % 2), h.each.padding_b = h.each.padding_c = 0;
    h.each.drawn = draw.seed();
    counted.push_back(h);
  }
  for (const Heads& h : counted) {
    const double count = static_cast<double>(h.count);
    const Case& c = h.each;
    coach.multiply_heads<__half, __half>(h, values)
        .at_most(loaded(count * tile_bytes(c, 64, kN, harness::DType::kF16)), 1,
                 "Each block reads all of the head's V. With 64 rows of O for each block this would be 1. Who loads more?")
        .at_least(mma(count * pieces(c)), 1, "The tensor core should multiply all of it.")
        .at_most(mma(count * tiles(c, 64, kN, 64) * 4 * 16 * 4), 1, "One mma.sync is enough for each piece of 16 x 8 x 16.")
        .at_most(stored(count * sector_bytes(c.m, c.n, harness::DType::kF16)), 1,
                 "O is stored once, when its sums are complete. Who stores more?");
    coach.require_tensor_core<__half, __half>(h, values);
  }

  Heads whole = values_of(4, 2048, 2048);
  whole.each.bar = 1.7;  // the tile is yours to choose
  whole.each.slow = "Four heads of 2048 rows are few blocks. Does each of them read P once, and are all SMs busy?";
  coach.multiply_heads_on_gpu<__half, __half>(whole, values);
}

}  // namespace

void check(Coach& coach) {
  check_scores(coach);
  check_values(coach);
}

}  // namespace exercise

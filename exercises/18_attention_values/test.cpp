#include <string>
#include <utility>
#include <vector>

#include "common/exercise/coach.h"

namespace exercise {

void values(Matrix<const __half> P, Matrix<const __half> V, Matrix<__half> O);

namespace {

// Values of so many heads, queries and keys.
Heads heads(std::int64_t count, std::int64_t queries, std::int64_t keys, std::int64_t padding = 0) {
  Heads h;
  h.each = {
      .m = queries,
      .n = 128,
      .k = keys,
      .padding = padding,
      .hint = "Head h is columns 128 h to 128 h + 127 of V and of O. Rows are O.row_stride apart in O, and V.row_stride in V."};
  h.count = count;
  h.a_beside = false;
  h.names = "PVO";
  return h;
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("docs/roofline.md, \"Bytes\", and exercise 17");
  // Rows of P begin at multiples of 8 elements: keys and the padding together are one, and the padding of V is the same.
  for (const Heads& h : {heads(1, 64, 64), heads(2, 64, 64), heads(3, 37, 72, 8), heads(2, 1, 136), heads(2, 70, 8)})
    coach.multiply_heads<__half, __half>(h, values);

  const auto with_strides = [](Heads h, std::int64_t of_p, std::int64_t of_v, std::int64_t of_o) {
    h.each.padding = of_p, h.each.padding_b = of_v, h.each.padding_c = of_o;
    return h;
  };
  coach.multiply_heads<__half, __half>(with_strides(heads(2, 20, 72), 0, 24, 4), values);
  coach.multiply_heads<__half, __half>(with_strides(heads(2, 20, 72), 16, 0, 8), values);
  Draw& draw = coach.draw();
  for (int i = 0; i < 3; ++i) {
    const std::int64_t keys = i == 2 ? draw.between(257, 600) : draw.length(70);
    Heads h = with_strides(
        heads(i == 0 ? draw.between(4, 7) : draw.between(1, 3), i == 1 ? draw.between(129, 300) : draw.length(70), keys),
        draw.padding(keys, 8), 8 * draw.between(0, 3), draw.between(0, 9));
    h.each.drawn = draw.seed(), h.each.again = i == 0;
    coach.multiply_heads<__half, __half>(h, values);
  }
  for (const std::int64_t offset : {std::int64_t{4}, draw.between(1, 7)}) {
    Heads behind = with_strides(heads(2, 20, 72), 0, 0, 8);  // its rows are chunks as far as the stride goes
    behind.each.c_offset = offset, behind.each.drawn = draw.seed();
    coach.multiply_heads<__half, __half>(behind, values);
  }
  coach.multiply_far_rows<__half, __half>(with_strides(heads(2, 3, 3), 5, 0, 3), values);

  // 16 rows are one tile, however many rows that has: what is loaded beyond P and V is P again.
  constexpr std::int64_t kHeads = 2, kN = 128, kK = 128;
  const Counts few = coach.multiply_heads<__half, __half>(heads(2, 16, 128), values);
  few.launches(1, "One launch has blocks enough for all heads, where a single head has too few.");
  few.at_most(loaded(static_cast<double>(kHeads * (16 * kK * 2 + kN * kK * 2))), 1,
              "The large operand is P: with 2048 tokens its rows have 2048 numbers, those of V and O have 128 for each head.\n"
              "How many tiles lie beside each other in a head's O? Each of them reads the same rows of P.");
  Heads other = heads(draw.between(1, 3), 128, 64 * draw.between(1, 5));
  other.each.drawn = draw.seed();
  std::vector<Heads> counted = {heads(2, 128, 128), other};
  for (const Case& c : draw.ragged(128, kN, 128)) {  // a block may have 128 rows
    Heads h = heads(2, c.m, (c.k + 7) / 8 * 8);
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

  Heads whole = heads(4, 2048, 2048);
  whole.each.bar = 1.7;  // the tile is yours to choose
  whole.each.slow = "Four heads of 2048 rows are few blocks. Does each of them read P once, and are all SMs busy?";
  coach.multiply_heads_on_gpu<__half, __half>(whole, values);
}

}  // namespace exercise

#include "common/exercise/coach.h"

namespace exercise {

void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C);

namespace {

Figure boxes_loaded(double of) {
  return {"boxes that the copy engine is asked for, as a multiple of what is needed",
          [](const interpreter::Counters& c) { return static_cast<double>(c.bulk_read.requests); },
          [of](const interpreter::Counters&) { return of; }};
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/16_multicast/README.md, and first.cu beside it");
  // One slice; a stage for each; the first stage again; and what sticks out of C.
  for (const Case& c : {Case{32, 32, 16}, Case{32, 32, 32}, Case{32, 32, 48}, Case{32, 32, 80}})
    coach.multiply<float, float>(c, gemm);
  coach.multiply<float, float>({.m = 34, .n = 20, .k = 52, .padding = 4}, gemm);
  Draw& draw = coach.draw();
  for (int i = 0; i < 4; ++i) {
    Case c{.m = draw.length(70), .n = draw.length(70), .k = draw.length(70), .again = i == 0, .drawn = draw.seed()};
    c.padding = draw.padding(c.k, 4), c.padding_b = draw.padding(c.n, 4), c.padding_c = draw.padding(c.n);
    coach.multiply<float, float>(c, gemm);
  }

  // Whole tiles, and some that end in the second half of one.
  for (const Case& c :
       {Case{64, 32, 64}, Case{32 - draw.between(1, 15), 64 - 4 * draw.between(1, 3), 16 * draw.between(2, 5) - 4}}) {
    const double clusters = tiles(c, 32, 32, c.k), boxes = tiles(c, 32, 32, 16);
    coach.multiply<float, float>(c, gemm)
        .at_least(boxes_loaded(3 * boxes), 1, "The copy engine brings all of A and B.")
        .at_most(boxes_loaded(3 * boxes), 1,
                 "For each slice of k, the two blocks of a cluster need two boxes of A and one of B. Who asks for B's box has it "
                 "brought to both:\ncp_async_bulk_tensor_2d_multicast().")
        .at_most(global_loads(1), 0, "Nothing is left for threads to load.")
        .at_most(
            barriers(clusters * 2 * 3), 1,
            "The blocks meet at the beginning and at the end. In between, `full` and `empty` are enough: nobody waits for all.")
        .at_least_blocks(static_cast<std::uint64_t>(2 * clusters),
                         "A block has 16 rows and 32 columns of C, and a cluster two blocks.");
  }

  // The copies are the same in all answers that pass: no bar for the time.
}

}  // namespace exercise

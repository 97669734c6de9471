#include <array>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "common/device/device.cuh"
#include "common/exercise/coach.h"
#include "common/exercise/posed.h"
#include "common/exercise/witness.h"

namespace exercise {

void project(Matrix<const __half> X, Matrix<const __half> W_k, Matrix<const __half> W_v, Matrix<__half> K, Matrix<__half> V);

namespace {

// The left half of a matrix's columns, or the right half.
template <class T>
Matrix<T> half_of(const Matrix<T>& m, bool right) {
  return {m.at(0, right ? m.cols / 2 : 0), m.rows, m.cols / 2, m.row_stride, m.col_stride};
}

// V is the left half of C, K is the right half: so W_v does not come after W_k in memory.
void project_halves(Matrix<const __half> A, Matrix<const __half> B, Matrix<__half> C) {
  project(A, half_of(B, true), half_of(B, false), half_of(C, true), half_of(C, false));
}

// K and V, and so on, lie anywhere, and the rows of each have their own length.
void five(const Coach& coach, int64_t tokens, int64_t width, int64_t k) {
  Draw& draw = coach.draw();
  Case of_k = {.m = tokens, .n = width, .k = k, .layout = "nt", .padding = draw.padding(k, 8)};
  // Numbers of X, which both products have.
  of_k.a = [seed = static_cast<int64_t>(draw.seed())](int64_t row, int64_t col) {
    return static_cast<double>(((row * 131 + col * 31 + seed) * 7919 % 1009 + (row * col) % 127) % 257 - 128) / 64;
  };
  of_k.drawn = draw.seed();
  Case of_v = of_k;
  of_v.drawn = draw.seed() + 1;
  for (Case* const each : {&of_k, &of_v}) each->padding_b = draw.padding(k, 8), each->padding_c = draw.padding(width);
  if (of_k.padding_c % 2 == 0) of_v.padding_c = of_k.padding_c + 8;  // the remainder is the same, and the stride is not
  const auto number = [](int64_t x) { return std::to_string(x); };
  coach.run(number(tokens) + " tokens of " + number(k) + ", K and V of " + number(width) +
                " columns; rows of W_k, W_v, K and V are " + number(of_k.padding_b) + ", " + number(of_v.padding_b) + ", " +
                number(of_k.padding_c) + " and " + number(of_v.padding_c) + " elements longer than what they hold (--seed " +
                std::to_string(draw.seed()) + ")",
            [&] {
              const auto K = posed(of_k, harness::DType::kF16, harness::DType::kF16),
                         V = posed(of_v, harness::DType::kF16, harness::DType::kF16);
              const Operands k_side = K->operands(), v_side = V->operands();
              asked([&] {
                project(k_side.A<__half>(), k_side.B<__half>(), v_side.B<__half>(), k_side.C<__half>(), v_side.C<__half>());
                device::synchronize();
              });
              for (const auto& [matrix, problem] : {std::pair{"K", K.get()}, {"V", V.get()}})
                if (std::string wrong = problem->verify(); !wrong.empty())
                  throw NotYet{"The result is wrong: " + std::regex_replace(wrong, std::regex("\\bC\\b"), matrix) +
                               ".\nEach of the five matrices has a stride of its own."};
            });
}

Case both(int64_t tokens, int64_t width, int64_t k, int64_t padding = 0) {
  return {.m = tokens,
          .n = 2 * width,
          .k = k,
          .layout = "nt",
          .padding = padding,
          .what = "where A is X, B is W_v and then W_k, C is V and then K",
          .hint = "Columns 0 to " + std::to_string(width - 1) + " of C are V, columns " + std::to_string(width) + " to " +
                  std::to_string(2 * width - 1) + " are K."};
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/06_autotune/README.md, \"Picture\", and steps/05_l2_swizzle/README.md, \"Walk\"");
  // Rows of A and columns of B begin at multiples of 8 elements: k and the padding together are one.
  for (const Case& c : {both(64, 64, 64), both(64, 128, 64), both(128, 64, 32), both(64, 80, 40), both(130, 20, 61, 3),
                        both(1, 72, 90, 6), both(70, 1, 8)})
    coach.multiply<__half, __half>(c, project_halves);

  for (const auto& [tokens, width, k] : {std::array<int64_t, 3>{20, 72, 40}, {66, 68, 72}}) five(coach, tokens, width, k);
  five(coach, coach.draw().length(70), coach.draw().length(70), coach.draw().length(70));
  five(coach, coach.draw().between(129, 300), coach.draw().length(20), coach.draw().length(20));
  five(coach, coach.draw().length(20), coach.draw().between(129, 300), coach.draw().length(20));
  five(coach, coach.draw().length(20), coach.draw().length(20), coach.draw().between(300, 900));

  coach.multiply_far_rows<__half, __half>(both(3, 3, 9, 7), project_halves);

  const Case drawn = coach.draw().tiles(64, 32, 64, 3);
  std::vector<Case> counted = {both(128, 96, 64), both(drawn.m, drawn.n, drawn.k)};
  for (const Case& c : coach.draw().ragged(64, 64, 64)) {
    counted.push_back(both(c.m, c.n, c.k, c.padding));
    counted.back().drawn = c.drawn;
  }
  for (const Case& c : counted) {
    const int64_t width = c.n / 2, tiles_m = (c.m + 63) / 64, tiles_n = 2 * ((width + 63) / 64), steps = (c.k + 63) / 64;
    const double x_bytes = sector_bytes(c.m, c.k, harness::DType::kF16), w_bytes = sector_bytes(c.n, c.k, harness::DType::kF16),
                 pieces = static_cast<double>(tiles_m * tiles_n * steps * 4 * 8 * 4);
    const auto words = [](int64_t a, int64_t b) { return std::to_string(a) + " x " + std::to_string(b); };
    const Counts counts = coach.multiply<__half, __half>(c, project_halves);
    for (const interpreter::KernelProfile& launch : counts.launches(
             1, "The second kernel waits until the first one is done, and each of them alone is too small for the GPU."))
      coach.require(launch.grid.x * launch.grid.y * launch.grid.z == tiles_m * tiles_n,
                    "The kernel has " + std::to_string(launch.grid.x * launch.grid.y * launch.grid.z) + " blocks for X of " +
                        words(c.m, c.k) + " and weights of " + words(c.k, width) + ". K has " + words(tiles_m, tiles_n / 2) +
                        " tiles of 64 x 64, and V has as many.\n" +
                        (launch.grid.x * launch.grid.y * launch.grid.z < tiles_m * tiles_n
                             ? "How many SMs could work at the same time?"
                             : "Each tile has a block. What do the others do?"));
    counts
        .at_most(
            mma(pieces), 1,
            "K and V have " + words(tiles_m, tiles_n / 2) + " tiles each. 64 x 64 x 64 are 4 x 8 x 4 pieces, one mma.sync each.")
        .at_least(mma(tiles({c.m, width, c.k}, 16, 8, 16) * 2), 1,
                  are_pieces(c) + "So many have the two products. The tensor core should multiply all of them.")
        .at_most(loaded(static_cast<double>(tiles_n) * x_bytes + static_cast<double>(tiles_m) * w_bytes), 1,
                 "A block's tile is one of K or one of V. It needs its rows of X, and columns of one of the two weights.")
        .at_most_mma_of("block", static_cast<std::uint64_t>(steps * 4 * 8 * 4),
                        "Each tile has a block of its own. Which blocks have none, and which have two?");
    coach.require_tensor_core<__half, __half>(c, project_halves);
  }

  for (const std::int64_t tokens : {256, 4096}) {
    Case whole = both(tokens, 1024, 4096);
    whole.slow = "One launch has the tiles of K and of V. Do blocks that run together share rows of X?";
    coach.multiply_on_gpu<__half, __half>(whole, project_halves);
  }
}

}  // namespace exercise

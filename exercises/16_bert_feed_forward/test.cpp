#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/exercise/coach.h"
#include "common/exercise/witness.h"

namespace exercise {

using TileSize = std::array<int, 2>;

std::int64_t tile_count(std::int64_t m, std::int64_t n, TileSize tile);
std::int64_t wave_count(std::int64_t tiles, int sms, int blocks_per_sm);
double last_wave(std::int64_t tiles, int sms, int blocks_per_sm);
std::int64_t busiest_sm(std::int64_t m, std::int64_t n, TileSize tile, int sms);
int choose(std::int64_t m, std::int64_t n, int sms, const std::vector<TileSize>& candidates);
void gemm(Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C, int sms);

namespace {

const Asked tile_count(exercise::tile_count);
const Asked wave_count(exercise::wave_count);
const Asked last_wave(exercise::last_wave);
const Asked busiest_sm(exercise::busiest_sm);
const Asked choose(exercise::choose);

struct Shape {
  std::int64_t m, n;
};
using Sizes = std::vector<TileSize>;

// What the functions have to find, by counting in place of dividing.
std::int64_t counted_tiles(const Shape& c, TileSize tile) {
  std::int64_t down = 0, across = 0;
  for (std::int64_t m = 0; m < c.m; m += tile[0]) ++down;
  for (std::int64_t n = 0; n < c.n; n += tile[1]) ++across;
  return down * across;
}
struct Waves {
  std::int64_t count = 0, in_last = 0;
};
Waves counted_waves(std::int64_t tiles, std::int64_t places) {
  Waves waves;
  for (; tiles > 0; tiles -= places) ++waves.count, waves.in_last = tiles;
  return waves;
}
std::int64_t counted_elements(const Shape& c, TileSize tile, int sms) {
  const std::int64_t tiles = counted_tiles(c, tile);
  std::int64_t of_first_sm = 0;
  for (std::int64_t i = 0; i < tiles; i += sms) of_first_sm += tile[0] * tile[1];
  return of_first_sm;
}
int best_of(const Shape& c, int sms, const Sizes& candidates) {
  std::size_t best = 0;
  const auto rank = [&](std::size_t i) {
    return std::pair(counted_elements(c, candidates[i], sms), -candidates[i][0] * candidates[i][1]);
  };
  for (std::size_t i = 1; i < candidates.size(); ++i)
    if (rank(i) < rank(best)) best = i;
  return static_cast<int>(best);
}

std::string words(std::int64_t x) { return std::to_string(x); }
std::string words(double x) { return std::to_string(x); }
std::string words(TileSize tile) { return "{" + words(std::int64_t{tile[0]}) + ", " + words(std::int64_t{tile[1]}) + "}"; }
std::string words(const Sizes& candidates) {
  std::string text = "{";
  for (const TileSize& tile : candidates) text += (text.size() > 1 ? ", " : "") + words(tile);
  return text + "}";
}

const Sizes kOffered = {{256, 128}, {128, 128}, {128, 64}, {64, 64}};

void check_formulas(const Coach& coach) {
  const auto expect = [&](const std::string& call, auto found, auto expected, const std::string& why) {
    const auto difference = static_cast<double>(found) - static_cast<double>(expected);
    coach.require(std::abs(difference) < 1e-9, call + " is " + words(found) + ", should be " + words(expected) + ".\n" + why);
  };
  const std::vector<Shape> shapes = {{2048, 3072}, {2048, 768}, {4096, 11008}, {4096, 4096}, {1000, 3000},
                                     {1, 50257},   {300, 1},    {256, 129},    {1, 1},       {40000000, 3000000}};
  for (const Shape& c : shapes)
    for (const TileSize& tile : kOffered) {
      const std::string of = "(" + words(c.m) + ", " + words(c.n) + ", " + words(tile);
      expect("tile_count" + of + ")", tile_count(c.m, c.n, tile), counted_tiles(c, tile),
             "Tiles lie beside each other and below each other. A tile that sticks out of C counts as well.");
    }
  for (const int sms : {132, 108, 128, 1, 7})
    for (const int blocks_per_sm : {1, 2, 8})
      for (const std::int64_t tiles : {384, 192, 264, 132, 265, 1, 1024, 100000}) {
        const std::string of =
            "(" + words(tiles) + ", " + words(std::int64_t{sms}) + ", " + words(std::int64_t{blocks_per_sm}) + ")";
        const Waves waves = counted_waves(tiles, std::int64_t{sms} * blocks_per_sm);
        expect("wave_count" + of, wave_count(tiles, sms, blocks_per_sm), waves.count,
               "All SMs together hold sms * blocks_per_sm blocks at the same time. Blocks that are left over make one more wave.");
        expect("last_wave" + of, last_wave(tiles, sms, blocks_per_sm), static_cast<double>(waves.in_last) / (sms * blocks_per_sm),
               "How many blocks have the waves before the last one taken? The rest share the places of all SMs. A full wave is 1.");
      }
  for (const Shape& c : shapes)
    for (const TileSize& tile : kOffered)
      for (const int sms : {132, 108, 128, 1000})
        if (c.m < 1000000)
          expect(
              "busiest_sm(" + words(c.m) + ", " + words(c.n) + ", " + words(tile) + ", " + words(std::int64_t{sms}) + ")",
              busiest_sm(c.m, c.n, tile, sms), counted_elements(c, tile, sms),
              "If tiles are dealt out like cards, how many does the SM get that gets most? Each tile has rows * columns elements.");
}

// Of any tiles, on any GPU.
void check_drawn(const Coach& coach) {
  Draw& draw = coach.draw();
  const auto tile = [&](int most) {
    return TileSize{static_cast<int>(draw.between(1, most)), static_cast<int>(draw.between(1, most))};
  };
  const auto expect = [&](const std::string& call, auto found, auto expected) {
    coach.require(std::abs(static_cast<double>(found) - static_cast<double>(expected)) < 1e-9,
                  call + " is " + words(found) + ", should be " + words(expected) +
                      ".\nThe formulas hold for all shapes, tiles and GPUs, also for more tiles than an int can count.");
  };
  const auto ratio_up = [](std::int64_t a, std::int64_t b) { return a / b + (a % b > 0); };
  for (int i = 0; i < 200; ++i) {
    const bool many = i % 50 == 0;  // more tiles than an int can count, and not more than a loop can
    const Shape c = many ? Shape{draw.between(6'000'000, 8'000'000), draw.between(6'000'000, 8'000'000)}
                         : Shape{draw.between(1, 5000), draw.between(1, 5000)};
    const TileSize t = many ? TileSize{128, static_cast<int>(draw.between(100, 128))} : tile(256);
    const int sms = static_cast<int>(draw.between(many ? 100 : 1, 200)), blocks_per_sm = static_cast<int>(draw.between(1, 16));
    const std::int64_t tiles = ratio_up(c.m, t[0]) * ratio_up(c.n, t[1]), places = std::int64_t{sms} * blocks_per_sm;
    const std::string shape = "(" + words(c.m) + ", " + words(c.n) + ", " + words(t), gpu = words(std::int64_t{sms}) + ")";
    expect("tile_count" + shape + ")", tile_count(c.m, c.n, t), tiles);
    expect("busiest_sm" + shape + ", " + gpu, busiest_sm(c.m, c.n, t, sms), ratio_up(tiles, sms) * t[0] * t[1]);
    const std::string of = "(" + words(tiles) + ", " + words(std::int64_t{sms}) + ", " + words(std::int64_t{blocks_per_sm}) + ")";
    expect("wave_count" + of, wave_count(tiles, sms, blocks_per_sm), ratio_up(tiles, places));
    expect("last_wave" + of, last_wave(tiles, sms, blocks_per_sm),
           static_cast<double>((tiles - 1) % places + 1) / static_cast<double>(places));
  }
  for (int i = 0; i < 60; ++i) {  // more tiles than a double can count: whole waves, one tile less, one more
    const int sms = static_cast<int>(draw.between(1, 200)), blocks_per_sm = static_cast<int>(draw.between(1, 16));
    const std::int64_t places = std::int64_t{sms} * blocks_per_sm,
                       waves = draw.between(std::int64_t{1} << 40, std::int64_t{1} << 49);
    const std::int64_t tiles = waves * places + i % 3 - 1, count = ratio_up(tiles, places),
                       found = wave_count(tiles, sms, blocks_per_sm);
    const std::string of = "(" + words(tiles) + ", " + words(std::int64_t{sms}) + ", " + words(std::int64_t{blocks_per_sm}) + ")";
    coach.require(found == count, "wave_count" + of + " is " + words(found) + ", should be " + words(count) +
                                      ".\nAn int64_t counts so many tiles. Which number on the way does not?");
    expect("last_wave" + of, last_wave(tiles, sms, blocks_per_sm),
           static_cast<double>((tiles - 1) % places + 1) / static_cast<double>(places));
  }
  for (int i = 0; i < 40; ++i) {  // of a GPU, or of many together, that has more places than an int can count
    const int sms = static_cast<int>(draw.between(1 << 17, 1 << 21)),
              blocks_per_sm = static_cast<int>(draw.between(1 << 15, 1 << 18));
    const std::int64_t places = std::int64_t{sms} * blocks_per_sm,
                       tiles = places * draw.between(1, 1000) - draw.between(-1, places - 1);
    const std::string of = "(" + words(tiles) + ", " + words(std::int64_t{sms}) + ", " + words(std::int64_t{blocks_per_sm}) + ")";
    expect("wave_count" + of, wave_count(tiles, sms, blocks_per_sm), ratio_up(tiles, places));
    expect("last_wave" + of, last_wave(tiles, sms, blocks_per_sm),
           static_cast<double>((tiles - 1) % places + 1) / static_cast<double>(places));
  }
  const auto large = [&] {
    return TileSize{static_cast<int>(draw.between(20'000, 46'000)), static_cast<int>(draw.between(20'000, 46'000))};
  };
  for (int i = 0; i < 200; ++i) {
    const int most = i % 2 ? 256 : 12;  // among small tiles, one element decides
    const bool many = i % 10 == 0;      // more elements than an int can count
    const Shape c = many ? Shape{draw.between(1, 200'000), draw.between(1, 200'000)}
                         : Shape{draw.between(1, 12 * most), draw.between(1, 12 * most)};
    const int sms = static_cast<int>(draw.between(1, many ? 4 : 200));
    Sizes offered;
    for (std::int64_t count = draw.between(1, 6); count > 0; --count) offered.push_back(many ? large() : tile(most));
    const auto rank = [&](int n) {
      const TileSize t = offered[static_cast<std::size_t>(n)];
      return std::pair(ratio_up(ratio_up(c.m, t[0]) * ratio_up(c.n, t[1]), sms) * t[0] * t[1], -t[0] * t[1]);
    };
    int expected = 0;
    for (int n = 1; n < static_cast<int>(offered.size()); ++n)
      if (rank(n) < rank(expected)) expected = n;
    const int found = choose(c.m, c.n, sms, offered);
    const bool is_one = found >= 0 && found < static_cast<int>(offered.size());
    coach.require(is_one && rank(found) == rank(expected),
                  "choose(" + words(c.m) + ", " + words(c.n) + ", " + words(std::int64_t{sms}) + ", " + words(offered) + ") is " +
                      words(std::int64_t{found}) + ", should be " + words(std::int64_t{expected}) +
                      ".\nThe fewest elements of the busiest SM win" +
                      (is_one ? ": " + words(rank(found).first) + " and " + words(rank(expected).first) : "") +
                      ". If several candidates have as few, the largest of these tiles wins.");
  }
}

// Work that a float takes for the same: two tiles, each of them larger than C, of which one has an element more.
void check_near_choices(const Coach& coach) {
  Draw& draw = coach.draw();
  for (int i = 0; i < 20; ++i) {
    const int side = static_cast<int>(draw.between(30'000, 46'000)), least = i % 2;
    Sizes offered = {{side, side}, {side - 1, side + 1}};
    if (least == 0) std::swap(offered[0], offered[1]);
    const std::int64_t m = draw.between(1, 20'000), n = draw.between(1, 20'000);
    const int found = choose(m, n, 132, offered);
    coach.require(found == least, "choose(" + words(m) + ", " + words(n) + ", 132, " + words(offered) + ") is " +
                                      words(std::int64_t{found}) + ", should be " + words(std::int64_t{least}) +
                                      ": one SM has a tile, and this one has an element less.\nWhich number on the way cannot tell "
                                      "them apart?");
  }
}

void check_choice(const Coach& coach) {
  const std::vector<Sizes> offers = {
      kOffered, {{64, 64}, {128, 64}, {128, 128}, {256, 128}}, {{128, 64}}, {{32, 32}, {16, 32}, {192, 128}}};
  for (const Shape& c : {Shape{2048, 3072}, {2048, 2048}, {2048, 768}, {4096, 4096}, {1024, 1024}, {512, 30522}, {8, 4096}, {1, 1}})
    for (const int sms : {132, 108, 128, 46})
      for (const Sizes& offered : offers) {
        const int found = choose(c.m, c.n, sms, offered), expected = best_of(c, sms, offered);
        const std::string call =
            "choose(" + words(c.m) + ", " + words(c.n) + ", " + words(std::int64_t{sms}) + ", " + words(offered) + ")";
        coach.require(found >= 0 && found < static_cast<int>(offered.size()),
                      call + " is " + words(std::int64_t{found}) + ": candidates have numbers from 0 to " +
                          words(static_cast<std::int64_t>(offered.size()) - 1) + ".");
        const auto at_most = [&](int i) {
          const TileSize tile = offered[static_cast<std::size_t>(i)];
          return words(tile) + " gives the busiest SM " + words(counted_elements(c, tile, sms)) + " elements";
        };
        coach.require(found == expected,
                      call + " is " + words(std::int64_t{found}) + ", should be " + words(std::int64_t{expected}) + ".\n" +
                          at_most(found) + ", " + at_most(expected) +
                          ".\nThe fewest win. If several candidates have as few, the largest of these tiles wins.");
      }
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/06_autotune/README.md, \"Picture\", and docs/glossary.md, \"wave\"");
  check_formulas(coach);
  check_choice(coach);
  check_drawn(coach);
  check_near_choices(coach);

  const auto multiply = [&](const Case& c, int sms) {
    const Counts counts = coach.multiply(c, harness::DType::kF16, harness::DType::kF32,
                                         [sms](const Operands& o) { gemm(o.A<__half>(), o.B<__half>(), o.C<float>(), sms); });
    const TileSize tile = kOffered[static_cast<std::size_t>(best_of({c.m, c.n}, sms, kOffered))];
    for (const auto& launch : counts.launches(1, "One launch computes all tiles.")) {
      const std::int64_t blocks = std::int64_t{launch.grid.x} * launch.grid.y * launch.grid.z,
                         tiles = counted_tiles({c.m, c.n}, tile);
      coach.require(blocks == tiles, "The result is right, but the kernel has " + words(blocks) + " blocks. For C of " +
                                         words(c.m) + " x " + words(c.n) + " on " + words(std::int64_t{sms}) +
                                         " SMs the best tile is " + words(tile) + ", and that makes " + words(tiles) +
                                         ".\nDoes gemm() ask choose(), for this shape and this GPU?");
    }
  };
  multiply({1, 72, 40}, 132);
  // 256 x 256 on GPUs so small that each candidate is the best for one of them.
  for (const int sms : {2, 4, 3, 16}) multiply({256, 256, 40}, sms);
  for (const int sms : {1, 5}) multiply({200, 136, 72}, sms);
  // Rows of A and of B begin at multiples of 8 elements: k and the padding together are one, and n and the padding.
  multiply({.m = 65, .n = 131, .k = 67, .padding = 5}, 6);
  multiply({.m = 1, .n = 66, .k = 130, .padding = 6}, 132);
  multiply({.m = 70, .n = 1, .k = 9, .padding = 7}, 132);

  for (const Case& c : coach.drawn({.aligned_a = 8, .aligned_b = 8})) multiply(c, static_cast<int>(coach.draw().between(1, 40)));
  coach.multiply_far_rows(Case{3, 3, 3, "nn", 5}, harness::DType::kF16, harness::DType::kF32,
                          [](const Operands& o) { gemm(o.A<__half>(), o.B<__half>(), o.C<float>(), 132); });

  coach.multiply_on_gpu<__half, float>(
      {.m = 2048, .n = 3072, .k = 768, .slow = "Which tile does choose() find for 132 SMs, and is it the one that is launched?"},
      [](Matrix<const __half> A, Matrix<const __half> B, Matrix<float> C) { gemm(A, B, C, 132); });
}

}  // namespace exercise

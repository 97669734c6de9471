#include "common/gemm/gemm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "common/gemm/divisor.h"
#include "common/gemm/two_widths.h"

using gemm::Matrix;
namespace detail = gemm::detail;

namespace {

std::vector<char> memory(1 << 16);

std::set<const char*> bytes_of(const detail::Extent& m) {
  std::set<const char*> bytes;
  for (std::int64_t r = 0; r < m.rows; ++r)
    for (std::int64_t c = 0; c < m.cols; ++c)
      for (std::int64_t b = 0; b < m.element_bytes; ++b)
        bytes.insert(static_cast<const char*>(m.data) + (r * m.row_stride + c * m.col_stride) * m.element_bytes + b);
  return bytes;
}

detail::Extent random_extent(std::mt19937& random, int size, int stride) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const std::int64_t element = pick(0, 1) ? 2 : 4;
  return {memory.data() + 32768 + pick(-60, 60) * element,
          pick(0, size),
          pick(0, size),
          pick(-stride, stride),
          pick(-stride, stride),
          element};
}

}  // namespace

TEST_CASE("overlap of two strided views agrees with comparing every byte") {
  std::mt19937 random(7);
  int overlapping = 0;
  for (int i = 0; i < 20000; ++i) {
    // Few elements far apart too: then all four strides count.
    const int size = i % 3 == 2 ? 12 : 5, stride = std::array{9, 300, 100}[i % 3];
    const detail::Extent a = random_extent(random, size, stride), b = random_extent(random, size, stride);
    const std::set<const char*> in_a = bytes_of(a), in_b = bytes_of(b);
    bool expected = false;
    for (const char* p : in_a) expected |= in_b.contains(p);
    overlapping += expected;
    REQUIRE(detail::overlap(a, b) == expected);
  }
  CHECK(overlapping > 1000);
  CHECK(overlapping < 19000);
}

TEST_CASE("a view overlaps itself exactly when it has fewer bytes than elements need") {
  std::mt19937 random(8);
  for (int i = 0; i < 20000; ++i) {
    const detail::Extent m = random_extent(random, 5, 9);
    const bool expected = static_cast<std::int64_t>(bytes_of(m).size()) != m.rows * m.cols * m.element_bytes;
    REQUIRE(detail::overlaps_itself(m) == expected);
  }
}

TEST_CASE("interleaved halves of one wide buffer do not overlap") {
  float* p = reinterpret_cast<float*>(memory.data());
  const Matrix<const float> A{p, 8, 4, 16, 1}, B{p + 4, 4, 8, 1, 16};
  CHECK_NOTHROW(gemm::check(A, B, Matrix<float>{p + 8, 8, 8, 16, 1}));
  CHECK_THROWS_AS(gemm::check(A, B, Matrix<float>{p + 7, 8, 8, 16, 1}), gemm::Refused);
}

TEST_CASE("views of one buffer are told apart in a time that does not grow with them") {
  using Half = std::uint16_t;  // as long
  Half* p = reinterpret_cast<Half*>(std::uintptr_t{1} << 44);
  const Matrix<const Half> B{p + (std::int64_t{1} << 40), 64, 64, 64, 1};
  const std::int64_t m = 1'000'000;
  for (int i = 0; i < 1000; ++i) {  // half a minute, line by line
    CHECK_NOTHROW(gemm::check(Matrix<const Half>{p + 64, m, 64, 128, 1}, B, Matrix<Half>{p, m, 64, 128, 1}));
    CHECK_NOTHROW(gemm::check(Matrix<const Half>{p + 65, m, 64, 256, 2}, B, Matrix<Half>{p, m, 64, 256, 2}));
    CHECK_NOTHROW(gemm::check(Matrix<const Half>{p + 64, m, 64, 384, 1}, B, Matrix<Half>{p, m, 64, 192, 1}));
    CHECK_THROWS_AS(gemm::check(Matrix<const Half>{p + 63, m, 64, 384, 1}, B, Matrix<Half>{p, m, 64, 192, 1}), gemm::Refused);
    CHECK_THROWS_AS(gemm::check(Matrix<const Half>{p + 64, m, 64, 129, 1}, B, Matrix<Half>{p, m, 64, 128, 1}), gemm::Refused);
    CHECK_THROWS_AS(gemm::check(Matrix<const Half>{p + 127, m, 64, 1, m}, B, Matrix<Half>{p, m, 64, 128, 1}), gemm::Refused);
  }
  // Four strides that have nothing to do with each other: a bounded search, here with 10^18 pairs of elements.
  const Matrix<const Half> far{p + 64, 30'000, 30'000, 1'000'003, 31};
  gemm::check(far, Matrix<const Half>{B.data, 30'000, 30'000, 30'000, 1},
              Matrix<Half>{p - (std::int64_t{1} << 36), 30'000, 30'000, 1'000'033, 33});
}

TEST_CASE("what the contract does not allow is refused with a reason") {
  float* p = reinterpret_cast<float*>(memory.data());
  const auto refusal = [&](Matrix<const float> A, Matrix<const float> B, Matrix<float> C) -> std::string {
    try {
      gemm::check(A, B, C);
      return "accepted";
    } catch (const gemm::Refused& e) {
      return e.what();
    }
  };
  const auto contains = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const Matrix<const float> A = gemm::row_major<const float>(p, 4, 6), B = gemm::row_major<const float>(p + 100, 6, 5);
  const Matrix<float> C = gemm::row_major(p + 200, 4, 5);
  CHECK(refusal(A, B, C) == "accepted");
  CHECK(contains(refusal(A.transposed(), B, C), "shapes do not fit: A is 6 x 4"));
  CHECK(contains(refusal(A, B, {p + 200, 4, 5, 0, 1}), "elements of C overlap"));
  CHECK(contains(refusal(A, B, {p + 200, 4, 5, 4, 1}), "elements of C overlap"));
  CHECK(contains(refusal(A, B, gemm::row_major(p + 20, 4, 5)), "C overlaps A"));
  CHECK(contains(refusal(A, B, gemm::row_major(p + 90, 4, 5)), "C overlaps B"));
  CHECK(contains(refusal({p, -1, 6, 6, 1}, B, {p + 200, -1, 5, 5, 1}), "negative dimension"));
  CHECK(contains(refusal({nullptr, 4, 6, 6, 1}, B, C), "pointer is null"));
  CHECK(contains(refusal({reinterpret_cast<float*>(memory.data() + 2), 4, 6, 6, 1}, B, C), "not aligned"));
  CHECK(contains(refusal({p, 4, 6, std::numeric_limits<std::int64_t>::max(), 1}, B, C), "address space"));
  // Zero and negative strides of the inputs are fine, and nothing needs a pointer when it has no elements.
  CHECK(refusal({p, 4, 6, 0, 0}, {p + 50, 6, 5, -5, -1}, C) == "accepted");
  CHECK(refusal({nullptr, 0, 6, 6, 1}, B, {nullptr, 0, 5, 5, 1}) == "accepted");
}

TEST_CASE("a grid has at most 2^31 - 1 blocks") {
  CHECK(gemm::grid_size(0x7fffffff) == 0x7fffffffu);
  CHECK_THROWS_AS(gemm::grid_size(0x80000000), gemm::Refused);
}

TEST_CASE("a divisor divides as / does") {
  constexpr unsigned kMost = 2147483647;
  std::mt19937 random(11);
  const auto check = [](unsigned number, unsigned by) {
    const gemm::Divisor divisor(by);
    INFO(number << " / " << by);
    REQUIRE(divisor.divide(number) == number / by);
    REQUIRE(divisor.value() == by);
  };
  for (unsigned by = 1; by <= 300; ++by)
    for (unsigned number = 0; number <= 1000; ++number) check(number, by);
  for (int i = 0; i < 200000; ++i) {
    const unsigned by = (random() >> 1 >> random() % 31) + 1, quotient = kMost / std::min(by, kMost);
    for (const unsigned number :
         {0U, kMost, kMost - 1, by - 1, quotient * by, quotient * by - 1, static_cast<unsigned>(random() >> 1)})
      if (by <= kMost && number <= kMost) check(number, by);
  }
}

TEST_CASE("tiles of two widths: 4096 x 4096 for 132 blocks fills all four rounds, and 2048 x 2048 stays as it is") {
  const gemm::TwoWidths large = gemm::in_two_widths(32, 4096, 256, 240, 132);
  CHECK(large.wide_rows == 16);
  CHECK(large.left == 1);
  CHECK(large.right == 16);
  CHECK(large.wide_tiles == 272);
  CHECK(large.tiles == 528);
  CHECK(gemm::in_two_widths(16, 2048, 256, 240, 132).tiles == 128);
  CHECK(gemm::in_two_widths(16, 2048, 256, 240, 132).wide_rows == 16);
  CHECK(gemm::in_two_widths(32, 4096, 256, 0, 132).wide_tiles == 512);  // there are no narrow ones
  CHECK(gemm::in_two_widths(1, std::int64_t{1} << 30, 256, 240, 132).tiles >= (1 << 22));
}
TEST_CASE("tiles of two widths cover C, take no other round, and no cut leaves block 0 fewer wide tiles") {
  std::mt19937 random(11);
  const auto pick = [&](int low, int high) { return std::int64_t{std::uniform_int_distribution<int>(low, high)(random)}; };
  int narrow_alone = 0, mixed = 0;
  for (int i = 0; i < 3000; ++i) {
    const int wide = static_cast<int>(8 * pick(2, 32)), narrow = static_cast<int>(8 * pick(1, wide / 8 - 1));
    const std::int64_t tiles_m = pick(1, 40), cols = pick(1, 6000), blocks = pick(1, 150);
    INFO(tiles_m << " rows of tiles, " << cols << " columns, " << wide << " or " << narrow << ", " << blocks << " blocks");
    const gemm::TwoWidths cut = gemm::in_two_widths(tiles_m, cols, wide, narrow, blocks);
    const std::int64_t all = gemm::ceil_div<std::int64_t>(cols, wide), below = tiles_m - cut.wide_rows;
    const auto rounds = [&](std::int64_t tiles) { return gemm::ceil_div(tiles, blocks); };
    REQUIRE(cut.wide_tiles == cut.wide_rows * all + below * cut.left);
    REQUIRE(cut.tiles == cut.wide_tiles + below * cut.right);
    if (below > 0) {  // to the end of a row, and no tile more
      REQUIRE(cut.left * wide + cut.right * narrow >= cols);
      REQUIRE(cut.left * wide + (cut.right - 1) * narrow < cols);
      ++(cut.wide_tiles == 0 ? narrow_alone : mixed);
    }
    REQUIRE(rounds(cut.tiles) == rounds(tiles_m * all));
    std::int64_t fewest = rounds(tiles_m * all);
    for (std::int64_t left = std::max<std::int64_t>(0, all - 64); left < all; ++left)
      for (std::int64_t wide_rows = 0; wide_rows < tiles_m; ++wide_rows) {
        const std::int64_t wide_tiles = wide_rows * all + (tiles_m - wide_rows) * left;
        const std::int64_t right = gemm::ceil_div<std::int64_t>(cols - left * wide, narrow);
        if (rounds(wide_tiles + (tiles_m - wide_rows) * right) == rounds(tiles_m * all))
          fewest = std::min(fewest, rounds(wide_tiles));
      }
    REQUIRE(rounds(cut.wide_tiles) == fewest);
  }
  CHECK(narrow_alone > 100);
  CHECK(mixed > 100);
}

// The speed bar's judgement, which needs no GPU.
#include "common/exercise/speed.h"

#include <doctest/doctest.h>

#include <limits>

namespace exercise {
namespace {

std::string judged(double ratio, double bar = 1.15) { return too_slow({ratio, ratio * 2e-3, 2e-3, 40, bar}); }

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST_CASE("up to the bar an answer passes") {
  for (const double ratio : {0.5, 1.0, 1.149, 1.15}) CHECK_MESSAGE(judged(ratio).empty(), ratio);
}

TEST_CASE("above the bar a learner is told both times and the bar") {
  const std::string text = judged(1.5);
  CHECK(has(text, "1.50 times as long as the solution does, where at most 1.15 times is wanted"));
  CHECK(has(text, "A call takes 3 ms, one of the solution 2 ms: medians of 40 rounds"));
  CHECK(!judged(1.1501).empty());
}

TEST_CASE("each exercise has its bar") {
  CHECK(judged(1.4, 1.5).empty());
  CHECK(!judged(1.4, 1.3).empty());
}

TEST_CASE("what nobody could time does not pass") {
  for (const double ratio : {std::numeric_limits<double>::quiet_NaN(), 0.0, -1.0, std::numeric_limits<double>::infinity()})
    CHECK_MESSAGE(has(judged(ratio), "no clock could tell"), ratio);
}

TEST_CASE("who passes is told the ratio, too") {
  CHECK(in_words({1.02, 3.2e-3, 3.1e-3, 40, 1.15}) == "3.2 ms a call, 1.02 times what the solution takes (at most 1.15)");
}

}  // namespace
}  // namespace exercise

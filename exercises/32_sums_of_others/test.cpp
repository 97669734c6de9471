#include <algorithm>
#include <cstdio>
#include <map>
#include <vector>

#include "common/device/device.cuh"
#include "common/exercise/coach.h"
#include "common/exercise/witness.h"

namespace exercise {

void normalise(Matrix<const float> A, Matrix<float> C);

namespace {

// Positive multiples of 1/64 that nobody can guess: in whatever order they are added, the sum is the same.
float element(std::int64_t salt, std::int64_t row, std::int64_t col) {
  return static_cast<float>((row * 2341 + col * 6407 + row * col % 13 * 17 + salt * 131) % 1921 + 1) / 64;
}

// All digits: numbers that differ look different.
std::string digits(float x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(x));
  return text;
}

struct Problem {
  std::int64_t rows, cols, padding = 0, salt = 0;
  std::uint64_t drawn = 0;
};

// What a report of the interpreter cannot know of this exercise.
std::string meant(const std::string& report) {
  const auto says = [&](const char* words) { return report.find(words) != std::string::npos; };
  if (says("out of bounds: sSums"))
    return "sSums has a row for each block that sends. These are three, and their ranks begin with 1.";
  if (says("st.async on all_sent") && says("no mbarrier has been"))
    return "`all_sent` is a barrier in rank 0 alone. The last argument of st_async says in whose memory place and barrier lie.";
  if (says("uninitialised bytes of sTotal")) return "The total lies in rank 0's shared memory. Which address has it there?";
  if (!says("race on sSums") && !(says("deadlock") && says("of all_sent"))) return "";
  return "A phase of `all_sent` is over when as many bytes have come as were expected, whoever has sent them: three blocks send "
         "128 "
         "sums of\n4 bytes each, each block to a place of its own. Rank 0 reads none of them before it has waited for that phase.";
}

// Whether `got` is the element divided by another sum than the column's: without the rows of one block, or of these alone.
std::string divided_by(float got, const Problem& p, float total, std::int64_t row, std::int64_t col) {
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    float part = 0;
    for (std::int64_t r = p.rows * rank / 4; r < p.rows * (rank + 1) / 4; ++r) part += element(p.salt, r, col);
    if (part == 0 || part == total) continue;
    const std::string whose = " rows of the block of rank " + std::to_string(rank);
    if (got == element(p.salt, row, col) / (total - part)) return ". Yours was divided by the sum without the" + whose;
    if (got == element(p.salt, row, col) / part) return ". Yours was divided by the sum of the" + whose + " alone";
  }
  return "";
}

// What the call did; and, on the interpreter, how many blocks have stored elements of C.
struct Outcome {
  Counts counts;
  std::int64_t storing;
  std::int64_t most_stored;  // elements of C, by the block that stores most
};

Outcome normalise(const Coach& coach, const Problem& p) {
  std::string what = std::to_string(p.rows) + " x " + std::to_string(p.cols) + " in f32";
  if (p.padding) what += ", rows " + std::to_string(p.padding) + " elements longer than what they hold";
  if (p.drawn) what += ", drawn at random: --seed " + std::to_string(p.drawn) + " draws it again";
  std::int64_t storing = 0, most_stored = 0;
  const Counts counts = coach.run(what, [&] {
    const std::int64_t stride = p.cols + p.padding;
    std::vector<float> values(static_cast<std::size_t>(p.rows * stride), 1e6f);
    std::vector<float> totals(static_cast<std::size_t>(p.cols), 0.0f);
    for (std::int64_t row = 0; row < p.rows; ++row) {
      for (std::int64_t col = 0; col < p.cols; ++col) {
        values[static_cast<std::size_t>(row * stride + col)] = element(p.salt, row, col);
        totals[static_cast<std::size_t>(col)] += element(p.salt, row, col);
      }
    }
    const device::Buffer<float> A(values, "A");
    device::Buffer<float> C(values, "C");
    // The last numbers: blocks that store, and how many elements the busiest of them.
    const auto call = [&] {
      std::map<std::uint64_t, std::int64_t> blocks;
#ifdef COURSE_ON_INTERPRETER
      interpreter::options().on_store = [&, first = C.data(), end = C.data() + C.size()](std::uint64_t block, const void* at) {
        if (at >= first && at < end) ++blocks[block];
      };
#endif
      exercise::normalise({A.data(), p.rows, p.cols, stride, 1}, {C.data(), p.rows, p.cols, stride, 1});
      device::synchronize();
#ifdef COURSE_ON_INTERPRETER
      interpreter::options().on_store = {};
#endif
      std::vector<float> result = C.download();
      std::int64_t most = 0;
      for (const auto& [block, stores] : blocks) most = std::max(most, stores);
      result.push_back(static_cast<float>(blocks.size()));
      result.push_back(static_cast<float>(most));
      return result;
    };
    const std::vector<float> got = explained(meant, [&] { return asked(call); });
    storing = static_cast<std::int64_t>(got.at(got.size() - 2)), most_stored = static_cast<std::int64_t>(got.back());
    for (std::int64_t row = 0; row < p.rows; ++row) {
      for (std::int64_t col = 0; col < p.cols; ++col) {
        const std::size_t i = static_cast<std::size_t>(row * stride + col);
        const float expected = element(p.salt, row, col) / totals[static_cast<std::size_t>(col)];
        if (got.at(i) != expected)
          throw NotYet{"The result is wrong: element (" + std::to_string(row) + ", " + std::to_string(col) + ") is " +
                       digits(got.at(i)) + ", expected " + digits(expected) + ": A's, " + digits(element(p.salt, row, col)) +
                       ", divided by the sum of its column, " + digits(totals[static_cast<std::size_t>(col)]) +
                       divided_by(got.at(i), p, totals[static_cast<std::size_t>(col)], row, col) +
                       ".\nIs each block's sum in a place of its own, and added once, that of rank 0 too?"};
      }
    }
  });
  return {counts, storing, most_stored};
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/15_few_rows/README.md, and first.cu beside it");
  for (const auto& [rows, cols] : {std::pair{4, 128}, std::pair{8, 128}, std::pair{30, 300}, std::pair{1, 1}, std::pair{3, 129}})
    normalise(coach, {.rows = rows, .cols = cols});
  Draw& draw = coach.draw();
  normalise(coach,
            {.rows = draw.between(500, 1500), .cols = draw.between(1, 6), .salt = draw.between(1, 999), .drawn = draw.seed()});
  normalise(coach, {.rows = draw.length(60),
                    .cols = draw.length(300),
                    .padding = draw.between(1, 9),
                    .salt = draw.between(1, 999),
                    .drawn = draw.seed()});

  for (const Problem& p :
       {Problem{.rows = 64, .cols = 128},
        Problem{.rows = 4 * draw.between(5, 20), .cols = 128 * draw.between(1, 2), .salt = draw.between(1, 999)}}) {
    const double bytes = static_cast<double>(p.rows * p.cols * 4), blocks = static_cast<double>(p.cols) / 128 * 4;
    const Outcome outcome = normalise(coach, p);
    outcome.counts.at_least(loaded(bytes), 1, "The sums are sums of A's elements: a kernel has to read them.")
        .at_most(stored(bytes), 1, "C is all that goes to global memory. Sums go from shared memory to shared memory.")
        .at_most(loaded(bytes), 2,
                 "Each element is needed twice: once for the sum, once to be divided. A block needs no rows but its own.")
        .at_most(&Teamwork::cluster_meetings, 4 * blocks,
                 "The cluster meets three times: its barrier is there, the totals are there, and nobody reads them any more.")
        .at_most(&Teamwork::loaded_by_block, bytes / blocks * 2,
                 "Each block of a cluster has a fourth of the rows: it reads them for their sums, and once more to divide them.")
        .launches(1, "One kernel is enough: the sums stay in the cluster.");
#ifdef COURSE_ON_INTERPRETER
    coach.require(static_cast<double>(outcome.storing) >= blocks,
                  "Each block of a cluster has a fourth of the rows, and stores them. Of " + std::to_string(p.rows) + " x " +
                      std::to_string(p.cols) + " elements not all " + std::to_string(static_cast<int>(blocks)) +
                      " blocks\nstore some: " + std::to_string(outcome.storing) + (outcome.storing == 1 ? " does." : " do."));
    coach.require(static_cast<double>(outcome.most_stored) <= static_cast<double>(p.rows * p.cols) / blocks,
                  "Each block of a cluster has a fourth of the rows, and stores them. Of " + std::to_string(p.rows) + " x " +
                      std::to_string(p.cols) + " one block stores " + std::to_string(outcome.most_stored) +
                      " elements,\nwhere its share is " + std::to_string(p.rows * p.cols / static_cast<std::int64_t>(blocks)) +
                      ".");
#endif
  }

  // Loads and stores are the same in all answers that pass: no bar for the time.
}

}  // namespace exercise

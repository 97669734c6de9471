#include <string>
#include <vector>

#include "common/device/device.cuh"
#include "common/exercise/coach.h"
#include "common/exercise/witness.h"

namespace exercise {

void recur(Matrix<const __half> X, Matrix<const __half> W, Matrix<float> Y);

namespace {

constexpr std::int64_t kRows = 64, kK = 16;

// Small whole numbers that nobody can guess: all sums are exact.
int element(std::int64_t salt, std::int64_t row, std::int64_t col) {
  return static_cast<int>((row * 2341 + col * 6407 + row * col % 13 * 17 + salt * 131) % 1921 % 5) - 2;
}

// What a report of the interpreter cannot know of this exercise.
std::string meant(const std::string& report) {
  const auto says = [&](const char* words) { return report.find(words) != std::string::npos; };
  if (says("race on sY"))
    return "Here __syncthreads() is not what is meant: both would wait in each step. The two warpgroups share sY in turns, by\n"
           "named barriers. Who has written sY arrives at the other one's barrier, behind the write; who reads it has waited\n"
           "there. The barrier counts both, 128 + 128 threads: with a smaller count, those who wait let themselves go on.";
  if (says("deadlock"))
    return "A named barrier lets its threads go on when 128 have arrived there and 128 wait. Who arrives at the barrier where "
           "these "
           "wait: each\nthread of the other warpgroup, at the end of its turn? And who does so before the first turn?";
  return "";
}

struct Recurrence {
  std::int64_t steps, cols, padding = 0, salt = 0;
  std::uint64_t drawn = 0;
};

Counts recur(const Coach& coach, const Recurrence& r) {
  std::string what = std::to_string(r.steps) + (r.steps == 1 ? " step" : " steps") + " of 64 x " + std::to_string(r.cols) + ", f16";
  if (r.padding) what += ", rows " + std::to_string(r.padding) + " elements longer than what they hold";
  if (r.drawn) what += ", drawn at random: --seed " + std::to_string(r.drawn) + " draws it again";
  return coach.run(what, [&] {
    const std::int64_t rows = r.steps * kRows, stride_x = kK + r.padding, stride = r.cols + r.padding;
    std::vector<__half> x(static_cast<std::size_t>(rows * stride_x), __half(1000.0f));
    std::vector<__half> w(static_cast<std::size_t>(kK * stride), __half(1000.0f));
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t k = 0; k < kK; ++k)
        x[static_cast<std::size_t>(row * stride_x + k)] = __half(static_cast<float>(element(r.salt, row, k)));
    for (std::int64_t k = 0; k < kK; ++k)
      for (std::int64_t col = 0; col < r.cols; ++col)
        w[static_cast<std::size_t>(k * stride + col)] = __half(static_cast<float>(element(r.salt + 7, k, col)));
    const device::Buffer<__half> X(x, "X"), W(w, "W");
    device::Buffer<float> Y(std::vector<float>(static_cast<std::size_t>(rows * stride), 1e6f), "Y");
    const auto call = [&] {
      exercise::recur({X.data(), rows, kK, stride_x, 1}, {W.data(), kK, r.cols, stride, 1}, {Y.data(), rows, r.cols, stride, 1});
      device::synchronize();
      return Y.download();
    };
    const std::vector<float> got = explained(meant, [&] { return asked(call); });
    std::vector<double> before(static_cast<std::size_t>(kRows * r.cols), 0.0);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t col = 0; col < r.cols; ++col) {
        double& y = before[static_cast<std::size_t>(row % kRows * r.cols + col)];
        y /= 2;
        for (std::int64_t k = 0; k < kK; ++k) y += element(r.salt, row, k) * element(r.salt + 7, k, col);
        if (const float found = got.at(static_cast<std::size_t>(row * stride + col)); found != y)
          throw NotYet{
              "The result is wrong: element (" + std::to_string(row % kRows) + ", " + std::to_string(col) + ") of Y_" +
              std::to_string(row / kRows) + " is " + std::to_string(found) + ", expected " + std::to_string(y) +
              ".\nEach step begins with half of what the step before has left. Is a turn taken, and given, once for each?"};
      }
    }
  });
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/13_ping_pong/README.md, and first.cu beside it");
  // One step; a turn for each; the first one again; and an end with either of the two.
  for (const auto& [steps, cols] : {std::pair{1, 8}, std::pair{2, 8}, std::pair{3, 8}, std::pair{4, 16}, std::pair{7, 8}})
    recur(coach, {.steps = steps, .cols = cols});
  Draw& draw = coach.draw();
  recur(coach, {.steps = draw.between(11, 16), .cols = 8, .salt = draw.between(1, 999), .drawn = draw.seed()});
  recur(coach, {.steps = draw.between(5, 10),
                .cols = 8 * draw.between(1, 2),
                .padding = draw.between(1, 9),
                .salt = draw.between(1, 999),
                .drawn = draw.seed()});

  for (const Recurrence& r :
       {Recurrence{6, 16}, Recurrence{.steps = 2 * draw.between(2, 4) + 1, .cols = 8, .salt = draw.between(1, 999)}}) {
    const double blocks = static_cast<double>(r.cols) / 8, products = static_cast<double>(r.steps) * 4 * blocks;
    const auto turns = static_cast<std::uint64_t>(r.steps + 1) / 2;
    recur(coach, r)
        .at_least(mma(products), 1, "X_t · W comes from the tensor core: for each step four mma of a block, one for each warp.")
        .at_most(mma(products), 1, "For each step one of the two warpgroups multiplies, four mma. The other one has the next step.")
        .at_most_mma_of("warp", turns,
                        "Of " + std::to_string(r.steps) +
                            " steps each warpgroup has every second one. If one does more, nobody multiplies "
                            "while it loads and stores.")
        .at_most(
            barriers(blocks), 1,
            "A barrier of the whole block makes both wait for the slower one in each step. Who gives the turn away only arrives,\n"
            "and goes on: barrier_arrive().")
        .at_least_blocks(static_cast<std::uint64_t>(blocks), "A block has 8 columns.")
        .at_least(
            &Teamwork::named, static_cast<double>(r.steps - 1) * blocks,
            "Each step but the first begins when a named barrier is complete: barrier_sync() waits there, and barrier_arrive()\n"
            "gives the turn. Who waits there is asleep; who reads a place again and again takes time from the other one.");
  }

  // How long a turn takes is the same in all answers that pass: no bar for the time.
}

}  // namespace exercise

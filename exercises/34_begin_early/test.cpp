#include <string>
#include <vector>

#include "common/device/device.cuh"
#include "common/exercise/coach.h"
#include "common/exercise/witness.h"

namespace exercise {

void iterate(Matrix<const float> W, float factor, Matrix<float> scaled, float* a, float* b, int steps);

namespace {

struct Problem {
  std::int64_t n;
  int steps;
  std::int64_t padding = 0, salt = 0;
  bool again = false;  // a second call follows at once
  std::uint64_t drawn = 0;
};

// Two elements of each column are not 0, and nobody can guess where they are: all sums are exact.
float weight(const Problem& p, std::int64_t row, std::int64_t col) {
  return (row == (col * 7 + p.salt) % p.n ? 1.0f : 0.0f) - (row == (col * 13 + p.salt / 3 + 5) % p.n ? 2.0f : 0.0f);
}

// What stands in b after an odd number of steps, and in a after an even one, is returned in `a` and `b`.
void expect(const Problem& p, float factor, std::vector<float>& a, std::vector<float>& b) {
  std::vector<float>*from = &a, *to = &b;
  for (int step = 0; step < p.steps; ++step, std::swap(from, to)) {
    for (std::int64_t col = 0; col < p.n; ++col) {
      float sum = 0;
      for (std::int64_t row = 0; row < p.n; ++row) sum += from->at(static_cast<std::size_t>(row)) * factor * weight(p, row, col);
      to->at(static_cast<std::size_t>(col)) = sum;
    }
  }
}

// What the interpreter's report cannot know of this exercise.
std::string meant(const std::string& report) {
  if (report.find("race on scaled") != std::string::npos && report.find("griddepcontrol.wait") != std::string::npos)
    return "The weights are read before the wait, so no launch that may still run may write them. scale_kernel writes them: the "
           "launch behind\nit has to begin when it has ended, so it is an ordinary one. And scale_kernel must not begin while "
           "steps of "
           "a call before read\nthem.";
  if (report.find("griddepcontrol.wait") != std::string::npos)
    return "The launch before may still run: it writes what is x here, and reads what is y here.";
  return "";
}

Counts iterate(const Coach& coach, const Problem& p) {
  std::string what = std::to_string(p.steps) + " steps of " + std::to_string(p.n) + " x " + std::to_string(p.n) + " in f32";
  if (p.again) what += ", twice";
  if (p.padding) what += ", rows " + std::to_string(p.padding) + " elements longer than what they hold";
  if (p.drawn) what += ", drawn at random: --seed " + std::to_string(p.drawn) + " draws it again";
  return coach.run(what, [&] {
    const std::int64_t stride = p.n + p.padding;
    const auto n = static_cast<std::size_t>(p.n);
    std::vector<float> values(static_cast<std::size_t>(p.n * stride), 1e6f);
    for (std::int64_t row = 0; row < p.n; ++row)
      for (std::int64_t col = 0; col < p.n; ++col) values[static_cast<std::size_t>(row * stride + col)] = weight(p, row, col);
    std::vector<float> x(n), y(n, 1e6f);
    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>((i * 37 + static_cast<std::size_t>(p.salt)) % 61) - 30;
    const device::Buffer<float> W(values, "W");
    const device::Buffer<float> scaled(std::vector<float>(values.size(), 1e6f), "scaled");
    const device::Buffer<float> a(x, "a"), b(y, "b");
    const std::vector<float> got = asked([&] {
      const auto call = [&](float factor) {
        exercise::iterate({W.data(), p.n, p.n, stride, 1}, factor, {scaled.data(), p.n, p.n, stride, 1}, a.data(), b.data(),
                          p.steps);
      };
      explained(meant, [&] {
        call(0.5f);
        if (p.again) call(2);
        device::synchronize();
      });
      std::vector<float> both = a.download(), of_b = b.download();
      both.insert(both.end(), of_b.begin(), of_b.end());
      return both;
    });
    expect(p, 0.5f, x, y);
    if (p.again) expect(p, 2, x, y);
    for (std::size_t i = 0; i < 2 * n; ++i) {
      const float expected = i < n ? x[i] : y[i - n];
      if (got.at(i) != expected)
        throw NotYet{"The result is wrong: " + std::string(i < n ? "a" : "b") + "[" + std::to_string(i % n) + "] is " +
                     std::to_string(got.at(i)) + ", expected " + std::to_string(expected) +
                     ".\nA thread has the first weights in registers: is each multiplied by the x of its own row, and are there so "
                     "many rows? The "
                     "result of\nthe first step is in b, of the second in a, and so on."};
    }
  });
}

// The weights have to be read before the wait: where the launch before has written some of them, that is a race, and the
// interpreter sees it. Here a is a row of them.
void require_early_weights([[maybe_unused]] const Coach& coach) {
#ifdef COURSE_ON_INTERPRETER
  coach.run("6 steps of 32 x 32 in f32, where a is the first row of the weights", [&] {
    const device::Buffer<float> W(std::vector<float>(32 * 32, 1), "W"), scaled(std::vector<float>(32 * 32, 1), "scaled");
    const device::Buffer<float> b(std::vector<float>(32, 1), "b");
    bool early = false;
    try {
      asked([&] {
        exercise::iterate({W.data(), 32, 32, 32, 1}, 0.03125f, {scaled.data(), 32, 32, 32, 1}, scaled.data(), b.data(), 6);
        device::synchronize();
      });
    } catch (const std::runtime_error& error) {
      early = std::string(error.what()).find("before griddepcontrol.wait") != std::string::npos;
    }
    if (!early)
      throw NotYet{
          "The results are right, but no launch begins early in truth: nothing is read before the wait. The weights are there "
          "already.\n"
          "A thread reads its first ones before it waits for the launch before, and nobody waits on the host."};
  });
#endif
}

}  // namespace

void check(Coach& coach) {
  coach.lesson("steps/14_dependent_launch/README.md, and first.cu beside it");
  for (const auto& [n, steps] : {std::pair{32, 1}, std::pair{32, 2}, std::pair{64, 3}, std::pair{130, 4}, std::pair{5, 3}})
    iterate(coach, {.n = n, .steps = steps});
  iterate(coach, {.n = 70, .steps = 3, .padding = 2, .again = true});
  Draw& draw = coach.draw();
  iterate(coach, {.n = draw.between(300, 500), .steps = 2, .salt = draw.between(1, 999), .drawn = draw.seed()});
  iterate(coach, {.n = draw.length(150),
                  .steps = static_cast<int>(draw.between(2, 5)),
                  .padding = draw.between(0, 9),
                  .salt = draw.between(1, 999),
                  .again = true,
                  .drawn = draw.seed()});

  for (const Problem& p :
       {Problem{.n = 96, .steps = 4}, Problem{.n = 64 * draw.between(1, 2), .steps = static_cast<int>(draw.between(2, 5))}}) {
    const double bytes = static_cast<double>(p.n * p.n * 4),
                 vectors = static_cast<double>((p.n + 127) / 128 * 4 * p.n) * 32;  // of blocks of 128 threads
    const Counts counts = iterate(coach, p);
    counts.at_least(loaded(bytes * (p.steps + 1)), 1, "Each step reads all weights.")
        .at_most(loaded(bytes * (p.steps + 1) + vectors * p.steps), 1, "A step reads each weight once, and each warp the whole x.");
#ifdef COURSE_ON_INTERPRETER
    const auto& launches = counts.launches(static_cast<std::size_t>(p.steps) + 1, "One for the weights, and one for each step.");
    for (std::size_t i = 2; i < launches.size(); ++i)
      coach.require(launches[i].dependent, "The results are right, but step " + std::to_string(i - 1) +
                                               " is an ordinary launch: it begins when the one before has ended.\nThat one writes "
                                               "no weights, so this one may begin early: device::launch_dependent().");
#endif
  }
  require_early_weights(coach);

  // How much is gained depends on what else the GPU does: no bar for the time.
}

}  // namespace exercise

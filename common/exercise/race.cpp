#include "common/exercise/race.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "common/device/device.cuh"
#include "common/exercise/posed.h"
#include "common/exercise/speed.h"
#include "common/harness/measure/backend.h"
#include "common/harness/measure/baselines.h"
#include "common/harness/measure/buffer_sets.h"
#include "common/harness/measure/timing.h"
#include "common/harness/results/results_json.h"

namespace exercise {
namespace {

using harness::AnyMatrix, harness::Contestant, harness::Sample, harness::Timings;
using nlohmann::ordered_json;

constexpr double kSeconds = 0.5;                                // that the rounds of one problem take at least
constexpr std::size_t kAnswer = 0, kSolution = 1, kGemmEx = 2;  // the contestants

// One problem's data, and who computes C there.
class Track {
 public:
  Track(const Timed& answer, const Timed& solution)
      : answer_(answer), solution_(solution), problem_(answer.pose()), other_C_(problem_->another_C()) {}

  // @throws NotYet when what was computed while it was timed is wrong
  Timings times(bool cold, bool with_cublas) {
    harness::TimingPlan plan;
    const double bytes = problem_->input_bytes() + problem_->output_bytes();
    plan.cold = cold, plan.seconds = kSeconds;
    plan.sets = cold ? harness::cold_sets(bytes) : harness::hot_sets(bytes);
    if (!cold) plan.min_rounds = std::max(plan.min_rounds, 2 * plan.sets);  // on each set twice
    problem_->C.poison();
    other_C_.poison();
    const harness::BufferSets sets({&problem_->A, &problem_->B, &problem_->C, &other_C_, &problem_->bias}, plan.sets);

    int last_set = 0;  // that the answer wrote to
    const auto call = [&](const Timed& timed, std::size_t C, int set) {
      timed.function(problem_->operands(sets.view(kA, set), sets.view(kB, set), sets.view(C, set), sets.view(kBias, set).data));
    };
    std::vector<Contestant> contestants = {[&](int set) { call(answer_, kC, last_set = set); },
                                           [&](int set) { call(solution_, kOtherC, set); }};
    const harness::Cublas::Algorithm* gemm_ex = nullptr;
    std::vector<harness::Cublas::Algorithm> found;
    if (with_cublas && can_be_plain()) {
      const auto [a, b, c] = products(sets, 0).front();
      if (!cublas_) cublas_.emplace();
      found = cublas_->gemm_ex({a, b, c}, answer_.subject.in, answer_.subject.out);
      if (!found.empty()) gemm_ex = &found.front();
    }
    const auto multiply = [&](int set) {
      for (const auto& [a, b, c] : products(sets, set)) (*gemm_ex)({a, b, c});
    };
    if (gemm_ex) {
      check(multiply);
      contestants.push_back(multiply);
    }

    Timings timings;
    try {
      timings = harness::time_in_rounds(contestants, plan);
    } catch (const device::Error& error) {
      throw NotYet{"The result is right, but calls in a row cannot be timed: " + std::string(error.what()) +
                   "\nDoes the function wait for the GPU, or copy between host and GPU? It should start kernels, and return."};
    }
    for (const int set : {0, last_set}) {
      sets.bring_back(kC, set);
      if (const std::string wrong = problem_->verify(); !wrong.empty())
        throw NotYet{"The result was right in the first call, and is wrong after many calls: " + wrong + "."};
      if (plan.sets == 1) break;
    }
    return timings;
  }

 private:
  enum : std::size_t { kA, kB, kC, kOtherC, kBias };

  std::vector<Posed::Product> products(const harness::BufferSets& sets, int set) const {
    return problem_->products(sets.view(kA, set), sets.view(kB, set), sets.view(kOtherC, set));
  }
  // cublasGemmEx fuses nothing.
  bool can_be_plain() const { return !answer_.is_fused; }
  // A baseline that computes something else would be no baseline. @throws device::Error
  void check(const std::function<void(int set)>& multiply) {
    multiply(0);
    device::synchronize();
    std::string wrong = other_C_.fetch();
    if (wrong.empty()) wrong = problem_->compare_plain(other_C_);
    if (!wrong.empty()) throw device::Error("cublasGemmEx computed something else: " + wrong);
    other_C_.poison();
  }

  const Timed &answer_, &solution_;
  std::unique_ptr<Posed> problem_;
  harness::TestMatrix other_C_;
  std::optional<harness::Cublas> cublas_;  // where it is compared with
};

Speed speed_of(const Timings& t, double bar) {
  const Sample answer = t.sample(kAnswer), solution = t.sample(kSolution);
  return {t.ratio(kSolution, kAnswer).median, answer.median, solution.median, answer.rounds, bar};
}

ordered_json json(const Timings& t) {
  ordered_json found = {
      {"time", t.sample(kAnswer)}, {"solution", t.sample(kSolution)}, {"of_solution", t.ratio(kSolution, kAnswer)}};
  const bool has_cublas = t.seconds.size() > kGemmEx;
  found["cublasGemmEx"] = has_cublas ? ordered_json(t.sample(kGemmEx)) : ordered_json(nullptr);
  found["ratio"] = has_cublas ? ordered_json(t.ratio(kAnswer, kGemmEx)) : ordered_json(nullptr);
  return found;
}

// The machine, the versions and the commit, as in all results.
ordered_json document() {
  ordered_json whole = ordered_json::parse(harness::to_json(harness::this_machine(), {}, {}));
  for (const char* name : {"version", "ceilings", "results"}) whole.erase(name);
  whole["schema"] = "gemm-course-solution";
  whole["problems"] = ordered_json::array();
  return whole;
}

}  // namespace

std::string race(const std::vector<Timed>& answers, const std::vector<Timed>& solutions, const std::string& results) {
  std::string told;
  ordered_json record;
  if (!results.empty()) record = document();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Timed& answer = answers[i];
    const Subject& s = answer.subject;
    const std::string where = "\n\nProblem: " + s.words + ".";
    try {
      Track track(answer, solutions.at(i));
      const Timings hot = track.times(false, !results.empty());
      const Speed speed = speed_of(hot, answer.bar);
      if (!results.empty())
        record["problems"].push_back({{"words", s.words},
                                      {"m", s.m},
                                      {"n", s.n},
                                      {"k", s.k},
                                      {"heads", s.heads},
                                      {"in", harness::name(s.in)},
                                      {"out", harness::name(s.out)},
                                      {"bar", answer.bar},
                                      {"hot", json(hot)},
                                      {"cold", json(track.times(true, true))}});
      if (const std::string slow = too_slow(speed); !slow.empty())
        throw NotYet{slow + (answer.slow.empty() ? "" : "\n" + answer.slow)};
      told += s.words + ": " + in_words(speed) + "\n";
    } catch (const NotYet& failure) {
      throw NotYet{failure.text + where};
    }
  }
  if (!results.empty()) harness::write_file(results, record.dump(1) + "\n");
  return told;
}

}  // namespace exercise

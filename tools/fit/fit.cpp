// The program that fit.py builds: how good the model's choices are, and other constants with which they are better.
//
//   fit ITERATIONS CONSTANT,... FILE,... FILE,... [CONSTANT=VALUE]...   constants that stay; files to fit to; files to report alone
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "common/harness/program/tile.h"
#include "common/harness/tuning/here.h"
#include "common/interpreter/count/gpus.h"
#include "common/library/choose.h"
#include "tools/fit/registry.h"

using namespace gemm::library;
using harness::DType, harness::GpuLimits;

namespace {

template <class Tile>
Kernel kernel(const char* step, const char* needs, Operands operands) {
  constexpr harness::TileNumbers kNumbers = harness::numbers_of<Tile>();
  harness::Step of{step, {}};
  of.needs = {needs, ""}, of.architectures = {std::string(needs) + "-real"};
  const std::string name = std::string(step) + " " + harness::tile_name<Tile>();
  return {of, {name, kNumbers.block_m, kNumbers.block_n, DType::kF16, DType::kF16, nullptr, nullptr, kNumbers}, operands, nullptr};
}
template <class... Tiles>
void add(std::vector<Kernel>& all, const char* step, const char* needs, Operands operands, gemm::TypeList<Tiles...>) {
  (all.push_back(kernel<Tiles>(step, needs, operands)), ...);
}

}  // namespace

#include "tiles.inl"

namespace {

struct Problem {
  GpuLimits gpu;
  Task task;
  std::map<std::string, double> times;  // by way; of files of tiles, those tiles alone are asked about
  double best = HUGE_VAL, cublas = 0;
  bool tiles_alone = false;
};
struct Set {
  std::string name;
  std::vector<Problem> problems;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::string part;
  for (std::istringstream stream(text + ","); std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

Task task(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& layout) {
  void* const data = reinterpret_cast<void*>(std::uintptr_t{1} << 30);  // where a line begins
  const auto lies = [data](char c, std::int64_t rows, std::int64_t cols) {
    return harness::AnyMatrix{data, rows, cols, c == 'n' ? cols : 1, c == 'n' ? 1 : rows};
  };
  return task_of({lies(layout[0], m, k), lies(layout[1], k, n), lies('n', m, n), DType::kF16, DType::kF16, 1});
}

GpuLimits limits(const char* gpu) { return harness::limits_of(interpreter::find_gpu(gpu)); }

Set choices_of(const std::string& path) {
  Set set{path.substr(path.rfind('/') + 1), {}};
  std::ifstream stream(path);
  std::string line;
  std::getline(stream, line);
  const std::vector<std::string> names = split(line);
  while (std::getline(stream, line)) {
    const std::vector<std::string> row = split(line);
    Problem p{limits("h200"), task(std::stoll(row[0]), std::stoll(row[1]), std::stoll(row[2]), row[3]), {}};
    for (std::size_t i = 4; i < row.size() && i < names.size(); ++i) {
      if (row[i].empty()) continue;
      const double time = std::stod(row[i]) * 1e-6;
      if (names[i] == "cublasGemmEx") p.cublas = time;
      if (!names[i].starts_with("cublas")) p.times[names[i]] = time, p.best = std::min(p.best, time);
    }
    set.problems.push_back(p);
  }
  return set;
}

// As library_test.cpp reads them.
Set tiles_of(const char* gpu, const std::vector<std::string>& paths) {
  Set set{gpu + (" " + paths.front().substr(paths.front().rfind('/') + 1)), {}};
  std::map<std::array<std::int64_t, 3>, Problem> by_shape;
  for (const std::string& path : paths) {
    std::ifstream stream("docs/results/" + path + ".json");
    const auto measured = nlohmann::json::parse(stream);
    for (const auto& result : measured["results"]) {
      const std::array<std::int64_t, 3> shape{result["m"], result["n"], result["k"]};
      if (path != paths.front() && !by_shape.contains(shape)) continue;
      const double time = result["mode"] == "cold" ? result["time"]["median"].get<double>()
                                                   : 1 / result["ratio"]["cublasGemmEx"]["median"].get<double>();
      Problem& p =
          by_shape.try_emplace(shape, Problem{limits(gpu), task(shape[0], shape[1], shape[2], result["layout"]), {}}).first->second;
      p.tiles_alone = true;
      p.times[result["step"].get<std::string>() + " " + result["tile"].get<std::string>()] = time;
    }
  }
  for (const auto& [shape, p] : by_shape) set.problems.push_back(p);
  return set;
}

std::vector<Kernel> kernels_of_library() {
  std::vector<Kernel> all;
  add_all(all);
  return all;
}

struct Way {
  double predicted, time;  // time: infinite if it was not measured
};
std::vector<Way> ways(const std::vector<Kernel>& kernels, const Problem& p) {
  std::vector<Way> found;
  const auto time_of = [&](const std::string& name) {
    const auto at = p.times.find(name);
    return at == p.times.end() ? HUGE_VAL : at->second;
  };
  if (p.tiles_alone) {
    for (const Kernel& k : kernels)
      if (const double time = time_of(k.variant.tile); time < HUGE_VAL)
        found.push_back({harness::predict(k.variant.numbers, p.task.spec, p.gpu).seconds, time});
  } else {
    for (const Chosen& each : choices(kernels, p.task, p.gpu)) found.push_back({each.seconds, time_of(way_name(each))});
  }
  return found;
}

// How much longer the choice takes than the best way; and, smooth, what that would be if close predictions were a draw.
struct Loss {
  double hard = 0, smooth = 0;
};
Loss loss(const std::vector<Kernel>& kernels, const Problem& p) {
  constexpr double kDraw = 0.03, kAtMost = 2;  // of the logarithms; no way counts as worse than twice the best one
  const std::vector<Way> all = ways(kernels, p);
  double best = HUGE_VAL, least = HUGE_VAL;
  for (const Way& w : all) best = std::min(best, w.time), least = std::min(least, w.predicted);
  Loss found;
  double weights = 0;
  for (const Way& w : all) {
    const double longer = std::min(w.time / best, kAtMost) - 1, weight = std::exp(-std::log(w.predicted / least) / kDraw);
    found.smooth += weight * longer, weights += weight;
    if (w.predicted == least) found.hard = longer;
  }
  found.smooth /= weights;
  return found;
}

void report(const std::vector<Kernel>& kernels, const Set& set) {
  double longer = 0, most = 0, picked = 0, best = 0;
  for (const Problem& p : set.problems) {
    const double hard = loss(kernels, p).hard;
    longer += hard, most = std::max(most, hard);
    if (p.cublas > 0) picked += std::log(p.cublas / p.best / (1 + hard)), best += std::log(p.cublas / p.best);
  }
  const double count = static_cast<double>(set.problems.size());
  std::printf("%-28s %4zu problems, longer than the best way: %5.1f %% on average, at most %5.1f %%", set.name.c_str(),
              set.problems.size(), 100 * longer / count, 100 * most);
  if (set.problems.front().cublas > 0) std::printf("; of cuBLAS %.3f, best %.3f", std::exp(picked / count), std::exp(best / count));
  std::printf("\n");
}

// An evolution strategy with a step size for each constant, in their logarithms (N. Hansen, A. Ostermeier, 2001).
class Search {
 public:
  Search(std::vector<double*> constants, const std::function<double()>& cost) : constants_(std::move(constants)), cost_(cost) {
    for (const double* c : constants_) start_.push_back(*c);
  }
  void run(int iterations) {
    constexpr int kChildren = 18, kParents = 9;
    constexpr double kPath = 0.12, kOfPath = 0.06, kOfParents = 0.10, kFirstStep = 0.15;
    const std::size_t size = constants_.size();
    std::vector<double> mean(size), path(size), spread(size, kFirstStep * kFirstStep), weights;
    for (int i = 0; i < kParents; ++i) weights.push_back(std::log(kParents + 0.5) - std::log(i + 1));
    double sum = 0, step = 1;
    for (const double w : weights) sum += w;
    for (double& w : weights) w /= sum;
    best_ = mean, least_ = at(mean);
    std::mt19937 random(1);
    std::normal_distribution<double> normal;
    for (int iteration = 0; iteration < iterations; ++iteration) {
      std::vector<std::pair<double, std::vector<double>>> children(kChildren);
      for (auto& [cost, x] : children) {
        x = mean;
        for (std::size_t i = 0; i < size; ++i) x[i] += step * std::sqrt(spread[i]) * normal(random);
        cost = at(x);
      }
      std::sort(children.begin(), children.end());
      if (children[0].first < least_) least_ = children[0].first, best_ = children[0].second;
      const std::vector<double> before = mean;
      std::fill(mean.begin(), mean.end(), 0.0);
      for (int k = 0; k < kParents; ++k)
        for (std::size_t i = 0; i < size; ++i) mean[i] += weights[k] * children[k].second[i];
      double length = 0;
      for (std::size_t i = 0; i < size; ++i) {
        path[i] = (1 - kPath) * path[i] + std::sqrt(kPath * (2 - kPath) * kParents / 2) * (mean[i] - before[i]) / step;
        double of_parents = 0;
        for (int k = 0; k < kParents; ++k) of_parents += weights[k] * std::pow((children[k].second[i] - before[i]) / step, 2);
        spread[i] = (1 - kOfPath - kOfParents) * spread[i] + kOfPath * path[i] * path[i] + kOfParents * of_parents;
        length += path[i] * path[i] / spread[i];
      }
      step = std::min(2.0, step * std::exp(0.15 * (std::sqrt(length / static_cast<double>(size)) - 1)));
      if (iteration % 25 == 24) std::printf("%d: %.4f\n", iteration + 1, least_), std::fflush(stdout);
    }
    set(best_);
  }

 private:
  void set(const std::vector<double>& x) {
    for (std::size_t i = 0; i < x.size(); ++i) *constants_[i] = start_[i] * std::exp(x[i]);
  }
  double at(const std::vector<double>& x) {
    constexpr double kFar = 1.2;  // from where they began, by a factor of e to that
    set(x);
    double far = 0;
    for (const double each : x) far += std::max(0.0, std::abs(each) - kFar);
    return cost_() + 0.05 * far;
  }

  std::vector<double*> constants_;
  const std::function<double()>& cost_;
  std::vector<double> start_, best_;
  double least_ = HUGE_VAL;
};

}  // namespace

int main(int argc, char** argv) {
  const int iterations = std::atoi(argv[1]);
  const std::vector<std::string> stay = split(argv[2]);
  for (int i = 5; i < argc; ++i) {
    const std::string typed = argv[i], name = typed.substr(0, typed.find('='));
    if (!fit::registry().contains(name) || name == typed) {
      std::fprintf(stderr, "fit: %s: no constant of the model and its value; it has:", argv[i]);
      for (const auto& [each, value] : fit::registry()) std::fprintf(stderr, " %s=%.4g", each.c_str(), *value);
      std::fprintf(stderr, "\n");
      return 2;
    }
    *fit::registry()[name] = std::stod(typed.substr(name.size() + 1));
  }
  std::vector<Set> sets, held_out;
  for (const std::string& path : split(argv[3])) sets.push_back(choices_of(path));
  for (const std::string& path : split(argv[4])) held_out.push_back(choices_of(path));
  for (const char* gpu : {"h100", "h200"}) {
    const std::string folder = std::string(gpu) == "h100" ? "h100-80gb-hbm3/" : "h200/";
    sets.push_back(tiles_of(gpu, {folder + "tiles-f16", folder + "two-widths-tiles-f16"}));
    sets.push_back(tiles_of(gpu, {folder + "tiles-large-f16", folder + "two-widths-tiles-f16"}));
  }
  sets.push_back(tiles_of("h100", {"h100-80gb-hbm3/tiles-nt-f16", "h100-80gb-hbm3/two-widths-tiles-nt-f16"}));
  for (const char* name : {"straddling", "tiles-small", "dependent", "rows"})
    sets.push_back(tiles_of("h200", {"h200/" + std::string(name) + "-f16"}));
  for (const char* name : {"few-rows", "more-rows", "wide-rows", "long-rows", "long-rows-nt"})
    sets.push_back(tiles_of("h200", {"h200/" + std::string(name) + "-f16-cold"}));
  const std::vector<Kernel> kernels = kernels_of_library();
  if (iterations > 0) {
    std::vector<double*> constants;
    for (const auto& [name, value] : fit::registry())
      if (std::find(stay.begin(), stay.end(), name) == stay.end()) constants.push_back(value);
    const std::function<double()> cost = [&] {  // a small set counts for 25 problems
      double sum = 0, weights = 0;
      for (const Set& set : sets) {
        double of_set = 0;
        for (const Problem& p : set.problems) of_set += loss(kernels, p).smooth;
        const double weight = std::max(25.0, static_cast<double>(set.problems.size()));
        sum += weight * of_set / static_cast<double>(set.problems.size()), weights += weight;
      }
      return sum / weights;
    };
    Search(constants, cost).run(iterations);
    for (const auto& [name, value] : fit::registry()) std::printf("%s=%.4g ", name.c_str(), *value);
    std::printf("\n");
  }
  for (const Set& set : sets) report(kernels, set);
  std::printf("not fitted to:\n");
  for (const Set& set : held_out) report(kernels, set);
}

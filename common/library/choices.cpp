// Times all that gemm::run() could choose, beside cuBLAS, for shapes that are drawn or named: how good the model's choice is.
//
//   choices FAMILY COUNT SEED [picked | TEXT]   f16, hot; a line of CSV for each problem, on stdout
//
// picked: of our ways only the one that the model chooses, as "call", and for longer, so that shares of cuBLAS can be compared.
// TEXT: of our ways only those that have it in their names.
// FAMILY: eights (multiples of 8 from 64 to 8192), long (such with k from 1024 on, and so few tiles that SMs are idle, if each has
// one), any (any sizes from 16 to 4096), straddling (squares whose rows are an odd multiple of 16 bytes), odd (three odd sizes,
// m*n*k at least 1e9), squares (256, 512 ...), llama (weights of Llama 3 8B, nt), wide (a public library's table, nt), hundreds
// (both, with 64 to 1024 rows). Of the last three all; COUNT and SEED choose the numbers of rows. A field of a line is a way's time
// in us; it is empty where the way was not timed, for the model expects more than kHopeless times the best one's time of it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "common/device/device.cuh"
#include "common/harness/measure/baselines.h"
#include "common/harness/measure/timing.h"
#include "common/harness/results/statistics.h"
#include "common/harness/tuning/here.h"
#include "common/library/choose.h"

namespace gemm::library {
namespace {

using harness::AnyMatrix, harness::DType;

constexpr double kHopeless = 2.5;
constexpr std::size_t kLtCandidates = 3;

struct Shape {
  std::int64_t m, n, k;
  std::string layout;
};

// Evenly over the logarithm, so that small sizes come as often as large ones.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  std::int64_t size(std::int64_t least, std::int64_t most, std::int64_t multiple) {
    const double u = std::uniform_real_distribution<double>(std::log(double(least)), std::log(double(most)))(random_);
    return std::max(least, static_cast<std::int64_t>(std::exp(u)) / multiple * multiple);
  }
  const char* layout() { return std::vector<const char*>{"nn", "nt", "tn", "tt"}[random_() % 4]; }

 private:
  std::mt19937 random_;
};

std::vector<Shape> shapes(const std::string& family, int count, unsigned seed) {
  Draw draw(seed);
  std::vector<Shape> all;
  const std::vector<std::pair<int, int>> llama{{6144, 4096}, {4096, 4096}, {28672, 4096}, {4096, 14336}},
      wide{{2112, 7168}, {24576, 1536}, {32768, 512}, {7168, 16384}, {4096, 7168}, {7168, 2048}};
  const auto rows_of = [&](std::initializer_list<std::vector<std::pair<int, int>>> families, std::int64_t least,
                           std::int64_t most) {
    for (int i = 0; i < count; ++i) {
      const std::int64_t m = draw.size(least, most, 1);
      for (const auto& weights : families)
        for (const auto& [n, k] : weights) all.push_back({m, n, k, "nt"});
    }
    return all;
  };
  if (family == "llama") return rows_of({llama}, 1, 8192);
  if (family == "wide") return rows_of({wide}, 1, 8192);
  if (family == "hundreds") return rows_of({llama, wide}, 64, 1024);
  for (int i = 0; i < count; ++i) {
    if (family == "eights") {
      const std::int64_t m = draw.size(64, 8192, 8), n = draw.size(64, 8192, 8), k = draw.size(64, 8192, 8);
      for (const char* layout : {"nn", "nt", "tn", "tt"}) all.push_back({m, n, k, layout});
    } else if (family == "long") {
      std::int64_t m = 0, n = 0;
      do m = draw.size(64, 8192, 8), n = draw.size(64, 8192, 8);
      while (m * n > 4'000'000);
      const std::int64_t k = draw.size(1024, 8192, 8);
      for (const char* layout : {"nn", "nt", "tn", "tt"}) all.push_back({m, n, k, layout});
    } else if (family == "straddling") {
      const std::int64_t m = draw.size(512, 8192, 16) + 8;
      for (const char* layout : {"nn", "nt"}) all.push_back({m, m, m, layout});
    } else if (family == "squares") {
      for (const char* layout : {"nn", "nt"}) all.push_back({256 * (i + 1), 256 * (i + 1), 256 * (i + 1), layout});
    } else if (family == "odd") {
      std::int64_t m = 0, n = 0, k = 0;
      while (static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) < 1e9)
        m = draw.size(256, 8192, 2) + 1, n = draw.size(256, 8192, 2) + 1, k = draw.size(256, 8192, 2) + 1;
      all.push_back({m, n, k, draw.layout()});
    } else if (family == "any") {
      const std::int64_t m = draw.size(16, 4096, 1), n = draw.size(16, 4096, 1), k = draw.size(16, 4096, 1);
      all.push_back({m, n, k, draw.layout()});
    } else {
      std::fprintf(stderr, "choices: family %s: eights, long, any, straddling, odd, squares, llama, wide or hundreds\n",
                   family.c_str());
      std::exit(2);
    }
  }
  return all;
}

class Bench {
 public:
  Bench(const std::vector<Shape>& shapes, const std::string& only) : only_(only) {
    std::int64_t a = 0, b = 0, c = 0;
    for (const Shape& s : shapes) a = std::max(a, s.m * s.k), b = std::max(b, s.k * s.n), c = std::max(c, s.m * s.n);
    a_ = random(a), b_ = random(b), c_ = device::Buffer<__half>(static_cast<std::size_t>(c));
  }

  void time(const Shape& s) {
    const auto placed = [](void* data, std::int64_t rows, std::int64_t cols, char layout) {
      return layout == 'n' ? AnyMatrix{data, rows, cols, cols, 1} : AnyMatrix{data, rows, cols, 1, rows};
    };
    const Call call{placed(a_.data(), s.m, s.k, s.layout[0]),
                    placed(b_.data(), s.k, s.n, s.layout[1]),
                    placed(c_.data(), s.m, s.n, 'n'),
                    DType::kF16,
                    DType::kF16,
                    1};
    const harness::Operands operands{call.A, call.B, call.C};
    std::vector<std::string> names;
    std::vector<harness::Contestant> contestants;
    const auto add = [&](const std::string& name, const harness::Contestant& c) {
      names.push_back(name), contestants.push_back(c);
    };
    for (const auto& each : cublas_.gemm_ex(operands, DType::kF16, DType::kF16))
      add("cublasGemmEx", [&, each](int) { each(operands); });
    std::size_t lt = 0;
    for (const auto& each : cublas_.lt_candidates(operands, DType::kF16, DType::kF16))
      if (lt++ < kLtCandidates) add("cublasLt", [&, each](int) { each(operands); });
    const std::vector<Chosen> all = choices(kernels(), task_of(call), gpu_);
    const auto less = [](const Chosen& x, const Chosen& y) { return x.seconds < y.seconds; };
    const Chosen best = *std::min_element(all.begin(), all.end(), less);
    harness::TimingPlan plan;
    plan.min_rounds = 5, plan.max_rounds = 7, plan.seconds = 0, plan.warm_up = 1e-3, plan.of_graph = 0.25e-3;
    if (only_ == "picked") {
      const Chosen way = choose(kernels(), task_of(call), gpu_, {});
      add("call", [&call, way](int) { launch(call, way); });
      plan.min_rounds = plan.max_rounds = 15, plan.warm_up = 3e-3, plan.of_graph = 1e-3;
    } else {
      for (const Chosen& way : all)
        if (way.seconds < kHopeless * best.seconds && way_name(way).find(only_) != std::string::npos)
          add(way_name(way), [&call, way](int) { launch(call, way); });
    }
    const std::vector<double> seconds = harness::comparable(harness::time_in_rounds(contestants, plan).seconds);
    std::map<std::string, double> fastest;
    for (std::size_t i = 0; i < names.size(); ++i) {
      double& kept = fastest.try_emplace(names[i], seconds[i]).first->second;
      kept = std::min(kept, seconds[i]);
    }
    rows_.push_back({s, fastest});
  }

  void print() const {
    std::map<std::string, int> columns;
    for (const Row& row : rows_)
      for (const auto& [name, seconds] : row.seconds) columns[name];
    std::printf("m,n,k,layout");
    for (const auto& [name, unused] : columns) std::printf(",%s", name.c_str());
    std::printf("\n");
    for (const Row& row : rows_) {
      std::printf("%lld,%lld,%lld,%s", static_cast<long long>(row.shape.m), static_cast<long long>(row.shape.n),
                  static_cast<long long>(row.shape.k), row.shape.layout.c_str());
      for (const auto& [name, unused] : columns) {
        const auto found = row.seconds.find(name);
        found == row.seconds.end() ? std::printf(",") : std::printf(",%.4g", 1e6 * found->second);
      }
      std::printf("\n");
    }
  }

 private:
  struct Row {
    Shape shape;
    std::map<std::string, double> seconds;
  };

  // Of values that a product of any length can hold.
  static device::Buffer<__half> random(std::int64_t count) {
    std::mt19937 bits(1);
    std::vector<__half> values(1 << 20);
    for (__half& x : values) x = __half(static_cast<float>(static_cast<int>(bits() % 4096) - 2048) / 8192.0f);
    device::Buffer<__half> buffer(static_cast<std::size_t>(count));
    for (std::size_t at = 0; at < buffer.size(); at += values.size())
      buffer.upload(values.data(), std::min(values.size(), buffer.size() - at), at);
    return buffer;
  }

  std::string only_;  // of our ways
  harness::GpuLimits gpu_ = harness::limits_here();
  harness::Cublas cublas_;
  device::Buffer<__half> a_, b_, c_;
  std::vector<Row> rows_;
};

}  // namespace
}  // namespace gemm::library

int main(int argc, char** argv) {
  const int count = argc == 4 || argc == 5 ? std::atoi(argv[2]) : 0;
  if (count < 1) {
    std::fprintf(stderr, "usage: choices FAMILY COUNT SEED [picked | TEXT], with a COUNT from 1 on\n");
    return 2;
  }
  const auto all = gemm::library::shapes(argv[1], count, static_cast<unsigned>(std::atoi(argv[3])));
  gemm::library::Bench bench(all, argc == 5 ? argv[4] : "");
  for (const auto& shape : all) bench.time(shape);
  bench.print();
}

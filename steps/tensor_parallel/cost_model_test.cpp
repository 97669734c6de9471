#include "steps/tensor_parallel/cost_model.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "common/harness/program/text.h"

using namespace tensor_parallel;
using harness::formatted;
using nlohmann::json;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(COURSE_SOURCE "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Measured {
  json document = json::parse(text_of("docs/results/h200-x2/tensor_parallel.json"));

  Costs costs(double products, bool graph = false) const {
    return {products, link_of(document["link"], "nccl"), link_of(document["link"], "copy engines"), graph, {}};
  }
  static Shape shape(const json& result) { return {result["tokens"], result["model"], result["hidden"]}; }
  static const json& time(const json& result, const std::string& name) {
    for (const json& each : result["times"])
      if (each["name"] == name) return each;
    throw std::logic_error("no plan " + name);
  }
  static double seconds(const json& result, const std::string& name) { return time(result, name)["seconds"]["median"]; }
};

// That the page, or the lesson, has this row.
void check_row(const std::string& row, const std::string& page = "docs/tensor_parallel.md") {
  INFO(page << " lacks this row:\n" << row);
  CHECK(text_of(page).find("\n" + row + "\n") != std::string::npos);
}

// Synthetic: latency 10 us, 100 GB/s.
Link simple() {
  const Line line{{{0, 10e-6}, {1e6, 20e-6}}};
  return {line, line, line};
}

}  // namespace

TEST_CASE("cost model: a line goes through what was measured, and on") {
  const Line line{{{10, 1}, {20, 2}, {40, 8}}};
  CHECK(line(0) == 1);
  CHECK(line(15) == doctest::Approx(1.5));
  CHECK(line(20) == 2);
  CHECK(line(30) == doctest::Approx(5));
  CHECK(line(60) == doctest::Approx(14));
}

TEST_CASE("cost model: what nothing is copied for takes as long as its products; copies cost their share") {
  const Shape shape{1000, 1000, 4000};
  CHECK(CostModel({1e-3, simple(), simple()}, shape, 1).plain() == doctest::Approx(1e-3));
  // A piece is 1 MB
  CHECK(CostModel({1e-3, simple(), simple()}, shape, 2).plain() == doctest::Approx(1e-3 + 2 * 20e-6));
  // Two copies of 20 us, during which kSlowed is lost; 4 launches and a sum
  const double one = CostModel({1e-3, simple(), simple()}, shape, 2).overlapped(1);
  CHECK(one == doctest::Approx(1e-3 + 2 * 20e-6 * kSlowed + 5 * kGap + 3e6 / kMemory - kGap * kSlowed));
  // Nothing can be hidden behind products that take no time
  CHECK(CostModel({1e-9, simple(), simple()}, shape, 2).overlapped(1) > 2 * 20e-6);
  // Between hosts: 8 pieces of 125 kB of others, of which an all_gather needs one on each adapter
  Costs costs{1e-3, simple(), simple()};
  costs.network = {8, 1e9, 0};
  CHECK(CostModel(costs, shape, 16).plain() == doctest::Approx(1e-3 + 2 * 126e3 / 1e9));
}

TEST_CASE("cost model: predicted against measured, two H200s; fitted at 1024 and 8192 tokens") {
  const Measured measured;
  for (const json& result : measured.document["results"]) {
    const Shape shape = Measured::shape(result);
    const bool graph = result["graph"];
    const auto compare = [&](const std::string& name, double predicted) {
      const double real = Measured::seconds(result, name), error = predicted / real - 1;
      CAPTURE(name);
      CAPTURE(shape.tokens);
      CHECK(std::abs(error) < 0.15);
      const json& time = Measured::time(result, name);
      const std::string row =
          formatted("| %s | %.0f | %.3f | %.0f %% | %.0f | %+.1f %% |", name.c_str(), 1e6 * real, time["efficiency"].get<double>(),
                    100 * time["hidden"].get<double>(), 1e6 * predicted, 100 * error);
      shape.tokens == 4096 ? check_row(row, "steps/tensor_parallel/README.md") : check_row(formatted("| %ld ", shape.tokens) + row);
    };
    const auto model = [&](const std::string& products) {
      return CostModel(measured.costs(Measured::seconds(result, products), graph), shape, 2);
    };
    const CostModel ours = model("products, one call");
    compare("plain, cublas and nccl", model("products, cublas").plain());
    compare("plain", ours.plain());
    if (graph) compare("replicated", ours.replicated());
    if (!graph)
      for (const int chunks : {1, 2, 4})
        compare("overlapped, " + std::to_string(chunks) + ", copy engines", ours.overlapped(chunks));

    // What it chooses is within 5 % of the best that was measured
    const Prediction choice = ours.choose(true);
    CHECK(choice.replicated == graph);
    double best = 1;
    for (const json& each : result["times"])
      if (const std::string plan = each["name"]; !plan.starts_with("products") && !plan.starts_with("one GPU"))
        best = std::min(best, each["seconds"]["median"].get<double>());
    const std::string chosen = name(choice);
    CAPTURE(chosen);
    CHECK(Measured::seconds(result, chosen) < 1.05 * best);
  }
}

TEST_CASE("cost model: without copy engines plain, and few tokens are not split where they may be everywhere") {
  CHECK_FALSE(CostModel({1e-3, simple(), {}}, {1000, 1000, 4000}, 2).choose(true).plan.overlapped);
  CHECK(CostModel({1e-3, simple(), simple()}, {64, 1000, 4000}, 2).choose(true).replicated);
  const Prediction split = CostModel({1e-3, simple(), simple()}, {64, 1000, 4000}, 2).choose(false);
  CHECK_FALSE((split.replicated || split.plan.overlapped));
  CHECK(CostModel({1e-3, simple(), simple()}, {1000, 1000, 4000}, 2).choose(true).plan.overlapped);
}

TEST_CASE("cost model: 8 GPUs, and hosts of 8 at 400 Gb/s for each GPU") {
  const Measured measured;
  for (const json& result : measured.document["results"]) {
    if (result["graph"]) continue;
    const Shape shape = Measured::shape(result);
    std::string row = formatted("| %ld x %ld x %ld |", shape.tokens, shape.model, shape.hidden);
    for (const int ranks : {2, 8, 16, 32}) {
      Costs costs = measured.costs(Measured::seconds(result, "products, one call") * 2 / ranks);
      if (ranks > 8) costs.network = {8, 50e9, 20e-6};
      const Prediction choice = CostModel(costs, shape, ranks).choose(true);
      const double efficiency = Measured::seconds(result, "one GPU, cublas") / ranks / choice.seconds;
      row += formatted(" %.0f us, %.2f, %s |", 1e6 * choice.seconds, efficiency,
                       choice.plan.overlapped ? std::to_string(choice.plan.chunks).c_str() : "plain");
    }
    check_row(row);
  }
}

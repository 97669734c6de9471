// What the cost model says of a measured block, piece by piece, for tools/see/ranks_figure.py: which pieces overlap, nobody has
// measured.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "steps/tensor_parallel/cost_model.h"

using namespace tensor_parallel;
using nlohmann::json;

namespace {

json as_json(const std::vector<Span>& spans) {
  static constexpr const char* kNames[] = {"gather", "first", "second", "exchange", "reduce", "add"};
  json all = json::array();
  for (const Span& each : spans)
    all.push_back(
        {{"work", kNames[each.work]}, {"chunk", each.chunk}, {"mine", each.is_mine}, {"from", each.from}, {"to", each.to}});
  return all;
}

}  // namespace

// timeline RESULTS.json TOKENS: of the first problem with so many tokens
int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fprintf(stderr, "usage: timeline RESULTS.json TOKENS\n");
    return 2;
  }
  std::ifstream file(argv[1]);
  const json document = json::parse(file);
  const std::int64_t tokens = std::stoll(argv[2]);
  for (const json& result : document.at("results")) {
    if (result.at("tokens") != tokens) continue;
    json measured;
    for (const json& each : result.at("times")) measured[each.at("name").get<std::string>()] = each.at("seconds").at("median");
    const Costs costs{measured.at("products, one call"),
                      link_of(document["link"], "nccl"),
                      link_of(document["link"], "copy engines"),
                      result.at("graph"),
                      {}};
    const CostModel model(costs, {tokens, result.at("model"), result.at("hidden")}, result.at("ranks"));
    std::cout << json{
        {"measured", measured}, {"plain", as_json(model.plain_spans())}, {"overlapped", as_json(model.overlapped_spans(1))}};
    return 0;
  }
  std::fprintf(stderr, "timeline: %s has no block of %s tokens\n", argv[1], argv[2]);
  return 2;
} catch (const std::exception& e) {
  std::fprintf(stderr, "timeline: %s\n", e.what());
  return 2;
}

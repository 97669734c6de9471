// What the cost model says, piece by piece: which pieces overlap, nobody has measured. Of a measured block, for
// tools/see/ranks_figure.py; or of recorded plans of any block, for 'tools/course see tensor_parallel'.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "steps/tensor_parallel/cost_model.h"
#include "steps/tensor_parallel/record.h"
#include "steps/tensor_parallel/replay.h"

using namespace tensor_parallel;
using nlohmann::json;

namespace {

constexpr const char* kNames[] = {"gather", "first", "second", "exchange", "reduce", "add"};

json as_json(const std::vector<Span>& spans) {
  json all = json::array();
  for (const Span& each : spans)
    all.push_back(
        {{"work", kNames[each.work]}, {"chunk", each.chunk}, {"mine", each.is_mine}, {"from", each.from}, {"to", each.to}});
  return all;
}

// What operations cost: by those of the measured block whose products are most like these.
json prices_of(const json& document, const Shape& shape, int ranks, Prices* prices) {
  const auto operations = [](double tokens, double model, double hidden, double of) { return 4 * tokens * model * hidden / of; };
  const double wanted =
      operations(static_cast<double>(shape.tokens), static_cast<double>(shape.model), static_cast<double>(shape.hidden), ranks);
  const json* best = nullptr;
  double least = 0;
  for (const json& each : document.at("results")) {
    if (each.at("graph")) continue;  // few tokens: as long as the weights take
    const double its = operations(each.at("tokens"), each.at("model"), each.at("hidden"), each.at("ranks"));
    const double distance = std::abs(std::log(its / wanted));
    if (best && distance >= least) continue;
    best = &each, least = distance;
    for (const json& time : each.at("times"))
      if (time.at("name") == "products, one call") prices->of_operation = time.at("seconds").at("median").get<double>() / its;
  }
  if (!best || prices->of_operation == 0) throw std::runtime_error("no measured products");
  prices->nccl = link_of(document.at("link"), "nccl");
  prices->copy_engines = link_of(document.at("link"), "copy engines");
  json like = {{"of_operation", prices->of_operation}};
  for (const char* key : {"tokens", "model", "hidden", "ranks"}) like[key] = best->at(key);
  for (const json& time : best->at("times")) like["seconds"][time.at("name").get<std::string>()] = time.at("seconds").at("median");
  return like;
}

json as_json(const Shape& shape, const Plan& plan, int ranks, const Prices& prices) {
  const auto done = recorded(shape, plan, ranks);
  const auto times = replay(done, prices);
  const Places places{shape.tokens, ranks, plan.chunks};
  json all = {{"overlapped", plan.overlapped},
              {"chunks", plan.chunks},
              {"seconds", seconds(times)},
              {"piece_rows", places.piece_rows()},
              {"ranks", json::array()}};
  for (std::size_t rank = 0; rank < done.size(); ++rank) {
    json operations = json::array(), found = json::array();
    for (std::size_t i = 0; i < done[rank].size(); ++i) {
      const Operation& it = done[rank][i];
      operations.push_back({{"work", kNames[it.work]},
                            {"copies", it.on_copies},
                            {"line", it.line},
                            {"rows", {it.rows.begin, it.rows.end}},
                            {"operations", it.operations},
                            {"bytes", it.bytes},
                            {"waits", it.waits},
                            {"from", times[rank][i].from},
                            {"to", times[rank][i].to}});
    }
    for (const Race& race : races(done[rank])) found.push_back({race.first, race.second});
    all["ranks"].push_back({{"operations", operations}, {"races", found}});
  }
  return all;
}

// Prints what is in a block of some ranks, plain and in chunks.
int print_recorded(const json& document, int ranks, const Shape& shape) {
  Prices prices;
  json all = {{"like", prices_of(document, shape, ranks, &prices)},
              {"plans", json::array()},
              {"few", kFewTokens},
              {"gap", kGap},
              {"slowed", kSlowed},
              {"memory", kMemory}};
  for (const Plan plan : {Plan{false, 1}, Plan{true, 1}, Plan{true, 2}, Plan{true, 4}})
    all["plans"].push_back(as_json(shape, plan, ranks, prices));
  std::cout << all;
  return 0;
}

}  // namespace

// timeline RESULTS.json TOKENS: of the first problem with so many tokens
// timeline RESULTS.json RANKS TOKENS MODEL HIDDEN: of recorded plans
int main(int argc, char** argv) try {
  if (argc != 3 && argc != 6) {
    std::fprintf(stderr, "usage: timeline RESULTS.json TOKENS | timeline RESULTS.json RANKS TOKENS MODEL HIDDEN\n");
    return 2;
  }
  std::ifstream file(argv[1]);
  const json document = json::parse(file);
  if (argc == 6)
    return print_recorded(document, std::stoi(argv[2]), {std::stoll(argv[3]), std::stoll(argv[4]), std::stoll(argv[5])});
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

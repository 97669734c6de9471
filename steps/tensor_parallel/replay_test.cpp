#include "steps/tensor_parallel/replay.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

using namespace tensor_parallel;
using nlohmann::json;

namespace {

json measured() {
  std::ifstream file(COURSE_SOURCE "/docs/results/h200-x2/tensor_parallel.json");
  return json::parse(file);
}

using Seen = std::vector<std::pair<int, std::pair<double, double>>>;  // work, from, to: in the order of time

template <class Spans>
Seen in_order(const Spans& spans) {
  Seen seen(spans.begin(), spans.end());
  std::sort(seen.begin(), seen.end());
  return seen;
}

// Operation with what replay() looks at.
Operation doing(Span::Work work, bool on_copies, double much, std::vector<int> waits = {}) {
  return {.work = work, .on_copies = on_copies, .operations = much, .bytes = much, .waits = std::move(waits)};
}
// A second for each operation and for each byte.
Prices simple() {
  const Line line{{{0, 0}, {1, 1}}};
  return {1, {line, line, line}, {line, line, line}};
}

}  // namespace

TEST_CASE("replay: what is recorded of two equal ranks takes as long, piece by piece, as the cost model's formula says") {
  const json document = measured();
  int compared = 0;
  for (const json& result : document["results"]) {
    if (result["graph"]) continue;
    double products = 0;
    for (const json& time : result["times"])
      if (time["name"] == "products, one call") products = time["seconds"]["median"];
    const Shape shape{result["tokens"], result["model"], result["hidden"]};
    const Link nccl = link_of(document["link"], "nccl"), engines = link_of(document["link"], "copy engines");
    const CostModel model({products, nccl, engines, false, {}}, shape, 2);
    const auto share_of_hidden = static_cast<double>(share(shape.hidden, kHiddenUnit, 0, 2).size());
    const double operations = 4.0 * static_cast<double>(shape.tokens * shape.model) * share_of_hidden;
    for (const Plan plan : {Plan{false, 1}, Plan{true, 1}, Plan{true, 2}, Plan{true, 4}}) {
      CAPTURE(shape.tokens);
      CAPTURE(plan.chunks);
      const auto done = recorded(shape, plan, 2);
      const auto times = replay(done, {products / operations, nccl, engines});
      const std::vector<Span> spans = plan.overlapped ? model.overlapped_spans(plan.chunks) : model.plain_spans();
      Seen expected, seen;
      for (const Span& each : spans) expected.push_back({each.work, {each.from, each.to}});
      // Of rank 0: there nothing stands in front of its own tokens. Rank 1's others are one product, too
      for (const std::size_t rank : {0, 1}) {
        seen.clear();
        for (std::size_t i = 0; i < done[rank].size(); ++i)
          seen.push_back({done[rank][i].work, {times[rank][i].from, times[rank][i].to}});
        const Seen these = in_order(seen), those = in_order(expected);
        REQUIRE(these.size() == those.size());
        for (std::size_t i = 0; i < these.size(); ++i) {
          CHECK(these[i].first == those[i].first);
          CHECK(std::abs(these[i].second.first - those[i].second.first) < 1e-9);
          CHECK(std::abs(these[i].second.second - those[i].second.second) < 1e-9);
          ++compared;
        }
      }
      CHECK(std::abs(seconds(times) - spans.back().to) < 1e-9);
    }
  }
  CHECK(compared > 200);
}

TEST_CASE("replay: what is recorded says which line, which tokens and what it waits for") {
  const auto done = recorded({37, 72, 200}, {true, 1}, 3);
  REQUIRE(done.size() == 3);
  const std::vector<Operation>& rank = done[1];
  std::vector<Span::Work> works;
  for (const Operation& each : rank) works.push_back(each.work);
  CHECK(works == std::vector{Span::kGather, Span::kFirst, Span::kFirst, Span::kFirst, Span::kSecond, Span::kSecond, Span::kExchange,
                             Span::kSecond, Span::kAdd});
  CHECK((rank[0].on_copies && rank[6].on_copies));
  CHECK(rank[0].bytes + rank[6].bytes == 7488);                 // as the lesson says
  CHECK((rank[1].rows.begin == 13 && rank[1].rows.end == 26));  // its own first, and last
  CHECK((rank[7].rows.begin == 13 && rank[7].rows.end == 26));
  CHECK(rank[1].waits.empty());
  CHECK(rank[2].waits == std::vector{0});
  CHECK(rank[6].waits == std::vector{5});
  CHECK(rank[8].waits == std::vector{6});
  CHECK(rank[1].operations == 2.0 * 13 * 72 * 64);
  CHECK(done[2][1].operations == 2.0 * 13 * 72 * 72);
  std::ifstream file(COURSE_SOURCE "/steps/tensor_parallel/feed_forward.h");
  std::vector<std::string> lines{""};
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  const auto text = [&](std::size_t i) { return lines[static_cast<std::size_t>(rank[i].line)]; };
  CHECK(text(0).find("all_gather(") != std::string::npos);
  CHECK(text(1).find("multiply_in(piece_of(0, me, me + 1)") != std::string::npos);
  CHECK(text(7).find("if (is_last) multiply_out(piece_of(chunk, me, me + 1)") != std::string::npos);
}

TEST_CASE("replay: nothing is read before it is there, in any plan; a wait that is missing is found") {
  for (const int ranks : {1, 2, 3, 8})
    for (const Plan plan : {Plan{false, 1}, Plan{true, 1}, Plan{true, 2}, Plan{true, 4}})
      for (const Shape shape : {Shape{4096, 4096, 11008}, Shape{37, 72, 200}, Shape{1, 8, 8}}) {
        const auto done = recorded(shape, plan, ranks);
        for (const auto& rank : done) CHECK(races(rank).empty());
        CHECK(seconds(replay(done, simple())) > 0);
      }
  for (const std::size_t forgets : {2, 6, 8}) {
    std::vector<Operation> rank = recorded({37, 72, 200}, {true, 1}, 3)[1];
    rank[forgets].waits.clear();
    CAPTURE(forgets);
    CHECK_FALSE(races(rank).empty());
  }
}

TEST_CASE("replay: copies of all ranks begin together, slow products down, and end when the slowest has its bytes") {
  // Rank 1 comes 2 s later. The copy is under way from 2 to 5, the product of rank 0 loses 3 * kSlowed
  const std::vector<std::vector<Operation>> plan{
      {doing(Span::kExchange, true, 1), doing(Span::kFirst, false, 10)},
      {doing(Span::kFirst, false, 2), doing(Span::kExchange, true, 3, {0}), doing(Span::kSecond, false, 1, {1})}};
  const auto times = replay(plan, simple());
  CHECK(times[0][0].from == doctest::Approx(2 + kGap));
  CHECK(times[0][0].to == doctest::Approx(5 + kGap));
  CHECK(times[0][1].to == doctest::Approx(10 + 3 * kSlowed + kGap));
  CHECK(times[1][2].from == doctest::Approx(5 + 2 * kGap));
  // Who waits for each other
  CHECK_THROWS_AS(replay({{doing(Span::kFirst, false, 1, {1}), doing(Span::kGather, true, 1, {0})}}, simple()), std::logic_error);
  CHECK_THROWS_AS(replay({{doing(Span::kGather, true, 1)}, {doing(Span::kFirst, false, 1)}}, simple()), std::logic_error);
  CHECK_THROWS_AS(replay({{doing(Span::kGather, true, 1)}, {doing(Span::kExchange, true, 1)}}, simple()), std::logic_error);
}

TEST_CASE("replay: who records nothing is told nothing") {
  CHECK(stream_listener == nullptr);
  Recorder<__half> here(0, 2);
  std::thread([] { CHECK(Streams(1).communication() == nullptr); }).join();
  CHECK(Streams(1).communication() != nullptr);
}

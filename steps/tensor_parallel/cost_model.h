/// @file
/// How long a plan takes, from what was measured of its parts: the link alone, and the products alone. And which plan to take.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "steps/tensor_parallel/feed_forward.h"

namespace tensor_parallel {

/// Seconds of a call, where some sizes were measured: a straight line between two of them, and on beyond the last two.
struct Line {
  std::vector<std::pair<double, double>> points = {};  ///< bytes, seconds; at least 2, in order

  /// Seconds, of the bytes of a piece.
  double operator()(double bytes) const {
    if (bytes <= points.front().first) return points.front().second;
    std::size_t i = 1;
    while (i + 1 < points.size() && points[i].first < bytes) ++i;
    const auto [x0, y0] = points[i - 1];
    const auto [x1, y1] = points[i];
    return y0 + (y1 - y0) * (bytes - x0) / (x1 - x0);
  }
};

/// Between two GPUs, for a piece of some bytes. A switch gives each of more GPUs the same rate: then the pieces come one after the
/// other.
struct Link {
  Line all_gather = {}, all_to_all = {}, reduce_scatter = {};
};
/// From a result file's "link". @param movers "nccl" or "copy engines"
template <class Json>
Link link_of(const Json& calls, const std::string& movers) {
  Link link;
  for (const auto& each : calls) {
    if (each.at("movers") != movers) continue;
    Line& line = each.at("call") == "all_gather"   ? link.all_gather
                 : each.at("call") == "all_to_all" ? link.all_to_all
                                                   : link.reduce_scatter;
    line.points.push_back({each.at("bytes").template get<double>(), each.at("seconds").template get<double>()});
  }
  return link;
}

/// Between hosts: each GPU has an adapter.
struct Network {
  int ranks_of_host = 0;  ///< 0: there is one host
  double bytes_per_second = 0, latency = 0;
};

/// What a block is made of.
struct Costs {
  double products = 0;  ///< seconds of both products of a rank, for all tokens; each takes one half
  Link nccl = {};
  Link copy_engines = {};  ///< without points: there are none
  bool graph = false;
  Network network = {};
};

// Fitted to two H200s at 1024 and 8192 tokens; kCallInGraph at 8 tokens.
constexpr double kGap = 4e-6;            ///< from one launch to the next that waits for another stream
constexpr double kSlowed = 0.55;         ///< what products lose of their speed while something is copied
constexpr double kMemory = 3.9e12;       ///< bytes/s of the sum of parts
constexpr double kCallInGraph = 4.5e-6;  ///< of a small call: in a graph nobody waits for the host
constexpr std::int64_t kFewTokens = 64;  ///< up to there a product takes as long as its weights, however many rows: no overlap

/// A plan with what it should take.
struct Prediction {
  bool replicated = false;  ///< all ranks have all tokens
  Plan plan;
  double seconds = 0;
};
/// As the measured plans are called: "plain", "replicated", "overlapped, 2, copy engines".
inline std::string name(const Prediction& p) {
  if (p.replicated) return "replicated";
  return p.plan.overlapped ? "overlapped, " + std::to_string(p.plan.chunks) + ", copy engines" : "plain";
}

/// What a GPU does from when to when, in seconds.
struct Span {
  /// In the order of a block.
  enum Work { kGather, kFirst, kSecond, kExchange, kReduce, kAdd };  // kFirst and kSecond are products
  Work work;
  int chunk;     ///< whose
  bool is_mine;  ///< a product of this rank's own tokens, and of no others
  double from;   ///< seconds after the block has begun
  double to;     ///< likewise
};

/// Seconds that a block takes, by its plan.
class CostModel {
 public:
  /// @param costs measured, or assumed
  CostModel(Costs costs, const Shape& shape, int ranks) : costs_(std::move(costs)), shape_(shape), ranks_(ranks) {}

  /// Gather, multiply twice, reduce: one after the other.
  double plain() const { return plain_spans().back().to; }
  /// The same, piece by piece.
  std::vector<Span> plain_spans() const {
    std::vector<Span> spans;
    const auto then = [&](Span::Work work, double takes) {
      const double now = spans.empty() ? 0 : spans.back().to;
      spans.push_back({work, 0, false, now, now + takes});
    };
    then(Span::kGather, seconds(costs_.nccl.all_gather, piece(1), true));
    then(Span::kFirst, costs_.products / 2);
    then(Span::kSecond, costs_.products / 2);
    then(Span::kReduce, seconds(costs_.nccl.reduce_scatter, piece(1), true));
    return spans;
  }
  /// An all_reduce moves as much as both calls of plain(), with one latency less.
  double replicated() const {
    const double smallest = costs_.nccl.all_gather.points.front().second;
    return plain() - (costs_.graph ? kCallInGraph : smallest);
  }
  /// By copy engines: follows FeedForward::run_overlapped, stream by stream.
  double overlapped(int chunks) const { return overlapped_spans(chunks).back().to; }
  /// The same, piece by piece; a product begins when its launch has waited.
  std::vector<Span> overlapped_spans(int chunks) const {
    const double gather = seconds(costs_.copy_engines.all_gather, piece(chunks), true);
    const double exchange = seconds(costs_.copy_engines.all_to_all, piece(chunks), false);
    const double product = costs_.products / 2 / (chunks * ranks_);  // of a piece
    std::vector<std::pair<double, double>> copies;                   // from, to
    std::vector<Span> spans;
    double now = 0;
    const auto copy = [&](Span::Work work, int chunk, double from, double takes) {
      copies.push_back({from, from + takes});
      spans.push_back({work, chunk, false, from, from + takes});
    };
    const auto multiply = [&](Span::Work work, int chunk, int pieces, bool is_mine) {
      double left = pieces * product;
      if (left <= 0) return;
      now += kGap;
      const double begin = now;
      for (const auto& [from, to] : copies) {
        if (to <= now) continue;
        const double before = std::min(left, std::max(0.0, from - now));
        now += before, left -= before;
        const double meanwhile = std::min(left, (to - now) * (1 - kSlowed));
        if (left > 0) now += meanwhile / (1 - kSlowed), left -= meanwhile;
      }
      now += left;
      spans.push_back({work, chunk, is_mine, begin, now});
    };
    std::vector<double> done;
    for (int chunk = 0; chunk < chunks; ++chunk) copy(Span::kGather, chunk, chunk * gather, gather);
    multiply(Span::kFirst, 0, 1, true);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      now = std::max(now, (chunk + 1) * gather);
      multiply(Span::kFirst, chunk, chunk == 0 ? ranks_ - 1 : ranks_, false);
    }
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const bool is_last = chunk == chunks - 1;
      multiply(Span::kSecond, chunk, is_last ? ranks_ - 1 : ranks_, false);
      copy(Span::kExchange, chunk, std::max(now, copies.back().second), exchange);
      done.push_back(copies.back().second);
      if (is_last) multiply(Span::kSecond, chunk, 1, true);
    }
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const double begin = std::max(now, done[static_cast<std::size_t>(chunk)]) + kGap;
      now = begin + (ranks_ + 1) * piece(chunks) / kMemory;
      spans.push_back({Span::kAdd, chunk, false, begin, now});
    }
    return spans;
  }

  /// The fastest: few tokens on all ranks, if `may_replicate`; otherwise plain, or chunks by copy engines.
  Prediction choose(bool may_replicate) const {
    Prediction best{false, {}, plain()};
    if (shape_.tokens <= kFewTokens) return may_replicate ? Prediction{true, {}, replicated()} : best;
    if (costs_.copy_engines.all_gather.points.empty()) return best;
    for (const int chunks : {1, 2, 4, 8})
      if (const double s = overlapped(chunks); s < best.seconds) best = {false, {true, chunks}, s};
    return best;
  }

 private:
  double piece(int chunks) const {
    return 2.0 * static_cast<double>(Places{shape_.tokens, ranks_, chunks}.piece_rows() * shape_.model);
  }
  // Of a rank, which gets a piece of each other one. What all ranks of a host get comes through the network once, on its adapters
  // together; an all_to_all's pieces are for one rank each.
  double seconds(const Line& line, double bytes, bool same_for_all) const {
    if (ranks_ == 1) return 0;
    const double saved = costs_.graph ? line.points.front().second - kCallInGraph : 0;
    const double inside = line((ranks_ - 1) * bytes) - saved;
    if (costs_.network.ranks_of_host == 0) return inside;
    const int others = ranks_ - costs_.network.ranks_of_host;
    const double pieces = same_for_all ? static_cast<double>(others) / costs_.network.ranks_of_host : others;
    return std::max(inside, costs_.network.latency + pieces * bytes / costs_.network.bytes_per_second);
  }

  Costs costs_;
  Shape shape_;
  int ranks_;
};

}  // namespace tensor_parallel

/// @file
/// When a recorded plan does what: each operation takes what the cost model says, in the order of the streams and of the waits that
/// were recorded.
#pragma once

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "steps/tensor_parallel/record.h"

namespace tensor_parallel {

/// What operations cost.
struct Prices {
  double of_operation = 0;  ///< seconds, of a product
  Link nccl = {};           ///< for copies on the products' stream
  Link copy_engines = {};   ///< for copies on their own stream: products run meanwhile, at 1 - kSlowed of their speed
};
/// When an operation runs, in seconds.
struct Times {
  double from = 0, to = 0;
};

/// By rank, when each operation runs. Ranks copy together: a copy begins when it may on all of them. A launch on a GPU with two
/// streams begins kGap later than it could. @throws std::logic_error where ranks wait forever, or make different calls
inline std::vector<std::vector<Times>> replay(const std::vector<std::vector<Operation>>& plan, const Prices& prices) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Running {
    std::size_t next = 0;                 // place in `queue`
    std::vector<std::size_t> queue = {};  // operations
    double starts = kNever;               // the next one, after its gap; kNever: it may not, yet
    double left = 0;                      // seconds of it at full speed
  };
  struct Rank {
    Running streams[2];  // products, copies
    std::vector<bool> done;
  };
  std::vector<Rank> ranks;
  std::vector<std::vector<Times>> times;
  for (const auto& operations : plan) {
    Rank rank;
    for (std::size_t i = 0; i < operations.size(); ++i) rank.streams[operations[i].on_copies].queue.push_back(i);
    rank.done.resize(operations.size());
    ranks.push_back(std::move(rank));
    times.emplace_back(operations.size());
  }
  const auto price = [&](const Operation& it) {
    const Link& link = it.on_copies ? prices.copy_engines : prices.nccl;
    if (it.is_copy() && it.bytes == 0) return 0.0;
    switch (it.work) {
      case Span::kGather: return link.all_gather(it.bytes);
      case Span::kExchange: return link.all_to_all(it.bytes);
      case Span::kReduce: return link.reduce_scatter(it.bytes);
      case Span::kAdd: return it.bytes / kMemory;
      default: return it.operations * prices.of_operation;
    }
  };
  const auto head = [](const Running& stream) {
    return stream.next < stream.queue.size() ? static_cast<std::ptrdiff_t>(stream.queue[stream.next]) : -1;
  };
  const auto may_start = [&](std::size_t r, const Running& stream) {
    if (head(stream) < 0) return false;
    for (const int each : plan[r][static_cast<std::size_t>(head(stream))].waits)
      if (!ranks[r].done[static_cast<std::size_t>(each)]) return false;
    return true;
  };

  double now = 0;
  for (;;) {
    // Start what may start
    for (const int lane : {0, 1}) {
      bool all_copy = true;  // each rank's next one here is a copy that may start
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        Running& stream = ranks[r].streams[lane];
        if (!may_start(r, stream) || stream.starts < kNever) {
          all_copy = false;
          continue;
        }
        const Operation& it = plan[r][static_cast<std::size_t>(head(stream))];
        if (it.is_copy()) continue;
        all_copy = false;
        stream.starts = now + (ranks[r].streams[1].queue.empty() ? 0 : kGap);
        stream.left = price(it);
        times[r][static_cast<std::size_t>(head(stream))].from = stream.starts;
      }
      if (!all_copy) continue;
      double takes = 0;  // as long as the slowest
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        const Operation& it = plan[r][static_cast<std::size_t>(head(ranks[r].streams[lane]))];
        if (it.work != plan[0][static_cast<std::size_t>(head(ranks[0].streams[lane]))].work)
          throw std::logic_error("ranks copy in different orders");
        takes = std::max(takes, price(it));
      }
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        Running& stream = ranks[r].streams[lane];
        stream.starts = now, stream.left = takes;
        times[r][static_cast<std::size_t>(head(stream))].from = now;
      }
    }
    // Until the next one begins or ends
    const auto speed = [&](std::size_t r, int lane) {
      const Running& stream = ranks[r].streams[lane];
      const Operation& it = plan[r][static_cast<std::size_t>(head(stream))];
      const bool is_product = it.work == Span::kFirst || it.work == Span::kSecond;
      return is_product && lane == 0 && ranks[r].streams[1].starts <= now ? 1 - kSlowed : 1;
    };
    double next = kNever;
    for (std::size_t r = 0; r < ranks.size(); ++r)
      for (const int lane : {0, 1})
        if (const Running& stream = ranks[r].streams[lane]; stream.starts < kNever)
          next = std::min(next, stream.starts > now ? stream.starts : now + stream.left / speed(r, lane));
    if (next == kNever) break;
    std::vector<std::pair<std::size_t, int>> over;
    for (std::size_t r = 0; r < ranks.size(); ++r)
      for (const int lane : {0, 1}) {
        Running& stream = ranks[r].streams[lane];
        if (!(stream.starts <= now)) continue;
        if (now + stream.left / speed(r, lane) <= next)
          over.push_back({r, lane});
        else
          stream.left -= (next - now) * speed(r, lane);
      }
    now = next;
    for (const auto& [r, lane] : over) {
      Running& stream = ranks[r].streams[lane];
      const auto which = static_cast<std::size_t>(head(stream));
      times[r][which].to = now;
      ranks[r].done[which] = true;
      ++stream.next, stream.starts = kNever;
    }
  }
  for (const Rank& rank : ranks)
    if (std::find(rank.done.begin(), rank.done.end(), false) != rank.done.end()) throw std::logic_error("ranks wait forever");
  return times;
}

/// How long it takes, in seconds.
inline double seconds(const std::vector<std::vector<Times>>& times) {
  double end = 0;
  for (const auto& rank : times)
    for (const Times& each : rank) end = std::max(end, each.to);
  return end;
}

}  // namespace tensor_parallel

/// @file
/// Host work on all cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace harness {

/// Calls body(begin, end) for parts of 0 .. count that together are all of it: on all cores if `work` operations are worth it.
template <class Body>
void in_parts(std::int64_t count, double work, const Body& body) {
  const std::int64_t threads = work < 1e5 ? 1 : std::max(1u, std::thread::hardware_concurrency());
  const std::int64_t share = std::max<std::int64_t>(1, (count + threads - 1) / threads);
  std::vector<std::thread> pool;
  for (std::int64_t begin = share; begin < count; begin += share) pool.emplace_back(body, begin, std::min(begin + share, count));
  body(0, std::min(share, count));
  for (std::thread& t : pool) t.join();
}

}  // namespace harness

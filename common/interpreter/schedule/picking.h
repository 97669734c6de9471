/// @file
/// Who is next, among those that can go on: lanes of a warp, warps of a block, blocks of a cluster.
#pragma once

#include <bit>
#include <cstdint>

#include "common/interpreter/interpreter.h"

namespace interpreter {

/// A member of `set`, which is not empty. @param random where the row of random numbers stands; not 0
/// SplitMix64's: neighbouring numbers become unlike.
inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}
/// Where the random choices of the one of this `number` begin: another place for each seed and each number.
inline std::uint64_t random_state(std::uint64_t seed, std::uint64_t number) {
  return mix(seed + 0x9e3779b97f4a7c15ull * (number + 1)) | 1;
}

inline unsigned pick(std::uint32_t set, Order order, std::uint64_t& random) {
  switch (order) {
    case Order::kForward: return static_cast<unsigned>(std::countr_zero(set));
    case Order::kReverse: return 31 - static_cast<unsigned>(std::countl_zero(set));
    case Order::kRandom: break;
  }
  random ^= random << 13, random ^= random >> 7, random ^= random << 17;
  // Any of them with the same probability.
  for (auto skipped = (random >> 32) % static_cast<unsigned>(std::popcount(set)); skipped > 0; --skipped) set &= set - 1;
  return static_cast<unsigned>(std::countr_zero(set));
}

}  // namespace interpreter

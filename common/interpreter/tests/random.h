/// @file
/// Random numbers for cases that are recorded on one machine and compared on another.
#pragma once

#include <cstdint>

namespace ptx_cases {

/// SplitMix64: the standard library's distributions differ from machine to machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
  }
  int below(int n) { return static_cast<int>(bits() % static_cast<unsigned>(n)); }  ///< from 0 on
  int between(int low, int high) { return low + below(high - low + 1); }            ///< both included
  bool one_in(int n) { return below(n) == 0; }                                      ///< as seldom

 private:
  std::uint64_t state_;
};

}  // namespace ptx_cases

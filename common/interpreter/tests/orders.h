/// @file
/// What the interpreter's tests share: every kernel runs in all orders, because a GPU may choose any.
#pragma once

#include <cstdint>
#include <string>

#include "common/device/device.cuh"

#ifdef __CUDACC__

// On a GPU the hardware chooses: the same tests then show that the kernels themselves are what CUDA means.
template <class Body>
void in_all_orders(Body&& body) {
  body();
  device::synchronize();
}

#else

#include <doctest/doctest.h>

#include "common/interpreter/interpreter.h"

/// Puts the options back at the end of a test.
class WithOptions {
 public:
  template <class Change>
  explicit WithOptions(Change change) {
    change(interpreter::options());
  }
  WithOptions() = default;
  WithOptions(const WithOptions&) = delete;
  ~WithOptions() { interpreter::options() = before_; }

 private:
  const interpreter::Options before_ = interpreter::options();
};

struct Schedule {
  interpreter::Order order;
  std::uint64_t seed;

  std::string text() const {
    switch (order) {
      case interpreter::Order::kForward: return "forward";
      case interpreter::Order::kReverse: return "reverse";
      case interpreter::Order::kRandom: break;
    }
    return "random, seed " + std::to_string(seed);
  }
};
inline constexpr Schedule kSchedules[] = {{interpreter::Order::kForward, 1},
                                          {interpreter::Order::kReverse, 1},
                                          {interpreter::Order::kRandom, 1},
                                          {interpreter::Order::kRandom, 2},
                                          {interpreter::Order::kRandom, 77}};

/// Calls `body` once per order; a failed check inside says in which.
template <class Body>
void in_all_orders(Body&& body) {
  const WithOptions restored;
  for (const Schedule& schedule : kSchedules) {
    interpreter::options().order = schedule.order;
    interpreter::options().seed = schedule.seed;
    const std::string order = schedule.text();
    CAPTURE(order);
    body();
  }
}

#endif

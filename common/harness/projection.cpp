#include "common/harness/projection.h"

namespace harness {

double projected_flops_per_second(const Spec& spec, const interpreter::Counters& c, const interpreter::Gpu& gpu) {
  constexpr double kSchedulers = 4;
  const auto sum = [](auto... counts) { return (static_cast<double>(counts) + ...); };
  const double instructions = sum(c.global_load.requests, c.global_store.requests, c.global_atomic.requests, c.shared_load.requests,
                                  c.shared_store.requests, c.shared_atomic.requests);
  const double passes = sum(c.global_load.lines, c.global_store.lines, c.global_atomic.lines, c.shared_load.wavefronts,
                            c.shared_store.wavefronts, c.shared_atomic.wavefronts);
  const double clocks = spec.flops() / 2 / gpu.fma_lanes_per_sm + instructions / kSchedulers + passes;
  return clocks > 0 ? spec.flops() / clocks * gpu.multiprocessors * gpu.clock_hz : 0;
}

}  // namespace harness

#include "common/harness/measure/projection.h"

namespace harness {

double projected_flops_per_second(const Spec& spec, const interpreter::Counters& c, const interpreter::Gpu& gpu) {
  constexpr double kSchedulers = 4, kPassBytes = 128;
  const auto sum = [](auto... counts) { return (static_cast<double>(counts) + ...); };
  const double per_clock =
      c.mma || c.wgmma.requests ? gpu.mma_flops / gpu.multiprocessors / gpu.clock_hz : 2.0 * gpu.fma_lanes_per_sm;
  const double instructions = sum(c.global_load.requests, c.global_store.requests, c.global_atomic.requests, c.shared_load.requests,
                                  c.shared_store.requests, c.shared_atomic.requests, c.copy_write.requests, c.matrix_load.requests,
                                  c.matrix_store.requests, c.bulk_read.requests, c.bulk_write.requests, c.wgmma.requests);
  const double passes =
      sum(c.global_load.lines, c.global_store.lines, c.global_atomic.lines, c.shared_load.wavefronts, c.shared_store.wavefronts,
          c.shared_atomic.wavefronts, c.matrix_load.wavefronts, c.matrix_store.wavefronts, c.wgmma.wavefronts) +
      sum(c.copy_write.bytes, c.bulk_read.bytes, c.bulk_write.bytes) / kPassBytes;
  const double clocks = spec.flops() / per_clock + instructions / kSchedulers + passes;
  return clocks > 0 ? spec.flops() / clocks * gpu.multiprocessors * gpu.clock_hz : 0;
}

}  // namespace harness

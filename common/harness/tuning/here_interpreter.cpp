// The limits of the GPU that is modelled.
#include "common/harness/tuning/here.h"
#include "common/interpreter/count/gpus.h"
#include "common/interpreter/interpreter.h"

namespace harness {

GpuLimits limits_of(const interpreter::Gpu& gpu) {
  GpuLimits g;
  g.name = gpu.title;
  g.multiprocessors = gpu.multiprocessors;
  g.threads_per_sm = gpu.max_threads_per_sm, g.blocks_per_sm = gpu.max_blocks_per_sm;
  g.shared_per_sm = gpu.shared_per_sm, g.shared_per_block = gpu.shared_per_block;
  g.l2_bytes = gpu.l2_bytes, g.clock_hz = gpu.clock_hz, g.mma_flops = gpu.mma_flops, g.fma_flops = gpu.fma_flops();
  g.capability = gpu.compute_capability;
  g.wgmma_flops = typical_rates(g.capability).wgmma * g.multiprocessors * g.clock_hz;
  return g;
}

GpuLimits limits_here() { return limits_of(interpreter::find_gpu(interpreter::options().gpu)); }

}  // namespace harness

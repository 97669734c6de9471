// Tuning without a GPU: the limits and the model of the GPU that is modelled; nothing is timed.
#include "common/harness/measure/backend.h"
#include "common/interpreter/count/gpus.h"
#include "common/interpreter/interpreter.h"

namespace harness {

GpuLimits limits_of(const interpreter::Gpu& gpu) {
  GpuLimits g;
  g.name = gpu.title;
  g.multiprocessors = gpu.multiprocessors;
  g.threads_per_sm = gpu.max_threads_per_sm, g.blocks_per_sm = gpu.max_blocks_per_sm;
  g.shared_per_sm = gpu.shared_per_sm, g.shared_per_block = gpu.shared_per_block;
  g.clock_hz = gpu.clock_hz, g.mma_flops = gpu.mma_flops;
  return g;
}

Tuning tune_here(const std::vector<const Variant*>& variants, const Spec& spec, const std::function<Problem&()>&, const Machine&,
                 const Ceilings&, TuningCache& cache) {
  TuningKey key;
  key.spec = spec;
  Tuner tuner;
  tuner.gpu = limits_of(interpreter::find_gpu(interpreter::options().gpu));
  return tune(variants, key, tuner, cache);
}

}  // namespace harness

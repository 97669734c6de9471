// Tuning without a GPU: the limits and the model of the GPU that is modelled; nothing is timed.
#include "common/harness/measure/backend.h"
#include "common/harness/tuning/here.h"

namespace harness {

Tuning tune_here(const std::vector<const Variant*>& variants, const Spec& spec, const std::function<Problem&()>&, const Machine&,
                 const Ceilings&, TuningCache& cache) {
  TuningKey key;
  key.spec = spec;
  Tuner tuner;
  tuner.gpu = limits_here();
  return tune(variants, key, tuner, cache);
}

}  // namespace harness

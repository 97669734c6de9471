// Tuning on the GPU: the compiler's figures, results verified, times of the harness.
#include <unistd.h>

#include <cstdio>

#include "common/device/device.cuh"
#include "common/harness/measure/backend.h"
#include "common/harness/tuning/here.h"

namespace harness {
namespace {

void show_progress(std::size_t done, std::size_t all) {
  std::fprintf(stderr, "\r  %zu of %zu tiles", done, all);
  if (done == all) std::fprintf(stderr, "\r%30s\r", "");
  std::fflush(stderr);
}

}  // namespace

Tuning tune_here(const std::vector<const Variant*>& variants, const Spec& spec, const std::function<Problem&()>& problem,
                 const Machine& machine, const Ceilings& ceilings, TuningCache& cache) {
  TuningKey key;
  key.step = this_step().name, key.kernel_version = this_step().kernel_version;
  key.spec = spec;
  key.gpu = machine.gpu, key.multiprocessors = machine.multiprocessors, key.driver = machine.driver.value_or("unknown");
  Tuner tuner;
  tuner.gpu = limits_here();
  tuner.gpu.mma_flops = ceilings.peak(spec.in);  // measured
  tuner.resources = [&](const Variant& v) { return resources_of([&] { problem().run(v); }); };
  tuner.verify = [&](const Variant& v) {
    Problem& p = problem();
    p.C.poison();
    p.run(v);
    device::synchronize();
    return p.verify(sums_of(v, spec));
  };
  tuner.time = [&](const std::vector<const Variant*>& group) {
    std::vector<std::function<void()>> launchers;
    for (const Variant* v : group) launchers.push_back([v, &p = problem()] { p.run(*v); });
    return seconds_of(launchers);
  };
  if (isatty(STDERR_FILENO)) tuner.progress = show_progress;
  return tune(variants, key, tuner, cache);
}

}  // namespace harness

// Tuning on the GPU: the compiler's figures, results verified, times of the harness.
#include <unistd.h>

#include <cstdio>

#include "common/device/device.cuh"
#include "common/harness/measure/backend.h"
#include "common/harness/measure/timing.h"
#include "common/harness/results/statistics.h"

namespace harness {
namespace {

int attribute(cudaDeviceAttr which) {
  int value = 0, gpu = 0;
  DEVICE_CHECK(cudaGetDevice(&gpu));
  DEVICE_CHECK(cudaDeviceGetAttribute(&value, which, gpu));
  return value;
}

GpuLimits limits_here(const Machine& machine, double mma_flops) {
  GpuLimits g;
  g.name = machine.gpu;
  g.multiprocessors = machine.multiprocessors;
  g.threads_per_sm = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  g.blocks_per_sm = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
  g.registers_per_sm = attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
  g.shared_per_sm = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor));
  g.shared_per_block = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  g.clock_hz = 1e3 * attribute(cudaDevAttrClockRate);
  g.mma_flops = mma_flops;
  return g;
}

void run_once(const Variant& v, const Problem& p) {
  const Epilogue& epilogue = p.spec.epilogue;
  v.run(epilogue, p.A.view(), p.B.view(), p.C.view(), epilogue.bias ? p.bias.view().data : nullptr);
}

// Of the kernel that the step's launcher takes for these operands.
KernelResources resources_of(const Variant& v, const Problem& p) {
  struct DryRun {
    DryRun() { device::dry_run() = true; }
    ~DryRun() { device::dry_run() = false; }
  };
  {
    const DryRun only_ask;
    run_once(v, p);
  }
  cudaFuncAttributes attributes{};
  DEVICE_CHECK(cudaFuncGetAttributes(&attributes, device::last_launch().kernel));
  return {attributes.numRegs, attributes.localSizeBytes};
}

std::vector<double> seconds_of(const std::vector<const Variant*>& variants, const Problem& p) {
  std::vector<Contestant> contestants;
  for (const Variant* v : variants) contestants.push_back({[v, &p](int) { run_once(*v, p); }});
  TimingPlan plan;
  plan.min_rounds = 7, plan.max_rounds = 51, plan.seconds = 0.05 * static_cast<double>(variants.size());
  return comparable(time_in_rounds(contestants, plan).seconds);
}

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
  tuner.gpu = limits_here(machine, ceilings.peak(spec.in));
  tuner.resources = [&](const Variant& v) { return resources_of(v, problem()); };
  tuner.verify = [&](const Variant& v) {
    Problem& p = problem();
    p.C.poison();
    run_once(v, p);
    device::synchronize();
    return p.verify(sums_of(v, spec));
  };
  tuner.time = [&](const std::vector<const Variant*>& group) { return seconds_of(group, problem()); };
  if (isatty(STDERR_FILENO)) tuner.progress = show_progress;
  return tune(variants, key, tuner, cache);
}

}  // namespace harness

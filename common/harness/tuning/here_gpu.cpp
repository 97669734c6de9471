// The current device, as CUDA's runtime knows it, and the times of the harness.
#include "common/device/device.cuh"
#include "common/harness/measure/timing.h"
#include "common/harness/results/statistics.h"
#include "common/harness/tuning/here.h"

namespace harness {
namespace {

int attribute(cudaDeviceAttr which) {
  int value = 0, gpu = 0;
  DEVICE_CHECK(cudaGetDevice(&gpu));
  DEVICE_CHECK(cudaDeviceGetAttribute(&value, which, gpu));
  return value;
}

}  // namespace

GpuLimits limits_here() {
  GpuLimits g;
  int gpu = 0;
  cudaDeviceProp properties{};
  DEVICE_CHECK(cudaGetDevice(&gpu));
  DEVICE_CHECK(cudaGetDeviceProperties(&properties, gpu));
  g.name = properties.name;
  g.multiprocessors = properties.multiProcessorCount;
  g.capability = 10 * properties.major + properties.minor;
  g.threads_per_sm = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  g.blocks_per_sm = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
  g.registers_per_sm = attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
  g.shared_per_sm = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor));
  g.shared_per_block = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  g.l2_bytes = static_cast<std::size_t>(properties.l2CacheSize);
  g.clock_hz = 1e3 * attribute(cudaDevAttrClockRate);
  const Rates rates = typical_rates(g.capability);
  const double clocks = g.multiprocessors * g.clock_hz;
  g.mma_flops = rates.mma * clocks, g.wgmma_flops = rates.wgmma * clocks, g.fma_flops = rates.fma * clocks;
  return g;
}

KernelResources resources_of(const std::function<void()>& launcher) {
  struct DryRun {
    DryRun() { device::dry_run() = true; }
    ~DryRun() { device::dry_run() = false; }
  };
  {
    const DryRun only_ask;
    launcher();
  }
  cudaFuncAttributes attributes{};
  DEVICE_CHECK(cudaFuncGetAttributes(&attributes, device::last_launch().kernel));
  return {attributes.numRegs, attributes.localSizeBytes};
}

std::vector<double> seconds_of(const std::vector<std::function<void()>>& launchers) {
  std::vector<Contestant> contestants;
  for (const std::function<void()>& launcher : launchers) contestants.push_back([&launcher](int) { launcher(); });
  TimingPlan plan;
  plan.min_rounds = 7, plan.max_rounds = 51, plan.seconds = 0.05 * static_cast<double>(launchers.size());
  return comparable(time_in_rounds(contestants, plan).seconds);
}

}  // namespace harness

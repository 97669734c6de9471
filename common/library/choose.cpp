#include "common/library/choose.h"

#include <algorithm>
#include <set>

#include "common/harness/program/step.h"

namespace gemm::library {
namespace {

bool has_types(const Kernel& kernel, const harness::Spec& spec) {
  return kernel.variant.in == spec.in && kernel.variant.out == spec.out;
}

std::string why_unavailable(const Kernel& kernel, const harness::GpuLimits& gpu) {
  return harness::availability(kernel.step, gpu.name, gpu.capability).why_not;
}

const Kernel* without_candidates(const std::vector<Kernel>& kernels, const Task& task, const harness::GpuLimits& gpu) {
  std::set<std::string> reasons;
  for (const Kernel& kernel : kernels) {
    if (!has_types(kernel, task.spec)) continue;
    std::string reason = why_unavailable(kernel, gpu);
    if (reason.empty() && task.operands < kernel.operands) return &kernel;  // its launcher takes the fallback
    if (reason.empty()) reason = harness::why_pruned(kernel.variant.numbers, {}, task.spec, gpu);
    reasons.insert(kernel.step.name + ": " + reason);
  }
  std::string text = "gemm: no kernel of the library for " + std::string(name(task.spec.in)) + " -> " +
                     std::string(name(task.spec.out)) + " runs on this GPU";
  for (const std::string& reason : reasons) text += "; " + reason;
  throw Error(text);
}

}  // namespace

std::vector<const Kernel*> candidates(const std::vector<Kernel>& kernels, const Task& task, const harness::GpuLimits& gpu) {
  std::vector<const Kernel*> found;
  for (const Kernel& kernel : kernels)
    if (has_types(kernel, task.spec) && task.operands >= kernel.operands && why_unavailable(kernel, gpu).empty() &&
        harness::why_pruned(kernel.variant.numbers, {}, task.spec, gpu).empty())
      found.push_back(&kernel);
  return found;
}

Chosen choose(const std::vector<Kernel>& kernels, const Task& task, const harness::GpuLimits& gpu,
              const std::map<std::string, harness::TuningEntry>& known) {
  std::vector<Chosen> timed, modelled;
  for (const Kernel* kernel : candidates(kernels, task, gpu)) {
    const auto entry = known.find(kernel->variant.tile);
    if (entry == known.end())
      modelled.push_back({kernel, false, false, harness::predict(kernel->variant.numbers, task.spec, gpu, task.requests).seconds});
    else if (entry->second.pruned.empty())
      timed.push_back({kernel, false, true, entry->second.seconds});
  }
  const std::vector<Chosen>& best_of = timed.empty() ? modelled : timed;
  const auto is_faster = [](const Chosen& a, const Chosen& b) { return a.seconds < b.seconds; };
  if (const auto best = std::min_element(best_of.begin(), best_of.end(), is_faster); best != best_of.end()) return *best;
  return {without_candidates(kernels, task, gpu), true, false, 0};
}

Choice to_choice(const Chosen& chosen) {
  return {chosen.is_fallback ? "fallback" : chosen.kernel->variant.tile, chosen.is_fallback, chosen.is_timed, chosen.seconds};
}

}  // namespace gemm::library

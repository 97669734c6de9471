// A step's program on the CPU interpreter: every check on, everything counted.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <regex>

#include "common/device/device.cuh"
#include "common/device/fallback_block.h"
#include "common/device/workspace.cuh"
#include "common/harness/measure/backend.h"
#include "common/harness/measure/projection.h"
#include "common/harness/problem/activation_kernel.h"
#include "common/harness/tuning/here.h"
#include "common/interpreter/count/counters.h"
#include "common/interpreter/count/gpus.h"

namespace harness {
namespace {

// Longer runs are asked about first.
constexpr double kPatienceSeconds = 120;

void set_order(const std::string& order) {
  using interpreter::Order;
  auto& options = interpreter::options();
  std::smatch seed;
  if (order == "forward") {
    options.order = Order::kForward;
  } else if (order == "reverse") {
    options.order = Order::kReverse;
  } else if (std::regex_match(order, seed, std::regex("random(?::([0-9]{1,18}))?"))) {
    options.order = Order::kRandom;
    if (seed[1].matched) options.seed = std::stoull(seed[1]);
  } else {
    throw BadInput("--order " + order + ": expected forward, reverse, random or random:SEED");
  }
}

double seconds_of(const Variant& v, const Problem& p) {
  const auto begin = std::chrono::steady_clock::now();
  p.run(v);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Seconds that the problem will take: from a small one, as work grows with m n k.
double estimate(const Variant& v, const Spec& spec) {
  Spec small = spec;
  small.m = std::min<std::int64_t>(spec.m, 128), small.n = std::min<std::int64_t>(spec.n, 128);
  small.k = std::min<std::int64_t>(spec.k, 64);
  if (small.flops() == 0 || small.flops() == spec.flops()) return 0;
  const Problem problem(small);
  double seconds = 0;
  try {
    seconds = seconds_of(v, problem);
  } catch (const interpreter::KernelError&) {
    // The run itself will report it.
  }
  interpreter::clear_profiles();
  return seconds * spec.flops() / small.flops();
}

void show_progress(double fraction) {
  std::fprintf(stderr, "\r  %3.0f %%", 100 * fraction);
  if (fraction >= 1) std::fprintf(stderr, "\r       \r");
  std::fflush(stderr);
}

const interpreter::Gpu& modelled_gpu() { return interpreter::find_gpu(interpreter::options().gpu); }

}  // namespace

void prepare(const Arguments& arguments) {
  set_order(arguments.order);
  interpreter::options().l2_model = arguments.profile;
  static const device::FewMultiprocessors few(arguments.multiprocessors);  // until the program ends
  if (!arguments.project_to.empty()) try {
      interpreter::options().gpu = interpreter::find_gpu(arguments.project_to).name;
    } catch (const std::invalid_argument& e) {
      throw BadInput("--as " + arguments.project_to + ": " + e.what());
    }
  if (isatty(STDERR_FILENO)) interpreter::options().progress = show_progress;
}

Availability availability(const Step&) { return {}; }

Machine this_machine() {
  Machine m = this_host();
  const interpreter::Gpu& gpu = modelled_gpu();
  m.backend = "interpreter";
  m.gpu = gpu.title;
  m.compute_capability = gpu.compute_capability, m.multiprocessors = gpu.multiprocessors;
  m.l2_bytes = static_cast<double>(gpu.l2_bytes), m.memory_bytes = static_cast<double>(gpu.dram_bytes);
  m.cuda = std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
  return m;
}

Ceilings this_ceilings(const Arguments&, const Machine&) {
  const interpreter::Gpu& gpu = modelled_gpu();
  const double wgmma = gpu.compute_capability == 90 ? gpu.tensor_flops : 0;  // no datasheet tells them apart
  return {"datasheet", gpu.dram_bytes_per_second, gpu.fma_flops(), gpu.tensor_flops, gpu.tensor_flops, wgmma, wgmma, wgmma, wgmma};
}

void check_memory(const Spec& s, const Arguments& arguments) {
  if (arguments.tune) return;  // the model alone is asked
  const double matrices = matrix_bytes(s), device = static_cast<double>(modelled_gpu().dram_bytes);
  if (matrices > 0.95 * device)
    throw BadInput("the matrices need " + with_prefix(matrices) + "B, the modelled GPU has " + with_prefix(device) +
                   "B; choose a smaller --shape");
  // The device's copy, and racecheck's cells: 40 bytes for each word, and for each byte of words that are accessed in halves.
  check_host_memory(s, matrices * (s.in == DType::kF32 ? 11 : 51));
}

void check_patience(const Spec& s, const Arguments& arguments, const std::vector<const Variant*>& variants) {
  if (arguments.tune || arguments.force) return;
  double seconds = 0;
  for (const Variant* v : variants) seconds += estimate(*v, s);
  if (seconds > kPatienceSeconds)
    throw BadInput("this would take about " + std::to_string(static_cast<long long>(seconds / 60 + 1)) +
                   " minutes on the interpreter; choose a smaller --shape, or add --force");
}

// The model of the GPU that is modelled decides; nothing is timed.
Tuning tune_here(const Step&, const std::vector<const Variant*>& variants, const Spec& spec, const std::function<Problem&()>&,
                 const Machine&, const Ceilings&, TuningCache& cache) {
  TuningKey key;
  key.spec = spec;
  Tuner tuner;
  tuner.gpu = limits_here();
  return tune(variants, key, tuner, cache);
}

std::string measure(const Variant& variant, Problem& problem, const Arguments& arguments, Result& result) {
  interpreter::clear_profiles();
  device::clean_workspace();  // another tile may have failed
  try {
    result.seconds = seconds_of(variant, problem);
    if (!interpreter::profiles().empty() && interpreter::profiles().front().dependent) {
      // As on a GPU that times it, the launch that is counted follows another one, which it has to wait for.
      interpreter::clear_profiles();
      result.seconds = seconds_of(variant, problem);
    }
  } catch (const std::exception& e) {
    return e.what();
  }
  if (std::string wrong = problem.verify(sums_of(variant, problem.spec)); !wrong.empty()) return wrong;
  if (!device::workspace_is_clean())
    return "C is right, but something is left in the workspace: the next launch takes that for its own sums. Whoever has read the "
           "words empties them, see common/device/workspace.cuh";

  result.mode = "count";
  interpreter::Counters total;
  for (const auto& profile : interpreter::profiles()) {
    result.fallback_block = std::max(result.fallback_block, device::fallback_block(profile.kernel));
    total += profile.total;
  }
  for (const auto& metric : interpreter::metrics(total)) result.counters[metric.name] = metric.value;
  if (arguments.profile && !interpreter::profiles().empty())
    for (const auto& metric : interpreter::metrics(interpreter::profiles().front())) result.counters[metric.name] = metric.value;
  // And what ncu has no single name for.
  constexpr double kSectorBytes = 32;
  const auto sum = [](auto... counts) { return (static_cast<double>(counts) + ...); };
  result.counters["bytes"] = kSectorBytes * sum(total.global_load.sectors, total.copy_read.sectors, total.bulk_read.sectors);
  result.counters["sectors_per_request"] = sum(total.global_load.sectors, total.copy_read.sectors) /
                                           std::max(1.0, sum(total.global_load.requests, total.copy_read.requests));
  result.counters["wavefronts"] = sum(total.shared_load.wavefronts, total.matrix_load.wavefronts, total.wgmma.wavefronts);
  result.counters["ideal_wavefronts"] =
      sum(total.shared_load.ideal_wavefronts, total.matrix_load.ideal_wavefronts, total.wgmma.ideal_wavefronts);
  if (!problem.spec.epilogue.is_identity() && !variant.unfused) {  // what the separate kernel would move, which fusing saves
    launch_activation(problem.spec.out, problem.C.view(), problem.spec.epilogue, problem.bias.view().data);
    interpreter::Counters with_pass;
    for (const auto& profile : interpreter::profiles()) with_pass += profile.total;
    result.counters["separate_pass_bytes"] = kSectorBytes * (sum(with_pass.global_load.sectors, with_pass.global_store.sectors) -
                                                             sum(total.global_load.sectors, total.global_store.sectors));
  }
  if (!arguments.project_to.empty() && problem.spec.flops() > 0)
    result.projection = {std::string(modelled_gpu().title), projected_flops_per_second(problem.spec, total, modelled_gpu())};
  return "";
}

std::string to_text(const Result& result, const Arguments&) {
  std::string text =
      formatted("; no error found by memcheck, racecheck, initcheck, synccheck; %.2f s\n", result.seconds.value_or(0));
  for (const auto& profile : interpreter::profiles()) text += interpreter::to_text(profile);
  text += note(result.roofline, {}) + "\n";
  if (result.projection)
    text += "Projected, not measured: " + with_prefix(result.projection->flops_per_second) + "FLOP/s on an " +
            result.projection->gpu + " for problems that fill it.\n";
  return text;
}

}  // namespace harness

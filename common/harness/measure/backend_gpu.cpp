// A step's program on the GPU: verified, timed against cuBLAS and, where it fuses something, against separate kernels; verified
// again.
#include <cuda_profiler_api.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "common/device/device.cuh"
#include "common/device/fallback_block.h"
#include "common/harness/measure/backend.h"
#include "common/harness/measure/baselines.h"
#include "common/harness/measure/buffer_sets.h"
#include "common/harness/measure/ceilings.h"
#include "common/harness/measure/nvml.h"
#include "common/harness/measure/timing.h"
#include "common/harness/problem/activation_kernel.h"
#include "common/harness/results/statistics.h"
#include "common/harness/tuning/here.h"

namespace harness {
namespace {

// As nvidia-smi -L shows it.
std::string uuid_of(const cudaDeviceProp& p) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof p.uuid.bytes; ++i)
    text +=
        formatted(i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", static_cast<unsigned char>(p.uuid.bytes[i]));
  return text;
}

const Nvml& nvml() {
  static const Nvml library = [] {
    char bus_id[32] = {};
    int gpu = 0;
    DEVICE_CHECK(cudaGetDevice(&gpu));
    DEVICE_CHECK(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, gpu));
    return Nvml(bus_id);
  }();
  return library;
}

const Cublas& cublas() {
  static const Cublas library;
  return library;
}

constexpr int kMaxSets = 8192;

int sets_for(const Spec& s, Mode mode) { return mode == Mode::kHot ? hot_sets(matrix_bytes(s)) : cold_sets(matrix_bytes(s)); }

// A problem's matrices, in sets, and a C for the baselines.
class ProblemSets {
 public:
  ProblemSets(const Problem& p, const TestMatrix& baseline_C, int sets)
      : sets_({&p.A, &p.B, &p.C, &baseline_C, &p.bias}, sets), has_bias_(p.spec.epilogue.bias) {}

  Operands ours(int set) const { return with_C(kC, set); }
  Operands baselines(int set) const { return with_C(kBaselineC, set); }
  /// Puts what is in a set's C into the problem's own.
  void bring_back_C(int set) const { sets_.bring_back(kC, set); }

 private:
  enum : std::size_t { kA, kB, kC, kBaselineC, kBias };
  Operands with_C(std::size_t C, int set) const {
    return {sets_.view(kA, set), sets_.view(kB, set), sets_.view(C, set), has_bias_ ? sets_.view(kBias, set).data : nullptr};
  }

  BufferSets sets_;
  bool has_bias_;
};

struct Competitor {
  const char* name;
  int candidates;     // that it was chosen from
  Epilogue epilogue;  // of what it computes
  std::function<void(const Operands&)> launch;
};

// Their names in results. The last four are of fused problems.
constexpr char kGemmEx[] = "cublasGemmEx", kLt[] = "cublasLt", kGemmExThen[] = "cublasGemmEx, then epilogue",
               kLtFused[] = "cublasLt, fused", kUnfused[] = "unfused", kUnfusedThen[] = "unfused, then epilogue";

std::vector<const char*> names_of_baselines(const Spec& s) {
  if (s.epilogue.is_identity()) return {kGemmEx, kLt};
  return {kGemmEx, kGemmExThen, kLtFused, kUnfused, kUnfusedThen};
}

// cublasGemmEx, and the fastest of cublasLt's candidates; without those that cuBLAS cannot run. For a fused problem, cublasLt fuses
// too; and cublasGemmEx and the step's own kernel without the epilogue come twice, alone and with a separate kernel after them.
std::vector<Competitor> find_baselines(const Variant& variant, const Problem& p, const ProblemSets& buffers,
                                       const TimingPlan& plan) {
  std::vector<Competitor> found;
  const Operands like = buffers.baselines(0);
  const Epilogue epilogue = p.spec.epilogue;
  const auto add = [&, type = p.spec.out](const char* name, const char* name_then,
                                          const std::function<void(const Operands&)>& gemm) {
    found.push_back({name, 1, {}, gemm});
    if (!epilogue.is_identity())
      found.push_back({name_then, 1, epilogue, [gemm, type, epilogue](const Operands& o) {
                         gemm(o);
                         launch_activation(type, o.C, epilogue, o.bias);
                       }});
  };
  for (const Cublas::Algorithm& a : cublas().gemm_ex(like, p.spec.in, p.spec.out)) add(kGemmEx, kGemmExThen, a);
  if (!epilogue.is_identity()) add(kUnfused, kUnfusedThen, [&variant](const Operands& o) { variant.gemm(o.A, o.B, o.C); });
  const std::vector<Cublas::Algorithm> candidates = cublas().lt_candidates(like, p.spec.in, p.spec.out, epilogue);
  if (candidates.empty()) return found;
  std::vector<Contestant> contestants;
  for (const Cublas::Algorithm& a : candidates) contestants.push_back([&](int set) { a(buffers.baselines(set)); });
  TimingPlan quick = plan;
  if (!plan.cold) quick.sets = 1;
  quick.min_rounds = 3, quick.max_rounds = plan.graphs ? 7 : 31, quick.seconds = 0.2;
  // Whoever is chosen is warmed up again. The clocks are up from the second candidate on: the longer warm-up, 16 times, would take
  // more time than all that is reported.
  quick.warm_up = 2e-3;
  const std::vector<double> seconds = comparable(time_in_rounds(contestants, quick).seconds);
  const auto best = static_cast<std::size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin());
  found.push_back({epilogue.is_identity() ? kLt : kLtFused, static_cast<int>(candidates.size()), epilogue, candidates[best]});
  return found;
}

// A baseline that computes something else would be no baseline. @throws device::Error
void check_baseline(const Competitor& c, const Problem& p, TestMatrix& C) {
  C.poison();
  c.launch({p.A.view(), p.B.view(), C.view(), p.spec.epilogue.bias ? p.bias.view().data : nullptr});
  device::synchronize();
  std::string wrong = C.fetch();
  if (wrong.empty()) wrong = p.reference.compare(C, Reference::Sums::kInParts, c.epilogue, p.bias);
  if (!wrong.empty()) throw device::Error(std::string(c.name) + " computed something else: " + wrong);
}

// Mangled; empty if nothing was launched.
std::string name_of(const device::LaunchConfiguration& c) {
  if (!c.kernel) return "";
  const char* name = nullptr;
  DEVICE_CHECK(cudaFuncGetName(&name, c.kernel));
  return name;
}

Launch describe(const device::LaunchConfiguration& c) {
  cudaFuncAttributes attributes{};
  DEVICE_CHECK(cudaFuncGetAttributes(&attributes, c.kernel));
  Launch l;
  l.blocks = double(c.grid.x) * c.grid.y * c.grid.z;
  l.threads = static_cast<int>(c.block.x * c.block.y * c.block.z);
  l.registers = attributes.numRegs;
  l.shared_bytes = static_cast<double>(attributes.sharedSizeBytes + c.shared_bytes);
  l.local_bytes = static_cast<double>(attributes.localSizeBytes);
  DEVICE_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&l.blocks_per_sm, c.kernel, l.threads, c.shared_bytes));
  return l;
}

void time_against_baselines(const Variant& variant, Problem& problem, const Arguments& arguments, Result& result) {
  for (const char* name : names_of_baselines(problem.spec)) result.baselines.push_back({name, {}, {}, 1});
  result.mode = arguments.mode == Mode::kHot ? "hot" : arguments.mode == Mode::kCold ? "cold" : "single";
  if (problem.spec.flops() == 0) return;
  const device::LaunchConfiguration launch = device::last_launch();  // of the step: it was verified just before

  TimingPlan plan;
  plan.cold = arguments.mode != Mode::kHot;
  plan.sets = sets_for(problem.spec, arguments.mode);
  plan.graphs = arguments.mode != Mode::kSingle;
  if (!plan.cold) plan.min_rounds = std::max(plan.min_rounds, 2 * plan.sets);  // on each set twice
  plan.seconds = arguments.seconds;
  TestMatrix baseline_C("C of cuBLAS", problem.spec.out, row_major(problem.spec.m, problem.spec.n));
  baseline_C.poison();
  problem.C.poison();
  const ProblemSets buffers(problem, baseline_C, plan.sets);
  const std::vector<Competitor> found = find_baselines(variant, problem, buffers, plan);
  int last_set = 0;  // that our kernel wrote to
  std::vector<Contestant> contestants = {[&](int set) {
    const Operands o = buffers.ours(last_set = set);
    variant.run(problem.spec.epilogue, o.A, o.B, o.C, o.bias);
  }};
  for (const Competitor& c : found) {
    check_baseline(c, problem, baseline_C);
    contestants.push_back([&](int set) { c.launch(buffers.baselines(set)); });
  }

  const Timings timings = time_in_rounds(contestants, plan, [&] { result.conditions = nvml().conditions(); });
  std::vector<std::optional<Energy>> energies(contestants.size());
  if (arguments.energy > 0) {
    plan.seconds = arguments.energy;
    const std::vector<Energy> measured = measure_energy(contestants, plan, [] { return nvml().joules().value(); });
    energies.assign(measured.begin(), measured.end());
  }
  result.time = timings.sample(0);
  result.energy = energies[0];
  result.launch = describe(launch);
  for (std::size_t i = 0; i < found.size(); ++i)
    for (Baseline& b : result.baselines)
      if (b.name == found[i].name)
        b = {b.name, timings.sample(i + 1), timings.ratio(0, i + 1), found[i].candidates, energies[i + 1]};

  // What the timed launches wrote, in the first set and in the last one. All of them began as NaN.
  for (const int set : {0, last_set}) {
    buffers.bring_back_C(set);
    if (const std::string wrong = problem.verify(sums_of(variant, problem.spec)); !wrong.empty())
      throw device::Error("after " + std::to_string(timings.seconds[0].size() * static_cast<std::size_t>(timings.launches[0])) +
                          " timed launches: " + wrong);
    if (plan.sets == 1) break;
  }
}

void show_progress(std::size_t done, std::size_t all) {
  std::fprintf(stderr, "\r  %zu of %zu tiles", done, all);
  if (done == all) std::fprintf(stderr, "\r%30s\r", "");
  std::fflush(stderr);
}

}  // namespace

Availability availability(const Step& step) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {  // prepare() says so
    return step.architectures.empty() ? Availability{"is not in this build, which has no GPU with what it needs"} : Availability{};
  }
  const GpuLimits here = limits_here();
  return availability(step, here.name, here.capability);
}

void prepare(const Arguments& arguments) {
  if (arguments.once && !arguments.json.empty())
    throw BadInput("--once measures nothing that --json could hold; leave one of them out");
  if (arguments.once && arguments.tune)
    throw BadInput("--once times nothing, so it finds no best tile; leave --once or --tune out");
  if (arguments.once && arguments.energy > 0)
    throw BadInput("--once launches each tile once, too short for its energy; leave --once or --energy out");
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess || count == 0)
    throw BadInput(std::string("no GPU can be used: ") + cudaGetErrorString(status) +
                   "; run the interpreter's build instead: tools/course run --on interpreter");
  if (arguments.energy > 0 && !nvml().joules())
    throw BadInput("--energy: the driver (NVML) does not say what this GPU takes; leave --energy out");
}

Machine this_machine() {
  Machine m = this_host();
  int gpu = 0, runtime = 0;
  cudaDeviceProp p{};
  DEVICE_CHECK(cudaGetDevice(&gpu));
  DEVICE_CHECK(cudaGetDeviceProperties(&p, gpu));
  m.backend = "gpu";
  m.gpu = p.name, m.uuid = uuid_of(p);
  m.compute_capability = 10 * p.major + p.minor, m.multiprocessors = p.multiProcessorCount;
  m.l2_bytes = p.l2CacheSize, m.memory_bytes = static_cast<double>(p.totalGlobalMem);
  m.driver = nvml().driver_version();
  DEVICE_CHECK(cudaRuntimeGetVersion(&runtime));
  m.cuda = std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10);
  m.cublas = cublas().version();
  return m;
}

Ceilings this_ceilings(const Arguments& arguments, const Machine& machine) {
  if (arguments.once) return {};  // a profiler is to see the step's kernels alone
  if (!arguments.ceilings.empty())
    if (const auto kept = read_ceilings(arguments.ceilings, machine)) return *kept;
  const Ceilings measured = measure_ceilings();
  if (!arguments.ceilings.empty()) write_ceilings(arguments.ceilings, machine, measured);
  return measured;
}

void check_memory(const Spec& s, const Arguments& arguments) {
  std::size_t free_bytes = 0, total = 0;
  DEVICE_CHECK(cudaMemGetInfo(&free_bytes, &total));
  const double mn = static_cast<double>(s.m) * static_cast<double>(s.n), reference = 16 * mn;
  double set = matrix_bytes(s), needed = set + reference;
  if (!arguments.once && s.flops() > 0) {
    const int sets = sets_for(s, arguments.mode);
    if (sets > kMaxSets)
      throw BadInput("--mode cold or single: " + s.shape() + " is so small that " + std::to_string(sets) +
                     " sets of matrices would be needed to flush the L2 cache; choose a larger --shape, or --mode hot");
    set += mn * static_cast<double>(bytes(s.out));  // cuBLAS's C
    needed = sets * set + reference;
  }
  if (needed > 0.95 * static_cast<double>(free_bytes))
    throw BadInput("this problem needs " + with_prefix(needed) + "B of the GPU's memory, " +
                   with_prefix(static_cast<double>(free_bytes)) + "B are free; choose a smaller --shape");
  check_host_memory(s, 2 * mn * static_cast<double>(bytes(s.out)));  // and cuBLAS's C
}

void check_patience(const Spec&, const Arguments&, const std::vector<const Variant*>&) {}

// By the compiler's figures, results verified, times of the harness.
Tuning tune_here(const Step& step, const std::vector<const Variant*>& variants, const Spec& spec,
                 const std::function<Problem&()>& problem, const Machine& machine, const Ceilings& ceilings, TuningCache& cache) {
  TuningKey key;
  key.step = step.name, key.kernel_version = step.kernel_version;
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

std::string measure(const Variant& variant, Problem& problem, const Arguments& arguments, Result& result) {
  try {
    const Epilogue& epilogue = problem.spec.epilogue;
    if (arguments.once && !epilogue.is_identity() && !variant.unfused) {  // a profiler is to see what fusing saves
      without_fusing(variant).run(epilogue, problem.A.view(), problem.B.view(), problem.C.view(), problem.bias.view().data);
      device::synchronize();
      problem.C.poison();
    }
    // 'ncu --profile-from-start off' sees what lies between these two.
    DEVICE_CHECK(cudaProfilerStart());
    problem.run(variant);
    device::synchronize();
    DEVICE_CHECK(cudaProfilerStop());
    if (std::string wrong = problem.verify(sums_of(variant, problem.spec)); !wrong.empty()) return wrong;
    result.fallback_block = device::fallback_block(name_of(device::last_launch()));
    if (!arguments.once) time_against_baselines(variant, problem, arguments, result);
  } catch (const device::Error& e) {
    return e.what();
  }
  return "";
}

std::string to_text(const Result& r, const Arguments& arguments) {
  if (arguments.once) return "\n";
  if (!r.time) return "; nothing to time\n";
  const double noise = (r.time->q80 - r.time->q20) / 2 / r.time->median;
  std::string text =
      formatted("; %.4g ms +- %.1f %% (%s, %d rounds", 1e3 * r.time->median, 100 * noise, r.mode.c_str(), r.time->rounds);
  text += r.time->launches > 1 ? formatted(" of %d launches)", r.time->launches) : ")";
  if (r.rate()) text += ", " + with_prefix(*r.rate()) + "FLOP/s";
  for (const Baseline& b : r.baselines) {
    text += "\n  " + b.name;
    if (b.candidates > 1) text += ", best of " + std::to_string(b.candidates);
    text += b.time && b.ratio ? formatted(": %.4g ms; this is %.2f %% of it", 1e3 * b.time->median, 100 * b.ratio->median)
                              : ": cannot run this";
  }
  if (r.energy) {
    const auto of = [&](const Energy& e) {
      return formatted("%.3g pJ/FLOP at %.0f W", 1e12 * e.joules / r.roofline.flops, e.joules / e.seconds);
    };
    text += "\n  energy: " + of(*r.energy);
    for (const Baseline& b : r.baselines)
      if (b.energy) text += "; " + b.name + ": " + of(*b.energy);
  }
  if (const auto& c = r.conditions; c && c->sm_hz && c->power && c->temperature)
    text += formatted("\n  SM clock %.0f MHz, %.0f W, %.0f C", 1e-6 * *c->sm_hz, *c->power, *c->temperature);
  return text + "\n  " + note(r.roofline, r.rate()) + "\n";
}

}  // namespace harness

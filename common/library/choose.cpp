#include "common/library/choose.h"

#include <algorithm>
#include <optional>
#include <set>

#include "common/device/fallback_block.h"
#include "common/device/tensor_operand.h"
#include "common/harness/program/step.h"
#include "common/library/relayout.h"

namespace gemm::library {
namespace {

// To lay operands out anew: a launch, and so many bytes per clock that an SM reads and writes, when all do. The fallback: clocks
// for 32 steps along k of a block that has an SM alone, of a small block, and of as many small blocks as share an SM, for each of
// them. Fitted with the model's constants (tuning_model.cpp).
constexpr double kLaunchSeconds = 2.7e-6, kLateSeconds = 2e-6, kBytesPerClock = 4.25;
constexpr double kLargeBlock = 4890, kSmallBlock = 1890, kSharingBlock = 1380, kFallbackPrologue = 1960;
constexpr std::int64_t kFallbackK = 32, kSmallBlocks = 5;

double real(std::int64_t x) { return static_cast<double>(x); }

double seconds_of_fallback(const harness::Spec& spec, const harness::GpuLimits& gpu) {
  const int block = device::fallback_block(spec.m, spec.n);
  const std::int64_t tiles = ceil_div<std::int64_t>(spec.m, block) * ceil_div<std::int64_t>(spec.n, block);
  const std::int64_t busiest = ceil_div<std::int64_t>(tiles, gpu.multiprocessors);
  const double each = block == 128 ? kLargeBlock * real(busiest)
                                   : std::max(kSmallBlock * real(ceil_div(busiest, kSmallBlocks)), kSharingBlock * real(busiest));
  return (each * real(ceil_div(spec.k, kFallbackK)) + kFallbackPrologue) / gpu.clock_hz;
}

harness::AnyMatrix like_a(const harness::Spec& s) {  // of that layout
  return {nullptr, s.m, s.k, s.transpose_a ? 1 : s.k, s.transpose_a ? s.m : 1};
}
harness::AnyMatrix like_b(const harness::Spec& s) { return {nullptr, s.k, s.n, s.transpose_b ? 1 : s.n, s.transpose_b ? s.k : 1}; }

double seconds_of_laying_out(const Task& task, bool a, bool b, const harness::GpuLimits& gpu) {
  const auto bytes = [&](const harness::AnyMatrix& m, const Operand& x) {
    return (1 + x.spread) * static_cast<double>(bytes_in_lines(m, task.spec.in));
  };
  if (!a && !b) return 0;
  const double all = (a ? bytes(like_a(task.spec), task.a) : 0) + (b ? bytes(like_b(task.spec), task.b) : 0);
  return kLaunchSeconds + all / (kBytesPerClock * gpu.multiprocessors * gpu.clock_hz);
}

Operand operand_in_lines(const harness::AnyMatrix& m, harness::DType type) {
  const harness::AnyMatrix laid = in_lines(m, type, nullptr);
  const Matrix<const __half> half = {nullptr, laid.rows, laid.cols, laid.row_stride, laid.col_stride};
  return {device::has_tensor_map(half) ? Operands::kBoxes : Operands::kChunks, 1};
}

// Of the ways to lay out A, B or both, those with which something is other than without.
std::vector<std::pair<bool, bool>> ways_to_lay_out(const Task& task) {
  std::vector<std::pair<bool, bool>> ways = {{false, false}};
  const auto is_worth_it = [](const Operand& x) { return x.offers < Operands::kBoxes || x.requests > 1; };
  const bool can = bytes(task.spec.in) == 2 && task.spec.k > 0, a = can && is_worth_it(task.a), b = can && is_worth_it(task.b);
  if (a) ways.push_back({true, false});
  if (b) ways.push_back({false, true});
  if (a && b) ways.push_back({true, true});
  return ways;
}

bool has_types(const Kernel& kernel, const harness::Spec& spec) {
  return kernel.variant.in == spec.in && kernel.variant.out == spec.out;
}

std::string why_unavailable(const Kernel& kernel, const harness::GpuLimits& gpu) {
  return harness::availability(kernel.step, gpu.name, gpu.capability).why_not;
}

// A kernel whose launcher takes the fallback, or null.
const Kernel* with_fallback(const std::vector<Kernel>& kernels, const Task& task, const harness::GpuLimits& gpu) {
  for (const Kernel& kernel : kernels)
    if (has_types(kernel, task.spec) && task.operands() < kernel.operands && why_unavailable(kernel, gpu).empty()) return &kernel;
  return nullptr;
}

[[noreturn]] void throw_nothing_runs(const std::vector<Kernel>& kernels, const Task& task, const harness::GpuLimits& gpu) {
  std::set<std::string> reasons;
  for (const Kernel& kernel : kernels) {
    if (!has_types(kernel, task.spec)) continue;
    std::string reason = why_unavailable(kernel, gpu);
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
    if (has_types(kernel, task.spec) && task.operands() >= kernel.operands && why_unavailable(kernel, gpu).empty() &&
        harness::why_pruned(kernel.variant.numbers, {}, task.spec, gpu).empty())
      found.push_back(&kernel);
  return found;
}

Task laid_out(const Task& task, bool a, bool b) {
  return {task.spec, a ? operand_in_lines(like_a(task.spec), task.spec.in) : task.a,
          b ? operand_in_lines(like_b(task.spec), task.spec.in) : task.b};
}

std::vector<Chosen> choices(const std::vector<Kernel>& kernels, const Task& task, const harness::GpuLimits& gpu) {
  std::vector<Chosen> all;
  for (const auto& [a, b] : ways_to_lay_out(task)) {
    const Task as_laid = laid_out(task, a, b);
    const double before = seconds_of_laying_out(task, a, b, gpu);
    std::vector<const Kernel*> able = candidates(kernels, as_laid, gpu);
    // Who asks less of its operands is slower: of 368 random problems it was the best way of none, and the model chose it for some.
    Operands most = Operands::kAny;
    for (const Kernel* kernel : able) most = std::max(most, kernel->operands);
    std::erase_if(able, [most](const Kernel* kernel) { return kernel->operands < most; });
    for (const Kernel* kernel : able) {
      const harness::TileNumbers& tile = kernel->variant.numbers;
      const double late = tile.stays || tile.clusters ? 0 : kLateSeconds;
      all.push_back(
          {kernel, false, false, before + late + harness::predict(tile, task.spec, gpu, as_laid.requests()).seconds, a, b});
    }
    if (able.empty() && !a && !b)
      if (const Kernel* const any = with_fallback(kernels, task, gpu))
        all.push_back({any, true, false, seconds_of_fallback(task.spec, gpu)});
  }
  return all;
}

Chosen choose(const std::vector<Kernel>& kernels, const Task& task, const harness::GpuLimits& gpu,
              const std::map<std::string, harness::TuningEntry>& known) {
  const auto known_of = [&known](const Kernel* kernel) {
    const auto entry = known.find(kernel->variant.tile);
    return entry == known.end() ? nullptr : &entry->second;
  };
  std::optional<Chosen> best;
  for (const Chosen& each : choices(kernels, task, gpu)) {
    const harness::TuningEntry* const entry = each.is_fallback ? nullptr : known_of(each.kernel);
    // Of those that only the hardware's bound limits, the model expects the same: the later step is the better one more often.
    if ((!entry || entry->pruned.empty()) && (!best || each.seconds <= best->seconds)) best = each;
  }
  if (!best) throw_nothing_runs(kernels, task, gpu);
  // Times are the kernels' own, as the operands were when they were taken.
  const double before = seconds_of_laying_out(task, best->lays_a, best->lays_b, gpu);
  std::optional<Chosen> fastest;
  if (!best->is_fallback)
    for (const Kernel* kernel : candidates(kernels, laid_out(task, best->lays_a, best->lays_b), gpu))
      if (const harness::TuningEntry* const entry = known_of(kernel); entry && entry->pruned.empty())
        if (const double seconds = before + entry->seconds; !fastest || seconds < fastest->seconds)
          fastest = {kernel, false, true, seconds, best->lays_a, best->lays_b};
  return fastest ? *fastest : *best;
}

Choice to_choice(const Chosen& chosen) {
  return {chosen.is_fallback ? "fallback" : chosen.kernel->variant.tile, chosen.is_fallback, chosen.is_timed, chosen.seconds,
          chosen.lays_a || chosen.lays_b};
}

std::string way_name(const Chosen& chosen) {
  return std::string(chosen.lays_a ? "A " : "") + (chosen.lays_b ? "B " : "") + to_choice(chosen).kernel;
}

}  // namespace gemm::library

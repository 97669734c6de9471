#include "common/harness/program/best_tile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>

#include "common/harness/program/variants.h"

namespace harness {
namespace {

using Fate = Candidate::Fate;

void print_warnings(const TuningCache& cache) {
  for (const std::string& warning : cache.warnings()) std::fprintf(stderr, "%s: %s\n", this_step().name.c_str(), warning.c_str());
}

void print_choice(const Tuning& tuning, const Spec& spec, const Machine& machine, double seconds) {
  std::map<Fate, int> count;
  for (const Candidate& c : tuning.candidates) {
    ++count[c.fate];
    if (c.fate == Fate::kWrong) std::printf("%s: WRONG\n%s\n", c.variant->tile.c_str(), c.reason.c_str());
  }
  const Variant* const best = tuning.best();
  if (!best) return;
  if (tuning.by_model)
    std::printf("%s: the model expects it to be the best of %zu tiles on %s; %d cannot run there. Nothing was timed.\n",
                best->tile.c_str(), tuning.candidates.size(), machine.gpu.c_str(), count[Fate::kPruned]);
  else
    std::printf("%s: the best of %zu tiles; %d timed, %d known from earlier, %d cannot win, %d cannot run; %.4g ms\n",
                best->tile.c_str(), tuning.candidates.size(), count[Fate::kTimed], count[Fate::kKept], count[Fate::kSkipped],
                count[Fate::kPruned], 1e3 * seconds);
  if (best->unfused)
    std::printf("%s: no tile with %s fused %s. So another kernel applies it.\n", this_step().name.c_str(),
                name(spec.epilogue).c_str(), tuning.by_model ? "was built for these types" : "is as fast here");
}

}  // namespace

bool manage_cache(const Arguments& arguments) {
  TuningCache cache(arguments.cache);
  if (arguments.clear_cache)
    std::printf("what was found for %zu problems is removed from %s\n", cache.clear(), arguments.cache.c_str());
  else
    std::printf("%s:\n%s", arguments.cache.c_str(), to_text(cache.problems()).c_str());
  print_warnings(cache);
  return cache.warnings().empty();
}

Tuning find_best_tile(const Spec& spec, const std::function<Problem&()>& problem, const Arguments& arguments,
                      const Machine& machine, const Ceilings& ceilings) {
  const auto begin = std::chrono::steady_clock::now();
  TuningCache cache(arguments.cache);
  Tuning tuning = tune_here(variants_for(spec), spec, problem, machine, ceilings, cache);
  print_choice(tuning, spec, machine, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  if (arguments.verbose) std::printf("%s", to_text(tuning, spec).c_str());
  std::fflush(stdout);
  print_warnings(cache);
  return tuning;
}

bool found_wrong(const Tuning& tuning) {
  return std::any_of(tuning.candidates.begin(), tuning.candidates.end(), [](const Candidate& c) { return c.fate == Fate::kWrong; });
}

std::vector<const Variant*> worth_running(const Tuning& tuning) {
  std::vector<const Variant*> variants;
  for (const Candidate& c : tuning.candidates)
    if (variants.empty() || (tuning.by_model && c.fate != Fate::kPruned)) variants.push_back(c.variant);
  return variants;
}

std::string why_none(const Tuning& tuning) {
  std::set<std::string> known;
  std::string text;
  for (const Candidate& c : tuning.candidates)
    if (c.fate == Fate::kPruned && known.insert(c.reason).second) text += (text.empty() ? "" : "; ") + c.reason;
  return text;
}

}  // namespace harness

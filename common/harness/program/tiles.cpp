#include "common/harness/program/tiles.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

namespace harness {
namespace {

// Each of the step's tiles, with a kernel of its own for the epilogue.
const std::vector<Variant>& unfused_variants() {
  static const std::vector<Variant> all = [] {
    std::vector<Variant> made;
    if (this_step().activation != kActivation<gemm::Identity>)
      for (const Variant& v : this_step().variants) made.push_back(without_fusing(v));
    return made;
  }();
  return all;
}

bool has_types_of(const Variant& v, const Spec& spec) { return v.in == spec.in && v.out == spec.out; }

std::set<std::string> words_of(std::string text) {
  std::replace(text.begin(), text.end(), ',', ' ');
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// The tile that is called so, or the only one that has all these words in its name. @throws BadInput
const Variant& tile_named(const std::string& name, const std::vector<const Variant*>& variants) {
  std::vector<const Variant*> found;
  const std::set<std::string> wanted = words_of(name);
  for (const Variant* v : variants) {
    if (v->tile == name) return *v;
    const std::set<std::string> words = words_of(v->tile);
    if (std::includes(words.begin(), words.end(), wanted.begin(), wanted.end())) found.push_back(v);
  }
  if (found.size() == 1) return *found.front();
  std::string names;
  for (const Variant* v : found.empty() ? variants : found) names += (names.empty() ? "" : "; ") + v->tile;
  throw BadInput("--tile '" + name + "' is " + (found.empty() ? "none of the tiles" : "more than one tile") + ": " + names);
}

// What --activation and --bias ask for; without them, what the step is about.
Epilogue wanted_epilogue(const Arguments& arguments) {
  if (arguments.activation.empty()) return {this_step().activation, arguments.bias};
  const auto activation = activation_named(arguments.activation);
  if (!activation) throw BadInput("--activation " + arguments.activation + ": expected " + names_of_activations());
  return {*activation, arguments.bias};
}

// @throws BadInput with what to do instead
void require_kernel(const Spec& spec) {
  const Step& step = this_step();
  const bool has_types =
      std::any_of(step.variants.begin(), step.variants.end(), [&](const Variant& v) { return has_types_of(v, spec); });
  if (!has_types)
    throw BadInput((step.is_short && !step.variants.empty() ? "this short program" : "this step") +
                   (" has no kernel for " + std::string(name(spec.in))) + "; choose another --dtype");
  if (!variants_for(spec).empty()) return;
  if (step.activation == kActivation<gemm::Identity>)
    throw BadInput("this step fuses nothing; leave out --activation and --bias, or run 07_fused_leaky_relu");
  throw BadInput("a short program has no kernel for this epilogue; leave out --activation and --bias, or type 'tools/course run " +
                 step.name.substr(0, 2) + "' with them");
}

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

std::vector<const Variant*> variants_for(const Spec& spec) {
  std::vector<const Variant*> variants;
  bool all = true;
  for (const Variant& v : this_step().variants) {
    if (!has_types_of(v, spec)) continue;
    if (v.has(spec.epilogue))
      variants.push_back(&v);
    else
      all = false;
  }
  if (!all && (kCanTime || variants.empty()) && !this_step().is_short)
    for (const Variant& v : unfused_variants())
      if (has_types_of(v, spec)) variants.push_back(&v);
  return variants;
}

std::vector<Spec> problems_with_epilogue(const Arguments& arguments) {
  std::vector<Spec> problems = arguments.problems;
  const Epilogue epilogue = wanted_epilogue(arguments);
  for (Spec& spec : problems) {
    spec.epilogue = epilogue;
    require_kernel(spec);
  }
  return problems;
}

std::vector<const Variant*> to_measure(std::vector<const Variant*> variants, const Arguments& arguments) {
  if (!arguments.tile.empty()) return {&tile_named(arguments.tile, variants)};
  if (arguments.first && variants.size() > 1) variants.resize(1);
  return variants;
}

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
  Tuning tuning = tune_here(this_step(), variants_for(spec), spec, problem, machine, ceilings, cache);
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

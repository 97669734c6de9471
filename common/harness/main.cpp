// The program that every step is: runs the step's tiles on the problems it is given, says whether the results are right, and
// measures or counts what they do. tools/course calls it; so can you.
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "common/harness/backend.h"

namespace harness {
namespace {

// Each of the step's tiles, with a kernel of its own for the epilogue.
const std::vector<Variant>& unfused_variants() {
  static const std::vector<Variant> all = [] {
    std::vector<Variant> made;
    if (this_step().activation != Activation::kIdentity)
      for (const Variant& v : this_step().variants) made.push_back(without_fusing(v));
    return made;
  }();
  return all;
}

// Of the problem's types, and built for its epilogue. Where not all tiles are, the good ones may be missing. So whoever can time
// them is given all tiles unfused, too.
std::vector<const Variant*> variants_for(const Spec& spec) {
  std::vector<const Variant*> variants;
  bool all = true;
  for (const Variant& v : this_step().variants) {
    if (v.in != spec.in || v.out != spec.out) continue;
    if (v.has(spec.epilogue))
      variants.push_back(&v);
    else
      all = false;
  }
  if (!all && (kCanTime || variants.empty()))
    for (const Variant& v : unfused_variants())
      if (v.in == spec.in && v.out == spec.out) variants.push_back(&v);
  return variants;
}

// With --first, only the tile that stands for the step.
std::vector<const Variant*> to_measure(std::vector<const Variant*> variants, const Arguments& arguments) {
  if (arguments.first && variants.size() > 1) variants.resize(1);
  return variants;
}

constexpr int kVerified = 0, kWrong = 1;

// The problems with the epilogue that was asked for. @throws BadInput where the step has no such kernel
std::vector<Spec> with_epilogue(std::vector<Spec> problems, const Arguments& arguments) {
  const Step& step = this_step();
  Epilogue epilogue{step.activation, arguments.bias};
  if (!arguments.activation.empty()) {
    const auto activation = activation_named(arguments.activation);
    if (!activation) throw BadInput("--activation " + arguments.activation + ": expected identity, leaky_relu, relu, gelu or silu");
    epilogue.activation = *activation;
  }
  for (Spec& spec : problems) {
    if (variants_for(spec).empty())
      throw BadInput("this step has no kernel for " + std::string(name(spec.in)) + "; choose another --dtype");
    spec.epilogue = epilogue;
    if (variants_for(spec).empty())
      throw BadInput("this step fuses nothing; leave out --activation and --bias, or run 07_fused_leaky_relu");
  }
  return problems;
}

// --show and --clear. @return the exit code
int manage(TuningCache& cache, const Arguments& arguments) {
  if (arguments.clear_cache)
    std::printf("%zu entries removed from %s\n", cache.clear(), arguments.cache.c_str());
  else
    std::printf("%s:\n%s", arguments.cache.c_str(), to_text(cache.rows()).c_str());
  for (const std::string& warning : cache.warnings()) std::fprintf(stderr, "%s: %s\n", this_step().name.c_str(), warning.c_str());
  return kVerified;
}

// Finds the best tile, and says which. @return what was found; nothing is wrong with it, or `code` says so
Tuning tuned(const Spec& spec, const std::function<Problem&()>& problem, const Arguments& arguments, const Machine& machine,
             const Ceilings& ceilings, int& code) {
  using Fate = Candidate::Fate;
  const auto begin = std::chrono::steady_clock::now();
  TuningCache cache(arguments.cache);
  Tuning tuning = tune_here(variants_for(spec), spec, problem, machine, ceilings, cache);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::map<Fate, int> count;
  for (const Candidate& c : tuning.candidates) {
    ++count[c.fate];
    if (c.fate == Fate::kWrong) {
      std::printf("%s: WRONG\n%s\n", c.variant->tile.c_str(), c.reason.c_str());
      code = kWrong;
    }
  }
  if (tuning.best() && tuning.by_model)
    std::printf("%s: the model expects it to be the best of %zu tiles on %s; %d cannot run there. Nothing was timed.\n",
                tuning.best()->tile.c_str(), tuning.candidates.size(), machine.gpu.c_str(), count[Fate::kPruned]);
  else if (tuning.best())
    std::printf("%s: the best of %zu tiles; %d timed, %d known from earlier, %d cannot win, %d cannot run; %.4g ms\n",
                tuning.best()->tile.c_str(), tuning.candidates.size(), count[Fate::kTimed], count[Fate::kKept],
                count[Fate::kSkipped], count[Fate::kPruned], 1e3 * seconds);
  if (tuning.best() && tuning.best()->unfused)
    std::printf("%s: no tile with %s fused %s. So another kernel applies it.\n", this_step().name.c_str(),
                name(spec.epilogue).c_str(), tuning.by_model ? "was built for these types" : "is as fast here");
  if (arguments.verbose) std::printf("%s", to_text(tuning, spec).c_str());
  std::fflush(stdout);
  for (const std::string& warning : cache.warnings()) std::fprintf(stderr, "%s: %s\n", this_step().name.c_str(), warning.c_str());
  return tuning;
}

// On a GPU, only the best is worth running; the interpreter runs all that the GPU could.
std::vector<const Variant*> worth_running(const Tuning& tuning) {
  std::vector<const Variant*> variants;
  for (const Candidate& c : tuning.candidates)
    if (variants.empty() || (tuning.by_model && c.fate != Candidate::Fate::kPruned)) variants.push_back(c.variant);
  return variants;
}

// Why no candidate can run: each reason once.
std::string why_none(const Tuning& tuning) {
  std::set<std::string> known;
  std::string text;
  for (const Candidate& c : tuning.candidates)
    if (c.fate == Candidate::Fate::kPruned && known.insert(c.reason).second) text += (text.empty() ? "" : "; ") + c.reason;
  return text;
}

int run(const Arguments& arguments) {
  if (arguments.show_cache || arguments.clear_cache) {
    TuningCache cache(arguments.cache);
    return manage(cache, arguments);
  }
  prepare(arguments);
  if (arguments.check_memory) {
    for (const Spec& spec : arguments.problems) check_memory(spec, arguments);
    return kVerified;
  }
  const std::vector<Spec> problems = with_epilogue(arguments.problems, arguments);
  for (const Spec& spec : problems) check_memory(spec, arguments);
  for (const Spec& spec : problems) check_patience(spec, arguments, to_measure(variants_for(spec), arguments));
  if (!arguments.json.empty()) check_writable(arguments.json);
  const Machine machine = this_machine();
  if (arguments.tune && !arguments.json.empty() && machine.backend != "gpu")
    throw BadInput("--tune --json: the interpreter times nothing that a result file could hold; leave one of them out");
  const Ceilings ceilings = this_ceilings(arguments, machine);

  std::vector<Result> results;
  int code = kVerified;
  std::string refused;  // why the last problem that cannot be run was left out; the others are run
  const auto leave_out = [&](const std::string& what, const std::string& why) {
    refused = why;
    std::printf("%s: cannot run this: %s\n", what.c_str(), why.c_str());
  };
  for (const Spec& spec : problems) {
    std::printf("%s  m=%lld n=%lld k=%lld %s %s%s, %s\n", this_step().name.c_str(), static_cast<long long>(spec.m),
                static_cast<long long>(spec.n), static_cast<long long>(spec.k), std::string(name(spec.in)).c_str(),
                spec.layout().c_str(), spec.epilogue.is_identity() ? "" : (", " + name(spec.epilogue)).c_str(),
                machine.backend == "gpu" ? machine.gpu.c_str() : "interpreter");
    std::fflush(stdout);
    std::optional<Problem> made;
    const auto problem = [&]() -> Problem& { return made ? *made : made.emplace(spec); };
    if (!arguments.tune) problem();
    std::vector<const Variant*> variants = variants_for(spec);
    std::vector<TunedTile> tuning;
    if (this_step().tuned && !arguments.once && spec.flops() > 0) {
      const Tuning found = tuned(spec, problem, arguments, machine, ceilings, code);
      if (!found.best()) {
        if (code == kVerified) leave_out("each of its tiles", why_none(found));
        continue;
      }
      variants = worth_running(found), tuning = found.tiles();
    } else if (arguments.tune && spec.flops() == 0) {
      leave_out(spec.shape(), "there is nothing to multiply, and so no best tile");
      continue;
    }
    bool first = true;
    for (const Variant* v : to_measure(variants, arguments)) {
      Result result;
      result.step = this_step().name, result.tile = v->tile, result.first = first, result.spec = spec;
      result.roofline = roofline(spec, v->tile_m, v->tile_n, ceilings);
      if (v->unfused) result.roofline.saved_bytes = 0;
      if (first) result.tuning = tuning;
      if (arguments.tune) {
        result.mode = tuning.empty() || !tuning.front().seconds ? "count" : "hot";
        results.push_back(std::move(result));
        break;
      }
      problem().C.poison();
      std::string wrong;
      try {
        wrong = measure(*v, problem(), arguments, result);
      } catch (const gemm::Refused& e) {
        leave_out(v->tile, e.what());
        continue;
      }
      first = false;
      if (wrong.empty()) {
        const bool brief = this_step().tuned && !result.first && !arguments.verbose;
        std::printf("\n%s: verified%s", v->tile.c_str(), brief ? "\n" : to_text(result, arguments).c_str());
        results.push_back(std::move(result));
      } else {
        std::printf("\n%s: WRONG\n%s\n", v->tile.c_str(), wrong.c_str());
        code = kWrong;
      }
      std::fflush(stdout);
    }
  }
  if (results.empty() && code == kVerified && !refused.empty()) throw BadInput("nothing of this can be run: " + refused);
  if (!arguments.json.empty() && code == kVerified) write_file(arguments.json, to_json(machine, ceilings, results));
  return code;
}

}  // namespace
}  // namespace harness

int main(int argc, char** argv) { return harness::run_program(harness::this_step().name, argc, argv, harness::run); }

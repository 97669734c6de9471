// The program that every step is: runs the step's tiles on the problems it is given, says whether the results are right, and
// measures or counts what they do. tools/course calls it; so can you.
#include <cstdio>
#include <optional>

#include "common/harness/program/tiles.h"

namespace harness {
namespace {

constexpr int kVerified = 0, kWrong = 1, kFailed = 1;

// From the arguments to the result file, from top to bottom.
class Run {
 public:
  // Refuses all that can be refused, before anything takes time. @throws BadInput
  explicit Run(const Arguments& arguments) : arguments_(arguments), problems_(problems_with_epilogue(arguments)) {
    for (const Spec& spec : problems_) check_memory(spec, arguments_);
    for (const Spec& spec : problems_) check_patience(spec, arguments_, to_measure(variants_for(spec), arguments_));
    if (!arguments_.json.empty()) check_writable(arguments_.json);
    machine_ = this_machine();
    if (arguments_.tune && !arguments_.json.empty() && machine_.backend != "gpu")
      throw BadInput("--tune --json: the interpreter times nothing that a result file could hold; leave one of them out");
    ceilings_ = this_ceilings(arguments_, machine_);
  }

  int operator()() {
    say_what_is_left_out();
    for (const Spec& spec : problems_) {
      print_title(spec);
      if (arguments_.tune)
        tune(spec);
      else
        measure_all(spec);
    }
    if (results_.empty() && code_ == kVerified && !refused_.empty()) throw BadInput("nothing of this can be run: " + refused_);
    if (!arguments_.json.empty() && code_ == kVerified) write_file(arguments_.json, to_json(machine_, ceilings_, results_));
    return code_;
  }

 private:
  // What a short program does not run is said, wherever its output goes.
  void say_what_is_left_out() const {
    const Step& step = this_step();
    if (step.left_out == 0 || arguments_.first) return;  // of what was asked for
    std::fflush(stdout);
    std::fprintf(stderr, "%s: 1 of %zu tiles; 'tools/course run %.2s --all-tiles' has the rest\n", step.name.c_str(),
                 step.left_out + 1, step.name.c_str());
  }

  void print_title(const Spec& spec) const {
    std::printf("%s  m=%lld n=%lld k=%lld %s %s%s, %s\n", this_step().name.c_str(), static_cast<long long>(spec.m),
                static_cast<long long>(spec.n), static_cast<long long>(spec.k), std::string(name(spec.in)).c_str(),
                spec.layout().c_str(), spec.epilogue.is_identity() ? "" : (", " + name(spec.epilogue)).c_str(),
                machine_.backend == "gpu" ? machine_.gpu.c_str() : "interpreter");
    std::fflush(stdout);
  }

  // --tune: only finds the best tile.
  void tune(const Spec& spec) {
    if (spec.flops() == 0) return leave_out(spec.shape(), "there is nothing to multiply, and so no best tile");
    std::optional<Problem> made;
    const Tuning found = best_tile(spec, [&]() -> Problem& { return made ? *made : made.emplace(spec); });
    if (!found.best()) return;
    Result result = result_of(spec, *found.best(), true);
    result.tuning = found.tiles();
    result.mode = result.tuning.empty() || !result.tuning.front().seconds ? "count" : "hot";
    results_.push_back(std::move(result));
  }

  // Verifies and measures the problem's tiles; of a tuned step, those that are worth it.
  void measure_all(const Spec& spec) {
    Problem problem(spec);
    std::vector<const Variant*> variants = variants_for(spec);
    std::vector<TunedTile> tuning;
    if (this_step().tuned && !arguments_.once && arguments_.tile.empty() && spec.flops() > 0) {
      const Tuning found = best_tile(spec, [&]() -> Problem& { return problem; });
      if (!found.best()) return;
      variants = worth_running(found), tuning = found.tiles();
    }
    bool first = true;
    for (const Variant* v : to_measure(variants, arguments_)) {
      Result result = result_of(spec, *v, first);
      if (first) result.tuning = tuning;
      if (measure_tile(*v, problem, std::move(result))) first = false;
    }
  }

  // @return nothing is to be run where it has no best(): why is said then
  Tuning best_tile(const Spec& spec, const std::function<Problem&()>& problem) {
    Tuning found = find_best_tile(spec, problem, arguments_, machine_, ceilings_);
    if (found_wrong(found)) code_ = kWrong;
    if (!found.best() && code_ == kVerified) leave_out("each of its tiles", why_none(found));
    return found;
  }

  // What is known before anything runs.
  Result result_of(const Spec& spec, const Variant& v, bool first) const {
    Result result;
    result.step = this_step().name, result.tile = v.tile, result.first = first, result.spec = spec;
    result.roofline = roofline_of(spec, v, v.tile_m, v.tile_n, v.numbers.unit == Unit::kWgmma);
    return result;
  }

  Roofline roofline_of(const Spec& spec, const Variant& v, int tile_m, int tile_n, bool wgmma) const {
    Roofline r = roofline(spec, tile_m, tile_n, ceilings_, wgmma);
    if (v.unfused) r.saved_bytes = 0;
    return r;
  }

  // @return whether it could be run
  bool measure_tile(const Variant& v, Problem& problem, Result result) {
    problem.C.poison();
    std::string wrong;
    try {
      wrong = measure(v, problem, arguments_, result);
    } catch (const gemm::Refused& e) {
      leave_out(v.tile, e.what());
      return false;
    }
    if (result.fallback_block) {  // which is the same one for all tiles
      result.tile += ", fallback";
      result.roofline = roofline_of(problem.spec, v, result.fallback_block, result.fallback_block, false);
    }
    if (wrong.empty()) {
      const bool brief = this_step().tuned && !result.first && !arguments_.verbose;
      std::printf("\n%s: verified%s", result.tile.c_str(), brief ? "\n" : to_text(result, arguments_).c_str());
      results_.push_back(std::move(result));
    } else {
      std::printf("\n%s: WRONG\n%s\n", result.tile.c_str(), wrong.c_str());
      code_ = kWrong;
    }
    std::fflush(stdout);
    return true;
  }

  // The others are run.
  void leave_out(const std::string& what, const std::string& why) {
    refused_ = why;
    std::printf("%s: cannot run this: %s\n", what.c_str(), why.c_str());
  }

  const Arguments& arguments_;
  std::vector<Spec> problems_;
  Machine machine_;
  Ceilings ceilings_;
  std::vector<Result> results_;
  int code_ = kVerified;
  std::string refused_;  // why the last problem that cannot be run was left out
};

int run(const Arguments& arguments) {
  if (arguments.show_cache || arguments.clear_cache) return manage_cache(arguments) ? kVerified : kFailed;
  prepare(arguments);
  if (const std::string why = availability(this_step()).why_not; !why.empty()) throw BadInput(why);
  if (arguments.check_memory) {
    for (const Spec& spec : arguments.problems) check_memory(spec, arguments);
    return kVerified;
  }
  return Run(arguments)();
}

}  // namespace
}  // namespace harness

int main(int argc, char** argv) { return harness::run_program(argc, argv, harness::run); }

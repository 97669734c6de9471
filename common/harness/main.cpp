// The program that every step is: runs the step's tiles on the problems it is given, says whether the results are right, and
// measures or counts what they do. tools/course calls it; so can you.
#include <cstdio>

#include "common/harness/backend.h"

namespace harness {
namespace {

std::vector<const Variant*> variants_for(const Spec& spec) {
  std::vector<const Variant*> variants;
  for (const Variant& v : this_step().variants)
    if (v.in == spec.in && v.out == spec.out) variants.push_back(&v);
  return variants;
}

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
    spec.epilogue = epilogue;
    for (const Variant* v : variants_for(spec)) {
      if (v->has(epilogue)) continue;
      if (v->fused.empty())
        throw BadInput("this step fuses nothing; leave out --activation and --bias, or run 07_fused_leaky_relu");
      throw BadInput("this step has no kernel with " + name(epilogue) + " for " + std::string(name(spec.in)) +
                     "; it was built with all of them for f16: add --dtype f16");
    }
  }
  return problems;
}

int run(const Arguments& arguments) {
  constexpr int kVerified = 0, kWrong = 1;
  prepare(arguments);
  for (const Spec& spec : arguments.problems)
    if (variants_for(spec).empty())
      throw BadInput("this step has no kernel for " + std::string(name(spec.in)) + "; choose another --dtype");
  const std::vector<Spec> problems = with_epilogue(arguments.problems, arguments);
  for (const Spec& spec : problems) check_affordable(spec, arguments, variants_for(spec));
  if (!arguments.json.empty()) write_file(arguments.json + ".test", ""), std::remove((arguments.json + ".test").c_str());
  const Machine machine = this_machine();
  const Ceilings ceilings = this_ceilings(arguments, machine);

  std::vector<Result> results;
  int code = kVerified;
  for (const Spec& spec : problems) {
    std::printf("%s  m=%lld n=%lld k=%lld %s %s%s, %s\n", this_step().name.c_str(), static_cast<long long>(spec.m),
                static_cast<long long>(spec.n), static_cast<long long>(spec.k), std::string(name(spec.in)).c_str(),
                spec.layout().c_str(), spec.epilogue.is_identity() ? "" : (", " + name(spec.epilogue)).c_str(),
                machine.backend == "gpu" ? machine.gpu.c_str() : "interpreter");
    std::fflush(stdout);
    Problem problem(spec);
    bool first = true;
    for (const Variant* v : variants_for(spec)) {
      Result result;
      result.step = this_step().name, result.tile = v->tile, result.first = first, result.spec = spec;
      result.roofline = roofline(spec, v->tile_m, v->tile_n, ceilings);
      first = false;
      problem.C.poison();
      if (const std::string wrong = measure(*v, problem, arguments, result); wrong.empty()) {
        std::printf("\n%s: verified%s", v->tile.c_str(), to_text(result, arguments).c_str());
        results.push_back(std::move(result));
      } else {
        std::printf("\n%s: WRONG\n%s\n", v->tile.c_str(), wrong.c_str());
        code = kWrong;
      }
      std::fflush(stdout);
    }
  }
  if (!arguments.json.empty() && code == kVerified) write_file(arguments.json, to_json(machine, ceilings, results));
  return code;
}

}  // namespace
}  // namespace harness

int main(int argc, char** argv) { return harness::run_program(harness::this_step().name, argc, argv, harness::run); }

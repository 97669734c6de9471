#include "common/harness/program/arguments.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <regex>
#include <sstream>

#include "common/harness/program/step.h"
#include "common/harness/results/results.h"
#include "common/harness/tuning/tuning_cache.h"

namespace harness {
namespace {

Spec parse_shape(const std::string& text) {
  static const std::regex shape("([0-9]{1,10})x([0-9]{1,10})x([0-9]{1,10})|([0-9]{1,10})");
  std::smatch extents;
  if (!std::regex_match(text, extents, shape))
    throw BadInput("--shape " + text +
                   ": expected MxNxK with three numbers of at most 10 digits, for example 256x512x128, or one for all three");
  const auto extent = [&](int i) { return std::stoll(extents[extents[4].matched ? 4 : i]); };
  return {extent(1), extent(2), extent(3)};
}

// As typed.
struct Typed {
  std::string shapes = "256x256x256", dtype = "f32", layout = "nn", mode = "hot";
};

void describe(CLI::App& app, Typed& typed, Arguments& arguments) {
  app.add_option("--shape", typed.shapes,
                 "MxNxK: C is M x N, K is the common dimension; 4096 is 4096x4096x4096; several with commas between")
      ->capture_default_str();
  app.add_option("--dtype", typed.dtype,
                 "element type of A, B and C: f32, f16 or bf16; also spelt fp32, float32, fp16, float16, half, bfloat16")
      ->capture_default_str();
  app.add_option("--layout", typed.layout, "nn, nt, tn or tt: n is row-major, t is column-major; A first")->capture_default_str();
  app.add_option("--activation", arguments.activation,
                 "fused into the epilogue: " + names_of_activations() + "; without it, what the step is about");
  app.add_flag("--bias", arguments.bias, "fused too: a random bias for each column, added before the activation");
  app.add_flag("--first", arguments.first, "only the tile that stands for the step: its first, or the best that tuning finds");
  app.add_option("--tile", arguments.tile, "only the tile with this name, or with these words in its name: g8, \"s3 g8\"");
  app.add_flag("--check-memory", arguments.check_memory, "say whether there is not enough memory for the problems, and end");
  app.add_option("--json", arguments.json, "write the results to this file, as docs/results/README.md describes");
#ifdef COURSE_ON_GPU
  app.add_option("--mode", typed.mode,
                 "hot: with what fits in the L2 cache; cold: sets in turn, more than 3 times the L2 cache; single: cold, one "
                 "launch at a time")
      ->capture_default_str();
  app.add_flag("--once", arguments.once, "launch each tile once, time nothing: for ncu and compute-sanitizer");
  app.add_option("--seconds", arguments.seconds, "how long a measurement's rounds last, from 0.01 to 60; 11 or more are made")
      ->capture_default_str();
  app.add_option("--energy", arguments.energy,
                 "measure energy too: for that many seconds each, from 0.5 to 60, the step and what it is compared with run alone");
  app.add_option("--ceilings", arguments.ceilings, "keep the GPU's measured ceilings in this file");
#else
  app.add_option("--order", arguments.order, "forward, reverse, random or random:SEED")->capture_default_str();
  app.add_flag("--force", arguments.force, "run even if it takes more than two minutes");
  app.add_flag("--profile", arguments.profile,
               "count what 'tools/course profile' shows: also the launch, and the L2 cache by a model; slower");
  app.add_option("--multiprocessors", arguments.multiprocessors,
                 "as if the GPU had no more SMs than that: blocks that stay for several tiles have some of a small problem")
      ->check(CLI::PositiveNumber);
  app.add_option("--as", arguments.project_to, "project what was counted to a GPU: h200, h100, a100 or 4090");
#endif
}

void describe_tuning(CLI::App& app, Arguments& arguments) {
  arguments.cache = TuningCache::default_folder();
  app.add_flag("--tune", arguments.tune, "find the best tile, measure nothing else");
  app.add_flag("--verbose", arguments.verbose, "say of each tile how fast it was, or why it was not tried");
  app.add_option("--cache", arguments.cache, "folder for what tuning finds")->capture_default_str();
  const auto show = app.add_flag("--show", arguments.show_cache, "show what tuning found so far, and end");
  app.add_flag("--clear", arguments.clear_cache, "forget what tuning found so far, and end")->excludes(show);
}

// Fills in what was typed. @throws BadInput for what makes no sense
void interpret(const Typed& typed, Arguments& arguments) {
  static const std::map<std::string, DType> dtypes = {{"f32", DType::kF32},  {"fp32", DType::kF32},  {"float32", DType::kF32},
                                                      {"f16", DType::kF16},  {"fp16", DType::kF16},  {"float16", DType::kF16},
                                                      {"half", DType::kF16}, {"bf16", DType::kBF16}, {"bfloat16", DType::kBF16}};
  const std::string& layout = typed.layout;
  if (!dtypes.contains(typed.dtype)) throw BadInput("--dtype " + typed.dtype + ": expected f32, f16 or bf16");
  if (layout != "nn" && layout != "nt" && layout != "tn" && layout != "tt")
    throw BadInput("--layout " + layout + ": expected nn, nt, tn or tt");
  static const std::map<std::string, Mode> modes = {{"hot", Mode::kHot}, {"cold", Mode::kCold}, {"single", Mode::kSingle}};
  if (!modes.contains(typed.mode)) throw BadInput("--mode " + typed.mode + ": expected hot, cold or single");
  arguments.mode = modes.at(typed.mode);
  if (!(arguments.seconds >= 0.01 && arguments.seconds <= 60)) throw BadInput("--seconds: expected a number from 0.01 to 60");
  if (arguments.energy != 0 && !(arguments.energy >= 0.5 && arguments.energy <= 60))
    throw BadInput("--energy: expected a number of seconds from 0.5 to 60");
  std::istringstream list(typed.shapes + ",");
  for (std::string shape; std::getline(list, shape, ',');) {
    Spec spec = parse_shape(shape);
    spec.in = spec.out = dtypes.at(typed.dtype);
    spec.transpose_a = layout[0] == 't', spec.transpose_b = layout[1] == 't';
    arguments.problems.push_back(spec);
  }
}

}  // namespace

int run_program(int argc, char** argv, int (*body)(const Arguments&)) {
  constexpr int kFailed = 1, kBadInput = 2;
  const Step& step = this_step();
  const auto say = [&](const char* message) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", step.name.c_str(), message);
  };
  CLI::App app("Step " + step.name +
               ": runs its kernels on random matrices, C = A * B, verifies the result and measures or counts.");
  Typed typed;
  if (!step.variants.empty()) typed.dtype = name(step.variants.front().in);
  Arguments arguments;
  describe(app, typed, arguments);
  if (step.tuned) describe_tuning(app, arguments);
  try {
    app.parse(argc, argv);
    interpret(typed, arguments);
    const int code = body(arguments);
    if (code == 0 && (std::fflush(stdout) != 0 || std::ferror(stdout)))
      throw BadInput("cannot write to stdout; is there room where it goes to?");
    return code;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kBadInput;
  } catch (const BadInput& e) {
    say(e.what());
    return kBadInput;
  } catch (const std::bad_alloc&) {
    say("out of memory; choose a smaller --shape");
    return kBadInput;
  } catch (const std::exception& e) {
    say(e.what());
    return kFailed;
  }
}

}  // namespace harness

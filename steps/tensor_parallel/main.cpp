// The block on several GPUs, or on several of the interpreter's threads: verified, and on GPUs measured beside one GPU alone,
// beside products without communication, and beside cuBLAS and NCCL one after the other.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>

#include "steps/tensor_parallel/program.h"
#ifdef COURSE_ON_INTERPRETER
#include "steps/tensor_parallel/loopback.h"
#else
#include "steps/tensor_parallel/tcp_group.h"
#endif

namespace {

using namespace tensor_parallel;
using harness::BadInput;

Shape shape_of(const std::string& text) {
  Shape s;
  int read = 0;
  const int found = std::sscanf(text.c_str(), "%ldx%ldx%ld%n", &s.tokens, &s.model, &s.hidden, &read);
  constexpr std::int64_t kMost = 1 << 20;
  const auto fits = [](std::int64_t x) { return x >= 1 && x <= kMost; };
  if (found != 3 || read != static_cast<int>(text.size()) || !fits(s.tokens) || !fits(s.model) || !fits(s.hidden))
    throw BadInput("--shape " + text + ": tokens x model x hidden, as in 4096x4096x11008, is needed");
  return s;
}

int run(int argc, char** argv) {
  Options options;
  std::vector<std::string> shapes, types;
  CLI::App app("tensor_parallel: a feed-forward block, each rank has some columns of the hidden layer.");
  app.add_option("--ranks", options.ranks,
                 "processes to start on this host, one for each GPU; on the interpreter threads (default: all GPUs, or 2)")
      ->check(CLI::Range(1, 64));
  app.add_option("--shape", shapes, "TOKENSxMODELxHIDDEN")->delimiter(',');
  app.add_option("--dtype", types, "f16 (default), bf16")->delimiter(',');
  app.add_option("--json", options.json, "file for the results");
  app.add_option("--seconds", options.seconds, "that the rounds of a shape last (default: 2)")->check(CLI::Range(0.0, 600.0));
  app.add_option("--patience", options.patience,
                 "seconds until a rank that is silent counts as hanging (default: 7, or 60 for threads)")
      ->check(CLI::Range(0.5, 600.0));
  app.add_option("--soak", options.soak, "only run the overlapped block again and again, for so many seconds")
      ->check(CLI::Range(0.0, 1e6));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  for (const std::string& text : shapes) options.shapes.push_back(shape_of(text));
  for (const std::string& text : types.empty() ? std::vector<std::string>{"f16"} : types) {
    const auto type = harness::dtype_named(text);
    if (!type || *type == harness::DType::kF32) throw BadInput("--dtype " + text + ": f16 or bf16 is needed");
    options.types.push_back(*type);
  }
#ifdef COURSE_ON_INTERPRETER
  if (options.shapes.empty()) options.shapes.push_back({37, 72, 200});
  int code = 0;
  run_loopback(options.ranks > 0 ? options.ranks : 2, std::max(60.0, options.patience),
               [&](Communicator& c) { verify_all(c, options, &code); });
  return code;
#else
  if (options.shapes.empty()) options.shapes.push_back({4096, 4096, 11008});
  const auto place = place_from_environment();
  if (!place) {
    int gpus = 0;
    DEVICE_CHECK(cudaGetDeviceCount(&gpus));
    if (options.ranks == 0) options.ranks = gpus;
    if (options.ranks > gpus)
      throw BadInput("--ranks " + std::to_string(options.ranks) + ": this host has " + std::to_string(gpus) +
                     " GPUs, and each rank needs one; the interpreter's build runs any number of ranks");
    return run_ranks(options.ranks, argv, 5);
  }
  return run_rank(*place, options);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const BadInput& e) {
    std::fprintf(stderr, "tensor_parallel: %s\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tensor_parallel: %s\n", e.what());
    return 1;
  }
}

// What 'tools/course interpret' tells the program that it runs: the order, the GPU, and whether to print counters in the end.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <tuple>

#include "common/interpreter/count/gpus.h"
#include "common/interpreter/cuda_runtime/program.h"
#include "common/interpreter/report/keep_going.h"

namespace interpreter::cuda_runtime {
namespace {

// Launches of one kernel with one configuration are one entry. A program that ends well, and whose counters are lost, ends with 2.
void print_counters(int exit_code, void*) {
  using Key = std::tuple<std::string, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, std::size_t>;
  struct Sum {
    KernelProfile profile;
    int launches = 0;
  };
  std::map<Key, std::size_t> places;
  std::vector<Sum> sums;  // in the order of the first launches
  for (const KernelProfile& p : profiles()) {
    const auto [place, is_new] = places.try_emplace(
        {p.kernel, p.grid.x, p.grid.y, p.grid.z, p.block.x, p.block.y, p.block.z, p.dynamic_shared_bytes}, sums.size());
    if (is_new) {
      sums.push_back({p, 1});
      continue;
    }
    Sum& sum = sums[place->second];
    ++sum.launches;
    sum.profile.total += p.total;
    sum.profile.steps += p.steps, sum.profile.seconds += p.seconds;
    for (const LineProfile& line : p.lines) {
      bool found = false;
      for (LineProfile& mine : sum.profile.lines)
        if (mine.line == line.line && mine.file == line.file) mine.counters += line.counters, found = true;
      if (!found) sum.profile.lines.push_back(line);
    }
  }
  for (const Sum& sum : sums) {
    if (sum.launches > 1) std::printf("\n%d launches of\n", sum.launches);
    std::printf("%s%s", sum.launches > 1 ? "" : "\n", to_text(sum.profile).c_str());
  }
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return;
  std::fprintf(stderr, "interpreter: cannot write to stdout: %s.\n", errno ? std::strerror(errno) : "a write failed");
  if (exit_code) return;
  std::fflush(nullptr);
  _exit(2);
}

Order order_of(const std::string& text, std::uint64_t& seed) {
  if (text == "reverse") return Order::kReverse;
  if (text.rfind("random", 0) != 0) return Order::kForward;
  if (const std::size_t colon = text.find(':'); colon != std::string::npos)
    seed = std::strtoull(text.c_str() + colon + 1, nullptr, 10);
  return Order::kRandom;
}

}  // namespace

bool load_settings() {
  options().stack_bytes = 576 * 1024;  // CUDA gives a thread up to 512 KiB of local memory, without being asked
  options().patience_seconds = 5;
  if (const char* const order = std::getenv("COURSE_INTERPRET_ORDER")) options().order = order_of(order, options().seed);
  if (const char* const gpu = std::getenv("COURSE_INTERPRET_AS")) options().gpu = find_gpu(gpu).name;
  if (std::getenv("COURSE_INTERPRET_KEEP_GOING")) KeepGoing::instance().begin();
  const bool count = std::getenv("COURSE_INTERPRET_COUNT");
  options().count = count;
  if (count) {
    profiles();  // made before, so that it is destroyed after
    on_exit(print_counters, nullptr);
  }
  return true;
}

}  // namespace interpreter::cuda_runtime

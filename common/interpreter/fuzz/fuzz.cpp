// The program that runs generated kernels.
#include "common/interpreter/fuzz/fuzz.h"

#include <cstdio>
#include <cstdlib>
#include <random>

#include "common/interpreter/interpreter.h"

namespace fuzz {
namespace {

std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

struct Order {
  interpreter::Order order;
  std::uint64_t seed;
  const char* name;
};
constexpr Order kOrders[] = {{interpreter::Order::kForward, 1, "forward"},
                             {interpreter::Order::kReverse, 1, "reverse"},
                             {interpreter::Order::kRandom, 1, "random:1"},
                             {interpreter::Order::kRandom, 7, "random:7"}};

Numbers random_numbers(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  Numbers numbers(count);
  for (uint32_t& x : numbers) x = engine();
  return numbers;
}

// What became of one run: "" if it was silent and right, "wrong result", or the check that reported, with the report in `report`.
std::string run(const Case& c, std::string& report) {
  const Numbers in = random_numbers(std::size_t{c.threads} * c.blocks, c.seed), source = random_numbers(c.source, c.seed + 1);
  Numbers expected, aux(c.aux);
  for (unsigned b = 0; b < c.blocks; ++b) {
    Numbers X(in.begin() + b * c.threads, in.begin() + (b + 1) * c.threads);
    c.serial(X, b, aux, source);
    expected.insert(expected.end(), X.begin(), X.end());
  }
  const device::Buffer<uint32_t> d_in(in, "in"), d_source(source, "source"), d_out(in.size(), "out"),
      d_aux(Numbers(std::max<std::size_t>(c.aux, 1)), "aux");
  try {
    device::launch(c.kernel, c.blocks, c.threads, 0, d_in.data(), d_out.data(), d_aux.data(), d_source.data());
  } catch (const interpreter::KernelError& e) {
    report = e.what();
    return name(e.diagnosis.check);
  }
  Numbers got = d_aux.download();
  got.resize(c.aux);
  return d_out.download() == expected && got == aux ? "" : "wrong result";
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

Registered::Registered(Case c) { cases().push_back(std::move(c)); }

int run_all(double least) {
  int right = 0, accused = 0, with_mistake = 0, caught = 0;
  for (const Case& c : cases()) {
    std::string report, bad;
    for (const Order& o : kOrders) {
      interpreter::options().order = o.order;
      interpreter::options().seed = o.seed;
      interpreter::options().hang_seconds = 5;
      const std::string outcome = run(c, report);
      interpreter::clear_profiles();
      const bool good = c.expected.empty() ? outcome.empty() : contains(c.expected, outcome);
      if (good) continue;
      bad = std::string(o.name) + ": " + (outcome.empty() ? "silent, and the right result" : outcome);
      break;
    }
    (c.expected.empty() ? right : with_mistake) += 1;
    if (bad.empty()) {
      caught += !c.expected.empty();
      continue;
    }
    accused += c.expected.empty();
    std::printf("%s kernel_%u [%s] %s\n", c.expected.empty() ? "ACCUSED" : "MISSED ", c.seed, c.what, bad.c_str());
    if (c.expected.empty() && !report.empty()) std::printf("%s\n", report.c_str());
  }
  std::printf("%d right kernels, %d of them accused or with another result; %d with a mistake, %d caught\n", right, accused,
              with_mistake, caught);
  return accused == 0 && caught >= least * with_mistake ? 0 : 1;
}

}  // namespace fuzz

int main(int argc, char** argv) { return fuzz::run_all(argc > 1 ? std::atof(argv[1]) : 1); }

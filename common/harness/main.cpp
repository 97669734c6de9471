// The program that every step is: runs the step's tiles on one problem and says whether the result is right, what the checks found
// and, on the interpreter, what was counted. tools/course calls it; so can you.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <stdexcept>
#include <string>

#include "common/device/device.cuh"
#include "common/harness/problem.h"
#ifdef COURSE_ON_INTERPRETER
#include "common/interpreter/gpus.h"
#endif

namespace harness {
namespace {

// Exit codes, as tools/course documents them.
constexpr int kVerified = 0, kWrong = 1, kBadInput = 2;

// Longer runs on the interpreter are asked about first.
[[maybe_unused]] constexpr double kPatienceSeconds = 120;

struct Arguments {
  std::int64_t m = 256, n = 256, k = 256;
  DType dtype = DType::kF32;
  bool transpose_a = false, transpose_b = false;
  std::string order = "forward";
  bool force = false;
};

struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void parse_shape(const std::string& text, Arguments& arguments) {
  std::int64_t* const extents[] = {&arguments.m, &arguments.n, &arguments.k};
  std::size_t at = 0;
  for (int i = 0; i < 3; ++i) {
    const std::size_t digits = text.find_first_not_of("0123456789", at) == std::string::npos
                                   ? text.size() - at
                                   : text.find_first_not_of("0123456789", at) - at;
    const bool ends = at + digits == text.size();
    if (digits == 0 || digits > 10 || ends != (i == 2) || (!ends && text[at + digits] != 'x'))
      throw BadInput("--shape " + text + ": expected MxNxK with three numbers of at most 10 digits, for example 256x512x128");
    *extents[i] = std::stoll(text.substr(at, digits));
    at += digits + 1;
  }
}

// C = A · B with A in m x k, B in k x n; 't': stored transposed, that is column by column.
Placement placement(std::int64_t rows, std::int64_t cols, bool transposed) {
  return transposed ? column_major(rows, cols) : row_major(rows, cols);
}

double available_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  for (std::string key; meminfo >> key;) {
    double kilobytes;
    if (key == "MemAvailable:" && meminfo >> kilobytes) return kilobytes * 1024;
  }
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Refuses what cannot fit before anything is allocated.
void check_memory(const Arguments& a) {
  const double m = static_cast<double>(a.m), n = static_cast<double>(a.n), k = static_cast<double>(a.k);
  const double elements = m * k + k * n + m * n;
  const double matrices = elements * static_cast<double>(bytes(a.dtype));
  double host = 3 * matrices + 8 * k * n + 16 * m * n;  // data, twins, patterns; the reference in double precision
#ifdef COURSE_ON_INTERPRETER
  // racecheck's cells: 40 bytes for each word, and for each byte of words that are accessed in halves.
  host += matrices * (a.dtype == DType::kF32 ? 10 : 50);
  const double device = static_cast<double>(interpreter::find_gpu(interpreter::options().gpu).dram_bytes);
  const std::string where = "the modelled GPU";
#else
  std::size_t free_bytes = 0, total_bytes = 0;
  DEVICE_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  const double device = static_cast<double>(free_bytes);
  const std::string where = "the GPU";
#endif
  const auto gigabytes = [](double b) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f GB", b / 1e9);
    return std::string(text);
  };
  if (matrices > 0.95 * device)
    throw BadInput("the matrices need " + gigabytes(matrices) + ", " + where + " has " + gigabytes(device) +
                   "; choose a smaller --shape");
  if (host > available_bytes())
    throw BadInput("this problem needs about " + gigabytes(host) + " of memory, " + gigabytes(available_bytes()) +
                   " are available; choose a smaller --shape");
}

struct Problem {
  TestMatrix A, B, C;

  Problem(const Arguments& a, DType out)
      : A("A", a.dtype, placement(a.m, a.k, a.transpose_a)),
        B("B", a.dtype, placement(a.k, a.n, a.transpose_b)),
        C("C", out, row_major(a.m, a.n)) {
    std::mt19937_64 random(0);
    std::normal_distribution<double> normal;
    const auto value = [&](std::int64_t, std::int64_t) { return normal(random); };
    A.fill(value);
    B.fill(value);
    C.poison();
  }
};

double seconds_of(const Variant& v, const Problem& p) {
  const auto begin = std::chrono::steady_clock::now();
  v.gemm(p.A.view(), p.B.view(), p.C.view());
  device::synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

#ifdef COURSE_ON_INTERPRETER
void set_order(const std::string& order) {
  auto& options = interpreter::options();
  if (order == "forward")
    options.order = interpreter::Order::kForward;
  else if (order == "reverse")
    options.order = interpreter::Order::kReverse;
  else if (order.starts_with("random")) {
    options.order = interpreter::Order::kRandom;
    const std::string seed = order.size() > 6 && order[6] == ':' ? order.substr(7) : order.size() == 6 ? "1" : "";
    if (seed.empty() || seed.size() > 18 || seed.find_first_not_of("0123456789") != std::string::npos)
      throw BadInput("--order " + order + ": expected forward, reverse, random or random:SEED");
    options.seed = std::stoull(seed);
  } else {
    throw BadInput("--order " + order + ": expected forward, reverse, random or random:SEED");
  }
}

// Seconds that the problem will take: from a small one, as work grows with m n k.
double estimate(const Variant& v, const Arguments& a) {
  Arguments small = a;
  small.m = std::min<std::int64_t>(a.m, 128), small.n = std::min<std::int64_t>(a.n, 128), small.k = std::min<std::int64_t>(a.k, 64);
  const double work = static_cast<double>(a.m) * static_cast<double>(a.n) * static_cast<double>(a.k);
  const double small_work = static_cast<double>(small.m) * static_cast<double>(small.n) * static_cast<double>(small.k);
  if (small_work == 0 || small_work == work) return 0;
  const Problem problem(small, v.out);
  const double seconds = seconds_of(v, problem);
  interpreter::clear_profiles();
  return seconds * work / small_work;
}

void show_progress(double fraction) {
  std::fprintf(stderr, "\r  %3.0f %%", 100 * fraction);
  if (fraction >= 1) std::fprintf(stderr, "\r       \r");
  std::fflush(stderr);
}
#endif

// Rows whose elements are compared: all, or a sample that holds the edges where checking all would take minutes.
std::vector<std::int64_t> rows_to_check(const Arguments& a) {
  constexpr double kMaxWork = 4e9;
  const double row_work = std::max(1.0, static_cast<double>(a.n) * static_cast<double>(a.k));
  const auto count = static_cast<std::int64_t>(std::clamp(kMaxWork / row_work, 16.0, 1e9));
  if (count >= a.m) return {};
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(i * (a.m - 1) / (count - 1));
  return rows;
}

int run(const Arguments& a) {
  check_memory(a);
  std::vector<const Variant*> variants;
  for (const Variant& v : this_step().variants)
    if (v.in == a.dtype && v.out == a.dtype) variants.push_back(&v);

  std::printf("%s  m=%lld n=%lld k=%lld %s %c%c", this_step().name.c_str(), static_cast<long long>(a.m),
              static_cast<long long>(a.n), static_cast<long long>(a.k), std::string(name(a.dtype)).c_str(),
              a.transpose_a ? 't' : 'n', a.transpose_b ? 't' : 'n');
#ifdef COURSE_ON_INTERPRETER
  set_order(a.order);
  std::printf(", interpreter, %s order\n", a.order.c_str());
  double total = 0;
  for (const Variant* v : variants) total += estimate(*v, a);
  if (total > kPatienceSeconds && !a.force)
    throw BadInput("this would take about " + std::to_string(static_cast<long long>(total / 60 + 1)) +
                   " minutes on the interpreter; choose a smaller --shape, or add --force");
  if (isatty(STDERR_FILENO)) interpreter::options().progress = show_progress;
#else
  cudaDeviceProp properties{};
  DEVICE_CHECK(cudaGetDeviceProperties(&properties, 0));
  std::printf(", %s\n", properties.name);
#endif
  std::fflush(stdout);

  Problem problem(a, a.dtype);
  const std::vector<std::int64_t> rows = rows_to_check(a);
  const Reference reference(problem.A, problem.B, rows);
  int result = kVerified;
  for (const Variant* v : variants) {
    problem.C.poison();
    std::string wrong;
    [[maybe_unused]] double seconds = 0;
    try {
      seconds = seconds_of(*v, problem);
      wrong = problem.C.fetch();
      if (wrong.empty()) wrong = reference.compare(problem.C, false);
      if (wrong.empty()) wrong = problem.A.changed();
      if (wrong.empty()) wrong = problem.B.changed();
#ifdef COURSE_ON_INTERPRETER
    } catch (const interpreter::KernelError& e) {
      wrong = e.what();
#endif
    } catch (const device::Error& e) {
      wrong = e.what();
    }
    if (!wrong.empty()) {
      std::printf("\n%s: WRONG\n%s\n", v->tile.c_str(), wrong.c_str());
      result = kWrong;
      continue;
    }
    std::printf("\n%s: verified", v->tile.c_str());
    if (!rows.empty()) std::printf(" (%zu of %lld rows)", rows.size(), static_cast<long long>(a.m));
#ifdef COURSE_ON_INTERPRETER
    std::printf("; no error found by memcheck, racecheck, initcheck, synccheck; %.2f s\n", seconds);
    if (!interpreter::profiles().empty()) std::printf("%s", to_text(interpreter::profiles().back()).c_str());
    interpreter::clear_profiles();
#else
    std::printf("\n");
#endif
    std::fflush(stdout);
  }
  return result;
}

}  // namespace
}  // namespace harness

int main(int argc, char** argv) {
  using namespace harness;
  CLI::App app("Step " + this_step().name + ": runs its kernels on one problem, C = A * B, and verifies the result.");
  Arguments arguments;
  std::string shape = "256x256x256", dtype = "f32", layout = "nn";
  app.add_option("--shape", shape, "MxNxK: C is M x N, K is the common dimension")->capture_default_str();
  const std::map<std::string, DType> dtypes = {
      {"f32", DType::kF32}, {"fp32", DType::kF32}, {"f16", DType::kF16}, {"fp16", DType::kF16}, {"bf16", DType::kBF16}};
  app.add_option("--dtype", dtype, "element type of A, B and C: f32, f16 or bf16 (fp32, fp16 mean the same)")
      ->capture_default_str();
  app.add_option("--layout", layout, "nn, nt, tn or tt: n is row-major, t is column-major; A first")->capture_default_str();
  app.add_option("--order", arguments.order, "interpreter: forward, reverse, random or random:SEED")->capture_default_str();
  app.add_flag("--force", arguments.force, "interpreter: run even if it takes more than two minutes");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kVerified : kBadInput;
  }
  try {
    parse_shape(shape, arguments);
    if (!dtypes.contains(dtype)) throw BadInput("--dtype " + dtype + ": expected f32, f16 or bf16");
    arguments.dtype = dtypes.at(dtype);
    if (layout != "nn" && layout != "nt" && layout != "tn" && layout != "tt")
      throw BadInput("--layout " + layout + ": expected nn, nt, tn or tt");
    arguments.transpose_a = layout[0] == 't', arguments.transpose_b = layout[1] == 't';
    return run(arguments);
  } catch (const BadInput& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", this_step().name.c_str(), e.what());
    return kBadInput;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: out of memory; choose a smaller --shape\n", this_step().name.c_str());
    return kBadInput;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", this_step().name.c_str(), e.what());
    return kWrong;
  }
}

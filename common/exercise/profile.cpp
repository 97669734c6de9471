#include "common/exercise/profile.h"

#ifdef COURSE_ON_INTERPRETER
#include <cmath>
#include <fstream>
#include <string_view>
#include <utility>

#include "common/harness/program/text.h"
#include "common/interpreter/count/counters.h"
#include "common/interpreter/count/gpus.h"
#else
#include <cuda_profiler_api.h>

#include "common/device/device.cuh"
#endif

namespace exercise {
namespace {

std::string asked_for;  // empty: nobody wants a profile

}  // namespace

#ifdef COURSE_ON_INTERPRETER
// JSON is written by hand: to compile a library for it would take longer than the rest of the coach, before anybody's first check.
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return result + '"';
}

std::string number(double x) { return std::isfinite(x) ? harness::formatted("%.17g", x) : "null"; }

using Numbers = std::vector<std::pair<std::string, double>>;

std::string object(const Numbers& numbers) {
  std::string text;
  for (const auto& [name, value] : numbers) text += (text.empty() ? "" : ", ") + quoted(name) + ": " + number(value);
  return "{" + text + "}";
}

struct Problem {
  std::string words, fields, launches;
  Numbers allowed = {};
};

std::vector<Problem> problems;

}  // namespace

void profile_to(const std::string& where) {
  asked_for = where;
  interpreter::options().l2_model = true;
}

void add_to_profile(const Subject& s, const std::vector<interpreter::KernelProfile>& launches) {
  if (asked_for.empty()) return;
  std::string of_launches;
  for (const interpreter::KernelProfile& launch : launches) {
    Numbers counters;
    for (const interpreter::Metric& metric : interpreter::metrics(launch)) counters.emplace_back(metric.name, metric.value);
    of_launches += (of_launches.empty() ? "" : ",\n    ") + ("{\"kernel\": " + quoted(launch.kernel)) +
                   ", \"counters\": " + object(counters) + "}";
  }
  const std::string fields =
      harness::formatted("\"heads\": %lld, \"m\": %lld, \"n\": %lld, \"k\": %lld", static_cast<long long>(s.heads),
                         static_cast<long long>(s.m), static_cast<long long>(s.n), static_cast<long long>(s.k));
  const std::string types = ", \"in\": " + quoted(harness::name(s.in)) + ", \"out\": " + quoted(harness::name(s.out));
  problems.push_back({s.words, fields + types, of_launches});
}

void add_to_profile(const std::string& words, const std::string& row, double bound) {
  for (Problem& problem : problems)
    if (problem.words == words && !row.empty()) problem.allowed.emplace_back(row, bound);
}

void write_profile() {
  if (asked_for.empty()) return;
  const interpreter::Gpu& gpu = interpreter::find_gpu(interpreter::options().gpu);
  std::ofstream out(asked_for);
  out << "{\"gpu\": {\"name\": " << quoted(gpu.title) << ", \"multiprocessors\": " << gpu.multiprocessors
      << ", \"l2_bytes\": " << number(static_cast<double>(gpu.l2_bytes)) << "},\n\"ceilings\": "
      << object({{"copy_bytes_per_second", gpu.dram_bytes_per_second},
                 {"fma_f32_flops", gpu.fma_flops()},
                 {"mma_f16_flops", gpu.tensor_flops},
                 {"mma_bf16_flops", gpu.tensor_flops}})
      << ",\n\"problems\": [";
  for (const Problem& problem : problems)
    out << (&problem == problems.data() ? "\n" : ",\n") << "  {\"words\": " << quoted(problem.words) << ", " << problem.fields
        << ", \"allowed\": " << object(problem.allowed) << ", \"launches\": [" << problem.launches << "]}";
  out << "]}\n";
}

void call_in_sight(const Subject&, const std::function<void()>& body) { body(); }
#else
void profile_to(const std::string& where) { asked_for = where; }
void add_to_profile(const Subject&, const std::vector<interpreter::KernelProfile>&) {}
void add_to_profile(const std::string&, const std::string&, double) {}
void write_profile() {}

void call_in_sight(const Subject& subject, const std::function<void()>& body) {
  if (subject.words != asked_for) return body();
  DEVICE_CHECK(cudaProfilerStart());
  body();
  device::synchronize();
  DEVICE_CHECK(cudaProfilerStop());
  throw Seen();
}
#endif

}  // namespace exercise

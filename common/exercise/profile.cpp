#include "common/exercise/profile.h"

#ifdef COURSE_ON_INTERPRETER
#include <fstream>
#include <nlohmann/json.hpp>

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
namespace {
nlohmann::ordered_json problems = nlohmann::ordered_json::array();
}

void profile_to(const std::string& where) {
  asked_for = where;
  interpreter::options().l2_model = true;
}

void add_to_profile(const Subject& s, const std::vector<interpreter::KernelProfile>& launches) {
  if (asked_for.empty()) return;
  nlohmann::ordered_json of_launches = nlohmann::ordered_json::array();
  for (const interpreter::KernelProfile& launch : launches) {
    nlohmann::ordered_json counters;
    for (const interpreter::Metric& metric : interpreter::metrics(launch)) counters[metric.name] = metric.value;
    of_launches.push_back({{"kernel", launch.kernel}, {"counters", counters}});
  }
  problems.push_back({{"words", s.words},
                      {"heads", s.heads},
                      {"m", s.m},
                      {"n", s.n},
                      {"k", s.k},
                      {"in", harness::name(s.in)},
                      {"out", harness::name(s.out)},
                      {"allowed", nlohmann::ordered_json::object()},
                      {"launches", of_launches}});
}

void add_to_profile(const std::string& words, const std::string& row, double bound) {
  for (nlohmann::ordered_json& problem : problems)
    if (problem["words"] == words && !row.empty()) problem["allowed"][row] = bound;
}

void write_profile() {
  if (asked_for.empty()) return;
  const interpreter::Gpu& gpu = interpreter::find_gpu(interpreter::options().gpu);
  const nlohmann::ordered_json document = {
      {"gpu", {{"name", gpu.title}, {"multiprocessors", gpu.multiprocessors}, {"l2_bytes", gpu.l2_bytes}}},
      {"ceilings",
       {{"copy_bytes_per_second", gpu.dram_bytes_per_second},
        {"fma_f32_flops", gpu.fma_flops()},
        {"mma_f16_flops", gpu.tensor_flops},
        {"mma_bf16_flops", gpu.tensor_flops}}},
      {"problems", problems}};
  std::ofstream(asked_for) << document.dump(1) << '\n';
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

#include <algorithm>

#include "common/harness/program/step.h"

namespace harness {
namespace {

std::string with_point(int capability) { return std::to_string(capability / 10) + "." + std::to_string(capability % 10); }

// Whether a GPU runs what was compiled for an architecture: "90a-real", without "-real" with code for later GPUs in it, which the
// driver compiles. CUDA C++ Programming Guide, "Application Compatibility": machine code runs on the same major version, from its
// own minor one on.
bool runs_on(const std::string& architecture, int capability) {
  std::size_t end = 0;
  const int number = std::stoi(architecture, &end);
  const char kind = end < architecture.size() ? architecture[end] : '-';
  if (kind == 'a') return capability == number;
  if (capability / 10 == number / 10) return capability >= number;
  return kind != 'f' && !architecture.ends_with("-real") && capability > number;
}

}  // namespace

Availability availability(const Step& step, const std::string& gpu, int capability) {
  const Needs& needs = step.needs;
  if (needs.capability.empty()) return {};
  if (needs.only() ? capability != needs.least() : capability < needs.least())
    return {"needs compute capability " + with_point(needs.least()) + (needs.only() ? ", no other" : " or higher") +
                (needs.what.empty() ? "" : ": " + needs.what) + ". This GPU, " + gpu + ", has " + with_point(capability) +
                ". Run it on the interpreter: tools/course run " + step.name + " --on interpreter",
            false};
  const auto runs_here = [&](const std::string& architecture) { return runs_on(architecture, capability); };
  if (std::any_of(step.architectures.begin(), step.architectures.end(), runs_here)) return {};
  std::string built;
  for (const std::string& each : step.architectures) built += (built.empty() ? "" : ";") + each;
  return {"is not built for this GPU, " + gpu + " of compute capability " + with_point(capability) +
          (built.empty() ? "" : ", but for " + built) + ". Build it with COURSE_GPU_ARCHITECTURES=native"};
}

}  // namespace harness

#include <algorithm>

#include "common/harness/program/step.h"

namespace harness {
namespace {

std::string with_point(int capability) { return std::to_string(capability / 10) + "." + std::to_string(capability % 10); }

// "90a-real" in parts: 90, 'a', and whether there is code for later GPUs in it, which the driver compiles.
struct Architecture {
  explicit Architecture(const std::string& text) {
    std::size_t end = 0;
    number = std::stoi(text, &end);
    if (end < text.size() && text[end] != '-') kind = text[end];
    has_later = !text.ends_with("-real");
  }
  // CUDA C++ Programming Guide, "Application Compatibility": machine code runs on the same major version, from its own minor one
  // on.
  bool runs_on(int capability) const {
    if (kind == 'a') return capability == number;
    if (capability / 10 == number / 10) return capability >= number;
    return kind != 'f' && has_later && capability > number;
  }
  int number;
  char kind = ' ';
  bool has_later;
};

bool has_what_it_needs(const Needs& needs, int capability) {
  return needs.only() ? capability == needs.least() : capability >= needs.least();
}

}  // namespace

Availability availability(const Step& step, const std::string& gpu, int capability) {
  const Needs& needs = step.needs;
  if (needs.capability.empty()) return {};
  if (!has_what_it_needs(needs, capability))
    return {"needs compute capability " + with_point(needs.least()) + (needs.only() ? ", no other" : " or higher") +
                (needs.what.empty() ? "" : ": " + needs.what) + ". This GPU, " + gpu + ", has " + with_point(capability) +
                ". Run it on the interpreter: tools/course run " + step.name + " --on interpreter",
            false};
  const auto runs_here = [&](const std::string& text) { return Architecture(text).runs_on(capability); };
  if (std::any_of(step.architectures.begin(), step.architectures.end(), runs_here)) return {};
  std::string built;
  for (const std::string& each : step.architectures) built += (built.empty() ? "" : ";") + each;
  return {"is not built for this GPU, " + gpu + " of compute capability " + with_point(capability) +
          (built.empty() ? "" : ", but for " + built) + ". Build it with COURSE_GPU_ARCHITECTURES=native"};
}

}  // namespace harness

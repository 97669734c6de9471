// A step's tests: main() leaves them out, and says why, where the step cannot run.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "common/harness/measure/backend.h"

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;  // as in tools/cmake/course.cmake
  // Without a GPU, or built for another one, nothing is skipped: all tests would be.
  const harness::Step& step = harness::this_step();
  const harness::Availability found = harness::availability(step);
  if (!found.why_not.empty() && (!found.gpu_is_able || step.architectures.empty())) {
    std::printf("%s: %s\n", step.name.c_str(), found.why_not.c_str());
    return kSkipped;
  }
  return doctest::Context(argc, argv).run();
}

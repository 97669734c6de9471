#include <doctest/doctest.h>

#include "common/harness/program/step.h"

using harness::availability, harness::Step;

namespace {

Step step(const char* capability, std::vector<std::string> architectures) {
  Step made{"10_wgmma", {}};
  made.needs = {capability, "wgmma"};
  made.architectures = std::move(architectures);
  return made;
}

bool runs(const Step& s, int capability) { return availability(s, "a GPU", capability).why_not.empty(); }

}  // namespace

TEST_CASE("a GPU that has what a step needs, and one that has not") {
  // As tools/command/tests/test_needs.py has it.
  CHECK(availability(step("90a", {"90a-real"}), "NVIDIA A100", 80).why_not ==
        "needs compute capability 9.0, no other: wgmma. This GPU, NVIDIA A100, has 8.0. Run it on the interpreter: "
        "tools/course run 10_wgmma --on interpreter");
  CHECK(availability(step("80", {"80-real"}), "Tesla T4", 75).why_not ==
        "needs compute capability 8.0 or higher: wgmma. This GPU, Tesla T4, has 7.5. Run it on the interpreter: "
        "tools/course run 10_wgmma --on interpreter");
  CHECK(!availability(step("80", {}), "Tesla T4", 75).gpu_is_able);
  CHECK(runs(step("90a", {"90a-real"}), 90));
  for (const int other : {75, 80, 89, 100, 120}) CHECK(!runs(step("90a", {"90a-real", "75"}), other));
  for (const int later : {90, 100, 120}) CHECK(runs(step("90", {"90"}), later));
  CHECK(!runs(step("90", {"80"}), 89));
  CHECK(runs(step("", {}), 10));  // nothing is known of it
}

TEST_CASE("a GPU that the build has nothing for") {
  CHECK(availability(step("80", {"80-real", "90a-real"}), "B200", 100).why_not ==
        "is not built for this GPU, B200 of compute capability 10.0, but for 80-real;90a-real. Build it with "
        "COURSE_GPU_ARCHITECTURES=native");
  CHECK(availability(step("80", {"80-real"}), "B200", 100).gpu_is_able);
  CHECK(availability(step("90a", {}), "NVIDIA H200", 90).why_not.find("is not built for this GPU, NVIDIA H200 of") == 0);
  CHECK(runs(step("80", {"80-real"}), 89));
  CHECK(!runs(step("75", {"80-real"}), 75));
  CHECK(!runs(step("80", {"89-real"}), 86));
  CHECK(runs(step("80", {"80"}), 120));          // compiled by the driver
  CHECK(runs(step("80", {"80-virtual"}), 120));  // likewise
  CHECK(!runs(step("80", {"90a"}), 100));
  CHECK(runs(step("80", {"100f-real"}), 103));
  CHECK(!runs(step("80", {"100f"}), 120));
}

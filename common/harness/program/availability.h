/// @file
/// Whether a GPU can run a step.
#pragma once

#include <string>

#include "common/harness/program/step.h"

namespace harness {

/// What a step's program and its test do about a GPU.
struct Availability {
  std::string why_not{};    ///< and what to do instead, behind the step's name and a colon; empty if it can run
  bool gpu_is_able = true;  ///< and only the build is for another one
};

/// @param gpu its name  @param capability its compute capability: 80 is 8.0
Availability availability(const Step& step, const std::string& gpu, int capability);

}  // namespace harness

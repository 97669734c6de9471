/// @file
/// The GPU at hand: what it can run, what the compiler made of a kernel for it, and how long launches take on it.
#pragma once

#include <functional>
#include <vector>

#include "common/harness/tuning/tuning_model.h"

#ifdef COURSE_ON_INTERPRETER
namespace interpreter {
struct Gpu;
}
#endif

namespace harness {

/// Of the current device, with typical rates: nothing is measured, nothing waits for the GPU. On the interpreter, of the GPU that
/// it models. @throws device::Error when there is no GPU
GpuLimits limits_here();

#ifdef COURSE_ON_INTERPRETER
/// Those of a GPU that the interpreter models.
GpuLimits limits_of(const interpreter::Gpu& gpu);
#else
/// Of the kernel that `launcher`, a call of a step's launcher, would start: it is called, but nothing is started.
KernelResources resources_of(const std::function<void()>& launcher);
/// Seconds of one launch of each, all timed in the same rounds as timing.h says, in a twentieth of a second each.
std::vector<double> seconds_of(const std::vector<std::function<void()>>& launchers);
#endif

}  // namespace harness

/// @file
/// Launches that depend on each other, for common/device/dependent_launch.cuh. Not inline, so that the return address names the
/// place in the kernel.
#pragma once

namespace interpreter {

void griddepcontrol_wait();
void griddepcontrol_launch_dependents();

}  // namespace interpreter

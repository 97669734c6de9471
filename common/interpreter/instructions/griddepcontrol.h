/// @file
/// Launches that depend on each other, for common/device/dependent_launch.cuh. Not inline, so that the return address names the
/// place in the kernel.
#pragma once

namespace interpreter {

/// Waits for the launches before this one, see checks/dependence.h.
void griddepcontrol_wait();
/// A hint. Launches run one after the other here, so it has no effect.
void griddepcontrol_launch_dependents();

}  // namespace interpreter

/// @name The same by the names of CUDA's device runtime
/// @{
inline void cudaGridDependencySynchronize() { interpreter::griddepcontrol_wait(); }
inline void cudaTriggerProgrammaticLaunchCompletion() { interpreter::griddepcontrol_launch_dependents(); }
/// @}

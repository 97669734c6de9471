/// @file
/// Launches that begin before the one before them has ended; compute capability 9.0. One function for each PTX instruction, named
/// as the instruction. device::launch_dependent() starts them.
#pragma once

#include "common/device/device.cuh"

namespace device {

/// @name Launches that depend on each other (PTX ISA, "griddepcontrol"; Programming Guide, "Programmatic Dependent Launch")
/// In a kernel that was launched ordinarily, the wait returns at once; and without a dependent launch behind it, the hint does
/// nothing.
/// @{

/// Waits until all launches before this one have ended, and what they wrote is seen by this thread. It says nothing of other
/// threads: they wait too, or meet this one at a barrier.
__device__ __forceinline__ void griddepcontrol_wait() {
#ifdef __CUDACC__
  asm volatile("griddepcontrol.wait;" ::: "memory");
#else
  interpreter::griddepcontrol_wait();
#endif
}
/// The next launch may begin once each block has said so, or has ended. It is a hint, and no data is passed on by it.
__device__ __forceinline__ void griddepcontrol_launch_dependents() {
#ifdef __CUDACC__
  asm volatile("griddepcontrol.launch_dependents;");
#else
  interpreter::griddepcontrol_launch_dependents();
#endif
}
/// @}

}  // namespace device

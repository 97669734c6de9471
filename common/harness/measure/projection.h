/// @file
/// From the interpreter's counters to the rate that a GPU may reach. An estimate; docs/roofline.md says what it leaves out.
#pragma once

#include "common/harness/problem/problem.h"
#include "common/interpreter/count/gpus.h"
#include "common/interpreter/interpreter.h"

namespace harness {

/// Operations per second of `gpu` on problems like this one that are large enough to fill it.
///
/// An SM issues a multiply-add or a memory instruction for 128 lanes per clock (4 schedulers; 64 multiply-adds on GPUs that have
/// half as many), its tensor cores do as much as mma.sync gets out of them, and its L1 cache and shared memory take one pass of 128
/// bytes per clock. These hardly overlap in kernels like the course's, so their clocks are added:
///
///     clocks = (operations / rate) + (memory instructions / 4) + lines of global accesses + shared-memory wavefronts
///
/// Not in it: conversions, addresses, branches, waiting for L2 and device memory.
double projected_flops_per_second(const Spec& spec, const interpreter::Counters& counters, const interpreter::Gpu& gpu);

}  // namespace harness

/// @file
/// Barriers for some of a block's warps, for common/device/mbarrier.cuh. Not inline, so that the return address names the place in
/// the kernel.
#pragma once

namespace interpreter {

/// @param waits barrier.sync, else barrier.arrive
void named_barrier(unsigned number, unsigned threads, bool waits);

}  // namespace interpreter

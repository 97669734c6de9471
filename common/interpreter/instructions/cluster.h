/// @file
/// Clusters, for common/device/cluster.cuh. Not inline, so that the return address names the place in the kernel.
#pragma once

#include <vector_types.h>

#include <cstdint>

namespace interpreter {

dim3 cluster_dimensions();
unsigned cluster_rank();  ///< of the block
unsigned cluster_size();  ///< in blocks
void cluster_barrier_arrive();
/// Publishes nothing but mbarriers, and these only where the thread has said fence_mbarrier_init() since its last arrival.
void cluster_barrier_arrive_relaxed();
void cluster_barrier_wait();
/// The same place in the shared memory of the block `rank`.
void* mapa(const volatile void* shared, unsigned rank);
/// Stores the bytes in the background, and says them to the mbarrier: both lie in the shared memory of the same block.
/// @param bytes 4, 8 or 16
void st_async(void* shared, const void* value, unsigned bytes, std::uint64_t* barrier);
/// Whose shared memory holds it.
unsigned cluster_rank_of(const volatile void* shared);

}  // namespace interpreter

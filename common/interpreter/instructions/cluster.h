/// @file
/// Clusters, for common/device/cluster.cuh. Not inline, so that the return address names the place in the kernel.
#pragma once

#include <vector_types.h>

namespace interpreter {

dim3 cluster_dimensions();
unsigned cluster_rank();  ///< of the block
unsigned cluster_size();  ///< in blocks
void cluster_barrier_arrive();
void cluster_barrier_wait();
/// The same place in the shared memory of the block `rank`.
void* mapa(const volatile void* shared, unsigned rank);
/// Whose shared memory holds it.
unsigned cluster_rank_of(const volatile void* shared);

}  // namespace interpreter

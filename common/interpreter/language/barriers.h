/// @file
/// What CUDA's own headers are made of: named barriers and clusters. Inlined, so that reports name the kernel's line.
#pragma once

#include "common/interpreter/instructions/cluster.h"
#include "common/interpreter/instructions/named_barriers.h"

[[gnu::always_inline]] inline void __barrier_sync_count(unsigned number, unsigned threads) {
  interpreter::named_barrier(number, threads, true);
}
/// Of all threads of the block.
[[gnu::always_inline]] inline void __barrier_sync(unsigned number) {
  const dim3 block = interpreter::block_dimensions();
  if (number == 0)
    __syncthreads();
  else
    __barrier_sync_count(number, (block.x * block.y * block.z + 31) / 32 * 32);
}

[[gnu::always_inline]] inline void __cluster_barrier_arrive() { interpreter::cluster_barrier_arrive(); }
/// With a fence before it, which is how it is used, it publishes as the other one does.
[[gnu::always_inline]] inline void __cluster_barrier_arrive_relaxed() { interpreter::cluster_barrier_arrive(); }
[[gnu::always_inline]] inline void __cluster_barrier_wait() { interpreter::cluster_barrier_wait(); }
[[gnu::always_inline]] inline unsigned __cluster_query_shared_rank(const void* shared) {
  return interpreter::cluster_rank_of(shared);
}
[[gnu::always_inline]] inline void* __cluster_map_shared_rank(const void* shared, unsigned rank) {
  return interpreter::mapa(shared, rank);
}
[[gnu::always_inline]] inline dim3 __clusterDim() { return interpreter::cluster_dimensions(); }
/// Where a launch says no size, each block is a cluster of its own.
[[gnu::always_inline]] inline unsigned __clusterDimIsSpecified() { return interpreter::cluster_size() > 1; }
[[gnu::always_inline]] inline unsigned __clusterSizeInBlocks() { return interpreter::cluster_size(); }
[[gnu::always_inline]] inline unsigned __clusterRelativeBlockRank() { return interpreter::cluster_rank(); }
[[gnu::always_inline]] inline dim3 __clusterRelativeBlockIdx() {
  const dim3 c = interpreter::cluster_dimensions();
  return {blockIdx.x % c.x, blockIdx.y % c.y, blockIdx.z % c.z};
}
[[gnu::always_inline]] inline dim3 __clusterIdx() {
  const dim3 c = interpreter::cluster_dimensions();
  return {blockIdx.x / c.x, blockIdx.y / c.y, blockIdx.z / c.z};
}
[[gnu::always_inline]] inline dim3 __clusterGridDimInClusters() {
  const dim3 c = interpreter::cluster_dimensions();
  return {gridDim.x / c.x, gridDim.y / c.y, gridDim.z / c.z};
}

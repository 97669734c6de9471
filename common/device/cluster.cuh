/// @file
/// Clusters: blocks that run at the same time on neighbouring SMs and reach each other's shared memory; compute capability 9.0. One
/// function for each PTX instruction, named as the instruction. On the interpreter each does what the PTX ISA manual says, under
/// its checks.
///
/// device::launch_clusters() starts them. What else works between blocks: cp_async_bulk_tensor_2d_multicast() in bulk_copy.cuh, and
/// mbarrier_arrive_cluster() in mbarrier.cuh.
#pragma once

#include "common/device/ptx.cuh"

namespace device {

/// @name Which block of the cluster this is (PTX ISA, "Special Registers")
/// A block of a launch without clusters is a cluster of its own.
/// @{

/// The block's rank in its cluster, x first, then y, then z.
__device__ __forceinline__ uint32_t cluster_ctarank() {
#ifdef __CUDACC__
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
#else
  return interpreter::cluster_rank();
#endif
}
/// How many blocks the cluster has.
__device__ __forceinline__ uint32_t cluster_nctarank() {
#ifdef __CUDACC__
  uint32_t blocks;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  return blocks;
#else
  return interpreter::cluster_size();
#endif
}
/// @}

/// @name The barrier of all threads of the cluster (PTX ISA, "barrier.cluster")
/// A thread arrives, and later waits, once in each phase. What any thread of the cluster did before it arrived is seen by all who
/// have waited: by default the first says `.release`, the other `.acquire`, for the cluster. Threads that have ended are not waited
/// for.
///
/// A block's shared memory exists from its start to its end. So a cluster begins with this barrier, before anybody uses another
/// block's mbarriers, and ends with it where others might still use a block's memory.
/// @{

/// Arrives, and goes on.
__device__ __forceinline__ void barrier_cluster_arrive() {
#ifdef __CUDACC__
  asm volatile("barrier.cluster.arrive;" ::: "memory");
#else
  interpreter::cluster_barrier_arrive();
#endif
}
/// Waits until all threads of the cluster have arrived.
__device__ __forceinline__ void barrier_cluster_wait() {
#ifdef __CUDACC__
  asm volatile("barrier.cluster.wait;" ::: "memory");
#else
  interpreter::cluster_barrier_wait();
#endif
}
/// @}

/// The same place in the shared memory of the block `rank`: an address for loads, stores and atomics (PTX ISA, "mapa").
template <class T>
__device__ __forceinline__ T* mapa(T* shared, uint32_t rank) {
#ifdef __CUDACC__
  uint64_t there;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(shared), "r"(rank));
  return reinterpret_cast<T*>(there);
#else
  return static_cast<T*>(interpreter::mapa(shared, rank));
#endif
}

}  // namespace device

/// @file
/// Clusters: blocks that run at the same time on neighbouring SMs and reach each other's shared memory; compute capability 9.0. One
/// function for each PTX instruction, named as the instruction. On the interpreter each does what the PTX ISA manual says, under
/// its checks.
///
/// device::launch_clusters() starts them. What else works between blocks: cp_async_bulk_tensor_2d_multicast() in bulk_copy.cuh, and
/// mbarrier_arrive_cluster() in mbarrier.cuh.
#pragma once

#include "common/device/mbarrier.cuh"

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
/// The same, but of what this thread did before, only that mbarriers are initialised is seen, if it has said fence_mbarrier_init()
/// since (`.relaxed`). The other one waits for all that the thread has under way, which takes some 600 clocks on an H200.
__device__ __forceinline__ void barrier_cluster_arrive_relaxed() {
#ifdef __CUDACC__
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#else
  interpreter::cluster_barrier_arrive_relaxed();
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

#ifdef __CUDACC__
namespace detail {
/// The same place in the block `rank`, as an address of the cluster's shared memory.
__device__ __forceinline__ uint32_t mapa_shared(const void* shared, uint32_t rank) {
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(shared)), "r"(rank));
  return there;
}
}  // namespace detail
#endif
/// What one access loads or stores.
template <int N>
struct alignas(4 * N) Floats {
  float x[N];
};
/// Stores N floats in the background at the same place in the block `rank`, and says their bytes to the mbarrier at the same place
/// there (PTX ISA, "st.async"). That block expects them, as those of a copy: who has waited for the phase with
/// mbarrier_wait_parity_acquire_cluster() sees what was stored. Until then it keeps the place free, and does not end.
template <int N>
__device__ __forceinline__ void st_async(Floats<N>* shared, const float (&x)[N], Mbarrier* barrier, uint32_t rank) {
  static_assert(N == 1 || N == 2 || N == 4, "one store has 4, 8 or 16 bytes, and its address is a multiple of them");
#ifdef __CUDACC__
  const uint32_t there = detail::mapa_shared(shared, rank), bar = detail::mapa_shared(barrier, rank);
  if constexpr (N == 1)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(there), "f"(x[0]), "r"(bar)
                 : "memory");
  else if constexpr (N == 2)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(there), "f"(x[0]),
                 "f"(x[1]), "r"(bar)
                 : "memory");
  else
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(there),
                 "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "r"(bar)
                 : "memory");
#else
  interpreter::st_async(mapa(shared, rank), x, sizeof x, mapa(barrier, rank));
#endif
}

}  // namespace device

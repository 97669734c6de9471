/// @file
/// mbarriers: barriers in shared memory that count arrivals and the bytes of bulk copies; compute capability 9.0. One function for
/// each PTX instruction, named as the instruction. On the interpreter each does what the PTX ISA manual says, under its checks.
#pragma once

#include "common/device/ptx.cuh"

namespace device {

/// @name Barriers in shared memory (PTX ISA, "mbarrier")
/// A barrier goes from phase to phase. Its current phase ends when as many arrivals have come as mbarrier_init() says, and as many
/// bytes as the expect_tx of this phase say. Then the next one begins, with all arrivals still to come. A phase is waited for by
/// its parity, that of its number; the one before the first has parity 1, and is over.
///
/// What a thread did before it arrived, and what a copy wrote that completed there, is seen by whoever has waited for that phase.
/// @{

/// In shared memory, aligned to 8 bytes.
using Mbarrier = uint64_t;

/// By one thread, before all others; then fence_mbarrier_init() by that thread, and __syncthreads().
__device__ __forceinline__ void mbarrier_init(Mbarrier* barrier, uint32_t arrivals) {
#ifdef __CUDACC__
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(detail::shared_address(barrier)), "r"(arrivals) : "memory");
#else
  interpreter::mbarrier_init(barrier, arrivals);
#endif
}
/// Makes ordinary memory of it, for something else.
__device__ __forceinline__ void mbarrier_inval(Mbarrier* barrier) {
#ifdef __CUDACC__
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(detail::shared_address(barrier)) : "memory");
#else
  interpreter::mbarrier_inval(barrier);
#endif
}
/// `count` of the phase's arrivals.
__device__ __forceinline__ void mbarrier_arrive(Mbarrier* barrier, uint32_t count = 1) {
#ifdef __CUDACC__
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(detail::shared_address(barrier)), "r"(count) : "memory");
#else
  interpreter::mbarrier_arrive(barrier, count);
#endif
}
/// The current phase lacks `bytes` more.
__device__ __forceinline__ void mbarrier_expect_tx(Mbarrier* barrier, uint32_t bytes) {
#ifdef __CUDACC__
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(detail::shared_address(barrier)), "r"(bytes)
               : "memory");
#else
  interpreter::mbarrier_expect_tx(barrier, bytes);
#endif
}
/// The same, then one arrival.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(Mbarrier* barrier, uint32_t bytes) {
#ifdef __CUDACC__
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(detail::shared_address(barrier)), "r"(bytes)
               : "memory");
#else
  interpreter::mbarrier_arrive_expect_tx(barrier, bytes);
#endif
}
/// @return whether the phase with this parity is over
__device__ __forceinline__ bool mbarrier_test_wait_parity(Mbarrier* barrier, uint32_t parity) {
#ifdef __CUDACC__
  uint32_t over;
  asm volatile(
      "{\n"
      ".reg .pred over;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 over, [%1], %2;\n"
      "selp.u32 %0, 1, 0, over;\n"
      "}"
      : "=r"(over)
      : "r"(detail::shared_address(barrier)), "r"(parity)
      : "memory");
  return over;
#else
  return interpreter::mbarrier_test_wait_parity(barrier, parity);
#endif
}
/// The same, but the thread sleeps for a while if it is not over yet.
__device__ __forceinline__ bool mbarrier_try_wait_parity(Mbarrier* barrier, uint32_t parity) {
#ifdef __CUDACC__
  uint32_t over;
  asm volatile(
      "{\n"
      ".reg .pred over;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
      "selp.u32 %0, 1, 0, over;\n"
      "}"
      : "=r"(over)
      : "r"(detail::shared_address(barrier)), "r"(parity)
      : "memory");
  return over;
#else
  return interpreter::mbarrier_try_wait_parity(barrier, parity);
#endif
}
/// Waits until the phase with this parity is over.
__device__ __forceinline__ void mbarrier_wait_parity(Mbarrier* barrier, uint32_t parity) {
#ifdef __CUDACC__
  // The loop is within the instructions: nvcc 13.0 makes one loop of this and the one around it, if that begins with the wait.
  asm volatile(
      "{\n"
      ".reg .pred over;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
      "@!over bra again;\n"
      "}" ::"r"(detail::shared_address(barrier)),
      "r"(parity)
      : "memory");
#else
  while (!mbarrier_try_wait_parity(barrier, parity)) {
  }
#endif
}
/// @}

/// @name Barriers of other blocks of the cluster (PTX ISA, "mbarrier.arrive", "mbarrier.try_wait", "Memory Consistency Model")
/// A thread may arrive at another block's barrier. Only threads of the block that has it wait there.
///
/// Without a scope, the manual takes `.cta` for both instructions. Between two blocks that orders what the arriving thread has
/// read, and what copies have brought: enough to give a stage back. It does not order what it has written: for that, both sides say
/// `.cluster`, and pay: the arrival with a fence for the whole GPU, the wait with an empty L1 cache.
/// @{

/// One arrival at the barrier of the block `rank` that lies where `barrier` does in this one (with "mapa" for its address).
__device__ __forceinline__ void mbarrier_arrive_cluster(Mbarrier* barrier, uint32_t rank) {
#ifdef __CUDACC__
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}" ::"r"(detail::shared_address(barrier)),
      "r"(rank)
      : "memory");
#else
  interpreter::mbarrier_arrive_cluster(barrier, rank, false);
#endif
}
/// The same, and who waits with acquire.cluster sees what this thread has written.
__device__ __forceinline__ void mbarrier_arrive_release_cluster(Mbarrier* barrier, uint32_t rank) {
#ifdef __CUDACC__
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n"
      "}" ::"r"(detail::shared_address(barrier)),
      "r"(rank)
      : "memory");
#else
  interpreter::mbarrier_arrive_cluster(barrier, rank, true);
#endif
}
/// mbarrier_try_wait_parity() that also sees what threads of other blocks have written before they arrived with release.cluster.
__device__ __forceinline__ bool mbarrier_try_wait_parity_acquire_cluster(Mbarrier* barrier, uint32_t parity) {
#ifdef __CUDACC__
  uint32_t over;
  asm volatile(
      "{\n"
      ".reg .pred over;\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%1], %2;\n"
      "selp.u32 %0, 1, 0, over;\n"
      "}"
      : "=r"(over)
      : "r"(detail::shared_address(barrier)), "r"(parity)
      : "memory");
  return over;
#else
  return interpreter::mbarrier_try_wait_parity_acquire_cluster(barrier, parity);
#endif
}
/// Waits with it until the phase is over.
__device__ __forceinline__ void mbarrier_wait_parity_acquire_cluster(Mbarrier* barrier, uint32_t parity) {
  while (!mbarrier_try_wait_parity_acquire_cluster(barrier, parity)) {
  }
}
/// @}

/// @name Fences for what others than threads do (PTX ISA, "membar / fence")
/// @{

/// The copy engine, and other blocks of the cluster, see what mbarrier_init() of this thread did before.
__device__ __forceinline__ void fence_mbarrier_init() {
#ifdef __CUDACC__
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#else
  interpreter::fence_mbarrier_init();
#endif
}
/// The copy engine and wgmma see what this thread wrote, or knows to have been written, to shared memory before.
__device__ __forceinline__ void fence_proxy_async() {
#ifdef __CUDACC__
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
  interpreter::fence_proxy_async();
#endif
}
/// @}

/// @name Barriers for some of a block's warps (PTX ISA, "barrier{.cta}")
/// A block has 16; number 0 is that of __syncthreads(). `threads` is a multiple of 32: as many take part, whole warps.
/// @{

/// Arrives and waits until all `threads` have arrived.
__device__ __forceinline__ void barrier_sync(uint32_t number, uint32_t threads) {
#ifdef __CUDACC__
  asm volatile("barrier.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
#else
  interpreter::named_barrier(number, threads, true);
#endif
}
/// Arrives, and goes on.
__device__ __forceinline__ void barrier_arrive(uint32_t number, uint32_t threads) {
#ifdef __CUDACC__
  asm volatile("barrier.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
#else
  interpreter::named_barrier(number, threads, false);
#endif
}
/// @}

}  // namespace device

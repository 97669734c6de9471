/// @file
/// Copies by the copy engine, which one thread starts; compute capability 9.0. One function for each PTX instruction, named as the
/// instruction. On the interpreter each does what the PTX ISA manual says, under its checks.
#pragma once

#include "common/device/mbarrier.cuh"
#include "common/device/tensor_map.h"

namespace device {

/// @name Boxes of tensors (PTX ISA, "cp.async.bulk.tensor")
/// `map` is the address of a kernel's parameter `const __grid_constant__ TensorMap`. The coordinates are those of the box's first
/// element, in elements, x along a row. What lies outside of the tensor is read as zeros and not written, but for what shares a
/// row's last 16 bytes with its end. A box begins at a multiple of 16 bytes in its row. One that is loaded may begin at negative
/// coordinates, one that is stored may not. PTX does not say so; an H200 ends with an illegal instruction. The box lies in shared
/// memory row behind row, swizzled as the map says; aligned to 128 bytes, and to 8 rows of the swizzle's width where others are to
/// know the pattern.
/// @{

/// From global to shared memory. It completes at `barrier`, as the bytes of the whole box, zeros among them.
__device__ __forceinline__ void cp_async_bulk_tensor_2d(void* shared, const TensorMap* map, int x, int y, Mbarrier* barrier) {
#ifdef __CUDACC__
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                   detail::shared_address(shared)),
               "l"(map), "r"(x), "r"(y), "r"(detail::shared_address(barrier))
               : "memory");
#else
  const int coordinates[] = {x, y};
  interpreter::cp_async_bulk_tensor_load(shared, map, coordinates, barrier);
#endif
}
/// The same, of what nobody reads again: when L2 needs room, it gives these lines up first (PTX ISA, "Cache Eviction Priority
/// Hints"). On the interpreter as any other copy.
__device__ __forceinline__ void cp_async_bulk_tensor_2d_evict_first(void* shared, const TensorMap* map, int x, int y,
                                                                    Mbarrier* barrier) {
#ifdef __CUDACC__
  constexpr uint64_t kPolicy = 0x12F0000000000000;  // what createpolicy.fractional.L2::evict_first gives for all of the lines
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3}], [%4], "
      "%5;" ::"r"(detail::shared_address(shared)),
      "l"(map), "r"(x), "r"(y), "r"(detail::shared_address(barrier)), "l"(kPolicy)
      : "memory");
#else
  cp_async_bulk_tensor_2d(shared, map, x, y, barrier);
#endif
}
/// The same to each block of the cluster whose bit `mask` has: bit r is that of rank r. Box and bytes arrive in each of them where
/// the issuing block would have them: at the same place of its shared memory, and at its own mbarrier. So each destination expects
/// the bytes of the whole box for itself, and has its stage free when the copy is issued.
__device__ __forceinline__ void cp_async_bulk_tensor_2d_multicast(void* shared, const TensorMap* map, int x, int y,
                                                                  Mbarrier* barrier, uint16_t mask) {
#ifdef __CUDACC__
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], "
      "%5;" ::"r"(detail::shared_address(shared)),
      "l"(map), "r"(x), "r"(y), "r"(detail::shared_address(barrier)), "h"(mask)
      : "memory");
#else
  const int coordinates[] = {x, y};
  interpreter::cp_async_bulk_tensor_load_multicast(shared, map, coordinates, barrier, mask);
#endif
}
/// From shared to global memory, as part of a group.
__device__ __forceinline__ void cp_async_bulk_tensor_2d_store(const TensorMap* map, int x, int y, const void* shared) {
#ifdef __CUDACC__
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x), "r"(y),
               "r"(detail::shared_address(shared))
               : "memory");
#else
  const int coordinates[] = {x, y};
  interpreter::cp_async_bulk_tensor_store(map, coordinates, shared);
#endif
}
/// Has L2 fetch the box. It is a hint, and changes nobody's memory: it may come before griddepcontrol_wait(), for L2 is where the
/// launch before writes too.
__device__ __forceinline__ void cp_async_bulk_prefetch_tensor_2d(const TensorMap* map, int x, int y) {
#ifdef __CUDACC__
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(map), "r"(x), "r"(y) : "memory");
#else
  const int coordinates[] = {x, y};
  interpreter::cp_async_bulk_prefetch_tensor(map, coordinates);
#endif
}
/// Fetches the map itself, so that the first copy need not wait for it.
__device__ __forceinline__ void prefetch_tensormap(const TensorMap* map) {
#ifdef __CUDACC__
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
#else
  static_cast<void>(map);
#endif
}
/// @}

/// @name Plain bytes (PTX ISA, "cp.async.bulk")
/// `bytes` and both addresses are multiples of 16.
/// @{

/// From global to shared memory. It completes at `barrier`.
__device__ __forceinline__ void cp_async_bulk(void* shared, const void* global, uint32_t bytes, Mbarrier* barrier) {
#ifdef __CUDACC__
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   detail::shared_address(shared)),
               "l"(global), "r"(bytes), "r"(detail::shared_address(barrier))
               : "memory");
#else
  interpreter::cp_async_bulk_load(shared, global, bytes, barrier);
#endif
}
/// From shared to global memory, as part of a group.
__device__ __forceinline__ void cp_async_bulk_store(void* global, const void* shared, uint32_t bytes) {
#ifdef __CUDACC__
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global), "r"(detail::shared_address(shared)),
               "r"(bytes)
               : "memory");
#else
  interpreter::cp_async_bulk_store(global, shared, bytes);
#endif
}
/// @}

/// @name Groups of stores (PTX ISA, "cp.async.bulk.commit_group", "cp.async.bulk.wait_group")
/// Groups are each thread's own.
/// @{

/// Makes a group of the thread's stores since the last one.
__device__ __forceinline__ void cp_async_bulk_commit_group() {
#ifdef __CUDACC__
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#else
  interpreter::cp_async_bulk_commit_group();
#endif
}
/// Waits until at most the thread's last `kGroups` groups are still under way.
template <int kGroups>
__device__ __forceinline__ void cp_async_bulk_wait_group() {
#ifdef __CUDACC__
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kGroups) : "memory");
#else
  interpreter::cp_async_bulk_wait_group(kGroups, false);
#endif
}
/// The same, but until they have been read: then shared memory may be written again.
template <int kGroups>
__device__ __forceinline__ void cp_async_bulk_wait_group_read() {
#ifdef __CUDACC__
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kGroups) : "memory");
#else
  interpreter::cp_async_bulk_wait_group(kGroups, true);
#endif
}
/// @}

}  // namespace device

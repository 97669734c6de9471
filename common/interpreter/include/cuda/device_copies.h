/// @file
/// Of libcu++'s <cuda/barrier>, what nvcc alone gets there: copies by Hopper's copy engine and what waits for them.
#pragma once

#include <cuda/__barrier/aligned_size.h>
#include <cuda/__barrier/async_contract_fulfillment.h>

#include <cstddef>
#include <cstdint>

#include "common/interpreter/instructions/bulk_copies.h"
#include "common/interpreter/instructions/mbarriers.h"

struct CUtensorMap_st;

_LIBCUDACXX_BEGIN_NAMESPACE_CUDA_DEVICE

using BlockBarrier = ::cuda::barrier<::cuda::thread_scope_block>;

inline std::uint64_t* barrier_native_handle(BlockBarrier& barrier) { return reinterpret_cast<std::uint64_t*>(&barrier); }

[[gnu::always_inline]] inline void barrier_expect_tx(BlockBarrier& barrier, std::ptrdiff_t bytes) {
  interpreter::mbarrier_expect_tx(barrier_native_handle(barrier), static_cast<unsigned>(bytes));
}
[[nodiscard, gnu::always_inline]] inline BlockBarrier::arrival_token barrier_arrive_tx(BlockBarrier& barrier,
                                                                                       std::ptrdiff_t arrivals,
                                                                                       std::ptrdiff_t bytes) {
  barrier_expect_tx(barrier, bytes);
  return barrier.arrive(arrivals);
}
template <class T, std::size_t kAlignment>
[[gnu::always_inline]] inline async_contract_fulfillment memcpy_async_tx(T* to, const T* from,
                                                                         ::cuda::aligned_size_t<kAlignment> bytes,
                                                                         BlockBarrier& barrier) {
  static_assert(kAlignment >= 16, "memcpy_async_tx wants an alignment of 16 bytes or more");
  interpreter::cp_async_bulk_load(to, from, static_cast<unsigned>(bytes), barrier_native_handle(barrier));
  return async_contract_fulfillment::async;
}

_LIBCUDACXX_END_NAMESPACE_CUDA_DEVICE

_LIBCUDACXX_BEGIN_NAMESPACE_CUDA_DEVICE_EXPERIMENTAL

inline const interpreter::TensorMap* tensor_map_of(const CUtensorMap_st* map) {
  return reinterpret_cast<const interpreter::TensorMap*>(map);
}

[[gnu::always_inline]] inline void cp_async_bulk_global_to_shared(void* to, const void* from, std::uint32_t bytes,
                                                                  BlockBarrier& barrier) {
  interpreter::cp_async_bulk_load(to, from, bytes, barrier_native_handle(barrier));
}
[[gnu::always_inline]] inline void cp_async_bulk_shared_to_global(void* to, const void* from, std::uint32_t bytes) {
  interpreter::cp_async_bulk_store(to, from, bytes);
}

// Of 1 to 5 dimensions, with as many coordinates.
#define COURSE_TENSOR_COPIES(n, PARAMETERS, ...)                                                                                   \
  [[gnu::always_inline]] inline void cp_async_bulk_tensor_##n##d_global_to_shared(void* to, const CUtensorMap_st* map, PARAMETERS, \
                                                                                  BlockBarrier& barrier) {                         \
    const int at[] = {__VA_ARGS__};                                                                                                \
    interpreter::cp_async_bulk_tensor_load(to, tensor_map_of(map), at, barrier_native_handle(barrier));                            \
  }                                                                                                                                \
  [[gnu::always_inline]] inline void cp_async_bulk_tensor_##n##d_shared_to_global(const CUtensorMap_st* map, PARAMETERS,           \
                                                                                  const void* from) {                              \
    const int at[] = {__VA_ARGS__};                                                                                                \
    interpreter::cp_async_bulk_tensor_store(tensor_map_of(map), at, from);                                                         \
  }
#define COURSE_COMMA ,
COURSE_TENSOR_COPIES(1, int c0, c0)
COURSE_TENSOR_COPIES(2, int c0 COURSE_COMMA int c1, c0, c1)
COURSE_TENSOR_COPIES(3, int c0 COURSE_COMMA int c1 COURSE_COMMA int c2, c0, c1, c2)
COURSE_TENSOR_COPIES(4, int c0 COURSE_COMMA int c1 COURSE_COMMA int c2 COURSE_COMMA int c3, c0, c1, c2, c3)
COURSE_TENSOR_COPIES(5, int c0 COURSE_COMMA int c1 COURSE_COMMA int c2 COURSE_COMMA int c3 COURSE_COMMA int c4, c0, c1, c2, c3, c4)
#undef COURSE_COMMA
#undef COURSE_TENSOR_COPIES

[[gnu::always_inline]] inline void fence_proxy_async_shared_cta() { interpreter::fence_proxy_async(true, false); }
[[gnu::always_inline]] inline void cp_async_bulk_commit_group() { interpreter::cp_async_bulk_commit_group(); }
template <int kGroups>
[[gnu::always_inline]] inline void cp_async_bulk_wait_group_read() {
  static_assert(kGroups >= 0 && kGroups <= 7, "cp_async_bulk_wait_group_read waits until 0 to 7 groups are left");
  interpreter::cp_async_bulk_wait_group(kGroups, true);
}

_LIBCUDACXX_END_NAMESPACE_CUDA_DEVICE_EXPERIMENTAL

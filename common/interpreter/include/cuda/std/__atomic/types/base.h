/// @file
/// cuda::atomic and cuda::atomic_ref: what libcu++ does for the host, where a scope says nothing. A kernel's orders the threads of
/// its scope alone.
#pragma once

#include <cuda/std/__atomic/functions.h>
#include <cuda/std/__atomic/scopes.h>
#include <cuda/std/__type_traits/is_same.h>

namespace interpreter {
/// The calling thread's next atomic operation, which is one on `address`, has the scope of the block.
void next_atomic_is_of_block(const volatile void* address);

template <class Scope>
void tell_scope(const volatile void* address) {
  if (::cuda::std::is_same<Scope, ::cuda::std::__thread_scope_block_tag>::value) next_atomic_is_of_block(address);
}
}  // namespace interpreter

#define __atomic_store_host(p, ...) (::interpreter::tell_scope<_Sco>(p), __atomic_store_host(p, __VA_ARGS__))
#define __atomic_load_host(p, ...) (::interpreter::tell_scope<_Sco>(p), __atomic_load_host(p, __VA_ARGS__))
#define __atomic_exchange_host(p, ...) (::interpreter::tell_scope<_Sco>(p), __atomic_exchange_host(p, __VA_ARGS__))
#define __atomic_compare_exchange_strong_host(p, ...) \
  (::interpreter::tell_scope<_Sco>(p), __atomic_compare_exchange_strong_host(p, __VA_ARGS__))
#define __atomic_compare_exchange_weak_host(p, ...) \
  (::interpreter::tell_scope<_Sco>(p), __atomic_compare_exchange_weak_host(p, __VA_ARGS__))
#define __atomic_fetch_add_host(p, ...) (::interpreter::tell_scope<_Sco>(p), __atomic_fetch_add_host(p, __VA_ARGS__))
#define __atomic_fetch_sub_host(p, ...) (::interpreter::tell_scope<_Sco>(p), __atomic_fetch_sub_host(p, __VA_ARGS__))
#define __atomic_fetch_and_host(p, ...) (::interpreter::tell_scope<_Sco>(p), __atomic_fetch_and_host(p, __VA_ARGS__))
#define __atomic_fetch_or_host(p, ...) (::interpreter::tell_scope<_Sco>(p), __atomic_fetch_or_host(p, __VA_ARGS__))
#define __atomic_fetch_xor_host(p, ...) (::interpreter::tell_scope<_Sco>(p), __atomic_fetch_xor_host(p, __VA_ARGS__))
#include_next <cuda/std/__atomic/types/base.h>
#undef __atomic_store_host
#undef __atomic_load_host
#undef __atomic_exchange_host
#undef __atomic_compare_exchange_strong_host
#undef __atomic_compare_exchange_weak_host
#undef __atomic_fetch_add_host
#undef __atomic_fetch_sub_host
#undef __atomic_fetch_and_host
#undef __atomic_fetch_or_host
#undef __atomic_fetch_xor_host

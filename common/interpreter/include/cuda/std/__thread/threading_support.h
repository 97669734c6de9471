/// @file
/// How libcu++'s barriers, semaphores and atomics wait. On the host it looks at the time, and sleeps for up to a millisecond. In a
/// kernel here that takes long, and who waits in vain never does the same twice, so that no deadlock could be told.
#pragma once

#define __cccl_thread_poll_with_backoff course_poll_on_host
#include_next <cuda/std/__thread/threading_support.h>
#undef __cccl_thread_poll_with_backoff

#include "common/interpreter/interpreter.h"

_LIBCUDACXX_BEGIN_NAMESPACE_STD

/// Calls `f` until it returns true, for at most `longest`, if that is not 0. @return whether it has
template <class Function>
bool __cccl_thread_poll_with_backoff(Function&& f, chrono::nanoseconds longest = chrono::nanoseconds::zero()) {
  if (!::interpreter::in_kernel() || longest != chrono::nanoseconds::zero())
    return course_poll_on_host(static_cast<Function&&>(f), longest);
  while (!f()) ::interpreter::sleep_hint();
  return true;
}

_LIBCUDACXX_END_NAMESPACE_STD

/// @file
/// In place of libcu++'s file of this name: cuda::barrier of a block, of which nvcc makes an mbarrier where it lies in shared
/// memory. So do we: then the copies of memcpy_async can complete there, and too many arrivals and overwritten barriers are found.
/// Elsewhere it is what libcu++ has for the host.
#pragma once

#include <cuda/__fwd/barrier.h>
#include <cuda/std/__barrier/barrier.h>
#include <cuda/std/__barrier/empty_completion.h>
#include <cuda/std/__barrier/poll_tester.h>
#include <cuda/std/chrono>

#include <cstddef>
#include <cstdint>

#include "common/interpreter/instructions/mbarriers.h"
#include "common/interpreter/interpreter.h"
#include "common/interpreter/language/memory.h"

_LIBCUDACXX_BEGIN_NAMESPACE_CUDA

struct __block_scope_barrier_base {};

template <>
class barrier<thread_scope_block, std::__empty_completion> : public __block_scope_barrier_base {
  using Elsewhere = std::__barrier_base<std::__empty_completion, thread_scope_block>;

 public:
  using arrival_token = Elsewhere::arrival_token;  // 0 if the phase's number is even

  barrier() = default;
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;
  [[gnu::always_inline]] explicit barrier(std::ptrdiff_t expected, std::__empty_completion = {}) { init(this, expected); }
  [[gnu::always_inline]] ~barrier() {
    if (is_mbarrier()) interpreter::mbarrier_inval(mbarrier());
  }

  [[gnu::always_inline]] friend void init(barrier* object, std::ptrdiff_t expected, std::__empty_completion = {}) {
    if (object->is_mbarrier())
      interpreter::block_barrier_init(object->mbarrier(), static_cast<unsigned>(expected));
    else
      new (&object->elsewhere_) Elsewhere(expected);
  }

  [[nodiscard, gnu::always_inline]] arrival_token arrive(std::ptrdiff_t update = 1) {
    return is_mbarrier() ? interpreter::block_barrier_arrive(mbarrier(), static_cast<unsigned>(update)) : elsewhere_.arrive(update);
  }
  [[gnu::always_inline]] void wait(arrival_token&& token) const { wait_parity(token != 0); }
  [[gnu::always_inline]] void wait_parity(bool parity) const {
    if (!is_mbarrier()) return elsewhere_.wait_parity(parity);
    while (!interpreter::block_barrier_wait(mbarrier(), parity, true)) {
    }
  }
  [[gnu::always_inline]] void arrive_and_wait() { wait(arrive()); }
  [[gnu::always_inline]] void arrive_and_drop() {
    if (is_mbarrier())
      interpreter::block_barrier_arrive_and_drop(mbarrier());
    else
      elsewhere_.arrive_and_drop();
  }

  /// Time goes on here when nobody can do anything else: so these look once, however long they are to wait.
  /// @{
  template <class Rep, class Period>
  [[nodiscard, gnu::always_inline]] bool try_wait_for(arrival_token&& token, const std::chrono::duration<Rep, Period>&) {
    return has_completed(token != 0);
  }
  template <class Clock, class Duration>
  [[nodiscard, gnu::always_inline]] bool try_wait_until(arrival_token&& token, const std::chrono::time_point<Clock, Duration>&) {
    return has_completed(token != 0);
  }
  template <class Rep, class Period>
  [[nodiscard, gnu::always_inline]] bool try_wait_parity_for(bool parity, const std::chrono::duration<Rep, Period>&) {
    return has_completed(parity);
  }
  template <class Clock, class Duration>
  [[nodiscard, gnu::always_inline]] bool try_wait_parity_until(bool parity, const std::chrono::time_point<Clock, Duration>&) {
    return has_completed(parity);
  }
  /// @}

  static constexpr std::ptrdiff_t max() noexcept { return (1 << 20) - 1; }

  bool is_mbarrier() const { return interpreter::in_kernel() && __isShared(this); }
  /// Of memcpy_async: the phase that is under way ends after the cp.async that the thread has issued so far.
  [[gnu::always_inline]] void arrive_when_copied() {
    if (is_mbarrier())
      interpreter::cp_async_mbarrier_arrive(mbarrier(), false);
    else
      interpreter::cp_async_wait_all();
  }
  /// The same of its copies for a barrier, of which nobody else can tell when they end.
  [[gnu::always_inline]] void complete_when_copied() { interpreter::barrier_copies_complete_at(mbarrier()); }

 private:
  template <class Barrier>
  friend class std::__barrier_poll_tester_phase;
  template <class Barrier>
  friend class std::__barrier_poll_tester_parity;

  std::uint64_t* mbarrier() const { return reinterpret_cast<std::uint64_t*>(const_cast<barrier*>(this)); }
  bool has_completed(bool parity) const {
    if (is_mbarrier()) return interpreter::block_barrier_wait(mbarrier(), parity, false);
    return std::__call_try_wait_parity(elsewhere_, parity);
  }
  bool __try_wait(arrival_token token) const { return has_completed(token != 0); }
  bool __try_wait_parity(bool parity) const { return has_completed(parity); }

  Elsewhere elsewhere_;
};

_LIBCUDACXX_END_NAMESPACE_CUDA

#include "common/interpreter/include/cuda/device_copies.h"

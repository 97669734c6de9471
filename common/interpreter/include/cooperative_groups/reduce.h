/// @file
/// Reductions over a cooperative group of a warp's lanes; the values are taken in the order of the ranks.
#pragma once

#include <functional>

#include "common/interpreter/include/cooperative_groups.h"

namespace cooperative_groups {

template <class T>
struct plus : std::plus<T> {};
template <class T>
struct bit_and : std::bit_and<T> {};
template <class T>
struct bit_or : std::bit_or<T> {};
template <class T>
struct bit_xor : std::bit_xor<T> {};
/// The smaller one.
template <class T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
/// The larger one.
template <class T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};

/// op(op(v0, v1), v2)... of all threads' values, in all threads.
template <class Group, class T, class Op>
auto reduce(const Group& group, T value, Op op, details::Site site = details::Site::here()) {
  return details::exchange(
      "reduce", group.lanes(), value,
      [&](const T* values, unsigned count, unsigned) {
        T sum = values[0];
        for (unsigned i = 1; i < count; ++i) sum = static_cast<T>(op(sum, values[i]));
        return sum;
      },
      site);
}

/// The reduced value goes into an atomic object, which one thread updates.
template <class Group, class Atomic, class T, class Op>
void reduce_update_async(const Group& group, Atomic& target, T value, Op op, details::Site site = details::Site::here()) {
  const T sum = reduce(group, value, op, site);
  if (group.thread_rank() != 0) return;
  T old = target.load();
  while (!target.compare_exchange_weak(old, static_cast<T>(op(old, sum)))) {
  }
}

}  // namespace cooperative_groups

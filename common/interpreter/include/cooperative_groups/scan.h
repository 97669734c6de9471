/// @file
/// Prefix sums over a cooperative group of a warp's lanes, in the order of the ranks.
#pragma once

#include "common/interpreter/include/cooperative_groups/reduce.h"

namespace cooperative_groups {

/// Of the values up to the calling thread's own one.
template <class Group, class T, class Op = plus<T>>
T inclusive_scan(const Group& group, T value, Op op = {}, details::Site site = details::Site::here()) {
  return details::exchange(
      "inclusive_scan", group.lanes(), value,
      [&](const T* values, unsigned, unsigned rank) {
        T sum = values[0];
        for (unsigned i = 1; i <= rank; ++i) sum = static_cast<T>(op(sum, values[i]));
        return sum;
      },
      site);
}

/// Of the values before the calling thread's own one; T() where there is none.
template <class Group, class T, class Op = plus<T>>
T exclusive_scan(const Group& group, T value, Op op = {}, details::Site site = details::Site::here()) {
  return details::exchange(
      "exclusive_scan", group.lanes(), value,
      [&](const T* values, unsigned, unsigned rank) {
        if (rank == 0) return T();
        T sum = values[0];
        for (unsigned i = 1; i < rank; ++i) sum = static_cast<T>(op(sum, values[i]));
        return sum;
      },
      site);
}

}  // namespace cooperative_groups

/// @file
/// Copies of a whole group in the background, from global to shared memory.
#pragma once

#include "common/interpreter/include/cooperative_groups.h"

namespace cooperative_groups {

/// `bytes` bytes, shared out among the group's threads in the largest pieces of 16, 8 or 4 bytes that both ends are aligned for;
/// what is left over, and other memory, is copied at once.
template <class Group, class To, class From>
void memcpy_async(const Group& group, To* to, const From* from, std::size_t bytes) {
  char* const target = reinterpret_cast<char*>(to);
  const char* const source = reinterpret_cast<const char*>(from);
  const std::size_t alignment = reinterpret_cast<std::uintptr_t>(target) | reinterpret_cast<std::uintptr_t>(source);
  const std::size_t piece = alignment % 16 == 0 ? 16 : alignment % 8 == 0 ? 8 : alignment % 4 == 0 ? 4 : 1;
  const bool in_background = piece > 1 && __isShared(target) && __isGlobal(source);
  const std::size_t threads = group.size(), rank = group.thread_rank();
  std::size_t done = 0;
  if (in_background) {
    for (std::size_t i = rank; i < bytes / piece; i += threads)
      interpreter::cp_async(target + i * piece, source + i * piece, static_cast<int>(piece));
    done = bytes / piece * piece;
  }
  for (std::size_t i = done + rank; i < bytes; i += threads) target[i] = source[i];
  interpreter::cp_async_commit_group();
}
/// `count` elements, of two arrays that may differ in length: the shorter one counts.
template <class Group, class T>
void memcpy_async(const Group& group, T* to, std::size_t to_count, const T* from, std::size_t from_count) {
  memcpy_async(group, to, from, (to_count < from_count ? to_count : from_count) * sizeof(T));
}

/// All copies but the last `Groups` of them are complete, in all threads of the group.
template <unsigned Groups, class Group>
void wait_prior(const Group& group, details::Site site = details::Site::here()) {
  interpreter::cp_async_wait_group(Groups);
  group.sync(site);
}
template <class Group>
void wait(const Group& group, details::Site site = details::Site::here()) {
  interpreter::cp_async_wait_all();
  group.sync(site);
}

}  // namespace cooperative_groups

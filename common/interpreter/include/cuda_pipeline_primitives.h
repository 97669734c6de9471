/// @file
/// In the place of CUDA's header of this name, whose copies are done at once where the compiler is not nvcc. Here they are those of
/// cp.async, as on a GPU: under way until they have been waited for.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/interpreter/instructions/cp_async.h"

/// @param zero_fill how many of the bytes, the last ones, are zeros instead
[[gnu::always_inline]] inline void __pipeline_memcpy_async(void* shared, const void* global, std::size_t bytes,
                                                           std::size_t zero_fill = 0) {
  if (zero_fill == 0)
    interpreter::cp_async(shared, global, static_cast<int>(bytes));
  else
    interpreter::cp_async(shared, global, static_cast<int>(bytes), static_cast<int>(bytes - zero_fill));
}
[[gnu::always_inline]] inline void __pipeline_commit() { interpreter::cp_async_commit_group(); }
/// Until at most the last `groups` groups are under way.
[[gnu::always_inline]] inline void __pipeline_wait_prior(std::size_t groups) {
  interpreter::cp_async_wait_group(static_cast<int>(std::min<std::size_t>(groups, 8)));
}

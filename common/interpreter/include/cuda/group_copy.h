/// @file
/// What memcpy_async of barriers and pipelines share.
#pragma once

#include <cstddef>
#include <type_traits>

#include "common/interpreter/instructions/cp_async.h"
#include "common/interpreter/interpreter.h"
#include "common/interpreter/language/memory.h"

namespace interpreter {

struct OneThread {
  static std::size_t thread_rank() { return 0; }
  static std::size_t size() { return 1; }
};

/// By how many bytes the places and the number of bytes can be divided, as far as their types say: libcu++ looks at no address.
template <class T, class Size>
constexpr std::size_t kAlignmentToCopy = [] {
  std::size_t alignment = 1;
  if constexpr (!std::is_void_v<T>) alignment = alignof(T);
  if constexpr (requires { Size::align; }) alignment = Size::align > alignment ? Size::align : alignment;
  return alignment < 16 ? alignment : 16;
}();

/// Each thread of the group copies every n-th piece, as libcu++ does it: by cp.async, from global to shared memory and in pieces of
/// 4, 8 or 16 bytes; else at once.
/// @param for_barrier the copies will end at a barrier alone, not with the thread's groups
/// @return whether the copies are under way
template <class Group, class T, class Size>
[[gnu::always_inline]] inline bool group_copy(const Group& group, T* to, const T* from, Size bytes, bool for_barrier = false) {
  constexpr std::size_t kPiece = kAlignmentToCopy<std::remove_cv_t<T>, Size>;
  const std::size_t size = static_cast<std::size_t>(bytes), stride = group.size() * kPiece;
  char* const target = reinterpret_cast<char*>(to);
  const char* const source = reinterpret_cast<const char*>(from);
  if constexpr (kPiece >= 4) {
    if (in_kernel() && __isShared(to) && __isGlobal(from)) {
      for (std::size_t at = group.thread_rank() * kPiece; at < size; at += stride)
        for_barrier ? cp_async_for_barrier(target + at, source + at, static_cast<int>(kPiece))
                    : cp_async(target + at, source + at, static_cast<int>(kPiece));
      return true;
    }
  }
  struct alignas(kPiece) Piece {
    char bytes[kPiece];
  };
  for (std::size_t at = group.thread_rank() * kPiece; at < size; at += stride)
    *reinterpret_cast<Piece*>(target + at) = *reinterpret_cast<const Piece*>(source + at);
  return false;
}

/// The phase of a barrier that is under way ends after the cp.async that the thread has issued so far. Who has none that could
/// tell, as libcu++ has it for barriers outside of shared memory, waits at once.
template <class Barrier>
[[gnu::always_inline]] inline void arrive_when_copied(Barrier& barrier) {
  if constexpr (requires { barrier.arrive_when_copied(); })
    barrier.arrive_when_copied();
  else
    cp_async_wait_all();
}

}  // namespace interpreter

/// @file
/// How much was under way at the same time. No clock says whether copies and products overlap; these numbers say whether they can.
#pragma once

#include <atomic>
#include <cstdint>

namespace interpreter {

/// The most since the program's start, or since it was set to zero. It depends on the order of threads: one in which readers come
/// late shows how far a ring lets copies run ahead.
struct MostUnderWay {
  std::atomic<std::uint64_t> copies;     ///< loads by the copy engine to one block's shared memory, issued and not yet landed
  std::atomic<std::uint64_t> ahead;      ///< cp.async of a thread that it has not waited for, when older ones of it were waited for
  std::atomic<std::uint64_t> groups;     ///< groups of a warp's wgmma, committed and not yet waited for
  std::atomic<std::uint64_t> registers;  ///< that a thread has got by setmaxnreg.inc
  void forget() { copies = ahead = groups = registers = 0; }
};
MostUnderWay& most_under_way();  ///< of all launches

/// `most` becomes `now` if that is more.
inline void raise_to(std::atomic<std::uint64_t>& most, std::uint64_t now) {
  std::uint64_t before = most;
  while (before < now && !most.compare_exchange_weak(before, now)) {
  }
}

}  // namespace interpreter

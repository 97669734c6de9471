/// @file
/// What the files that make up Block share.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/interpreter/block.h"

namespace interpreter {

/// @name Pieces of reports
/// @{
std::string at(const Location& location);
std::string to_text(uint3 index);
std::string hex(unsigned x);
Diagnosis diagnose(Check check, std::string what, std::string expected, const Fiber* fiber, const Location& where,
                   const Block& block);
/// @}

inline bool inside(const void* p, const Range& range) { return p >= range.begin && p < range.end; }

inline uint3 unflatten(std::uint64_t linear, dim3 shape) {
  return {static_cast<unsigned>(linear % shape.x), static_cast<unsigned>(linear / shape.x % shape.y),
          static_cast<unsigned>(linear / shape.x / shape.y)};
}

/// Before every launch and allocation: test frameworks install handlers of their own for each test, and remove ours in the end.
void install_handlers();

/// The line of the user's that leads to the call.
Location host_line();
/// @throws KernelError: host code has called a kernel, or what only kernels may call.
[[noreturn]] void fail_outside_of_launches();
/// The host accesses device memory at `p`. To be called from the signal handler: the kernels' files are compiled so that any of
/// their accesses may throw. From elsewhere the exception goes no further than std::terminate(), which prints the report.
[[noreturn]] void fail_host_access(const void* p);

/// The fiber that calls the interpreter. @throws KernelError in host code.
inline Fiber& running_fiber() {
  if (!current_fiber) [[unlikely]]
    fail_outside_of_launches();
  return *current_fiber;
}

/// While the interpreter works for a fiber, nothing is observed: its own code may be instrumented, or call memcpy.
struct Entered {
  Fiber& fiber = (running_fiber(), *std::exchange(current_fiber, nullptr));
  Block& block = *current_block;
  ~Entered() { current_fiber = &fiber; }
};

/// What happened to global memory, shared by all blocks. A stripe's lock guards the cells of some 4 KB ranges.
struct GlobalShadow {
  ShadowedRange memory{GlobalMemory::instance().base(), GlobalMemory::kBytes};
  ShadowedRange variables{interpreter::variables().begin,
                          static_cast<std::size_t>(interpreter::variables().end - interpreter::variables().begin)};
  static constexpr std::size_t kStripes = 256;
  std::mutex locks[kStripes];

  std::mutex& lock_of(std::uintptr_t address) { return locks[address / kPage % kStripes]; }
  ShadowedRange& range_of(std::uintptr_t address) { return memory.contains(address) ? memory : variables; }
};
GlobalShadow& global_shadow();

/// What the L2 model needs to see: the sectors that a block's loads miss in the L1 cache. Blocks share an SM's L1 on a GPU; here
/// each has one of its own, without what others left in it.
struct Block::L1Model {
  static constexpr unsigned kWays = 4;
  std::vector<std::uint64_t> tags;
  std::size_t sets = 0;

  void reset(std::size_t bytes) {
    sets = std::max<std::size_t>(1, bytes / 32 / kWays);
    tags.assign(sets * kWays, ~0ull);
  }
  bool hit(std::uint64_t sector) {
    std::uint64_t* set = &tags[(sector * 0x9e3779b97f4a7c15ull >> 20) % sets * kWays];
    unsigned way = 0;
    while (way < kWays - 1 && set[way] != sector) ++way;
    const bool found = set[way] == sector;
    std::copy_backward(set, set + way, set + way + 1);
    set[0] = sector;
    return found;
  }
};

}  // namespace interpreter

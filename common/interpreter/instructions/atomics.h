/// @file
/// Atomics, fences and volatile accesses: what orders the threads of different warps and blocks.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/interpreter/language/language.h"
#include "common/interpreter/observe/access_log.h"
#include "common/interpreter/schedule/fiber.h"

namespace interpreter {

class BlockContext;

/// The atomics and fences of a block's threads.
class Atomics {
 public:
  explicit Atomics(BlockContext& block) : block_(block) {}
  /// A block begins.
  void begin(unsigned threads);
  /// All threads have passed a barrier: it counts as the fence after what they have read.
  void pass_barrier();

  // ---- called by the kernel, on a fiber
  void fence(Fiber& fiber, bool whole_gpu);
  /// One atomic read-modify-write, see atomic() in language.h.
  void atomic(Fiber& fiber, void* address, unsigned size, void* old_value, bool (*update)(void*, const void*), const void* context,
              Scope scope, AtomicKind kind, const void* return_address);
  /// A volatile load has been observed, a volatile store has been.
  void volatile_load(Fiber& fiber, const void* p, unsigned size, Pc pc);
  void volatile_store(Fiber& fiber, const void* p, Pc pc);

  /// Lanes for which the plain load `request` is the look before an atomicCAS, in which they are now.
  std::uint32_t comparing_lanes(unsigned warp, const Request& request) const;

 private:
  struct Thread {
    const void* compares_at = nullptr;        // while it waits for its turn in an atomicCAS: where
    std::vector<const void*> volatile_reads;  // since the last fence or barrier
    std::vector<std::pair<std::uint64_t, Pc>>
        last_loads;  // plain ones before the last fence or atomic: where, and which instruction
  };
  void remember_loads(const Fiber& fiber);
  void acquire_volatile_reads(unsigned thread);

  BlockContext& block_;
  std::vector<Thread> threads_;
  unsigned comparing_ = 0;  // threads with compares_at
};

}  // namespace interpreter

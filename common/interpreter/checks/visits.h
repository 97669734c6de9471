/// @file
/// Distributed shared memory: what threads do in the shared memory of other blocks of their cluster (CUDA C++ Programming Guide,
/// "Distributed Shared Memory").
#pragma once

#include <cstdint>
#include <map>

#include "common/interpreter/happens_before/knowledge.h"
#include "common/interpreter/observe/access_log.h"
#include "common/interpreter/schedule/fiber.h"

namespace interpreter {

class BlockContext;

/// A block's accesses to others' shared memory, and those of others to its own. A block must not end before these are over: then
/// its shared memory is somebody else's. So one of its threads has to know of each, before it ends. And whoever accesses it has to
/// know that the block has begun.
class Visits {
 public:
  explicit Visits(BlockContext& block) : block_(block) {}
  /// A block begins.
  void begin() { visits_.clear(); }

  /// @name Of this block's threads to the block `home`
  /// @{
  /// An access is about to happen. @return whether there is something to look at
  bool touch(Fiber& fiber, BlockContext& home, std::uintptr_t address, unsigned size, Op op, const void* return_address);
  /// A warp has executed the instruction. @return whether some lane has accessed another block's shared memory
  bool note(unsigned warp, const Request& request);
  /// A thread is about to do something to the shared memory of `home`. @param verb "read", say
  void require_resident(const Fiber& fiber, const BlockContext& home, const void* p, const char* verb, Pc pc);
  /// It has done so.
  void note(const Fiber& fiber, BlockContext& home, std::uintptr_t address, Pc pc);
  /// If it is the first access to a __shared__ variable of `home`, that begins to exist.
  void begin_variables(BlockContext& home, std::uintptr_t address, unsigned bytes);
  /// @}

  /// A thread of this block has come to its end.
  void on_exit(const Fiber& fiber);

 private:
  void require_begun(const Fiber& fiber, const BlockContext& home, const void* p, const char* verb, Pc pc);
  struct Visit {
    Stamp stamp;
    std::uintptr_t address;
  };
  BlockContext& block_;
  std::map<ThreadId, Visit> visits_;  // the latest of each thread, if no thread that has come to its end knew of it
};

}  // namespace interpreter

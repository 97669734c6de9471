/// @file
/// The async proxy: what the copy engine and wgmma do to shared memory behind the threads' backs (PTX ISA, "Async proxy").
///
/// A thread's own accesses go through another way into memory, the generic proxy. What a thread has written, the async proxy sees
/// only after a fence.proxy.async, which is cumulative as other fences are: it may be the thread's own, or of one who knows of the
/// write, as long as the instruction comes after the fence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/interpreter/checks/happens_before.h"
#include "common/interpreter/schedule/fiber.h"

namespace interpreter {

class Block;

/// Looks at the accesses of the running block's instructions that go on in the background.
class AsyncProxy {
 public:
  explicit AsyncProxy(Block& block) : block_(block) {}
  /// A block begins.
  void begin(unsigned threads);

  /// What a thread asks the async proxy to do. @param name of the instruction
  struct Instruction {
    Fiber& fiber;
    const char* name;
    Pc pc;
  };

  /// fence.proxy.async. The thread's log has been looked at.
  void fence(const Fiber& fiber);
  /// Reports an address that is no shared memory, out of bounds or no multiple of `alignment`.
  void require_shared(const Instruction& by, std::uintptr_t address, unsigned bytes, unsigned alignment);

  /// @name From the issue to the wait for it
  /// @{
  /// The bytes of shared memory are read. @return their version
  std::uint64_t begin_read(const Instruction& by, std::uintptr_t address, unsigned bytes);
  /// The thread has waited: nobody may have written meanwhile.
  void end_read(const Instruction& by, std::uintptr_t address, unsigned bytes, std::uint64_t version);
  /// The bytes of shared memory are written: they are nobody's until then, and hold NaN.
  void begin_write(const Instruction& by, std::uintptr_t address, unsigned bytes);
  /// The bytes have been written.
  void end_write(const Stamp& stamp, std::uintptr_t address, unsigned bytes);
  /// The same four for global memory, any of it.
  std::uint64_t begin_global_read(const Instruction& by, std::uintptr_t address, unsigned bytes);
  void end_global_read(const Instruction& by, std::uintptr_t address, unsigned bytes, std::uint64_t version);
  void begin_global_write(const Instruction& by, std::uintptr_t address, unsigned bytes);
  void end_global_write(const Instruction& by, std::uintptr_t address, unsigned bytes);
  /// @}

 private:
  struct Fence {
    std::uint32_t time;
    KnowledgePtr covered;
  };
  static std::string at_line(std::uint32_t pc);
  bool fenced(unsigned reader, const Stamp& write) const;
  void require_fenced(const Instruction& by, std::uintptr_t address, unsigned bytes);
  [[noreturn]] void report_overwritten(const Instruction& by, ShadowedRange& range, std::uintptr_t address, unsigned bytes);
  void require_global(const Instruction& by, const char* direction, std::uintptr_t address, unsigned bytes);

  Block& block_;
  std::vector<std::vector<Fence>> fences_;  // by thread, in the order of time
};

}  // namespace interpreter

/// @file
/// The async proxy: what the copy engine and wgmma do to shared memory behind the threads' backs (PTX ISA, "Async proxy").
///
/// A thread's own accesses go through another way into memory, the generic proxy. What a thread has written, the async proxy sees
/// only after a fence.proxy.async, which is cumulative as other fences are: it may be the thread's own, or of one who knows of the
/// write, as long as the instruction comes after the fence.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/interpreter/happens_before/cells.h"
#include "common/interpreter/interpreter.h"
#include "common/interpreter/schedule/fiber.h"

namespace interpreter {

class BlockContext;

/// Looks at the accesses of the running block's instructions that go on in the background.
class AsyncProxy {
 public:
  explicit AsyncProxy(BlockContext& block) : block_(block) {}
  /// A block begins.
  void begin(unsigned threads);

  /// What a thread asks the async proxy to do. @param name of the instruction
  struct Instruction {
    Fiber& fiber;
    const char* name;
    Pc pc;
    bool generic = false;           ///< it goes on in the background too, but by the threads' own way into memory
    const char* operand = nullptr;  ///< of a wgmma: the one that is looked at
    const char* what_writes() const { return generic ? name : "bulk copy"; }  ///< for a report, where it writes
  };

  /// Reports what is wrong with the instruction at `p`.
  [[noreturn]] void fail(const Instruction& by, Check check, const void* p, const std::string& what, const std::string& expected);
  /// The same, of what the program may go on after. @param earlier where the other one of two accesses is
  void tell(const Instruction& by, Check check, const void* p, const std::string& what, const std::string& expected,
            std::uint32_t earlier = 0);

  /// fence.proxy.async, for shared or global memory or both. The thread's log has been looked at.
  void fence(const Fiber& fiber, bool shared, bool global);
  /// fence.mbarrier_init. Of what a thread has written it orders mbarrier.init alone (PTX ISA, "membar / fence": .op_restrict).
  void fence_mbarriers(const Fiber& fiber);
  /// Whether the mbarrier.init that `write` stands for, and `reader` knows of, is seen by what `reader` asks the async proxy to do.
  bool fenced_mbarrier(unsigned reader, const Stamp& write) const { return fenced(reader, write, &Fence::mbarriers); }
  /// The instruction that has read at `address` in the background, at a line of this kernel, as `earlier` says; null: a thread did.
  const char* background_read(const Stamp& earlier, std::uintptr_t address);
  /// Reports a race of the warp's access with what the copy engine did, or has still to do.
  void report(const Race& race, unsigned warp, const WarpAccess& access);
  /// Reports an address that is no shared memory, out of bounds or no multiple of `alignment`.
  void require_shared(const Instruction& by, std::uintptr_t address, unsigned bytes, unsigned alignment);

  /// The same place in the shared memory of the block `rank` of the cluster.
  std::uintptr_t counterpart(const Instruction& by, std::uintptr_t address, unsigned rank);

  /// @name From the issue to the wait for it
  /// @{
  /// The bytes of shared memory are read. @return their version
  std::uint64_t begin_read(const Instruction& by, std::uintptr_t address, unsigned bytes);
  /// The thread has waited: nobody may have written meanwhile.
  void end_read(const Instruction& by, std::uintptr_t address, unsigned bytes, std::uint64_t version);
  /// The bytes of shared memory, be it another block's, are written: they are nobody's until then, and hold NaN.
  /// @param barrier where that completes
  void begin_write(const Instruction& by, std::uintptr_t address, unsigned bytes, std::uintptr_t barrier);
  /// The bytes of the block's own have been written. @param swizzle_bytes of the pattern in which they lie
  void end_write(const Stamp& stamp, std::uintptr_t address, unsigned bytes, unsigned swizzle_bytes);
  /// Reports bytes that the copy engine has put there by another pattern than the instruction reads them by.
  void require_swizzle(const Instruction& by, std::uintptr_t address, unsigned swizzle_bytes);
  /// The same four for global memory, any of it.
  std::uint64_t begin_global_read(const Instruction& by, std::uintptr_t address, unsigned bytes);
  void end_global_read(const Instruction& by, const Stamp& stamp, std::uintptr_t address, unsigned bytes, std::uint64_t version);
  void begin_global_write(const Instruction& by, std::uintptr_t address, unsigned bytes);
  void end_global_write(const Instruction& by, std::uintptr_t address, unsigned bytes);
  /// The same of a write that no thread of this launch knows to have ended.
  void end_global_write_unseen(std::uintptr_t address, unsigned bytes);
  /// @}

 private:
  static constexpr std::uintptr_t kLine = 128;  // where copies of boxes begin
  struct Fence {
    std::uint32_t time;
    KnowledgePtr covered;
    bool shared, global;
    bool mbarriers;  // that they are initialised
  };
  struct Landing {
    unsigned bytes;
    std::uintptr_t barrier;
    const char* what;
  };
  bool fenced(unsigned reader, const Stamp& write, bool Fence::*memory) const;
  bool fenced_globally(unsigned reader, const Stamp& write) const;
  AsyncProxy& home_of(std::uintptr_t address);
  static std::string at_line(std::uint32_t pc);
  const Landing* landing_at(std::uintptr_t address);  // null: none is known
  std::string where_it_completes(std::uintptr_t address);
  const char* what_writes(std::uintptr_t address);
  struct Unfenced {  // a write that `reader`'s instructions need not see
    Stamp write;
    std::uintptr_t address = 0;  // 0: there is none
  };
  Unfenced find_unfenced(const Fiber& reader, std::uintptr_t address, unsigned bytes);
  void report_unfenced(const Unfenced& unfenced, const Instruction& by, const char* then);
  void report_issue(const Race& race, const Instruction& by, bool writes, bool shared);
  void report_overwritten(const Instruction& by, ShadowedRange& range, std::uintptr_t address, unsigned bytes);
  void require_global(const Instruction& by, const char* direction, std::uintptr_t address, unsigned bytes);

  BlockContext& block_;
  std::vector<std::vector<Fence>> fences_;       // by thread, in the order of time
  std::map<std::uintptr_t, Landing> landings_;   // what is written last, or being written, by where it begins
  std::map<std::uintptr_t, unsigned> swizzles_;  // by which the copy engine wrote, by address / kLine
  std::map<Pc, const char*> background_reads_;   // of shared memory, the instructions' names
  Pc last_read_ = 0;                             // of these
};

}  // namespace interpreter

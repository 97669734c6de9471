/// @file
/// The mbarriers of a block, for the instructions that complete on one: see bulk_copies.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/interpreter/checks/async_proxy.h"
#include "common/interpreter/checks/mbarrier_facts.h"
#include "common/interpreter/instructions/mbarrier_order.h"
#include "common/interpreter/running/family.h"

namespace interpreter {

class BlockContext;

/// The mbarriers of a block (PTX ISA, "mbarrier"). Threads of other blocks of the cluster may arrive there, and have copies
/// complete there. A phase is complete when as many threads have arrived as init said, and as many bytes have come as expect_tx
/// said.
///
/// Bytes come as late as PTX allows: when all threads have arrived and somebody waits. Until then a copy's destination is NaN.
class Mbarriers final : public Family, public MbarrierFacts {
 public:
  explicit Mbarriers(BlockContext& block) : block_(block) {}
  void begin(unsigned threads) override;
  void on_exit(Fiber& fiber) override;
  bool wake_somebody() override;
  std::string what_is_awaited(const Fiber& fiber) const override;
  Missing what_is_missing(const Fiber& fiber) const override;
  bool has_barriers() const override { return !barriers_.empty(); }
  bool was_initialised_by(const Stamp& write, std::uintptr_t address) const override {
    const auto found = barriers_.find(address / 8 * 8);
    return found != barriers_.end() && found->second.initialised.thread == write.thread && found->second.initialised.pc == write.pc;
  }
  std::string last_wait_of(const Fiber& fiber) const override;

  /// @param over_another whether an mbarrier that nobody uses may be there
  void init(const AsyncProxy::Instruction& by, std::uintptr_t address, unsigned arrivals, bool over_another = false);
  void invalidate(const AsyncProxy::Instruction& by, std::uintptr_t address);
  /// @return the number of the phase that was under way
  std::uint64_t arrive(const AsyncProxy::Instruction& by, std::uintptr_t address, unsigned count, unsigned bytes,
                       bool relaxed = false);
  /// Later phases have one arrival less.
  void arrive_and_drop(const AsyncProxy::Instruction& by, std::uintptr_t address);
  /// By a thread of any block of the cluster.
  void arrive_remotely(const AsyncProxy::Instruction& by, std::uintptr_t address, const Arrival& how);
  /// By a thread of any block, too.
  void expect(const AsyncProxy::Instruction& by, std::uintptr_t address, unsigned bytes);
  enum class Sees {
    kBlock,    ///< what threads of its own block have done
    kCluster,  ///< what threads of other blocks have written, too
    kNothing,  ///< before its next fence
  };
  /// @param blocking try_wait, else test_wait  @return whether the phase with that parity is complete
  bool wait(const AsyncProxy::Instruction& by, std::uintptr_t address, unsigned parity, bool blocking, Sees sees);

  /// A copy has been issued that says `bytes` to the mbarrier when it lands. @param land does the copy; it leaves the stamp behind
  void add_copy(const AsyncProxy::Instruction& by, std::uintptr_t address, unsigned bytes, std::function<void(const Stamp&)> land);
  /// The phase that is under way does not end before a thread's own copies, the cp.async, have landed.
  void add_own_copies(const AsyncProxy::Instruction& by, std::uintptr_t address, std::function<void(const Stamp&)> land);

 private:
  struct Copy {
    unsigned bytes;
    const char* what;
    Pc pc;
    BlockContext* issuer;
    const Fiber* thread;
    std::uint64_t number;  // of the block's that the engine does, from 1 on
    std::function<void(const Stamp&)> land;
  };
  struct Mbarrier {
    unsigned number = 0;  // in the block
    unsigned arrivals = 0, pending = 0;
    bool is_over = false;    // nobody is left to arrive: all have dropped out
    std::int64_t bytes = 0;  // that are still to come in this phase
    std::uint64_t phase = 0;
    Stamp initialised;
    KnowledgePtr arrived, completed;                  // what this phase makes known so far, and what the last one did
    KnowledgePtr cluster_arrived, cluster_completed;  // the same to who waits with acquire.cluster, besides
    std::uint64_t landed = 0, completed_landed = 0;   // number of the last copy of the engine that these make known
    std::deque<Copy> copies;                          // under way
    std::vector<Copy> own_copies;                     // of threads; they have no bytes
    bool looked_at = false;                           // while they were under way, by who does not wait
  };
  struct Waiter {
    unsigned thread;
    std::uintptr_t address;
    Sees sees;
    bool completed = false;
    KnowledgePtr known = nullptr;  // what the phase makes known
    std::uint64_t landed = 0;
  };
  struct Waited {
    std::uintptr_t address = 0;
    unsigned parity = 0;
    std::uint64_t phase = 0;  // the one after that which was waited for
    Pc pc = 0;
  };
  Mbarrier& require(const AsyncProxy::Instruction& by, std::uintptr_t address);
  [[noreturn]] void fail(const AsyncProxy::Instruction& by, std::uintptr_t address, const std::string& what,
                         const std::string& expected);
  bool in_use(std::uintptr_t address, const Mbarrier& barrier) const;
  void note_access(const AsyncProxy::Instruction& by, std::uintptr_t address, bool write, bool atomic);
  void visit(const AsyncProxy::Instruction& by, std::uintptr_t address);
  void require_tx_in_range(const AsyncProxy::Instruction& by, std::uintptr_t address, const Mbarrier& barrier);
  bool somebody_waits_at(std::uintptr_t address) const;
  void arrive(const AsyncProxy::Instruction& by, std::uintptr_t address, Mbarrier& barrier, unsigned count, unsigned bytes,
              const KnowledgePtr& known);
  void advance(std::uintptr_t address, Mbarrier& barrier);
  [[noreturn]] void fail_unexpected(std::uintptr_t address, const Mbarrier& barrier);
  void acquire(const Fiber& fiber, const KnowledgePtr& known, Sees sees);
  bool lacks_some_arrivals() const;
  std::uintptr_t awaited_by(const Fiber& fiber) const;

  BlockContext& block_;
  std::map<std::uintptr_t, Mbarrier> barriers_;
  unsigned made_ = 0;                           // so far, in this block
  unsigned copies_ = 0;                         // of the engine that are under way
  std::uint64_t issued_ = 0;                    // of the engine, so far
  std::vector<std::uint64_t> landed_;           // by thread: number of the last one of which it knows by waits at mbarriers
  std::vector<Waiter*> waiters_;                // on the waiting threads' stacks
  std::vector<Waited> waited_;                  // by thread, the last time
  std::set<std::pair<unsigned, Pc>> given_up_;  // threads and try_waits that have given up once
  std::uint64_t seen_ = 0;                      // Activity::changes() when waiters were last told to look again
  unsigned told_ = 0;                           // how often they were, since then
};

}  // namespace interpreter

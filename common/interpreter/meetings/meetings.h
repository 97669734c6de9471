/// @file
/// Where the threads of a block wait for each other: collectives of a warp, barriers of the block.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/interpreter/checks/barrier_rounds.h"
#include "common/interpreter/schedule/whereabouts.h"

namespace interpreter {

class Activity;
class BlockContext;
class Cluster;
class Reporter;
class Scheduler;
class TwoWorlds;

/// The collectives and the barrier that are under way in a block.
class Meetings final : public Whereabouts {
 public:
  Meetings(BlockContext& block, Scheduler& scheduler, Reporter& reporter, Activity& activity, TwoWorlds& worlds)
      : block_(block), scheduler_(scheduler), reporter_(reporter), activity_(activity), worlds_(worlds) {}
  /// A block begins.
  void begin();

  /// The fiber meets the other lanes of `mask`; the last one calls `combine`.
  void collective(Fiber& fiber, const char* name, unsigned mask, void* argument, Combine combine, Site site) {
    meet(fiber, name, mask, argument, combine, site, 0);
  }
  /// The same for an instruction that the whole warp executes, and for its machine instruction `pc`.
  void instruction_of_warp(Fiber& fiber, const char* name, void* argument, Combine combine, Pc pc) {
    meet(fiber, name, 0xffffffffu, argument, combine, {}, pc);
  }
  /// __syncwarp().
  void warp_barrier(Fiber& fiber, unsigned mask, Site site) { meet(fiber, "__syncwarp", mask, nullptr, nullptr, site, 0); }
  /// __syncthreads() and its like. @return the reduction of all threads' predicates
  int barrier(Fiber& fiber, Reduction reduction, bool predicate, Site site, Pc pc);
  /// The fiber has exited: nobody waits for it any more.
  void leave(const Fiber& fiber);

  /// All threads have exited: what is known of the kernel's loops now may show barriers in different rounds.
  void look_back();

  /// @name Whereabouts
  /// @{
  Location barrier_between(const Fiber& fiber, const Location& from, const Location& to) const override;
  Location collective_between(const Fiber& fiber, const Fiber& running, const Location& from, const Location& to) const override;
  const Fiber* waits_where_passed_by(const Fiber& running) override;
  const Fiber* waits_in_earlier_round(const Fiber& running) const override;
  Location barrier_left_out(const Fiber& running) const override;
  std::string who_met_elsewhere(unsigned warp, const char* name) const override;
  /// @}
  /// One sentence on all threads of the block.
  std::string who_waits_where() const;

 private:
  struct Collective {
    unsigned mask, arrived;
    const char* name;
    Combine combine;
    Pc pc;  // of an instruction that the whole warp executes; else 0
    Site site;
  };
  // Of a lane, the collective with a mask that it was in last.
  struct Last {
    const char* name;
    unsigned mask;
    Site site;
  };
  struct Warp {
    std::vector<Collective> collectives;
    void* arguments[32];
    std::uint32_t met = 0;  // lanes that have a `last`
    Last last[32];
    // The first collective in which two lanes met that came by different calls: name is null while there is none.
    struct Apart {
      const char* name = nullptr;
      unsigned lanes[2];
      Site sites[2];
    } apart;
  };

  void meet(Fiber& fiber, const char* name, unsigned mask, void* argument, Combine combine, Site site, Pc pc);
  void complete(unsigned warp, std::size_t collective);
  [[noreturn]] void fail_not_in_mask(const Fiber& fiber, const char* name, unsigned mask, Site site);
  [[gnu::noinline]] void require_same_mask(unsigned warp, const Collective& group) const;
  [[gnu::noinline]] void require_same_instruction(const Fiber& fiber, const Collective& group, Pc pc);
  void require_same_call(const Fiber& first, const Fiber& fiber);
  void require_same_round(const Fiber& first, const Fiber& fiber);
  void require_barrier_before_exit(const Fiber& fiber);
  [[noreturn]] void fail_rounds(const Fiber& first, const Fiber& fiber, Site site);
  void release_barrier();

  BlockContext& block_;
  Scheduler& scheduler_;
  Reporter& reporter_;
  Activity& activity_;
  TwoWorlds& worlds_;
  std::vector<Warp> warps_;
  unsigned at_barrier_ = 0;
  const Fiber* first_at_barrier_ = nullptr;  // while at_barrier_ is not 0
  int barrier_result_ = 0;
  Pc last_barrier_ = 0;  // the call; 0: there was none yet
  Reduction barrier_reduction_ = Reduction::kNone;
  std::set<std::pair<Pc, Pc>> same_calls_;              // of barriers
  std::map<const ControlFlow*, BarrierRounds> rounds_;  // by kernel
  std::map<const ControlFlow*, std::map<std::uint32_t, Site>>
      passed_;                                               // by kernel and basic block, the barriers that blocks have passed
  std::set<std::pair<std::uint64_t, std::uint64_t>> exits_;  // hashes of ways: who waited, who ended
};

/// The same of each block of the cluster that has not come to its end.
std::string who_waits_where(const Cluster& cluster);

}  // namespace interpreter

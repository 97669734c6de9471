// The cluster's barrier and its addresses (PTX ISA, "barrier.cluster", "mapa", "getctarank").
#include "common/interpreter/instructions/cluster.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/interpreter/checks/async_proxy.h"
#include "common/interpreter/checks/bad_indices.h"
#include "common/interpreter/count/counters.h"
#include "common/interpreter/count/teamwork.h"
#include "common/interpreter/instructions/entered.h"
#include "common/interpreter/observe/recorder.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/schedule/activity.h"
#include "common/interpreter/schedule/cluster.h"
#include "common/interpreter/schedule/scheduler.h"

namespace interpreter {
namespace {

// A block's part in the cluster's barrier. The barrier itself lies with the block of rank 0.
class ClusterBarrier final : public Family {
 public:
  explicit ClusterBarrier(BlockContext& block) : block_(block) {}
  void begin(unsigned threads) override {
    threads_.assign(threads, {});
    barrier_ = {};
    met_ = 0;
  }
  void on_exit(Fiber& fiber) override;
  std::string what_is_awaited(const Fiber& fiber) const override;
  Missing what_is_missing(const Fiber& fiber) const override;

  /// @param relaxed publishes nothing, unless the thread has fenced
  void arrive(Fiber& fiber, Pc pc, bool relaxed);
  void fence(const Fiber& fiber) { threads_[fiber.linear].fenced = true; }
  void wait(Fiber& fiber, Pc pc);

 private:
  struct Barrier {
    unsigned phase = 0;
    unsigned arrived = 0;  // of the threads that have not ended
    std::shared_ptr<Knowledge> known;
    KnowledgePtr last;       // see BlockClock::release_into()
    KnowledgePtr completed;  // what the last phase makes known
  };
  struct Thread {
    bool arrived = false;  // and has not waited
    unsigned phase = 0;    // in which it has arrived
    Pc pc = 0;             // where
    bool waits = false;
    bool fenced = false;  // has initialised mbarriers, and said so, since it last arrived
  };
  bool all_wait_here() const;
  Barrier& barrier() const { return block_.cluster().block(0).family<ClusterBarrier>().barrier_; }
  unsigned live() const;
  void complete();
  [[noreturn]] void fail(const Fiber& fiber, Pc pc, const std::string& what, const char* expected);

  BlockContext& block_;
  std::vector<Thread> threads_;
  Barrier barrier_;
  unsigned met_ = 0;  // phases to which threads of this block have come
};

unsigned ClusterBarrier::live() const {
  unsigned sum = 0;
  for (const BlockContext* const block : block_.cluster().blocks()) sum += block->scheduler.live();
  return sum;
}

void ClusterBarrier::fail(const Fiber& fiber, Pc pc, const std::string& what, const char* expected) {
  block_.reporter.fail(Check::kSynccheck, what, expected, &fiber, user_location(pc));
}

void ClusterBarrier::arrive(Fiber& fiber, Pc pc, bool relaxed) {
  // Threads that end are counted where a block has its part.
  for (BlockContext* const block : block_.cluster().blocks()) block->family<ClusterBarrier>();
  block_.activity.note_progress();
  if (block_.recorder.log.count(fiber.lane)) block_.scheduler.rendezvous(fiber);  // as in Mbarriers
  Thread& thread = threads_[fiber.linear];
  if (thread.arrived)
    fail(fiber, pc,
         "barrier.cluster.arrive by a thread that has arrived at " + at(user_location(thread.pc)) + " and not waited since",
         "a thread arrives once in each phase of the cluster's barrier, and only barrier.cluster.wait tells that it is over");
  Barrier& at = barrier();
  const bool publishes = !relaxed || thread.fenced;
  thread = {true, at.phase, pc};
  if (std::exchange(met_, at.phase + 1) <= at.phase && block_.work.options().count)
    block_.counters.count_barrier(pc), ++teamwork().cluster_meetings;
  if (block_.work.options().racecheck) {
    if (!at.known) at.known = std::make_shared<Knowledge>();
    if (publishes)
      block_.clock.release_into(fiber.linear, *at.known, at.last);
    else  // what a fence covers
      *at.known = *merge(at.known, block_.clock.fenced(fiber.linear, true));
  }
  block_.activity.note_change();
  block_.note(fiber, EventKind::kClusterArrive, pc);
  if (++at.arrived == live()) complete();
}

void ClusterBarrier::complete() {
  for (BlockContext* const block : block_.cluster().blocks())
    if (block->reporter.confirm()) block_.scheduler.leave(Scheduler::Stop::kFailed);
  Barrier& at = barrier();
  ++at.phase, at.arrived = 0;
  at.completed = std::exchange(at.known, nullptr), at.last = nullptr;
  for (BlockContext* const block : block_.cluster().blocks()) {
    std::vector<Thread>& threads = block->family<ClusterBarrier>().threads_;
    for (unsigned i = 0; i < threads.size(); ++i)
      if (std::exchange(threads[i].waits, false)) block->scheduler.wake_in_family(block->scheduler.fibers()[i]);
  }
}

void ClusterBarrier::wait(Fiber& fiber, Pc pc) {
  block_.activity.note_progress();
  block_.scheduler.rendezvous(fiber);
  Thread& thread = threads_[fiber.linear];
  if (!thread.arrived)
    fail(fiber, pc, "barrier.cluster.wait by a thread that has not arrived: it would wait for itself",
         "barrier.cluster.arrive before each barrier.cluster.wait");
  if (barrier().phase == thread.phase) {
    thread.waits = true;
    block_.indices.before_waiting(fiber);
    block_.scheduler.wait_in_family(fiber, "barrier.cluster.wait", pc);
  }
  thread.arrived = false;
  if (barrier().completed) block_.clock.acquire(fiber.linear, barrier().completed);
  block_.note(fiber, EventKind::kClusterWait, pc);
}

// The barrier waits for no thread that has ended.
void ClusterBarrier::on_exit(Fiber& fiber) {
  Barrier& at = barrier();
  const Thread& thread = threads_[fiber.linear];
  if (thread.arrived && thread.phase == at.phase) --at.arrived;
  if (at.arrived && at.arrived == live() - 1) complete();
}

std::string ClusterBarrier::what_is_awaited(const Fiber& fiber) const {
  if (fiber.linear >= threads_.size() || !threads_[fiber.linear].waits) return "";
  return " for the cluster's barrier, where " + std::to_string(barrier().arrived) + " of " + std::to_string(live()) +
         " threads have arrived";
}

// Of the threads that wait for a family of instructions.
bool ClusterBarrier::all_wait_here() const {
  for (BlockContext* const block : block_.cluster().blocks())
    for (const Fiber& fiber : block->scheduler.fibers())
      if (fiber.state == Fiber::State::kInFamily && !block->family<ClusterBarrier>().threads_[fiber.linear].waits) return false;
  return true;
}

// Who waits elsewhere is the reason why others wait here.
Family::Missing ClusterBarrier::what_is_missing(const Fiber& fiber) const {
  if (what_is_awaited(fiber).empty() || !all_wait_here()) return {};
  return {"", false,
          "all threads of all blocks of the cluster arrive at its barrier equally often, those that have ended excepted"};
}

}  // namespace

// ------------------------------------------------------------------------------------------------------ what a kernel calls
dim3 cluster_dimensions() { return running_fiber(), current_block->work.launch->launch.cluster; }
unsigned cluster_rank() { return running_fiber(), current_block->work.rank; }
unsigned cluster_size() { return running_fiber(), current_block->cluster().size(); }

void cluster_barrier_arrive() {
  const Entered in;
  in.block.family<ClusterBarrier>().arrive(in.fiber, to_pc(__builtin_return_address(0)), false);
}
void cluster_barrier_arrive_relaxed() {
  const Entered in;
  in.block.family<ClusterBarrier>().arrive(in.fiber, to_pc(__builtin_return_address(0)), true);
}
void fence_mbarrier_init() {
  const Entered in;
  if (in.block.recorder.log.count(in.fiber.lane)) in.block.scheduler.rendezvous(in.fiber);  // as in Mbarriers
  if (in.block.work.options().racecheck) in.block.async_proxy.fence_mbarriers(in.fiber);
  in.block.family<ClusterBarrier>().fence(in.fiber);
}
void cluster_barrier_wait() {
  const Entered in;
  in.block.family<ClusterBarrier>().wait(in.fiber, to_pc(__builtin_return_address(0)));
}

void* mapa(const volatile void* shared, unsigned rank) {
  const Entered in;
  const AsyncProxy::Instruction by{in.fiber, "mapa", to_pc(__builtin_return_address(0))};
  return reinterpret_cast<void*>(in.block.async_proxy.counterpart(by, reinterpret_cast<std::uintptr_t>(shared), rank));
}

unsigned cluster_rank_of(const volatile void* address) {
  const Entered in;
  const void* const shared = const_cast<const void*>(address);
  const BlockContext* const home = in.block.cluster().home_of(reinterpret_cast<std::uintptr_t>(shared));
  if (!home)
    in.block.async_proxy.fail({in.fiber, "getctarank", to_pc(__builtin_return_address(0))}, Check::kMemcheck, shared,
                              "getctarank of " + in.block.reporter.describe(shared) + ", which is no shared memory of the cluster",
                              "the address is one of the cluster's shared memory");
  return home->work.rank;
}

}  // namespace interpreter

/// @file
/// Which accesses are ordered.
///
/// The model is the happens-before relation of the PTX memory model (PTX ISA, "Memory Consistency Model"), with a logical clock per
/// block. The clock ticks at every synchronisation; an access carries the block's time. What orders accesses:
///   - program order;
///   - `__syncthreads`: everything in the block before it, before everything after it;
///   - `__syncwarp(mask)`: the same among the lanes of the mask, what their fences cover included;
///   - an arrival at an mbarrier, before what follows a wait for that phase of it; across blocks of a cluster only reads and the
///   copy
///     engine's writes before it, unless both say `.cluster`;
///   - an arrival at the cluster's barrier, before what follows a wait there;
///   - the end of the launches before a dependent one, before what follows a wait for them; see DependenceCheck;
///   - a fence, then an atomic (or volatile) write, observed by an atomic (or volatile) read, then a fence. A barrier after the
///     observing atomic counts as its fence: CUDA's own "last block" reduction in the Programming Guide is written that way. A
///     fence of one thread, a barrier, then the atomic of another thread do as well: CUDA's fences are sequentially consistent.
/// A cp.async writes some time between its issue and the end of its thread's wait for it: accesses before it must be ordered before
/// the issue, accesses after it must be ordered after the wait, and between the two nobody may touch the bytes, the thread
/// included. A bulk copy does the same, but it is the copy engine that writes: its stamps belong to nobody of the block, and only
/// who has waited at the copy's mbarrier knows them. So is a cp.async that completes at an mbarrier. Shuffles, votes, ldmatrix and
/// mma exchange registers and order nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/interpreter/happens_before/knowledge.h"
#include "common/interpreter/happens_before/readers.h"

namespace interpreter {

/// The clock of one running block and what its threads know of each other and of other blocks.
class BlockClock {
 public:
  /// Starts a block of `threads` threads. @param reader_sets of its cluster
  void begin(std::uint64_t launch, std::uint64_t block, unsigned threads, ReaderSets& reader_sets);

  void barrier();
  void warp_barrier(unsigned warp, unsigned mask);
  void fence(unsigned thread, bool whole_gpu);
  /// Before an atomic's or volatile store's change becomes visible: publishes what the thread's last fence covers.
  void release_to(unsigned thread, const void* address, bool whole_gpu);
  /// After an atomic or volatile load: what was published there counts from the thread's next fence on.
  void acquire_from(unsigned thread, const void* address);

  /// @return what `thread` has done and knows; what it does from now on is not among it
  KnowledgePtr release(unsigned thread);
  /// @return what its last fence covers of that, perhaps nothing: what an arrival makes known that is relaxed
  KnowledgePtr fenced(unsigned thread, bool whole_gpu) const;
  /// The same for many threads, all of which add to `known`. @param last what the one before has added besides itself
  void release_into(unsigned thread, Knowledge& known, KnowledgePtr& last);
  /// What is in `knowledge` happened before everything that `thread` does from now on.
  void acquire(unsigned thread, const KnowledgePtr& knowledge);
  /// The same of what it does after its next fence.
  void acquire_at_fence(unsigned thread, const KnowledgePtr& knowledge);
  /// The copy engine has written, with stamps engine(mbarrier) and time(), what the mbarrier's phase makes known.
  /// @return `knowledge` with that in it
  KnowledgePtr land(unsigned mbarrier, const KnowledgePtr& knowledge);
  ThreadId engine(unsigned mbarrier) const { return first_ | kEngine | mbarrier; }
  /// The launches before this one have ended, and `thread` has waited for that.
  void wait_for_launches(unsigned thread);
  /// Whether that happened before everything that `thread` does from now on, by its own wait or by somebody else's.
  bool knows_of_launches(unsigned thread) const { return knows(thread, {end_of_launches()}); }

  /// Whether `stamp` happened before everything that `thread` does from now on.
  bool knows(unsigned thread, const Stamp& stamp) const;
  /// The same of a read.
  bool knows_read(unsigned thread, const Stamp& stamp) const;
  /// Whether `thread` knows anything of another block: then that has begun.
  bool knows_of(unsigned thread, const BlockClock& other) const;
  /// Whether what some lane of a warp of this block read at `time` happened before everything that `thread` does from now on.
  bool knows_of_warp(unsigned thread, unsigned warp, std::uint32_t time) const;
  /// The same of what each of the `lanes` read. @param warp its number in the cluster
  bool knows_of_lanes(unsigned thread, unsigned warp, std::uint32_t lanes, std::uint32_t time) const;
  /// The number of a warp of this block in the cluster.
  unsigned warp_in_cluster(unsigned warp) const { return first_warp_ + warp; }
  ReaderSets& reader_sets() const { return *reader_sets_; }
  /// Counts how often any thread of the launch learnt something through an atomic; see ReadLevel.
  std::uint32_t epoch_of(unsigned thread) const;

  std::uint32_t time() const { return time_; }
  std::uint32_t barrier_time() const { return barrier_time_; }  ///< accesses of the block with smaller times are known to all
  ThreadId id(unsigned thread) const { return first_ | thread; }
  std::uint64_t block() const { return block_of(first_); }
  std::uint64_t launch() const { return launch_of(first_); }

 private:
  struct WarpClock {
    std::uint32_t all_before = 0;                // known to all lanes, from full-mask barriers
    std::unique_ptr<std::uint32_t[][32]> known;  // [lane][of lane], from partial masks
  };
  // What a fence covers. What threads know of others is large, and many have learnt the same: so that is kept by itself.
  struct Fenced {
    KnowledgePtr own, others;  // of its warp and the block's barriers, null if there was no fence; what it has learnt
  };
  static Fenced both(const Fenced& a, const Fenced& b);
  struct ThreadClock {  // only of threads that use fences and atomics
    KnowledgePtr acquired, pending_in_block, pending_in_gpu;
    Fenced fenced_in_block, fenced_in_gpu;
    bool fenced_since_barrier = false;
    std::uint32_t epoch = 0;
  };
  // The end of the launches before this one, as what a block of this launch did that does not exist.
  ThreadId end_of_launches() const { return make_thread_id(launch(), block_of(kEngine) - 1, 0); }
  ThreadClock& clock_of(unsigned thread);
  void add_own(unsigned thread, Knowledge& known) const;
  const KnowledgePtr& acquired_by(unsigned thread) const;
  KnowledgePtr learnt_by(unsigned thread) const;
  KnowledgePtr own_of(unsigned thread) const;
  bool knows_without_others(unsigned thread, const Stamp& stamp) const;
  // What knows() or knows_of_lanes() was asked last: of a tile, all words have the same writer and the same readers.
  struct Question {
    std::uint64_t learnt = 0;  // learnt_ then
    unsigned thread = 0;
    std::uint64_t of = 0;  // a thread, or lanes
    std::uint32_t time = 0;
    bool operator==(const Question&) const = default;
  };
  struct Answer {
    Question question;
    bool known = false;
  };

  ThreadId first_ = 0;
  std::uint32_t time_ = 1, barrier_time_ = 1;
  std::vector<WarpClock> warps_;
  std::map<unsigned, ThreadClock> threads_;
  struct Merged {
    KnowledgePtr a, b, result;
  };
  Merged merged_;                                 // by acquire(), last
  mutable Merged learnt_by_last_;                 // by learnt_by(), last
  KnowledgePtr launches_;                         // of a thread that has waited for the launches before this one
  KnowledgePtr acquired_;                         // by any thread of the block before the last barrier
  KnowledgePtr fenced_in_block_, fenced_in_gpu_;  // the same
  std::uint32_t epoch_ = 0;
  ReaderSets* reader_sets_ = nullptr;
  unsigned first_warp_ = 0;              // in the cluster
  std::uint64_t learnt_ = 0;             // changes when a thread may have learnt something
  mutable Answer last_answer_;           // of knows()
  mutable std::vector<Answer> answers_;  // of knows_of_lanes(), by warp of the cluster, the last one
};

/// How often any thread of the launch has learnt something through an atomic.
extern std::atomic<std::uint32_t> acquisitions;
/// Starts a launch's count of them, and forgets what atomics have published.
void forget_published();

}  // namespace interpreter

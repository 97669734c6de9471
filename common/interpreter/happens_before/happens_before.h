/// @file
/// racecheck's memory: which accesses are ordered, and who accessed which byte last.
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

#include <boost/container/flat_map.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/interpreter/observe/access_log.h"

namespace interpreter {

/// A thread of a launch: `launch << 50 | block << 10 | thread`. Never 0.
using ThreadId = std::uint64_t;
constexpr ThreadId make_thread_id(std::uint64_t launch, std::uint64_t block, unsigned thread) {
  return (launch & 0x1fff) << 50 | block << 10 | thread;
}
constexpr std::uint64_t block_of(ThreadId id) { return id >> 10; }  ///< unique per launch and block
constexpr std::uint64_t launch_of(ThreadId id) { return id >> 50; }
constexpr unsigned thread_of(ThreadId id) { return static_cast<unsigned>(id) & 1023; }

/// Of the copy engine, when it writes for the mbarrier number `thread` of a block.
inline constexpr ThreadId kEngine = 1ull << 49;

/// An access: who, when by the clock of his block, and from where.
struct Stamp {
  ThreadId thread = 0;  ///< 0: no access
  std::uint32_t time = 0;
  std::uint32_t pc = 0;  ///< with flags: kAtomicPc, kBlockScopePc, kEnginePc
};
inline constexpr std::uint32_t kAtomicPc = 1u << 31;      ///< an atomic or volatile access, which races only with plain ones
inline constexpr std::uint32_t kBlockScopePc = 1u << 30;  ///< and with those of other blocks
inline constexpr std::uint32_t kEnginePc = 1u << 29;      ///< an access of the copy engine, which the thread has issued there
inline constexpr std::uint32_t kPcFlags = kAtomicPc | kBlockScopePc | kEnginePc;

/// Small, and copied and merged far more often than searched: a sorted array, not nodes.
template <class Key, class T>
using FlatMap = boost::container::flat_map<Key, T>;

/// Times up to which accesses of others are known, per block and thread.
struct BlockKnowledge {
  std::uint32_t before = 0;                  ///< of every thread of the block
  FlatMap<unsigned, std::uint32_t> threads;  ///< of single threads, where later than `before`
};
using Knowledge = FlatMap<std::uint64_t, BlockKnowledge>;
using KnowledgePtr = std::shared_ptr<const Knowledge>;
/// With this bit in the block's number, knowledge is of reads alone: they are over, but what was written need not be seen.
inline constexpr std::uint64_t kReadsOnly = 1ull << 53;  // the launch ends below
/// Whether what `stamp` stands for is among it.
bool covers(const KnowledgePtr& knowledge, const Stamp& stamp);
/// The same of a read.
bool covers_read(const KnowledgePtr& knowledge, const Stamp& stamp);
/// What is in one of the two.
KnowledgePtr merge(const KnowledgePtr& a, const KnowledgePtr& b);
/// What is left of it when threads' writes are not seen.
KnowledgePtr without_writes(const KnowledgePtr& knowledge);

/// Who has read words of shared memory that several warps have read: for each warp of the cluster its lanes, and since when.
class ReaderSets {
 public:
  struct Reader {
    std::uint32_t time = 0, lanes = 0, pc = 0;  ///< no lanes: the warp has not read
  };
  /// A cluster begins. @param blocks the first thread of each block  @param warps of each block
  void begin(std::vector<ThreadId> blocks, unsigned warps);
  std::uint32_t add();
  std::uint32_t copy(std::uint32_t set);
  void remove(std::uint32_t set) { free_.push_back(set); }
  Reader* of(std::uint32_t set) { return &readers_[std::size_t(set) * warps_]; }
  unsigned warps() const { return warps_; }                  ///< of the cluster
  bool of_one_block() const { return blocks_.size() == 1; }  ///< whether the cluster has no other
  /// The number of the thread's warp in the cluster.
  unsigned warp_of(ThreadId thread) const;
  bool holds(ThreadId thread) const { return warp_of(thread) < warps_; }  ///< whether it is one of the cluster's
  ThreadId thread(unsigned warp, unsigned lane) const {
    return blocks_[warp / warps_of_block_] | (warp % warps_of_block_ * 32 + lane);
  }

 private:
  std::vector<ThreadId> blocks_;
  unsigned warps_ = 0, warps_of_block_ = 1;
  std::vector<Reader> readers_;
  std::vector<std::uint32_t> free_;
};

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

/// How many readers the read stamp of a cell stands for. Exact sets of readers would cost memory without end. At kWarps the warps
/// are kept: of shared memory in ReaderSets; of global memory with the time of the first read, and the writer must know some lane
/// of each to have passed it (never too strict). At kBlocks only the fact is kept: such reads are ordered before a later write if
/// the writer has learnt something through an atomic after the last of them (too lenient when it learnt it from somebody else,
/// never too strict). But of what one block has written for others in the same launch, the first few warps that read it are kept:
/// the writer must know each of them.
enum class ReadLevel : std::uint32_t { kThread, kLanes, kWarps, kBlocks };

/// The last accesses of one 4-byte word, or of one byte once its word has been accessed in parts.
struct Cell {
  Stamp write, read;  ///< of reads after the write; while read.thread is 0 there is none
  /// Of the read stamp's warp, at ReadLevel::kLanes; at kWarps the reading warps, or their set; at kBlocks their set, if there is
  /// one
  std::uint32_t lanes = 0;
  /// Changed as a whole where more than one part changes: a processor waits when it reads a word soon after a byte of it was
  /// written.
  struct State {
    std::uint32_t level : 2 = 0;    ///< ReadLevel
    std::uint32_t split : 1 = 0;    ///< of a word's cell: its bytes have cells of their own
    std::uint32_t copying : 1 = 0;  ///< `write` is the issue of a cp.async that has not been waited for
    std::uint32_t valued : 1 = 0;   ///< `write` is a plain store, and read.time what it stored, while read.thread is 0
    std::uint32_t in_set : 1 = 0;   ///< `lanes` is a number: at kWarps of one of the ReaderSets, at kBlocks of one of the launch's
    std::uint32_t beneath : 1 = 0;  ///< `write` is an atomic, and of a plain store before it a stamp is kept elsewhere
    std::uint32_t epoch : 25 = 0;   ///< launch-wide count of acquisitions at the last read, shortened
  } state;

  ReadLevel read_level() const { return static_cast<ReadLevel>(state.level); }
};
static_assert(sizeof(Cell) == 40);

/// A range of memory with its cells. They are reserved lazily: only words that are accessed cost memory.
class ShadowedRange {
 public:
  ShadowedRange() = default;
  ShadowedRange(const void* base, std::size_t bytes);
  ShadowedRange(const ShadowedRange&) = delete;
  ~ShadowedRange();

  /// Forgets the accesses to the first `bytes` bytes.
  void clear(std::size_t bytes);
  /// The same for the bytes from `address` on. Whole pages of what that took go back to the system.
  void forget(std::uintptr_t address, std::size_t bytes);
  void forget_all();
  bool contains(std::uintptr_t address) const { return address - base_ < bytes_; }
  Cell& word(std::uintptr_t address) { return words_[(address - base_) / 4]; }
  Cell& byte(std::uintptr_t address) { return bytes_cells_[address - base_]; }

 private:
  std::uintptr_t base_ = 0;
  std::size_t bytes_ = 0;
  Cell* words_ = nullptr;
  Cell* bytes_cells_ = nullptr;
};

/// One instruction of one warp, as racecheck sees it.
struct WarpAccess {
  unsigned warp;
  std::uint32_t pc;
  unsigned size;       ///< bytes per lane
  bool write, atomic;  ///< atomic: also volatile
  bool block_scope = false;
  bool engine = false;             ///< by the copy engine
  bool shared = false;             ///< to shared memory, whose readers are kept exactly
  const Stored* stored = nullptr;  ///< what a plain store has put there, by lane
  unsigned stored_offset = 0;      ///< where in Stored::bytes

  /// The pc with its flags, as stamps keep it.
  std::uint32_t marked_pc() const {
    return pc | (atomic ? kAtomicPc : 0) | (block_scope ? kBlockScopePc : 0) | (engine ? kEnginePc : 0);
  }
};

/// Plain loads that are the look before an atomicCAS, by their instruction: they race with no atomic, for atomicCAS finds out when
/// the value was old. The first 16 of a process are known.
/// @{
void add_look_before_cas(std::uint32_t pc);
bool is_look_before_cas(std::uint32_t pc);
/// @}

/// Records that `lanes` of the warp access the same `access.size` bytes at `address`.
/// @return the earlier, unordered access of another thread; thread == 0 if there is none.
struct Race {
  Stamp earlier;
  bool earlier_wrote = false;
  bool same_value = false;  ///< both are plain stores, and put the same value there
  bool copying = false;     ///< the earlier access is a cp.async that has not been waited for
  unsigned lane = 0;        ///< of this access
  std::uintptr_t address = 0;
};
Race record_access(ShadowedRange& range, const BlockClock& clock, const WarpAccess& access, std::uintptr_t address, unsigned lanes);
/// Whether a read races with an earlier write, without a trace of the read.
Race race_of_read(ShadowedRange& range, const BlockClock& clock, const WarpAccess& access, std::uintptr_t address, unsigned lane);

/// Atomics are recorded some time before they take place. This is the moment: the thread's is the latest atomic at the address.
void note_atomic(ShadowedRange& range, const BlockClock& clock, unsigned thread, const WarpAccess& access, std::uintptr_t address);
/// The cell of the word at `address`, or of the byte there if the word has been accessed in parts.
inline Cell& cell_at(ShadowedRange& range, std::uintptr_t address) {
  Cell& word = range.word(address);
  return word.state.split ? range.byte(address) : word;
}
/// Calls `visit(cell, address)` for the cells of the bytes.
template <class Visit>
void for_each_cell(ShadowedRange& range, std::uintptr_t address, unsigned size, Visit&& visit) {
  for (std::uintptr_t at = address, end = address + size; at < end;) {
    const std::uintptr_t word_end = (at & ~std::uintptr_t(3)) + 4;
    if (!range.word(at).state.split) {
      visit(range.word(at), at);
      at = word_end;
    } else {
      for (; at < end && at < word_end; ++at) visit(range.byte(at), at);
    }
  }
}
/// The last write there in this launch, if it is an atomic or volatile one of somebody else that nothing orders before `thread`;
/// else a stamp whose thread is 0.
Stamp unordered_strong_write(ShadowedRange& range, const BlockClock& clock, unsigned thread, std::uintptr_t address);
/// Whether the last write to the word or byte at `address` is an atomic of somebody else that nothing orders before `thread`.
bool follows_unordered_atomic(ShadowedRange& range, const BlockClock& clock, unsigned thread, std::uintptr_t address);

/// A cp.async of the thread begins to write whole words: the bytes are nobody's until end_copy().
Race begin_copy(ShadowedRange& range, const BlockClock& clock, const WarpAccess& access, std::uintptr_t address, unsigned lane);
/// The thread has waited for the cp.async that `pc` issued: it writes the words now.
void end_copy(ShadowedRange& range, const BlockClock& clock, unsigned thread, std::uint32_t pc, std::uintptr_t address,
              unsigned size);
/// Changes when anybody writes the bytes, and only then.
std::uint64_t version_of(ShadowedRange& range, std::uintptr_t address, unsigned size);
/// The latest write in this launch to one of the bytes; thread == 0 if there is none.
Stamp last_write(ShadowedRange& range, const BlockClock& clock, std::uintptr_t address, unsigned size);

/// The latest write in this launch that was none of the copy engine's; thread == 0 if there is none.
Stamp last_generic_write(ShadowedRange& range, const BlockClock& clock, std::uintptr_t address, unsigned size);

/// What a read by the copy engine leaves behind, which nobody has disturbed.
/// @param issuer the thread whose own read, noted when the copy began, this one replaces; 0: there is none
void note_engine_read(ShadowedRange& range, const BlockClock& clock, const Stamp& stamp, std::uintptr_t address, unsigned size,
                      ThreadId issuer = 0);
/// What a write by the copy engine leaves behind: `stamp` for all the bytes.
void end_engine_copy(ShadowedRange& range, const Stamp& stamp, std::uintptr_t address, unsigned size);

/// Whether a read of these bytes would change nothing in their cells: many blocks have read them, none has written them. The usual
/// case for inputs, answered without a lock.
bool read_is_no_news(ShadowedRange& range, const BlockClock& clock, std::uintptr_t address, unsigned size);

/// Starts a launch's acquisition count and forgets what atomics published, and which plain stores they have covered.
void forget_published_knowledge();

}  // namespace interpreter

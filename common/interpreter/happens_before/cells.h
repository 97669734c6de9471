/// @file
/// Who accessed which byte last.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/interpreter/happens_before/clocks.h"
#include "common/interpreter/observe/access_log.h"

namespace interpreter {

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

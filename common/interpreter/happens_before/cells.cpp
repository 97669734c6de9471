#include "common/interpreter/happens_before/cells.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "common/interpreter/memory/global_memory.h"

namespace interpreter {

static_assert(sizeof(Cell) == GlobalMemory::kCellBytes);

namespace {

// A cell has room for 25 bits of them: exact up to half of that, then in steps of 256. So after 16 million of them a read may count
// as one that happened up to 255 acquisitions earlier (lenient).
constexpr std::uint32_t kExactEpochs = 1u << 24, kEpochStep = 256;
constexpr std::uint32_t short_epoch(std::uint32_t epoch) {
  return epoch < kExactEpochs ? epoch : kExactEpochs + (epoch - kExactEpochs) / kEpochStep;
}
constexpr std::uint32_t epoch_of(const Cell::State& state) {
  return state.epoch < kExactEpochs ? state.epoch : kExactEpochs + (state.epoch - kExactEpochs) * kEpochStep;
}
constexpr bool is_kept(std::uint32_t epoch) {
  const std::uint32_t kept = epoch_of(Cell::State{.epoch = short_epoch(epoch)});
  return kept <= epoch && epoch - kept < kEpochStep && (epoch >= kExactEpochs || kept == epoch);
}
static_assert(is_kept(0) && is_kept(kExactEpochs - 1) && is_kept(kExactEpochs + 257) && is_kept((1u << 25) + 1) && is_kept(~0u));

// The plain stores beneath atomics, by the cell: an atomic's stamp takes the place of a store's, and yet whoever comes next must
// be ordered after the store. Few cells have both in one launch. An entry counts only while its cell says so, and so a cell that
// forgets needs no look here.
class StoresBeneath {
 public:
  void put(const Cell& cell, const Stamp& store) {
    Part& part = part_of(cell);
    std::lock_guard lock(part.mutex);
    part.stores[&cell] = store;
  }
  // A stamp whose thread is 0 if there is none: the cell's was one of an earlier launch.
  Stamp of(const Cell& cell) {
    Part& part = part_of(cell);
    std::lock_guard lock(part.mutex);
    const auto found = part.stores.find(&cell);
    return found == part.stores.end() ? Stamp() : found->second;
  }
  void clear() {
    for (Part& part : parts_) {
      std::lock_guard lock(part.mutex);
      part.stores.clear();
    }
  }

 private:
  // Several, so that blocks with different cells do not wait for each other.
  struct alignas(64) Part {
    std::mutex mutex;
    std::unordered_map<const Cell*, Stamp> stores;
  };
  Part& part_of(const Cell& cell) { return parts_[reinterpret_cast<std::uintptr_t>(&cell) / sizeof(Cell) % parts_.size()]; }
  std::array<Part, 64> parts_;
};
StoresBeneath stores_beneath;

}  // namespace

void forget_published_knowledge() {
  forget_published();
  stores_beneath.clear();
  handed_on.clear();
}

ShadowedRange::ShadowedRange(const void* base, std::size_t bytes)
    : base_(reinterpret_cast<std::uintptr_t>(base)),
      bytes_(bytes),
      words_(static_cast<Cell*>(reserve((bytes / 4 + 1) * sizeof(Cell)))),
      bytes_cells_(static_cast<Cell*>(reserve((bytes + 4) * sizeof(Cell)))) {}

ShadowedRange::~ShadowedRange() {
  if (!words_) return;
  munmap(words_, (bytes_ / 4 + 1) * sizeof(Cell));
  munmap(bytes_cells_, (bytes_ + 4) * sizeof(Cell));
}

// The bytes' cells count only where the word's says so, and are overwritten when it comes to say so: to forget words is enough.
void ShadowedRange::forget(std::uintptr_t address, std::size_t bytes) {
  const std::size_t first = address - base_;
  // Gives whole pages back to the system. @return them
  const auto drop = [](Cell* begin, Cell* end) {
    const auto from = (reinterpret_cast<std::uintptr_t>(begin) + page_bytes() - 1) / page_bytes() * page_bytes();
    const auto to = reinterpret_cast<std::uintptr_t>(end) / page_bytes() * page_bytes();
    if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
    return std::pair(reinterpret_cast<char*>(from), reinterpret_cast<char*>(to));
  };
  const auto zero = [](void* from, void* to) {
    if (from < to) std::memset(from, 0, static_cast<std::size_t>(static_cast<char*>(to) - static_cast<char*>(from)));
  };
  Cell *const begin = words_ + first / 4, *const end = words_ + (first + bytes + 3) / 4;
  const auto [from, to] = drop(begin, end);
  if (from < to) {
    zero(begin, from);
    zero(to, end);
  } else {
    zero(begin, end);
  }
  drop(bytes_cells_ + first, bytes_cells_ + first + bytes);
}

void ShadowedRange::forget_all() { forget(base_, bytes_); }

void ShadowedRange::clear(std::size_t bytes) { std::memset(static_cast<void*>(words_), 0, (bytes + 3) / 4 * sizeof(Cell)); }

namespace {

// Of the readers of a cell with a set, one that did not read before what `thread` does now; thread == 0 if there is none.
Stamp unknown_reader(const Cell& cell, const BlockClock& clock, unsigned thread) {
  const ReaderSets::Reader* const readers = clock.reader_sets().of(cell.lanes);
  for (unsigned warp = 0; warp < clock.reader_sets().warps(); ++warp) {
    const ReaderSets::Reader& reader = readers[warp];
    if (!reader.lanes || clock.knows_of_lanes(thread, warp, reader.lanes, reader.time)) continue;
    for (std::uint32_t rest = reader.lanes; rest; rest &= rest - 1) {
      const ThreadId id = clock.reader_sets().thread(warp, static_cast<unsigned>(std::countr_zero(rest)));
      if (const Stamp one = {id, reader.time, reader.pc}; !clock.knows_read(thread, one)) return one;
    }
  }
  return {};
}

// Whether the cell has a set of readers: one of a block that ended before, out of bounds, says nothing.
bool has_set(const Cell& cell, const BlockClock& clock) {
  return cell.state.in_set && cell.read_level() == ReadLevel::kWarps && cell.read.thread &&
         clock.reader_sets().holds(cell.read.thread);
}
bool is_handed_on(const Cell& cell, const BlockClock& clock) {
  return cell.state.in_set && cell.read_level() == ReadLevel::kBlocks && launch_of(cell.read.thread) == clock.launch();
}
// The first of the reader's lanes that did not read before what `thread` does now; thread == 0 if there is none.
Stamp unknown_lane(const HandedOn::Reader& reader, const BlockClock& clock, unsigned thread) {
  for (std::uint32_t rest = reader.lanes; rest; rest &= rest - 1) {
    const Stamp one = {reader.warp + static_cast<unsigned>(std::countr_zero(rest)), reader.time, reader.pc};
    if (!clock.knows_read(thread, one)) return one;
  }
  return {};
}
// Of all readers but those that `may_race(stamp)` says no of.
template <class MayRace>
Stamp unknown_handed_to(const Cell& cell, const BlockClock& clock, unsigned thread, MayRace may_race) {
  const HandedOn::Set& set = handed_on.of(cell.lanes);
  for (const HandedOn::Reader& reader : std::span(set.readers).first(set.count)) {
    if (!may_race(Stamp{reader.warp, reader.time, reader.pc})) continue;
    if (const Stamp one = unknown_lane(reader, clock, thread); one.thread) return one;
  }
  return {};
}

void forget_readers(Cell& cell, const BlockClock& clock) {
  if (has_set(cell, clock)) clock.reader_sets().remove(cell.lanes);
  if (is_handed_on(cell, clock)) handed_on.remove(cell.lanes);
  cell.state.in_set = 0;
}

// Whether all reads that the cell stands for happened before what `thread` does now.
bool reads_known(const Cell& cell, const BlockClock& clock, unsigned thread) {
  const Stamp& read = cell.read;
  if (read.thread == 0 || launch_of(read.thread) != clock.launch()) return true;
  const bool same_block = block_of(read.thread) == clock.block();
  switch (cell.read_level()) {
    case ReadLevel::kThread: return clock.knows_read(thread, read);
    case ReadLevel::kLanes: {
      if (same_block && read.time < clock.barrier_time()) return true;
      for (unsigned rest = cell.lanes; rest; rest &= rest - 1) {
        Stamp one = read;
        one.thread = (read.thread & ~ThreadId(31)) | static_cast<unsigned>(std::countr_zero(rest));
        if (!clock.knows_read(thread, one)) return false;
      }
      return true;
    }
    case ReadLevel::kWarps:
      if (has_set(cell, clock)) return unknown_reader(cell, clock, thread).thread == 0;
      if (!same_block) return clock.epoch_of(thread) > epoch_of(cell.state);
      if (read.time < clock.barrier_time()) return true;
      for (unsigned rest = cell.lanes; rest; rest &= rest - 1)
        if (!clock.knows_of_warp(thread, static_cast<unsigned>(std::countr_zero(rest)), read.time)) return false;
      return true;
    case ReadLevel::kBlocks:
      if (is_handed_on(cell, clock)) return unknown_handed_to(cell, clock, thread, [](const Stamp&) { return true; }).thread == 0;
      return clock.epoch_of(thread) > epoch_of(cell.state);
  }
  return true;
}

// One more read of a cell that several warps have read, or that this one makes one of them.
void add_reader(Cell& cell, const BlockClock& clock, unsigned warp, unsigned lanes, std::uint32_t pc) {
  ReaderSets& sets = clock.reader_sets();
  if (!cell.state.in_set) {
    const std::uint32_t before = cell.read_level() == ReadLevel::kLanes ? cell.lanes : 1u << thread_of(cell.read.thread) % 32;
    const std::uint32_t set = sets.add();
    sets.of(set)[sets.warp_of(cell.read.thread)] = {cell.read.time, before, cell.read.pc};
    cell.lanes = set;
    cell.state.level = static_cast<std::uint32_t>(ReadLevel::kWarps), cell.state.in_set = 1;
  }
  ReaderSets::Reader& reader = sets.of(cell.lanes)[clock.warp_in_cluster(warp)];
  const unsigned thread = warp * 32 + static_cast<unsigned>(std::countr_zero(lanes));
  if (!reader.lanes || (reader.lanes & ~lanes) == 0 ||
      clock.knows_of_lanes(thread, clock.warp_in_cluster(warp), reader.lanes, reader.time))
    reader = {clock.time(), lanes, pc};
  else  // the earliest time stands for all (lenient)
    reader.lanes |= lanes;
}

// One more read, by a warp, of what another block has written in this launch. @return whether the cell has a set now that has it
bool add_handed_on(Cell& cell, const BlockClock& clock, unsigned warp, unsigned lanes, std::uint32_t pc) {
  const auto first_of = [](ThreadId thread) { return thread & ~ThreadId(31); };
  if (!is_handed_on(cell, clock)) {
    const ReadLevel level = cell.read_level();
    if (level > ReadLevel::kLanes) return false;
    const std::uint32_t number = handed_on.add();
    if (!number) return false;
    HandedOn::Set& set = handed_on.of(number);
    const std::uint32_t before = level == ReadLevel::kLanes ? cell.lanes : 1u << thread_of(cell.read.thread) % 32;
    set.readers[set.count++] = {first_of(cell.read.thread), before, cell.read.time, cell.read.pc};
    cell.lanes = number;
    cell.state.level = static_cast<std::uint32_t>(ReadLevel::kBlocks), cell.state.in_set = 1;
  }
  HandedOn::Set& set = handed_on.of(cell.lanes);
  const unsigned thread = warp * 32 + static_cast<unsigned>(std::countr_zero(lanes));
  const ThreadId own = first_of(clock.id(thread));
  HandedOn::Reader* place = nullptr;
  for (HandedOn::Reader& reader : std::span(set.readers).first(set.count)) {
    const bool plain = !(pc & kAtomicPc), was_plain = !(reader.pc & kAtomicPc);
    if (was_plain && !plain) continue;  // of plain reads, atomic writes have to know
    if (!unknown_lane(reader, clock, thread).thread || (reader.warp == own && (reader.lanes & ~lanes) == 0)) {
      *(place = &reader) = {own, lanes, clock.time(), pc};
    } else if (reader.warp == own && was_plain == plain) {
      reader.lanes |= lanes;  // the earliest time stands for all (lenient)
      place = &reader;
    }
    if (place) break;
  }
  if (!place && set.count == set.readers.size()) {
    // One stamp has to do for all: where some look atomically, it is a flag.
    for (const HandedOn::Reader& reader : set.readers)
      if (reader.pc & kAtomicPc)
        cell.read = {reader.warp + static_cast<unsigned>(std::countr_zero(reader.lanes)), reader.time, reader.pc};
    forget_readers(cell, clock);
    return false;
  }
  if (!place) set.readers[set.count++] = {own, lanes, clock.time(), pc};
  cell.read = {clock.id(thread), clock.time(), pc};
  return true;
}

void note_read(Cell& cell, const BlockClock& clock, unsigned warp, unsigned lanes, std::uint32_t pc, bool shared) {
  const unsigned thread = warp * 32 + static_cast<unsigned>(std::countr_zero(lanes));
  const ThreadId id = clock.id(thread);
  const bool several = (lanes & (lanes - 1)) != 0;
  Stamp& read = cell.read;
  Cell::State state = cell.state;
  const std::uint32_t epoch = short_epoch(acquisitions.load(std::memory_order_relaxed));
  if (cell.read_level() == ReadLevel::kBlocks && state.epoch == epoch && read.time == clock.time() &&
      block_of(read.thread) == clock.block() && !state.in_set)
    return;  // one more of many
  const bool same_block = block_of(read.thread) == clock.block();
  if (has_set(cell, clock) && (!same_block || read.time >= clock.barrier_time())) return add_reader(cell, clock, warp, lanes, pc);
  if (cell.read_level() == ReadLevel::kWarps && state.epoch == epoch && block_of(read.thread) == clock.block() &&
      read.time >= clock.barrier_time()) {
    cell.lanes |= 1u << warp;
    return;
  }
  if (read.thread == 0 || launch_of(read.thread) != clock.launch() || reads_known(cell, clock, thread)) {
    forget_readers(cell, clock), state.in_set = 0;
    read = {id, clock.time(), pc};
    cell.lanes = lanes;
    state.level = static_cast<std::uint32_t>(several ? ReadLevel::kLanes : ReadLevel::kThread);
  } else if (shared && clock.reader_sets().holds(read.thread) &&
             (cell.state.in_set || !same_block ||
              (cell.read_level() != ReadLevel::kWarps && thread_of(read.thread) / 32 != warp))) {
    return add_reader(cell, clock, warp, lanes, pc);
  } else if (!shared && launch_of(cell.write.thread) == clock.launch() && block_of(cell.write.thread) != clock.block() &&
             add_handed_on(cell, clock, warp, lanes, pc)) {
    return;
  } else if (!same_block || cell.read_level() == ReadLevel::kBlocks) {
    read.time = clock.time();
    state.in_set = 0;
    state.level = static_cast<std::uint32_t>(ReadLevel::kBlocks);
  } else if (cell.read_level() == ReadLevel::kWarps || thread_of(read.thread) / 32 != warp) {
    if (cell.read_level() != ReadLevel::kWarps) cell.lanes = 1u << thread_of(read.thread) / 32;
    cell.lanes |= 1u << warp;
    state.level = static_cast<std::uint32_t>(ReadLevel::kWarps);
  } else {  // more lanes of the same warp; the earliest time stands for all (lenient, see ReadLevel)
    cell.lanes |= lanes;
    if (cell.lanes & (cell.lanes - 1)) state.level = static_cast<std::uint32_t>(ReadLevel::kLanes);
  }
  state.epoch = epoch;
  cell.state = state;
}

// The part of an access that one cell stands for.
struct Part {
  unsigned lanes;
  unsigned offset, size;  // in bytes, within the access

  // What a lane's plain store has put there.
  std::uint32_t stored(const WarpAccess& access, unsigned lane) const {
    std::uint32_t value = 0;
    std::memcpy(&value, access.stored[lane].bytes + access.stored_offset + offset, size);
    return value;
  }
  // Whether all the lanes have stored this.
  bool stores(const WarpAccess& access, std::uint32_t value) const {
    if (!access.stored) return false;
    for (unsigned rest = lanes; rest; rest &= rest - 1)
      if (stored(access, static_cast<unsigned>(std::countr_zero(rest))) != value) return false;
    return true;
  }
};

// Whether the last write to the cell happened before all that the block does now, because a barrier or nobody stands between.
bool written_before_barrier(const Cell& cell, const BlockClock& clock) {
  const Stamp& write = cell.write;
  return write.thread == 0 || (block_of(write.thread) == clock.block() && write.time < clock.barrier_time());
}

// Before an atomic takes the place of the last write. What a barrier has made known to all who can come needs not be kept.
void keep_store_beneath(Cell& cell, const BlockClock& clock, bool shared) {
  const Stamp& write = cell.write;
  if (write.pc & kAtomicPc) return;  // what is beneath that one stays beneath
  const bool known_to_all = shared && clock.reader_sets().of_one_block() && written_before_barrier(cell, clock);
  cell.state.beneath = write.thread != 0 && launch_of(write.thread) == clock.launch() && !known_to_all;
  if (cell.state.beneath) stores_beneath.put(cell, write);
}

std::array<std::atomic<std::uint32_t>, 16> looks_before_cas;
std::atomic<unsigned> look_count{0};
std::mutex looks_mutex;

// The access to one cell. Several lanes that write one cell in one instruction race with each other.
// @return whether there is a race; only then `race` is written
bool record_in_cell(Cell& cell, const BlockClock& clock, const WarpAccess& access, const Part& part, Race& race) {
  const std::uint32_t pc = access.marked_pc();
  const unsigned lanes = part.lanes;
  const auto thread_in = [&](unsigned lane) { return access.warp * 32 + lane; };

  // Atomics race with each other where one of them is atomic for its own block alone.
  const auto atomic_with = [&](const Stamp& other) {
    return access.atomic && (other.pc & kAtomicPc) &&
           (!(access.block_scope || (other.pc & kBlockScopePc)) || block_of(other.thread) == clock.block());
  };

  // The first of the lanes that does not know, 32 if there is none.
  const auto first_without = [&](const Stamp& stamp) {
    unsigned rest = lanes;
    while (rest && clock.knows(thread_in(static_cast<unsigned>(std::countr_zero(rest))), stamp)) rest &= rest - 1;
    return static_cast<unsigned>(std::countr_zero(rest));
  };

  const Stamp& write = cell.write;
  if (cell.state.copying && launch_of(write.thread) == clock.launch()) [[unlikely]] {
    race = {write, true, false, true, static_cast<unsigned>(std::countr_zero(lanes)), 0};
    return true;
  }
  if (!written_before_barrier(cell, clock)) {
    if (!atomic_with(write)) {
      if (const unsigned lane = first_without(write); lane < 32) {
        race = {write, true, cell.state.valued && cell.read.thread == 0 && part.stores(access, cell.read.time), false, lane, 0};
        return true;
      }
    } else if (cell.state.beneath && launch_of(write.thread) == clock.launch() && first_without(write) < 32) [[unlikely]] {
      // Atomics do not race with the last one, but with the plain store before them. Who knows of the last one knows what it knew.
      const Stamp store = stores_beneath.of(cell);
      if (const unsigned lane = store.thread ? first_without(store) : 32; lane < 32) {
        race = {store, true, false, false, lane, 0};
        return true;
      }
    }
  }

  if (!access.write) {
    note_read(cell, clock, access.warp, lanes, pc, access.shared);
    return false;
  }
  const unsigned last_lane = 31 - static_cast<unsigned>(std::countl_zero(lanes));
  const auto may_race = [&](const Stamp& read) { return !atomic_with(read) && !(access.atomic && is_look_before_cas(read.pc)); };
  if (is_handed_on(cell, clock)) [[unlikely]] {
    for (unsigned rest = lanes; rest; rest &= rest - 1) {
      const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
      if (const Stamp other = unknown_handed_to(cell, clock, thread_in(lane), may_race); other.thread) {
        race = {other, false, false, false, lane, 0};
        return true;
      }
    }
  } else if (may_race(cell.read)) {
    for (unsigned rest = lanes; rest; rest &= rest - 1) {
      const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
      if (reads_known(cell, clock, thread_in(lane))) continue;
      Stamp other = cell.read;  // name a reader that is somebody else
      const unsigned others = cell.lanes & ~(1u << lane);
      if (cell.read_level() == ReadLevel::kLanes && others)
        other.thread = (other.thread & ~ThreadId(31)) | static_cast<unsigned>(std::countr_zero(others));
      if (has_set(cell, clock)) other = unknown_reader(cell, clock, thread_in(lane));
      race = {other, false, false, false, lane, 0};
      return true;
    }
  }
  if (access.atomic)
    keep_store_beneath(cell, clock, access.shared);
  else
    cell.state.beneath = 0;
  cell.write = {clock.id(thread_in(last_lane)), clock.time(), pc};
  forget_readers(cell, clock);
  cell.read.thread = 0;
  cell.state.copying = 0;
  cell.state.valued = access.stored != nullptr;
  if (cell.state.valued) cell.read.time = part.stored(access, last_lane);
  if (!access.atomic && (lanes & (lanes - 1))) {
    Stamp first = cell.write;
    first.thread = clock.id(thread_in(static_cast<unsigned>(std::countr_zero(lanes))));
    race = {first, true, cell.state.valued && part.stores(access, cell.read.time), false, last_lane, 0};
    return true;
  }
  return false;
}

}  // namespace

void add_look_before_cas(std::uint32_t pc) {
  if (is_look_before_cas(pc)) return;  // mostly, and without a lock
  std::lock_guard lock(looks_mutex);
  if (is_look_before_cas(pc) || look_count == looks_before_cas.size()) return;
  looks_before_cas[look_count] = pc;
  ++look_count;
}

bool is_look_before_cas(std::uint32_t pc) {
  const unsigned count = look_count.load(std::memory_order_acquire);
  for (unsigned i = 0; i < count; ++i)
    if (looks_before_cas[i].load(std::memory_order_relaxed) == pc) return true;
  return false;
}

bool read_is_no_news(ShadowedRange& range, const BlockClock& clock, std::uintptr_t address, unsigned size) {
  // Other threads may be changing the cell under its lock. Each field is one word and only ever moves away from this state when
  // somebody writes; that somebody then sees this block among the many readers.
  const std::uint32_t epoch = short_epoch(acquisitions.load(std::memory_order_relaxed));
  const auto settled = [&](const Cell& cell) {
    return launch_of(cell.write.thread) != clock.launch() && cell.read_level() == ReadLevel::kBlocks && cell.state.epoch == epoch &&
           cell.read.thread != 0 && launch_of(cell.read.thread) == clock.launch();
  };
  if (address % 4 == 0 && size >= 4) {
    for (unsigned i = 0; i < size; i += 4)
      if (const Cell& cell = range.word(address + i); cell.state.split || !settled(cell)) return false;
    return true;
  }
  if (!range.word(address).state.split) return false;
  for (unsigned i = 0; i < size; ++i)
    if (!settled(range.byte(address + i))) return false;
  return true;
}

void note_atomic(ShadowedRange& range, const BlockClock& clock, unsigned thread, const WarpAccess& access, std::uintptr_t address) {
  const auto note = [&](Cell& cell) {
    if (cell.write.pc & kAtomicPc) cell.write = {clock.id(thread), clock.time(), access.marked_pc()};
  };
  for (std::uintptr_t at = address; at < address + access.size; at += 4) {
    if (!range.word(at).state.split)
      note(range.word(at));
    else
      for (unsigned i = 0; i < std::min(access.size, 4u); ++i) note(range.byte(at + i));
  }
}

Stamp unordered_strong_write(ShadowedRange& range, const BlockClock& clock, unsigned thread, std::uintptr_t address) {
  const Stamp& write = cell_at(range, address).write;
  return write.thread != 0 && (write.pc & kAtomicPc) && !clock.knows(thread, write) ? write : Stamp();
}

bool follows_unordered_atomic(ShadowedRange& range, const BlockClock& clock, unsigned thread, std::uintptr_t address) {
  return unordered_strong_write(range, clock, thread, address).thread != 0;
}

Race record_access(ShadowedRange& range, const BlockClock& clock, const WarpAccess& access, std::uintptr_t address,
                   unsigned lanes) {
  Race result;
  // Equal values in one place say nothing about the next.
  const auto found = [&](Cell& cell, std::uintptr_t at, unsigned size) {
    Race race;
    if (!record_in_cell(cell, clock, access, {lanes, static_cast<unsigned>(at - address), size}, race) ||
        (race.same_value && result.earlier.thread))
      return false;
    result = race;
    result.address = at;
    return !race.same_value;
  };
  for (std::uintptr_t at = address, end = address + access.size; at < end;) {
    const std::uintptr_t word_begin = at & ~std::uintptr_t(3), word_end = word_begin + 4;
    Cell& word = range.word(at);
    if (at == word_begin && end >= word_end && !word.state.split) {
      // By far the most accesses are reads of tiles that were complete at the last barrier.
      if (!access.write && !word.state.copying && written_before_barrier(word, clock))
        note_read(word, clock, access.warp, lanes, access.marked_pc(), access.shared);
      else if (found(word, at, 4))
        return result;
      at = word_end;
      continue;
    }
    if (!word.state.split) {  // from now on byte by byte
      for (unsigned i = 0; i < 4; ++i) {
        Cell& byte = range.byte(word_begin + i) = word;
        if (word.state.valued && word.read.thread == 0) byte.read.time = word.read.time >> 8 * i & 0xff;
        if (has_set(word, clock)) byte.lanes = clock.reader_sets().copy(word.lanes);
        if (is_handed_on(word, clock)) byte.state.in_set = 0;
        if (word.state.beneath) stores_beneath.put(byte, stores_beneath.of(word));
      }
      forget_readers(word, clock);
      word.state.split = 1;
    }
    for (const std::uintptr_t part_end = std::min(end, word_end); at < part_end; ++at) {
      if (found(range.byte(at), at, 1)) return result;
    }
  }
  return result;
}

Race race_of_read(ShadowedRange& range, const BlockClock& clock, const WarpAccess& access, std::uintptr_t address, unsigned lane) {
  Race race;
  for_each_cell(range, address, access.size, [&](Cell& cell, std::uintptr_t at) {
    if (race.earlier.thread) return;
    const bool copying = cell.state.copying && launch_of(cell.write.thread) == clock.launch();
    if (cell.write.thread && (copying || !clock.knows(access.warp * 32 + lane, cell.write)))
      race = {cell.write, true, false, copying, lane, at};
  });
  return race;
}

Race begin_copy(ShadowedRange& range, const BlockClock& clock, const WarpAccess& access, std::uintptr_t address, unsigned lane) {
  const Race race = record_access(range, clock, access, address, 1u << lane);
  if (!race.earlier.thread) for_each_cell(range, address, access.size, [](Cell& cell, std::uintptr_t) { cell.state.copying = 1; });
  return race;
}

void note_engine_read(ShadowedRange& range, const BlockClock& clock, const Stamp& stamp, std::uintptr_t address, unsigned size,
                      ThreadId issuer) {
  const std::uint32_t epoch = short_epoch(acquisitions.load(std::memory_order_relaxed));
  for_each_cell(range, address, size, [&](Cell& cell, std::uintptr_t) {
    forget_readers(cell, clock);
    Stamp& read = cell.read;
    const bool issuers = read.thread == issuer && cell.read_level() == ReadLevel::kThread;
    const bool alone = read.thread == 0 || launch_of(read.thread) != clock.launch() || read.thread == stamp.thread || issuers;
    if (alone)
      read = stamp;
    else
      read.time = stamp.time;
    cell.state.level = static_cast<std::uint32_t>(alone ? ReadLevel::kThread : ReadLevel::kBlocks);
    cell.state.epoch = epoch;
  });
}

void end_engine_copy(ShadowedRange& range, const Stamp& stamp, std::uintptr_t address, unsigned size) {
  for_each_cell(range, address, size, [&](Cell& cell, std::uintptr_t) {
    cell.write = stamp;
    cell.read.thread = 0;
    cell.state.copying = cell.state.valued = cell.state.beneath = 0;
  });
}

void end_copy(ShadowedRange& range, const BlockClock& clock, unsigned thread, std::uint32_t pc, std::uintptr_t address,
              unsigned size) {
  for_each_cell(range, address, size, [&](Cell& cell, std::uintptr_t) {
    cell.write = {clock.id(thread), clock.time(), pc};
    cell.state.copying = cell.state.valued = 0;
  });
}

// A word may get cells for its bytes because somebody reads a part of it, so a word's cell counts as those of its bytes.
std::uint64_t version_of(ShadowedRange& range, std::uintptr_t address, unsigned size) {
  const auto version_of_cell = [](const Cell& cell) {
    const std::uint64_t thread = cell.write.thread * 0x9e3779b97f4a7c15ull;
    return (thread ^ (std::uint64_t(cell.write.time) << 32 | cell.write.pc)) * 0x9e3779b97f4a7c15ull;
  };
  std::uint64_t version = 0;
  for (std::uintptr_t at = address, end = address + size; at < end;) {
    const std::uintptr_t word_end = std::min(end, (at | 3) + 1);
    if (!range.word(at).state.split)
      version += (word_end - at) * version_of_cell(range.word(at));
    else
      for (std::uintptr_t byte = at; byte < word_end; ++byte) version += version_of_cell(range.byte(byte));
    at = word_end;
  }
  return version;
}

Stamp last_write(ShadowedRange& range, const BlockClock& clock, std::uintptr_t address, unsigned size) {
  Stamp last;
  for_each_cell(range, address, size, [&](const Cell& cell, std::uintptr_t) {
    if (cell.write.thread && launch_of(cell.write.thread) == clock.launch() && cell.write.time >= last.time) last = cell.write;
  });
  return last;
}

Stamp last_generic_write(ShadowedRange& range, const BlockClock& clock, std::uintptr_t address, unsigned size) {
  Stamp last;
  for_each_cell(range, address, size, [&](const Cell& cell, std::uintptr_t) {
    if (cell.write.thread && launch_of(cell.write.thread) == clock.launch() && !(cell.write.pc & kEnginePc)) last = cell.write;
  });
  return last;
}

}  // namespace interpreter

#include "common/interpreter/memory/global_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

namespace interpreter {
namespace {

struct Book {
  std::recursive_mutex mutex;  // the handler of a host's wrong access may come while a copy holds it
  std::map<std::size_t, GlobalMemory::Allocation> allocations;  // by offset
  std::map<std::size_t, GlobalMemory::Allocation> packed;       // those that live, by packed_at
  std::deque<std::size_t> kept;                                 // offsets of released ones among them, the oldest first
  std::size_t allocated = 0, allocated_on_heap = 0, filled = 0;
  std::uint64_t serial = 0;
  unsigned unlocked = 0;  // how many Unlocked there are
};
Book& book() {
  static Book the_book;
  return the_book;
}

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

constexpr std::size_t kPiece = std::size_t(1) << 20;  // bytes of a table, for 128 MiB of memory
constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// Zeroes a range; whole pages go back to the system. In a long one they may be those of a file, see below.
void clear(void* p, std::size_t bytes) {
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(p), end = begin + bytes;
  const std::uintptr_t first_page = round_up(begin, page_bytes()), last_page = end / page_bytes() * page_bytes();
  if (first_page >= last_page) {
    std::memset(p, 0, bytes);
    return;
  }
  std::memset(p, 0, first_page - begin);
  void* const pages = reinterpret_cast<void*>(first_page);
  if (bytes < kPiece)
    madvise(pages, last_page - first_page, MADV_DONTNEED);
  else if (mmap(pages, last_page - first_page, PROT_READ | PROT_WRITE, kReserved | MAP_FIXED, -1, 0) == MAP_FAILED)
    std::memset(pages, 0, last_page - first_page);
  std::memset(reinterpret_cast<void*>(last_page), 0, end - last_page);
}

// A file of kPiece bytes, table entries of whole granules all of them; -1 where there can be none.
int whole_granules() {
  static const int file = [] {
    const std::vector<std::uint16_t> entries(kPiece / sizeof(std::uint16_t), GlobalMemory::kGranule);
    const int made = memfd_create("granules", MFD_CLOEXEC);
    return made >= 0 && write(made, entries.data(), kPiece) == static_cast<ssize_t>(kPiece) ? made : -1;
  }();
  return file;
}

// Sets the table entries of whole granules. Of gigabytes these are hundreds of megabytes: pages of one file stand for most of them,
// and become memory where an entry changes later.
void set_whole(std::uint16_t* entries, std::size_t count) {
  for (const std::uint16_t* const end = entries + count; entries < end;) {
    if (reinterpret_cast<std::uintptr_t>(entries) % page_bytes() == 0 &&
        end - entries >= std::ptrdiff_t(kPiece / sizeof *entries) && whole_granules() >= 0 &&
        mmap(entries, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, whole_granules(), 0) != MAP_FAILED)
      entries += kPiece / sizeof *entries;
    else
      *entries++ = GlobalMemory::kGranule;
  }
}

// 64 bits cover 64 bytes; several threads may share such a word.
void set_bits(std::uint64_t* words, std::size_t first, std::size_t count) {
  while (count) {
    const std::size_t bit = first % 64, n = std::min<std::size_t>(64 - bit, count);
    const std::uint64_t mask = (n == 64 ? ~0ull : (1ull << n) - 1) << bit;
    std::atomic_ref word(words[first / 64]);
    if ((word.load(std::memory_order_relaxed) & mask) != mask) word.fetch_or(mask, std::memory_order_relaxed);
    first += n, count -= n;
  }
}

// Each byte of global memory has cells of racecheck's beside it, its word's and its own; all else is small.
constexpr std::size_t kTerabyte = 1'000'000'000'000;
constexpr std::size_t kNeeded = GlobalMemory::kBytes * (1 + GlobalMemory::kCellBytes + GlobalMemory::kCellBytes / 4);

// Allocates nothing itself: operator delete would ask for the memory that is not there.
[[noreturn]] void end_without_address_space() {
  char why[160];
  std::snprintf(why, sizeof why,
                "%s; 'sysctl vm.overcommit_memory' must not be 2, and on aarch64 the kernel must have addresses of 48 bits",
                std::strerror(errno));
  const auto look = [&](auto resource, char option) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    std::snprintf(why, sizeof why, "the limit is %.3g TB; 'ulimit -%c unlimited' lifts it",
                  static_cast<double>(limit.rlim_cur) / 1e12, option);
  };
  look(RLIMIT_DATA, 'd');
  look(RLIMIT_AS, 'v');
  std::fflush(stdout);
  std::fprintf(stderr, "interpreter: needs %zu TB of address space, which costs no memory: %s.\n", kNeeded / kTerabyte + 1, why);
  std::_Exit(2);
}

}  // namespace

std::size_t page_bytes() {
  static const std::size_t bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void* reserve(std::size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kReserved, -1, 0);
  if (p == MAP_FAILED) end_without_address_space();
  return p;
}

GlobalMemory::GlobalMemory()
    : base_(static_cast<char*>(reserve(kBytes))),
      granules_(static_cast<std::uint16_t*>(reserve(kBytes / kGranule * sizeof(std::uint16_t)))),
      initialised_(static_cast<std::uint64_t*>(reserve(kBytes / 8))) {
  mprotect(base_ + kMargin, kDeviceBytes, PROT_NONE);
}

GlobalMemory& GlobalMemory::instance() {
  static GlobalMemory& memory = *new GlobalMemory;  // never destroyed: buffers with static storage may outlive everything
  return memory;
}

namespace {

// The first place between `first` and `end` with `red_zone` free bytes between it and its neighbours.
std::optional<std::size_t> find_place(const std::map<std::size_t, GlobalMemory::Allocation>& taken, std::size_t bytes,
                                      std::size_t first, std::size_t end, std::size_t red_zone) {
  std::size_t at = first;
  for (auto a = taken.lower_bound(first); a != taken.end() && a->first < end; ++a) {
    if (at + bytes + red_zone <= a->first) return at;
    at = round_up(a->first + a->second.bytes + red_zone, GlobalMemory::kGranule);
  }
  if (at + bytes > end) return std::nullopt;
  return at;
}

// Gives the process rights to some bytes of device memory, or takes them. Managed memory is always the host's too.
void set_rights(const Book& b, const char* p, std::size_t bytes, int rights) {
  const char* const device = GlobalMemory::instance().base() + GlobalMemory::kMargin;
  if (b.unlocked || static_cast<std::size_t>(p - device) >= GlobalMemory::kDeviceBytes) return;
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(p) / page_bytes() * page_bytes();
  mprotect(reinterpret_cast<void*>(begin), round_up(reinterpret_cast<std::uintptr_t>(p) + bytes - begin, page_bytes()), rights);
}
void set_rights_to_all(const Book& b, int rights) {
  set_rights(b, GlobalMemory::instance().base() + GlobalMemory::kMargin, GlobalMemory::kDeviceBytes, rights);
}

}  // namespace

GlobalMemory::Unlocked::Unlocked() {
  Book& b = book();
  std::lock_guard lock(b.mutex);
  set_rights_to_all(b, PROT_READ | PROT_WRITE);
  ++b.unlocked;
}

GlobalMemory::Unlocked::~Unlocked() {
  Book& b = book();
  std::lock_guard lock(b.mutex);
  --b.unlocked;
  set_rights_to_all(b, PROT_NONE);
}

void GlobalMemory::with_rights(const void* p, std::size_t bytes, const std::function<void()>& work) {
  Book& b = book();
  std::lock_guard lock(b.mutex);
  set_rights(b, static_cast<const char*>(p), bytes, PROT_READ | PROT_WRITE);
  work();
  set_rights(b, static_cast<const char*>(p), bytes, PROT_NONE);
}

void* GlobalMemory::allocate(std::size_t bytes, const std::string& label, Kind kind, std::size_t limit) {
  Book& b = book();
  std::lock_guard lock(b.mutex);
  const bool is_heap = kind == Kind::kHeap;
  std::size_t& allocated = is_heap ? b.allocated_on_heap : b.allocated;
  if (bytes > limit || allocated + bytes > limit) throw std::bad_alloc();

  const bool managed = kind == Kind::kManaged;
  const std::size_t first = managed ? kMargin + kDeviceBytes : kMargin;
  const std::size_t end = managed ? first + kManagedBytes : first + kDeviceBytes;
  std::optional<std::size_t> place = find_place(b.allocations, bytes, first, end, kRedZone);
  if (!place) {
    for (const std::size_t offset : std::exchange(b.kept, {})) b.allocations.erase(offset);
    place = find_place(b.allocations, bytes, first, end, kSmallRedZone);
  }
  if (!place) throw std::bad_alloc();
  const std::size_t at = *place;

  const std::string name = label.empty() ? "buffer #" + std::to_string(++b.serial) : label;
  const std::size_t packed_at = find_place(b.packed, bytes, kSmallRedZone, kBytes, kSmallRedZone).value();
  b.packed[packed_at] = b.allocations[at] = {base_ + at, bytes, name, false, packed_at, is_heap};
  allocated += bytes;
  const bool filled = bytes <= kPoisonLimit && b.filled + bytes <= kPoisonedTogether;
  if (filled) b.filled += bytes;
  const std::size_t whole = filled ? 0 : bytes / kGranule * kGranule;
  set_whole(granules_ + at / kGranule, whole / kGranule);
  for (std::size_t done = whole; done < bytes; done += kGranule)
    granules_[(at + done) / kGranule] = static_cast<std::uint16_t>(std::min(kGranule, bytes - done) | (filled ? kFilled : 0));
  if (filled) {
    set_rights(b, base_ + at, bytes, PROT_READ | PROT_WRITE);
    std::memset(base_ + at, 0xff, bytes);  // NaN in every format
    set_rights(b, base_ + at, bytes, PROT_NONE);
  }
  return base_ + at;
}

void GlobalMemory::release(void* p, std::vector<const void*> released_by) {
  if (!p) return;
  Book& b = book();
  std::lock_guard lock(b.mutex);
  const auto found = b.allocations.find(static_cast<std::size_t>(static_cast<char*>(p) - base_));
  if (found == b.allocations.end()) throw std::invalid_argument("release: not the start of an allocation");
  auto& [offset, allocation] = *found;
  if (allocation.released) throw std::invalid_argument("release: " + allocation.label + " was released before");
  // Allocations start at a granule, so no table entry and no word of bits has two owners.
  const std::size_t granules = round_up(allocation.bytes, kGranule) / kGranule;
  if (granules_[offset / kGranule] & kFilled) b.filled -= allocation.bytes;
  clear(granules_ + offset / kGranule, granules * sizeof *granules_);
  clear(initialised_ + offset / 64, granules * kGranule / 8);
  set_rights(b, base_ + offset, allocation.bytes, PROT_READ | PROT_WRITE);
  clear(base_ + offset, allocation.bytes);
  set_rights(b, base_ + offset, allocation.bytes, PROT_NONE);
  // Its place is not used again soon, and the memory would be missed.
  if (const auto forget = forget_.load()) forget(base_ + offset, allocation.bytes);
  (allocation.is_heap ? b.allocated_on_heap : b.allocated) -= allocation.bytes;
  b.packed.erase(allocation.packed_at);
  allocation.released = true;
  allocation.released_by = std::move(released_by);
  b.kept.push_back(offset);
  if (b.kept.size() <= kKept) return;
  b.allocations.erase(b.kept.front());
  b.kept.pop_front();
}

GlobalMemory::Allocation GlobalMemory::nearest(const void* p) const {
  Book& b = book();
  std::lock_guard lock(b.mutex);
  const char* address = static_cast<const char*>(p);
  Allocation best;
  std::size_t best_distance = ~std::size_t(0);
  for (const auto& [offset, a] : b.allocations) {
    const std::size_t distance = address < a.begin              ? static_cast<std::size_t>(a.begin - address)
                                 : address >= a.begin + a.bytes ? static_cast<std::size_t>(address - (a.begin + a.bytes))
                                                                : 0;
    if (a.released && distance) continue;  // what is next to one that is gone is about another one
    if (distance < best_distance) best = a, best_distance = distance;
  }
  return best;
}

void GlobalMemory::require_allocated(const void* p, std::size_t bytes, const char* who) const {
  if (bytes == 0) return;
  const Allocation a = nearest(p);
  const char* begin = static_cast<const char*>(p);
  const bool inside = a.begin && !a.released && begin >= a.begin && begin < a.begin + a.bytes;
  const std::size_t there = inside ? static_cast<std::size_t>(a.begin + a.bytes - begin) : 0;
  if (bytes <= there) return;
  throw std::out_of_range(std::string(who) + ": " + std::to_string(bytes) + " bytes, " +
                          (inside ? "but there are " + std::to_string(there) + " from there to the end of the allocation"
                                  : "not inside one allocation of device memory"));
}

bool GlobalMemory::initialised(std::size_t offset, unsigned size) const {
  // Naturally aligned accesses of up to 16 bytes never straddle a word of 64.
  const std::uint64_t mask = ((1ull << size) - 1) << offset % 64;
  return (std::atomic_ref(initialised_[offset / 64]).load(std::memory_order_relaxed) & mask) == mask;
}

void GlobalMemory::mark_initialised(std::size_t offset, std::size_t bytes) {
  set_bits(initialised_, offset, bytes);
  // Whole granules: 4 words each.
  for (std::size_t g = offset / kGranule; g <= (offset + bytes - 1) / kGranule; ++g) {
    if (bytes < 64) break;  // a kernel's access: not worth the look
    const std::size_t valid_bytes = granules_[g] & kValidMask;
    bool all = valid_bytes > 0;
    for (std::size_t i = 0; i < valid_bytes && all; i += 64) {
      const std::uint64_t mask = valid_bytes - i >= 64 ? ~0ull : (1ull << (valid_bytes - i)) - 1;
      all = (initialised_[(g * kGranule + i) / 64] & mask) == mask;
    }
    if (all) granules_[g] |= kInitialised;
  }
}

// As InitCheck::find_unseen_writes() does, 64 bytes of which one has lost its poison unseen count as written.
GlobalMemory::Unwritten GlobalMemory::unwritten(std::size_t offset, std::size_t bytes) const {
  Unwritten result;
  for (std::size_t at = offset; tracks_ && at < offset + bytes;) {
    const std::size_t begin = at, end = std::min(offset + bytes, at / 64 * 64 + 64);
    at = end;
    const std::uint64_t written = std::atomic_ref(initialised_[begin / 64]).load(std::memory_order_relaxed);
    const std::size_t count = end - begin;
    const std::uint64_t missing = ~written & (count == 64 ? ~0ull : ((1ull << count) - 1) << begin % 64);
    if (!missing || granule_initialised(begin)) continue;
    bool seen = true;
    for (std::uint64_t rest = missing; rest; rest &= rest - 1)
      seen &= base_[begin / 64 * 64 + static_cast<std::size_t>(std::countr_zero(rest))] == poison(begin);
    if (!seen) continue;
    if (!result.count) result.first = begin / 64 * 64 + static_cast<std::size_t>(std::countr_zero(missing));
    result.count += static_cast<std::size_t>(std::popcount(missing));
  }
  return result;
}

}  // namespace interpreter

/// @file
/// Global memory: allocations, which bytes are valid (memcheck) and which have been written (initcheck).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace interpreter {

/// Reserves address space without using memory; pages appear, zeroed, when they are touched. Where the system refuses, the process
/// ends with exit code 2 and a line that says what is needed: nothing of the interpreter works without.
void* reserve(std::size_t bytes);

/// One flag per byte, asked for in naturally aligned pieces of up to 16 bytes.
class ByteFlags {
 public:
  void resize(std::size_t bytes) { words_.resize((bytes + 63) / 64 + 1); }
  void set(std::size_t offset, unsigned size) { words_[offset / 64] |= mask(offset, size); }
  bool all(std::size_t offset, unsigned size) const { return (~words_[offset / 64] & mask(offset, size)) == 0; }
  void clear(std::size_t offset, std::size_t bytes) {
    for (const std::size_t end = offset + bytes; offset < end;) {
      if (offset % 64 == 0 && end - offset >= 64)
        words_[offset / 64] = 0, offset += 64;
      else
        words_[offset / 64] &= ~mask(offset, 1), ++offset;
    }
  }

 private:
  static std::uint64_t mask(std::size_t offset, unsigned size) { return ((1ull << size) - 1) << offset % 64; }
  std::vector<std::uint64_t> words_;
};

inline constexpr std::size_t kPage = 4096;  ///< of the interpreter's tables, and of memory on x86-64

/// Memory gets its rights in pieces of so many bytes: a multiple of kPage, on aarch64 4, 16 or 64 KiB.
std::size_t page_bytes();

/// One reserved range holds every allocation, so that "is it global?" is one comparison. Beside it lies a table with one entry per
/// 256-byte granule, so that "is it allocated?" is one load. The host may not touch the range, as it may not touch a GPU's memory:
/// it is mapped without any rights but while a launch or a copy runs.
class GlobalMemory {
 public:
  static constexpr std::size_t kGranule = 256;
  /// Free bytes on both sides of an allocation: an index that is some rows or planes off hits nobody else.
  static constexpr std::size_t kRedZone = std::size_t(1) << 20;
  static constexpr std::size_t kSmallRedZone = 4096;  ///< where the range is too full for the other
  /// So many of the last released allocations keep their place, so that their old pointers find nobody else there.
  static constexpr std::size_t kKept = 64;
  /// No allocation lies that close to the range's ends: what a 32-bit index that has overflowed reaches is inside.
  static constexpr std::size_t kMargin = std::size_t(16) << 30;
  static constexpr std::size_t kDeviceBytes = std::size_t(144) << 30;  ///< more than the largest modelled GPU has
  static constexpr std::size_t kManagedBytes = std::size_t(16) << 30;  ///< behind them: what the host may touch too
  static constexpr std::size_t kBytes = kMargin + kDeviceBytes + kManagedBytes + kMargin;
  /// Larger allocations are not filled with NaN: that would touch every page. initcheck still knows what was written.
  static constexpr std::size_t kPoisonLimit = std::size_t(64) << 20;
  static constexpr std::size_t kCellBytes = 40;  ///< what racecheck keeps of a word, and of a byte, in places of its own
  static constexpr std::size_t kPoisonedTogether = 16 * kPoisonLimit;  ///< at most so many bytes at a time, for the same reason

  struct Allocation {
    const char* begin = nullptr;
    std::size_t bytes = 0;
    std::string label;
    bool released = false;
    /// Where the L2 model sees it: side by side, and in the place of what was released, so that it gives the same each time.
    std::size_t packed_at = 0;
    bool is_heap = false;                       ///< see Kind
    std::vector<const void*> released_by = {};  ///< return_addresses() of the host's call, or the kernel's one
  };
  enum class Kind { kDevice, kManaged, kHeap };  ///< kHeap: of malloc in kernels, which Options::heap_bytes limits

  /// Kernels may touch device memory, and with them the host, while one of these lives.
  class Unlocked {
   public:
    Unlocked();
    ~Unlocked();
    Unlocked(const Unlocked&) = delete;
  };

  static GlobalMemory& instance();

  /// @param limit of what is allocated at a time, in bytes; that of kernels' heap counts by itself
  /// @throws std::bad_alloc beyond it
  void* allocate(std::size_t bytes, const std::string& label, Kind kind, std::size_t limit);
  void release(void* p, std::vector<const void*> released_by = {});
  /// From now on `forget` is called for what is released: nobody has used it any more.
  void when_released(void (*forget)(const char* begin, std::size_t bytes)) { forget_ = forget; }
  /// The allocation that holds `p`, which may be a released one, or is nearest to it; begin == nullptr if there is none at all.
  Allocation nearest(const void* p) const;
  /// @throws std::out_of_range unless [p, p + bytes) lies in one allocation.
  void require_allocated(const void* p, std::size_t bytes, const char* who) const;
  /// Copies or fills for the host: `work` may touch the bytes, which lie in one allocation. One at a time.
  void with_rights(const void* p, std::size_t bytes, const std::function<void()>& work);

  char* base() const { return base_; }
  bool contains(std::uintptr_t address) const { return address - reinterpret_cast<std::uintptr_t>(base_) < kBytes; }
  /// Whether the `size` <= 16 naturally aligned bytes at `offset` from base() are allocated.
  bool valid(std::size_t offset, unsigned size) const {
    return offset % kGranule + size <= (granules_[offset / kGranule] & kValidMask);
  }
  /// What bytes at `offset` hold before anybody writes them.
  char poison(std::size_t offset) const { return granules_[offset / kGranule] & kFilled ? '\xff' : '\0'; }
  /// Whether all bytes of the granule at `offset` were copied in by the host: the usual case, answered with one load.
  bool granule_initialised(std::size_t offset) const { return granules_[offset / kGranule] & kInitialised; }
  bool initialised(std::size_t offset, unsigned size) const;
  void mark_initialised(std::size_t offset, std::size_t bytes);
  /// Bytes that neither a kernel nor a copy has written, as far as that is known.
  struct Unwritten {
    std::size_t first = 0;  ///< offset of the first
    std::size_t count = 0;
  };
  /// Those among `bytes` bytes at `offset`, which may be read.
  Unwritten unwritten(std::size_t offset, std::size_t bytes) const;
  /// A kernel runs without initcheck: from now on unwritten() knows of nothing.
  void lose_track() { tracks_ = false; }

 private:
  GlobalMemory();
  static constexpr std::uint16_t kValidMask = 0x1ff, kFilled = 0x4000, kInitialised = 0x8000;

  bool tracks_ = true;
  std::atomic<void (*)(const char*, std::size_t)> forget_{nullptr};
  char* base_;
  std::uint16_t* granules_;     // valid bytes of the granule, kFilled and kInitialised
  std::uint64_t* initialised_;  // one bit per byte
};

}  // namespace interpreter

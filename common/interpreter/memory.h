/// @file
/// Global memory: allocations, which bytes are valid (memcheck) and which have been written (initcheck).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace interpreter {

/// Reserves address space without using memory; pages appear, zeroed, when they are touched.
/// @throws std::bad_alloc with a hint when the system refuses.
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

/// One reserved range holds every allocation, so that "is it global?" is one comparison. Beside it lies a table with one entry per
/// 256-byte granule, so that "is it allocated?" is one load.
class GlobalMemory {
 public:
  static constexpr std::size_t kGranule = 256;
  /// Free bytes on both sides of an allocation: an index that is a little off hits nobody else.
  static constexpr std::size_t kRedZone = 4096;
  static constexpr std::size_t kBytes = std::size_t(144) << 30;  ///< more than the largest modelled GPU has
  /// Larger allocations are not filled with NaN: that would touch every page. initcheck still knows what was written.
  static constexpr std::size_t kPoisonLimit = std::size_t(64) << 20;

  struct Allocation {
    const char* begin = nullptr;
    std::size_t bytes = 0;
    std::string label;
  };

  static GlobalMemory& instance();

  void* allocate(std::size_t bytes, const std::string& label);
  void release(void* p);
  /// The allocation that holds `p` or is nearest to it; begin == nullptr if there is none at all.
  Allocation nearest(const void* p) const;
  /// @throws std::out_of_range unless [p, p + bytes) lies in one allocation.
  void require_allocated(const void* p, std::size_t bytes, const char* who) const;

  char* base() const { return base_; }
  bool contains(std::uintptr_t address) const { return address - reinterpret_cast<std::uintptr_t>(base_) < kBytes; }
  /// Whether the `size` <= 16 naturally aligned bytes at `offset` from base() are allocated.
  bool valid(std::size_t offset, unsigned size) const {
    return offset % kGranule + size <= (granules_[offset / kGranule] & kValidMask);
  }
  /// Whether all bytes of the granule at `offset` were copied in by the host: the usual case, answered with one load.
  bool granule_initialised(std::size_t offset) const { return granules_[offset / kGranule] & kInitialised; }
  bool initialised(std::size_t offset, unsigned size) const;
  void mark_initialised(std::size_t offset, std::size_t bytes);

 private:
  GlobalMemory();
  static constexpr std::uint16_t kValidMask = 0x1ff, kInitialised = 0x8000;

  char* base_;
  std::uint16_t* granules_;     // valid bytes of the granule, and kInitialised
  std::uint64_t* initialised_;  // one bit per byte
};

}  // namespace interpreter

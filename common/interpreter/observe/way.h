/// @file
/// The way of a thread through its kernel, for who compares the ways of two.
#pragma once

#include <array>
#include <cstdint>

namespace interpreter {

/// The basic blocks that a thread has gone through since its last barrier, in order, as long as they are not too many.
class Way {
 public:
  static constexpr unsigned kLongest = 512;

  void restart() { length_ = 0, hash_ = 0; }
  void add(std::uint32_t block) {
    blocks_[length_ % kLongest] = static_cast<std::uint16_t>(block);
    ++length_;
    hash_ = (hash_ ^ block) * 0x9e3779b97f4a7c15ull;
  }
  bool is_complete() const { return length_ <= kLongest; }
  unsigned length() const { return length_; }
  std::uint32_t operator[](unsigned i) const { return blocks_[i]; }
  std::uint64_t hash() const { return hash_; }

 private:
  std::uint64_t hash_ = 0;
  unsigned length_ = 0;
  std::array<std::uint16_t, kLongest> blocks_;
};

}  // namespace interpreter

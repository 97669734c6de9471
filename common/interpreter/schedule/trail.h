/// @file
/// Finds threads that go round in circles.
#pragma once

#include <cstdint>

namespace interpreter {

/// A thread's way, as far as the interpreter sees it: the addresses that it accesses, the instructions that do it, the operands of
/// its comparisons, the times it reads. When the same piece comes again and again, the thread waits for somebody to change what it
/// reads, or it will never end. A thread that counts, walks on or waits for a time is never found here.
class Trail {
 public:
  /// Forgets all.
  void restart() { *this = Trail(); }

  /// An access to memory. @param strong volatile or atomic: others may change what it reads
  void add_access(std::uint64_t address, std::uint32_t pc, bool strong) {
    add_operands(address, pc);
    strong_ |= strong;
    if (++accesses_ % kWindow == 0) end_window();
  }
  void add_operands(std::uint64_t a, std::uint64_t b) { window_ = mix(window_ ^ mix(a) ^ b); }

  /// How many windows of accesses have come again so far, without an exception.
  std::uint64_t repeated_windows() const { return repeated_; }
  /// How many of the latest windows had plain accesses alone.
  std::uint64_t plain_windows() const { return plain_; }

  static constexpr unsigned kWindow = 64;

 private:
  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
    return x ^ x >> 29;
  }

  // Looks for the anchor, one of the windows, to come again; what lies between two of its visits is a round. Rounds must be equal.
  // If none is found, another window becomes the anchor, and more patience is taken (R. P. Brent, An improved Monte Carlo
  // factorization algorithm, 1980).
  void end_window() {
    round_ = mix(round_ ^ window_), ++length_;
    if (window_ == anchor_) {
      const bool same = round_ == last_round_ && length_ == last_length_;
      repeated_ = same ? repeated_ + length_ : 0;
      if (!same) ++unequal_rounds_;
      last_round_ = round_, last_length_ = length_;
      round_ = 0, length_ = 0;
    } else if (length_ > last_length_) {
      repeated_ = 0;
    }
    if (length_ > patience_ || unequal_rounds_ > 8) {
      patience_ *= 2;
      anchor_ = window_;
      round_ = last_round_ = 0, length_ = last_length_ = 0, unequal_rounds_ = 0;
    }
    plain_ = strong_ ? 0 : plain_ + 1;
    window_ = 0, strong_ = false;
  }

  std::uint64_t window_ = 0, accesses_ = 0, plain_ = 0;
  bool strong_ = false;
  std::uint64_t anchor_ = 0, round_ = 0, last_round_ = 0, repeated_ = 0;
  std::uint64_t length_ = 0, last_length_ = 0, patience_ = 1, unequal_rounds_ = 0;
};

}  // namespace interpreter

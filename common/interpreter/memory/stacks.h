/// @file
/// The stacks of a block's threads: local memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace interpreter {

/// One mapping with a stack per thread, kept from block to block.
class Stacks {
 public:
  /// At the end of each stack, for the interpreter's own calls: a kernel that needs more must not take them by surprise.
  static constexpr std::size_t kReserve = 16 * 1024;

  Stacks() = default;
  Stacks(const Stacks&) = delete;
  ~Stacks() { drop(); }

  /// Makes room for `threads` threads that need `stack_bytes` each.
  void prepare(unsigned threads, std::size_t stack_bytes);

  char* top(unsigned thread) const;          ///< where the stack begins
  const char* limit(unsigned thread) const;  ///< below it, only the interpreter's own calls may go
  std::size_t usable_bytes() const;          ///< of a stack from top(), the reserve included

  /// Whether `p` lies on some thread's stack.
  bool contains(const void* p) const { return offset_of(p) < count_ * bytes_; }
  /// Whether `p` lies on the stack of `thread`.
  bool contains(unsigned thread, const void* p) const { return offset_of(p) - thread * bytes_ < bytes_; }
  /// Whose stack it is that contains `p`.
  std::size_t owner_of(const void* p) const { return offset_of(p) / bytes_; }
  /// How far from the top of the stack of `thread` `p` lies: the same for all lanes' places of one variable.
  std::uint64_t depth_of(unsigned thread, const void* p) const {
    return static_cast<std::uint64_t>(static_cast<const char*>(top(thread)) - static_cast<const char*>(p));
  }
  /// Whether `p` lies in the guard page below a stack.
  bool in_guard_page(const void* p) const;

 private:
  void drop();
  std::size_t offset_of(const void* p) const { return static_cast<std::size_t>(static_cast<const char*>(p) - begin_); }

  char* begin_ = nullptr;
  std::size_t bytes_ = 0, count_ = 0;  // of a stack; of stacks
  std::size_t guarded_ = 0;            // stacks with a guard page
};

}  // namespace interpreter

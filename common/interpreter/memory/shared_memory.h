/// @file
/// The shared memory of a block: an arena for dynamic shared memory, and the __shared__ variables, which are thread_local variables
/// of the block's OS thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/interpreter/memory/global_memory.h"

namespace interpreter {

/// The shared memory of the blocks that run one after the other on the OS thread that made it.
class SharedMemory {
 public:
  static constexpr std::size_t kArenaBytes = 256 * 1024;  ///< address range of dynamic shared memory; more than any GPU has

  SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  ~SharedMemory();

  /// A range of addresses, and which of its bytes have been written.
  struct Part {
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    ByteFlags initialised;
    bool contains(std::uintptr_t address) const { return address - begin < bytes; }
    bool all_initialised(std::uintptr_t address, unsigned size) const { return initialised.all(address - begin, size); }
    /// Marks bytes as written or as not written.
    void set_initialised(std::uintptr_t address, unsigned size, bool value) {
      if (value)
        initialised.set(address - begin, size);
      else
        initialised.clear(address - begin, size);
    }
  };
  Part arena, statics;
  std::size_t dynamic_bytes = 0;  ///< of the arena that the running block has

  bool contains(std::uintptr_t address) const { return arena.contains(address) || statics.contains(address); }
  /// The part that contains `address`, which is shared memory.
  Part& part_of(std::uintptr_t address) { return arena.contains(address) ? arena : statics; }
  char* dynamic() const { return reinterpret_cast<char*>(arena.begin); }

  /// @name Addresses of 18 bits, as some instructions have them: dynamic shared memory, then the variables
  /// @{
  std::uint32_t instruction_address(std::uintptr_t address) const {
    const std::size_t at = arena.contains(address) ? address - arena.begin : variables_at() + (address - statics_page());
    return static_cast<std::uint32_t>(at);
  }
  std::uintptr_t address_at(std::uint32_t instruction_address) const {
    return instruction_address < variables_at() ? arena.begin + instruction_address
                                                : statics_page() + (instruction_address - variables_at());
  }
  /// Whether the address comes from one of these that stands for nothing.
  bool lies_behind(std::uintptr_t address) const { return !contains(address) && address - statics_page() < 1u << 18; }
  /// @}

  /// Fills the memory with NaN for the next block.
  void begin(std::size_t dynamic_bytes);

  // ---- __shared__ variables, by their index in shared_variables() plus one; 0: there is none
  static constexpr std::uint16_t kGuard = 0xffff;  ///< one of the compiler's own, at which there is nothing to look
  /// The variable that holds the byte at an offset in `statics`.
  unsigned variable_at(std::size_t offset) const { return variable_at_[offset]; }
  /// Offset of the variable's end.
  std::size_t end_of(unsigned variable) const { return variables_[variable - 1].end; }
  /// Whether the block has used the variable before. If not, it begins to exist.
  bool was_touched(unsigned variable) {
    return variables_[variable - 1].touched_by == serial_ || (begin_variable(variable), false);
  }
  /// Bytes of the variables that the block has used.
  std::size_t static_bytes() const { return static_bytes_; }

 private:
  void begin_variable(unsigned variable);
  // Both sides keep their alignment.
  static constexpr std::size_t kPattern = 1024;
  std::size_t variables_at() const { return (dynamic_bytes + kPattern - 1) / kPattern * kPattern; }
  std::uintptr_t statics_page() const { return statics.begin / kPattern * kPattern; }

  struct Variable {
    std::uint32_t end = 0;         // offset
    std::uint64_t touched_by = 0;  // serial_ of the last block that used it
  };
  std::vector<Variable> variables_;
  std::vector<unsigned> touched_;           // indices of those that the block used: the next one shall find poison there
  std::vector<std::uint16_t> variable_at_;  // by offset
  std::uint64_t serial_ = 0;                // of the block
  std::size_t static_bytes_ = 0;
};

}  // namespace interpreter

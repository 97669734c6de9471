/// @file
/// Indices beyond the end of an array's type: one __shared__ variable's end is another one's beginning, so that an address alone
/// cannot tell. The compiler tells of the index (-fsanitize=bounds), the access that follows which variable it was for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/interpreter/debug_info/lines.h"
#include "common/interpreter/memory/shared_memory.h"
#include "common/interpreter/schedule/fiber.h"

namespace interpreter {

class Reporter;

/// Indices that threads of the running block have been seen to use and that have not been reported yet.
class BadIndices {
 public:
  BadIndices(const SharedMemory& shared, Reporter& reporter) : shared_(shared), reporter_(reporter) {}
  /// A block begins.
  void begin(unsigned threads) { noted_.clear(), noted_.resize(threads); }

  /// The fiber is about to use `index` with an array of type `array`, which has no such element. The access that fits tells which
  /// variable it is.
  void note(Fiber& fiber, std::int64_t index, const std::string& array, Location where);
  /// Whether an index of the fiber's waits for its access.
  bool has_noted(const Fiber& fiber) const { return noted_[fiber.linear] != nullptr; }
  /// @param p what the fiber is about to access; null if it is about to wait or to end
  void check(Fiber& fiber, const void* p) {
    if (noted_[fiber.linear]) [[unlikely]]
      report(fiber, p);
  }
  /// The fiber has made its last access for now.
  void before_waiting(Fiber& fiber) {
    if (fiber.special) [[unlikely]]
      check(fiber, nullptr);
  }

 private:
  struct BadIndex {
    std::int64_t index;
    std::string array;  // its type, "float [8][36]"
    Location where;
    int patience = 8;  // so many accesses may come before the one that the index is for
  };
  void report(Fiber& fiber, const void* p);

  const SharedMemory& shared_;
  Reporter& reporter_;
  std::vector<std::unique_ptr<BadIndex>> noted_;  // by thread
};

}  // namespace interpreter

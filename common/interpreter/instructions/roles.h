/// @file
/// Which warps of a block copy for others, which use what was copied, and from where the copy engine stores: for Teamwork.
#pragma once

#include <cstdint>

#include "common/interpreter/count/overlap.h"
#include "common/interpreter/count/teamwork.h"
#include "common/interpreter/running/block_context.h"

namespace interpreter {

/// What warps have done so far, a bit each.
class Roles final : public Family {
 public:
  explicit Roles(BlockContext& block) : block_(block) {}
  void begin(unsigned) override { copying_ = multiplying_ = 0, stored_from_ = stored_to_ = 0; }

  void copies(unsigned warp) { copying_ |= 1u << warp; }          ///< it has loaded by the copy engine
  void multiplies(unsigned warp) { multiplying_ |= 1u << warp; }  ///< it has started a wgmma
  /// These warps meet.
  void meet(std::uint32_t warps) {
    const std::uint32_t using_it = multiplying_ | block_.overlap.reading();
    if ((warps & copying_ & ~using_it) && (warps & using_it)) ++teamwork().named_of_roles;
  }
  /// The copy engine stores what lies there in shared memory.
  void store(std::uintptr_t from, std::uintptr_t bytes) {
    if (from < stored_to_ && stored_from_ < from + bytes) ++teamwork().stored_again;
    stored_from_ = from, stored_to_ = from + bytes;
  }

 private:
  BlockContext& block_;
  std::uint32_t copying_ = 0, multiplying_ = 0;
  std::uintptr_t stored_from_ = 0, stored_to_ = 0;
};

}  // namespace interpreter

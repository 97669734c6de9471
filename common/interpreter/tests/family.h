/// @file
/// A family of instructions that only the tests have: a lane marks a place in the warp's instructions.
#pragma once

#include <cstdint>
#include <vector>

namespace family {

/// One instruction of a warp.
struct Marked {
  unsigned block = 0, warp = 0;
  std::uint32_t lanes = 0;  ///< that executed it together
  std::vector<int> tags;    ///< of these lanes
  unsigned number = 0;      ///< of the block's, from 1
};
/// All since the last clear().
std::vector<Marked>& marked();

/// The instruction.
void mark(int tag);

}  // namespace family

/// @file
/// Where the copy engine puts the 16-byte pieces of a box, above all of one whose rows are narrower than the swizzle: the same
/// table on a GPU and on the interpreter.
#pragma once

#include <string>
#include <vector>

namespace boxes {

inline constexpr const char* kHeader = "swizzle,row bytes,rows,first byte,completed,places";
inline constexpr int kRows = 24;  ///< of each box

struct Box {
  int swizzle_bytes, row_bytes;
  int first_byte;  ///< of the box in shared memory, from where a pattern begins
};
/// In the order of the table's rows.
std::vector<Box> all();

/// The numbers of bytes that are tried as those of the whole box.
std::vector<int> tried_bytes(const Box& box);

/// The table's row.
/// Completed: those of the tried numbers of expected bytes with which the mbarrier's phase was over; the interpreter, which reports
/// the others, tries the first one. Places: what lies in shared memory, piece by piece from the box's address on: the number of the
/// source's piece, counted along the rows of the box; - where nothing was written; ? where the 16 bytes are no piece of the source.
std::string row_of(const Box& box);

}  // namespace boxes

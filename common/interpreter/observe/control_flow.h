/// @file
/// A kernel's control flow, learnt while it runs: where lanes that went different ways meet again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "common/interpreter/debug_info/lines.h"

namespace interpreter {

/// Basic blocks of one kernel, the ways between them that were seen, and an order of them.
///
/// The order is the one in which a person would write the code down: a block comes after those that lead to it, a loop's blocks
/// stay together behind its head, and what follows the loop comes behind all of them (F. Bourdoncle, Efficient chaotic iteration
/// strategies with widenings, 1993: a weak topological order). A GPU's compiler lets the lanes of a warp meet where their ways join
/// again; lanes that always wait for those further up in this order meet there too. Machine addresses will not do: compilers move
/// blocks about.
class ControlFlow {
 public:
  /// The blocks that a lane went through since its last access to memory, as a set, and the last of them.
  struct Path {
    Pc pc;  ///< of the last block
    std::uint32_t id;
    std::uint32_t block;                ///< the last block
    Path* next[2] = {};                 ///< the usual ways on
    Path* restart = nullptr;            ///< the empty path at the last block: where a lane stands after an access
    std::vector<std::uint32_t> blocks;  ///< sorted
    // Positions in the order, as of `version`.
    std::uint64_t version = 0;
    std::uint32_t position = 0, gate = 0;
  };

  ControlFlow();

  /// Where every lane starts.
  Path* entry() { return entry_; }
  /// The path on into the block at `pc`, if it is known and usual; else null.
  static Path* known(Path* path, Pc pc) {
    for (Path* next : path->next)
      if (next && next->pc == pc) return next;
    return nullptr;
  }
  /// The path on into the block at `pc`.
  Path* extend(Path* path, Pc pc);
  /// Position of the block in which a lane stands at the end of the path, from 1.
  std::uint32_t position(std::uint32_t id) { return located(id).position; }
  /// Position of the last block of the loop that has brought it back on its way; else 0. The furthest block that it passed itself
  /// will not do: lanes that went different ways through a loop meet at its head.
  std::uint32_t gate(std::uint32_t id) { return located(id).gate; }

  /// A loop around a block.
  struct Loop {
    std::uint32_t head;
    std::vector<bool> inside;  ///< by block: whether it belongs to the loop
    std::vector<bool> after;   ///< by block: whether it may follow the given block in the same round, and is in no inner loop
  };
  /// The loops around `block`, as far as they are known, the outermost first; none where it is the head itself.
  /// @param node_of blocks that count as one have the same number here, that of one of them
  std::vector<Loop> loops_around(std::uint32_t block, const std::vector<std::uint32_t>& node_of) const;
  /// Gives blocks that begin in the same place of the source the same number.
  void unite_copies(std::vector<std::uint32_t>& node_of) const;
  std::size_t block_count() const { return successors_.size(); }
  std::uint64_t version() const { return version_; }  ///< grows with the known ways

 private:
  Path* make(std::vector<std::uint32_t> blocks, std::uint32_t last, Pc pc);
  std::uint32_t block_at(Pc pc);
  const Path& located(std::uint32_t id);
  void put_in_order();
  /// Position of the last block of the innermost loop that has blocks at both positions; if there is none, the second one.
  std::uint32_t end_of_loop(std::uint32_t first, std::uint32_t second) const;

  std::map<Pc, std::uint32_t> block_at_;
  std::vector<std::vector<std::uint32_t>> successors_;  // by block
  std::vector<std::uint32_t> positions_;                // by block
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      loops_;               // the position before each loop's head, and that of its end; inner first
  std::deque<Path> paths_;  // by id
  std::map<std::pair<std::vector<std::uint32_t>, std::uint32_t>, Path*> path_of_;
  Path* entry_;
  std::uint64_t version_ = 1, ordered_version_ = 0;  // of the known ways
};

}  // namespace interpreter

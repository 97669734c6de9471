/// @file
/// Collectives of a warp whose lanes have two worlds, and shuffles that give them to lanes; see collective_worlds.cpp.
#pragma once

#include <cstdint>

#include "common/interpreter/language/language.h"

namespace interpreter {

class Scheduler;
class SideStack;
class Stacks;
class TwoWorlds;

/// Carries out the collectives of the running block's warps, in both worlds of their lanes where there are two.
class CollectiveWorlds {
 public:
  CollectiveWorlds(TwoWorlds& worlds, Scheduler& scheduler, const Stacks& stacks, SideStack& side_stack)
      : worlds_(worlds), scheduler_(scheduler), stacks_(stacks), side_stack_(side_stack) {}
  /// A block begins.
  void begin() { about_ = false; }

  /// Whether a lane of the block has received a value that no lane gave.
  bool undefined_values_about() const { return about_; }
  /// A thread has got one, and now has two worlds.
  void note_undefined_value() { about_ = true; }
  /// All lanes of a collective have come: `arrived`, which are those of `mask` that exist, get what `combine` makes of their
  /// arguments. It returns once for the running thread, and again for its second world.
  void combine(unsigned warp, unsigned mask, std::uint32_t arrived, void* const* arguments, Combine combine);
  /// Tells of the shuffle that is being carried out which lane each of the lanes of `lanes` reads.
  void note_shuffle(const char* name, const std::uint8_t* sources, unsigned lanes, Site site);

 private:
  static void combine_in_both_worlds(void* self);

  TwoWorlds& worlds_;
  Scheduler& scheduler_;
  const Stacks& stacks_;
  SideStack& side_stack_;
  bool about_ = false;
  // What is being carried out. A member: what lies on the stack of the calling thread is another one in its second world.
  struct Combining {
    unsigned warp = 0, mask = 0;
    std::uint32_t lanes = 0;
    void* const* arguments = nullptr;
    Combine combine = nullptr;
    bool done = false;           // in the first world
    bool undefined = false;      // a lane reads from one that gives nothing
    const char* name = nullptr;  // of a shuffle
    Site site;
    std::uint8_t sources[32] = {};
  } now_;
};

}  // namespace interpreter

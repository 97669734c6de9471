
#include <array>
#include <atomic>

#include "common/interpreter/instructions/atomics.h"
#include "common/interpreter/instructions/entered.h"
#include "common/interpreter/language/groups.h"
#include "common/interpreter/meetings/waiting.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/running/grid_barrier.h"

namespace interpreter {
namespace {

// A lane that waits at a call, and then the lanes that it shall see there.
struct Meeting {
  const char* file = nullptr;  // of the call; null: the lane waits at none
  int line = 0;
  unsigned lanes = 0;  // 0: nobody has looked yet
};
// A block has an OS thread.
thread_local std::array<Meeting, kMaxThreads> meetings;

}  // namespace

unsigned converged_lanes(Site site) {
  const Entered in;
  Meeting& mine = meetings[in.fiber.linear];
  mine = {site.file, site.line, 0};
  in.block.atomics.fence(in.fiber, false);  // all other lanes of the warp go on until they wait, too
  if (!mine.lanes) {
    const unsigned first = in.fiber.linear - in.fiber.lane;
    unsigned together = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
      const Meeting& other = meetings[first + lane];
      if (other.file == site.file && other.line == site.line && !other.lanes) together |= 1u << lane;
    }
    for (unsigned lane = 0; lane < 32; ++lane)
      if (together >> lane & 1) meetings[first + lane].lanes = together;
  }
  const unsigned lanes = mine.lanes;
  mine = {};
  return lanes;
}

namespace {

// Until all blocks have arrived. These looks are no atomics: hundreds of blocks would each pass on what all the others know.
void wait_for_blocks(const unsigned* word, unsigned complete) {
  const Entered in;
  const Pc here = to_pc(__builtin_return_address(0));
  while (static_cast<int>(std::atomic_ref(*const_cast<unsigned*>(word)).load() - complete) < 0)
    in.block.waiting.poll(in.fiber, word, here);
}

}  // namespace

// As CUDA's own: the block meets, its first thread tells the grid and waits until all blocks have, and the block meets again.
void grid_sync(Site site) {
  unsigned* const word = grid_barrier_word();
  if (!word) {
    const Entered in(Worlds::kBoth);
    in.block.reporter.fail(Check::kSynccheck, "this_grid().sync() in a launch that is not cooperative",
                           "cudaLaunchCooperativeKernel starts the kernel: all its blocks are resident at the same time", &in.fiber,
                           {site.file, site.line});
  }
  block_barrier(Reduction::kNone, false, site);
  const uint3 thread = thread_index();
  if (thread.x == 0 && thread.y == 0 && thread.z == 0) {
    const dim3 grid = grid_dimensions();
    const unsigned blocks = grid.x * grid.y * grid.z;
    fence(true);
    const unsigned ticket = atomic_update(word, [](unsigned& value) { return ++value, true; });
    const unsigned complete = (ticket / blocks + 1) * blocks;
    wait_for_blocks(word, complete);
    atomic_update(word, [](unsigned&) { return false; });  // what they did before is seen from here on
    fence(true);
  }
  block_barrier(Reduction::kNone, false, site);
}

}  // namespace interpreter

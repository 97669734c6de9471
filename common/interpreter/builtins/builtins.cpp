// The built-in variables and functions of language.h.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/interpreter/checks/collective_worlds.h"
#include "common/interpreter/checks/races.h"
#include "common/interpreter/instructions/atomics.h"
#include "common/interpreter/instructions/entered.h"
#include "common/interpreter/meetings/meetings.h"
#include "common/interpreter/meetings/waiting.h"
#include "common/interpreter/report/reporter.h"

namespace interpreter {

uint3 thread_index() { return running_fiber().thread; }
uint3 block_index() { return running_fiber(), current_block->work.index; }
dim3 block_dimensions() { return running_fiber(), current_block->work.launch->launch.block; }
dim3 grid_dimensions() { return running_fiber(), current_block->work.launch->launch.grid; }
unsigned lane_index() { return running_fiber().lane; }
void* dynamic_shared() { return running_fiber(), current_block->shared.dynamic(); }

void warp_collective(const char* name, unsigned mask, void* argument, Combine combine, Site site) {
  const Entered in(Worlds::kBoth);
  in.block.meetings.collective(in.fiber, name, mask, argument, combine, site);
}
void warp_barrier(unsigned mask, Site site) {
  const Entered in(Worlds::kBoth);
  in.block.meetings.warp_barrier(in.fiber, mask, site);
}
int block_barrier(Reduction reduction, bool predicate, Site site) {
  const Entered in(Worlds::kBoth);
  return in.block.meetings.barrier(in.fiber, reduction, predicate, site, to_pc(__builtin_return_address(0)));
}
void fence(bool whole_gpu) {
  const Entered in(Worlds::kBoth);
  in.block.atomics.fence(in.fiber, whole_gpu);
}
void atomic(void* address, unsigned size, void* old_value, bool (*update)(void*, const void*), const void* context, Scope scope,
            AtomicKind kind) {
  const Entered in(Worlds::kBoth);
  in.block.atomics.atomic(in.fiber, address, size, old_value, update, context, scope, kind, __builtin_return_address(0));
}
void illegal_width(const char* name, int width, Site site) {
  const Entered in(Worlds::kBoth);
  in.block.reporter.fail(Check::kSynccheck, std::string(name) + " with width " + std::to_string(width),
                         "a width of 1, 2, 4, 8, 16 or 32 lanes", &in.fiber, {site.file, site.line});
}
void trap(const char* what, Site site) {
  const Entered in(Worlds::kBoth);
  in.block.reporter.fail(Check::kException, what, "kernels end without a trap", &in.fiber, {site.file, site.line});
}
void lacks(const char* what, const char* instead, Site site) {
  const Entered in(Worlds::kBoth);
  in.block.reporter.fail(Check::kSynccheck, std::string("the interpreter does not have ") + what, instead, &in.fiber,
                         {site.file, site.line});
}
void assertion_failed(const char* condition, const char* file, int line) {
  if (!current_fiber) {  // host code that includes kernel headers
    std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
    std::abort();
  }
  const Entered in(Worlds::kBoth);
  in.block.reporter.fail(Check::kException, std::string("assertion failed: ") + condition, "the assertion holds", &in.fiber,
                         {file, line});
}
void sleep_hint() {
  const Entered in(Worlds::kBoth);
  in.block.waiting.sleep(in.fiber, to_pc(__builtin_return_address(0)));
}
// For cuda_runtime/inline_ptx.h.
void note_not_volatile() {
  const Entered in(Worlds::kBoth);
  in.block.work.launch->note(
      "the asm statement at " + at(user_location(to_pc(__builtin_return_address(0)))) +
      " reads what other threads change, and is not volatile: nvcc may move it out of a loop, or take what it "
      "has read before. asm volatile");
}
long long clock_ticks() {
  if (current_fiber && current_block->worlds.in_other()) current_block->worlds.end_other();  // the time is another one there
  // Whoever waits for a time waits for something that comes.
  if (current_fiber) current_fiber->trail.restart();
  return std::chrono::steady_clock::now().time_since_epoch().count();
}
void read_only_load(const void* address, std::size_t bytes) {
  const Entered in(Worlds::kBoth);
  if (in.block.work.options().racecheck && !in.block.worlds.in_other())
    in.block.races.check_read_only_load(in.fiber, address, bytes, __builtin_return_address(0));
}
bool undefined_values_about() { return current_block->collective_worlds.undefined_values_about(); }
bool in_other_world() { return current_block->worlds.in_other(); }
void shuffled(const char* name, const std::uint8_t* sources, unsigned mask, Site site) {
  current_block->collective_worlds.note_shuffle(name, sources, mask, site);
}

bool at(unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty, unsigned tz) {
  if (!current_fiber) return false;
  const uint3 b = current_block->work.index, t = current_fiber->thread;
  return b.x == bx && b.y == by && b.z == bz && t.x == tx && t.y == ty && t.z == tz;
}

}  // namespace interpreter

#include "common/interpreter/checks/initialised.h"

#include <algorithm>
#include <bit>
#include <string>

#include "common/interpreter/checks/mbarrier_facts.h"
#include "common/interpreter/debug_info/symbols.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/running/block_context.h"
#include "common/interpreter/schedule/cluster.h"
#include "common/interpreter/schedule/scheduler.h"
#include "common/interpreter/schedule/whereabouts.h"

namespace interpreter {

void InitCheck::begin(unsigned threads) {
  excused_.assign(threads, false);
  if (work_.options().initcheck) shared_.arena.initialised.clear(0, shared_.dynamic_bytes);
}

// The shared memory that holds the address: the block's own, or another block's of the cluster.
SharedMemory& InitCheck::home_of(std::uintptr_t address) {
  return shared_.contains(address) ? shared_ : work_.cluster->home_of(address)->shared;
}

// Not a __device__ variable, which the language initialises.
bool InitCheck::is_global(std::uintptr_t address) const { return address - global_begin_ < GlobalMemory::kBytes; }

namespace {

// Whether every member of what is copied may have been written: padding has no value, and nobody writes it. It comes behind a
// member and ends where the next one is aligned, so that of 4 bytes that begin at a multiple of 4, the first is none. But before a
// member of 8 bytes, or behind the last one of a struct that has such a member, it may be 4 bytes; only what the source says is
// read tells it from the half of a float2 that nobody has written.
template <class Written>
bool lacks_only_padding(Pc pc, unsigned size, Written&& written) {
  std::uint32_t missing = 0;
  for (unsigned byte = 0; byte < size; byte += 4)
    if (!written(byte)) missing |= 1u << byte / 4;
  return !missing || are_padding(pc, size, missing);
}

}  // namespace

// Whether each byte has been written that is read, but for padding.
bool InitCheck::was_written(std::uintptr_t address, unsigned size, Pc pc, bool shared) {
  if (!shared) {
    const std::uintptr_t offset = address - global_begin_;
    if (reporter_.keeps_going() && !global_.valid(offset, size)) return true;  // that was reported
    return global_.granule_initialised(offset) || global_.initialised(offset, size) ||
           lacks_only_padding(pc, size, [&](unsigned byte) { return global_.initialised(offset + byte, 1); });
  }
  SharedMemory::Part& part = home_of(address).part_of(address);
  const std::uintptr_t offset = address - part.begin;
  return part.initialised.all(offset, size) ||
         lacks_only_padding(pc, size, [&](unsigned byte) { return part.initialised.all(offset + byte, 1); });
}

bool InitCheck::is_tried(std::uintptr_t address, unsigned size) const {
  if (shared_.contains(address)) return true;
  if (!is_global(address)) return false;
  unsigned written = 0;
  for (unsigned byte = 0; byte < size; byte += 4)
    written += global_.initialised(address - global_begin_ + byte, std::min(size, 4u));
  return written > 0 && written < size / 4;
}

char InitCheck::poison_of(std::uintptr_t address) const {
  return is_global(address) ? global_.poison(address - global_begin_) : '\xff';
}

std::uint32_t InitCheck::unwritten(std::uintptr_t address, unsigned size, Pc pc) const {
  const SharedMemory::Part* const part = is_global(address) ? nullptr : &shared_.part_of(address);
  std::uint32_t bytes = 0;
  for (unsigned byte = 0; byte < size; ++byte)
    if (!(part ? part->initialised.all(address + byte - part->begin, 1) : global_.initialised(address + byte - global_begin_, 1)))
      bytes |= 1u << byte;
  if (bytes) bytes &= ~log_.stored_bytes(address, size);
  return lacks_only_padding(pc, size, [&](unsigned byte) { return !(bytes >> byte & 1); }) ? 0 : bytes;
}

void InitCheck::excuse(const Fiber& fiber) { excused_[fiber.linear] = true; }
bool InitCheck::is_excused(const Fiber& fiber) const { return excused_[fiber.linear]; }

// Of shared memory, a barrier that another thread waits at and this one has not come to may be why nothing is there yet.
std::string InitCheck::where_barrier_was_passed_by(const Fiber& fiber, std::uintptr_t address) const {
  const Fiber* const waiting = is_global(address) ? nullptr : current_block->whereabouts.waits_where_passed_by(fiber);
  if (!waiting) return "";
  return "; the __syncthreads() at " + at(place_of(*waiting)) + " is reached by all threads in each round of the loop: thread " +
         to_text(waiting->thread) + " waits there, this thread has passed it by";
}

Diagnosis InitCheck::diagnose(const Fiber& fiber, std::uintptr_t address, unsigned size, Pc pc) const {
  const void* p = reinterpret_cast<const void*>(address);
  Diagnosis d = reporter_.diagnose(
      Check::kInitcheck, "read of " + std::to_string(size) + " uninitialised bytes of " + reporter_.describe(p, pc, false, size),
      std::string("memory is written before it is read") +
          (!is_global(address) && current_block->mbarriers().has_barriers() ? std::string("; ") + MbarrierFacts::kReadTooEarly
                                                                            : "") +
          where_barrier_was_passed_by(fiber, address),
      &fiber, user_location(pc));
  d.variable = reporter_.variable_at(p);
  return d;
}

void InitCheck::check(unsigned w, const Request& request) {
  const bool overwrites = interpreter::overwrites(request.op);  // other atomics read what they change
  unsigned i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    const std::uintptr_t address = request.addresses[i];
    if (!request.shared && !is_global(address)) return;
    if (!overwrites) {
      const Fiber& fiber = scheduler_.fiber(w, static_cast<unsigned>(std::countr_zero(rest)));
      const bool excused = is_excused(fiber) && request.op == Op::kLoad && !request.strong && is_tried(address, request.size);
      if (!excused && !was_written(address, request.size, request.pc, request.shared))
        reporter_.suspect(request.pc, [&] { return diagnose(fiber, address, request.size, request.pc); });
    } else if (request.shared) {
      SharedMemory::Part& part = home_of(address).part_of(address);
      part.initialised.set(address - part.begin, request.size);
    } else {
      global_.mark_initialised(address - global_begin_, request.size);
    }
    if (request.uniform) return;
  }
}

// An address or an index that nobody has written leads anywhere. The read of it still waits in the log.
void InitCheck::look_back(const Fiber& fiber) {
  if (!work_.options().initcheck) return;
  log_.visit_last_plain_loads(fiber.lane, AccessLog::kDepth, [&](std::uintptr_t address, unsigned size, bool shared, Pc pc) {
    if ((shared || is_global(address)) && !was_written(address, size, pc, shared) && !log_.stores_to(address))
      reporter_.suspect(pc, [&] { return diagnose(fiber, address, size, pc); });
  });
}

// A read of bytes that no hook has told of a write to. Compilers make some stores that no hook tells of: of a struct that a call
// returns, of what a library writes through a pointer. They show in the memory: bytes that do not hold their poison any more were
// written, and so were others of the same line, for such a store may write poison's bits too. Asked at the access and not later,
// when what the thread itself stores next would hide that it read too early.
void InitCheck::find_unseen_writes(std::uintptr_t address, unsigned size) {
  if (!work_.options().initcheck) return;
  constexpr std::uintptr_t kLine = 64;
  std::uintptr_t first = address & ~(kLine - 1), last = first + kLine;  // the line, as far as it belongs to the same memory
  char poison = '\xff';
  SharedMemory::Part* part = nullptr;
  if (const std::uintptr_t offset = address - global_begin_; offset < GlobalMemory::kBytes) {
    poison = global_.poison(offset);
  } else if (SharedMemory& shared = home_of(address); shared.arena.contains(address)) {
    part = &shared.arena;
    last = std::min(last, part->begin + shared.dynamic_bytes);
  } else {
    part = &shared.statics;
    const SharedVariable& variable = shared_variables()[shared.variable_at(address - part->begin) - 1u];
    first = std::max(first, part->begin + variable.offset);
    last = std::min(last, part->begin + variable.offset + variable.bytes);
  }
  const auto written_unseen = [&](std::uintptr_t byte) {
    if (*reinterpret_cast<const char*>(byte) == poison) return false;
    return part ? !part->initialised.all(byte - part->begin, 1)
                : global_.valid(byte - global_begin_, 1) && !global_.initialised(byte - global_begin_, 1);
  };
  bool found = false;
  for (std::uintptr_t byte = address; byte < address + size; ++byte) found |= written_unseen(byte);
  // Stores that still wait in the log are no unseen ones.
  for (std::uintptr_t byte = first; byte < last && !found; ++byte) found = written_unseen(byte) && !log_.stores_to(byte);
  if (!found) return;
  if (part)
    part->initialised.set(address - part->begin, size);
  else
    global_.mark_initialised(address - global_begin_, size);
}

}  // namespace interpreter

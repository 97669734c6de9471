#include "common/interpreter/checks/initialised.h"

#include <algorithm>
#include <bit>
#include <string>

#include "common/interpreter/report/source_map.h"
#include "common/interpreter/schedule/block.h"

namespace interpreter {

void InitCheck::begin() {
  if (work_.options().initcheck) shared_.arena.initialised.clear(0, shared_.dynamic_bytes);
}

// The shared memory that holds the address: the block's own, or another block's of the cluster.
SharedMemory& InitCheck::home_of(std::uintptr_t address) {
  return shared_.contains(address) ? shared_ : work_.cluster->home_of(address)->shared;
}

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

void InitCheck::check(unsigned w, const Request& request) {
  const bool overwrites = interpreter::overwrites(request.op);  // other atomics read what they change
  unsigned i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    const std::uintptr_t address = request.addresses[i];
    bool initialised = true;
    if (!request.shared) {
      const std::uintptr_t offset = address - global_begin_;
      if (offset >= GlobalMemory::kBytes) return;  // a __device__ variable: initialised by the language
      if (overwrites)
        global_.mark_initialised(offset, request.size);
      else
        initialised =
            global_.granule_initialised(offset) || global_.initialised(offset, request.size) ||
            lacks_only_padding(request.pc, request.size, [&](unsigned byte) { return global_.initialised(offset + byte, 1); });
    } else {
      SharedMemory::Part& part = home_of(address).part_of(address);
      const std::uintptr_t offset = address - part.begin;
      if (overwrites)
        part.initialised.set(offset, request.size);
      else
        initialised =
            part.initialised.all(offset, request.size) ||
            lacks_only_padding(request.pc, request.size, [&](unsigned byte) { return part.initialised.all(offset + byte, 1); });
    }
    if (!initialised && !reporter_.suspects()) {
      const Fiber& fiber = scheduler_.fiber(w, static_cast<unsigned>(std::countr_zero(rest)));
      const void* p = reinterpret_cast<const void*>(address);
      Diagnosis d = reporter_.diagnose(Check::kInitcheck,
                                       "read of " + std::to_string(request.size) + " uninitialised bytes of " +
                                           reporter_.describe(p, request.pc, false, request.size),
                                       "memory is written before it is read", &fiber, user_location(request.pc));
      d.variable = reporter_.variable_at(p);
      reporter_.suspect(std::move(d));
    }
    if (request.uniform) return;
  }
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

// cp.async: copies from global to shared memory in the background (PTX ISA, "cp.async").
//
// A copy may take place any time between its issue and its thread's wait. Here the destination becomes poison at the issue, and the
// data are read and written at the wait, the latest moment that PTX allows: whoever looks too early sees NaN, whoever overwrites
// the source too early shows in the result. racecheck finds both without luck, see happens_before.h.
#include <algorithm>
#include <bit>
#include <cstring>

#include "common/interpreter/block_parts.h"

namespace interpreter {

// -------------------------------------------------------------------------------------------------- what a kernel calls
void cp_async(void* shared, const void* global, int size, int source_bytes) {
  const Entered in;
  in.block.cp_async(in.fiber, shared, global, size, source_bytes, true, to_pc(__builtin_return_address(0)));
}
void cp_async(void* shared, const void* global, int size) {
  const Entered in;
  in.block.cp_async(in.fiber, shared, global, size, size, false, to_pc(__builtin_return_address(0)));
}
void cp_async_if(bool exists, void* shared, const void* global, int size) {
  const Entered in;
  in.block.cp_async(in.fiber, shared, global, size, exists ? size : 0, false, to_pc(__builtin_return_address(0)));
}
void cp_async_commit_group() { ++running_fiber().copy_groups; }
void cp_async_wait_group(int groups) {
  const Entered in;
  in.block.cp_async_wait(in.fiber, static_cast<std::uint64_t>(std::max(groups, 0)));
}
void cp_async_wait_all() {  // "equivalent to cp.async.commit_group; cp.async.wait_group 0"
  const Entered in;
  ++in.fiber.copy_groups;
  in.block.cp_async_wait(in.fiber, 0);
}

// --------------------------------------------------------------------------------------------------------------- issue
void Block::require_copyable(Fiber& fiber, const void* to, const void* from, unsigned size, int source_bytes, Pc pc) {
  const std::string copy = "cp.async of " + std::to_string(size) + " bytes ";
  const auto refuse = [&](const std::string& what, const char* expected, const void* p) {
    fail(Check::kMemcheck, copy + what, expected, &fiber, user_location(pc), variable_at(p));
  };
  const auto to_address = reinterpret_cast<std::uintptr_t>(to), from_address = reinterpret_cast<std::uintptr_t>(from);
  if (!in_shared(to_address)) refuse("to " + describe(to), "the destination is shared memory", to);
  const std::size_t offset = to_address - reinterpret_cast<std::uintptr_t>(arena_);
  if (offset < kArenaBytes && offset + size > dynamic_bytes_)
    refuse("to " + describe(to) + ", out of bounds", "copies stay inside allocations and variables", to);
  if (to_address % size)
    refuse("to " + describe(to) + ", misaligned", "both addresses of a copy of n bytes are multiples of n", to);
  if (from_address % size)
    refuse("from " + describe(from) + ", misaligned", "both addresses of a copy of n bytes are multiples of n", from);
  if (source_bytes < 0 || source_bytes > static_cast<int>(size))
    refuse("with source_bytes " + std::to_string(source_bytes), "source_bytes lies between 0 and the size of the copy", from);
  if (source_bytes == 0) return;  // the address may be any
  const bool global = from_address - global_begin_ < GlobalMemory::kBytes;
  if (!global && !inside(from, variables()))
    refuse("from " + describe(from) + ", which is not global memory", "the source is global memory", from);
  if (global && !global_.valid(from_address - global_begin_, static_cast<unsigned>(source_bytes)))
    refuse("from " + describe(from) + ", of which it reads " + std::to_string(source_bytes) + " bytes: out of bounds",
           "copies stay inside allocations; source_bytes says how many bytes there are", from);
}

void Block::cp_async(Fiber& fiber, void* to, const void* from, int size, int source_bytes, bool may_fill, Pc pc) {
  if (fiber.bad_index) report_bad_index(fiber, to);
  const auto bytes = static_cast<unsigned>(size);
  const auto to_address = reinterpret_cast<std::uintptr_t>(to);
  if (launch_->options.memcheck) require_copyable(fiber, to, from, bytes, source_bytes, pc);
  if (!in_shared(to_address)) return;  // memcheck is off: there is nowhere to copy to
  if (!arena_shadow_->contains(to_address)) {
    // touch_static() takes a return address only to report where it was called.
    const void* const called_from = reinterpret_cast<const void*>(pc + image_bias);
    if (!touch_static(fiber, to_address, bytes, Op::kStore, called_from)) return;
  }
  if (free_copies_.empty()) free_copies_.push_back(&copies_.emplace_back());
  AsyncCopy& copy = *free_copies_.back();
  free_copies_.pop_back();
  copy = {to_address,
          reinterpret_cast<std::uintptr_t>(from),
          bytes,
          static_cast<unsigned>(std::clamp(source_bytes, 0, size)),
          may_fill,
          pc,
          fiber.copy_groups,
          0};
  fiber.copies.push_back(&copy);
  std::memset(to, 0xff, bytes);
  if (log_.append(fiber.lane, reinterpret_cast<std::uintptr_t>(&copy), bytes, Op::kCopy, false, false, pc,
                  *std::exchange(fiber.path, fiber.path->restart)))
    log_is_full(fiber, pc);
}

namespace {

// Changes when anybody writes the bytes, and only then: a word may meanwhile get cells for its bytes, because somebody read a part
// of it, so a word's cell counts as those of its bytes.
std::uint64_t version_of_bytes(ShadowedRange& range, std::uintptr_t address, unsigned size) {
  std::uint64_t version = 0;
  for (std::uintptr_t at = address, end = address + size; at < end;) {
    const std::uintptr_t word_end = std::min(end, (at | 3) + 1);
    if (!range.word(at).split)
      version += (word_end - at) * version_of(range, at, 1);
    else
      for (std::uintptr_t byte = at; byte < word_end; ++byte) version += version_of(range, byte, 1);
    at = word_end;
  }
  return version;
}

}  // namespace

// The copies that the lanes of a warp issue with one instruction.
void Block::on_copies(unsigned w, const Request& request) {
  const Options& options = launch_->options;
  std::uint64_t from[32], to[32];
  std::uint32_t readers = 0;
  unsigned reading = 0, bytes_read = 0, i = 0;
  bool may_fill = false;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    const AsyncCopy& copy = *reinterpret_cast<const AsyncCopy*>(request.addresses[i]);
    to[i] = copy.to;
    may_fill = copy.may_fill;
    if (!copy.source_bytes) continue;
    readers |= rest & -rest;
    from[reading++] = copy.from;
    bytes_read += copy.source_bytes;
  }
  Request sources = request, destinations = request;
  sources.op = Op::kLoad, sources.lanes = readers, sources.count = reading, sources.addresses = from;
  sources.uniform = sources.contiguous = false;
  destinations.op = Op::kStore, destinations.shared = true, destinations.addresses = to;
  destinations.uniform = destinations.contiguous = false;
  if (options.count) {
    std::uint64_t sectors[64];
    unsigned sector_count = 0;
    counters.count_copy(sources, destinations, may_fill, bytes_read, sectors, &sector_count);
    if (options.l2_model) trace(sources, sectors, sector_count, request.size < 16);
  }

  GlobalShadow& global = global_shadow();
  i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    AsyncCopy& copy = *reinterpret_cast<AsyncCopy*>(request.addresses[i]);
    if (options.initcheck) {
      if (copy.source_bytes) {
        Request source = sources;
        source.lanes = rest & -rest, source.count = 1, source.addresses = &copy.from, source.size = copy.source_bytes;
        check_initialised(w, source);
      }
      const bool dynamic = arena_shadow_->contains(copy.to);
      (dynamic ? arena_initialised_ : tls_initialised_)
          .clear(copy.to - reinterpret_cast<std::uintptr_t>(dynamic ? arena_ : tls_begin_), copy.size);
    }
    if (!options.racecheck) continue;
    if (copy.source_bytes) {
      const WarpAccess access{w, request.pc, copy.source_bytes, false, false};
      ShadowedRange& range = global.range_of(copy.from);
      std::unique_lock lock(global.lock_of(copy.from));
      const Race race = record_access(range, clock_, access, copy.from, rest & -rest);
      copy.source_version = version_of_bytes(range, copy.from, copy.source_bytes);
      lock.unlock();
      if (race.earlier.thread) report_race(race, w, access);
    }
    const WarpAccess access{w, request.pc, copy.size, true, false};
    const Race race = begin_copy(shadow_of_shared(copy.to), clock_, access, copy.to, static_cast<unsigned>(std::countr_zero(rest)));
    if (race.earlier.thread) report_race(race, w, access);
  }
}

// ---------------------------------------------------------------------------------------------------------------- wait
void Block::cp_async_wait(Fiber& fiber, std::uint64_t groups_under_way) {
  progress_.fetch_add(1, std::memory_order_relaxed);
  if (fiber.copy_groups <= groups_under_way) return;
  const std::uint64_t first_under_way = fiber.copy_groups - groups_under_way;
  if (fiber.copies.empty() || fiber.copies.front()->group >= first_under_way) return;
  rendezvous(fiber);  // what the thread did before belongs to the time before
  std::size_t ended = 0;
  for (; ended < fiber.copies.size() && fiber.copies[ended]->group < first_under_way; ++ended) {
    end_copy(fiber, *fiber.copies[ended]);
    free_copies_.push_back(fiber.copies[ended]);
  }
  fiber.copies.erase(fiber.copies.begin(), fiber.copies.begin() + static_cast<std::ptrdiff_t>(ended));
}

void Block::end_copy(Fiber& fiber, const AsyncCopy& copy) {
  if (launch_->options.racecheck) {
    if (copy.source_bytes) {
      GlobalShadow& global = global_shadow();
      ShadowedRange& range = global.range_of(copy.from);
      std::unique_lock lock(global.lock_of(copy.from));
      if (version_of_bytes(range, copy.from, copy.source_bytes) != copy.source_version) {
        const Stamp write = last_write(range, clock_, copy.from, copy.source_bytes);
        lock.unlock();
        const void* p = reinterpret_cast<const void*>(copy.from);
        std::string what = "race on " + describe(p) + ": the source of a cp.async, written while the copy was under way";
        if (write.thread)
          what += ", by thread " + to_text(unflatten(thread_of(write.thread), launch_->launch.block)) + " at " +
                  at(user_location(write.pc & ~kPcFlags)) + ", before this thread waited for it";
        fail(Check::kRacecheck, what, "the source of a cp.async stays as it is until the thread has waited for the copy", &fiber,
             user_location(copy.pc), variable_at(p));
      }
      record_access(range, clock_, {fiber.warp, copy.pc, copy.source_bytes, false, false}, copy.from, 1u << fiber.lane);
    }
    interpreter::end_copy(shadow_of_shared(copy.to), clock_, fiber.linear, copy.pc, copy.to, copy.size);
  }
  if (launch_->options.initcheck) {
    const bool dynamic = arena_shadow_->contains(copy.to);
    (dynamic ? arena_initialised_ : tls_initialised_)
        .set(copy.to - reinterpret_cast<std::uintptr_t>(dynamic ? arena_ : tls_begin_), copy.size);
  }
  char* const to = reinterpret_cast<char*>(copy.to);
  std::memcpy(to, reinterpret_cast<const void*>(copy.from), copy.source_bytes);
  std::memset(to + copy.source_bytes, 0, copy.size - copy.source_bytes);
  changes_.fetch_add(1, std::memory_order_relaxed);
}

void Block::forget_copies() {
  free_copies_.clear();
  for (AsyncCopy& copy : copies_) free_copies_.push_back(&copy);
}

}  // namespace interpreter

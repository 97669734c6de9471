// What racecheck, initcheck and memcheck do with the accesses of a block's threads.
#include <bit>
#include <cstring>

#include "common/interpreter/block.h"
#include "common/interpreter/block_parts.h"

namespace interpreter {

GlobalShadow& global_shadow() {
  static GlobalShadow& shadow = *new GlobalShadow;
  return shadow;
}

bool Block::in_shared(std::uintptr_t address) const {
  return address - reinterpret_cast<std::uintptr_t>(arena_) < kArenaBytes ||
         address - reinterpret_cast<std::uintptr_t>(tls_begin_) < tls_bytes_;
}

void Block::drain(unsigned w, std::uint32_t open) {
  log_.drain(*flow_, open, [&](const Request& request) { on_request(w, request); });
}

void Block::on_request(unsigned w, const Request& request) {
  if (request.op == Op::kCopy) return on_copies(w, request);
  const Options& options = launch_->options;
  std::uint64_t sectors[64];
  unsigned sector_count = 0;
  if (options.count) counters.count(request, sectors, &sector_count);
  if (options.initcheck) check_initialised(w, request);
  if (options.racecheck) check_races(w, request);
  if (options.l2_model && options.count && !request.shared) trace(request, sectors, sector_count, true);
}

void Block::trace(const Request& request, const std::uint64_t* sectors, unsigned count, bool through_l1) {
  for (unsigned i = 0; i < count; ++i) {
    // Counted from the memory's begin, which the system puts anywhere: so that the model gives the same each time.
    const std::uint64_t sector = (sectors[i] - global_begin_ / 32) & ~kWriteBit;
    if (writes(request.op))
      l2_trace.push_back(sector | kWriteBit);
    else if (!through_l1 || !l1_->hit(sector))
      l2_trace.push_back(sector);
  }
}

void Block::check_initialised(unsigned w, const Request& request) {
  const bool overwrites = request.op == Op::kStore;  // atomics read what they change
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
        initialised = global_.granule_initialised(offset) || global_.initialised(offset, request.size);
    } else {
      const bool dynamic = address - reinterpret_cast<std::uintptr_t>(arena_) < kArenaBytes;
      ByteFlags& flags = dynamic ? arena_initialised_ : tls_initialised_;
      const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(dynamic ? arena_ : tls_begin_);
      if (overwrites)
        flags.set(offset, request.size);
      else
        initialised = flags.all(offset, request.size);
    }
    if (!initialised && !uninitialised_) {
      const Fiber& fiber = fibers_[w * 32 + static_cast<unsigned>(std::countr_zero(rest))];
      const void* p = reinterpret_cast<const void*>(address);
      uninitialised_ =
          diagnose(Check::kInitcheck, "read of " + std::to_string(request.size) + " uninitialised bytes of " + describe(p),
                   "memory is written before it is read", &fiber, user_location(request.pc), *this);
      uninitialised_->variable = variable_at(p);
    }
    if (request.uniform) return;
  }
}

void Block::check_races(unsigned w, const Request& request) {
  const WarpAccess access{w, request.pc, request.size, writes(request.op), request.strong};
  GlobalShadow& global = global_shadow();
  std::unique_lock<std::mutex> lock;
  unsigned i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    const std::uintptr_t address = request.addresses[i];
    // One address for all lanes (a broadcast) is one access of them all.
    const std::uint32_t lanes = request.uniform ? request.lanes : rest & -rest;
    Race race;
    if (request.shared) {
      race = record_access(shadow_of_shared(address), clock_, access, address, lanes);
    } else {
      ShadowedRange& range = global.range_of(address);
      if (!access.write && read_is_no_news(range, clock_, address, access.size)) {
        if (request.uniform) return;
        continue;
      }
      std::mutex& mutex = global.lock_of(address);
      if (lock.mutex() != &mutex) {
        if (lock) lock.unlock();
        lock = std::unique_lock(mutex);
      }
      race = record_access(range, clock_, access, address, lanes);
    }
    if (race.earlier.thread) {
      if (lock) lock.unlock();
      report_race(race, w, access.write, access.atomic, request.pc);
    }
    if (request.uniform) return;
  }
}

void Block::report_race(const Race& race, unsigned w, bool writes, bool atomic, Pc pc) {
  const unsigned thread = w * 32 + race.lane, other = thread_of(race.earlier.thread);
  const std::uint64_t other_block = block_of(race.earlier.thread) & ((1ull << 40) - 1);
  const bool same_block = block_of(race.earlier.thread) == clock_.block();
  const void* p = reinterpret_cast<const void*>(race.address);
  const auto verb = [&](bool wrote, bool atomic) { return atomic ? "accessed atomically" : wrote ? "written" : "read"; };
  const std::string there = at(user_location(race.earlier.pc & ~kAtomicPc));
  if (race.copying)
    fail(Check::kRacecheck,
         describe(p) + " " + verb(writes, atomic) + " before its cp.async was waited for: " +
             (other == thread ? "this thread" : "thread " + to_text(unflatten(other, launch_->launch.block))) +
             " issued the copy at " + there + ", and its wait has not come or is for older groups only",
         "cp.async.wait_group or wait_all by the thread that issued the copy, with its group committed, then a barrier for the "
         "others",
         &fibers_[thread], user_location(pc), variable_at(p));
  std::string what = "race on " + describe(p) + ": " + verb(race.earlier_wrote, race.earlier.pc & kAtomicPc) + " by thread " +
                     to_text(unflatten(other, launch_->launch.block));
  if (!same_block) what += " of block " + to_text(unflatten(other_block, launch_->launch.grid));
  what += " at " + there + ", then " + verb(writes, atomic) + " by this thread, with no order between them";
  fail(Check::kRacecheck, what,
       !same_block                 ? "a fence and an atomic on both sides, or separate launches, between the two"
       : other / 32 == thread / 32 ? "__syncwarp() or __syncthreads() between the two"
                                   : "__syncthreads() between the two",
       &fibers_[thread], user_location(pc), variable_at(p));
}

// A __shared__ variable. @return whether the access counts as one of shared memory.
bool Block::touch_static(Fiber& fiber, std::uintptr_t address, unsigned size, Op op, const void* return_address) {
  const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(tls_begin_);
  const unsigned index = static_variable_at_[offset];
  if (index == kGuard) return false;
  if (index == 0 || offset + size > static_variables_[index - 1].end) {
    if (launch_->options.memcheck) bad_access(fiber, reinterpret_cast<const void*>(address), size, op, return_address);
    return false;
  }
  StaticVariable& variable = static_variables_[index - 1];
  if (variable.touched_by == block_serial_) return true;
  // The first access of this block: the variable begins to exist.
  variable.touched_by = block_serial_;
  const SharedVariable& named = shared_variables()[index - 1];
  std::memset(const_cast<char*>(tls_begin_) + named.offset, 0xff, named.bytes);
  tls_initialised_.clear(named.offset, named.bytes);
  if (launch_->options.racecheck)
    for (std::size_t i = 0; i < named.bytes; i += 4)
      tls_shadow_->word(reinterpret_cast<std::uintptr_t>(tls_begin_) + named.offset + i) = {};
  static_shared_bytes += named.bytes;
  if (static_shared_bytes > kMaxStaticShared || static_shared_bytes + dynamic_bytes_ > launch_->gpu.shared_per_block)
    fail(Check::kLaunch,
         std::to_string(static_shared_bytes) + " bytes of __shared__ variables and " + std::to_string(dynamic_bytes_) +
             " of dynamic shared memory",
         "at most " + std::to_string(kMaxStaticShared) + " bytes in variables, and " +
             std::to_string(launch_->gpu.shared_per_block) + " together on " + std::string(launch_->gpu.title),
         &fiber, user_location(to_pc(return_address)), named.name);
  return true;
}

// Neither device memory nor shared memory: local memory, arguments, constants, __device__ variables - or nothing a kernel may
// touch.
void Block::observe_elsewhere(Fiber& fiber, const void* p, unsigned size, Op op, const void* return_address) {
  if (static_cast<std::size_t>(static_cast<const char*>(p) - stacks_) < stack_count_ * stack_bytes_) return;
  const char* closure = static_cast<const char*>(launch_->launch.closure);
  if (static_cast<std::size_t>(static_cast<const char*>(p) - closure) < launch_->launch.closure_bytes && !writes(op)) return;
  if (inside(p, constant_memory())) {
    if (writes(op) && launch_->options.memcheck) bad_access(fiber, p, size, op, return_address);
    return;
  }
  if (inside(p, image()) && !inside(p, variables()) && !writes(op)) return;  // the compiler's own constants
  if (inside(p, variables())) {                                              // a __device__ variable: global memory
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
    if (address & (size - 1) && launch_->options.memcheck) misaligned(fiber, p, size, op, return_address);
    const Pc pc = to_pc(return_address);
    if (log_.append(fiber.lane, address, size, op, false, op == Op::kAtomic, pc, *std::exchange(fiber.path, fiber.path->restart)))
      log_is_full(fiber, pc);
    return;
  }
  if (launch_->options.memcheck) bad_access(fiber, p, size, op, return_address);
}

void Block::observe_range(Fiber& fiber, const void* p, std::size_t bytes, Op op, const void* return_address) {
  // In the widest pieces that fit everywhere, as nvcc's copies would be: of 12 bytes, three times 4, whatever the address.
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  unsigned size = 16;
  while (bytes % size || address % size) size /= 2;
  for (std::size_t done = 0; done < bytes; done += size)
    observe(fiber, static_cast<const char*>(p) + done, size, op, false, return_address);
}

}  // namespace interpreter

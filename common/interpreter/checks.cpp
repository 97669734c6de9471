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

void forget_accesses(const void* begin, std::size_t bytes) {
  global_shadow().memory.give_back(reinterpret_cast<std::uintptr_t>(begin), bytes);
}

bool Block::in_shared(std::uintptr_t address) const {
  return address - reinterpret_cast<std::uintptr_t>(arena_) < kArenaBytes ||
         address - reinterpret_cast<std::uintptr_t>(tls_begin_) < tls_bytes_;
}

void Block::drain(unsigned w, std::uint32_t open, std::uint32_t held) {
  log_.drain(*flow_, open, held, [&](const Request& request) { on_request(w, request); });
}

void Block::on_request(unsigned w, const Request& request) {
  if (request.op == Op::kCopy) return on_copies(w, request);
  const Options& options = launch_->options;
  if (request.op == Op::kStore) changes_.fetch_add(1, std::memory_order_relaxed);
  if (Warp& warp = warps_[w]; !request.same_block && (warp.looking & request.lanes))
    end_looks(warp, w, warp.looking & request.lanes);
  std::uint64_t sectors[64];
  unsigned sector_count = 0;
  if (options.count) counters.count(request, sectors, &sector_count);
  if (options.initcheck) check_initialised(w, request);
  if (options.racecheck) check_races(w, request);
  if (options.l2_model && options.count && !request.shared) trace(request, sectors, sector_count, true);
}

// The place of a sector as the L2 model sees it.
std::uint64_t Block::packed(std::uint64_t sector) {
  for (const PackedSectors& p : packed_)
    if (sector - p.first <= p.last - p.first) return sector - p.first + p.packed_at;
  const GlobalMemory::Allocation a = global_.nearest(reinterpret_cast<const void*>(sector * 32));
  const std::uint64_t first = reinterpret_cast<std::uintptr_t>(a.begin) / 32, last = first + (a.bytes + 31) / 32 - 1;
  // Not of an allocation: a __device__ variable.
  if (sector - first > last - first) return (sector - global_begin_ / 32) & ~kWriteBit;
  packed_.push_back({first, last, a.packed_at / 32});
  return sector - first + a.packed_at / 32;
}

void Block::trace(const Request& request, const std::uint64_t* sectors, unsigned count, bool through_l1) {
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t sector = packed(sectors[i]);
    if (writes(request.op))
      l2_trace.push_back(sector | kWriteBit);
    else if (!through_l1 || !l1_->hit(sector))
      l2_trace.push_back(sector);
  }
}

void Block::check_initialised(unsigned w, const Request& request) {
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

namespace {

// Which of the lanes stored first. Lanes of a warp run in any order.
void find_earliest(WarpAccess& access, const Request& request, std::uint32_t lanes) {
  access.earliest = 0;
  for (std::uint32_t rest = lanes; rest; rest &= rest - 1) {
    const std::uint32_t time = request.stores[std::countr_zero(rest)].time;
    if (access.earliest && static_cast<std::int32_t>(time - access.store_time) > 0) continue;
    access.earliest = rest & -rest, access.store_time = time;
  }
}

}  // namespace

// A read of bytes that no hook has told of a write to. Compilers make some stores that no hook tells of: of a struct that a call
// returns, of what a library writes through a pointer. They show in the memory: bytes that do not hold their poison any more were
// written, and so were others of the same line, for such a store may write poison's bits too. Asked at the access and not later,
// when what the thread itself stores next would hide that it read too early.
void Block::find_unseen_writes(std::uintptr_t address, unsigned size) {
  if (!launch_->options.initcheck) return;
  constexpr std::uintptr_t kLine = 64;
  std::uintptr_t first = address & ~(kLine - 1), last = first + kLine;  // the line, as far as it belongs to the same memory
  char poison = '\xff';
  ByteFlags* flags = nullptr;
  std::uintptr_t flags_begin = 0;
  if (const std::uintptr_t offset = address - global_begin_; offset < GlobalMemory::kBytes) {
    poison = global_.poison(offset);
  } else if (address - reinterpret_cast<std::uintptr_t>(arena_) < kArenaBytes) {
    flags = &arena_initialised_, flags_begin = reinterpret_cast<std::uintptr_t>(arena_);
    last = std::min(last, flags_begin + dynamic_bytes_);
  } else {
    flags = &tls_initialised_, flags_begin = reinterpret_cast<std::uintptr_t>(tls_begin_);
    const SharedVariable& variable = shared_variables()[static_variable_at_[address - flags_begin] - 1u];
    first = std::max(first, flags_begin + variable.offset);
    last = std::min(last, flags_begin + variable.offset + variable.bytes);
  }
  const auto written_unseen = [&](std::uintptr_t byte) {
    if (*reinterpret_cast<const char*>(byte) == poison) return false;
    return flags ? !flags->all(byte - flags_begin, 1)
                 : global_.valid(byte - global_begin_, 1) && !global_.initialised(byte - global_begin_, 1);
  };
  bool found = false;
  for (std::uintptr_t byte = address; byte < address + size; ++byte) found |= written_unseen(byte);
  // Stores that still wait in the log are no unseen ones.
  for (std::uintptr_t byte = first; byte < last && !found; ++byte) found = written_unseen(byte) && !log_.stores_to(byte);
  if (!found) return;
  if (flags)
    flags->set(address - flags_begin, size);
  else
    global_.mark_initialised(address - global_begin_, size);
}

void Block::check_races(unsigned w, const Request& request) {
  WarpAccess access{w, request.pc, request.size, writes(request.op), request.strong, is_block_scope(request.op)};
  GlobalShadow& global = global_shadow();
  std::unique_lock<std::mutex> lock;
  const bool plain_store = access.write && !access.atomic;
  if (plain_store) access.silent = silent_lanes(request);
  const bool is_volatile = request.strong && (request.op == Op::kLoad || request.op == Op::kStore);
  const auto check_volatile = [&](ShadowedRange& range, std::uint32_t lanes, std::uintptr_t address) {
    for (std::uint32_t rest = lanes; rest; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      if (request.op == Op::kLoad) {
        note_look(range, w, lane, request, address);
      } else if (std::optional<Diagnosis> lost = check_update(range, w, lane, request, address)) {
        if (lock) lock.unlock();
        report(std::move(*lost));
        leave(Stop::kFailed);
      }
    }
  };
  const std::uint32_t comparing = comparing_ && request.op == Op::kLoad && !request.strong ? comparing_lanes(w, request) : 0;
  unsigned i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    const std::uintptr_t address = request.addresses[i];
    // One address for all lanes (a broadcast) is one access of them all.
    const bool together = request.uniform && !comparing;
    const std::uint32_t lanes = together ? request.lanes : rest & -rest;
    const unsigned lane = static_cast<unsigned>(std::countr_zero(lanes));
    access.atomic = request.strong || (comparing & lanes);
    if (plain_store) find_earliest(access, request, lanes);
    Race race;
    if (request.shared) {
      if ((comparing & lanes) && follows_unordered_atomic(shadow_of_shared(address), clock_, w * 32 + lane, address))
        note_look_before_cas(access, address);
      if (is_volatile) check_volatile(shadow_of_shared(address), lanes, address);
      race = record_access(shadow_of_shared(address), clock_, access, address, lanes);
    } else {
      ShadowedRange& range = global.range_of(address);
      if (!access.write && read_is_no_news(range, clock_, address, access.size)) {
        if (together) return;
        continue;
      }
      std::mutex& mutex = global.lock_of(address);
      if (lock.mutex() != &mutex) {
        if (lock) lock.unlock();
        lock = std::unique_lock(mutex);
      }
      if (is_volatile) check_volatile(range, lanes, address);
      if ((comparing & lanes) && follows_unordered_atomic(range, clock_, w * 32 + lane, address))
        note_look_before_cas(access, address);
      race = record_access(range, clock_, access, address, lanes);
    }
    if (race.earlier.thread) {
      // A flag gets one value from everybody. Blocks that store equal results, others in other places, do the same work twice.
      const bool other_block = block_of(race.earlier.thread) != clock_.block();
      if (!race.same_value ||
          (other_block && !launch_->is_one_value(access.pc, content(reinterpret_cast<const void*>(address), access.size)))) {
        if (lock) lock.unlock();
        report_race(race, w, access);
      }
      note_same_value(race, access);
    }
    if (together) return;
  }
}

// The programming guide makes atomics of other types of atomicCAS, behind a plain look at the old value. If that look gives too old
// a value, or half of one, atomicCAS finds out: it counts as an atomic read.
std::uint32_t Block::comparing_lanes(unsigned w, const Request& request) const {
  std::uint32_t lanes = 0;
  unsigned i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    const void* const p = reinterpret_cast<const void*>(request.addresses[i]);
    if (fibers_[w * 32 + static_cast<unsigned>(std::countr_zero(rest))].compares_at == p) lanes |= rest & -rest;
  }
  return lanes;
}

void Block::note_look_before_cas(const WarpAccess& access, std::uintptr_t address) {
  if (!noted_.insert({access.pc, 0}).second) return;
  const void* const p = reinterpret_cast<const void*>(address);
  launch_->note(at(user_location(access.pc)) + ": " + (variable_at(p).empty() ? "memory" : variable_at(p)) +
                " is read plainly while other threads change it by atomics. The programming guide's own functions on top of "
                "atomicCAS begin like that, and atomicCAS finds out when the value was old; for the memory model it is a race, and "
                "volatile would make it none");
}

// Lanes whose store left the memory as it was.
std::uint32_t Block::silent_lanes(const Request& request) const {
  std::uint32_t silent = 0;
  unsigned i = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++i) {
    const std::uint32_t before = request.stores[std::countr_zero(rest)].before;
    if (before == content(reinterpret_cast<const void*>(request.addresses[i]), request.size)) silent |= rest & -rest;
  }
  return silent;
}

void Block::note_same_value(const Race& race, const WarpAccess& access) {
  if (!noted_.insert({access.pc, race.earlier.pc & ~kPcFlags}).second) return;
  const void* const p = reinterpret_cast<const void*>(race.address);
  launch_->note(at(user_location(access.pc)) + ": several threads store the same value in " +
                (variable_at(p).empty() ? "one place" : variable_at(p)) +
                " with no order between them. One of the stores takes place, whichever, says the programming guide; for the memory "
                "model it is a race, and volatile or an atomic would make it none");
}

void Block::report_race(const Race& race, unsigned w, const WarpAccess& access) {
  const unsigned thread = w * 32 + race.lane, other = thread_of(race.earlier.thread);
  const std::uint64_t other_block = block_of(race.earlier.thread) & ((1ull << 40) - 1);
  const bool same_block = block_of(race.earlier.thread) == clock_.block();
  const void* p = reinterpret_cast<const void*>(race.address);
  const auto verb = [&](bool wrote, std::uint32_t marked_pc) {
    return marked_pc & kBlockScopePc ? "accessed by an atomic of its block"
           : marked_pc & kAtomicPc   ? "accessed atomically"
           : wrote                   ? "written"
                                     : "read";
  };
  const std::string there = at(user_location(race.earlier.pc & ~kPcFlags));
  if (race.copying)
    fail(Check::kRacecheck,
         describe(p) + " " + verb(access.write, access.marked_pc()) + " before its cp.async was waited for: " +
             (other == thread ? "this thread" : "thread " + to_text(unflatten(other, launch_->launch.block))) +
             " issued the copy at " + there + ", and its wait has not come or is for older groups only",
         "cp.async.wait_group or wait_all by the thread that issued the copy, with its group committed, then a barrier for the "
         "others",
         &fibers_[thread], user_location(access.pc), variable_at(p));
  std::string what = "race on " + describe(p) + ": " + verb(race.earlier_wrote, race.earlier.pc) + " by thread " +
                     to_text(unflatten(other, launch_->launch.block));
  if (!same_block) what += " of block " + to_text(unflatten(other_block, launch_->launch.grid));
  what += " at " + there + ", then " + verb(access.write, access.marked_pc()) + " by this thread, with no order between them";
  const bool both_write = access.write && race.earlier_wrote, both_atomic = access.atomic && (race.earlier.pc & kAtomicPc);
  fail(Check::kRacecheck, what,
       both_atomic ? "an atomic for the whole GPU: one whose name ends in _block is atomic for the threads of its block alone"
       : !same_block
           ? (both_write ? "an atomic, or a place for each block and another launch that puts the parts together"
                         : "another launch between the two, or a fence and an atomic on both sides: no barrier orders two blocks")
       : other / 32 == thread / 32 ? "__syncwarp() or __syncthreads() between the two"
                                   : "__syncthreads() between the two",
       &fibers_[thread], user_location(access.pc), variable_at(p));
}

// What this launch has written before may or may not be in the read-only cache. Whoever writes after the load is not looked for.
void Block::read_only_load(Fiber& fiber, const void* p, std::size_t bytes, const void* return_address) {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  if (!launch_->options.racecheck || address - global_begin_ >= GlobalMemory::kBytes) return;
  GlobalShadow& global = global_shadow();
  if (read_is_no_news(global.memory, clock_, address, static_cast<unsigned>(bytes))) return;
  std::unique_lock lock(global.lock_of(address));
  const Stamp write = last_write(global.memory, clock_, address, static_cast<unsigned>(bytes));
  lock.unlock();
  if (!write.thread) return;
  const std::string what = "__ldg of " + describe(p) + ": written in this launch by thread " +
                           to_text(unflatten(thread_of(write.thread), launch_->launch.block)) + " of block " +
                           to_text(unflatten(block_of(write.thread) & ((1ull << 40) - 1), launch_->launch.grid)) + " at " +
                           at(user_location(write.pc & ~kAtomicPc)) + ", read through a cache that may hold older bytes";
  fail(Check::kRacecheck, what, "__ldg is for data that nobody writes while the kernel runs; a plain load sees them", &fiber,
       user_location(to_pc(return_address)), variable_at(p));
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
  touched_.push_back(index - 1);
  const SharedVariable& named = shared_variables()[index - 1];
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

// Whether the bytes belong to one variable of the program, none of which are __shared__.
bool Block::in_a_variable(const void* p, unsigned size) {
  const char* const begin = static_cast<const char*>(p);
  const auto holds = [&](const Variable* v) { return v && begin >= v->begin && begin + size <= v->begin + v->bytes; };
  if (!holds(last_variable_)) last_variable_ = variable_near(p);
  return holds(last_variable_);
}

// Neither device memory nor shared memory: local memory, arguments, constants, __device__ variables - or nothing a kernel may
// touch.
void Block::observe_elsewhere(Fiber& fiber, const void* p, unsigned size, Op op, bool strong, const void* return_address) {
  if (on_a_stack(p)) {
    if (stack_of(fiber, p) || !launch_->options.memcheck) return;
    const std::size_t owner = static_cast<std::size_t>(static_cast<const char*>(p) - stacks_) / stack_bytes_;
    fail(Check::kMemcheck,
         std::string(writes(op) ? "write to" : "read of") + " a local variable of thread " + to_text(fibers_[owner].thread) +
             " through a pointer",
         "local variables are their own thread's: on a GPU the same address is another variable for each thread; share through "
         "__shared__ or device memory",
         &fiber, user_location(to_pc(return_address)));
  }
  const char* closure = static_cast<const char*>(launch_->launch.closure);
  if (static_cast<std::size_t>(static_cast<const char*>(p) - closure) < launch_->launch.closure_bytes && !writes(op)) return;
  if (inside(p, constant_memory())) {
    if (launch_->options.memcheck && (writes(op) || !in_a_variable(p, size))) bad_access(fiber, p, size, op, return_address);
    return;
  }
  if (inside(p, image()) && !inside(p, variables()) && !writes(op)) return;  // the compiler's own constants
  if (inside(p, variables())) {                                              // a __device__ variable: global memory
    if (launch_->options.memcheck && (!in_a_variable(p, size) || last_variable_->of_host))
      bad_access(fiber, p, size, op, return_address);
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
    if (address & (size - 1) && launch_->options.memcheck) misaligned(fiber, p, size, op, return_address);
    const Pc pc = to_pc(return_address);
    if (log_.append(fiber.lane, address, size, op, false, strong, pc, *std::exchange(fiber.path, fiber.path->restart),
                    op == Op::kStore ? store_info(p, size, false) : StoreInfo()))
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

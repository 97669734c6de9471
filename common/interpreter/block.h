/// @file
/// One resident thread block: a fiber per CUDA thread, its warps, its shared memory and the checks on what its threads do.
#pragma once

#include <boost/context/detail/fcontext.hpp>

#include <atomic>
#include <csetjmp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/interpreter/access_log.h"
#include "common/interpreter/counters.h"
#include "common/interpreter/gpus.h"
#include "common/interpreter/happens_before.h"
#include "common/interpreter/interpreter.h"
#include "common/interpreter/language.h"
#include "common/interpreter/memory.h"
#include "common/interpreter/trail.h"

namespace interpreter {

class Block;

/// What all blocks of a running launch share.
struct LaunchState {
  /// @param number of the launch, from 1
  LaunchState(const Launch& launch, const Options& options, const Gpu& gpu, std::uint64_t number)
      : launch(launch),
        options(options),
        gpu(gpu),
        number(number),
        threads(launch.block.x * launch.block.y * launch.block.z),
        blocks(std::uint64_t(launch.grid.x) * launch.grid.y * launch.grid.z) {}

  const Launch& launch;
  const Options options;
  const Gpu& gpu;
  const std::uint64_t number;
  const unsigned threads;  ///< per block
  const std::uint64_t blocks;

  /// Records the launch's first error. Other blocks stop at their next look at `failed`.
  void fail(Diagnosis diagnosis);
  std::string kernel_name() const;
  /// Whether the store at `pc` has always been asked for with this content().
  bool is_one_value(Pc pc, std::uint32_t content);
  /// Adds to the launch's notes, once each.
  void note(const std::string& text);

  std::atomic<bool> failed{false};
  std::atomic<bool> arguments_are_to_blame{false};  ///< rather than the kernel that uses them
  std::atomic<std::uint64_t> steps{0};
  std::mutex mutex;
  Diagnosis diagnosis;                     ///< of the first error; guarded by mutex
  std::set<std::string> notes;             ///< guarded by mutex
  std::map<Pc, std::uint32_t> one_values;  ///< of is_one_value(); guarded by mutex
};

/// A cp.async that its thread has not waited for.
struct AsyncCopy {
  std::uintptr_t to, from;
  unsigned size, source_bytes;
  bool may_fill;  ///< the instruction that takes a number of bytes, even if it is all of them; a predicate is none
  Pc pc;
  std::uint64_t group;           ///< of the thread, from 0
  std::uint64_t source_version;  ///< of the bytes that are read, when it was issued
};

/// What a thread gave to its last shuffle and got from it, while there are undefined values about; see shuffles.cpp.
struct LastShuffle {
  unsigned size = 0;
  bool gave_undefined = false, got_undefined = false;
  alignas(16) unsigned char gave[16], got[16];
  Computed computed = nullptr;
  struct Origin {  ///< of the undefined value
    const char* name;
    Site site;
    unsigned lane, source, mask;
  } origin{};
  bool decides(const void* value, unsigned of_size) const;
};

/// A CUDA thread.
struct Fiber {
  boost::context::detail::fcontext_t context = nullptr;
  uint3 thread{};
  unsigned linear = 0, warp = 0, lane = 0;
  enum class State : std::uint8_t { kRunning, kInCollective, kAtBarrier, kExited } state = State::kRunning;
  const char* stack_limit = nullptr;  ///< below it, only the interpreter's own calls may go
  ControlFlow::Path* path = nullptr;  ///< way since the last access to memory
  struct BadIndex {
    std::int64_t index;
    std::string array;  // its type, "float [8][36]"
    Location where;
    int patience = 8;  // so many accesses may come before the one that the index is for
  };
  std::unique_ptr<BadIndex> bad_index;  ///< seen by -fsanitize=bounds, not yet reported
  Site waits_at;                        ///< while in a collective or at a barrier
  Pc waits_at_pc = 0;                   ///< instead of waits_at, where it is not 0
  const char* waits_in = nullptr;       ///< name of the collective
  Pc barrier_pc = 0;                    ///< while at a barrier: the call
  bool predicate = false;               ///< given to __syncthreads_count and its like
  const void* polled = nullptr;         ///< address of the last atomic or volatile read that brought nothing new
  unsigned polls = 0;                   ///< how often in a row
  unsigned looks = 0;                   ///< such reads of any address since it last changed memory
  bool special = false;                 ///< some of what follows needs a look at every access
  bool watched = false;                 ///< its trail is kept
  Trail trail;
  const void* accessed = nullptr;  ///< what it accessed last, while it is watched
  LastShuffle last_shuffle;
  const void* stored = nullptr;             ///< where it is about to store what may be undefined
  Pc polled_at = 0;                         ///< the instruction that does it; 0: unknown
  const void* compares_at = nullptr;        ///< while it waits for its turn in an atomicCAS: where
  std::vector<const void*> volatile_reads;  ///< since the last fence or barrier
  /// A volatile read that a volatile store may follow without a branch between them: see volatile_updates.cpp.
  struct Look {
    std::uintptr_t address;
    Pc pc;
    bool guarded;   ///< the thread has looked before at what is there now
    Stamp written;  ///< by whom, if nothing orders that before the read; else thread is 0
  };
  Look looks_at[4];
  unsigned looks_before_store = 0;  ///< how many of looks_at there are
  bool has_looked = false;          ///< it has used atomics, or looked at volatile memory to decide, since the last barrier
  std::vector<AsyncCopy*> copies;   ///< under way, in the order of their issue
  std::uint64_t copy_groups = 0;    ///< committed so far
};

/// The fiber whose kernel code the OS thread runs; null in host code and in the interpreter itself, which nobody checks.
extern thread_local constinit Fiber* current_fiber;
extern thread_local constinit Block* current_block;
/// How many blocks' threads are watched: usually none, and comparisons need not look further.
extern std::atomic<unsigned> watched_blocks;

/// Runs blocks one after the other on the OS thread that made it. That thread's TLS block holds the __shared__ variables.
class Block {
 public:
  static constexpr std::size_t kMaxThreads = 1024;
  static constexpr std::size_t kArenaBytes = 256 * 1024;  ///< address range of dynamic shared memory; more than any GPU has

  Block();
  ~Block();

  using Yield = void (*)(void* context);

  /// Runs block `index` to its end, or until the launch fails. `yield` is called when all its threads wait and some of them poll
  /// memory that another block may change.
  void run(LaunchState& launch, std::uint64_t index, Yield yield, void* yield_context);

  // ---- called by the kernel, on a fiber ----
  /// A memory access of `fiber`, about to happen. strong: atomic or volatile.
  [[gnu::always_inline]] void observe(Fiber& fiber, const void* p, unsigned size, Op op, bool strong, const void* return_address);
  void observe_special(Fiber& fiber, const void* p, unsigned size, Op op, bool strong, const void* return_address);
  bool undefined_values_about() const { return undefined_values_about_; }
  void follow_shuffle(const char* name, const ShuffleLane* lanes, unsigned mask, unsigned size, Computed computed, Site site);
  void observe_range(Fiber& fiber, const void* p, std::size_t bytes, Op op, const void* return_address);
  void read_only_load(Fiber& fiber, const void* p, std::size_t bytes, const void* return_address);
  void volatile_load(Fiber& fiber, const void* p, Pc pc);
  void volatile_store(Fiber& fiber, const void* p);
  void collective(Fiber& fiber, const char* name, unsigned mask, void* argument, Combine combine, Site site);
  void warp_barrier(Fiber& fiber, unsigned mask, Site site);
  int barrier(Fiber& fiber, Reduction reduction, bool predicate, Site site, Pc pc);
  void fence(Fiber& fiber, bool whole_gpu);
  void atomic(Fiber& fiber, void* address, unsigned size, void* old_value, bool (*update)(void*, const void*), const void* context,
              Scope scope, AtomicKind kind, const void* return_address);
  void cp_async(Fiber& fiber, void* to, const void* from, int size, int source_bytes, bool may_fill, Pc pc);
  void cp_async_wait(Fiber& fiber, std::uint64_t groups_under_way);
  void ldmatrix(Fiber& fiber, std::uint32_t* r, const void* row, int count, bool transposed, const void* return_address);
  void mma(Fiber& fiber, float* d, const std::uint32_t* a, const std::uint32_t* b, bool is_half, Pc pc);
  /// The fiber found nothing new at `address`; after some times others get their turn.
  void poll(Fiber& fiber, const void* address, Pc pc);
  void sleep(Fiber& fiber);
  [[noreturn]] void fail_stack_overflow(Fiber& fiber, Pc pc);
  /// The fiber is about to use `index` with an array of type `array`, which has no such element. The access that fits tells which
  /// variable it is.
  void index_out_of_bounds(Fiber& fiber, std::int64_t index, const std::string& array, Location where);
  /// The fiber is about to access a `type` at `p`, whose address is no multiple of `alignment`.
  void misaligned_type(Fiber& fiber, const void* p, const char* type, unsigned alignment, const void* return_address);
  [[noreturn]] void fail(Check check, std::string what, std::string expected, const Fiber* fiber, Location where,
                         std::string variable = "");

  void* dynamic_shared() const { return arena_; }
  uint3 index() const { return block_index_; }
  const LaunchState& launch() const { return *launch_; }

  // ---- called from `yield` ----
  std::string who_waits_where() const;
  /// Puts a thread that polls, and where, into `diagnosis`.
  void name_a_poller(Diagnosis& diagnosis) const;
  /// Keeps the threads' trails from now on. It makes them slower, so that is done where there is a suspicion.
  void watch();
  void stop_watching();
  bool runs_for_long() const { return watched_since_ > 0; }
  /// Whether each thread waits at a barrier or in a collective, or looks at the same memory again and again.
  bool nobody_moves_on() const;

  // ---- called from signal handlers and the watchdog ----
  /// Whether `p` lies in the guard page below a fiber's stack.
  bool in_guard_page(const void* p) const;
  [[noreturn]] void fail_from_signal(Check check, const char* what, const char* expected, Pc pc);
  void extend_path(Fiber& fiber, Pc pc) { fiber.path = flow_->extend(fiber.path, pc); }

  /// Grows while threads do things that the interpreter sees.
  std::uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }
  /// Grows when threads change memory or pass a barrier: looking alone does not count.
  std::uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }

  CounterTable counters;
  /// 32-byte sectors that missed the L1 model, in order, if Options::l2_model; kBarrierMark between barrier intervals.
  std::vector<std::uint64_t> l2_trace;
  static constexpr std::uint64_t kBarrierMark = ~0ull, kWriteBit = 1ull << 63;
  /// Bytes of __shared__ variables that the last block touched.
  std::size_t static_shared_bytes = 0;

 private:
  struct Collective {
    unsigned mask, arrived;
    const char* name;
    Combine combine;
    Pc pc;  // of an instruction that the whole warp executes; else 0
  };
  struct Warp {
    std::uint32_t existing = 0, live = 0;
    std::uint32_t ready = 0;
    std::uint32_t log_full = 0;  // wait for the other lanes to catch up, so that instructions can be rebuilt
    std::uint32_t at_fence = 0;  // wait for their log to be looked at, because time is about to pass
    std::uint32_t polling = 0;
    std::uint32_t looking = 0;  // have looks_before_store
    unsigned rounds = 0;        // of logs filled without a wait
    std::vector<Collective> collectives;
    void* arguments[32];
  };
  enum class Stop { kFinished, kFailed, kNobodyReady };
  struct L1Model;

  // scheduling
  static void enter(boost::context::detail::transfer_t from);
  void start(std::uint64_t index);
  void resume(boost::context::detail::fcontext_t& save, Fiber& to);
  [[noreturn]] void leave(Stop stop);
  void switch_away(Fiber& fiber);
  Fiber* next_fiber(unsigned warp);
  unsigned pick(std::uint32_t set);
  void settle(unsigned warp);
  void rendezvous(Fiber& fiber);
  void exit(Fiber& fiber);
  void meet(Fiber& fiber, const char* name, unsigned mask, void* argument, Combine combine, Site site, Pc pc);
  void instruction_of_warp(Fiber& fiber, const char* name, void* argument, Combine combine, Pc pc);
  void complete(Warp& warp, std::size_t collective);
  void release_barrier();
  void require_same_call(const Fiber& first, const Fiber& fiber);
  void wait_for_others(Fiber& fiber);
  bool wake_polling();
  void look_at_the_time();

  // cp.async
  void require_copyable(Fiber& fiber, const void* to, const void* from, unsigned size, int source_bytes, Pc pc);
  void on_copies(unsigned warp, const Request& request);
  void end_copy(Fiber& fiber, const AsyncCopy& copy);
  void forget_copies();

  // checks
  void log_is_full(Fiber& fiber, Pc pc);
  void drain(unsigned warp, std::uint32_t open, std::uint32_t held = 0);
  void on_request(unsigned warp, const Request& request);
  void check_initialised(unsigned warp, const Request& request);
  bool on_a_stack(const void* p) const {
    return static_cast<std::size_t>(static_cast<const char*>(p) - stacks_) < stack_count_ * stack_bytes_;
  }
  /// Whether `p`, which lies on some fiber's stack, lies on this one's.
  bool stack_of(const Fiber& fiber, const void* p) const {
    return static_cast<std::size_t>(static_cast<const char*>(p) - stacks_) / stack_bytes_ == fiber.linear;
  }
  bool in_a_variable(const void* p, unsigned size);
  void find_unseen_writes(std::uintptr_t address, unsigned size);
  void report(Diagnosis diagnosis);
  void check_races(unsigned warp, const Request& request);
  [[noreturn]] void report_race(const Race& race, unsigned warp, const WarpAccess& access);
  void note_same_value(const Race& race, const WarpAccess& access);
  void note_look_before_cas(const WarpAccess& access, std::uintptr_t address);
  void end_looks(Warp& warp, unsigned w, std::uint32_t lanes);
  void note_look(ShadowedRange& range, unsigned warp, unsigned lane, const Request& request, std::uintptr_t address);
  std::optional<Diagnosis> check_update(ShadowedRange& range, unsigned warp, unsigned lane, const Request& request,
                                        std::uintptr_t address);
  std::uint32_t silent_lanes(const Request& request) const;
  StoreInfo store_info(const void* p, unsigned size, bool shared) {
    // Blocks on other cores may store to global memory at the same time; their common clock is the processor's.
    return {content(p, size), shared ? ++store_time_ : processor_time()};
  }
  static std::uint32_t processor_time();
  std::uint32_t comparing_lanes(unsigned warp, const Request& request) const;
  bool in_shared(std::uintptr_t address) const;
  ShadowedRange& shadow_of_shared(std::uintptr_t address) {
    return arena_shadow_->contains(address) ? *arena_shadow_ : *tls_shadow_;
  }
  std::uint64_t packed(std::uint64_t sector);
  void trace(const Request& request, const std::uint64_t* sectors, unsigned count, bool through_l1);
  bool touch_static(Fiber& fiber, std::uintptr_t address, unsigned size, Op op, const void* return_address);
  void observe_elsewhere(Fiber& fiber, const void* p, unsigned size, Op op, bool strong, const void* return_address);
  [[noreturn]] void bad_access(Fiber& fiber, const void* p, unsigned size, Op op, const void* return_address);
  [[noreturn]] void misaligned(Fiber& fiber, const void* p, unsigned size, Op op, const void* return_address);
  void report_bad_index(Fiber& fiber, const void* p);
  bool launched_with(const char* begin, std::size_t bytes) const;
  void before_waiting(Fiber& fiber);
  void check_last_store(Fiber& fiber);
  static Location place_of(const Fiber& waiting);
  std::string variable_at(const void* p) const;
  std::string describe(const void* p) const;
  void acquire_volatile_reads(Fiber& fiber);

  LaunchState* launch_ = nullptr;
  Yield yield_ = nullptr;
  void* yield_context_ = nullptr;

  // the block
  uint3 block_index_{};
  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  std::uint32_t ready_warps_ = 0;
  unsigned live_ = 0, at_barrier_ = 0;
  int barrier_result_ = 0;
  Reduction barrier_reduction_ = Reduction::kNone;
  std::uint64_t random_ = 1;
  Fiber* running_ = nullptr;
  Stop stop_ = Stop::kFinished;
  bool polled_ = false;  // some thread polls by an atomic or a volatile read
  bool watching_ = false;
  unsigned comparing_ = 0;  // threads with compares_at
  bool undefined_values_about_ = false;
  // Of the collective that is being carried out.
  unsigned completing_warp_ = 0, completing_mask_ = 0;
  unsigned turns_ = 0;                         // since somebody looked at the time
  double started_at_ = 0, watched_since_ = 0;  // by the OS thread's clock; 0: it has not run for long
  boost::context::detail::fcontext_t scheduler_ = nullptr;
  std::jmp_buf after_signal_;
  Diagnosis signal_diagnosis_;

  // memory
  void drop_stacks();
  char* stacks_ = nullptr;
  std::size_t guarded_ = 0;  // stacks with a guard page
  std::size_t stack_bytes_ = 0, stack_count_ = 0;
  char* arena_ = nullptr;
  std::size_t dynamic_bytes_ = 0;
  GlobalMemory& global_ = GlobalMemory::instance();
  const std::uintptr_t global_begin_ = reinterpret_cast<std::uintptr_t>(global_.base());
  const char* tls_begin_ = nullptr;
  std::size_t tls_bytes_ = 0;
  struct StaticVariable {
    std::uint32_t end = 0;         // offset of its end in the TLS block
    std::uint64_t touched_by = 0;  // block_serial_ of the last block that used it
  };
  std::vector<StaticVariable> static_variables_;
  const Variable* last_variable_ = nullptr;  // that in_a_variable() found
  std::vector<unsigned> touched_;            // indices of those that the block used: the next one shall find poison there
  static constexpr std::uint16_t kGuard = 0xffff;
  std::vector<std::uint16_t> static_variable_at_;  // 1 + index, per TLS byte; 0: none; kGuard: nothing to look at
  std::uint64_t block_serial_ = 0;

  // checks
  AccessLog log_;
  std::uint32_t store_time_ = 0;
  std::map<const void*, ControlFlow> flows_;  // by kernel
  ControlFlow* flow_ = nullptr;
  BlockClock clock_;
  std::unique_ptr<ShadowedRange> arena_shadow_, tls_shadow_;
  ByteFlags arena_initialised_, tls_initialised_;
  // The first read of bytes that nothing has written. If they are written before the next barrier, the report is of a race.
  std::optional<Diagnosis> uninitialised_;
  std::set<std::pair<Pc, Pc>> same_calls_;  // of barriers
  std::set<std::pair<Pc, Pc>> noted_;       // what has been looked at for a note
  std::unique_ptr<L1Model> l1_;
  struct PackedSectors {
    std::uint64_t first, last, packed_at;
  };
  std::vector<PackedSectors> packed_;    // of the allocations that the block has used
  std::deque<AsyncCopy> copies_;         // all that this block has had under way at a time
  std::vector<AsyncCopy*> free_copies_;  // of these
  std::atomic<std::uint64_t> progress_{0}, changes_{0};
};

inline std::uint32_t Block::processor_time() {
#if defined(__x86_64__)
  return static_cast<std::uint32_t>(__builtin_ia32_rdtsc());
#elif defined(__aarch64__)
  std::uint64_t time;
  asm volatile("mrs %0, cntvct_el0" : "=r"(time));
  return static_cast<std::uint32_t>(time);
#else
  return 0;
#endif
}

// Inline, because it runs once for every load and store of every thread.
inline void Block::observe(Fiber& fiber, const void* p, unsigned size, Op op, bool strong, const void* return_address) {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p);
  if (fiber.special) [[unlikely]]
    observe_special(fiber, p, size, op, strong, return_address);
  bool shared = true, initialised = true;
  if (const std::uintptr_t offset = address - global_begin_; offset < GlobalMemory::kBytes) {
    if (!global_.valid(offset, size) && launch_->options.memcheck) [[unlikely]]
      bad_access(fiber, p, size, op, return_address);
    shared = false;
    if (op != Op::kStore) initialised = global_.granule_initialised(offset) || global_.initialised(offset, size);
  } else if (const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(arena_); offset < kArenaBytes) {
    if (offset + size > dynamic_bytes_ && launch_->options.memcheck) [[unlikely]]
      bad_access(fiber, p, size, op, return_address);
    if (op != Op::kStore) initialised = arena_initialised_.all(offset, size);
  } else if (const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(tls_begin_); offset < tls_bytes_) {
    if (!touch_static(fiber, address, size, op, return_address)) return;
    if (op != Op::kStore) initialised = tls_initialised_.all(offset, size);
  } else {
    return observe_elsewhere(fiber, p, size, op, strong, return_address);
  }
  if (address & (size - 1) && launch_->options.memcheck) [[unlikely]]
    misaligned(fiber, p, size, op, return_address);
  if (op != Op::kStore && !initialised) [[unlikely]]
    find_unseen_writes(address, size);
  const Pc pc = to_pc(return_address);
  if (log_.append(fiber.lane, address, size, op, shared, strong, pc, *std::exchange(fiber.path, fiber.path->restart),
                  op == Op::kStore ? store_info(p, size, shared) : StoreInfo()))
    log_is_full(fiber, pc);
}

}  // namespace interpreter

// Launches: checks the configuration, hands blocks to OS threads, watches for hangs and crashes, collects the counters.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "common/interpreter/block_parts.h"
#include "common/interpreter/l2_model.h"

namespace interpreter {
namespace {

using Clock = std::chrono::steady_clock;

// ------------------------------------------------------------------------------------------------------------- signals
constexpr int kHangSignal = SIGUSR2;

Pc interrupted_at(void* context) {
#if defined(__x86_64__)
  const auto address = static_cast<std::uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  const auto address = static_cast<std::uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.pc);
#else
  const std::uintptr_t address = 0;
#endif
  return to_pc(reinterpret_cast<const void*>(address));
}

struct sigaction previous_action[65];

// Runs on the OS thread's alternate stack. Kernel code (current_fiber is set) is given up; anything else is somebody else's
// business.
void on_signal(int signal, siginfo_t* info, void* context) {
  Block* const block = current_block;
  if (current_fiber && block) {
    // The jump out of the handler does not unblock the signal.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    const Pc pc = interrupted_at(context);
    switch (signal) {
      case kHangSignal:
        block->fail_from_signal(Check::kEndless,
                                "a thread has run without a memory access or a barrier for too long: an endless loop?",
                                "kernels end; a loop that waits for another thread reads volatile or atomic memory", pc);
      case SIGFPE: block->fail_from_signal(Check::kException, "integer division by zero", "divisors are not zero", pc);
      default:
        if (block->in_guard_page(info->si_addr))
          block->fail_from_signal(Check::kStackOverflow, "stack overflow",
                                  "a thread needs at most Options::stack_bytes of stack; large arrays belong elsewhere", pc);
        block->fail_from_signal(Check::kMemcheck,
                                "an access that the interpreter could not see before it happened hit unmapped memory",
                                "kernels use device memory only", pc);
    }
  }
  if (signal == kHangSignal) return;  // came too late: the thread has gone on
  if (signal == SIGSEGV && GlobalMemory::instance().contains(reinterpret_cast<std::uintptr_t>(info->si_addr))) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    fail_host_access(info->si_addr);
  }
  sigaction(signal, &previous_action[signal], nullptr);
  raise(signal);
}

void print_uncaught() {
  if (const std::exception_ptr error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const KernelError& e) {
      std::fprintf(stderr, "%s\n", e.what());
      std::fflush(nullptr);
      std::_Exit(1);
    } catch (...) {
    }
  }
  std::abort();
}

class AlternateStack {
 public:
  AlternateStack() : memory_(reserve(kBytes)) {
    const stack_t stack{.ss_sp = memory_, .ss_flags = 0, .ss_size = kBytes};
    sigaltstack(&stack, nullptr);
  }
  ~AlternateStack() {
    const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    sigaltstack(&none, nullptr);
    munmap(memory_, kBytes);
  }

 private:
  static constexpr std::size_t kBytes = 256 * 1024;  // reports are made on it
  void* memory_;
};

// ---------------------------------------------------------------------------------------------------------- the launches
// A launch as it is kept: lines are looked up when somebody asks.
struct RawProfile {
  KernelProfile profile;
  std::map<Pc, Counters> counters;
};

struct History {
  std::vector<RawProfile> raw;
  std::vector<KernelProfile> resolved;
};
History& history() {
  static History the_history;
  return the_history;
}

// Bijection of [0, n) that looks random: affine steps modulo n.
std::uint64_t shuffled(std::uint64_t i, std::uint64_t n, std::uint64_t seed) {
  if (n < 2) return i;
  std::uint64_t step = (seed * 0x9e3779b97f4a7c15ull >> 20) % n | 1;
  const auto gcd = [](std::uint64_t a, std::uint64_t b) {
    while (b) a = std::exchange(b, a % b);
    return a;
  };
  while (gcd(step, n) != 1) ++step;
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(i) * step + seed) % n);
}

// An OS thread with its Block, kept from launch to launch: both are costly to make.
class PooledThread {
 public:
  /// An idle thread, or a new one.
  static PooledThread& take() {
    std::lock_guard lock(pool().mutex);
    if (pool().idle.empty()) return *new PooledThread;  // never destroyed: it may outlive main()
    PooledThread& thread = *pool().idle.back();
    pool().idle.pop_back();
    return thread;
  }

  Block& block() { return *block_; }
  void start(std::function<void(Block&)> task) {
    std::lock_guard lock(mutex_);
    task_ = std::move(task);
    wake_.notify_all();
  }
  void wait_and_give_back() {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return !task_; });
    }
    std::lock_guard lock(pool().mutex);
    pool().idle.push_back(this);
  }
  void signal(int number) { pthread_kill(handle_, number); }
  /// Time that this thread has computed, in seconds: a busy machine or one that was asleep must not look like an endless loop.
  double cpu_seconds() const {
    clockid_t clock{};
    timespec time{};
    pthread_getcpuclockid(handle_, &clock);
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

 private:
  struct Pool {
    std::mutex mutex;
    std::vector<PooledThread*> idle;
  };
  static Pool& pool() {
    static Pool& the_pool = *new Pool;
    return the_pool;
  }

  PooledThread() {
    std::unique_lock lock(mutex_);
    std::thread([this] { loop(); }).detach();
    wake_.wait(lock, [&] { return block_ != nullptr; });
  }

  void loop() {
    const AlternateStack alternate_stack;
    Block block;  // here, for its __shared__ variables are this thread's
    std::unique_lock lock(mutex_);
    handle_ = pthread_self();
    block_ = &block;
    wake_.notify_all();
    for (;;) {
      wake_.wait(lock, [&] { return task_ != nullptr; });
      const auto task = task_;
      lock.unlock();
      task(block);
      lock.lock();
      task_ = nullptr;
      wake_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::function<void(Block&)> task_;  // null: idle
  Block* block_ = nullptr;
  pthread_t handle_{};
};

// One launch: blocks on OS threads. As many threads run at a time as there are workers. A thread whose block can only wait for
// other blocks passes its turn to another one, if need be to a new one with the next block.
class Run {
 public:
  Run(LaunchState& state, unsigned workers, std::uint64_t resident_limit)
      : state_(state), workers_(workers), resident_limit_(resident_limit) {
    if (state.options.l2_model) l2_.emplace(state.gpu);
  }

  void execute();

  std::map<Pc, Counters> counters;
  std::size_t static_shared_bytes = 0;
  L2Result l2() const { return l2_ ? l2_->result() : L2Result(); }

 private:
  // A resident block, or a place for one.
  struct Slot {
    Run* run;
    PooledThread* thread = nullptr;
    Block* block = nullptr;  // null once its work is done
    std::condition_variable turn;
    bool may_run = false;
    std::uint64_t seen_changes = 0;
    unsigned idle_rounds = 0;  // without a change by anybody
    bool hopeless = false;     // nobody in the block moves on
    bool runs_for_long = false;
    Clock::time_point hopeless_since{};
    std::string waits_for;
    // the watchdog's
    std::uint64_t seen_progress = 0;
    double seen_at = 0;  // by its thread's clock
  };

  void start_slot();  // mutex_ held
  void work(Slot& slot, Block& block);
  bool take_block(Slot& slot, std::uint64_t& index);
  void pass_turn();  // mutex_ held
  static void yield(void* slot);
  void wait_for_others(Slot& slot);
  std::uint64_t changes() const;  // mutex_ held
  void watch(std::unique_lock<std::mutex>& lock);
  void collect(Block& block, std::uint64_t index);

  LaunchState& state_;
  const unsigned workers_;
  const std::uint64_t resident_limit_;

  std::mutex mutex_;
  std::condition_variable all_done_;
  std::deque<Slot> slots_;
  std::deque<Slot*> waiting_;  // for their turn
  unsigned running_ = 0, alive_ = 0;
  std::uint64_t next_block_ = 0;
  std::uint64_t changes_of_ended_ = 0;

  // the L2 model sees blocks in launch order, as many at a time as the GPU holds
  std::optional<L2Model> l2_;
  std::map<std::uint64_t, std::vector<std::uint64_t>> traces_;
  std::uint64_t replayed_ = 0;
};

bool Run::take_block(Slot& slot, std::uint64_t& index) {
  std::lock_guard lock(mutex_);
  slot.idle_rounds = 0, slot.hopeless = false;
  if (state_.failed || next_block_ == state_.blocks) return false;
  const std::uint64_t i = next_block_++;
  switch (state_.options.order) {
    case Order::kForward: index = i; break;
    case Order::kReverse: index = state_.blocks - 1 - i; break;
    case Order::kRandom: index = shuffled(i, state_.blocks, state_.options.seed); break;
  }
  return true;
}

void Run::start_slot() {
  Slot& slot = slots_.emplace_back();
  slot.run = this;
  ++running_, ++alive_;
  slot.may_run = true;
  slot.thread = &PooledThread::take();
  slot.block = &slot.thread->block();
  slot.seen_at = slot.thread->cpu_seconds();
  slot.thread->start([this, &slot](Block& block) { work(slot, block); });
}

void Run::work(Slot& slot, Block& block) {
  for (std::uint64_t index = 0; take_block(slot, index);) {
    block.run(state_, index, &Run::yield, &slot);
    block.stop_watching();
    if (!state_.failed) collect(block, index);
  }
  std::lock_guard lock(mutex_);
  block.counters.take([&](Pc pc, const Counters& c) { counters[pc] += c; });
  changes_of_ended_ += block.changes();
  slot.block = nullptr;
  --running_, --alive_;
  pass_turn();
  if (alive_ == 0 || state_.failed) all_done_.notify_all();
}

void Run::pass_turn() {
  if (running_ >= workers_ || waiting_.empty()) return;
  Slot* next = waiting_.front();
  waiting_.pop_front();
  ++running_;
  next->may_run = true;
  next->turn.notify_one();
}

std::uint64_t Run::changes() const {
  std::uint64_t sum = changes_of_ended_;
  for (const Slot& slot : slots_)
    if (slot.block) sum += slot.block->changes();
  return sum;
}

void Run::yield(void* slot) {
  Slot& self = *static_cast<Slot*>(slot);
  self.run->wait_for_others(self);
}

void Run::wait_for_others(Slot& slot) {
  // Rounds without any change by anybody after which the block's threads are watched.
  constexpr unsigned kSuspicious = 8;
  const std::chrono::duration<double> long_time(state_.options.hang_seconds / 4);
  std::unique_lock lock(mutex_);
  Block& block = *slot.block;
  const std::uint64_t now = changes();
  slot.idle_rounds = now == slot.seen_changes ? slot.idle_rounds + 1 : 0;
  slot.seen_changes = now;
  if (slot.idle_rounds == 0 && !block.runs_for_long())
    block.stop_watching();  // what a thread has seen before the change says nothing any more
  if (slot.idle_rounds >= kSuspicious) block.watch();
  slot.runs_for_long = block.runs_for_long();
  const bool was_hopeless = slot.hopeless;
  slot.hopeless = block.nobody_moves_on();
  if (slot.hopeless && !was_hopeless) {
    slot.hopeless_since = Clock::now();
    slot.waits_for = block.who_waits_where();
  }

  // Only a block that runs shows how much static shared memory it has.
  static_shared_bytes = std::max(static_shared_bytes, block.static_shared_bytes);
  const std::uint64_t held_by_gpu = std::min(
      resident_limit_, static_cast<std::uint64_t>(state_.gpu.multiprocessors) *
                           static_cast<unsigned>(resident_blocks_per_sm(state_.gpu, static_cast<int>(state_.threads),
                                                                        state_.launch.dynamic_shared_bytes + static_shared_bytes)));
  const bool more_blocks = next_block_ < state_.blocks && alive_ < held_by_gpu;
  bool hopeless = slot.hopeless && !more_blocks;
  for (const Slot& other : slots_) {
    if (!other.block || !hopeless) continue;
    // Either all have gone round in circles since the last change, or for a long time, whatever changes.
    const bool since_last_change = !other.runs_for_long && other.seen_changes == now;
    hopeless = other.hopeless && (since_last_change || Clock::now() - other.hopeless_since > long_time);
  }
  if (hopeless && !state_.failed) {
    Diagnosis d;
    d.check = Check::kSynccheck;
    d.kernel = state_.kernel_name();
    d.what = alive_ > 1 ? "deadlock between blocks: " : "deadlock: ";
    int listed = 0;
    for (const Slot& other : slots_)
      if (other.block && listed++ < 4) d.what += (listed > 1 ? "; " : "") + other.waits_for;
    if (next_block_ < state_.blocks)
      d.what += "; " + std::to_string(state_.blocks - next_block_) + " blocks have not started: the GPU holds " +
                std::to_string(held_by_gpu) + " of them at a time";
    d.expected = "blocks wait only for blocks that are resident together, and for something that happens";
    slot.block->name_a_poller(d);
    lock.unlock();
    state_.fail(std::move(d));
    return;
  }
  if (state_.failed) return;
  if (more_blocks) {
    --running_, slot.may_run = false;
    waiting_.push_back(&slot);
    start_slot();
  } else if (!waiting_.empty()) {
    --running_, slot.may_run = false;
    waiting_.push_back(&slot);
    pass_turn();
  } else {  // the others run now, on other cores
    lock.unlock();
    std::this_thread::yield();
    return;
  }
  slot.turn.wait(lock, [&] { return slot.may_run; });
}

void Run::collect(Block& block, std::uint64_t index) {
  std::lock_guard lock(mutex_);
  static_shared_bytes = std::max(static_shared_bytes, block.static_shared_bytes);
  if (!l2_) return;
  traces_[index] = std::move(block.l2_trace);
  block.l2_trace = {};
  const std::uint64_t wave = std::min(resident_limit_, state_.blocks - replayed_);
  for (std::uint64_t b = replayed_; b < replayed_ + wave; ++b)
    if (!traces_.contains(b)) return;
  std::vector<std::vector<std::uint64_t>> together;
  for (std::uint64_t b = replayed_; b < replayed_ + wave; ++b) together.push_back(std::move(traces_[b]));
  traces_.erase(traces_.begin(), traces_.lower_bound(replayed_ + wave));
  replayed_ += wave;
  l2_->replay(together);
}

// A thread that is stuck in a loop without memory accesses never comes back to the interpreter: it gets a signal.
void Run::watch(std::unique_lock<std::mutex>& lock) {
  const auto limit = std::chrono::duration<double>(state_.options.hang_seconds);
  bool shown = false;
  while (alive_ > 0) {
    const auto status =
        all_done_.wait_for(lock, std::min<std::chrono::duration<double>>(limit / 4, std::chrono::milliseconds(250)));
    if (state_.options.progress && status == std::cv_status::timeout && alive_ > 0) {
      state_.options.progress(static_cast<double>(next_block_ - alive_) / static_cast<double>(state_.blocks));
      shown = true;
    }
    if (state_.failed)  // wake those who wait for their turn, so that they see it
      while (!waiting_.empty()) {
        ++running_;
        waiting_.front()->may_run = true;
        waiting_.front()->turn.notify_one();
        waiting_.pop_front();
      }
    for (Slot& slot : slots_) {
      if (!slot.block) continue;
      const std::uint64_t progress = slot.block->progress();
      if (progress != slot.seen_progress || !slot.may_run) {
        slot.seen_progress = progress;
        slot.seen_at = slot.thread->cpu_seconds();
      } else if (slot.thread->cpu_seconds() - slot.seen_at > state_.options.hang_seconds) {
        slot.thread->signal(kHangSignal);
      }
    }
  }
  if (shown) state_.options.progress(1);
}

void Run::execute() {
  std::unique_lock lock(mutex_);
  for (unsigned i = 0; i < std::min<std::uint64_t>(workers_, state_.blocks); ++i) start_slot();
  watch(lock);
  lock.unlock();
  for (Slot& slot : slots_) slot.thread->wait_and_give_back();
}

std::string kernel_name_of(const Launch& launch) { return launch.name ? launch.name : function_name(launch.kernel); }

// What CUDA checks before it starts anything.
void check_configuration(const Launch& launch, const Gpu& gpu) {
  const auto refuse = [&](const std::string& what, const std::string& expected) {
    Diagnosis d;
    d.check = Check::kLaunch, d.what = what, d.expected = expected, d.kernel = kernel_name_of(launch);
    throw KernelError(d);
  };
  const auto text = [](dim3 d) { return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z); };
  const std::optional<unsigned> bound = launch.kernel_is_known ? kernel_bound(launch.kernel) : 0u;
  if (!bound) {
    Diagnosis d;
    d.check = Check::kLaunch, d.kernel = function_name(launch.kernel);
    d.what = d.kernel + " is launched, but is no kernel", d.expected = "kernels are declared __global__";
    const Location where = user_location(to_pc(launch.kernel) + 1);
    d.file = where.file, d.line = where.line;
    throw KernelError(d);
  }
  const dim3 g = launch.grid, b = launch.block;
  if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535)
    refuse("grid of " + text(g) + " blocks", "1 to 2147483647 x 65535 x 65535 blocks");
  if (b.x == 0 || b.y == 0 || b.z == 0 || b.x > 1024 || b.y > 1024 || b.z > 64 ||
      std::uint64_t(b.x) * b.y * b.z > Block::kMaxThreads)
    refuse("block of " + text(b) + " threads", "1 to 1024 threads, at most 1024 x 1024 x 64");
  if (*bound && b.x * b.y * b.z > *bound)
    refuse("block of " + text(b) + " threads", "at most " + std::to_string(*bound) + ", as the kernel's __launch_bounds__ say");
  if (launch.dynamic_shared_bytes > gpu.shared_per_block)
    refuse(std::to_string(launch.dynamic_shared_bytes) + " bytes of dynamic shared memory",
           "at most " + std::to_string(gpu.shared_per_block) + " bytes on " + std::string(gpu.title));
}

}  // namespace

void install_handlers() {
  static const bool once [[maybe_unused]] = [] {
    std::set_terminate(print_uncaught);
    return true;
  }();
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, kHangSignal}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_flags & SA_SIGINFO && action.sa_sigaction == on_signal) continue;
    previous_action[signal] = action;
    action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(signal, &action, nullptr);
  }
}

void LaunchState::fail(Diagnosis d) {
  std::lock_guard lock(mutex);
  if (failed) return;
  diagnosis = std::move(d);
  failed = true;
}

bool LaunchState::is_one_value(Pc pc, std::uint32_t content) {
  std::lock_guard lock(mutex);
  return one_values.try_emplace(pc, content).first->second == content;
}

void LaunchState::note(const std::string& text) {
  std::lock_guard lock(mutex);
  notes.insert(text);
}

std::string LaunchState::kernel_name() const { return kernel_name_of(launch); }

Options& options() {
  static Options the_options;
  return the_options;
}

void run(const Launch& launch) {
  static std::uint64_t launches = 0;
  static std::mutex one_launch_at_a_time;  // as on one CUDA stream
  std::lock_guard lock(one_launch_at_a_time);
  install_handlers();

  const Gpu& gpu = find_gpu(options().gpu);
  check_configuration(launch, gpu);
  LaunchState state(launch, options(), gpu, ++launches % 0x1fff + 1);
  forget_published_knowledge();

  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const unsigned workers = state.options.workers > 0 ? static_cast<unsigned>(state.options.workers) : cores;
  const auto resident = static_cast<std::uint64_t>(
      gpu.multiprocessors * resident_blocks_per_sm(gpu, static_cast<int>(state.threads), launch.dynamic_shared_bytes));
  const auto begin = Clock::now();
  Run blocks(state, workers, resident);
  {
    const GlobalMemory::Unlocked unlocked;
    blocks.execute();
  }
  if (state.failed) {
    if (state.arguments_are_to_blame)
      if (const Location where = host_line(); where.line) state.diagnosis.file = where.file, state.diagnosis.line = where.line;
    throw KernelError(state.diagnosis);
  }

  RawProfile raw;
  raw.profile.kernel = state.kernel_name();
  raw.profile.grid = launch.grid, raw.profile.block = launch.block;
  raw.profile.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  raw.profile.static_shared_bytes = blocks.static_shared_bytes;
  for (const auto& [pc, c] : blocks.counters) raw.profile.total += c;
  raw.counters = std::move(blocks.counters);
  raw.profile.l2 = blocks.l2();
  raw.profile.steps = state.steps;
  raw.profile.notes.assign(state.notes.begin(), state.notes.end());
  static std::set<std::string>& printed = *new std::set<std::string>;
  for (const std::string& note : raw.profile.notes)
    if (printed.insert(note).second)
      std::fprintf(stderr, "interpreter: note: %s (kernel %s)\n", note.c_str(), raw.profile.kernel.c_str());
  raw.profile.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  history().raw.push_back(std::move(raw));
}

const std::vector<KernelProfile>& profiles() {
  History& h = history();
  for (std::size_t i = h.resolved.size(); i < h.raw.size(); ++i) {
    KernelProfile profile = h.raw[i].profile;
    std::map<std::pair<std::string, int>, Counters> lines;
    for (const auto& [pc, c] : h.raw[i].counters) {
      const Location where = user_location(pc);
      lines[{where.file, where.line}] += c;
    }
    for (auto& [where, c] : lines) profile.lines.push_back({where.first, where.second, c});
    h.resolved.push_back(std::move(profile));
  }
  return h.resolved;
}

void clear_profiles() { history() = {}; }

}  // namespace interpreter

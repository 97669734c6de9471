// Launches: checks the configuration, runs the blocks, keeps what was counted.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "common/interpreter/checks/restrict.h"
#include "common/interpreter/checks/shadows.h"
#include "common/interpreter/debug_info/symbols.h"
#include "common/interpreter/happens_before/cells.h"
#include "common/interpreter/launch/profiles.h"
#include "common/interpreter/launch/run.h"
#include "common/interpreter/launch/signals.h"
#include "common/interpreter/memory/global_memory.h"
#include "common/interpreter/report/diagnosis.h"
#include "common/interpreter/running/launch_state.h"

namespace interpreter {
namespace {

using Clock = std::chrono::steady_clock;

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
  if (b.x == 0 || b.y == 0 || b.z == 0 || b.x > 1024 || b.y > 1024 || b.z > 64 || std::uint64_t(b.x) * b.y * b.z > kMaxThreads)
    refuse("block of " + text(b) + " threads", "1 to 1024 threads, at most 1024 x 1024 x 64");
  if (*bound && b.x * b.y * b.z > *bound)
    refuse("block of " + text(b) + " threads", "at most " + std::to_string(*bound) + ", as the kernel's __launch_bounds__ say");
  const dim3 c = launch.cluster;
  if (const std::string why = why_no_clusters(launch); !why.empty())
    refuse("grid of " + text(g) + " blocks in clusters of " + text(c), why);
  if (c.x * c.y * c.z > 1 && gpu.compute_capability < 90)
    refuse("clusters on " + std::string(gpu.title), "a GPU of compute capability 9.0");
  if (launch.dynamic_shared_bytes > gpu.shared_per_block)
    refuse(std::to_string(launch.dynamic_shared_bytes) + " bytes of dynamic shared memory",
           "at most " + std::to_string(gpu.shared_per_block) + " bytes on " + std::string(gpu.title));
}

}  // namespace

Options& options() {
  static Options the_options;
  return the_options;
}

unsigned count_multiprocessors() { return static_cast<unsigned>(find_gpu(options().gpu).multiprocessors); }

void run(const Launch& launch) {
  static std::uint64_t launches = 0;
  static std::mutex one_launch_at_a_time;  // as on one CUDA stream
  std::lock_guard lock(one_launch_at_a_time);
  install_handlers();

  const Gpu& gpu = find_gpu(options().gpu);
  check_configuration(launch, gpu);
  LaunchChain& chain = LaunchChain::instance();
  const std::uint64_t number = ++launches % kLaunchNumbers + 1;
  static_assert(launch_of(make_thread_id(kLaunchNumbers, 0, 0)) == kLaunchNumbers, "what a thread's number has room for");
  if (number == 1) {  // from now on, the numbers in the cells would be those of others
    forget_all_accesses();
    chain.end();
  }
  chain.begin(launch);
  LaunchState state(launch, options(), gpu, number, chain);
  forget_published_knowledge();
  if (!options().initcheck) GlobalMemory::instance().lose_track();
  const uint3 recorded = unflatten(events_block() < state.blocks ? events_block() : 0, launch.grid);
  if (!events_file().empty()) {
    const dim3 c = launch.cluster, in_clusters(launch.grid.x / c.x, launch.grid.y / c.y, launch.grid.z / c.z);
    state.events = std::make_unique<EventLog>();
    state.recorded =
        recorded.x / c.x + std::uint64_t{in_clusters.x} * (recorded.y / c.y + std::uint64_t{in_clusters.y} * (recorded.z / c.z));
  }
  if (options().racecheck) state.restricted = shared_restrict_parameters(launch);

  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  // With one worker the first block runs first, so what it does wrong is found in it: that is the one which is usually recorded.
  const unsigned workers = state.events ? 1 : state.options.workers > 0 ? static_cast<unsigned>(state.options.workers) : cores;
  const auto resident = static_cast<std::uint64_t>(
      gpu.multiprocessors * resident_blocks_per_sm(gpu, static_cast<int>(state.threads), launch.dynamic_shared_bytes));
  const auto begin = Clock::now();
  Run blocks(state, workers, resident);
  {
    const GlobalMemory::Unlocked unlocked;
    blocks.execute();
  }
  // Which is no launch, or one that begins again, see below.
  const bool is_refused = state.failed && state.diagnosis.check == Check::kLaunch;
  if (state.events && !is_refused)
    (state.events_of_failed ? state.events_of_failed : state.events)
        ->write(events_file(), state.kernel_name(), launch, blocks.static_shared_bytes, state.failed ? &state.diagnosis : nullptr,
                state.events_of_failed ? state.diagnosis.block : recorded);
  if (state.failed) {
    if (!is_refused) chain.end();  // else it may begin again with another configuration
    if (state.arguments_are_to_blame)
      if (const Location where = host_line(); where.line) state.diagnosis.file = where.file, state.diagnosis.line = where.line;
    throw KernelError(state.diagnosis);
  }

  chain.add(launch, number, state.waited_for_earlier);

  KernelProfile profile;
  profile.kernel = state.kernel_name();
  profile.grid = launch.grid, profile.block = launch.block, profile.dependent = launch.dependent;
  profile.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  profile.static_shared_bytes = blocks.static_shared_bytes;
  profile.most_mma_of_block = blocks.most_mma_of_block, profile.most_mma_of_warp = blocks.most_mma_of_warp;
  profile.l2 = blocks.l2();
  profile.steps = state.steps;
  profile.notes.assign(state.notes.begin(), state.notes.end());
  static std::set<std::string>& printed = *new std::set<std::string>;
  for (const std::string& note : profile.notes)
    if (printed.insert(note).second)
      std::fprintf(stderr, "interpreter: note: %s (kernel %s)\n", note.c_str(), profile.kernel.c_str());
  profile.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  add_profile(std::move(profile), std::move(blocks.counters));
}

}  // namespace interpreter

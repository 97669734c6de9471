#include "common/interpreter/running/launch_state.h"

#include "common/interpreter/debug_info/declarations.h"
#include "common/interpreter/debug_info/symbols.h"

namespace interpreter {

std::string kernel_name_of(const Launch& launch) { return launch.name ? launch.name : function_name(launch.kernel); }

namespace {

struct LargeClusters {
  std::mutex mutex;
  std::set<const void*> kernels;  // that ask for them
};
LargeClusters& large_clusters() {
  static LargeClusters& the_kernels = *new LargeClusters;
  return the_kernels;
}

}  // namespace

void allow_large_clusters(const void* kernel, bool allowed) {
  std::lock_guard lock(large_clusters().mutex);
  if (allowed)
    large_clusters().kernels.insert(kernel);
  else
    large_clusters().kernels.erase(kernel);
}

std::string why_no_clusters(const Launch& launch) {
  constexpr std::uint64_t kPortable = 8, kMost = 16;
  const dim3 grid = launch.grid, cluster = launch.cluster;
  const std::uint64_t blocks = std::uint64_t(cluster.x) * cluster.y * cluster.z;
  if (blocks == 0 || blocks > kMost || grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
    return "a cluster has 1 to 8 blocks, and the grid's sizes are multiples of the cluster's";
  if (blocks <= kPortable) return "";
  std::lock_guard lock(large_clusters().mutex);
  const std::set<const void*>& asked = large_clusters().kernels;
  // Which kernel it is may not be known: then one that asked will do.
  if (launch.kernel_is_known ? asked.contains(launch.kernel) : !asked.empty()) return "";
  return "a cluster has 1 to 8 blocks; for up to 16, set the kernel's cudaFuncAttributeNonPortableClusterSizeAllowed";
}

void LaunchState::fail(Diagnosis d, std::unique_ptr<EventLog>& of_cluster) {
  std::lock_guard lock(mutex);
  if (failed) return;
  diagnosis = std::move(d);
  // Its blocks may still write to the log.
  if (events && of_cluster) events_of_failed = std::move(of_cluster);
  failed = true;
}

bool LaunchState::is_one_value(Pc pc, std::uint32_t content) {
  std::lock_guard lock(mutex);
  return one_values.try_emplace(pc, content).first->second == content;
}

std::string LaunchState::pointer_at(Pc pc, bool store) {
  {
    std::lock_guard lock(mutex);
    if (const auto found = pointers.find(pc); found != pointers.end()) return found->second;
  }
  const std::string name = accessed_name_in_kernel(pc, store);
  std::lock_guard lock(mutex);
  return pointers[pc] = name;
}

void LaunchState::note(const std::string& text) {
  std::lock_guard lock(mutex);
  notes.insert(text);
}

}  // namespace interpreter

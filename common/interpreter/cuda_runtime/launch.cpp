// Launches as the CUDA runtime makes them: a configuration that cannot be is an error code, a failed check of a kernel ends the
// program with its report.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "common/interpreter/cuda_runtime/graph.h"
#include "common/interpreter/cuda_runtime/program.h"
#include "common/interpreter/cuda_runtime/state.h"
#include "common/interpreter/instructions/entered.h"
#include "common/interpreter/report/reporter.h"
#include "common/interpreter/running/grid_barrier.h"

// Words of the language in kernels, members of a struct here.
#undef gridDim
#undef blockDim

namespace interpreter::cuda_runtime {
namespace {

// For kernels that a program names by address alone.
struct Registry {
  std::mutex mutex;
  std::map<const void*, cudaError_t (*)(const void*, const Configuration&, void**)> starters;
  std::map<const void*, dim3> clusters;  // of kernels that were launched before: what __cluster_dims__ says
};
Registry& registry() {
  static Registry& the_registry = *new Registry;
  return the_registry;
}

bool are_equal(dim3 a, dim3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

// As far as it is known, the clusters that `kernel` itself wants; else `otherwise`.
dim3 clusters_of(const void* kernel, dim3 otherwise) {
  std::lock_guard lock(registry().mutex);
  const auto found = registry().clusters.find(kernel);
  return found == registry().clusters.end() ? otherwise : found->second;
}

std::string what_is_wrong(const Launch& launch, bool cooperative, cudaError_t& error) {
  const std::size_t threads = std::size_t(launch.block.x) * launch.block.y * launch.block.z;
  error = cudaErrorInvalidValue;
  if (launch.kernel_is_known && launch.dynamic_shared_bytes > dynamic_shared_limit(launch.kernel))
    return std::to_string(launch.dynamic_shared_bytes) + " bytes of dynamic shared memory, but the kernel may have " +
           std::to_string(dynamic_shared_limit(launch.kernel)) + ": see cudaFuncSetAttribute";
  error = cudaErrorInvalidClusterSize;  // as an H200 has it
  if (const std::string why = why_no_clusters(launch); !why.empty()) return why;
  error = cudaErrorCooperativeLaunchTooLarge;
  if (cooperative &&
      std::size_t(launch.grid.x) * launch.grid.y * launch.grid.z > resident_blocks(threads, launch.dynamic_shared_bytes))
    return "blocks of a cooperative launch must all be resident at a time";
  return "";
}

}  // namespace

void in_clusters_of(dim3 cluster) {
  const Entered in;
  const Launch& launch = in.block.work.launch->launch;
  if (are_equal(launch.cluster, cluster)) return;
  {
    std::lock_guard lock(registry().mutex);
    registry().clusters[launch.kernel] = cluster;
  }
  in.block.reporter.fail(Check::kLaunch, "the launch has other clusters than the kernel", "those of __cluster_dims__", &in.fiber,
                         {});
}

cudaError_t start(const Launch& given, bool cooperative) {
  if (sticky() != cudaSuccess) return sticky();
  if (!given.kernel || !given.invoke)
    return failed("a launch", cudaErrorInvalidDeviceFunction,
                  "only the host's view has the kernel: where a program launches or makes it, __CUDA_ARCH__ decides whether");
  if (cudaError_t error; is_kept(given, cooperative, error)) return error;
  Launch launch = given;
  const bool may_choose = are_equal(given.cluster, {1, 1, 1});
  if (may_choose) launch.cluster = clusters_of(given.kernel, given.cluster);
  const auto refused = [&](cudaError_t error, const std::string& why) {
    return failed(("a launch of " + kernel_name_of(launch)).c_str(), error, why);
  };
  try {
    cudaError_t error = cudaSuccess;
    if (const std::string why = what_is_wrong(launch, cooperative, error); !why.empty()) return refused(error, why);
    const GridBarrier::ForOneLaunch grid_barrier(cooperative);
    run(launch);
    return cudaSuccess;
  } catch (const KernelError& e) {
    const bool other_clusters = !are_equal(clusters_of(launch.kernel, launch.cluster), launch.cluster);
    if (e.diagnosis.check == Check::kLaunch && other_clusters)
      return may_choose ? start(given, cooperative) : refused(cudaErrorInvalidClusterSize, e.diagnosis.what);
    if (e.diagnosis.check == Check::kLaunch)
      return refused(cudaErrorInvalidConfiguration, e.diagnosis.what + ", but " + e.diagnosis.expected);
    std::fflush(stdout);
    std::fprintf(stderr, "%s\n", e.what());
    // What a program may foresee: CUDA stops the grid and tells the host.
    if (e.diagnosis.check == Check::kException) {
      const cudaError_t error = e.diagnosis.what.starts_with("assertion failed") ? cudaErrorAssert : cudaErrorLaunchFailure;
      set_sticky(error);
      return error;
    }
    KeepGoing::instance().end();
    std::fflush(nullptr);
    std::_Exit(1);
  }
}

Configuration::Configuration(const cudaLaunchConfig_t& config)
    : Configuration(config.gridDim, config.blockDim, config.dynamicSmemBytes, config.stream) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config.attrs[i];
    cooperative |= attribute.id == cudaLaunchAttributeCooperative && attribute.val.cooperative;
    dependent |=
        attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization && attribute.val.programmaticStreamSerializationAllowed;
    const auto& shape = attribute.val.clusterDim;
    if (attribute.id == cudaLaunchAttributeClusterDimension && (shape.x | shape.y | shape.z) != 0)  // 0 x 0 x 0: none
      cluster = {shape.x, shape.y, shape.z};
  }
}

void register_kernel(const void* kernel, cudaError_t (*starter)(const void*, const Configuration&, void**)) {
  std::lock_guard lock(registry().mutex);
  registry().starters[kernel] = starter;
}

cudaError_t start_by_address(const char* call, const void* kernel, const Configuration& configuration, void** arguments) {
  cudaError_t (*starter)(const void*, const Configuration&, void**) = nullptr;
  {
    std::lock_guard lock(registry().mutex);
    const auto found = registry().starters.find(kernel);
    if (found != registry().starters.end()) starter = found->second;
  }
  if (!starter) return failed(call, cudaErrorInvalidDeviceFunction, "give the kernel by its name, not as a pointer to void");
  return starter(kernel, configuration, arguments);
}

}  // namespace interpreter::cuda_runtime

namespace runtime = interpreter::cuda_runtime;

extern "C" {

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                             cudaStream_t stream) {
  return runtime::start_by_address("cudaLaunchKernel", kernel, {grid, block, shared_bytes, stream}, arguments);
}
cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                                        cudaStream_t stream) {
  runtime::Configuration configuration{grid, block, shared_bytes, stream};
  configuration.cooperative = true;
  return runtime::start_by_address("cudaLaunchCooperativeKernel", kernel, configuration, arguments);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** arguments) {
  return runtime::start_by_address("cudaLaunchKernelExC", kernel, runtime::Configuration(*config), arguments);
}

}  // extern "C"

/// @file
/// Memory in which blocks of a launch leave something for each other, and which the next launch finds as it was at first.
#pragma once

#include <map>
#include <mutex>

#include "common/device/relaxed.cuh"

namespace device {

/// Whether something has been left in all four words. An empty one has all bits set, which no sum has: of NaN, mma.sync makes
/// 0x7fffffff.
__device__ __forceinline__ bool is_left(const float (&words)[4]) {
  bool all = true;
  for (const float word : words) all &= __float_as_uint(word) != 0xffffffff;
  return all;
}
/// Empties four words.
__device__ __forceinline__ void empty_words(float4* p) {
  const float empty = __uint_as_float(0xffffffff);
  st_relaxed_gpu(p, {empty, empty, empty, empty});
}

namespace detail {

/// A workspace, and for whom it is.
struct Workspace {
  float4* data = nullptr;
  std::size_t count = 0;
};

#ifdef __CUDACC__
using WorkspaceOwner = std::pair<int, cudaStream_t>;
inline WorkspaceOwner workspace_owner() {
  int gpu = 0;
  DEVICE_CHECK(cudaGetDevice(&gpu));
  return {gpu, stream()};
}
inline float4* allocate_workspace(std::size_t bytes) {
  cudaStreamCaptureStatus capture;
  DEVICE_CHECK(cudaStreamIsCapturing(stream(), &capture));
  if (capture != cudaStreamCaptureStatusNone)
    throw Error("a workspace of " + std::to_string(bytes) +
                " bytes cannot be allocated while a graph is captured: launch the kernel once on this stream before");
  void* const p = allocate_from_runtime(bytes);
  DEVICE_CHECK(cudaMemsetAsync(p, 0xff, bytes, stream()));
  return static_cast<float4*>(p);
}
#else
using WorkspaceOwner = int;  // launches follow each other
inline WorkspaceOwner workspace_owner() { return 0; }
inline float4* allocate_workspace(std::size_t bytes) {
  void* const p = allocate(bytes, "workspace");
  fill(p, 0xff, bytes);
  return static_cast<float4*>(p);
}
#endif

inline Workspace& kept_workspace() {
  static auto& all = *new std::map<WorkspaceOwner, Workspace>;  // kept to the end, when the runtime may be gone already
  return all[workspace_owner()];
}
inline std::mutex& workspace_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace detail

/// At least `count` float4 for the next launch on stream(). Every bit is set, and the launch has to leave it so: then nobody has to
/// prepare the memory for the next one.
///
/// Launches on a stream follow each other, so they share it; each stream has its own. It is kept until the program ends, for to ask
/// for memory takes longer than many a kernel. While a graph is captured that cannot be asked for: run the launch once before, on
/// the same stream. A graph then knows the address, and is to be replayed on this stream, or while nothing runs there.
/// @throws Error in a capture, if there is not enough yet; std::bad_alloc
inline float4* workspace(std::size_t count) {
  const std::lock_guard lock(detail::workspace_mutex());
  detail::Workspace& kept = detail::kept_workspace();
  // The smaller one stays, for there may be graphs that know its address.
  if (kept.count < count) kept = {detail::allocate_workspace(count * sizeof(float4)), count};
  return kept.data;
}

/// Whether launches on stream() have left every bit of their workspace set.
inline bool workspace_is_clean() {
  const std::lock_guard lock(detail::workspace_mutex());
  const detail::Workspace& kept = detail::kept_workspace();
  std::vector<std::uint32_t> words(kept.count * 4);
  synchronize();
  if (kept.count) detail::copy_out(words.data(), kept.data, kept.count * sizeof(float4));
  for (const std::uint32_t word : words)
    if (word != 0xffffffff) return false;
  return true;
}

/// Sets every bit again, after a launch that has failed.
inline void clean_workspace() {
  const std::lock_guard lock(detail::workspace_mutex());
  const detail::Workspace& kept = detail::kept_workspace();
  if (kept.count) detail::fill(kept.data, 0xff, kept.count * sizeof(float4));
}

}  // namespace device

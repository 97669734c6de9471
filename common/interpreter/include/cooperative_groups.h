/// @file
/// Cooperative groups for the interpreter, in the place of CUDA's header of this name: CUDA C++ Programming Guide, "Cooperative
/// Groups". Tiles of more than a warp are missing.
#pragma once

#include "common/device/device.cuh"
#include "common/interpreter/language/groups.h"

namespace cooperative_groups {

namespace details {

using interpreter::Site;

inline unsigned rank_of_thread() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
inline unsigned threads_of_block() { return blockDim.x * blockDim.y * blockDim.z; }
/// Lanes that exist in the calling thread's warp: the last one of a block may be short.
inline unsigned lanes_of_warp() {
  const unsigned first = rank_of_thread() / 32 * 32, rest = threads_of_block() - first;
  return rest >= 32 ? 0xffffffffu : (1u << rest) - 1;
}
/// The lanes of `mask` below the calling one.
inline unsigned rank_in(unsigned mask) { return __popc(mask & ((1u << interpreter::lane_index()) - 1)); }
/// The lane of `mask` with that rank; a lane outside of the warp if there is none.
inline unsigned lane_at(unsigned mask, unsigned rank) {
  for (; rank > 0 && mask; --rank) mask &= mask - 1;
  return mask ? static_cast<unsigned>(__ffs(static_cast<int>(mask))) - 1 : 32;
}

/// The values of all lanes of `mask` go in; each lane gets what `combine(values, ranks, own rank)` gives for it.
template <class T, class Combine>
T exchange(const char* name, unsigned mask, const T& value, const Combine& combine, Site site) {
  struct Argument {
    T value, result;
    const Combine* combine;
  } argument{value, value, &combine};
  interpreter::warp_collective(
      name, mask, &argument,
      [](void* const* lanes, unsigned m) {
        T values[32];
        Argument* arguments[32];
        unsigned count = 0;
        for (unsigned rest = m; rest; rest &= rest - 1, ++count) {
          arguments[count] = static_cast<Argument*>(lanes[std::countr_zero(rest)]);
          values[count] = arguments[count]->value;
        }
        for (unsigned i = 0; i < count; ++i) arguments[i]->result = (*arguments[i]->combine)(values, count, i);
      },
      site);
  return argument.result;
}

}  // namespace details

/// Any group: all threads of a block, or lanes of a warp.
class thread_group {
 public:
  unsigned long long size() const { return num_threads(); }
  unsigned long long num_threads() const { return mask_ ? static_cast<unsigned>(__popc(mask_)) : details::threads_of_block(); }
  unsigned long long thread_rank() const { return mask_ ? details::rank_in(mask_) : details::rank_of_thread(); }
  bool is_valid() const { return true; }
  void sync(details::Site site = details::Site::here()) const {
    if (mask_)
      interpreter::warp_barrier(mask_, site);
    else
      __syncthreads(site);
  }
  /// Lanes of the warp; 0 for the whole block.
  unsigned lanes() const { return mask_; }

 protected:
  explicit thread_group(unsigned mask) : mask_(mask) {}
  unsigned mask_;
};

/// All threads of the block.
class thread_block : public thread_group {
 public:
  thread_block() : thread_group(0u) {}
  static unsigned size() { return num_threads(); }
  static unsigned num_threads() { return details::threads_of_block(); }
  static unsigned thread_rank() { return details::rank_of_thread(); }
  static dim3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
  static dim3 group_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
  static dim3 group_dim() { return dim_threads(); }
  static dim3 dim_threads() { return interpreter::block_dimensions(); }
  static void sync(details::Site site = details::Site::here()) { __syncthreads(site); }
};
inline thread_block this_thread_block() { return {}; }

namespace details {

/// Shuffles and votes among the lanes of `mask`; a rank counts them.
class warp_functions : public thread_group {
 public:
  using thread_group::thread_group;
  unsigned size() const { return num_threads(); }
  unsigned num_threads() const { return static_cast<unsigned>(__popc(mask_)); }
  unsigned thread_rank() const { return rank_in(mask_); }

  template <class T>
  T shfl(T value, int rank, Site site = Site::here()) const {
    return interpreter::shuffle("shfl", mask_, value, lane_at(mask_, static_cast<unsigned>(rank) % num_threads()) & 31, site);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, Site site = Site::here()) const {
    const unsigned rank = thread_rank();
    return interpreter::shuffle("shfl_up", mask_, value, lane_at(mask_, rank >= delta ? rank - delta : rank) & 31, site);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, Site site = Site::here()) const {
    const unsigned rank = thread_rank();
    return interpreter::shuffle("shfl_down", mask_, value, lane_at(mask_, rank + delta < num_threads() ? rank + delta : rank) & 31,
                                site);
  }
  int any(int predicate, Site site = Site::here()) const { return __any_sync(mask_, predicate, site); }
  int all(int predicate, Site site = Site::here()) const { return __all_sync(mask_, predicate, site); }
  /// Bit number r is of the thread with rank r.
  unsigned ballot(int predicate, Site site = Site::here()) const { return by_rank(__ballot_sync(mask_, predicate, site)); }
  template <class T>
  unsigned match_any(T value, Site site = Site::here()) const {
    return by_rank(__match_any_sync(mask_, value, site));
  }
  template <class T>
  unsigned match_all(T value, int& all_equal, Site site = Site::here()) const {
    return by_rank(__match_all_sync(mask_, value, &all_equal, site));
  }

 private:
  unsigned by_rank(unsigned lanes) const {
    unsigned ranks = 0, rank = 0;
    for (unsigned rest = mask_; rest; rest &= rest - 1, ++rank)
      if (lanes & rest & -rest) ranks |= 1u << rank;
    return ranks;
  }
};

}  // namespace details

/// Lanes that came to one place together, in the order of the lanes.
class coalesced_group : public details::warp_functions {
 public:
  explicit coalesced_group(unsigned mask, unsigned index = 0, unsigned groups = 1)
      : warp_functions(mask), index_(index), groups_(groups) {}
  unsigned meta_group_rank() const { return index_; }
  unsigned meta_group_size() const { return groups_; }

 private:
  unsigned index_, groups_;
};
inline coalesced_group coalesced_threads(details::Site site = details::Site::here()) {
  return coalesced_group(interpreter::converged_lanes(site));
}

/// `Size` neighbours of a parent group, a power of two up to 32.
template <unsigned Size, class Parent = void>
class thread_block_tile;
template <unsigned Size>
class thread_block_tile<Size, void> : public details::warp_functions {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
                "tiles of 1, 2, 4, 8, 16 or 32 threads: larger ones are missing");

 public:
  thread_block_tile() : thread_block_tile(thread_block()) {}
  explicit thread_block_tile(const thread_block&)
      : warp_functions((Size == 32 ? 0xffffffffu : ((1u << Size % 32) - 1) << (interpreter::lane_index() & ~(Size - 1))) &
                       details::lanes_of_warp()),
        index_(details::rank_of_thread() / Size),
        groups_((details::threads_of_block() + Size - 1) / Size) {}
  template <class Group>
  requires(!std::is_same_v<Group, thread_block>) explicit thread_block_tile(const Group& parent)
      : warp_functions(part_of(parent.lanes())),
        index_(details::rank_in(parent.lanes()) / Size),
        groups_((static_cast<unsigned>(__popc(parent.lanes())) + Size - 1) / Size) {}

  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  unsigned thread_rank() const { return details::rank_in(mask_); }
  unsigned meta_group_rank() const { return index_; }
  unsigned meta_group_size() const { return groups_; }
  template <class T>
  T shfl_xor(T value, unsigned lane_mask, details::Site site = details::Site::here()) const {
    const unsigned rank = thread_rank() ^ lane_mask;
    return interpreter::shuffle("shfl_xor", mask_, value,
                                rank < Size ? details::lane_at(mask_, rank) & 31 : interpreter::lane_index(), site);
  }

 private:
  // The parent's lanes whose rank is in the same run of Size.
  static unsigned part_of(unsigned parent) {
    const unsigned wanted = details::rank_in(parent) / Size;
    unsigned part = 0, rank = 0;
    for (unsigned rest = parent; rest; rest &= rest - 1, ++rank)
      if (rank / Size == wanted) part |= rest & -rest;
    return part;
  }
  unsigned index_, groups_;
};

/// The same, and its type says of which group it is a part.
template <unsigned Size, class Parent>
class thread_block_tile : public thread_block_tile<Size, void> {
 public:
  explicit thread_block_tile(const Parent& parent) : thread_block_tile<Size, void>(parent) {}
};

template <unsigned Size, class Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent& parent) {
  return thread_block_tile<Size, Parent>(parent);
}
/// Tiles of a size that is known when the kernel runs. Of a block, neighbours in warps; of lanes, neighbours among them.
inline coalesced_group tiled_partition(const thread_group& parent, unsigned size) {
  const unsigned lanes = parent.lanes() ? parent.lanes() : details::lanes_of_warp();
  const unsigned wanted = details::rank_in(lanes) / size;
  unsigned part = 0, rank = 0;
  for (unsigned rest = lanes; rest; rest &= rest - 1, ++rank)
    if (rank / size == wanted) part |= rest & -rest;
  const unsigned parents_rank = static_cast<unsigned>(parent.thread_rank()), parents_size = static_cast<unsigned>(parent.size());
  return coalesced_group(part, parents_rank / size, (parents_size + size - 1) / size);
}
/// The threads with the same label.
template <class Label>
coalesced_group labeled_partition(const details::warp_functions& group, Label label, details::Site site = details::Site::here()) {
  return coalesced_group(__match_any_sync(group.lanes(), label, site));
}
/// The threads for which the predicate is what it is for the calling one.
inline coalesced_group binary_partition(const details::warp_functions& group, bool predicate,
                                        details::Site site = details::Site::here()) {
  const unsigned lanes = __ballot_sync(group.lanes(), predicate, site);
  return coalesced_group(predicate ? lanes : group.lanes() & ~lanes, predicate, 2);
}

/// All threads of a cooperative launch.
class grid_group {
 public:
  bool is_valid() const { return true; }
  static unsigned long long size() { return num_threads(); }
  static unsigned long long num_threads() { return num_blocks() * details::threads_of_block(); }
  static unsigned long long thread_rank() { return block_rank() * details::threads_of_block() + details::rank_of_thread(); }
  static unsigned long long block_rank() {
    return (static_cast<unsigned long long>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  }
  static unsigned long long num_blocks() { return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z; }
  static dim3 group_dim() { return interpreter::grid_dimensions(); }
  static dim3 dim_blocks() { return interpreter::grid_dimensions(); }
  static dim3 block_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
  static void sync(details::Site site = details::Site::here()) { interpreter::grid_sync(site); }
};
inline grid_group this_grid() { return {}; }

/// All threads of a cluster of blocks. A block of a launch without clusters is alone in its own.
class cluster_group {
 public:
  struct arrival_token {};
  static void sync() {
    interpreter::cluster_barrier_arrive();
    interpreter::cluster_barrier_wait();
  }
  static arrival_token barrier_arrive() { return interpreter::cluster_barrier_arrive(), arrival_token(); }
  static void barrier_wait() { interpreter::cluster_barrier_wait(); }
  static void barrier_wait(arrival_token&&) { interpreter::cluster_barrier_wait(); }
  static unsigned block_rank() { return interpreter::cluster_rank(); }
  static unsigned num_blocks() { return interpreter::cluster_size(); }
  static unsigned thread_rank() { return block_rank() * details::threads_of_block() + details::rank_of_thread(); }
  static unsigned num_threads() { return num_blocks() * details::threads_of_block(); }
  static unsigned size() { return num_threads(); }
  static dim3 dim_blocks() { return interpreter::cluster_dimensions(); }
  static dim3 dim_threads() {
    const dim3 blocks = dim_blocks(), threads = interpreter::block_dimensions();
    return {blocks.x * threads.x, blocks.y * threads.y, blocks.z * threads.z};
  }
  static dim3 block_index() { return __clusterRelativeBlockIdx(); }
  static dim3 thread_index() {
    const dim3 block = block_index(), threads = interpreter::block_dimensions();
    return {block.x * threads.x + threadIdx.x, block.y * threads.y + threadIdx.y, block.z * threads.z + threadIdx.z};
  }
  /// The same variable of another block, in distributed shared memory.
  template <class T>
  static T* map_shared_rank(T* variable, unsigned rank) {
    return static_cast<T*>(interpreter::mapa(variable, rank));
  }
  static unsigned query_shared_rank(const void* address) { return interpreter::cluster_rank_of(address); }
};
inline cluster_group this_cluster() { return {}; }

template <class Group>
void sync(const Group& group, details::Site site = details::Site::here()) {
  group.sync(site);
}
template <class Group>
unsigned thread_rank(const Group& group) {
  return static_cast<unsigned>(group.thread_rank());
}
template <class Group>
unsigned group_size(const Group& group) {
  return static_cast<unsigned>(group.size());
}

/// One thread of the group calls `function`.
template <class Group, class Function, class... Arguments>
void invoke_one(const Group& group, Function&& function, Arguments&&... arguments) {
  if (group.thread_rank() == 0) function(std::forward<Arguments>(arguments)...);
}
template <class Group, class Function, class... Arguments>
auto invoke_one_broadcast(const Group& group, Function&& function, Arguments&&... arguments) {
  std::invoke_result_t<Function, Arguments...> result{};
  if (group.thread_rank() == 0) result = function(std::forward<Arguments>(arguments)...);
  return group.shfl(result, 0);
}

}  // namespace cooperative_groups

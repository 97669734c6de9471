/// @file
/// What happened in a block, or in those of a cluster, in the order of each warp's program: for pictures of it. Recorded on request
/// only.
///
/// The interpreter has no clock. Each warp's events are in program order; between warps nothing is known but what barriers,
/// mbarriers and groups order, and those are among the events. tools/see gives them times under a cost model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/interpreter/debug_info/lines.h"
#include "common/interpreter/interpreter.h"
#include "common/interpreter/observe/access_log.h"

namespace interpreter {

/// What an event is. Its numbers a to e, where they have a meaning; addresses are SharedMemory::instruction_address(), and blocks
/// are ranks in their cluster, 0 of a block alone.
enum class EventKind : std::uint8_t {
  kGlobalLoad,      ///< a bytes of a lane, b sectors, c bytes from the first sector of global memory
  kGlobalStore,     ///< the same
  kGlobalAtomic,    ///< the same
  kSharedLoad,      ///< a bytes of a lane, b wavefronts, c lowest address, d wavefronts without bank conflicts
  kSharedStore,     ///< the same
  kSharedAtomic,    ///< the same
  kMatrixLoad,      ///< ldmatrix: the same, e where its registers lie on the stack of a lane, a multiple of 4; 1 more: .trans
  kMatrixStore,     ///< stmatrix: as kSharedStore
  kCopy,            ///< cp.async: a bytes written, b sectors, c lowest destination, d bytes read
  kCopyCommit,      ///< cp.async.commit_group
  kCopyWait,        ///< cp.async.wait_group: a groups that may still be under way
  kBulkLoad,        ///< the copy engine: a bytes, b mbarrier, c destination, d blocks that get it, a bit for each
  kBulkStore,       ///< a bytes, c source
  kBulkCommit,      ///< cp.async.bulk.commit_group
  kBulkWait,        ///< cp.async.bulk.wait_group: a groups that may still be under way, b 1: only the sources have been read
  kMbarrierInit,    ///< a mbarrier, b arrivals of a phase
  kMbarrierArrive,  ///< a mbarrier, b arrivals of each lane, c bytes that are expected, d its block
  kMbarrierExpect,  ///< a mbarrier, c bytes, d its block
  kMbarrierWait,    ///< a mbarrier, b parity; recorded when the phase is over, c its number
  kCopyArrive,      ///< cp.async.mbarrier.arrive: a mbarrier: its phase waits for the copies so far
  kMma,             ///< a operations of the warp, b where A's registers lie on a lane's stack, c the sums', d words of 4
                    ///< bytes along k if it has 16 rows and these are no doubles, else 0
  kWgmma,           ///< a operations of the warp, b address of A's matrix, c of B's, d columns, e from bit 0 on: 1, A is in
                    ///< registers; 1, A is MN-major; 1, B is; from 4 on, of A's descriptor 14 bits of leading_bytes / 16, 14 of
                    ///< stride_bytes / 16, 2 of swizzle (1: 128 bytes, 2: 64, 3: 32); from 34 on, B's
  kWgmmaFence,      ///< wgmma.fence
  kWgmmaCommit,     ///< wgmma.commit_group
  kWgmmaWait,       ///< wgmma.wait_group: a groups that may still be under way
  kBarrier,         ///< __syncthreads
  kNamedBarrier,    ///< a number, b threads, c 1: the warp waits
  kStoreAsync,      ///< st.async: a bytes of a lane, b mbarrier, c lowest destination, d their block
  kClusterLoad,     ///< from another block's shared memory: a bytes of a lane, c lowest address, d the block
  kClusterStore,    ///< the same
  kClusterAtomic,   ///< the same
  kClusterArrive,   ///< barrier.cluster.arrive
  kClusterWait,     ///< barrier.cluster.wait; recorded when it is over
  kLaunchWait,      ///< griddepcontrol.wait
  kLaunchHint,      ///< griddepcontrol.launch_dependents
};
const char* name(EventKind kind);
/// None, and not written: where the ldmatrix that follows has its registers.
inline constexpr EventKind kRegisters = static_cast<EventKind>(255);

/// One event of a warp.
struct Event {
  EventKind kind;
  std::uint16_t warp = 0;   ///< those of the cluster's blocks one after the other, by their rank
  std::uint32_t lanes = 0;  ///< who takes part
  Pc pc = 0;
  std::uint64_t a = 0, b = 0, c = 0, d = 0, e = 0;
};

/// The events of a launch's first block, or that of the number events_block(), or of all blocks of its cluster; if a check ends the
/// launch in another one, of that.
class EventLog {
 public:
  /// What has more of them is recorded up to here.
  static constexpr std::size_t kMost = 400'000;
  /// A file that has more bytes gets no more launches, but for one that a check has ended.
  static constexpr long kMostBytes = 32 << 20;

  void add(const Event& event);
  /// The addresses of an access, or of what copies read, for the first times that its warp makes it.
  void add_addresses(const Request& request);
  /// An mbarrier is called so in the source.
  void add_name(std::uint64_t mbarrier, std::string name);
  const std::vector<Event>& events() const { return events_; }
  bool is_whole() const { return is_whole_; }

  /// Appends a line of JSON to `file`: the launch, lines, events. @param kernel its name
  /// @param diagnosis what ended it, null: nothing  @param first a block of the cluster whose events these are
  void write(const std::string& file, const std::string& kernel, const Launch& launch, std::size_t static_shared_bytes,
             const Diagnosis* diagnosis, uint3 first) const;

 private:
  struct Addresses {
    std::size_t event;
    std::uint32_t lanes;
    std::vector<std::uint64_t> of_lanes;
  };
  std::vector<Event> events_;
  std::vector<Addresses> addresses_;
  std::vector<std::pair<std::uint64_t, std::string>> names_;
  bool is_whole_ = true;
};

/// Where launches write their events; empty: nowhere. In the beginning, what COURSE_EVENTS says.
std::string& events_file();
/// Which block of a launch they are of: its number in the grid, x first. In the beginning, what COURSE_EVENTS_BLOCK says, else 0.
/// Of a launch that has no such block, the first.
std::uint64_t& events_block();

}  // namespace interpreter

/// @file
/// The CPU interpreter's interface for host code: options, device memory, errors, counters.
///
/// Kernels never include this file; they include common/device/device.cuh, which gives them CUDA C++ on both machines.
/// The manual is docs/interpreter.md.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "common/device/shared_bytes.h"

namespace interpreter {

/// In which order lanes, warps and blocks run. Any order is a legal one on a GPU, so a kernel must be right in all.
enum class Order { kForward, kReverse, kRandom };

/// What the interpreter does during a launch. Change it between launches, not during one.
struct Options {
  Order order = Order::kForward;
  std::uint64_t seed = 1;                          ///< of Order::kRandom
  bool memcheck = true;                            ///< accesses outside allocations and variables, misaligned accesses
  bool racecheck = true;                           ///< unordered accesses of two threads to one byte, shared and global
  bool initcheck = true;                           ///< reads of shared or global bytes that nothing has written
  bool count = true;                               ///< ncu's counters
  bool mma = true;                                 ///< false: mma instructions add nothing, which shows which sums come from them
  bool l2_model = false;                           ///< L2 hit rate and DRAM bytes (needs `count`); slower
  std::string gpu = "h200";                        ///< whose limits and caches to model: a100, h100, h200, 4090
  int workers = 0;                                 ///< blocks that run at the same time; 0: one per core
  std::size_t stack_bytes = 64 * 1024;             ///< stack of one CUDA thread
  std::size_t heap_bytes = 8 * 1024 * 1024;        ///< that malloc in kernels may give
  std::uint64_t step_budget = 100'000'000'000ull;  ///< memory accesses of one launch after which it counts as endless
  /// Called some times a second during launches that take longer than that, with the share of the blocks that have ended, and in
  /// the end with 1.
  std::function<void(double)> progress;
  /// Called for each element that a thread stores in global memory, atomics included, with the number of its block. By several
  /// threads of the host at the same time, if there are several workers.
  std::function<void(std::uint64_t block, const void* element)> on_store;
  /// A launch that takes longer says on stderr that it runs, and how far it is; again each time that it has taken twice as long.
  double patience_seconds = 1e9;
  double hang_seconds = 20;  ///< a thread that computes for so long without accessing memory or waiting counts as endless
};

/// The options of the next launch.
Options& options();

/// Streaming multiprocessors (SMs) of the GPU that the options name. @throws std::invalid_argument if it names none
unsigned count_multiprocessors();

/// What went wrong.
enum class Check {
  kLaunch,         ///< a launch that CUDA would refuse
  kMemcheck,       ///< out of bounds, misaligned, not device memory
  kRacecheck,      ///< two accesses with no order between them
  kInitcheck,      ///< a read of bytes that nothing has written
  kSynccheck,      ///< divergent barriers and collectives, deadlock
  kStackOverflow,  ///< a thread used more than its stack
  kException,      ///< a C++ exception left the kernel, a failed assert, a trap
  kEndless,        ///< the step budget is spent, or a thread spins without touching memory
};

/// Lower-case name of a check: "memcheck", "racecheck", ...
const char* name(Check check);

/// The first error of a launch, taken apart so that tests can ask for its pieces.
struct Diagnosis {
  Check check = Check::kLaunch;
  std::string what;      ///< one sentence: what happened
  std::string expected;  ///< what a correct kernel would have done
  std::string variable;  ///< label of the buffer, name of the __shared__ variable; empty if none is involved
  std::string file;      ///< source file of the access or call; empty if unknown
  int line = 0;
  int called_at = 0;      ///< where the line stands in a function that the kernel calls: the line of the call
  std::string called_in;  ///< the file of the call, where that is another one
  std::string kernel;
  uint3 block{}, thread{};
  int warp = -1, lane = -1;  ///< -1: not the fault of one thread

  /// The whole report, several lines.
  std::string text() const;
};

/// "   14 |   x[i] = 0;": a line of a source file as reports show it; empty where there is no such file or line.
std::string quoted_line(const std::string& file, int line);

/// Thrown by a launch that failed a check. Uncaught, it prints the report and ends the program with exit code 1.
class KernelError : public std::runtime_error {
 public:
  /// what() is the whole report.
  explicit KernelError(Diagnosis d) : std::runtime_error(d.text()), diagnosis(std::move(d)) {}
  Diagnosis diagnosis;
};

/// Counters of one kernel or one source line, as ncu counts them. metrics() gives ncu's names.
struct Counters {
  /// Loads, stores or atomics of global memory.
  struct Global {
    std::uint64_t requests = 0;  ///< instructions that a warp sent to the L1 cache
    std::uint64_t sectors = 0;   ///< 32-byte sectors that they touched
    std::uint64_t bytes = 0;     ///< bytes that the lanes asked for
    std::uint64_t lines = 0;     ///< 128-byte cache lines that they touched: passes through the L1 cache
  };
  /// Loads, stores or atomics of shared memory.
  struct Shared {
    std::uint64_t requests = 0;          ///< instructions of a warp
    std::uint64_t wavefronts = 0;        ///< passes through the 32 banks that they took
    std::uint64_t ideal_wavefronts = 0;  ///< passes that the same bytes take without a bank conflict
    std::uint64_t bytes = 0;
  };
  Global global_load, global_store, global_atomic;
  Shared shared_load, shared_store, shared_atomic;
  Global copy_read;   ///< cp.async: what it reads of global memory; no request where no lane reads
  Shared copy_write;  ///< cp.async: what it writes to shared memory; the wavefronts include those that fetch 16-byte copies
  /// Wavefronts of copy_write that bank conflicts cost, as ncu's two counters have it: that of the instructions (sm__sass_), that
  /// of the hardware (l1tex__).
  std::uint64_t copy_conflicts = 0, copy_conflicts_l1 = 0;
  Shared matrix_load;          ///< ldmatrix
  Shared matrix_store;         ///< stmatrix
  std::uint64_t mma = 0;       ///< mma instructions of a warp
  std::uint64_t barriers = 0;  ///< of a whole block: __syncthreads() and what is like it, once for each time that the block meets
  /// cp.async.bulk and cp.async.bulk.tensor, whose requests are instructions of a thread: what they read of global memory, the part
  /// of a box outside of the tensor included; what they write there.
  Global bulk_read, bulk_write;
  /// Of these, loads of boxes that lie wholly outside of their tensor. To write zeros takes the engine longer than to copy.
  std::uint64_t bulk_zeros = 0;
  Shared wgmma;  ///< wgmma instructions of a warp, four for a warpgroup's; what they read of shared memory

  /// Adds every counter.
  Counters& operator+=(const Counters& other);
};

/// One counter under ncu's metric name.
struct Metric {
  std::string name;
  double value;
};
/// `counters` under the names that `ncu --metrics` takes.
std::vector<Metric> metrics(const Counters& counters);

/// The L2 model's result, in 32-byte sectors unless said otherwise.
struct L2Result {
  std::uint64_t requested = 0;  ///< what the L1 caches read (l1tex__m_xbar2l1tex_read_sectors)
  std::uint64_t reads = 0;      ///< what of it is left to read once the same reads are merged (lts__t_sectors_srcunit_tex_op_read)
  std::uint64_t read_hits = 0;  ///< of `reads` (..._lookup_hit)
  std::uint64_t fabric_reads = 0;     ///< what one part of the L2 cache reads of another (lts__t_sectors_srcunit_ltcfabric_op_read)
  std::uint64_t writes = 0;           ///< lts__t_sectors_srcunit_tex_op_write
  std::uint64_t dram_read_bytes = 0;  ///< dram__bytes_read
  std::uint64_t dram_write_bytes = 0;  ///< dram__bytes_write
  std::uint64_t dirty_bytes = 0;       ///< what is still to be written to DRAM when the kernel ends
  /// Share of `reads` that hit, 0 to 1; 0 without reads.
  double hit_rate() const { return reads ? double(read_hits) / double(reads) : 0; }
};

/// Counters of one source line.
struct LineProfile {
  std::string file;  ///< path as the compiler was given it
  int line = 0;
  Counters counters;
};

/// What one launch did.
struct KernelProfile {
  std::string kernel;  ///< demangled name
  dim3 grid, block;
  std::size_t dynamic_shared_bytes = 0, static_shared_bytes = 0;
  bool dependent = false;  ///< see Launch
  Counters total;
  std::uint64_t most_mma_of_block = 0;  ///< mma instructions of the block that has most of them
  std::uint64_t most_mma_of_warp = 0;   ///< the same of a warp
  std::vector<LineProfile> lines;       ///< sorted by file and line
  L2Result l2;                          ///< zeros unless Options::l2_model
  std::uint64_t steps = 0;              ///< memory accesses of all threads
  double seconds = 0;                   ///< on this CPU
  /// What is no error and yet worth knowing, a sentence each: code that NVIDIA publishes, and that the memory model does not cover.
  std::vector<std::string> notes;
};

/// Notes of the same kind on what the host does: downloads of bytes that nothing has written. Since the program's start.
std::vector<std::string> host_notes();

/// The launches since the program's start or the last clear_profiles().
const std::vector<KernelProfile>& profiles();
void clear_profiles();  ///< forgets them; references from profiles() are invalid then

/// A table of `profile`, per source line and in total, for people.
std::string to_text(const KernelProfile& profile);

/// @name Device memory
/// One address range of the modelled GPU's size; pages cost memory only once they are touched. Prefer device::Buffer.
/// @{

/// `bytes` of memory, uninitialised; reports call it `label`.
/// @throws std::bad_alloc when the modelled GPU's memory is used up.
void* allocate(std::size_t bytes, const std::string& label = "");
/// The same for memory that the host may access by itself, as cudaMallocManaged() gives it.
void* allocate_managed(std::size_t bytes, const std::string& label = "");
void release(void* p);  ///< of what one of the two gave
/// Host to device: also marks the bytes as initialised. @throws std::out_of_range outside one allocation.
void copy_in(void* device, const void* host, std::size_t bytes);
/// Device to host. @throws std::out_of_range outside one allocation.
void copy_out(void* host, const void* device, std::size_t bytes);
/// Device to device, as cudaMemcpy does; counts as written. @throws std::out_of_range outside one allocation.
void copy_on_device(void* to, const void* from, std::size_t bytes);
/// From or to a __device__ or __constant__ variable, which host code may not touch itself.
void copy_variable(void* to, const void* from, std::size_t bytes);
/// Sets bytes, as cudaMemset does. @throws std::out_of_range outside one allocation.
void fill(void* device, int byte, std::size_t bytes);
/// @}

/// For a debugger's breakpoint conditions: whether the thread that runs now is thread (tx, ty, tz) of block (bx, by, bz).
bool at(unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty, unsigned tz);

/// A launch, as device::launch() hands it over.
struct Launch {
  const void* kernel;
  dim3 grid, block;
  std::size_t dynamic_shared_bytes;
  void (*invoke)(const void* closure);  ///< calls the kernel with the closure's arguments
  const void* closure;
  std::size_t closure_bytes;
  const char* name = nullptr;              ///< of the kernel; null: that of the function `kernel`
  bool kernel_is_known = true;             ///< whether `kernel` is the kernel itself: not where only a call could choose it
  std::vector<const void*> pointers = {};  ///< by parameter: what it points to, null where it is no pointer; empty if not known
  dim3 cluster = {1, 1, 1};                ///< blocks of a cluster
  bool dependent = false;                  ///< may begin before the launch before it has ended
  const void* stream = nullptr;            ///< that it goes to
  SharedBytes shared = {};                 ///< what the parts of dynamic shared memory are called
};
/// Launch::pointers of a kernel's arguments.
template <class... Parameters>
std::vector<const void*> pointers_among(const std::tuple<Parameters...>& arguments) {
  const auto pointer = [](const auto& argument) -> const void* {
    if constexpr (std::is_convertible_v<decltype(argument), const void*>)
      return argument;
    else
      return nullptr;
  };
  return std::apply([&](const auto&... each) { return std::vector<const void*>{pointer(each)...}; }, arguments);
}
/// Runs every thread of `launch` to its end. @throws KernelError for the first failed check.
void run(const Launch& launch);
/// Waits for all launches. They have ended when run() returns; what this changes is that a dependent launch that comes next has
/// none before it that it could forget to wait for. Copies, fills and releases of memory do the same.
void synchronize();

}  // namespace interpreter

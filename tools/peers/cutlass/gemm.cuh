/// @file
/// A peer of the steps: CUTLASS behind their contract, so that their program verifies and times it as it does them.
///
/// It takes what CUTLASS's fast kernels take, and refuses the rest: f16 or bf16 with C of the same type, no epilogue, a row-major
/// C, A and B row- or column-major, sizes and strides in chunks of 16 bytes. The tiles are candidates, of which the program
/// measures the fastest for each problem: who uses CUTLASS chooses a tile too, and cublasLt, beside it, is the best of its own
/// candidates.
#pragma once

#include <cutlass/cutlass.h>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/device/gemm_universal.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle_streamk.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>

#include "common/device/device.cuh"
#include "common/gemm/gemm.h"

namespace step_peer_cutlass {

using gemm::Matrix, gemm::Refused;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;

constexpr int kChunk = 8;  ///< elements in 16 bytes, what the kernels load and store at once

/// CUTLASS's name for an element type.
template <class T>
struct ElementOf;
template <>
struct ElementOf<__half> {
  using Type = cutlass::half_t;
};
template <>
struct ElementOf<__nv_bfloat16> {
  using Type = cutlass::bfloat16_t;
};

/// A multiplication in CUTLASS's terms: sizes, and the distances between rows or columns.
struct Call {
  int m, n, k;
  const void *A, *B;
  void* C;
  int64_t lda, ldb, ldc;
};

inline int attribute(cudaDeviceAttr which) {
  int value = 0, gpu = 0;
  DEVICE_CHECK(cudaGetDevice(&gpu));
  DEVICE_CHECK(cudaDeviceGetAttribute(&value, which, gpu));
  return value;
}
inline int multiprocessors() {
  static const int count = attribute(cudaDevAttrMultiProcessorCount);
  return count;
}
inline int compute_capability() {
  static const int value = 10 * attribute(cudaDevAttrComputeCapabilityMajor) + attribute(cudaDevAttrComputeCapabilityMinor);
  return value;
}

/// Memory for parts of sums, where stream-K needs it: as much as cuBLAS gets from the harness.
inline void* workspace(std::size_t bytes) {
  constexpr std::size_t kWorkspaceBytes = 32 << 20;
  if (bytes > kWorkspaceBytes)
    throw Refused("CUTLASS: this tile needs a workspace of " + std::to_string(bytes) + " bytes for this problem, and gets " +
                  std::to_string(kWorkspaceBytes) + ", as cuBLAS does");
  if (bytes == 0) return nullptr;
  static const device::Buffer<unsigned char> memory(kWorkspaceBytes, "CUTLASS workspace");
  return const_cast<unsigned char*>(memory.data());
}

/// @throws Refused for what CUTLASS says it cannot do, device::Error for everything else.
inline void check(cutlass::Status status, const char* call) {
  if (status == cutlass::Status::kSuccess) return;
  const std::string what = std::string("CUTLASS: ") + call + ": " + cutlassGetStatusString(status);
  if (status == cutlass::Status::kErrorInternal) throw device::Error(what);
  throw Refused(what);
}

/// Blocks and threads of a launch of CUTLASS's, for the harness. @return whether the launch is wanted
inline bool announce(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes) {
  device::last_launch() = {kernel, grid, block, shared_bytes};
  return !device::dry_run();
}

/// Which layouts of A and B a tile is compiled for: with all for each, it would take twice as long.
enum class Layouts {
  kRows,  ///< row-major A and B
  kAll    ///< all four
};
#ifdef COURSE_EVERY_TILE
constexpr bool kEveryTile = true;
#else
constexpr bool kEveryTile = false;
#endif

/// How a tile's problem is given to the blocks.
enum class Order {
  kTiles,   ///< a tile of C each, or one after the other
  kStreamK  ///< equal shares of all steps along k: parts of a tile are added through a workspace, in float
};

/// CUTLASS 2: mma.sync and cp.async, as in steps 03 to 07. Blocks go over C in groups of eight rows.
template <int block_m, int block_n, int block_k, int warp_m, int warp_n, int num_stages, Layouts layouts,
          Order order = Order::kTiles>
struct MmaTile {
  static constexpr Layouts kLayouts = layouts;
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = block_k;
  static inline const std::string kName = "mma.sync " + std::to_string(block_m) + "x" + std::to_string(block_n) + "x" +
                                          std::to_string(block_k) + " warp " + std::to_string(warp_m) + "x" +
                                          std::to_string(warp_n) + " s" + std::to_string(num_stages) +
                                          (order == Order::kStreamK ? " stream-K" : "");

  static void check_gpu() {
    if (compute_capability() < 80) throw Refused("CUTLASS: this tile needs compute capability 8.0 or higher");
  }

  template <class Element, class LayoutA, class LayoutB>
  static void run(const Call& c) {
    using Swizzle = std::conditional_t<order == Order::kStreamK, cutlass::gemm::threadblock::ThreadblockSwizzleStreamK,
                                       cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<8>>;
    using Gemm = cutlass::gemm::device::GemmUniversal<
        Element, LayoutA, Element, LayoutB, Element, Row, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80,
        cutlass::gemm::GemmShape<block_m, block_n, block_k>, cutlass::gemm::GemmShape<warp_m, warp_n, block_k>,
        cutlass::gemm::GemmShape<16, 8, 16>, cutlass::epilogue::thread::LinearCombination<Element, kChunk, float, float>, Swizzle,
        num_stages, kChunk, kChunk>;
    const typename Gemm::Arguments arguments(cutlass::gemm::GemmUniversalMode::kGemm, {c.m, c.n, c.k}, 1, {1.0f, 0.0f}, c.A, c.B,
                                             nullptr, c.C, 0, 0, 0, 0, c.lda, c.ldb, c.ldc, c.ldc);
    check(Gemm::can_implement(arguments), "can_implement");
    void* const memory = workspace(order == Order::kStreamK ? Gemm::get_workspace_size(arguments) : 0);
    if (!announce(reinterpret_cast<const void*>(cutlass::Kernel2<typename Gemm::GemmKernel>), Gemm::get_grid_shape(arguments),
                  Gemm::GemmKernel::kThreadCount, Gemm::kSharedStorageSize))
      return;
    Gemm gemm;
    check(gemm.initialize(arguments, memory, device::stream()), "initialize");
    check(gemm.run(device::stream()), "run");
  }
};

/// Who multiplies in a block of CUTLASS 3: one warp group loads, two multiply.
enum class Schedule {
  kPingPong,    ///< each of the two a tile of its own: one multiplies while the other stores
  kCooperative  ///< both the same tile, half each
};

/// CUTLASS 3: wgmma and TMA on compute capability 9.0, which steps 03 to 07 do not use. As many stages as fit into shared memory.
/// Blocks stay and take one tile after the other; `cluster_m` blocks load what they share of B once.
template <int block_m, int block_n, int block_k, Schedule schedule, int cluster_m, int swizzle, Layouts layouts,
          Order order = Order::kTiles>
struct WgmmaTile {
  static constexpr Layouts kLayouts = layouts;
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = block_k;
  static inline const std::string kName =
      std::string("wgmma ") + std::to_string(block_m) + "x" + std::to_string(block_n) + "x" + std::to_string(block_k) +
      (schedule == Schedule::kPingPong ? " ping-pong" : " cooperative") + " cluster " + std::to_string(cluster_m) + "x1" +
      (order == Order::kStreamK ? " stream-K" : " swizzle " + std::to_string(swizzle));

  static void check_gpu() {
    if (compute_capability() != 90) throw Refused("CUTLASS: this tile needs compute capability 9.0, Hopper");
  }

  template <class Element, class LayoutA, class LayoutB>
  static void run(const Call& c) {
    using Shape = cute::Shape<cute::Int<block_m>, cute::Int<block_n>, cute::Int<block_k>>;
    using Cluster = cute::Shape<cute::Int<cluster_m>, cute::_1, cute::_1>;
    constexpr bool kIsPingPong = schedule == Schedule::kPingPong;
    using MainSchedule = std::conditional_t<kIsPingPong, cutlass::gemm::KernelTmaWarpSpecializedPingpong,
                                            cutlass::gemm::KernelTmaWarpSpecializedCooperative>;
    using EpilogueSchedule =
        std::conditional_t<kIsPingPong, cutlass::epilogue::TmaWarpSpecialized, cutlass::epilogue::TmaWarpSpecializedCooperative>;
    using Scheduler =
        std::conditional_t<order == Order::kStreamK, cutlass::gemm::StreamKScheduler, cutlass::gemm::PersistentScheduler>;
    using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
        cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Shape, Cluster, cutlass::epilogue::collective::EpilogueTileAuto, float,
        float, void, Row, kChunk, Element, Row, kChunk, EpilogueSchedule>::CollectiveOp;  // void: no C is read
    using Main = typename cutlass::gemm::collective::CollectiveBuilder<
        cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, LayoutA, kChunk, Element, LayoutB, kChunk, float, Shape,
        Cluster, cutlass::gemm::collective::StageCountAutoCarveout<int(sizeof(typename Epilogue::SharedStorage))>,
        MainSchedule>::CollectiveOp;
    using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Main, Epilogue, Scheduler>;
    using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

    static const int clusters = [] {
      DEVICE_CHECK(cudaFuncSetAttribute(cutlass::device_kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        Kernel::SharedStorageSize));
      return cutlass::KernelHardwareInfo::query_device_max_active_clusters<Kernel>();
    }();
    typename Gemm::Arguments arguments{};
    arguments.mode = cutlass::gemm::GemmUniversalMode::kGemm;
    arguments.problem_shape = {c.m, c.n, c.k, 1};
    arguments.mainloop.ptr_A = static_cast<const Element*>(c.A), arguments.mainloop.dA = stride<typename Kernel::StrideA>(c.lda);
    arguments.mainloop.ptr_B = static_cast<const Element*>(c.B), arguments.mainloop.dB = stride<typename Kernel::StrideB>(c.ldb);
    arguments.epilogue.ptr_D = static_cast<Element*>(c.C), arguments.epilogue.dD = stride<typename Kernel::StrideD>(c.ldc);
    arguments.epilogue.thread.alpha = 1, arguments.epilogue.thread.beta = 0;
    arguments.hw_info.sm_count = multiprocessors(), arguments.hw_info.max_active_clusters = clusters;
    if constexpr (order == Order::kTiles) arguments.scheduler.max_swizzle_size = swizzle;
    check(Gemm::can_implement(arguments), "can_implement");
    void* const memory = workspace(Gemm::get_workspace_size(arguments));
    typename Gemm::Params parameters = Kernel::to_underlying_arguments(arguments, memory);
    if (!announce(reinterpret_cast<const void*>(cutlass::device_kernel<Kernel>), Gemm::get_grid_shape(parameters),
                  Kernel::get_block_shape(), Kernel::SharedStorageSize))
      return;
    check(Kernel::initialize_workspace(arguments, memory, device::stream()), "initialize_workspace");
    check(Gemm::run(parameters, device::stream()), "run");
  }

 private:
  /// One of the three strides (rows, columns, batch) is 1 and known, the batch's is not used.
  template <class Stride>
  static Stride stride(int64_t distance) {
    Stride s{};
    if constexpr (std::is_same_v<std::decay_t<decltype(cute::get<0>(s))>, int64_t>)
      cute::get<0>(s) = distance;
    else
      cute::get<1>(s) = distance;
    return s;
  }
};

/// Distance of the rows of a row-major operand, or of the columns of a column-major one. @throws Refused for other strides
inline int64_t leading_dimension(const char* name, const void* data, bool row_major, int64_t rows, int64_t cols, int64_t row_stride,
                                 int64_t col_stride) {
  const int64_t length = row_major ? cols : rows, unit = row_major ? col_stride : row_stride;
  const int64_t distance = row_major ? row_stride : col_stride, others = row_major ? rows : cols;
  const std::string who = std::string("CUTLASS: ") + name;
  if (unit != 1 && length > 1) throw Refused(who + " is neither row-major nor column-major as this kernel needs it");
  if (others > 1 && distance < length) throw Refused(who + " has rows or columns that repeat, overlap or run backwards");
  if (length % kChunk || (others > 1 && distance % kChunk) || reinterpret_cast<std::uintptr_t>(data) % 16)
    throw Refused(who + " does not consist of aligned chunks of 16 bytes: rows or columns of " + std::to_string(length) +
                  " elements, " + std::to_string(distance) + " apart");
  return others > 1 ? distance : length;
}

template <class Tile, class In, class Out, class Epilogue>
void gemm(Matrix<const In> A, Matrix<const In> B, Matrix<Out> C, Epilogue) {
  gemm::check(A, B, C);
  if constexpr (!std::is_same_v<In, Out> || !std::is_same_v<Epilogue, gemm::Identity>) {
    throw Refused("CUTLASS: this peer is built for a C of A's type and without an epilogue");
  } else {
    if (C.rows == 0 || C.cols == 0) return;
    if (A.cols == 0) throw Refused("CUTLASS: k = 0 is nothing that these kernels do");
    Tile::check_gpu();
    if (std::max({C.rows, C.cols, A.cols}) > std::numeric_limits<int>::max())
      throw Refused("CUTLASS: sizes have to fit into 31 bits");
    // A vector is both row- and column-major: rows first.
    const bool a_rows = A.col_stride == 1 || A.cols == 1, b_rows = B.col_stride == 1 || B.cols == 1;
    const auto distance = [](const char* name, const auto& m, bool row_major) {
      return leading_dimension(name, m.data, row_major, m.rows, m.cols, m.row_stride, m.col_stride);
    };
    const Call call{static_cast<int>(C.rows), static_cast<int>(C.cols), static_cast<int>(A.cols), A.data, B.data, C.data,
                    distance("A", A, a_rows), distance("B", B, b_rows), distance("C", C, true)};
    using Element = typename ElementOf<In>::Type;
    if (a_rows && b_rows) {
      Tile::template run<Element, Row, Row>(call);
    } else if constexpr (kEveryTile || Tile::kLayouts == Layouts::kAll) {
      if (a_rows)
        Tile::template run<Element, Row, Column>(call);
      else if (b_rows)
        Tile::template run<Element, Column, Row>(call);
      else
        Tile::template run<Element, Column, Column>(call);
    } else {
      throw Refused("CUTLASS: compiled for row-major A and B alone; the CMake option COURSE_EVERY_TILE compiles the rest");
    }
  }
}

using Inputs = gemm::TypeList<__half, __nv_bfloat16>;
using enum Schedule;
using enum Layouts;
using Tiles = gemm::TypeList<
    // Hopper: large tiles for large problems, then what fills the GPU with small ones, then few rows and a long k.
    WgmmaTile<128, 256, 64, kCooperative, 2, 1, kAll>, WgmmaTile<128, 256, 64, kCooperative, 2, 8, kAll>,
    WgmmaTile<64, 256, 64, kPingPong, 2, 8, kAll>, WgmmaTile<128, 128, 64, kCooperative, 2, 1, kAll>,
    WgmmaTile<64, 128, 64, kPingPong, 1, 1, kRows>, WgmmaTile<64, 64, 128, kPingPong, 1, 1, kRows>,
    WgmmaTile<128, 128, 64, kCooperative, 1, 1, kRows, Order::kStreamK>,
    // Ampere and later, on Hopper too.
    MmaTile<128, 128, 32, 64, 64, 4, kAll>, MmaTile<256, 128, 32, 64, 64, 3, kRows>, MmaTile<128, 256, 64, 64, 64, 3, kRows>,
    MmaTile<64, 64, 64, 32, 32, 5, kRows>, MmaTile<64, 64, 64, 32, 32, 5, kRows, Order::kStreamK>>;
using MoreTiles = gemm::TypeList<>;

}  // namespace step_peer_cutlass

/// @file
/// Step 15: few rows. The blocks of a cluster share the k of a tile, and leave their sums in each other's shared memory.
///
/// Changes since 11:
/// - A and B change places: 64 columns of B are the rows of a wgmma, and A's few rows its columns.
/// - Each block of a cluster has a share of k, and some rows of the tile. It sends each row's sums to the block that has the row,
///   into its shared memory: mapa(). It adds all blocks' sums of its own rows.
/// - A step along k is two panels long. L2 fetches no more of B than a panel is wide: in nn, another block wants the rest.
/// - The next launch begins early, as in 14.
#pragma once

#include "common/device/chunk_access.cuh"
#include "common/device/cluster.cuh"
#include "common/device/dependent_launch.cuh"
#include "common/device/element.cuh"
#include "common/device/fallback.cuh"
#include "common/device/learnt/wgmma_slice.cuh"
#include "common/gemm/activation.h"

namespace step_15_few_rows {

using device::Contiguous, device::L2Promotion, device::Major, device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;
using learnt::copy_panels, learnt::kPanel, learnt::kWarpgroup, learnt::kWgmmaK, learnt::RingPlace, learnt::slice_descriptor;

/// What a block and a warpgroup compute of C, and what follows from it.
template <int block_m, int num_stages, int split_k>
struct Tile {
  static constexpr int kBlockM = block_m, kBlockN = kPanel, kBlockK = 2 * kPanel;  // the cluster's tile of C, and steps along k
  static constexpr int kNumStages = num_stages, kSplitK = split_k;  // tiles in shared memory; blocks of a cluster: shares of k
  static constexpr int kRows = std::min(kBlockM, kPanel);           // that a warpgroup multiplies: wgmma's columns
  static constexpr int kMultiplying = kBlockM / kRows;              // warpgroups
  static constexpr int kThreads = kMultiplying * kWarpgroup + 32;   // the last warp copies
  static constexpr int kCopiedBytes = (kBlockN + kBlockM) * kBlockK * 2;  // into a stage
  static constexpr int kMyRows = kBlockM / kSplitK;                       // of the tile of C: a block adds and stores them
  static constexpr int kPitch = kBlockN + 4;  // from one row of sums to the next: a store's 32 floats in all banks

  template <Contiguous a>
  struct Stage {  // of the ring: a tile of B, then A's. If A lies along m, a row of its box takes a whole panel's row
    static constexpr int kRowsA = a == Contiguous::kK ? kBlockM : kMultiplying * kPanel;
    static constexpr int kElements = (kBlockN + kRowsA) * kBlockK;
    static constexpr int kSharedBytes = kNumStages * (kElements * 2 + 2 * int{sizeof(Mbarrier)}) + kBlockM * kPitch * 4;
  };
  static constexpr int kSharedBytes = Stage<Contiguous::kK>::kSharedBytes;

  static_assert(kNumStages > 1 && Stage<Contiguous::kMN>::kSharedBytes <= 227 * 1024, "stages to fill and to multiply, in an SM");
  static_assert(kBlockM % kSplitK == 0, "all blocks have equally many rows");
};

/// One cluster, one tile of C; a block has a share of its k. `c_chunks`: the rows of C are aligned chunks.
template <class Tile, Contiguous a_contiguous, Contiguous b_contiguous, class In, class Out, class Epilogue>
__global__ __launch_bounds__(Tile::kThreads) void gemm_kernel(const __grid_constant__ TensorMap map_a,
                                                              const __grid_constant__ TensorMap map_b, Matrix<Out> C, int tiles_m,
                                                              int all_tiles_k, bool c_chunks, Epilogue epilogue) {
  constexpr Major kMajorA = a_contiguous == Contiguous::kK ? Major::kK : Major::kMN;
  constexpr Major kMajorB = b_contiguous == Contiguous::kK ? Major::kK : Major::kMN;
  using Stage = typename Tile::template Stage<a_contiguous>;
  constexpr int kPanels = Tile::kBlockK / kPanel, kPanelB = Tile::kBlockN * kPanel, kPanelA = Stage::kRowsA * kPanel;
  constexpr int kTileB = kPanels * kPanelB, kSlices = kPanel / kWgmmaK;  // elements before A's begin; wgmmas along a panel's k
  In* const sBA = device::dynamic_smem<In>();  // kNumStages times (kBlockN, kBlockK) of B and (kRowsA, kBlockK) of A
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(sBA + Tile::kNumStages * Stage::kElements);  // (kNumStages)
  Mbarrier* const empty = full + Tile::kNumStages;                                                // (kNumStages)
  float* const sC = reinterpret_cast<float*>(empty + Tile::kNumStages);  // (kSplitK, kMyRows, kPitch): all blocks' sums of my rows

  // 1. Which tile is mine, and which share of it?
  const int share = static_cast<int>(blockIdx.x % Tile::kSplitK), tile = static_cast<int>(blockIdx.x / Tile::kSplitK);
  const int row_0 = tile % tiles_m * Tile::kBlockM, col_0 = tile / tiles_m * Tile::kBlockN;
  const int first_k = share * all_tiles_k / Tile::kSplitK, tiles_k = (share + 1) * all_tiles_k / Tile::kSplitK - first_k;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warpgroup = threadIdx.x / kWarpgroup;
  if (warp == 4 * Tile::kMultiplying && device::elect_sync()) {
    device::prefetch_tensormap(&map_a);  // the first copy need not wait for them
    device::prefetch_tensormap(&map_b);
    for (int i = 0; i < Tile::kNumStages; ++i) {
      device::mbarrier_init(&full[i], 1);
      device::mbarrier_init(&empty[i], 4 * Tile::kMultiplying);  // warps
    }
    device::fence_mbarrier_init();
  }
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();  // the barriers exist before anybody waits for them, and each block's memory before others write
  device::griddepcontrol_wait();   // the launch before has read and written all that it had to

  // 2. Main loop: one thread's, which copies ...
  if (warpgroup == Tile::kMultiplying) {
    if (device::elect_sync()) {
      for (int tile_k = 0; tile_k < tiles_k; ++tile_k) {
        const RingPlace<Tile::kNumStages> place(tile_k);
        In* const s = sBA + place.stage * Stage::kElements;
        device::mbarrier_wait_parity(&empty[place.stage], place.phase ^ 1);  // what was there has been read; at first nothing was
        device::mbarrier_arrive_expect_tx(&full[place.stage], Tile::kCopiedBytes);
        for (int i = 0; i < kPanels; ++i) {
          const int k = (first_k + tile_k) * kPanels + i;
          copy_panels<b_contiguous, Tile::kBlockN>(s + i * kPanelB, &map_b, col_0, C.cols, k, &full[place.stage]);
          copy_panels<a_contiguous, Tile::kBlockM>(s + kTileB + i * kPanelA, &map_a, row_0, C.rows, k, &full[place.stage]);
        }
      }
      device::griddepcontrol_launch_dependents();
    }
    return;
  }

  // ... and that of the warpgroups that multiply
  float rC[Tile::kRows / 2] = {};  // (kBlockN, kRows): columns of C, and rows
  int tile_k = 0;
  do {  // each share has a tile: the launcher sees to that
    const RingPlace<Tile::kNumStages> place(tile_k);
    device::mbarrier_wait_parity(&full[place.stage], place.phase);
    const In* const sB = sBA + place.stage * Stage::kElements;
    const In* const sA = sB + kTileB + warpgroup * kPanel * kPanel;
    device::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kPanels * kSlices; ++i) {
      const uint64_t b = slice_descriptor<b_contiguous>(sB + i / kSlices * kPanelB, i % kSlices);
      const uint64_t a = slice_descriptor<a_contiguous>(sA + i / kSlices * kPanelA, i % kSlices);
      device::wgmma_m64k16<In, Tile::kRows, kMajorB, kMajorA>(rC, b, a, true);
    }
    device::wgmma_commit_group();
    device::wgmma_wait_group<1>();  // the tile before has been multiplied: its stage is empty
    if (lane == 0 && tile_k > 0) device::mbarrier_arrive(&empty[RingPlace<Tile::kNumStages>(tile_k - 1).stage]);
  } while (++tile_k < tiles_k);
  device::wgmma_wait_group<0>();
  device::barrier_sync(1, Tile::kMultiplying * kWarpgroup);  // nobody waits at an mbarrier any more
  // As in 10: without this, ptxas 13.0 has the products wait for each other (C7514). The empty ones lie behind the full ones.
  if (threadIdx.x < 2 * Tile::kNumStages) device::mbarrier_inval(&full[threadIdx.x]);

  // 3. Sums go to the block that adds and stores their row
  const int first_row = warpgroup * Tile::kRows + lane % 4 * 2, my_col = warp % 4 * 16 + lane / 4;
#pragma unroll
  for (int i = 0; i < Tile::kRows / 2; ++i) {  // four sums are of eight rows of C: two of them, in two columns
    const int row = first_row + i / 4 * 8 + i % 2;
    float* const to = sC + (share * Tile::kMyRows + row % Tile::kMyRows) * Tile::kPitch + my_col + i % 4 / 2 * 8;
    *device::mapa(to, row / Tile::kMyRows) = rC[i];
  }
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();  // the sums of all blocks are there

  // 4. Epilogue of my rows, four neighbours for each thread
  constexpr int kQuads = Tile::kBlockN / 4, kRowsAtATime = Tile::kMultiplying * kWarpgroup / kQuads;
  const int my_row_0 = row_0 + share * Tile::kMyRows, col = static_cast<int>(threadIdx.x) % kQuads * 4;
  const int rows_left = static_cast<int>(C.rows) - my_row_0, rows = rows_left < Tile::kMyRows ? rows_left : Tile::kMyRows;
#pragma unroll
  for (int i = 0; i < Tile::kMyRows; i += kRowsAtATime) {
    const int row = i + static_cast<int>(threadIdx.x) / kQuads;
    if (row < rows) {
      float sum[4] = {};
#pragma unroll
      for (int other = 0; other < Tile::kSplitK; ++other) {  // in this order: the same bits in every run
        const float4 x = *reinterpret_cast<const float4*>(sC + (other * Tile::kMyRows + row) * Tile::kPitch + col);
        sum[0] += x.x, sum[1] += x.y, sum[2] += x.z, sum[3] += x.w;
      }
      Out out[4];
      for (int j = 0; j < 4; ++j) out[j] = device::from_float<Out>(gemm::in_column(epilogue, col_0 + col + j)(sum[j]));
      device::store_quad(C.at(my_row_0 + row, col_0 + col), C.col_stride, C.cols - col_0 - col, c_chunks, out);
    }
  }
}

template <class Tile, class In, class Out, class Epilogue>
void gemm(Matrix<const In> A, Matrix<const In> B, Matrix<Out> C, Epilogue epilogue) {
  gemm::check(A, B, C);
  const int64_t tiles_m = ceil_div<int64_t>(C.rows, Tile::kBlockM), tiles_n = ceil_div<int64_t>(C.cols, Tile::kBlockN);
  if (tiles_m * tiles_n == 0) return;
  if (!device::has_tensor_map(A) || !device::has_tensor_map(B.transposed())) return device::fallback_gemm(A, B, C, epilogue);
  const int64_t tiles_k = std::max<int64_t>(ceil_div<int64_t>(A.cols, Tile::kBlockK), Tile::kSplitK);  // past the end: zeros

  // Strides become a layout once, here: a kernel for each pair of transpositions.
  device::with_contiguous(A, B, [&](auto a, auto b) {
    device::launch_dependent_clusters(
        gemm_kernel<Tile, a(), b(), In, Out, Epilogue>, gemm::grid_size(tiles_m * tiles_n * Tile::kSplitK), Tile::kThreads,
        dim3(Tile::kSplitK), Tile::template Stage<a()>::kSharedBytes, device::box_map(A, a(), Tile::kRows, kPanel),
        device::box_map(B.transposed(), b(), kPanel, kPanel, L2Promotion::k128), C, static_cast<int>(tiles_m),
        static_cast<int>(tiles_k), device::chunks_aligned(C.data, C.col_stride, C.row_stride), epilogue);
  });
}

using Inputs = gemm::TypeList<__half, __nv_bfloat16>;
using Tiles = gemm::TypeList<Tile<8, 5, 2>>;
using MoreTiles = gemm::TypeList<Tile<8, 4, 1>, Tile<8, 5, 4>, Tile<16, 4, 1>, Tile<16, 5, 2>, Tile<16, 6, 2>, Tile<16, 5, 4>,
                                 Tile<32, 4, 1>, Tile<32, 4, 2>, Tile<32, 5, 4>, Tile<64, 5, 2>, Tile<64, 5, 4>, Tile<128, 4, 2>>;

}  // namespace step_15_few_rows

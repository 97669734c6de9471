/// @file
/// Step 15: few rows. The blocks of a cluster share the k of a tile, and send their sums into each other's shared memory.
///
/// Changes since 11:
/// - A and B change places: 64 columns of B are the rows of a wgmma, and A's few rows its columns. One warpgroup multiplies.
/// - Each block of a cluster has a share of k, and adds a share of the sums. Those of the others come as the last tiles of the
///   ring, by st_async(). C's rows are put together in shared memory, and stored in chunks.
/// - The next launch begins early, as in 14. What it copies first, L2 fetches before it waits: cp_async_bulk_prefetch_tensor_2d().
/// - L2 fetches no more of B than a panel is wide, for in nn, another block wants the rest; and it keeps B no longer than it must.
#pragma once

#include "common/device/cluster.cuh"
#include "common/device/dependent_launch.cuh"
#include "common/device/fallback.cuh"
#include "common/device/learnt/wgmma_slice.cuh"
#include "common/device/operand_box.cuh"
#include "common/device/store_fragments.cuh"

namespace step_15_few_rows {

using device::Contiguous, device::Floats, device::Major, device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;
using learnt::copy_panels, learnt::kPanel, learnt::kWarpgroup, learnt::kWgmmaK, learnt::RingPlace, learnt::slice_descriptor;

/// What a cluster and a block compute of C, and what follows from it.
template <int block_m, int block_k, int num_stages, int split_k>
struct Tile {
  static constexpr int kBlockM = block_m, kBlockN = kPanel, kBlockK = block_k;  // the cluster's tile of C, and steps along k
  static constexpr int kNumStages = num_stages, kSplitK = split_k;  // tiles in shared memory; blocks of a cluster: shares of k
  static constexpr int kThreads = kWarpgroup + 32;                  // one warpgroup multiplies, one warp copies
  static constexpr int kMine = kBlockM / 2 / kSplitK;               // sums that a thread adds and stores: its block's share
  static constexpr int kParts = kMine < 8 ? 1 : 2, kPart = kMine / kParts;     // while one part comes, another is stored
  static constexpr int kOthersBytes = (kSplitK - 1) * kPart * kWarpgroup * 4;  // what the others send of a part
  template <Contiguous a>
  struct Stage {  // of the ring: a tile of B, then A's. If A lies along m, a row of its box takes a whole panel's row
    static constexpr int kRowsA = a == Contiguous::kK ? kBlockM : std::max(kBlockM, kPanel);
    static constexpr int kTileB = kBlockN * kBlockK, kTileA = kRowsA * kBlockK, kElements = kTileB + kTileA;
    static constexpr auto kSharedBytes =
        device::ring(kNumStages, {"tile of B", 2 * kTileB, kPanel * 128}, {"tile of A", 2 * kTileA, kRowsA * 128})
            .barriers(kNumStages)
            .with({"barrier all_ready", sizeof(Mbarrier)});
  };
  static constexpr auto kSharedBytes = Stage<Contiguous::kK>::kSharedBytes;
  static_assert(kNumStages > 2 && Stage<Contiguous::kMN>::kSharedBytes <= 227 * 1024 && kBlockM % (2 * kSplitK) == 0);
};

/// One cluster, one tile of C; a block has a share of its k. With tile `begin_next` along it, the next launch may begin.
template <class Tile, Contiguous a_contiguous, Contiguous b_contiguous, class In, class Out, class Epilogue>
__global__ __launch_bounds__(Tile::kThreads) void gemm_kernel(const __grid_constant__ TensorMap map_a,
                                                              const __grid_constant__ TensorMap map_b, Matrix<Out> C, int tiles_m,
                                                              int box_rows, int all_tiles_k, int begin_next, bool c_chunks,
                                                              Epilogue epilogue) {
  constexpr Major kMajorA = a_contiguous == Contiguous::kK ? Major::kK : Major::kMN;
  constexpr Major kMajorB = b_contiguous == Contiguous::kK ? Major::kK : Major::kMN;
  using Stage = typename Tile::template Stage<a_contiguous>;
  constexpr int kPanels = Tile::kBlockK / kPanel, kPanelB = Tile::kBlockN * kPanel, kPanelA = Stage::kRowsA * kPanel;
  constexpr int kTileB = kPanels * kPanelB, kSlices = kPanel / kWgmmaK;  // elements before A's begin; wgmmas along a panel's k
  constexpr int kChunks = kPanel * 2 / 16;                               // of a panel's row
  In* const sBA = device::dynamic_smem<In>();  // kNumStages times (kBlockN, kBlockK) of B and (kRowsA, kBlockK) of A
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(sBA + Tile::kNumStages * Stage::kElements);  // (kNumStages)
  Mbarrier* const empty = full + Tile::kNumStages;                                                // (kNumStages)
  Mbarrier* const all_ready = empty + Tile::kNumStages;                                           // for the sums of the others

  // 1. Which tile is mine, and which share of it?
  const int share = static_cast<int>(blockIdx.x % Tile::kSplitK), tile = static_cast<int>(blockIdx.x / Tile::kSplitK);
  const int row_0 = tile % tiles_m * Tile::kBlockM, col_0 = tile / tiles_m * Tile::kBlockN;
  const auto first_k = [&](int share) { return share * all_tiles_k / Tile::kSplitK; };
  const auto tiles_k = [&](int share) { return first_k(share + 1) - first_k(share); };
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 4 && device::elect_sync()) {
    for (int i = 0; i < Tile::kNumStages; ++i) device::mbarrier_init(&full[i], 1), device::mbarrier_init(&empty[i], 4);  // warps
    device::mbarrier_init(all_ready, Tile::kSplitK);
    device::fence_mbarrier_init();
  }
  // A box of A has no row that A lacks: the engine takes longer for a row of zeros than for one of A. They are zeros for good.
  const int rows_a = ceil_div(static_cast<int>(std::min<int64_t>(Tile::kBlockM, C.rows - row_0)), box_rows) * box_rows;
  const int left = (Tile::kBlockM - rows_a) * kChunks;  // chunks of a panel
  for (int i = threadIdx.x; i < Tile::kNumStages * kPanels * left; i += Tile::kThreads) {
    In* const panel = sBA + i / left / kPanels * Stage::kElements + kTileB + i / left % kPanels * kPanelA;
    reinterpret_cast<uint4*>(panel)[rows_a * kChunks + i % left] = {};
  }
  if (left > 0) device::fence_proxy_async();
  device::barrier_cluster_arrive();
  if (warp == 0 && device::elect_sync()) {  // it began early: meanwhile L2 may fetch half a ring of B
    const int k = first_k(share) * Tile::kBlockK;
    for (int i = 0; 2 * i < Tile::kNumStages * kPanels; ++i) device::prefetch_box<b_contiguous>(&map_b, col_0, k + i * kPanel);
    device::prefetch_box<a_contiguous>(&map_a, row_0, k + tile / tiles_m * kPanel);  // all need all of A: another panel each
  }
  device::barrier_cluster_wait();  // the barriers exist before anybody waits for them, and each block's memory before others write
  device::griddepcontrol_wait();   // the launch before has read and written all that it had to

  // 2. Main loop: one thread's, which copies ...
  if (warp == 4) {
    if (device::elect_sync()) {
      for (int tile_k = 0; tile_k < tiles_k(share); ++tile_k) {
        if (tile_k == begin_next) device::griddepcontrol_launch_dependents();
        const RingPlace<Tile::kNumStages> place(tile_k);
        In* const s = sBA + place.stage * Stage::kElements;
        device::mbarrier_wait_parity(&empty[place.stage], place.phase ^ 1);  // what was there has been read; at first nothing was
        device::mbarrier_arrive_expect_tx(&full[place.stage], (Tile::kBlockN + rows_a) * Tile::kBlockK * 2);
        for (int i = 0; i < kPanels; ++i) {
          const int k = (first_k(share) + tile_k) * kPanels + i;
          device::copy_box_once<b_contiguous>(s + i * kPanelB, &map_b, col_0, k * kPanel, &full[place.stage]);
          In* const sA = s + kTileB + i * kPanelA;
          if constexpr (a_contiguous == Contiguous::kK) {
            for (int row = 0; row < rows_a; row += box_rows)
              device::cp_async_bulk_tensor_2d(sA + row * kPanel, &map_a, k * kPanel, row_0 + row, &full[place.stage]);
          } else {
            copy_panels<a_contiguous, Tile::kBlockM>(sA, &map_a, row_0, C.rows, k, &full[place.stage]);
          }
        }
      }
      for (int part = 0; part < Tile::kParts; ++part) {  // behind all tiles: the others' sums
        const RingPlace<Tile::kNumStages> place(tiles_k(share) + part);
        device::mbarrier_wait_parity(&empty[place.stage], place.phase ^ 1);
        device::mbarrier_arrive_expect_tx(&full[place.stage], Tile::kOthersBytes);
      }
      for (int rank = 0; rank < Tile::kSplitK; ++rank) device::mbarrier_arrive_cluster(all_ready, rank);
    }
    return;
  }

  // ... and that of the warpgroup that multiplies
  float rC[Tile::kBlockM / 2] = {};  // (kBlockN, kBlockM): columns of C, and rows
  int tile_k = 0;
  do {  // each share has a tile: the launcher sees to that
    const RingPlace<Tile::kNumStages> place(tile_k);
    device::mbarrier_wait_parity(&full[place.stage], place.phase);
    const In *const sB = sBA + place.stage * Stage::kElements, *const sA = sB + kTileB;
    device::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kPanels * kSlices; ++i) {
      const uint64_t b = slice_descriptor<b_contiguous>(sB + i / kSlices * kPanelB, i % kSlices);
      const uint64_t a = slice_descriptor<a_contiguous>(sA + i / kSlices * kPanelA, i % kSlices);
      device::wgmma_m64k16<In, Tile::kBlockM, kMajorB, kMajorA>(rC, b, a, true);
    }
    device::wgmma_commit_group();
    device::wgmma_wait_group<1>();  // the tile before has been multiplied: its stage is empty
    if (lane == 0 && tile_k > 0) device::mbarrier_arrive(&empty[RingPlace<Tile::kNumStages>(tile_k - 1).stage]);
  } while (++tile_k < tiles_k(share));
  device::wgmma_wait_group<0>();
  // 3. Each sum goes to the block that adds it
  constexpr int kMine = Tile::kMine, kPart = Tile::kPart, kVector = std::min(kPart, 4);
  const auto others = [&](int stage, int sender, int i) {  // what it sends of this thread's sums, from number i of the part on
    return reinterpret_cast<Floats<kVector>*>(sBA + stage * Stage::kElements) + (sender * kPart + i) / kVector * kWarpgroup +
           threadIdx.x;
  };
  float mine[Tile::kParts][kPart] = {};
  device::mbarrier_wait_parity(all_ready, 0);
#pragma unroll
  for (int i = 0; i < Tile::kBlockM / 2; i += kVector) {
    const int to = i / kMine, stage = (tiles_k(to) + i % kMine / kPart) % Tile::kNumStages;
    const auto& x = reinterpret_cast<const float(&)[kVector]>(rC[i]);
    if (to != share) device::st_async(others(stage, share - (share > to), i % kPart), x, &full[stage], to);
    for (int j = 0; j < kVector; ++j) mine[i % kMine / kPart][i % kPart + j] += to == share ? x[j] : 0;
  }
  // 4. Epilogue, part by part. Behind what the others sent, my sums become rows of C
  static_assert(Tile::kOthersBytes + device::kStoreShareElements<kPart, Out> * int{sizeof(Out)} <= Stage::kElements * 2);
#pragma unroll
  for (int part = 0; part < Tile::kParts; ++part) {
    const RingPlace<Tile::kNumStages> place(tiles_k(share) + part);
    device::mbarrier_wait_parity_acquire_cluster(&full[place.stage], place.phase);
#pragma unroll
    for (int i = 0; i < (Tile::kSplitK - 1) * kPart; i += kVector) {  // in this order: the same bits in every run
      const Floats<kVector> x = *others(place.stage, i / kPart, i % kPart);
      for (int j = 0; j < kVector; ++j) mine[part][i % kPart + j] += x.x[j];
    }
    Out* const rows = reinterpret_cast<Out*>(others(place.stage, Tile::kSplitK - 1, 0) - threadIdx.x);
    device::store_share_transposed(mine[part], share * Tile::kParts + part, rows, C, row_0, col_0, c_chunks, epilogue);
  }
}

template <class Tile, class In, class Out, class Epilogue>
void gemm(Matrix<const In> A, Matrix<const In> B, Matrix<Out> C, Epilogue epilogue) {
  gemm::check(A, B, C);
  const int64_t tiles_m = ceil_div<int64_t>(C.rows, Tile::kBlockM), tiles_n = ceil_div<int64_t>(C.cols, Tile::kBlockN);
  if (tiles_m * tiles_n == 0) return;
  if (!device::has_tensor_map(A) || !device::has_tensor_map(B.transposed())) return device::fallback_gemm(A, B, C, epilogue);
  const int64_t tiles_k = std::max<int64_t>(ceil_div<int64_t>(A.cols, Tile::kBlockK), Tile::kSplitK);  // past the end: zeros
  // Before a block ends, or two of the next launch begin in its SM, and none in another. With more blocks than SMs: as measured.
  const unsigned blocks = gemm::grid_size(tiles_m * tiles_n * Tile::kSplitK);
  const int share = static_cast<int>(tiles_k / Tile::kSplitK), early = std::max(share * 7 / 8, share - 512 / Tile::kBlockK);
  const int late = Tile::kSplitK > 1 ? share - 1 : -1;
  const int begin_next = blocks <= device::multiprocessors() ? early : late;
  // As many rows as A has, in whole patterns of the swizzle.
  const int rows = static_cast<int>(std::min<int64_t>(C.rows, Tile::kBlockM)), boxes = ceil_div(rows, int{kPanel});
  const int rows_of_k = ceil_div(ceil_div(rows, boxes), 8) * 8;
  // Strides become a layout once, here: a kernel for each pair of transpositions.
  device::with_contiguous(A, B, [&](auto a, auto b) {
    const int box_rows = a() == Contiguous::kK ? rows_of_k : Tile::kBlockM;
    device::launch_dependent_clusters(
        gemm_kernel<Tile, a(), b(), In, Out, Epilogue>, blocks, Tile::kThreads, dim3(Tile::kSplitK),
        Tile::template Stage<a()>::kSharedBytes, device::box_map(A, a(), std::min(box_rows, int{kPanel}), kPanel),
        device::box_map(B.transposed(), b(), kPanel, kPanel, device::L2Promotion::k128), C, static_cast<int>(tiles_m), box_rows,
        static_cast<int>(tiles_k), begin_next, device::chunks_aligned(C.data, C.col_stride, C.row_stride), epilogue);
  });
}

using Inputs = gemm::TypeList<__half, __nv_bfloat16>;
using Tiles = gemm::TypeList<Tile<8, 128, 5, 2>>;
using MoreTiles =
    gemm::TypeList<Tile<8, 128, 4, 1>, Tile<16, 128, 5, 2>, Tile<16, 128, 5, 4>, Tile<32, 128, 4, 1>, Tile<32, 64, 9, 2>,
                   Tile<32, 128, 4, 4>, Tile<64, 64, 7, 2>, Tile<64, 64, 7, 4>, Tile<128, 64, 8, 2>>;

}  // namespace step_15_few_rows

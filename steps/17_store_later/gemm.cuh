/// @file
/// Step 17: C waits in registers, and is stored while the next tile is multiplied.
///
/// Changes since 14:
/// - A warpgroup packs its sums, two in a register, and begins the next tile. Between its products it stores them: store_panel().
/// - Nobody takes turns: both warpgroups have half of each tile. B comes in whole panels.
#pragma once

#include "common/device/dependent_launch.cuh"
#include "common/device/fallback.cuh"
#include "common/device/learnt/ping_pong.cuh"
#include "common/device/learnt/store_panels.cuh"
#include "common/device/learnt/tile_order.cuh"
#include "common/device/store_fragments.cuh"

namespace step_17_store_later {

using device::Contiguous, device::Major, device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;
using learnt::copy_panels, learnt::kPanel, learnt::kWarpgroup, learnt::kWgmmaK, learnt::panel_map, learnt::Registers,
    learnt::RingPlace, learnt::Schedule, learnt::slice_descriptor, learnt::store_panels, learnt::swizzled, learnt::Tile,
    learnt::TileIndex, learnt::TileOrder;

/// Stores panel number `panel` of a warpgroup's 64 rows of C from (row, col) on, of sums that are packed: store_panels() in parts.
template <int kCols, class Out>
__device__ __forceinline__ void store_panel(int panel, const uint32_t (&packed)[kCols / 4], char* s, const TensorMap* map_c,
                                            int row, int col) {
  constexpr int kPanelCols = device::store_cols<kCols, Out>();
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, barrier = 1 + threadIdx.x / kWarpgroup;
  if (warp == 0 && device::elect_sync()) device::cp_async_bulk_wait_group_read<1>();  // all panels but the last one
  device::barrier_sync(barrier, kWarpgroup);  // the engine has read what was in this panel before
#pragma unroll
  for (int pair = 0; pair < kPanelCols / 4; ++pair) {  // neighbours in a row, then those 8 rows below
    const int r = warp * 16 + lane / 4 + 8 * (pair % 2), byte = (8 * (pair / 2) + lane % 4 * 2) * int{sizeof(Out)};
    *reinterpret_cast<uint32_t*>(s + 2 * swizzled<kPanel>(r, byte / 16) + byte % 16) = packed[panel * kPanelCols / 4 + pair];
  }
  device::fence_proxy_async();                // the engine sees what this thread has written,
  device::barrier_sync(barrier, kWarpgroup);  // and all have written
  if (warp == 0 && device::elect_sync()) {
    device::cp_async_bulk_tensor_2d_store(map_c, col + panel * kPanelCols, row, s);
    device::cp_async_bulk_commit_group();
  }
}

/// As many blocks as SMs. `c_panels`: the engine can store C; `c_chunks`: its rows are aligned chunks.
template <class Tile, Contiguous a_contiguous, Contiguous b_contiguous, class In, class Out, class Epilogue>
__global__ __launch_bounds__(Tile::kThreads, 1) void gemm_kernel(const __grid_constant__ TensorMap map_a,
                                                                 const __grid_constant__ TensorMap map_b,
                                                                 const __grid_constant__ TensorMap map_c, Matrix<Out> C,
                                                                 int tiles_k, unsigned tiles, TileOrder<Tile::kGroupM> order,
                                                                 bool c_panels, bool c_chunks, Epilogue epilogue) {
  constexpr Major kMajorA = a_contiguous == Contiguous::kK ? Major::kK : Major::kMN;
  constexpr Major kMajorB = b_contiguous == Contiguous::kK ? Major::kK : Major::kMN;
  constexpr int kTileA = Tile::kBlockM * Tile::kBlockK, kStageBytes = 2 * Tile::kStageElements, kPanelBytes = kPanel * 128;
  In* const sAB = device::dynamic_smem<In>();  // kNumStages times (kBlockM, kBlockK) of A and (kBlockN, kBlockK) of B
  char* const sC = reinterpret_cast<char*>(sAB + Tile::kNumStages * Tile::kStageElements);          // two panels for each warpgroup
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(sC + Tile::kStoreBytes * Tile::kMultiplying);  // (kNumStages)
  Mbarrier* const empty = full + Tile::kNumStages;                                                  // (kNumStages)

  // 1. Which tiles are mine? Number blockIdx.x, and every gridDim.x-th from there on
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
  __syncthreads();                // the barriers exist before anybody waits for them
  device::griddepcontrol_wait();  // the launch before has read and written all that it had to
  const auto first_row = [&](TileIndex tile) { return static_cast<int>(tile.m) * Tile::kBlockM; };
  const auto first_col = [&](TileIndex tile) { return static_cast<int>(tile.n) * Tile::kBlockN; };

  // 2. Main loop: one thread's, which copies ...
  if (warpgroup == Tile::kMultiplying) {
    device::setmaxnreg_dec<Registers<Tile::kMultiplying>::kToCopy>();
    if (warp == 4 * Tile::kMultiplying && device::elect_sync()) {
      int i = 0;  // tiles that have been copied, of all tiles of C
      for (unsigned t = blockIdx.x; t < tiles; t += gridDim.x) {
        const TileIndex tile = order.tile_of_block(t);
        for (int tile_k = 0; tile_k < tiles_k; ++tile_k, ++i) {
          const RingPlace<Tile::kNumStages> place(i);
          In* const s = sAB + place.stage * Tile::kStageElements;
          device::mbarrier_wait_parity(&empty[place.stage], place.phase ^ 1);  // what was there has been read
          device::mbarrier_arrive_expect_tx(&full[place.stage], kStageBytes);
          copy_panels<a_contiguous, Tile::kBlockM>(s, &map_a, first_row(tile), C.rows, tile_k, &full[place.stage]);
          copy_panels<b_contiguous, Tile::kBlockN>(s + kTileA, &map_b, first_col(tile), C.cols, tile_k, &full[place.stage]);
        }
      }
      if (tiles <= 2 * gridDim.x) device::griddepcontrol_launch_dependents();  // as in 14
    }
    return;
  }

  // ... and that of the warpgroups that multiply
  device::setmaxnreg_inc<Registers<Tile::kMultiplying>::kToMultiply>();
  constexpr int kPanelsC = sizeof(Out) == 2 ? Tile::kBlockN / device::store_cols<Tile::kBlockN, Out>() : 0;  // that wait
  float rC[Tile::kBlockN / 2];
  uint32_t packed[Tile::kBlockN / 4];  // the tile before, until it is stored
  char* const s = sC + warpgroup * Tile::kStoreBytes;
  int i = 0, row = -1, col = 0, turn = 0;  // row < 0: no tile waits; turn: panels so far, in two places
  for (unsigned t = blockIdx.x; t < tiles; t += gridDim.x) {
    int tile_k = 0;
    const auto multiply = [&] {
      const RingPlace<Tile::kNumStages> place(i);
      device::mbarrier_wait_parity(&full[place.stage], place.phase);
      const In* const sA = sAB + place.stage * Tile::kStageElements + warpgroup * kPanel * Tile::kBlockK;
      const In* const sB = sAB + place.stage * Tile::kStageElements + kTileA;
      device::wgmma_fence();
#pragma unroll
      for (int slice = 0; slice < Tile::kBlockK / kWgmmaK; ++slice) {
        device::wgmma_m64k16<In, Tile::kBlockN, kMajorA, kMajorB>(rC, slice_descriptor<a_contiguous>(sA, slice),
                                                                  slice_descriptor<b_contiguous>(sB, slice),
                                                                  tile_k > 0 || slice > 0);  // the first product sets the sums
      }
      device::wgmma_commit_group();
      device::wgmma_wait_group<1>();  // the tile before has been multiplied: its stage is empty
      if (lane == 0 && tile_k > 0) device::mbarrier_arrive(&empty[RingPlace<Tile::kNumStages>(i - 1).stage]);
      ++i;
      ++tile_k;
    };
#pragma unroll
    for (int panel = 0; panel < kPanelsC; ++panel) {  // products of this tile are under way while the tile before is stored
      if (tile_k < tiles_k) multiply();
      if (c_panels && row >= 0)
        store_panel<Tile::kBlockN, Out>(panel, packed, s + (turn + panel) % 2 * kPanelBytes, &map_c, row, col);
    }
    while (tile_k < tiles_k) multiply();
    device::wgmma_wait_group<0>();
    if (lane == 0) device::mbarrier_arrive(&empty[RingPlace<Tile::kNumStages>(i - 1).stage]);

    // 3. Epilogue. What the engine can store waits
    const TileIndex tile = order.tile_of_block(t);
    row = first_row(tile) + warpgroup * kPanel;
    col = first_col(tile);
    turn += kPanelsC;
    device::apply_epilogue(rC, epilogue, col);
    if constexpr (sizeof(Out) == 2) {  // floats cannot be packed
#pragma unroll
      for (int j = 0; j < Tile::kBlockN / 4; ++j) packed[j] = device::pack<Out>(rC[2 * j], rC[2 * j + 1]);
    } else if (c_panels) {
      store_panels<Tile::kBlockN, Out>(rC, s, &map_c, row, col);
    }
    if (!c_panels) {
      Out* const s_warp = reinterpret_cast<Out*>(s + warp % 4 * Tile::kStoreBytes / 4);
      device::store_fragments<64 / sizeof(Out)>(rC, s_warp, C, row + warp % 4 * 16, col, c_chunks, gemm::Identity{});
    }
  }
#pragma unroll
  for (int panel = 0; panel < kPanelsC; ++panel) {
    if (c_panels) store_panel<Tile::kBlockN, Out>(panel, packed, s + (turn + panel) % 2 * kPanelBytes, &map_c, row, col);
  }
  if (warp % 4 == 0 && device::elect_sync()) device::cp_async_bulk_wait_group_read<0>();  // a block's shared memory ends with it
}

template <class Tile, class In, class Out, class Epilogue>
void gemm(Matrix<const In> A, Matrix<const In> B, Matrix<Out> C, Epilogue epilogue) {
  gemm::check(A, B, C);
  const int64_t tiles_m = ceil_div<int64_t>(C.rows, Tile::kBlockM), tiles_n = ceil_div<int64_t>(C.cols, Tile::kBlockN);
  if (tiles_m * tiles_n == 0) return;
  if (!device::has_tensor_map(A) || !device::has_tensor_map(B.transposed())) return device::fallback_gemm(A, B, C, epilogue);
  const bool c_chunks = device::chunks_aligned(C.data, C.col_stride, C.row_stride), c_panels = device::has_store_map(C);
  const TensorMap map_c = c_panels ? device::store_map<Tile::kBlockN>(C, kPanel) : TensorMap{};
  const unsigned tiles = gemm::grid_size(tiles_m * tiles_n), blocks = std::min(tiles, device::multiprocessors());

  // Strides become a layout once, here: a kernel for each pair of transpositions.
  device::with_contiguous(A, B, [&](auto a, auto b) {
    device::launch_dependent(gemm_kernel<Tile, a(), b(), In, Out, Epilogue>, blocks, Tile::kThreads, Tile::kSharedBytes,
                             panel_map(A, a()), panel_map(B.transposed(), b()), map_c, C,
                             static_cast<int>(ceil_div<int64_t>(A.cols, Tile::kBlockK)), tiles,
                             TileOrder<Tile::kGroupM>(tiles_m, tiles_n), c_panels, c_chunks, epilogue);
  });
}

using Inputs = gemm::TypeList<__half, __nv_bfloat16>;
using Tiles = gemm::TypeList<Tile<128, 256, 4, 8, Schedule::kCooperative>>;
using MoreTiles = gemm::TypeList<Tile<128, 224, 4, 8, Schedule::kCooperative>, Tile<128, 192, 4, 8, Schedule::kCooperative>>;

}  // namespace step_17_store_later

/// @file
/// Step 13: two tiles at a time. One warpgroup multiplies while the other one stores.
///
/// Changes since 12:
/// - With the schedule kPingPong each of the two warpgroups has a tile of its own; they take turns at the tensor cores.
/// - So the epilogue of one tile costs nothing: it runs while the other tile is multiplied. kCooperative is 12's schedule.
/// - A tile is as wide as the waves of blocks ask for: B's last panel may be narrower than the others, and has a map of its own.
#pragma once

#include "common/device/fallback.cuh"
#include "common/device/learnt/registers.cuh"
#include "common/device/learnt/store_panels.cuh"
#include "common/device/learnt/tile_order.cuh"
#include "common/device/store_fragments.cuh"

namespace step_13_ping_pong {

using device::Contiguous, device::Major, device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;
using learnt::copy_panels, learnt::kPanel, learnt::kWarpgroup, learnt::kWgmmaK, learnt::panel_map, learnt::Registers,
    learnt::RingPlace, learnt::slice_descriptor, learnt::store_panels, learnt::TileIndex, learnt::TileOrder;

/// Whether the warpgroups that multiply share a tile, or each has its own and multiplies while the other one stores.
enum class Schedule { kCooperative, kPingPong };

/// What a block and a warpgroup compute of C, and what follows from it.
template <int block_m, int block_n, int num_stages, int group_m, Schedule schedule>
struct Tile {
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = kPanel;  // the block's tile of C, and its steps along k
  static constexpr int kNumStages = num_stages;                                 // tiles of A and B in shared memory
  static constexpr int kGroupM = group_m;                                       // rows of tiles that blocks cross together
  static constexpr bool kPingPong = schedule == Schedule::kPingPong;
  static constexpr int kTilesAtATime = kPingPong ? 2 : 1;
  static constexpr int kMultiplying = kTilesAtATime * kBlockM / kPanel;  // warpgroups; each multiplies one panel of A
  static constexpr int kThreads = Registers<kMultiplying>::kThreads;     // the last warpgroup copies
  static constexpr int kLastN = (kBlockN - 1) % kPanel + 1;              // columns of B's last panel
  static constexpr int kStageElements = (kBlockM + kBlockN - kLastN + kPanel) * kBlockK;  // a tile of A, then of B, in whole panels
  static constexpr int kCopiedBytes = (kBlockM + kBlockN) * kBlockK * 2;                  // into a stage
  static constexpr int kStoreBytes = 2 * kPanel * 128;  // two panels of C for each warpgroup that multiplies
  static constexpr auto kSharedBytes =
      device::ring(kNumStages, 2 * kBlockM * kBlockK, 2 * (kBlockN - kLastN + kPanel) * kBlockK, kPanel * 128)
          .each("warpgroup", kMultiplying, {"tile of C for storing", kStoreBytes, kPanel * 128})
          .barriers(kNumStages);
  static_assert(kSharedBytes <= 227 * 1024, "no GPU has more shared memory for a block");
  static_assert(kNumStages > 1 && kBlockN <= 256 && kBlockN % 8 == 0, "stages to fill and to multiply; wgmma's columns");
  static_assert(!kPingPong || kBlockM == kPanel, "two warpgroups take turns");
};

/// As many blocks as SMs. `c_panels`: the engine can store C; `c_chunks`: its rows are aligned chunks.
template <class Tile, Contiguous a_contiguous, Contiguous b_contiguous, class In, class Out, class Epilogue>
__global__ __launch_bounds__(Tile::kThreads, 1) void gemm_kernel(const __grid_constant__ TensorMap map_a,
                                                                 const __grid_constant__ TensorMap map_b,
                                                                 const __grid_constant__ TensorMap map_last,
                                                                 const __grid_constant__ TensorMap map_c, Matrix<Out> C,
                                                                 int tiles_k, unsigned tiles, TileOrder<Tile::kGroupM> order,
                                                                 bool c_panels, bool c_chunks, Epilogue epilogue) {
  constexpr Major kMajorA = a_contiguous == Contiguous::kK ? Major::kK : Major::kMN;
  constexpr Major kMajorB = b_contiguous == Contiguous::kK ? Major::kK : Major::kMN;
  constexpr int kTileA = Tile::kBlockM * Tile::kBlockK, kWholeN = Tile::kBlockN - Tile::kLastN;  // columns in whole panels
  In* const sAB = device::dynamic_smem<In>();  // kNumStages times (kBlockM, kBlockK) of A and (kBlockN, kBlockK) of B
  char* const sC = reinterpret_cast<char*>(sAB + Tile::kNumStages * Tile::kStageElements);          // two panels for each warpgroup
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(sC + Tile::kStoreBytes * Tile::kMultiplying);  // (kNumStages)
  Mbarrier* const empty = full + Tile::kNumStages;                                                  // (kNumStages)

  // 1. Which tiles are mine? Number blockIdx.x, and every gridDim.x-th from there on
  const int warp = threadIdx.x / 32, warpgroup = threadIdx.x / kWarpgroup;
  if (warp == 4 * Tile::kMultiplying && device::elect_sync()) {
    device::prefetch_tensormap(&map_a);  // the first copy need not wait for them
    device::prefetch_tensormap(&map_b);
    device::prefetch_tensormap(&map_last);
    for (int i = 0; i < Tile::kNumStages; ++i) {
      device::mbarrier_init(&full[i], 1);
      device::mbarrier_init(&empty[i], 4 * Tile::kMultiplying / Tile::kTilesAtATime);  // warps
    }
    device::fence_mbarrier_init();
  }
  __syncthreads();  // the barriers exist before anybody waits for them
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
          device::mbarrier_arrive_expect_tx(&full[place.stage], Tile::kCopiedBytes);
          copy_panels<a_contiguous, Tile::kBlockM>(s, &map_a, first_row(tile), C.rows, tile_k, &full[place.stage]);
          In* const sB = s + kTileA;
          copy_panels<b_contiguous, kWholeN>(sB, &map_b, first_col(tile), C.cols, tile_k, &full[place.stage]);
          copy_panels<b_contiguous, Tile::kLastN>(sB + kWholeN * kPanel, &map_last, first_col(tile) + kWholeN, C.cols, tile_k,
                                                  &full[place.stage]);
        }
      }
    }
    return;
  }

  // ... and that of the warpgroups that multiply
  device::setmaxnreg_inc<Registers<Tile::kMultiplying>::kToMultiply>();
  float rC[Tile::kBlockN / 2];
  const int my_tile = Tile::kPingPong ? warpgroup : 0, my_panel = Tile::kPingPong ? 0 : warpgroup;
  const auto turn_of = [](int warpgroup) { return 8 + warpgroup; };  // a barrier of both; 1 and 2 are store_panels'
  const unsigned step = Tile::kTilesAtATime * gridDim.x;
  int i = my_tile * tiles_k;  // a place in the ring
  for (unsigned t = blockIdx.x + my_tile * gridDim.x; t < tiles; t += step) {
    if (Tile::kPingPong && t != blockIdx.x) device::barrier_sync(turn_of(my_tile), 2 * kWarpgroup);
    int tile_k = 0;
    do {  // k > 0, or the launcher had taken the fallback
      const RingPlace<Tile::kNumStages> place(i);
      device::mbarrier_wait_parity(&full[place.stage], place.phase);
      const In* const sA = sAB + place.stage * Tile::kStageElements + my_panel * kPanel * Tile::kBlockK;
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
      if (threadIdx.x % 32 == 0 && tile_k > 0) device::mbarrier_arrive(&empty[RingPlace<Tile::kNumStages>(i - 1).stage]);
      ++i;
    } while (++tile_k < tiles_k);
    if (Tile::kPingPong && t + gridDim.x < tiles) device::barrier_arrive(turn_of(1 - my_tile), 2 * kWarpgroup);
    device::wgmma_wait_group<0>();
    if (threadIdx.x % 32 == 0) device::mbarrier_arrive(&empty[RingPlace<Tile::kNumStages>(i - 1).stage]);
    i += (Tile::kTilesAtATime - 1) * tiles_k;  // the places of the other one's tile

    // 3. Epilogue, while the next tile is copied
    const TileIndex tile = order.tile_of_block(t);
    const int row = first_row(tile) + my_panel * kPanel, col = first_col(tile);
    device::apply_epilogue(rC, epilogue, col);
    char* const s = sC + warpgroup * Tile::kStoreBytes;
    if (c_panels) {
      store_panels<Tile::kBlockN, Out>(rC, s, &map_c, row, col);
    } else {
      Out* const s_warp = reinterpret_cast<Out*>(s + warp % 4 * Tile::kStoreBytes / 4);
      device::store_fragments<64 / sizeof(Out)>(rC, s_warp, C, row + warp % 4 * 16, col, c_chunks, gemm::Identity{});
    }
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
    device::launch(gemm_kernel<Tile, a(), b(), In, Out, Epilogue>, blocks, Tile::kThreads, Tile::kSharedBytes, panel_map(A, a()),
                   panel_map(B.transposed(), b()), device::box_map(B.transposed(), b(), Tile::kLastN, kPanel), map_c, C,
                   static_cast<int>(ceil_div<int64_t>(A.cols, Tile::kBlockK)), tiles, TileOrder<Tile::kGroupM>(tiles_m, tiles_n),
                   c_panels, c_chunks, epilogue);
  });
}

using Inputs = gemm::TypeList<__half, __nv_bfloat16>;
using Tiles = gemm::TypeList<Tile<64, 256, 4, 8, Schedule::kPingPong>>;
using MoreTiles = gemm::TypeList<Tile<64, 192, 5, 8, Schedule::kPingPong>, Tile<64, 128, 8, 8, Schedule::kPingPong>,
                                 Tile<64, 64, 8, 8, Schedule::kPingPong>, Tile<128, 256, 4, 8, Schedule::kCooperative>,
                                 Tile<128, 144, 4, 8, Schedule::kCooperative>>;

}  // namespace step_13_ping_pong

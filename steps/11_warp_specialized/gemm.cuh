/// @file
/// Step 11: specialised warps. One warpgroup only copies, the others only multiply.
///
/// Changes since 10:
/// - A warpgroup more. One of its threads starts all copies; those that multiply no longer wait until a stage has been given back.
/// - So all stages are on their way, not all but one.
/// - Registers go where they are needed: the warpgroup that copies gives most of its own back (setmaxnreg).
#pragma once

#include "common/device/fallback.cuh"
#include "common/device/learnt/panels.cuh"
#include "common/device/learnt/tile_order.cuh"
#include "common/device/learnt/wgmma_slice.cuh"
#include "common/device/store_fragments.cuh"
#include "common/gemm/gemm.h"

namespace step_11_warp_specialized {

using device::Contiguous, device::Major, device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;
using learnt::copy_panels, learnt::kPanel, learnt::kWarpgroup, learnt::kWgmmaK, learnt::panel_map, learnt::RingPlace,
    learnt::slice_descriptor, learnt::TileIndex, learnt::TileOrder;

/// Registers of a thread. At the launch all have as many; then setmaxnreg moves them, by multiples of 8.
/// @param multiplying warpgroups; one more copies
template <int multiplying>
struct Registers {
  static constexpr int kThreads = (multiplying + 1) * kWarpgroup;
  static constexpr int kAtLaunch = 65536 / kThreads / 8 * 8;
  static constexpr int kToCopy = 40;
  static constexpr int kToMultiply = std::min(256, (kAtLaunch * (multiplying + 1) - kToCopy) / multiplying / 8 * 8);
};

/// What a block and a warpgroup compute of C, and what follows from it.
template <int block_m, int block_n, int num_stages, int group_m>
struct Tile {
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = kPanel;  // the block's tile of C, and its steps along k
  static constexpr int kNumStages = num_stages;                                 // tiles of A and B in shared memory
  static constexpr int kGroupM = group_m;                                       // rows of tiles that blocks cross together
  static constexpr int kMultiplying = kBlockM / kPanel;                         // warpgroups; each multiplies one panel of A
  static constexpr int kThreads = Registers<kMultiplying>::kThreads;            // the last warpgroup copies
  static constexpr int kStageElements = (kBlockM + kBlockN) * kBlockK;          // a tile of A, then one of B
  static constexpr int kStageBytes = kStageElements * 2;
  static constexpr auto kSharedBytes =
      device::ring(kNumStages, 2 * kBlockM * kBlockK, 2 * kBlockN * kBlockK, kPanel * 128).barriers(kNumStages);
  static constexpr int kStoreCols = 128;  // columns that a warp stores at a time

  static_assert(kNumStages > 1, "one stage is multiplied while others are filled");
  static_assert(kSharedBytes <= 227 * 1024, "no GPU has more shared memory for a block");
  static_assert(kBlockN <= 256 && kBlockN % kStoreCols == 0, "wgmma has up to 256 columns; a warp stores all of them");
};

/// One block, one kBlockM x kBlockN tile of C. `c_chunks`: the rows of C are aligned chunks.
template <class Tile, Contiguous a_contiguous, Contiguous b_contiguous, class In, class Out, class Epilogue>
__global__ __launch_bounds__(Tile::kThreads, 1) void gemm_kernel(const __grid_constant__ TensorMap map_a,
                                                                 const __grid_constant__ TensorMap map_b, Matrix<Out> C,
                                                                 int tiles_k, TileOrder<Tile::kGroupM> order, bool c_chunks,
                                                                 Epilogue epilogue) {
  constexpr Major kMajorA = a_contiguous == Contiguous::kK ? Major::kK : Major::kMN;
  constexpr Major kMajorB = b_contiguous == Contiguous::kK ? Major::kK : Major::kMN;
  constexpr int kTileA = Tile::kBlockM * Tile::kBlockK;  // elements, before B's begin
  In* const sAB = device::dynamic_smem<In>();            // kNumStages times (kBlockM, kBlockK) of A and (kBlockN, kBlockK) of B
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(sAB + Tile::kNumStages * Tile::kStageElements);  // (kNumStages)
  Mbarrier* const empty = full + Tile::kNumStages;                                                    // (kNumStages)

  // 1. Which tile is mine?
  const TileIndex tile = order.tile_of_block(blockIdx.x);
  const int m_0 = static_cast<int>(tile.m) * Tile::kBlockM, n_0 = static_cast<int>(tile.n) * Tile::kBlockN;
  const int warp = threadIdx.x / 32, warpgroup = threadIdx.x / kWarpgroup;
  if (warp == 4 * Tile::kMultiplying && device::elect_sync()) {
    device::prefetch_tensormap(&map_a);  // the first copy need not wait for them
    device::prefetch_tensormap(&map_b);
    for (int i = 0; i < Tile::kNumStages; ++i) {
      device::mbarrier_init(&full[i], 1);
      device::mbarrier_init(&empty[i], 4 * Tile::kMultiplying);  // warps
    }
    device::fence_mbarrier_init();
  }
  __syncthreads();  // the barriers exist before anybody waits for them

  // 2. Main loop: one thread's, which copies ...
  if (warpgroup == Tile::kMultiplying) {
    device::setmaxnreg_dec<Registers<Tile::kMultiplying>::kToCopy>();
    if (warp == 4 * Tile::kMultiplying && device::elect_sync()) {
      for (int tile_k = 0; tile_k < tiles_k; ++tile_k) {
        const RingPlace<Tile::kNumStages> place(tile_k);
        In* const s = sAB + place.stage * Tile::kStageElements;
        Mbarrier* const barrier = &full[place.stage];
        device::mbarrier_wait_parity(&empty[place.stage], place.phase ^ 1);  // what was there has been read; at first nothing was
        device::mbarrier_arrive_expect_tx(barrier, Tile::kStageBytes);
        copy_panels<a_contiguous, Tile::kBlockM>(s, &map_a, m_0, C.rows, tile_k, barrier);
        copy_panels<b_contiguous, Tile::kBlockN>(s + kTileA, &map_b, n_0, C.cols, tile_k, barrier);
      }
    }
    return;
  }

  // ... and that of the warpgroups that multiply
  device::setmaxnreg_inc<Registers<Tile::kMultiplying>::kToMultiply>();
  float rC[Tile::kBlockN / 2] = {};
  int tile_k = 0;
  do {  // k > 0, or the launcher had taken the fallback
    const RingPlace<Tile::kNumStages> place(tile_k);
    device::mbarrier_wait_parity(&full[place.stage], place.phase);
    const In* const sA = sAB + place.stage * Tile::kStageElements + warpgroup * kPanel * Tile::kBlockK;
    const In* const sB = sAB + place.stage * Tile::kStageElements + kTileA;
    device::wgmma_fence();
#pragma unroll
    for (int slice = 0; slice < Tile::kBlockK / kWgmmaK; ++slice) {
      device::wgmma_m64k16<In, Tile::kBlockN, kMajorA, kMajorB>(rC, slice_descriptor<a_contiguous>(sA, slice),
                                                                slice_descriptor<b_contiguous>(sB, slice), true);
    }
    device::wgmma_commit_group();
    device::wgmma_wait_group<1>();  // the tile before has been multiplied: its stage is empty
    if (threadIdx.x % 32 == 0 && tile_k > 0) device::mbarrier_arrive(&empty[RingPlace<Tile::kNumStages>(tile_k - 1).stage]);
  } while (++tile_k < tiles_k);
  device::wgmma_wait_group<0>();
  device::barrier_sync(1, Tile::kMultiplying * kWarpgroup);  // all have multiplied the last tile before the epilogue overwrites it
  if (threadIdx.x == 0) {  // as in 10: without this, ptxas 13.0 has the products wait for each other (C7514)
    for (int i = 0; i < Tile::kNumStages; ++i) {
      device::mbarrier_inval(&full[i]);
      device::mbarrier_inval(&empty[i]);
    }
  }

  // 3. Epilogue, in the memory of the tiles; of 8 columns, a lane holds the same sums as after mma.sync
  Out* const sC = reinterpret_cast<Out*>(sAB) + warp * device::kStoreFragmentsElements<Tile::kStoreCols>;
#pragma unroll
  for (int part = 0; part < Tile::kBlockN / Tile::kStoreCols; ++part) {
    device::store_fragments(reinterpret_cast<const float(&)[Tile::kStoreCols / 8][4]>(rC[part * Tile::kStoreCols / 2]), sC, C,
                            m_0 + warp * 16, n_0 + part * Tile::kStoreCols, c_chunks, epilogue);
  }
}

template <class Tile, class In, class Out, class Epilogue>
void gemm(Matrix<const In> A, Matrix<const In> B, Matrix<Out> C, Epilogue epilogue) {
  gemm::check(A, B, C);
  const int64_t tiles_m = ceil_div<int64_t>(C.rows, Tile::kBlockM), tiles_n = ceil_div<int64_t>(C.cols, Tile::kBlockN);
  if (tiles_m * tiles_n == 0) return;
  if (!device::has_tensor_map(A) || !device::has_tensor_map(B.transposed())) return device::fallback_gemm(A, B, C, epilogue);

  // Strides become a layout once, here: a kernel for each pair of transpositions.
  device::with_contiguous(A, B, [&](auto a, auto b) {
    device::launch(gemm_kernel<Tile, a(), b(), In, Out, Epilogue>, gemm::grid_size(tiles_m * tiles_n), Tile::kThreads,
                   Tile::kSharedBytes, panel_map(A, a()), panel_map(B.transposed(), b()), C,
                   static_cast<int>(ceil_div<int64_t>(A.cols, Tile::kBlockK)), TileOrder<Tile::kGroupM>(tiles_m, tiles_n),
                   device::chunks_aligned(C.data, C.col_stride, C.row_stride), epilogue);
  });
}

using Inputs = gemm::TypeList<__half, __nv_bfloat16>;
using Tiles = gemm::TypeList<Tile<128, 256, 4, 8>>;
using MoreTiles = gemm::TypeList<Tile<128, 256, 3, 8>, Tile<128, 128, 6, 8>, Tile<256, 128, 4, 8>>;

}  // namespace step_11_warp_specialized

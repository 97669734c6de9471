/// @file
/// Step 18: A and B change places, so that each row of a panel is a whole one; stmatrix turns C back on its way to memory.
///
/// Changes since 14:
/// - 64 columns of B are the rows of a wgmma, as in 15, and the tile's rows its columns: any multiple of 8. In nn, where A lies
///   along k, its last panel has fewer rows, of 128 bytes each. 14's last panel of B has shorter ones.
/// - A warpgroup's sums are those of C's transpose. store_transposed() has stmatrix write them as rows of C, in one panel.
#pragma once

#include "common/device/dependent_launch.cuh"
#include "common/device/fallback.cuh"
#include "common/device/learnt/registers.cuh"
#include "common/device/learnt/swizzle.cuh"
#include "common/device/learnt/tile_order.cuh"
#include "common/device/store_fragments.cuh"

namespace step_18_swap_ab {

using device::Contiguous, device::Major, device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;
using learnt::copy_panels, learnt::kPanel, learnt::kWarpgroup, learnt::kWgmmaK, learnt::panel_map, learnt::Registers,
    learnt::RingPlace, learnt::slice_descriptor, learnt::swizzled, learnt::TileIndex, learnt::TileOrder;

/// What a block and a warpgroup compute of C, and what follows from it.
template <int block_m, int block_n, int num_stages, int group_m>
struct Tile {
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = kPanel;  // the block's tile of C, and its steps along k
  static constexpr int kNumStages = num_stages;                                 // tiles of A and B in shared memory
  static constexpr int kGroupM = group_m;                                       // rows of tiles that blocks cross together
  static constexpr int kMultiplying = kBlockN / kPanel;                         // warpgroups; each multiplies one panel of B
  static constexpr int kThreads = Registers<kMultiplying>::kThreads;            // the last warpgroup copies
  static constexpr int kLastM = (kBlockM - 1) % kPanel + 1;                     // rows of A's last panel
  static constexpr int kStageElements = (kBlockM - kLastM + kPanel + kBlockN) * kBlockK;  // a tile of A, in whole panels, and of B
  static constexpr int kCopiedBytes = (kBlockM + kBlockN) * kBlockK * 2;                  // into a stage
  static constexpr int kStoreBytes = kBlockM * 128;  // a panel of C for each warpgroup that multiplies: all rows of the tile
  static constexpr auto kSharedBytes =
      device::ring(kNumStages, 2 * (kBlockM - kLastM + kPanel) * kBlockK, 2 * kBlockN * kBlockK, kPanel * 128)
          .each("warpgroup", kMultiplying, {"tile of C for storing", kStoreBytes, kStoreBytes})
          .barriers(kNumStages);
  static_assert(kSharedBytes <= 227 * 1024, "no GPU has more shared memory for a block");
  static_assert(kNumStages > 1 && kBlockM <= 256 && kBlockM % 8 == 0, "stages to fill and to multiply; wgmma's columns");
  static_assert(kBlockN % kPanel == 0, "wgmma's rows");
};

/// Stores a warpgroup's part of C: kRows rows and 64 columns, from (row, col) on, one panel. `d` has the sums of its transpose.
template <int kRows, class Out>
__device__ __forceinline__ void store_transposed(const float (&d)[kRows / 2], Out* s, const TensorMap* map_c, int row, int col) {
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, barrier = 1 + threadIdx.x / kWarpgroup;
  if (warp == 0 && device::elect_sync()) device::cp_async_bulk_wait_group_read<0>();
  device::barrier_sync(barrier, kWarpgroup);  // the engine has read the tile before, so all may overwrite it
#pragma unroll
  for (int r = 0; r < kRows; r += 8) {  // a lane has two rows of a column, and of that 8 further right
    const uint32_t pairs[] = {device::pack<Out>(d[r / 2], d[r / 2 + 1]), device::pack<Out>(d[r / 2 + 2], d[r / 2 + 3])};
    device::stmatrix_x2_trans(s + swizzled<kPanel>(r + lane % 8, 2 * warp + lane / 8 % 2), pairs);
  }
  device::fence_proxy_async();                // the engine sees what this thread has written,
  device::barrier_sync(barrier, kWarpgroup);  // and all have written
  if (warp == 0 && device::elect_sync()) {
    device::cp_async_bulk_tensor_2d_store(map_c, col, row, s);
    device::cp_async_bulk_commit_group();
  }
}

/// As many blocks as SMs. `c_panels`: the engine can store C, of 16 bits.
template <class Tile, Contiguous a_contiguous, Contiguous b_contiguous, class In, class Out, class Epilogue>
__global__ __launch_bounds__(Tile::kThreads,
                             1) void gemm_kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                                                 const __grid_constant__ TensorMap map_last,
                                                 const __grid_constant__ TensorMap map_c, Matrix<Out> C, int tiles_k,
                                                 unsigned tiles, TileOrder<Tile::kGroupM> order, bool c_panels, Epilogue epilogue) {
  constexpr Major kMajorA = a_contiguous == Contiguous::kK ? Major::kK : Major::kMN;
  constexpr Major kMajorB = b_contiguous == Contiguous::kK ? Major::kK : Major::kMN;
  constexpr int kWholeM = Tile::kBlockM - Tile::kLastM, kTileA = (kWholeM + kPanel) * Tile::kBlockK;  // whole panels, and the last
  In* const sAB = device::dynamic_smem<In>();  // kNumStages times A in whole panels, and (kBlockN, kBlockK) of B
  char* const sC = reinterpret_cast<char*>(sAB + Tile::kNumStages * Tile::kStageElements);          // a panel for each warpgroup
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(sC + Tile::kStoreBytes * Tile::kMultiplying);  // (kNumStages)
  Mbarrier* const empty = full + Tile::kNumStages;                                                  // (kNumStages)

  // 1. Which tiles are mine? Number blockIdx.x, and every gridDim.x-th from there on
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warpgroup = threadIdx.x / kWarpgroup;
  if (warp == 4 * Tile::kMultiplying && device::elect_sync()) {
    device::prefetch_tensormap(&map_a);  // the first copy need not wait for them
    device::prefetch_tensormap(&map_b);
    device::prefetch_tensormap(&map_last);
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
          device::mbarrier_arrive_expect_tx(&full[place.stage], Tile::kCopiedBytes);
          copy_panels<a_contiguous, kWholeM>(s, &map_a, first_row(tile), C.rows, tile_k, &full[place.stage]);
          copy_panels<a_contiguous, Tile::kLastM>(s + kWholeM * kPanel, &map_last, first_row(tile) + kWholeM, C.rows, tile_k,
                                                  &full[place.stage]);
          copy_panels<b_contiguous, Tile::kBlockN>(s + kTileA, &map_b, first_col(tile), C.cols, tile_k, &full[place.stage]);
        }
      }
      if (tiles <= 2 * gridDim.x) device::griddepcontrol_launch_dependents();  // as in 14
    }
    return;
  }

  // ... and that of the warpgroups that multiply
  device::setmaxnreg_inc<Registers<Tile::kMultiplying>::kToMultiply>();
  float rC[Tile::kBlockM / 2];
  int i = 0;  // a place in the ring
  for (unsigned t = blockIdx.x; t < tiles; t += gridDim.x) {
    int tile_k = 0;
    do {  // k > 0, or the launcher had taken the fallback
      const RingPlace<Tile::kNumStages> place(i);
      device::mbarrier_wait_parity(&full[place.stage], place.phase);
      const In* const sA = sAB + place.stage * Tile::kStageElements;
      const In* const sB = sAB + place.stage * Tile::kStageElements + kTileA + warpgroup * kPanel * Tile::kBlockK;
      device::wgmma_fence();
#pragma unroll
      for (int slice = 0; slice < Tile::kBlockK / kWgmmaK; ++slice) {
        device::wgmma_m64k16<In, Tile::kBlockM, kMajorB, kMajorA>(rC, slice_descriptor<b_contiguous>(sB, slice),
                                                                  slice_descriptor<a_contiguous>(sA, slice),
                                                                  tile_k > 0 || slice > 0);  // the first product sets the sums
      }
      device::wgmma_commit_group();
      device::wgmma_wait_group<1>();  // the tile before has been multiplied: its stage is empty
      if (lane == 0 && tile_k > 0) device::mbarrier_arrive(&empty[RingPlace<Tile::kNumStages>(i - 1).stage]);
      ++i;
    } while (++tile_k < tiles_k);
    device::wgmma_wait_group<0>();
    if (lane == 0) device::mbarrier_arrive(&empty[RingPlace<Tile::kNumStages>(i - 1).stage]);

    // 3. Epilogue, while the next tile is copied
    const TileIndex tile = order.tile_of_block(t);
    const int row = first_row(tile), col = first_col(tile) + warpgroup * kPanel;
    device::apply_epilogue_transposed(rC, epilogue, col);
    if constexpr (sizeof(Out) == 2) {  // stmatrix moves 16 bits
      Out* const s = reinterpret_cast<Out*>(sC + warpgroup * Tile::kStoreBytes);
      if (c_panels) store_transposed<Tile::kBlockM>(rC, s, &map_c, row, col);
    }
    if (!c_panels) device::store_sums_transposed(rC, C, row, col);
  }
  if (warp % 4 == 0 && device::elect_sync()) device::cp_async_bulk_wait_group_read<0>();  // a block's shared memory ends with it
}

template <class Tile, class In, class Out, class Epilogue>
void gemm(Matrix<const In> A, Matrix<const In> B, Matrix<Out> C, Epilogue epilogue) {
  gemm::check(A, B, C);
  const int64_t tiles_m = ceil_div<int64_t>(C.rows, Tile::kBlockM), tiles_n = ceil_div<int64_t>(C.cols, Tile::kBlockN);
  if (tiles_m * tiles_n == 0) return;
  if (!device::has_tensor_map(A) || !device::has_tensor_map(B.transposed())) return device::fallback_gemm(A, B, C, epilogue);
  const bool c_panels = sizeof(Out) == 2 && device::has_store_map(C);
  const TensorMap map_c = c_panels ? device::box_map(C, Contiguous::kK, Tile::kBlockM, kPanel) : TensorMap{};
  const unsigned tiles = gemm::grid_size(tiles_m * tiles_n), blocks = std::min(tiles, device::multiprocessors());

  // Strides become a layout once, here: a kernel for each pair of transpositions.
  device::with_contiguous(A, B, [&](auto a, auto b) {
    device::launch_dependent(gemm_kernel<Tile, a(), b(), In, Out, Epilogue>, blocks, Tile::kThreads, Tile::kSharedBytes,
                             panel_map(A, a()), panel_map(B.transposed(), b()), device::box_map(A, a(), Tile::kLastM, kPanel),
                             map_c, C, static_cast<int>(ceil_div<int64_t>(A.cols, Tile::kBlockK)), tiles,
                             TileOrder<Tile::kGroupM>(tiles_m, tiles_n), c_panels, epilogue);
  });
}

using Inputs = gemm::TypeList<__half, __nv_bfloat16>;
using Tiles = gemm::TypeList<Tile<144, 128, 4, 8>>;
using MoreTiles =
    gemm::TypeList<Tile<136, 128, 4, 8>, Tile<152, 128, 4, 8>, Tile<160, 128, 4, 8>, Tile<168, 128, 4, 8>, Tile<176, 128, 4, 8>,
                   Tile<72, 64, 8, 8>, Tile<88, 64, 8, 8>, Tile<104, 64, 8, 8>, Tile<216, 64, 4, 8>>;

}  // namespace step_18_swap_ab

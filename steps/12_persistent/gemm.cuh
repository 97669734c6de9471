/// @file
/// Step 12: blocks that stay. As many blocks as the GPU has SMs, each with one tile after the other; the copy engine stores C.
///
/// Changes since 11:
/// - A block computes many tiles. The ring goes on from tile to tile: the next one's copies begin while the last one is multiplied.
/// - So the epilogue has memory of its own. Threads fill panels there, and the engine stores them while the next tile begins.
/// - The epilogue may differ by column, as in 07: a bias.
#pragma once

#include "common/device/fallback.cuh"
#include "common/device/learnt/registers.cuh"
#include "common/device/learnt/swizzle.cuh"
#include "common/device/learnt/tile_order.cuh"
#include "common/device/store_fragments.cuh"

namespace step_12_persistent {

using device::Contiguous, device::Major, device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;
using learnt::copy_panels, learnt::kPanel, learnt::kWarpgroup, learnt::kWgmmaK, learnt::panel_map, learnt::Registers,
    learnt::RingPlace, learnt::slice_descriptor, learnt::swizzled, learnt::TileIndex, learnt::TileOrder;

/// What a block and a warpgroup compute of C, and what follows from it.
template <int block_m, int block_n, int num_stages, int group_m>
struct Tile {
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = kPanel;  // the block's tile of C, and its steps along k
  static constexpr int kNumStages = num_stages;                                 // tiles of A and B in shared memory
  static constexpr int kGroupM = group_m;                                       // rows of tiles that blocks cross together
  static constexpr int kMultiplying = kBlockM / kPanel;                         // warpgroups; each multiplies one panel of A
  static constexpr int kThreads = Registers<kMultiplying>::kThreads;            // the last warpgroup copies
  static constexpr int kStageElements = (kBlockM + kBlockN) * kBlockK, kStageBytes = kStageElements * 2;  // a tile of A, then of B
  static constexpr int kStoreBytes = 2 * kPanel * 128;  // two panels of C for each warpgroup that multiplies
  static constexpr auto kSharedBytes = device::ring(kNumStages, 2 * kBlockM * kBlockK, 2 * kBlockN * kBlockK, kPanel * 128)
                                           .each("warpgroup", kMultiplying, {"tile of C for storing", kStoreBytes, kPanel * 128})
                                           .barriers(kNumStages);
  static_assert(kSharedBytes <= 227 * 1024, "no GPU has more shared memory for a block");
  static_assert(kNumStages > 1 && kBlockN <= 256 && kBlockN % kPanel == 0, "stages to fill and to multiply; whole panels");
};

/// Stores a warpgroup's 64 rows of C from (row, col) on. Two panels in turn: the engine reads one while threads fill the other.
template <int kCols, class Out>
__device__ __forceinline__ void store_panels(const float (&d)[kCols / 2], char* sC, const TensorMap* map_c, int row, int col) {
  constexpr int kPanelCols = device::store_cols<kCols, Out>();
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, barrier = 1 + threadIdx.x / kWarpgroup;
#pragma unroll
  for (int c = 0; c < kCols; c += kPanelCols) {
    char* const s = sC + c / kPanelCols % 2 * kPanel * 128;
    if (warp == 0 && device::elect_sync()) {  // always the same lane, for the engine's groups are its own
      if (c == 0) {
        device::cp_async_bulk_wait_group_read<0>();  // all panels of the tile before
      } else {
        device::cp_async_bulk_wait_group_read<1>();  // all but the last one
      }
    }
    device::barrier_sync(barrier, kWarpgroup);  // the engine has read what was in this panel before
#pragma unroll
    for (int pair = 0; pair < kPanelCols / 4; ++pair) {  // neighbours in a row, then those 8 rows below
      const int r = warp * 16 + lane / 4 + 8 * (pair % 2), byte = (8 * (pair / 2) + lane % 4 * 2) * int{sizeof(Out)};
      *reinterpret_cast<device::Pair<Out>*>(s + 2 * swizzled<kPanel>(r, byte / 16) + byte % 16) = {
          device::from_float<Out>(d[c / 2 + 2 * pair]), device::from_float<Out>(d[c / 2 + 2 * pair + 1])};
    }
    device::fence_proxy_async();                // the engine sees what this thread has written,
    device::barrier_sync(barrier, kWarpgroup);  // and all have written
    if (warp == 0 && device::elect_sync()) {
      device::cp_async_bulk_tensor_2d_store(map_c, col + c, row, s);
      device::cp_async_bulk_commit_group();
    }
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
  constexpr int kTileA = Tile::kBlockM * Tile::kBlockK;  // elements, before B's begin
  In* const sAB = device::dynamic_smem<In>();            // kNumStages times (kBlockM, kBlockK) of A and (kBlockN, kBlockK) of B
  char* const sC = reinterpret_cast<char*>(sAB + Tile::kNumStages * Tile::kStageElements);          // two panels for each warpgroup
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(sC + Tile::kStoreBytes * Tile::kMultiplying);  // (kNumStages)
  Mbarrier* const empty = full + Tile::kNumStages;                                                  // (kNumStages)

  // 1. Which tiles are mine? Number blockIdx.x, and every gridDim.x-th from there on
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
          device::mbarrier_arrive_expect_tx(&full[place.stage], Tile::kStageBytes);
          copy_panels<a_contiguous, Tile::kBlockM>(s, &map_a, first_row(tile), C.rows, tile_k, &full[place.stage]);
          copy_panels<b_contiguous, Tile::kBlockN>(s + kTileA, &map_b, first_col(tile), C.cols, tile_k, &full[place.stage]);
        }
      }
    }
    return;
  }
  // ... and that of the warpgroups that multiply
  device::setmaxnreg_inc<Registers<Tile::kMultiplying>::kToMultiply>();
  float rC[Tile::kBlockN / 2];
  int i = 0;
  for (unsigned t = blockIdx.x; t < tiles; t += gridDim.x) {
    int tile_k = 0;
    do {  // k > 0, or the launcher had taken the fallback
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
      if (threadIdx.x % 32 == 0 && tile_k > 0) device::mbarrier_arrive(&empty[RingPlace<Tile::kNumStages>(i - 1).stage]);
      ++i;
    } while (++tile_k < tiles_k);
    device::wgmma_wait_group<0>();
    if (threadIdx.x % 32 == 0) device::mbarrier_arrive(&empty[RingPlace<Tile::kNumStages>(i - 1).stage]);

    // 3. Epilogue, while the next tile is copied
    const TileIndex tile = order.tile_of_block(t);
    const int row = first_row(tile) + warpgroup * kPanel, col = first_col(tile);
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
                   panel_map(B.transposed(), b()), map_c, C, static_cast<int>(ceil_div<int64_t>(A.cols, Tile::kBlockK)), tiles,
                   TileOrder<Tile::kGroupM>(tiles_m, tiles_n), c_panels, c_chunks, epilogue);
  });
}

using Inputs = gemm::TypeList<__half, __nv_bfloat16>;
using Tiles = gemm::TypeList<Tile<128, 256, 4, 8>>;
using MoreTiles = gemm::TypeList<Tile<128, 192, 4, 8>, Tile<128, 128, 6, 8>>;

}  // namespace step_12_persistent

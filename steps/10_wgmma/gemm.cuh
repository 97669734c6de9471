/// @file
/// Step 10: wgmma. A warpgroup multiplies matrices that lie in shared memory; no fragments, no ldmatrix.
///
/// Changes since 09:
/// - Four warps multiply together, 64 x kBlockN x 16 in one instruction, out of shared memory: a descriptor tells where and how.
/// - The products run in the background: while one tile is multiplied, the one before is given back and the next one waited for.
/// - Twice the tile of C, 128 x 256: no second block is needed to keep the tensor cores busy. Blocks in groups, as in 05.
#pragma once

#include "common/device/fallback.cuh"
#include "common/device/learnt/panels.cuh"
#include "common/device/learnt/tile_order.cuh"
#include "common/device/store_fragments.cuh"
#include "common/device/wgmma.cuh"
#include "common/gemm/gemm.h"

namespace step_10_wgmma {

using device::Contiguous, device::Major, device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;
using learnt::copy_panels, learnt::kPanel, learnt::panel_map, learnt::RingPlace, learnt::TileIndex, learnt::TileOrder;

constexpr int kWarpgroup = 128;  ///< threads
constexpr int kWgmmaK = 16;      ///< of k in one instruction

/// What a block and a warpgroup compute of C, and what follows from it.
template <int block_m, int block_n, int num_stages, int group_m>
struct Tile {
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = kPanel;  // the block's tile of C, and its steps along k
  static constexpr int kNumStages = num_stages;                                 // tiles of A and B in shared memory
  static constexpr int kGroupM = group_m;                                       // rows of tiles that blocks cross together
  static constexpr int kThreads = kBlockM / kPanel * kWarpgroup;                // a warpgroup multiplies one panel of A
  static constexpr int kStageElements = (kBlockM + kBlockN) * kBlockK;          // a tile of A, then one of B
  static constexpr int kStageBytes = kStageElements * 2;
  static constexpr auto kSharedBytes =
      device::ring(kNumStages, 2 * kBlockM * kBlockK, 2 * kBlockN * kBlockK, kPanel * 128).barriers(kNumStages);
  static constexpr int kStoreCols = 128;  // columns that a warp stores at a time

  static_assert(kNumStages > 1, "one stage is multiplied while others are filled");
  static_assert(kSharedBytes <= 227 * 1024, "no GPU has more shared memory for a block");
  static_assert(kBlockN <= 256 && kBlockN % kStoreCols == 0, "wgmma has up to 256 columns; a warp stores all of them");
};

/// The descriptor of a slice, kWgmmaK of k, of the panels that begin at `s`.
template <Contiguous contiguous, class In>
__device__ __forceinline__ uint64_t slice_descriptor(const In* s, int slice) {
  constexpr int kPattern = 8 * 128;  // bytes: 8 rows, as wide as the swizzle
  constexpr int kSliceElements = contiguous == Contiguous::kK ? kWgmmaK : kWgmmaK * kPanel;
  return device::wgmma_descriptor(s + slice * kSliceElements, device::Swizzle::k128, kPanel * kPanel * sizeof(In), kPattern);
}

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
  if (threadIdx.x == 0) {
    for (int i = 0; i < Tile::kNumStages; ++i) {
      device::mbarrier_init(&full[i], 1);
      device::mbarrier_init(&empty[i], Tile::kThreads / 32);
    }
    device::fence_mbarrier_init();
  }
  __syncthreads();  // the barriers exist before anybody waits for them

  // 2. Main loop
  const auto copy = [&](int tile_k) {
    const RingPlace<Tile::kNumStages> place(tile_k);
    In* const s = sAB + place.stage * Tile::kStageElements;
    Mbarrier* const barrier = &full[place.stage];
    device::mbarrier_wait_parity(&empty[place.stage], place.phase ^ 1);  // what was there has been read; at first nothing was
    device::mbarrier_arrive_expect_tx(barrier, Tile::kStageBytes);
    copy_panels<a_contiguous, Tile::kBlockM>(s, &map_a, m_0, C.rows, tile_k, barrier);
    copy_panels<b_contiguous, Tile::kBlockN>(s + kTileA, &map_b, n_0, C.cols, tile_k, barrier);
  };
  constexpr int kAhead = Tile::kNumStages - 1;  // tiles on their way while one is multiplied
  if (threadIdx.x == 0) {
    for (int i = 0; i < kAhead && i < tiles_k; ++i) {
      copy(i);
    }
  }
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
    if (threadIdx.x == 0 && tile_k + kAhead < tiles_k) copy(tile_k + kAhead);
  } while (++tile_k < tiles_k);
  device::wgmma_wait_group<0>();
  __syncthreads();         // everybody has multiplied the last tile before the epilogue overwrites it
  if (threadIdx.x == 0) {  // without this, ptxas 13.0 has the products wait for each other: C7514
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

}  // namespace step_10_wgmma

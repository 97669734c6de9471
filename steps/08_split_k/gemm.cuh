/// @file
/// Step 08: several blocks share a tile of C, each with a part of k, where C has too few tiles for all SMs.
///
/// Changes since 06:
/// - The grid's y says which share of k a block has. The tile says how many shares there are.
/// - All but the last block of a tile leave their sums in a workspace, leave(), and the last one adds them, add_left(). Each word
///   is its own flag: no fence, no counter, and the same order in every run.
#pragma once

#include "common/device/fallback.cuh"
#include "common/device/learnt/fragment_load.cuh"
#include "common/device/learnt/ring.cuh"
#include "common/device/learnt/tile_copy.cuh"
#include "common/device/learnt/tile_order.cuh"
#include "common/device/store_fragments.cuh"
#include "common/device/workspace.cuh"
#include "steps/08_split_k/tiles.h"

namespace step_08_split_k {

using device::Contiguous, device::kFragment, device::Operand, gemm::ceil_div, gemm::Matrix;
using learnt::copy_tile, learnt::copy_whole_tile, learnt::FragmentLoad, learnt::Ring, learnt::TileIndex, learnt::TileOrder;

/// Leaves a thread's sums for the same thread of the tile's last block.
template <class Tile, int kRows, int kCols>
__device__ __forceinline__ void leave(const float (&r)[kRows][kCols][4], float4* place) {
#pragma unroll
  for (int i = 0; i < kRows * kCols; ++i) {
    device::st_relaxed_gpu(place + i * Tile::kThreads, r[i / kCols][i % kCols]);
  }
}
/// Adds what the other blocks have left, the first share first, and empties the places for the next launch.
template <class Tile, int kRows, int kCols>
__device__ __forceinline__ void add_left(float (&r)[kRows][kCols][4], float4* places) {
  constexpr int kCount = (Tile::kSplitK - 1) * kRows * kCols;
  float left[kCount][4];
  for (bool is_complete = false; !is_complete;) {
    is_complete = true;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {  // all, then again: many trips to the L2 cache take as long as one
      device::ld_relaxed_gpu(left[i], places + i * Tile::kThreads);
      is_complete &= device::is_left(left[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    device::empty_words(places + i * Tile::kThreads);
    for (int x = 0; x < 4; ++x) {
      r[i / kCols % kRows][i % kCols][x] += left[i][x];
    }
  }
}

/// One block, a share of k of one kBlockM x kBlockN tile of C. `share_k`: how much of k each block of the tile has but the last.
/// `workspace`: empty places for all tiles' sums. `c_chunks`: the rows of C are aligned chunks.
template <class Tile, Contiguous a_contiguous, Contiguous b_contiguous, class In, class Out, class Epilogue>
__global__ __launch_bounds__(Tile::kThreads, Tile::kBlocksPerSm) void gemm_kernel(Matrix<const In> A, Matrix<const In> B,
                                                                                  Matrix<Out> C, TileOrder<Tile::kGroupM> order,
                                                                                  int64_t share_k, float4* workspace, bool c_chunks,
                                                                                  Epilogue epilogue) {
  using TileA = device::TileLayout<Operand::kA, a_contiguous, Tile::kBlockM, Tile::kBlockK>;
  using TileB = device::TileLayout<Operand::kB, b_contiguous, Tile::kBlockN, Tile::kBlockK>;
  constexpr int kTileA = Tile::kBlockM * Tile::kBlockK;  // elements, before B's begin
  constexpr int kFragmentsM = Tile::kWarpM / kFragment, kFragmentsN = Tile::kWarpN / kFragment, kSlices = Tile::kBlockK / kFragment;
  In* const sAB = device::dynamic_smem<In>();  // (kBlockM, kBlockK) of A and (kBlockN, kBlockK) of B, or the other way round

  // 1. Which tile is mine, and which share of it?
  const TileIndex tile = order.tile_of_block(blockIdx.x);
  const int64_t m_0 = tile.m * Tile::kBlockM, n_0 = tile.n * Tile::kBlockN;
  const unsigned share = blockIdx.y;
  const bool is_last = share + 1 == gridDim.y;
  const int64_t k_0 = share * share_k;
  A = {A.at(0, k_0), A.rows, is_last ? A.cols - k_0 : share_k, A.row_stride, A.col_stride};
  B.data = B.at(k_0, 0);
  const int warp = threadIdx.x / 32, warp_m = warp / Tile::kWarpsN * Tile::kWarpM, warp_n = warp % Tile::kWarpsN * Tile::kWarpN;
  device::TileSource<TileA, Tile::kThreads, In> gA(A, m_0);
  const FragmentLoad<TileA, kFragmentsM, In> fragments_of_a(warp_m);
  device::TileSource<TileB, Tile::kThreads, In> gB(B.transposed(), n_0);
  const FragmentLoad<TileB, kFragmentsN, In> fragments_of_b(warp_n);

  // 2. Main loop
  float rC[kFragmentsM][2 * kFragmentsN][4] = {};  // mma.sync has 8 columns: two of them for each fragment of B
  struct Fragments {
    uint32_t A[kFragmentsM][4], B[kFragmentsN][4];
  } rAB[2];  // one set is loaded while the other one is multiplied
  const auto load = [&](Fragments& r, const In* s, int slice) {
    fragments_of_a.load(r.A, s, slice);
    fragments_of_b.load(r.B, s + kTileA, slice);
  };
  const auto multiply = [&](const Fragments& r) {
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
      for (int step = 0; step < 2 * kFragmentsN; ++step) {
        // Along one row, back along the next one: at the turn, the same fragment of B serves twice.
        const int j = i % 2 == 0 ? step : 2 * kFragmentsN - 1 - step;
        device::mma_m16n8k16<In>(rC[i][j], r.A[i], {r.B[j / 2][j % 2 * 2], r.B[j / 2][j % 2 * 2 + 1]});
      }
    }
  };
  Ring<Tile::kNumStages> ring;
  constexpr int kAhead = ring.kAhead, kAheadK = kAhead * Tile::kBlockK;
#pragma unroll 1  // in one case, nvcc 13.0.88 unrolled it by two and left two of five copies out
  for (int i = 0; i < kAhead; ++i) {
    copy_tile(gA, sAB + i * Tile::kStageElements, A.cols - i * Tile::kBlockK);  // past the end of k zeros
    copy_tile(gB, sAB + i * Tile::kStageElements + kTileA, A.cols - i * Tile::kBlockK);
    device::cp_async_commit_group();
  }
  device::cp_async_wait_group<kAhead - 1>();
  __syncthreads();  // the first stage is complete before anybody reads it
  load(rAB[0], sAB, 0);
  const auto multiply_tile = [&](auto is_checked, int64_t k_left) {
    const int free_stage = ring.previous();  // everybody has read it: that was before the last barrier
    // After the last tile, fragments are loaded once more, from the same stage and for nothing: a branch would cost more.
    const int next = is_checked() && k_left <= Tile::kBlockK ? ring.stage : ring.next();
    const auto refill = [&](auto& g, In* s) {
      if (!is_checked()) copy_whole_tile(g, s + free_stage * Tile::kStageElements);
      if (is_checked() && k_left > kAheadK) copy_tile(g, s + free_stage * Tile::kStageElements, k_left - kAheadK);
    };
#pragma unroll
    for (int slice = 0; slice + 1 < kSlices; ++slice) {
      load(rAB[(slice + 1) % 2], sAB + ring.stage * Tile::kStageElements, slice + 1);
      multiply(rAB[slice % 2]);
      if (slice == 0) refill(gA, sAB);
      if (slice == (kSlices > 2 ? 1 : 0)) refill(gB, sAB + kTileA);
    }
    device::cp_async_commit_group();  // past the end of k an empty one, so that counting groups still counts tiles
    device::cp_async_wait_group<kAhead - 1>();
    __syncthreads();  // the next stage is complete before anybody reads it; everybody has read this one before it is refilled
    load(rAB[0], sAB + next * Tile::kStageElements, 0);
    multiply(rAB[1]);  // the last slice
    ring.stage = next;
  };
  int64_t k_left = A.cols;
  // Where no chunk is split, no branch parts the products, and copies mix with them.
  for (; gA.ends_with_chunk() && gB.ends_with_chunk() && k_left >= kAheadK + Tile::kBlockK; k_left -= Tile::kBlockK) {
    multiply_tile(std::false_type{}, k_left);
  }
  for (; k_left > 0; k_left -= Tile::kBlockK) {
    multiply_tile(std::true_type{}, k_left);
  }
  device::cp_async_wait_group<0>();  // where k is short, zeros may still be on their way to later stages
  __syncthreads();                   // everybody has read the last stage before the epilogue overwrites it

  // 3. One block has the whole sum: the last. The GPU starts it after the others, so they are there, or were.
  if constexpr (Tile::kSplitK > 1) {
    float4* const places = workspace + int64_t{blockIdx.x} * (Tile::kSplitK - 1) * Tile::kSums + threadIdx.x;
    if (!is_last) return leave<Tile>(rC, places + share * Tile::kSums);
    if (gridDim.y > 1) add_left<Tile>(rC, places);
  }

  // 4. Epilogue, in the memory of the tiles
  Out* const sC = reinterpret_cast<Out*>(sAB) + warp * device::kStoreFragmentsElements<Tile::kWarpN>;
  device::store_fragments(rC, sC, C, m_0 + warp_m, n_0 + warp_n, c_chunks, epilogue);
}

template <class Tile, class In, class Out, class Epilogue>
void gemm(Matrix<const In> A, Matrix<const In> B, Matrix<Out> C, Epilogue epilogue) {
  gemm::check(A, B, C);
  const int64_t tiles_m = ceil_div<int64_t>(C.rows, Tile::kBlockM), tiles_n = ceil_div<int64_t>(C.cols, Tile::kBlockN);
  const int64_t tiles_c = tiles_m * tiles_n, share_k = Tile::share_k(tiles_c, A.cols);
  if (tiles_c == 0) return;
  if (!device::in_chunks(A) || !device::in_chunks(B)) return device::fallback_gemm(A, B, C, epilogue);

  const dim3 grid(gemm::grid_size(tiles_c), share_k > 0 ? Tile::kSplitK : 1);
  // Strides become a layout once, here: a kernel for each pair of transpositions.
  device::with_contiguous(A, B, [&](auto a, auto b) {
    if constexpr (Tile::kEveryLayout || (a() == Contiguous::kK && b() == Contiguous::kMN)) {
      device::launch(gemm_kernel<Tile, a(), b(), In, Out, Epilogue>, grid, Tile::kThreads, Tile::kSharedBytes, A, B, C,
                     TileOrder<Tile::kGroupM>(tiles_m, tiles_n), share_k, device::workspace(tiles_c * (grid.y - 1) * Tile::kSums),
                     device::chunks_aligned(C.data, C.col_stride, C.row_stride), epilogue);
    } else {
      gemm<EveryLayoutTile>(A, B, C, epilogue);
    }
  });
}

using Inputs = gemm::TypeList<__half, __nv_bfloat16>;

}  // namespace step_08_split_k

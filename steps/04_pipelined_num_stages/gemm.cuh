/// @file
/// Step 04: prefetch. Tiles are copied while others are multiplied, fragments are loaded while others are multiplied.
///
/// Changes since 03:
/// - Shared memory holds a ring of kNumStages stages. What has been read is refilled between the products of the next stage.
/// - One barrier per tile instead of two: it says both that the next stage is complete and that this one is free.
/// - Two sets of fragments in registers: the next slice's are loaded before this slice's are multiplied, across tiles too.
#pragma once

#include "common/device/fallback.cuh"
#include "common/device/learnt/fragment_load.cuh"
#include "common/device/learnt/tile_copy.cuh"
#include "common/device/store_fragments.cuh"
#include "common/gemm/gemm.h"

namespace step_04_pipelined_num_stages {

using device::Contiguous, device::kFragment, device::Operand, gemm::ceil_div, gemm::Matrix;
using learnt::copy_tile, learnt::copy_whole_tile, learnt::FragmentLoad;

/// What a block and a warp compute of C, and what follows from it.
template <int block_m, int block_n, int block_k, int warp_m, int warp_n, int num_stages>
struct Tile {
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = block_k;  // the block's tile of C, and its steps along k
  static constexpr int kWarpM = warp_m, kWarpN = warp_n;                         // a warp's part of it
  static constexpr int kNumStages = num_stages;                                  // tiles of A and B in shared memory
  static constexpr int kWarpsM = kBlockM / kWarpM, kWarpsN = kBlockN / kWarpN;
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr int kBlocksPerSm = kThreads > 128 ? 1 : 256 / kThreads;  // as many as fit if each thread has 255 registers
  static constexpr int kStageElements = (kBlockM + kBlockN) * kBlockK;      // a tile of A, then one of B
  static constexpr auto kSharedBytes = device::ring(kNumStages, 2 * kBlockM * kBlockK, 2 * kBlockN * kBlockK);

  static_assert(kSharedBytes <= 227 * 1024, "no GPU has more shared memory for a block");
  static_assert(kThreads / 32 * device::kStoreFragmentsElements<kWarpN> * 4 <= kSharedBytes, "the epilogue uses the tiles' memory");
  static_assert(kWarpM % kFragment == 0 && kWarpN % kFragment == 0 && kBlockK % (2 * kFragment) == 0, "two sets of fragments");
  static_assert(kWarpsM * kWarpM == kBlockM && kWarpsN * kWarpN == kBlockN, "warps must tile the block");
};

/// Where a block stands in its ring of stages in shared memory, each a tile of A and one of B.
template <int kStages>
struct Ring {
  static constexpr int kAhead = kStages > 1 ? kStages - 1 : 1;  // tiles on their way while one is multiplied

  /// The stage of the next tile.
  __host__ __device__ constexpr int next() const { return stage + 1 < kStages ? stage + 1 : 0; }
  /// The stage of the tile before.
  __host__ __device__ constexpr int previous() const { return stage > 0 ? stage - 1 : kStages - 1; }

  int stage = 0;  // of the tile that is multiplied
};

/// One block, one kBlockM x kBlockN tile of C. `c_chunks`: the rows of C are aligned chunks.
template <class Tile, Contiguous a_contiguous, Contiguous b_contiguous, class In, class Out, class Epilogue>
__global__ __launch_bounds__(Tile::kThreads, Tile::kBlocksPerSm) void gemm_kernel(Matrix<const In> A, Matrix<const In> B,
                                                                                  Matrix<Out> C, bool c_chunks, Epilogue epilogue) {
  using TileA = device::TileLayout<Operand::kA, a_contiguous, Tile::kBlockM, Tile::kBlockK>;
  using TileB = device::TileLayout<Operand::kB, b_contiguous, Tile::kBlockN, Tile::kBlockK>;
  constexpr int kTileA = Tile::kBlockM * Tile::kBlockK;  // elements, before B's begin
  constexpr int kFragmentsM = Tile::kWarpM / kFragment, kFragmentsN = Tile::kWarpN / kFragment, kSlices = Tile::kBlockK / kFragment;
  In* const sAB = device::dynamic_smem<In>();  // (kBlockM, kBlockK) of A and (kBlockN, kBlockK) of B, or the other way round

  // 1. Which tile is mine? The blocks lie row by row over C.
  const auto tiles_n = static_cast<unsigned>(ceil_div<int64_t>(C.cols, Tile::kBlockN));  // < 2^31, as the grid
  const int64_t m_0 = int64_t{blockIdx.x / tiles_n} * Tile::kBlockM, n_0 = int64_t{blockIdx.x % tiles_n} * Tile::kBlockN;
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
  const auto copy = [&](In* s, int64_t k_left) {
    copy_tile(gA, s, k_left);
    copy_tile(gB, s + kTileA, k_left);
  };
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
    copy(sAB + i * Tile::kStageElements, A.cols - i * Tile::kBlockK);  // past the end of k zeros
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
      if (Tile::kNumStages > 1 && slice == 0) refill(gA, sAB);
      if (Tile::kNumStages > 1 && slice == (kSlices > 2 ? 1 : 0)) refill(gB, sAB + kTileA);
    }
    if (Tile::kNumStages == 1) {
      __syncthreads();  // now everybody has read the only stage
      refill(gA, sAB);
      refill(gB, sAB + kTileA);
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

  // 3. Epilogue, in the memory of the tiles
  Out* const sC = reinterpret_cast<Out*>(sAB) + warp * device::kStoreFragmentsElements<Tile::kWarpN>;
  device::store_fragments(rC, sC, C, m_0 + warp_m, n_0 + warp_n, c_chunks, epilogue);
}

template <class Tile, class In, class Out, class Epilogue>
void gemm(Matrix<const In> A, Matrix<const In> B, Matrix<Out> C, Epilogue epilogue) {
  gemm::check(A, B, C);
  const int64_t tiles_m = ceil_div<int64_t>(C.rows, Tile::kBlockM), tiles_n = ceil_div<int64_t>(C.cols, Tile::kBlockN);
  if (tiles_m * tiles_n == 0) return;
  if (!device::in_chunks(A) || !device::in_chunks(B)) return device::fallback_gemm(A, B, C, epilogue);

  // Strides become a layout once, here: a kernel for each pair of transpositions.
  device::with_contiguous(A, B, [&](auto a, auto b) {
    device::launch(gemm_kernel<Tile, a(), b(), In, Out, Epilogue>, gemm::grid_size(tiles_m * tiles_n), Tile::kThreads,
                   Tile::kSharedBytes, A, B, C, device::chunks_aligned(C.data, C.col_stride, C.row_stride), epilogue);
  });
}

using Inputs = gemm::TypeList<__half, __nv_bfloat16>;
using Tiles = gemm::TypeList<Tile<128, 128, 64, 64, 64, 3>>;
using MoreTiles = gemm::TypeList<Tile<128, 128, 64, 64, 64, 1>, Tile<128, 128, 64, 64, 64, 2>, Tile<128, 128, 64, 64, 64, 4>,
                                 Tile<128, 128, 64, 64, 64, 6>>;

}  // namespace step_04_pipelined_num_stages

/// @file
/// Step 09: the copy engine. One thread starts the copy of a whole tile; nobody computes addresses.
///
/// Changes since 04:
/// - A tile is made of panels, 64 x 64. One instruction of one thread copies a panel, swizzled, zeros beyond the matrix.
/// - Two barriers for each stage, full and empty, instead of groups and __syncthreads(): a warp no longer waits for all others.
#pragma once

#include "common/device/bulk_copy.cuh"
#include "common/device/fallback.cuh"
#include "common/device/learnt/fragment_load.cuh"
#include "common/device/store_fragments.cuh"
#include "common/device/tensor_operand.h"
#include "common/gemm/gemm.h"

namespace step_09_tma {

using device::Contiguous, device::kFragment, device::Mbarrier, device::Operand, device::TensorMap, gemm::ceil_div, gemm::Matrix;
using learnt::FragmentLoad;

/// Rows and columns of a panel: what one instruction copies of a tile. A row of it is as wide as the widest swizzle, 128 bytes.
constexpr int kPanel = 64;

/// What a block and a warp compute of C, and what follows from it.
template <int block_m, int block_n, int num_stages>
struct Tile {
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = kPanel;  // the block's tile of C, and its steps along k
  static constexpr int kWarpM = kPanel, kWarpN = kPanel;                        // a warp's part of it
  static constexpr int kNumStages = num_stages;                                 // tiles of A and B in shared memory
  static constexpr int kWarpsM = kBlockM / kWarpM, kWarpsN = kBlockN / kWarpN;
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr int kBlocksPerSm = kThreads > 128 ? 1 : 256 / kThreads;  // as many as fit if each thread has 255 registers
  static constexpr int kStageElements = (kBlockM + kBlockN) * kBlockK;      // a tile of A, then one of B
  static constexpr int kStageBytes = kStageElements * 2;
  static constexpr auto kSharedBytes =
      device::ring(kNumStages, 2 * kBlockM * kBlockK, 2 * kBlockN * kBlockK, kPanel * 128).barriers(kNumStages);

  static_assert(kNumStages > 1, "one stage is multiplied while others are filled");
  static_assert(kSharedBytes <= 227 * 1024, "no GPU has more shared memory for a block");
  static_assert(kThreads / 32 * device::kStoreFragmentsElements<kWarpN> * 4 <= kStageBytes * kNumStages, "the epilogue's memory");
};

/// The map of the operand's panels; k along its columns.
template <class In>
TensorMap panel_map(const Matrix<const In>& g, Contiguous contiguous) {
  device::TensorLayout layout = device::tensor_layout(g, contiguous);
  layout.box_rows = layout.box_columns = kPanel;
  layout.swizzle = device::Swizzle::k128;
  return device::make_tensor_map<In>(layout);
}

/// Starts copying a tile of an operand that has `extent` of m, or n: kBlockMN of them, and panel `tile_k` along k. For one thread.
template <Contiguous contiguous, int kBlockMN, class In>
__device__ __forceinline__ void copy_panels(In* s, const TensorMap* map, int mn, int64_t extent, int tile_k, Mbarrier* barrier) {
#pragma unroll
  for (int i = 0; i < kBlockMN; i += kPanel) {
    const bool along_k = contiguous == Contiguous::kK;
    const int k = tile_k * kPanel, at = mn + i < extent ? mn + i : 0;  // the first panel for one outside: zeros take longer
    device::cp_async_bulk_tensor_2d(s + i * kPanel, map, along_k ? k : at, along_k ? at : k, barrier);
  }
}

/// Where a tile lies in a ring of stages. Each stage has two barriers with the same phases: it is full, then empty, and full again.
template <int kStages>
struct RingPlace {
  __device__ __forceinline__ explicit RingPlace(int tile) : stage(tile % kStages), phase(tile / kStages % 2) {}  ///< its number
  int stage;
  uint32_t phase;  // parity
};

/// One block, one kBlockM x kBlockN tile of C. `c_chunks`: the rows of C are aligned chunks.
template <class Tile, Contiguous a_contiguous, Contiguous b_contiguous, class In, class Out, class Epilogue>
__global__ __launch_bounds__(Tile::kThreads, Tile::kBlocksPerSm) void gemm_kernel(const __grid_constant__ TensorMap map_a,
                                                                                  const __grid_constant__ TensorMap map_b,
                                                                                  Matrix<Out> C, int tiles_k, bool c_chunks,
                                                                                  Epilogue epilogue) {
  using PanelA = device::TileLayout<Operand::kA, a_contiguous, kPanel, Tile::kBlockK>;
  using PanelB = device::TileLayout<Operand::kB, b_contiguous, kPanel, Tile::kBlockK>;
  constexpr int kTileA = Tile::kBlockM * Tile::kBlockK;  // elements, before B's begin
  constexpr int kFragmentsM = Tile::kWarpM / kFragment, kFragmentsN = Tile::kWarpN / kFragment, kSlices = Tile::kBlockK / kFragment;
  In* const sAB = device::dynamic_smem<In>();  // kNumStages times the panels of A and B
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(sAB + Tile::kNumStages * Tile::kStageElements);  // (kNumStages)
  Mbarrier* const empty = full + Tile::kNumStages;                                                    // (kNumStages)

  // 1. Which tile is mine? The blocks lie row by row over C.
  const auto tiles_n = static_cast<unsigned>(ceil_div<int64_t>(C.cols, Tile::kBlockN));  // < 2^31, as the grid
  const int m_0 = static_cast<int>(blockIdx.x / tiles_n) * Tile::kBlockM,
            n_0 = static_cast<int>(blockIdx.x % tiles_n) * Tile::kBlockN;
  const int warp = threadIdx.x / 32, warp_m = warp / Tile::kWarpsN * Tile::kWarpM, warp_n = warp % Tile::kWarpsN * Tile::kWarpN;
  const FragmentLoad<PanelA, kFragmentsM, In> fragments_of_a(0);
  const FragmentLoad<PanelB, kFragmentsN, In> fragments_of_b(0);
  if (threadIdx.x == 0) {
    for (int i = 0; i < Tile::kNumStages; ++i) {
      device::mbarrier_init(&full[i], 1);
      device::mbarrier_init(&empty[i], Tile::kThreads / 32);
    }
    device::fence_mbarrier_init();
  }
  __syncthreads();  // the barriers exist before anybody waits for them

  // 2. Main loop
  float rC[kFragmentsM][2 * kFragmentsN][4] = {};  // mma.sync has 8 columns: two of them for each fragment of B
  struct Fragments {
    uint32_t A[kFragmentsM][4], B[kFragmentsN][4];
  } rAB[2];  // one set is loaded while the other one is multiplied
  const auto copy = [&](int tile_k) {
    const RingPlace<Tile::kNumStages> place(tile_k);
    In* const s = sAB + place.stage * Tile::kStageElements;
    Mbarrier* const barrier = &full[place.stage];
    device::mbarrier_wait_parity(&empty[place.stage], place.phase ^ 1);  // what was there has been read; at first nothing was
    device::mbarrier_arrive_expect_tx(barrier, Tile::kStageBytes);
    copy_panels<a_contiguous, Tile::kBlockM>(s, &map_a, m_0, C.rows, tile_k, barrier);
    copy_panels<b_contiguous, Tile::kBlockN>(s + kTileA, &map_b, n_0, C.cols, tile_k, barrier);
  };
  const auto load = [&](Fragments& r, int stage, int slice) {
    const In* const s = sAB + stage * Tile::kStageElements;
    fragments_of_a.load(r.A, s + warp_m * Tile::kBlockK, slice);
    fragments_of_b.load(r.B, s + kTileA + warp_n * Tile::kBlockK, slice);
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
  constexpr int kAhead = Tile::kNumStages - 1;  // tiles on their way while one is multiplied
  if (warp == 0 && device::elect_sync()) {      // nvcc knows that this is one lane, unlike threadIdx.x == 0: no loop over lanes
    for (int i = 0; i < kAhead && i < tiles_k; ++i) {
      copy(i);
    }
  }
  device::mbarrier_wait_parity(&full[0], 0);
  load(rAB[0], 0, 0);
  for (int tile_k = 0; tile_k < tiles_k; ++tile_k) {
    const RingPlace<Tile::kNumStages> place(tile_k), next(min(tile_k + 1, tiles_k - 1));
#pragma unroll
    for (int slice = 0; slice + 1 < kSlices; ++slice) {
      load(rAB[(slice + 1) % 2], place.stage, slice + 1);
      multiply(rAB[slice % 2]);
      if (slice == 0 && tile_k + kAhead < tiles_k && warp == 0 && device::elect_sync()) copy(tile_k + kAhead);
    }
    __syncwarp();  // all lanes have read this stage
    if (threadIdx.x % 32 == 0) device::mbarrier_arrive(&empty[place.stage]);
    // After the last tile, fragments are loaded once more, from the same stage and for nothing: a branch would cost more.
    device::mbarrier_wait_parity(&full[next.stage], next.phase);
    load(rAB[0], next.stage, 0);
    multiply(rAB[1]);  // the last slice
  }
  __syncthreads();  // everybody has read the last stage before the epilogue overwrites it

  // 3. Epilogue, in the memory of the tiles
  Out* const sC = reinterpret_cast<Out*>(sAB) + warp * device::kStoreFragmentsElements<Tile::kWarpN>;
  device::store_fragments(rC, sC, C, m_0 + warp_m, n_0 + warp_n, c_chunks, epilogue);
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
                   static_cast<int>(ceil_div<int64_t>(A.cols, Tile::kBlockK)),
                   device::chunks_aligned(C.data, C.col_stride, C.row_stride), epilogue);
  });
}

using Inputs = gemm::TypeList<__half, __nv_bfloat16>;
using Tiles = gemm::TypeList<Tile<128, 128, 3>>;
using MoreTiles = gemm::TypeList<Tile<128, 128, 2>, Tile<128, 128, 6>>;

}  // namespace step_09_tma

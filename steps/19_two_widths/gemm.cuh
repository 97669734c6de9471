/// @file
/// Step 19: tiles of two widths, so that each SM has as much of C as any other.
///
/// Changes since 17:
/// - C has three parts, two of wide tiles and one of narrow ones, as large as parts.h says.
/// - A block computes its wide tiles first, then its narrow ones: a loop for each, multiply_tiles(). Of a narrow one, `wgmma` has
///   fewer columns, and the last panel of C. What is copied stays the same.
#pragma once

#include "common/device/dependent_launch.cuh"
#include "common/device/fallback.cuh"
#include "common/device/learnt/ping_pong.cuh"
#include "common/device/learnt/store_later.cuh"
#include "common/device/learnt/tile_order.cuh"
#include "common/device/store_fragments.cuh"
#include "steps/19_two_widths/parts.h"

namespace step_19_two_widths {

using device::Contiguous, device::Major, device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;
using learnt::copy_panels, learnt::kPanel, learnt::kWarpgroup, learnt::kWgmmaK, learnt::panel_map, learnt::Registers,
    learnt::RingPlace, learnt::slice_descriptor, learnt::store_panel, learnt::store_panels;

/// 17's tile, and a narrow one: fewer columns, and as many panels of them. In nn, rows of B are then copied from multiples of
/// kNarrowN on: best if these are whole sectors, 16 elements.
template <int block_m, int block_n, int narrow_n, int num_stages, int group_m>
struct Tile : learnt::Tile<block_m, block_n, num_stages, group_m, learnt::Schedule::kCooperative> {
  static constexpr int kNarrowN = narrow_n;
  static_assert(kNarrowN < block_n && ceil_div(kNarrowN, kPanel) == ceil_div(block_n, kPanel) && kNarrowN % 8 == 0);
};

/// As many blocks as SMs. `c_panels`: the engine can store C; `c_chunks`: its rows are aligned chunks.
template <class Tile, Contiguous a_contiguous, Contiguous b_contiguous, class In, class Out, class Epilogue>
__global__ __launch_bounds__(Tile::kThreads, 1) void gemm_kernel(const __grid_constant__ TensorMap map_a,
                                                                 const __grid_constant__ TensorMap map_b,
                                                                 const __grid_constant__ TensorMap map_c,
                                                                 const __grid_constant__ TensorMap map_narrow, Matrix<Out> C,
                                                                 int tiles_k, const __grid_constant__ Parts<Tile> parts,
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

  // 2. Main loop: one thread's, which copies ...
  if (warpgroup == Tile::kMultiplying) {
    device::setmaxnreg_dec<Registers<Tile::kMultiplying>::kToCopy>();
    if (warp == 4 * Tile::kMultiplying && device::elect_sync()) {
      int i = 0;  // tiles that have been copied, of all tiles of C
      for (unsigned t = blockIdx.x; t < parts.tiles(); t += gridDim.x) {
        const Corner corner = parts.corner_of(t);
        for (int tile_k = 0; tile_k < tiles_k; ++tile_k, ++i) {
          const RingPlace<Tile::kNumStages> place(i);
          In* const s = sAB + place.stage * Tile::kStageElements;
          device::mbarrier_wait_parity(&empty[place.stage], place.phase ^ 1);  // what was there has been read
          device::mbarrier_arrive_expect_tx(&full[place.stage], kStageBytes);
          copy_panels<a_contiguous, Tile::kBlockM>(s, &map_a, corner.row, C.rows, tile_k, &full[place.stage]);
          copy_panels<b_contiguous, Tile::kBlockN>(s + kTileA, &map_b, corner.col, C.cols, tile_k, &full[place.stage]);
        }
      }
      if (parts.tiles() <= 2 * gridDim.x) device::griddepcontrol_launch_dependents();  // as in 14
    }
    return;
  }

  // ... and that of the warpgroups that multiply
  device::setmaxnreg_inc<Registers<Tile::kMultiplying>::kToMultiply>();
  constexpr int kPanelsC = sizeof(Out) == 2 ? Tile::kBlockN / device::store_cols<Tile::kBlockN, Out>() : 0;  // that wait
  uint32_t packed[Tile::kBlockN / 4] = {};  // the tile before, until it is stored; a narrow one is shorter
  char* const s = sC + warpgroup * Tile::kStoreBytes;
  int i = 0, row = -1, col = 0, turn = 0;  // row < 0: no tile waits; turn: panels so far, in two places
  bool is_narrow = false;                  // the tile that waits
  const auto store = [&](int panel) {
    const TensorMap* const map = is_narrow && panel == kPanelsC - 1 ? &map_narrow : &map_c;
    if (c_panels && row >= 0) store_panel<Tile::kBlockN, Out>(panel, packed, s + (turn + panel) % 2 * kPanelBytes, map, row, col);
  };
  unsigned t = blockIdx.x;
  const auto multiply_tiles = [&](auto cols, unsigned end) {  // tiles of `cols` columns, up to number `end`
    float rC[cols() / 2];
    for (; t < end; t += gridDim.x) {
      const Corner corner = parts.corner_of(t);
      int tile_k = 0;
      const auto multiply = [&] {
        const RingPlace<Tile::kNumStages> place(i);
        device::mbarrier_wait_parity(&full[place.stage], place.phase);
        const In* const sA = sAB + place.stage * Tile::kStageElements + warpgroup * kPanel * Tile::kBlockK;
        const In* const sB = sAB + place.stage * Tile::kStageElements + kTileA;
        device::wgmma_fence();
#pragma unroll
        for (int slice = 0; slice < Tile::kBlockK / kWgmmaK; ++slice) {
          device::wgmma_m64k16<In, cols(), kMajorA, kMajorB>(rC, slice_descriptor<a_contiguous>(sA, slice),
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
        store(panel);
      }
      while (tile_k < tiles_k) multiply();
      device::wgmma_wait_group<0>();
      if (lane == 0) device::mbarrier_arrive(&empty[RingPlace<Tile::kNumStages>(i - 1).stage]);

      // 3. Epilogue. What the engine can store waits
      row = corner.row + warpgroup * kPanel;
      col = corner.col;
      is_narrow = cols() == Tile::kNarrowN;
      turn += kPanelsC;
      device::apply_epilogue(rC, epilogue, col);
      if constexpr (sizeof(Out) == 2) {  // floats cannot be packed
#pragma unroll
        for (int j = 0; j < cols() / 4; ++j) packed[j] = device::pack<Out>(rC[2 * j], rC[2 * j + 1]);
      } else if (c_panels) {
        store_panels<cols(), Out>(rC, s, is_narrow ? &map_narrow : &map_c, row, col);
      }
      if (!c_panels) {
        Out* const s_warp = reinterpret_cast<Out*>(s + warp % 4 * Tile::kStoreBytes / 4);
        device::store_fragments<64 / sizeof(Out)>(rC, s_warp, C, row + warp % 4 * 16, col, c_chunks, gemm::Identity{});
      }
    }
  };
  multiply_tiles(std::integral_constant<int, Tile::kBlockN>{}, parts.wide_tiles());
  multiply_tiles(std::integral_constant<int, Tile::kNarrowN>{}, parts.tiles());
#pragma unroll
  for (int panel = 0; panel < kPanelsC; ++panel) store(panel);
  if (warp % 4 == 0 && device::elect_sync()) device::cp_async_bulk_wait_group_read<0>();  // a block's shared memory ends with it
}

template <class Tile, class In, class Out, class Epilogue>
void gemm(Matrix<const In> A, Matrix<const In> B, Matrix<Out> C, Epilogue epilogue) {
  gemm::check(A, B, C);
  if (C.rows * C.cols == 0) return;
  if (!device::has_tensor_map(A) || !device::has_tensor_map(B.transposed())) return device::fallback_gemm(A, B, C, epilogue);
  const bool c_chunks = device::chunks_aligned(C.data, C.col_stride, C.row_stride), c_panels = device::has_store_map(C);
  const TensorMap map_c = c_panels ? device::store_map<Tile::kBlockN>(C, kPanel) : TensorMap{};
  TensorMap map_narrow{};  // of a narrow tile's last panel; of floats, of each of its panels
  if (c_panels && sizeof(Out) == 2) map_narrow = device::box_map(C, Contiguous::kK, kPanel, (Tile::kNarrowN - 1) % kPanel + 1);
  if (c_panels && sizeof(Out) == 4) map_narrow = device::store_map<Tile::kNarrowN>(C, kPanel);
  const Parts<Tile> parts(C.rows, C.cols, device::multiprocessors());
  const unsigned blocks = std::min(parts.tiles(), device::multiprocessors());

  // Strides become a layout once, here: a kernel for each pair of transpositions.
  device::with_contiguous(A, B, [&](auto a, auto b) {
    device::launch_dependent(gemm_kernel<Tile, a(), b(), In, Out, Epilogue>, blocks, Tile::kThreads, Tile::kSharedBytes,
                             panel_map(A, a()), panel_map(B.transposed(), b()), map_c, map_narrow, C,
                             static_cast<int>(ceil_div<int64_t>(A.cols, Tile::kBlockK)), parts, c_panels, c_chunks, epilogue);
  });
}

using Inputs = gemm::TypeList<__half, __nv_bfloat16>;
using Tiles = gemm::TypeList<Tile<128, 256, 240, 4, 8>>;
using MoreTiles = gemm::TypeList<Tile<128, 256, 224, 4, 8>, Tile<128, 192, 176, 4, 8>>;

}  // namespace step_19_two_widths

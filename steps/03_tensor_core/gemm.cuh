/// @file
/// Step 03: tensor cores. A warp multiplies fragments of 16 x 16 elements with one instruction.
///
/// Changes since 02:
/// - mma.sync instead of multiply-adds: a warp, not a thread, owns a part of the block's tile.
/// - cp.async copies tiles as they are, 16-bit, without a detour through registers; swizzled instead of padded.
/// - ldmatrix brings fragments from there into registers, transposing them on the way where the layout asks for it.
#pragma once

#include "common/device/fallback.cuh"
#include "common/device/store_fragments.cuh"
#include "common/device/tile_source.cuh"
#include "common/gemm/gemm.h"

namespace step_03_tensor_core {

using device::Contiguous, device::kFragment, device::Operand, gemm::ceil_div, gemm::Matrix;

/// What a block and a warp compute of C, and what follows from it.
template <int block_m, int block_n, int block_k, int warp_m, int warp_n>
struct Tile {
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = block_k;  // the block's tile of C, and its steps along k
  static constexpr int kWarpM = warp_m, kWarpN = warp_n;                         // a warp's part of it
  static constexpr int kWarpsM = kBlockM / kWarpM, kWarpsN = kBlockN / kWarpN;
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr int kBlocksPerSm = kThreads > 128 ? 1 : 256 / kThreads;  // as many as fit if each thread has 255 registers
  static constexpr int kStageElements = (kBlockM + kBlockN) * kBlockK;      // a tile of A, then one of B
  static constexpr auto kSharedBytes = device::ring(1, 2 * kBlockM * kBlockK, 2 * kBlockN * kBlockK);

  static_assert(kSharedBytes <= 227 * 1024, "no GPU has more shared memory for a block");
  static_assert(kThreads / 32 * device::kStoreFragmentsElements<kWarpN> * 4 <= kSharedBytes, "the epilogue uses the tiles' memory");
  static_assert(kWarpM % kFragment == 0 && kWarpN % kFragment == 0 && kBlockK % kFragment == 0, "warps multiply whole fragments");
  static_assert(kWarpsM * kWarpM == kBlockM && kWarpsN * kWarpN == kBlockN, "warps must tile the block");
};

/// Place of a chunk in a tile whose rows have kRow elements. Eight lanes of ldmatrix read the same chunk of eight rows: were these
/// below each other, all would want the same banks. XOR puts them into different ones, and no memory is lost.
template <int kRow>
__host__ __device__ constexpr int swizzled(int row, int chunk) {
  constexpr int kChunks = kRow / 8, kRowsPerLine = kChunks < 8 ? 8 / kChunks : 1;  // rows in the 128 bytes of all banks
  return row * kRow + (chunk ^ (row / kRowsPerLine % 8 & (kChunks - 1))) * 8;
}

/// Starts copying the next tile of g to s, a whole one: each thread the same chunk of every kStep-th row.
template <class Source, class In>
__device__ __forceinline__ void copy_whole_tile(Source& g, In* s) {
  In* const first = s + swizzled<Source::kRow>(g.row(), g.chunk());
  const In* from = g.data();
#pragma unroll
  for (int i = 0; i < Source::kRows; i += Source::kStep) {  // the swizzle is the same every eight rows
    In* const to = Source::kStep % 8 == 0 ? first + i * Source::kRow : s + swizzled<Source::kRow>(g.row() + i, g.chunk());
    device::cp_async_cg_16_if(g.has_chunk(i), to, from);
    from += Source::kStep * g.row_stride();
  }
  g.next_tile();
}
/// The same for any tile, zeros where g has ended; k_left is how much of k is left.
template <class Source, class In>
__device__ __forceinline__ void copy_tile(Source& g, In* s, int64_t k_left) {
  if (g.ends_with_chunk() && k_left >= Source::kBlockK) return copy_whole_tile(g, s);
  In* const first = s + swizzled<Source::kRow>(g.row(), g.chunk());
#pragma unroll 4
  for (int i = 0; i < Source::kRows; i += Source::kStep) {
    In* const to = Source::kStep % 8 == 0 ? first + i * Source::kRow : s + swizzled<Source::kRow>(g.row() + i, g.chunk());
    device::copy_chunk(to, g.data() + i * g.row_stride(), g.elements(i, k_left));
  }
  g.next_tile();
}

/// A lane's places for ldmatrix in the tiles of an operand: kCount fragments, from row `warp_mn` of A or column `warp_mn` of B on.
template <class Layout, int kCount, class In>
struct FragmentLoad {
  static constexpr int kRow = Layout::kRow, kOffsets = Layout::kAlongMN ? kCount : Layout::kBlockK / kFragment;
  __device__ __forceinline__ explicit FragmentLoad(int warp_mn) {  ///< the same for all tiles
    // Four matrices of 8 x 8, in the order in which mma.sync wants them: A's go down m first, B's along k.
    const int lane = threadIdx.x % 32, low = lane / 8 % 2, high = lane / 16;
    const int mn = warp_mn + 8 * (Layout::kIsA ? low : high) + (Layout::kAlongMN ? 0 : lane % 8);
    const int k = 8 * (Layout::kIsA ? high : low) + (Layout::kAlongMN ? lane % 8 : 0);
#pragma unroll
    for (int i = 0; i < kOffsets; ++i) {
      offset[i] = Layout::kAlongMN ? swizzled<kRow>(k, (mn + i * kFragment) / 8) : swizzled<kRow>(mn, (k + i * kFragment) / 8);
    }
  }
  /// Loads the fragments of one slice, kFragment of k, of tile s.
  __device__ __forceinline__ void load(uint32_t (&r)[kCount][4], const In* s, int slice) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if constexpr (Layout::kAlongMN) {
        device::ldmatrix_x4_trans(r[i], s + offset[i] + slice * kFragment * kRow);
      } else {
        device::ldmatrix_x4(r[i], s + offset[slice] + i * kFragment * kRow);
      }
    }
  }
  int offset[kOffsets];  // computed once, because the instruction's address cannot hold an XOR
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
  } rAB;
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
  for (int64_t k_left = A.cols; k_left > 0; k_left -= Tile::kBlockK) {
    copy(sAB, k_left);
    device::cp_async_wait_all();
    __syncthreads();  // the tiles are complete before anybody reads them
#pragma unroll
    for (int slice = 0; slice < kSlices; ++slice) {
      load(rAB, sAB, slice);
      multiply(rAB);
    }
    __syncthreads();  // everybody has read the tiles before they are overwritten
  }

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
using Tiles = gemm::TypeList<Tile<128, 128, 64, 64, 64>>;
using MoreTiles = gemm::TypeList<>;

}  // namespace step_03_tensor_core

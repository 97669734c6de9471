/// @file
/// Step 07: the activation in the epilogue, on sums that are still in registers: no second kernel reads and writes C again.
///
/// Changes since 06:
/// - The kernel applies the epilogue, not the store: it asks once for each column of a lane, so that there may be a bias.
/// - The candidates are most of those that won somewhere in 06; Activations lists what can be fused into the first of them.
#pragma once

#include "common/device/store_fragments.cuh"
#include "common/gemm/activation.h"

namespace step_07_fused_leaky_relu {

using device::Contiguous, device::kChunk, gemm::ceil_div, gemm::Matrix;

constexpr int kFragment = 16;  ///< rows and columns that one ldmatrix.x4 brings

/// What a block and a warp compute of C, and what follows from it.
template <int block_m, int block_n, int block_k, int warp_m, int warp_n, int num_stages, int group_m, bool every_layout>
struct Tile {
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = block_k;  // the block's tile of C, and its steps along k
  static constexpr int kWarpM = warp_m, kWarpN = warp_n;                         // a warp's part of it
  static constexpr int kNumStages = num_stages;                                  // tiles of A and B in shared memory
  static constexpr int kGroupM = group_m;                                        // rows of tiles that blocks cross together
  // Else A and B as rows alone; EveryLayoutTile does the rest. Threads share columns of A if those are 2^i chunks.
  static constexpr bool kEveryLayout = every_layout && (kBlockM & (kBlockM - 1)) == 0;
  static constexpr int kWarpsM = kBlockM / kWarpM, kWarpsN = kBlockN / kWarpN;
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr int kBlocksPerSm = kThreads > 128 ? 1 : 256 / kThreads;  // as many as fit if each thread has 255 registers
  static constexpr int kStageElements = (kBlockM + kBlockN) * kBlockK;      // a tile of A, then one of B
  static constexpr int kSharedBytes = kStageElements * 2 * kNumStages;

  static_assert(kNumStages >= 1 && kSharedBytes <= 227 * 1024, "no GPU has more shared memory for a block");
  static_assert(kThreads / 32 * device::kStoreFragmentsElements<kWarpN> * 4 <= kSharedBytes, "the epilogue uses the tiles' memory");
  static_assert(kWarpM % kFragment == 0 && kWarpN % kFragment == 0 && kBlockK % (2 * kFragment) == 0, "two sets of fragments");
  static_assert(kWarpsM * kWarpM == kBlockM && kWarpsN * kWarpN == kBlockN, "warps must tile the block");
};

struct TileIndex {
  int64_t m, n;  // in tiles
};
/// The order of the blocks: group by group of kGroupM rows of tiles, the last one of what is left, and down the columns of a group.
template <int kGroupM>
struct TileOrder {
  unsigned tiles_m;
  gemm::Divisor tiles_n, left{(tiles_m - 1) % kGroupM + 1};  // left: rows of the last group
  /// The tile that block number `block` computes.
  GEMM_HOST_DEVICE TileIndex tile_of_block(unsigned block) const {
    const unsigned row = tiles_n.divide(block), first_m = row - row % kGroupM, in_group = block - first_m * tiles_n;
    const unsigned last = first_m + kGroupM >= tiles_m, n = last ? left.divide(in_group) : in_group / kGroupM;
    return {first_m + in_group - n * (last ? left : kGroupM), n};
  }
};

/// Place of a chunk in a tile whose rows have kRow elements. Eight lanes of ldmatrix read the same chunk of eight rows: were these
/// below each other, all would want the same banks. XOR puts them into different ones, and no memory is lost.
template <int kRow>
__host__ __device__ constexpr int swizzled(int row, int chunk) {
  constexpr int kChunks = kRow / 8, kRowsPerLine = kChunks < 8 ? 8 / kChunks : 1;  // rows in the 128 bytes of all banks
  return row * kRow + (chunk ^ (row / kRowsPerLine % 8 & (kChunks - 1))) * 8;
}

/// An operand as a thread sees it: its share in copying tiles, which is the same chunk of every kStep-th row, and a lane's places
/// for ldmatrix. Rows of a tile run along the contiguous index.
template <class Tile, int kBlockMN, int kWarpMN, Contiguous contiguous, bool kIsB, class In>
struct Operand {
  static constexpr bool kAlongMN = contiguous == Contiguous::kMN, kChunks = contiguous != Contiguous::kNeither;
  static constexpr int kRow = kAlongMN ? kBlockMN : Tile::kBlockK, kRows = kAlongMN ? Tile::kBlockK : kBlockMN;
  static constexpr int kRowChunks = kRow / kChunk<In>, kStep = Tile::kThreads / kRowChunks;
  static constexpr int kOffsets = (kAlongMN ? kWarpMN : Tile::kBlockK) / kFragment;
  static_assert(kStep >= 1 && kRows % kStep == 0, "every thread copies the same chunk of as many rows");

  /// @param g the operand, k along its columns  @param mn_0, warp_mn the first row of the block in it, of the warp in the block
  __device__ __forceinline__ Operand(const Matrix<const In>& g, int64_t mn_0, int warp_mn)
      : row(threadIdx.x / kRowChunks),
        first(threadIdx.x % kRowChunks * kChunk<In>),
        row_stride(kAlongMN ? g.col_stride : g.row_stride),
        k_stride(contiguous == Contiguous::kK ? 1 : g.col_stride) {
    // Where rows end, nothing is read, and zeros come instead, as beyond k.
    const int count = static_cast<int>(min(g.rows - mn_0, static_cast<int64_t>(kBlockMN)));
    left = count - (kAlongMN ? first : row);
    source = kAlongMN ? g.at(mn_0 + first, row) : g.at(mn_0 + row, first);
    whole = kChunks && (!kAlongMN || count % kChunk<In> == 0);

    // Fragments are four matrices of 8 x 8, in the order in which mma.sync wants them: A's go down m first, B's along k.
    const int lane = threadIdx.x % 32, mn_half = kIsB ? lane / 16 : lane / 8 % 2, k_half = kIsB ? lane / 8 % 2 : lane / 16;
    const int mn = warp_mn + 8 * mn_half + (kAlongMN ? 0 : lane % 8), k = 8 * k_half + (kAlongMN ? lane % 8 : 0);
#pragma unroll
    for (int i = 0; i < kOffsets; ++i)
      offset[i] = kAlongMN ? swizzled<kRow>(k, (mn + i * kFragment) / 8) : swizzled<kRow>(mn, (k + i * kFragment) / 8);
  }

  /// Starts copying the next tile to s; k_left is how much of k is left. `kWhole`: it is known to be whole.
  template <bool kWhole = false>
  __device__ __forceinline__ void copy(In* s, int64_t k_left) {
    In* const first_to = s + swizzled<kRow>(row, first / kChunk<In>);
    const auto to = [&](int i) {  // the swizzle is the same every eight rows
      return kStep % 8 == 0 ? first_to + i * kRow : s + swizzled<kRow>(row + i, first / kChunk<In>);
    };
    if (kWhole || (whole && k_left >= Tile::kBlockK)) {
      const In* from = source;
#pragma unroll
      for (int i = 0; i < kRows; i += kStep, from += kStep * row_stride)
        device::cp_async_cg_16_if((kAlongMN ? 0 : i) < left, to(i), from);
    } else {
      const int depth = static_cast<int>(min(k_left, static_cast<int64_t>(Tile::kBlockK)));
#pragma unroll(kChunks ? 4 : 1)
      for (int i = 0; i < kRows; i += kStep)
        device::copy_chunk(to(i), source + i * row_stride, k_stride,
                           kAlongMN ? (row + i < depth ? left : 0) : (i < left ? depth - first : 0), kChunks);
    }
    source += Tile::kBlockK * k_stride;
  }

  /// Loads fragment i of the warp's rows, slice `slice` of tile s.
  __device__ __forceinline__ void load(uint32_t (&r)[4], const In* s, int i, int slice) const {
    if constexpr (kAlongMN)
      device::ldmatrix_x4_trans(r, s + offset[i] + slice * kFragment * kRow);
    else
      device::ldmatrix_x4(r, s + offset[slice] + i * kFragment * kRow);
  }

  int row, first;                // of this thread's first chunk in a tile: row, and element in the row
  int left;                      // rows of the operand from there on; if rows run along mn, elements of this row
  bool whole;                    // all that the block copies is aligned chunks, each of which exists or does not, but for k
  int64_t row_stride, k_stride;  // of the operand, in elements
  const In* source;              // this thread's first chunk of the next tile
  int offset[kOffsets];          // in a tile; computed once, because the instruction's address cannot hold an XOR
};

/// One block, one kBlockM x kBlockN tile of C. `c_chunks`: the rows of C are aligned chunks.
template <class Tile, Contiguous a_contiguous, Contiguous b_contiguous, class In, class Out, class Epilogue>
__global__ __launch_bounds__(Tile::kThreads, Tile::kBlocksPerSm) void gemm_kernel(Matrix<const In> A, Matrix<const In> B,
                                                                                  Matrix<Out> C, TileOrder<Tile::kGroupM> order,
                                                                                  bool c_chunks, Epilogue epilogue) {
  In* const sA = device::dynamic_smem<In>();          // (kBlockM, kBlockK), or the other way round
  In* const sB = sA + Tile::kBlockM * Tile::kBlockK;  // (kBlockN, kBlockK), or the other way round
  constexpr int kFragmentsM = Tile::kWarpM / kFragment, kFragmentsN = Tile::kWarpN / kFragment, kStageSize = Tile::kStageElements;

  // 1. Which tile is mine?
  const TileIndex tile = order.tile_of_block(blockIdx.x);
  const int64_t m_0 = tile.m * Tile::kBlockM, n_0 = tile.n * Tile::kBlockN;
  const int warp = threadIdx.x / 32, warp_m = warp / Tile::kWarpsN * Tile::kWarpM, warp_n = warp % Tile::kWarpsN * Tile::kWarpN;
  Operand<Tile, Tile::kBlockM, Tile::kWarpM, a_contiguous, false, In> gA(A, m_0, warp_m);
  Operand<Tile, Tile::kBlockN, Tile::kWarpN, b_contiguous, true, In> gB(B.transposed(), n_0, warp_n);

  // 2. Main loop
  float rC[kFragmentsM][2 * kFragmentsN][4] = {};  // mma.sync has 8 columns: two of them for each fragment of B
  uint32_t rA[2][kFragmentsM][4], rB[2][kFragmentsN][4];
  const auto load = [&](int set, int stage, int slice) {
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i) gA.load(rA[set][i], sA + stage * kStageSize, i, slice);
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j) gB.load(rB[set][j], sB + stage * kStageSize, j, slice);
  };
  const auto multiply = [&](int set) {
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i)
#pragma unroll
      for (int there = 0; there < 2 * kFragmentsN; ++there) {
        const int j = i % 2 ? 2 * kFragmentsN - 1 - there : there;  // and back: at the turn, the same fragment of B serves twice
        device::mma_m16n8k16<In>(rC[i][j], rA[set][i], {rB[set][j / 2][j % 2 * 2], rB[set][j / 2][j % 2 * 2 + 1]});
      }
  };

  constexpr int kStages = Tile::kNumStages, kAhead = kStages > 1 ? kStages - 1 : 1, kSlices = Tile::kBlockK / kFragment;
#pragma unroll 1  // in one case, nvcc 13.0.88 unrolled it by two and left two of five copies out
  for (int i = 0; i < kAhead; ++i, device::cp_async_commit_group())  // past the end of k zeros
    gA.copy(sA + i * kStageSize, A.cols - i * Tile::kBlockK), gB.copy(sB + i * kStageSize, A.cols - i * Tile::kBlockK);
  device::cp_async_wait_group<kAhead - 1>();
  __syncthreads();  // the first stage is complete before anybody reads it
  load(0, 0, 0);
  int stage = 0;
  const auto multiply_tile = [&]<bool kWhole>(int64_t k_left) {
    const int free = stage > 0 ? stage - 1 : kStages - 1;  // everybody has read it: that was before the last barrier
    const int next = !kWhole && k_left <= Tile::kBlockK ? stage : stage + 1 < kStages ? stage + 1 : 0;  // in the end for nothing
    const auto refill = [&](auto& operand, In* s) {
      if (kWhole || k_left > kAhead * Tile::kBlockK)
        operand.template copy<kWhole>(s + free * kStageSize, k_left - kAhead * Tile::kBlockK);
    };
#pragma unroll
    for (int slice = 0; slice + 1 < kSlices; ++slice) {
      load((slice + 1) % 2, stage, slice + 1);
      multiply(slice % 2);
      if (kStages > 1 && slice == 0) refill(gA, sA);
      if (kStages > 1 && slice == (kSlices > 2)) refill(gB, sB);
    }
    if (kStages == 1) __syncthreads(), refill(gA, sA), refill(gB, sB);  // now everybody has read the only stage
    device::cp_async_commit_group();  // past the end of k an empty one, so that counting groups still counts tiles
    device::cp_async_wait_group<kAhead - 1>();
    __syncthreads();  // `next` is complete before anybody reads it; everybody has read `stage` before it is refilled
    load(0, next, 0);
    multiply(1);
    stage = next;
  };
  int64_t k_left = A.cols;
  const bool whole = gA.whole && gB.whole;  // then no branch parts the products, and copies mix with them
  for (; whole && k_left >= (kAhead + 1) * Tile::kBlockK; k_left -= Tile::kBlockK) multiply_tile.template operator()<true>(k_left);
  for (; k_left > 0; k_left -= Tile::kBlockK) multiply_tile.template operator()<false>(k_left);
  device::cp_async_wait_group<0>();  // where k is short, zeros may still be on their way to later stages
  __syncthreads();                   // everybody has read the last stage before the epilogue overwrites it

  // 3. Epilogue, 16 rows at a time: bias and activation on the sums in registers; rounded, and stored in the memory of the tiles
  decltype(gemm::in_column(epilogue, 0)) activation[4 * kFragmentsN];  // a lane has the same columns in all of its rows ...
#pragma unroll
  for (int j = 0; j < 4 * kFragmentsN; ++j)  // ... two neighbours of every eight
    activation[j] = gemm::in_column(epilogue, n_0 + warp_n + j / 2 * 8 + threadIdx.x % 4 * 2 + j % 2);
  Out* const sC = reinterpret_cast<Out*>(sA) + warp * device::kStoreFragmentsElements<Tile::kWarpN>;
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
    for (int j = 0; j < 8 * kFragmentsN; ++j) {
      float& x = rC[i][j / 4][j % 4];
      x = activation[j / 4 * 2 + j % 2](x);
    }
    device::store_fragments(rC[i], sC, C, m_0 + warp_m + i * kFragment, n_0 + warp_n, c_chunks, gemm::Identity{});
  }
}

/// What runs where a tile is not compiled for the operands' layout.
using EveryLayoutTile = Tile<128, 128, 64, 64, 64, 3, 8, true>;

template <class Tile, class In, class Out, class Epilogue>
void gemm(Matrix<const In> A, Matrix<const In> B, Matrix<Out> C, Epilogue epilogue) {
  gemm::check(A, B, C);
  const int64_t tiles_m = ceil_div<int64_t>(C.rows, Tile::kBlockM), tiles_n = ceil_div<int64_t>(C.cols, Tile::kBlockN);
  if (tiles_m * tiles_n == 0) return;
  const unsigned blocks = gemm::grid_size(tiles_m * tiles_n);
  const TileOrder<Tile::kGroupM> order{unsigned(tiles_m), gemm::Divisor(unsigned(tiles_n))};
  // Strides become a layout once, here: a kernel for each pair of transpositions, and one for all that has no aligned chunks.
  device::with_contiguous(A, B, [&]<Contiguous a, Contiguous b>() {
    if constexpr (Tile::kEveryLayout || (a == Contiguous::kK && b == Contiguous::kMN))
      device::launch(gemm_kernel<Tile, a, b, In, Out, Epilogue>, blocks, Tile::kThreads, Tile::kSharedBytes, A, B, C, order,
                     device::chunks_aligned(C.data, C.col_stride, C.row_stride), epilogue);
    else
      gemm<EveryLayoutTile>(A, B, C, epilogue);
  });
}

/// Whether there is time to compile all candidates for all layouts.
#ifdef COURSE_EVERY_TILE
constexpr bool kEveryTile = true;
#else
constexpr bool kEveryTile = false;
#endif
/// A candidate for row-major A and B alone, unless all are compiled.
template <int block_m, int block_n, int block_k, int warp_m, int warp_n, int num_stages>
using RowTile = Tile<block_m, block_n, block_k, warp_m, warp_n, num_stages, 8, kEveryTile>;

using Inputs = gemm::TypeList<__half, __nv_bfloat16>;
using Tiles = gemm::TypeList<EveryLayoutTile>;
using MoreTiles =
    gemm::TypeList<RowTile<128, 256, 32, 64, 64, 4>, RowTile<224, 128, 64, 112, 32, 3>, RowTile<192, 128, 64, 48, 64, 3>,
                   RowTile<160, 128, 64, 80, 32, 3>, RowTile<112, 128, 64, 112, 32, 3>, RowTile<96, 128, 64, 48, 64, 3>,
                   RowTile<96, 128, 64, 48, 32, 4>, RowTile<96, 64, 128, 48, 32, 4>, RowTile<128, 128, 64, 64, 32, 4>,
                   RowTile<128, 64, 128, 64, 32, 3>, RowTile<64, 64, 128, 32, 32, 4>, RowTile<32, 64, 64, 16, 32, 6>,
                   RowTile<32, 64, 128, 16, 32, 4>, RowTile<32, 32, 128, 16, 16, 4>, RowTile<16, 32, 256, 16, 16, 4>>;
/// The first is what the step is about, and what MoreTiles are built with.
using Activations = gemm::TypeList<gemm::LeakyRelu, gemm::Relu, gemm::GeluTanh, gemm::Silu, gemm::Identity>;

}  // namespace step_07_fused_leaky_relu

/// @file
/// Step 20: blocks copy for each other, so that L2 has fewer requests to answer: multicast in 18's form, with 17's stores.
///
/// Changes since 18:
/// - Blocks come in clusters, in a row or in a column of tiles. They share the larger one of A's tile and B's: each copies a slice
///   of it to all, copy_slice(). Its panels have any height, so 18's rows stay whole ones.
/// - Where A lies along k, a stage has no more rows than the tile: room for more stages than 18 has.
/// - A warp has fewer instructions between products: uniform(), further().
/// - A tile's sums wait in registers, packed, and are stored while the next one is multiplied, as in 17: store_piece().
/// - Where tiles are few and k is long, the blocks of a cluster share k too, as in 15: exchange_sums(). Such a cluster has one
/// tile.
#pragma once

#include "common/device/cluster.cuh"
#include "common/device/dependent_launch.cuh"
#include "common/device/fallback.cuh"
#include "common/device/learnt/swizzle.cuh"
#include "common/device/learnt/tile_order.cuh"
#include "common/device/learnt/wgmma_slice.cuh"
#include "common/device/store_fragments.cuh"

namespace step_20_fewer_requests {

using device::Contiguous, device::Major, device::Mbarrier, device::TensorMap, gemm::ceil_div, gemm::Matrix;
using learnt::kPanel, learnt::kWarpgroup, learnt::kWgmmaK, learnt::RingPlace, learnt::slice_descriptor, learnt::swizzled,
    learnt::TileIndex, learnt::TileOrder;

/// What a block and a warpgroup compute of C, and what follows from it. @tparam share_a blocks of a cluster share A's tile, not B's
/// @tparam a how A lies, see Of
template <int block_m, int block_n, int num_stages, int group_m, int cluster, int split_k = 1, bool share_a = (block_m > block_n),
          Contiguous a = Contiguous::kK>
struct Tile {
  /// The tile for such an A: whole panels of A may leave room for fewer stages.
  template <Contiguous of_a>
  using Of = Tile<block_m, block_n, num_stages, group_m, cluster, split_k, share_a, of_a>;
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = kPanel;  // the block's tile of C, and its steps along k
  static constexpr int kGroupM = group_m;                                       // rows of clusters that are crossed together
  static constexpr int kCluster = cluster, kSplitK = split_k;                   // blocks; shares of k
  static constexpr int kSharing = kCluster / kSplitK;                           // blocks with the same share: of A's tile, or B's
  static constexpr int kSharingA = share_a ? kSharing : 1, kSharingB = kSharing / kSharingA;
  static constexpr int kMineM = kBlockM / kSplitK;                  // rows of the tile that a block stores
  static constexpr int kMultiplying = kBlockN / kPanel;             // warpgroups; each multiplies one panel of B
  static constexpr int kThreads = (kMultiplying + 1) * kWarpgroup;  // the last warpgroup copies
  // Registers of a thread, as in 11; the one that copies gives more away, for of three that multiply each needs them.
  static constexpr int kAtLaunch = 65536 / kThreads / 8 * 8, kToCopy = 32;
  static constexpr int kToMultiply = std::min(240, (kAtLaunch * (kMultiplying + 1) - kToCopy) / kMultiplying / 8 * 8);
  static constexpr int kLastM = (kBlockM - 1) % kPanel + 1;  // rows of A's last panel, where they lie along m: it is a whole one
  static constexpr int kRowsA = a == Contiguous::kK ? kBlockM : kBlockM - kLastM + kPanel;
  static constexpr int kStageElements = (kRowsA + kBlockN) * kBlockK;     // a tile of A, and of B
  static constexpr int kCopiedBytes = (kBlockM + kBlockN) * kBlockK * 2;  // into a stage
  static constexpr int kStageBytes = kStageElements * 2 + 2 * int{sizeof(Mbarrier)}, kMostShared = 227 * 1024;
  // Tiles of A and B in shared memory. Whole panels of A leave room for fewer, beside C in at most two pieces.
  static constexpr int kLeastStoreBytes = kMineM / (kMineM % 16 ? 1 : 2) * 128 * kMultiplying;
  static constexpr int kNumStages =
      a == Contiguous::kK ? num_stages : std::min(num_stages, (kMostShared - kLeastStoreBytes) / kStageBytes);
  static constexpr int kRingBytes = kNumStages * kStageBytes;
  /// Pieces in which a warpgroup stores its part of C: as few as have room beside the ring, for each that multiplies.
  static constexpr int pieces() {
    int n = 1;
    while (n < kMineM / 8 && (kMineM / 8 % n || kRingBytes + kMultiplying * kMineM / n * 128 > kMostShared)) ++n;
    return n;
  }
  static constexpr int kPieces = pieces(), kPieceRows = kMineM / kPieces, kStoreBytes = kPieceRows * 128;
  /// Sums of the others' shares of k that a block adds to its own: of its rows, from each.
  static constexpr int kSumsBytes = (kSplitK - 1) * kMineM * kBlockN * 4;
  static constexpr auto kSharedBytes = device::ring(kNumStages, 2 * kRowsA * kBlockK, 2 * kBlockN * kBlockK, kPanel * 128)
                                           .each("warpgroup", kMultiplying, {"tile of C for storing", kStoreBytes, kStoreBytes})
                                           .barriers(kNumStages);
  static_assert(kSharedBytes <= kMostShared, "no GPU has more shared memory for a block");
  static_assert(kNumStages > 1 && kBlockM <= 256 && kBlockM % 8 == 0, "stages to fill and to multiply; wgmma's columns");
  static_assert(kBlockN % kPanel == 0 && kBlockM >= 8 * kSharingA, "wgmma's rows; a slice of A for each block");
  static_assert(kSplitK == 1 || (kMineM % 8 == 0 && kSumsBytes <= kNumStages * kStageElements * 2), "sums lie where the ring was");
};

/// What all lanes of a warp have alike, in a register that they share: the compiler does not know it of threadIdx.x / 32.
__device__ __forceinline__ int uniform(int x) { return __shfl_sync(~0u, x, 0); }

/// The descriptor of what begins so many chunks of 16 bytes further on. Its low word alone has the address.
__device__ __forceinline__ uint64_t further(uint64_t descriptor, uint32_t chunks) {
  return descriptor >> 32 << 32 | (static_cast<uint32_t>(descriptor) + chunks);
}

/// Rows of the slices of a panel, in whole patterns of the swizzle, which are eight: the first kMore slices have one more.
template <int kHeight, int kSlices>
struct Slices {
  static constexpr int kEights = kHeight / 8 / kSlices, kMore = kHeight / 8 % kSlices;
  static constexpr int kFew = 8 * kEights, kMany = kMore > 0 ? kFew + 8 : kFew;
  /// Of slice number `slice`.
  __device__ static int first_row(int slice) { return kFew * slice + 8 * (slice < kMore ? slice : kMore); }
};

/// Copies this block's slice of kSlices of a tile to all blocks that share it, the cluster's from number `first` on: some of its
/// rows, of an operand along k; of another, some rows of each panel. One slice is the whole tile, for this block alone.
/// @param map_last of slices with fewer rows, or of the last panel
template <Contiguous contiguous, int kBlockMN, int kSlices, class In>
__device__ __forceinline__ void copy_slice(In* s, const TensorMap* map, const TensorMap* map_last, int mn, int64_t extent,
                                           int tile_k, int rank, int first, Mbarrier* barrier) {
  const int slice = kSlices > 1 ? rank - first : 0;
  constexpr bool kAlongK = contiguous == Contiguous::kK;
  constexpr int kHeight = kAlongK ? kBlockMN : kPanel;  // of a panel
  using Rows = Slices<kHeight, kSlices>;
  static_assert(kAlongK || Rows::kMore == 0, "a panel's last map is that of fewer columns");
  const int row = Rows::first_row(slice);
#pragma unroll
  for (int i = 0; i < kBlockMN; i += kHeight) {
    const int mine = mn + i + (kAlongK ? row : 0), at = mine < extent ? mine : 0;  // as copy_panels()
    const int k = tile_k * kPanel + (kAlongK ? 0 : row), x = kAlongK ? k : at, y = kAlongK ? at : k;
    const bool last = kAlongK ? Rows::kMore > 0 && slice >= Rows::kMore : i + kHeight > kBlockMN;
    const TensorMap* const m = last ? map_last : map;
    if constexpr (kSlices == 1) {
      device::cp_async_bulk_tensor_2d(s + i * kPanel, m, x, y, barrier);
    } else {
      device::cp_async_bulk_tensor_2d_multicast(s + (i + row) * kPanel, m, x, y, barrier, ((1 << kSlices) - 1) << first);
    }
  }
}
/// The map of its boxes. @param rows of the slice, if the operand lies along k  @param width of the panel, if it does not
template <int kSlices>
TensorMap slice_map(const auto& g, Contiguous contiguous, int rows, int width) {
  const bool along_k = contiguous == Contiguous::kK;
  const auto mn = static_cast<unsigned>(along_k ? rows : width), k = static_cast<unsigned>(along_k ? kPanel : kPanel / kSlices);
  return device::box_map(g, contiguous, mn, k, device::L2Promotion::k128);  // a row in two lines should not fetch four
}

/// Stores piece number `piece` of a warpgroup's part of C: some rows of its 64 columns. `packed` has the sums of its transpose.
template <class Tile, class Out>
__device__ __forceinline__ void store_piece(int piece, const uint32_t (&packed)[Tile::kMineM / 4], Out* s, const TensorMap* map_c,
                                            int row, int col) {
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, barrier = 1 + threadIdx.x / kWarpgroup;
  if (warp == 0 && device::elect_sync()) device::cp_async_bulk_wait_group_read<0>();
  device::barrier_sync(barrier, kWarpgroup);  // the engine has read the piece before, so all may overwrite it
#pragma unroll
  for (int r = 0; r < Tile::kPieceRows; r += 8) {  // a lane has two rows of a column, and of that 8 further right
    const int i = (piece * Tile::kPieceRows + r) / 4;
    device::stmatrix_x2_trans(s + swizzled<kPanel>(r + lane % 8, 2 * warp + lane / 8 % 2), {packed[i], packed[i + 1]});
  }
  device::fence_proxy_async();                // the engine sees what this thread has written,
  device::barrier_sync(barrier, kWarpgroup);  // and all have written
  if (warp == 0 && device::elect_sync()) {
    device::cp_async_bulk_tensor_2d_store(map_c, col, row + piece * Tile::kPieceRows, s);
    device::cp_async_bulk_commit_group();
  }
}

/// Of the sums of its share of k, a thread sends to each other block those of the rows that this one stores, and adds to its own
/// what comes. They lie where the ring was. By all threads that multiply. @param d all sums; then, first, those of this block's
/// rows
template <class Tile, class In>
__device__ __forceinline__ void exchange_sums(float (&d)[Tile::kBlockM / 2], In* ring, Mbarrier* full, int rank,
                                              const auto& tiles_of_share) {
  constexpr int kMine = Tile::kMineM / 2;
  const int share = rank / Tile::kSharing;
  const auto sums = [&](int sender, int i) {  // of this thread, from number i on; senders without the one that adds
    return reinterpret_cast<device::Floats<4>*>(ring) + (sender * kMine + i) / 4 * Tile::kMultiplying * kWarpgroup + threadIdx.x;
  };
  device::barrier_cluster_arrive();
  device::barrier_cluster_wait();  // all have read their stages
  float mine[kMine];
#pragma unroll
  for (int i = 0; i < Tile::kBlockM / 2; i += 4) {
    const int to = i / kMine, block = to * Tile::kSharing + rank % Tile::kSharing;
    const auto& x = reinterpret_cast<const float(&)[4]>(d[i]);
    if (to != share) {
      device::st_async(sums(share - (share > to), i % kMine), x, &full[tiles_of_share(to) % Tile::kNumStages], block);
    } else {
      for (int j = 0; j < 4; ++j) mine[i % kMine + j] = x[j];
    }
  }
  const RingPlace<Tile::kNumStages> place(tiles_of_share(share));
  device::mbarrier_wait_parity_acquire_cluster(&full[place.stage], place.phase);
#pragma unroll
  for (int i = 0; i < (Tile::kSplitK - 1) * kMine; i += 4) {  // in this order: the same bits in every run
    const device::Floats<4> x = *sums(i / kMine, i % kMine);
    for (int j = 0; j < 4; ++j) mine[i % kMine + j] += x.x[j];
  }
  for (int i = 0; i < kMine; ++i) d[i] = mine[i];
}

/// As many blocks as SMs, in clusters. `c_panels`: the engine can store C, of 16 bits.
template <class Tile, Contiguous a_contiguous, Contiguous b_contiguous, class In, class Out, class Epilogue>
__global__ __launch_bounds__(Tile::kThreads,
                             1) void gemm_kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                                                 const __grid_constant__ TensorMap map_last,
                                                 const __grid_constant__ TensorMap map_c, Matrix<Out> C, int all_tiles_k,
                                                 unsigned tiles, TileOrder<Tile::kGroupM> order, bool c_panels, Epilogue epilogue) {
  constexpr Major kMajorA = a_contiguous == Contiguous::kK ? Major::kK : Major::kMN;
  constexpr Major kMajorB = b_contiguous == Contiguous::kK ? Major::kK : Major::kMN;
  constexpr int kTileA = Tile::kRowsA * Tile::kBlockK;
  In* const sAB = device::dynamic_smem<In>();  // kNumStages times (kRowsA, kBlockK) of A, and (kBlockN, kBlockK) of B
  char* const sC = reinterpret_cast<char*>(sAB + Tile::kNumStages * Tile::kStageElements);          // a piece for each warpgroup
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(sC + Tile::kStoreBytes * Tile::kMultiplying);  // (kNumStages)
  Mbarrier* const empty = full + Tile::kNumStages;                                                  // (kNumStages)

  // 1. Which tiles are mine? One of those of cluster number `cluster`, and of every clusters-th from there on; a share of their k
  const int rank = static_cast<int>(device::cluster_ctarank()), share = rank / Tile::kSharing, first = share * Tile::kSharing;
  const auto first_k = [&](int share) { return share * all_tiles_k / Tile::kSplitK; };
  const auto tiles_of_share = [&](int share) { return first_k(share + 1) - first_k(share); };
  const int tiles_k = tiles_of_share(share);
  const unsigned cluster = blockIdx.x / Tile::kCluster, clusters = gridDim.x / Tile::kCluster;
  const int warp = uniform(threadIdx.x / 32), lane = threadIdx.x % 32, warpgroup = warp / 4;
  if (warp == 4 * Tile::kMultiplying && device::elect_sync()) {
    device::prefetch_tensormap(&map_a);  // the first copy need not wait for them
    device::prefetch_tensormap(&map_b);
    device::prefetch_tensormap(&map_last);
    for (int i = 0; i < Tile::kNumStages; ++i) {
      device::mbarrier_init(&full[i], 1);
      device::mbarrier_init(&empty[i], Tile::kSharing * 4 * Tile::kMultiplying);  // warps, of all blocks with this share
    }
    device::fence_mbarrier_init();
  }
  device::barrier_cluster_arrive_relaxed();  // nothing else has been written
  device::griddepcontrol_wait();             // the launch before has read and written all that it had to
  device::barrier_cluster_wait();            // all blocks have their barriers before anybody uses them
  const auto first_row = [&](TileIndex tile) {
    return (static_cast<int>(tile.m) * Tile::kSharingB + rank % Tile::kSharingB) * Tile::kBlockM;
  };
  const auto first_col = [&](TileIndex tile) {
    return (static_cast<int>(tile.n) * Tile::kSharingA + rank % Tile::kSharingA) * Tile::kBlockN;
  };

  // 2. Main loop: one thread's, which copies ...
  if (warpgroup == Tile::kMultiplying) {
    device::setmaxnreg_dec<Tile::kToCopy>();
    if (warp == 4 * Tile::kMultiplying && device::elect_sync()) {
      int i = 0;  // tiles that have been copied, of all tiles of C
      for (unsigned t = cluster; t < tiles; t += clusters) {
        const TileIndex tile = order.tile_of_block(t);
        for (int tile_k = 0; tile_k < tiles_k; ++tile_k, ++i) {
          const RingPlace<Tile::kNumStages> place(i);
          In* const s = sAB + place.stage * Tile::kStageElements;
          device::mbarrier_wait_parity(&empty[place.stage], place.phase ^ 1);  // what was there has been read, by all
          device::mbarrier_arrive_expect_tx(&full[place.stage], Tile::kCopiedBytes);
          copy_slice<a_contiguous, Tile::kBlockM, Tile::kSharingA>(s, &map_a, &map_last, first_row(tile), C.rows,
                                                                   first_k(share) + tile_k, rank, first, &full[place.stage]);
          copy_slice<b_contiguous, Tile::kBlockN, Tile::kSharingB>(s + kTileA, &map_b, &map_b, first_col(tile), C.cols,
                                                                   first_k(share) + tile_k, rank, first, &full[place.stage]);
        }
        if constexpr (Tile::kSplitK > 1) {  // the others' sums are the last tile of the ring, and take all of it
          const RingPlace<Tile::kNumStages> place(i);
          device::mbarrier_wait_parity(&empty[place.stage], place.phase ^ 1);
          device::mbarrier_arrive_expect_tx(&full[place.stage], Tile::kSumsBytes);
          device::barrier_cluster_arrive();
        }
      }
      if (tiles <= 2 * clusters) device::griddepcontrol_launch_dependents();  // as in 14
      // A block's memory ends with it. So it stays until the others have read what it copied for them, and have arrived here.
      for (int stage = 0; stage < Tile::kNumStages; ++stage, ++i) {
        const RingPlace<Tile::kNumStages> place(i);
        device::mbarrier_wait_parity(&empty[place.stage], place.phase ^ 1);
      }
    }
    return;
  }

  // ... and that of the warpgroups that multiply
  device::setmaxnreg_inc<Tile::kToMultiply>();
  constexpr int kPieces = sizeof(Out) == 2 ? Tile::kPieces : 0;  // that wait
  const auto give_back = [&](int stage) {
    if (lane < Tile::kSharing) device::mbarrier_arrive_cluster(&empty[stage], first + lane);
  };
  float rC[Tile::kBlockM / 2];
  uint32_t packed[Tile::kMineM / 4];  // the tile before, until it is stored
  Out* const s = reinterpret_cast<Out*>(sC + warpgroup * Tile::kStoreBytes);
  int stage = 0, last = 0, row = -1, col = 0;  // in the ring, and the one before it; row < 0: no tile waits
  uint32_t phase = 0;
  // Instructions between products are as few as can be. So descriptors are those of stage 0, and go on from there.
  constexpr uint32_t kStageChunks = Tile::kStageElements * 2 / 16;
  constexpr auto kSliceChunks = [](Contiguous c) { return kWgmmaK * (c == Contiguous::kK ? 1 : kPanel) * 2 / 16; };
  const uint64_t a_0 = slice_descriptor<a_contiguous>(sAB, 0),
                 b_0 = slice_descriptor<b_contiguous>(sAB + kTileA + warpgroup * kPanel * Tile::kBlockK, 0);
  for (unsigned t = cluster; t < tiles; t += clusters) {
    int tile_k = 0;
    const auto multiply = [&] {
      device::mbarrier_wait_parity(&full[stage], phase);
      const uint32_t at = uniform(stage) * kStageChunks;
      device::wgmma_fence();
#pragma unroll
      for (int slice = 0; slice < Tile::kBlockK / kWgmmaK; ++slice) {
        device::wgmma_m64k16<In, Tile::kBlockM, kMajorB, kMajorA>(rC, further(b_0, at + slice * kSliceChunks(b_contiguous)),
                                                                  further(a_0, at + slice * kSliceChunks(a_contiguous)),
                                                                  tile_k > 0 || slice > 0);  // the first product sets the sums
      }
      device::wgmma_commit_group();
      device::wgmma_wait_group<1>();  // the tile before has been multiplied: its stage is empty
      if (tile_k > 0) give_back(last);
      last = stage;
      if (++stage == Tile::kNumStages) stage = 0, phase ^= 1;
      ++tile_k;
    };
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {  // products of this tile are under way while the tile before is stored
      if (tile_k < tiles_k) multiply();
      if (c_panels && row >= 0) store_piece<Tile>(piece, packed, s, &map_c, row, col);
    }
#pragma unroll 1
    while (tile_k < tiles_k) multiply();
    device::wgmma_wait_group<0>();
    give_back(last);

    // 3. Epilogue. What the engine can store waits
    if constexpr (Tile::kSplitK > 1) exchange_sums<Tile>(rC, sAB, full, rank, tiles_of_share);
    auto& mine = reinterpret_cast<float(&)[Tile::kMineM / 2]>(rC);  // of the tile's rows that this block stores
    const TileIndex tile = order.tile_of_block(t);
    row = first_row(tile) + share * Tile::kMineM;
    col = first_col(tile) + warpgroup * kPanel;
    device::apply_epilogue_transposed(mine, epilogue, col);
    if constexpr (sizeof(Out) == 2) {  // stmatrix moves 16 bits
#pragma unroll
      for (int j = 0; j < Tile::kMineM / 4; ++j) packed[j] = device::pack<Out>(mine[2 * j], mine[2 * j + 1]);
    }
    if (!c_panels) device::store_sums_transposed(mine, C, row, col);
  }
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    if (c_panels) store_piece<Tile>(piece, packed, s, &map_c, row, col);
  }
  if (warp % 4 == 0 && device::elect_sync()) device::cp_async_bulk_wait_group_read<0>();  // a block's shared memory ends with it
}

template <class Tile, class In, class Out, class Epilogue>
void gemm(Matrix<const In> A, Matrix<const In> B, Matrix<Out> C, Epilogue epilogue) {
  gemm::check(A, B, C);
  const int64_t tiles_m = ceil_div<int64_t>(C.rows, Tile::kSharingB * Tile::kBlockM);
  const int64_t tiles_n = ceil_div<int64_t>(C.cols, Tile::kSharingA * Tile::kBlockN);
  if (tiles_m * tiles_n == 0) return;
  if (!device::has_tensor_map(A) || !device::has_tensor_map(B.transposed())) return device::fallback_gemm(A, B, C, epilogue);
  const bool c_panels = sizeof(Out) == 2 && device::has_store_map(C);
  const unsigned tiles = gemm::grid_size(tiles_m * tiles_n);  // of clusters
  // A cluster lies within a part of the GPU, and not all SMs of a part may be had by fours: 120 of an H200's 132.
  const unsigned multiprocessors = device::multiprocessors() * (Tile::kCluster > 2 ? 10 : 11) / 11;
  const unsigned clusters = Tile::kSplitK > 1 ? tiles : std::min(tiles, std::max(1u, multiprocessors / Tile::kCluster));

  // Strides become a layout once, here: a kernel for each pair of transpositions.
  device::with_contiguous(A, B, [&](auto a, auto b) {
    using Its = typename Tile::template Of<a()>;
    using SlicesA = Slices<Tile::kBlockM, Tile::kSharingA>;
    const auto map_a = [&](int rows, int width) { return slice_map<Tile::kSharingA>(A, a(), rows, width); };
    device::launch_dependent_clusters(gemm_kernel<Its, a(), b(), In, Out, Epilogue>, Tile::kCluster * clusters, Tile::kThreads,
                                      dim3(Tile::kCluster), Its::kSharedBytes, map_a(SlicesA::kMany, kPanel),
                                      slice_map<Tile::kSharingB>(B.transposed(), b(), Tile::kBlockN / Tile::kSharingB, kPanel),
                                      map_a(SlicesA::kFew, Tile::kLastM),
                                      c_panels ? device::box_map(C, Contiguous::kK, Its::kPieceRows, kPanel) : TensorMap{}, C,
                                      static_cast<int>(std::max<int64_t>(ceil_div<int64_t>(A.cols, Tile::kBlockK), Tile::kSplitK)),
                                      tiles, TileOrder<Tile::kGroupM>(tiles_m, tiles_n), c_panels, epilogue);
  });
}

using Inputs = gemm::TypeList<__half, __nv_bfloat16>;
using Tiles = gemm::TypeList<Tile<176, 192, 4, 8, 2>>;
using MoreTiles = gemm::TypeList<Tile<144, 192, 4, 8, 2>, Tile<160, 192, 4, 8, 2>, Tile<128, 192, 4, 8, 2>, Tile<192, 128, 4, 8, 2>,
                                 Tile<208, 128, 4, 8, 2>, Tile<224, 128, 4, 8, 2>, Tile<112, 128, 6, 8, 2>, Tile<80, 128, 4, 8, 2>,
                                 Tile<128, 64, 4, 8, 2>, Tile<128, 64, 4, 8, 4>, Tile<128, 64, 8, 8, 8, 2>>;

}  // namespace step_20_fewer_requests

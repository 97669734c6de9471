/// @file
/// Exercise 12: which tile is best? What a GPU can't run is pruned, a model orders the rest, the best is kept under a key.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>

#include "common/device/device.cuh"
#include "common/gemm/gemm.h"

namespace exercise {

using gemm::ceil_div, gemm::Matrix;

/// What a block and a warp compute of C, as in lesson 06.
struct Tile {
  int block_m, block_n, block_k;  ///< the block's tile of C, and its steps along k
  int warp_m, warp_n;             ///< a warp's part of it
  int num_stages;                 ///< tiles of A and B in shared memory
};
/// What a GPU has.
struct Gpu {
  int sms;                     ///< how many
  int threads_per_sm;          ///< at most
  int blocks_per_sm;           ///< at most
  int registers_per_sm;        ///< words of 4 bytes
  int shared_bytes_per_sm;     ///< for all blocks together
  int shared_bytes_per_block;  ///< that a block may ask for
};
/// What a best tile was found for.
struct Problem {
  std::int64_t m, n, k;
  std::string type;    ///< of A and B: f16
  std::string layout;  ///< of A, then of B: nn, nt ...
  std::string gpu;     ///< NVIDIA H200
  std::string when;    ///< the date of the search
};

constexpr Gpu kH200 = {132, 2048, 32, 65536, 233472, 232448};  ///< where the tile has to be fast

/// Among them the best is sought. The GPU can't run some of them.
constexpr Tile kCandidates[] = {{256, 256, 64, 64, 64, 3}, {256, 128, 128, 64, 64, 3}, {256, 128, 64, 64, 64, 3},
                                {192, 128, 64, 48, 64, 3}, {160, 128, 64, 80, 32, 3},  {144, 128, 64, 144, 32, 3},
                                {128, 128, 64, 64, 64, 3}, {128, 128, 64, 64, 32, 4},  {128, 64, 128, 64, 32, 3},
                                {64, 64, 128, 32, 32, 4},  {32, 32, 64, 16, 16, 6}};

/// Threads of a block: a warp for each part.
constexpr int threads(const Tile& t) { return t.block_m / t.warp_m * (t.block_n / t.warp_n) * 32; }
/// What a block has in shared memory: its stages, each a tile of A and one of B, in f16.
constexpr int shared_bytes(const Tile& t) { return (t.block_m + t.block_n) * t.block_k * 2 * t.num_stages; }
/// Registers of a thread, about: sums, two sets of fragments, and some 24 others.
constexpr int registers(const Tile& t) { return t.warp_m * t.warp_n / 32 + (t.warp_m + t.warp_n) / 2 + 24; }

/// Whether the kernel can be compiled for a tile, and started.
bool is_legal(const Tile& t, const Gpu& gpu) {
  // >>> Your turn (1): warps tile the block, warp_m and warp_n are multiples of 16, block_k is one of 32. A block has at most 1,024
  // threads, a thread at most 255 registers; shared memory has to be enough for a block.
  (void)t, (void)gpu;  // nobody asks them yet
  return true;
  // <<<
}

/// How many blocks of a legal tile an SM holds at the same time; 0 if it holds none.
int blocks_per_sm(const Tile& t, const Gpu& gpu) {
  // >>> Your turn (2): four things can run out. A block takes 1,024 bytes of shared memory more than it asks for.
  (void)t, (void)gpu;
  return 1;
  // <<<
}

/// How many blocks the SM with the most of them has to do, one after the other or together.
std::int64_t blocks_of_busiest_sm(const Tile& t, std::int64_t m, std::int64_t n, const Gpu& gpu) {
  // >>> Your turn (3): C is m x n. All SMs get as many blocks, as far as that is possible.
  (void)t, (void)m, (void)n, (void)gpu;
  return 1;
  // <<<
}

/// The name under which the best tile of a problem is kept.
std::string key(const Problem& p) {
  // >>> Your turn (4): another problem that may have another best tile needs another key. The same one has to be found again.
  return p.gpu;
  // <<<
}

/// What the model expects, in clocks: the busiest SM multiplies 1,024 pairs a clock; half of its 128 bytes a clock of shared memory
/// overlap with that. What a block does before its first product and after its last takes 2,500.
double clocks(const Tile& t, std::int64_t m, std::int64_t n, std::int64_t k, const Gpu& gpu) {
  const auto busiest = static_cast<double>(blocks_of_busiest_sm(t, m, n, gpu));
  const auto rounds = static_cast<double>(ceil_div<int64_t>(blocks_of_busiest_sm(t, m, n, gpu), blocks_per_sm(t, gpu)));
  const double products = t.block_m * t.block_n / 1024.;
  const double shared = 2. * (threads(t) / 32 * (t.warp_m + t.warp_n) + t.block_m + t.block_n) / 128;
  return busiest * static_cast<double>(k) * (products + shared / 2) + rounds * 2500;
}

/// The candidate that the model expects to be the fastest. @throws std::runtime_error if the GPU can run none
Tile best_tile(std::int64_t m, std::int64_t n, std::int64_t k, const Gpu& gpu) {
  const Tile* best = nullptr;
  for (const Tile& t : kCandidates) {
    if (!is_legal(t, gpu) || blocks_per_sm(t, gpu) < 1) continue;
    if (!best || clocks(t, m, n, k, gpu) < clocks(*best, m, n, k, gpu)) best = &t;
  }
  if (!best) throw std::runtime_error("is_legal() and blocks_per_sm() leave no candidate: no tile can be chosen");
  return *best;
}

/// One block, one tile of C. It stands for lesson 06's kernel; the threads take the tile's elements in turn.
__global__ void gemm_kernel(Matrix<const float> A, Matrix<const float> B, Matrix<float> C, Tile tile) {
  const int64_t tiles_n = ceil_div<int64_t>(C.cols, tile.block_n);
  const int64_t m_0 = blockIdx.x / tiles_n * tile.block_m, n_0 = blockIdx.x % tiles_n * tile.block_n;
  for (int i = threadIdx.x; i < tile.block_m * tile.block_n; i += blockDim.x) {
    const int64_t row = m_0 + i / tile.block_n, col = n_0 + i % tile.block_n;
    if (row < C.rows && col < C.cols) {
      float sum = 0;
      for (int64_t k = 0; k < A.cols; ++k) {
        sum += *A.at(row, k) * *B.at(k, col);
      }
      *C.at(row, col) = sum;
    }
  }
}

/// C = A · B with the best tile. All three are row-major.
void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C) {
  const Tile tile = best_tile(C.rows, C.cols, A.cols, kH200);
  const int64_t tiles = ceil_div<int64_t>(C.rows, tile.block_m) * ceil_div<int64_t>(C.cols, tile.block_n);
  device::launch(gemm_kernel, gemm::grid_size(tiles), threads(tile), 0, A, B, C, tile);
}

}  // namespace exercise

/// @file
/// Step 02: a block computes a tile of C from tiles of A and B in shared memory, a thread a small tile of it in registers.
///
/// Changes since 01:
/// - The block loads each tile of A and B once, into shared memory, and all its threads use it.
/// - A thread computes kThreadM x kThreadN elements, so that each value it reads from shared memory is used several times.
/// - Whatever its strides, an operand lies in shared memory the same way: k-major. Transposition happens on the way in.
#pragma once

#include "common/device/device.cuh"
#include "common/device/vector_access.cuh"
#include "common/gemm/gemm.h"

namespace step_02_tiled {

using device::kVectorWidth;
using gemm::ceil_div, gemm::Matrix;

/// What a block and a thread compute of C, and what follows from it.
template <int block_m, int block_n, int block_k, int thread_m, int thread_n>
struct Tile {
  static constexpr int kBlockM = block_m, kBlockN = block_n, kBlockK = block_k;  // the block's tile of C, and its steps along k
  static constexpr int kThreadM = thread_m, kThreadN = thread_n;                 // a thread's part of it
  static constexpr int kThreadsM = kBlockM / kThreadM, kThreadsN = kBlockN / kThreadN;
  static constexpr int kThreads = kThreadsM * kThreadsN;
  // A warp that copies an operand contiguous along k stores to two rows of shared memory at once, k and k + 4. 4 floats of padding
  // put them 16 banks apart and keep the rows aligned for 16-byte loads.
  static constexpr int kPad = 4;
  // A thread's part is made of runs that one shared load reads: 16 bytes, or a single element.
  static constexpr int kRunM = kThreadM < kVectorWidth ? 1 : kVectorWidth, kRunN = kThreadN < kVectorWidth ? 1 : kVectorWidth;

  static_assert(kBlockM % 32 == 0 && kBlockN % 32 == 0, "a warp's accesses to shared memory assume rows of whole banks");
  static_assert(kBlockK % 8 == 0, "tiles are loaded in slices of 8 along k");
  static_assert(kThreadM % kRunM == 0 && kThreadN % kRunN == 0, "a thread's part must consist of whole runs");
  static_assert(kThreads >= 32 && kThreads <= 1024, "a block has 32 to 1024 threads");
};

/// Which index of an operand has neighbours next to each other in memory: k, or the other one (m of A, n of B).
enum class Contiguous { kK, kMN };

/// The rows of A (or columns of B) from mn_0 on: the operand as a block sees it. Strides in elements.
template <class In>
struct Panel {
  const In* data;
  int64_t mn_count, k_count;  // elements that exist; beyond are zeros
  int64_t mn_stride, k_stride;
  bool vectors;  // runs along the contiguous index are aligned vectors
};

/// Copies the panel's slice k_0 .. k_0 + kBlockK into shared memory as floats, k-major: s[k][mn].
template <class Tile, int kBlockMN, Contiguous contiguous, class In>
__device__ void load_tile(float (&s)[Tile::kBlockK][kBlockMN + Tile::kPad], const Panel<In>& g, int64_t k_0) {
  constexpr int kRuns = Tile::kBlockK * kBlockMN / kVectorWidth;
#pragma unroll
  for (int first = 0; first < kRuns; first += Tile::kThreads) {
    const int run = first + threadIdx.x;
    if (kRuns % Tile::kThreads != 0 && run >= kRuns) break;
    if (contiguous == Contiguous::kK) {
      // Two runs are the 8 values of a slice, 32 bytes of float: one sector. So neighbouring lanes share a row of A.
      const int k = run % 2 * kVectorWidth + run / (2 * kBlockMN) * 8, mn = run / 2 % kBlockMN;
      const int64_t valid = mn < g.mn_count ? g.k_count - (k_0 + k) : 0;
      const float4 v = device::load4(g.data + mn * g.mn_stride + (k_0 + k) * g.k_stride, g.k_stride, valid, g.vectors);
      s[k + 0][mn] = v.x;
      s[k + 1][mn] = v.y;
      s[k + 2][mn] = v.z;
      s[k + 3][mn] = v.w;
    } else {
      const int k = run / (kBlockMN / kVectorWidth), mn = run % (kBlockMN / kVectorWidth) * kVectorWidth;
      const int64_t valid = k_0 + k < g.k_count ? g.mn_count - mn : 0;
      const float4 v = device::load4(g.data + mn * g.mn_stride + (k_0 + k) * g.k_stride, g.mn_stride, valid, g.vectors);
      *reinterpret_cast<float4*>(&s[k][mn]) = v;
    }
  }
}

/// Reads a thread's values of one k from shared memory: runs that are `kStep` apart.
template <int kCount, int kRun, int kStep>
__device__ __forceinline__ void load_fragment(float (&r)[kCount], const float* s) {
#pragma unroll
  for (int i = 0; i < kCount; i += kRun) {
    if constexpr (kRun == kVectorWidth) {
      const float4 v = *reinterpret_cast<const float4*>(s + i / kRun * kStep);
      r[i + 0] = v.x;
      r[i + 1] = v.y;
      r[i + 2] = v.z;
      r[i + 3] = v.w;
    } else {
      r[i] = s[i * kStep];
    }
  }
}

/// One block, one kBlockM x kBlockN tile of C. `a_vectors`: runs of A along `a_contiguous` are aligned vectors; B and C (along its
/// rows) likewise.
template <class Tile, Contiguous a_contiguous, Contiguous b_contiguous, class In, class Out, class Epilogue>
__global__ __launch_bounds__(Tile::kThreads) void gemm_kernel(Matrix<const In> A, Matrix<const In> B, Matrix<Out> C, bool a_vectors,
                                                              bool b_vectors, bool c_vectors, Epilogue epilogue) {
  alignas(16) __shared__ float sA[Tile::kBlockK][Tile::kBlockM + Tile::kPad];  // (kBlockK, kBlockM)
  alignas(16) __shared__ float sB[Tile::kBlockK][Tile::kBlockN + Tile::kPad];  // (kBlockK, kBlockN)

  // 1. Which tile is mine? The blocks lie row by row over C.
  const int64_t tiles_n = ceil_div<int64_t>(C.cols, Tile::kBlockN);
  const int64_t m_0 = blockIdx.x / tiles_n * Tile::kBlockM, n_0 = blockIdx.x % tiles_n * Tile::kBlockN;
  const Panel<In> gA{A.at(m_0, 0), A.rows - m_0, A.cols, A.row_stride, A.col_stride, a_vectors};
  const Panel<In> gB{B.at(0, n_0), B.cols - n_0, B.rows, B.col_stride, B.row_stride, b_vectors};
  // A thread's runs are spread over the tile, so that neighbouring threads read neighbouring runs: no bank conflicts.
  constexpr int kStepM = Tile::kThreadsM * Tile::kRunM, kStepN = Tile::kThreadsN * Tile::kRunN;
  const int thread_m = threadIdx.x / Tile::kThreadsN * Tile::kRunM, thread_n = threadIdx.x % Tile::kThreadsN * Tile::kRunN;

  // 2. Main loop
  float rC[Tile::kThreadM][Tile::kThreadN] = {};
  for (int64_t k_0 = 0; k_0 < A.cols; k_0 += Tile::kBlockK) {
    load_tile<Tile, Tile::kBlockM, a_contiguous>(sA, gA, k_0);
    load_tile<Tile, Tile::kBlockN, b_contiguous>(sB, gB, k_0);
    __syncthreads();  // the tiles are complete before anybody reads them
#pragma unroll
    for (int k = 0; k < Tile::kBlockK; ++k) {
      float rA[Tile::kThreadM], rB[Tile::kThreadN];
      load_fragment<Tile::kThreadM, Tile::kRunM, kStepM>(rA, &sA[k][thread_m]);
      load_fragment<Tile::kThreadN, Tile::kRunN, kStepN>(rB, &sB[k][thread_n]);
#pragma unroll
      for (int i = 0; i < Tile::kThreadM; ++i) {
#pragma unroll
        for (int j = 0; j < Tile::kThreadN; ++j) {
          rC[i][j] += rA[i] * rB[j];
        }
      }
    }
    __syncthreads();  // everybody has read the tiles before they are overwritten
  }

  // 3. Epilogue
#pragma unroll
  for (int i = 0; i < Tile::kThreadM; ++i) {
    const int64_t row = m_0 + thread_m + i / Tile::kRunM * kStepM + i % Tile::kRunM;
    if (row >= C.rows) continue;
#pragma unroll
    for (int j = 0; j < Tile::kThreadN; j += Tile::kRunN) {
      const int64_t col = n_0 + thread_n + j / Tile::kRunN * kStepN;
      if constexpr (Tile::kRunN == kVectorWidth) {
        const float4 v = make_float4(epilogue(rC[i][j]), epilogue(rC[i][j + 1]), epilogue(rC[i][j + 2]), epilogue(rC[i][j + 3]));
        device::store4(C.at(row, col), C.col_stride, C.cols - col, c_vectors, v);
      } else if (col < C.cols) {
        *C.at(row, col) = device::from_float<Out>(epilogue(rC[i][j]));
      }
    }
  }
}

/// As the contract in common/gemm/gemm.h says. @throws gemm::Refused
template <class Tile, class In, class Out, class Epilogue>
void gemm(Matrix<const In> A, Matrix<const In> B, Matrix<Out> C, Epilogue epilogue) {
  gemm::check(A, B, C);
  const int64_t tiles = ceil_div<int64_t>(C.rows, Tile::kBlockM) * ceil_div<int64_t>(C.cols, Tile::kBlockN);
  if (tiles == 0) return;
  // Strides become a layout once, here: four kernels, one for each pair of transpositions.
  const auto launch = [&](auto a, auto b) {
    const bool a_vectors = a() == Contiguous::kK ? device::vectors_aligned(A.data, A.col_stride, A.row_stride)
                                                 : device::vectors_aligned(A.data, A.row_stride, A.col_stride);
    const bool b_vectors = b() == Contiguous::kK ? device::vectors_aligned(B.data, B.row_stride, B.col_stride)
                                                 : device::vectors_aligned(B.data, B.col_stride, B.row_stride);
    const bool c_vectors = device::vectors_aligned(C.data, C.col_stride, C.row_stride);
    device::launch(gemm_kernel<Tile, a(), b(), In, Out, Epilogue>, gemm::grid_size(tiles), Tile::kThreads, 0, A, B, C, a_vectors,
                   b_vectors, c_vectors, epilogue);
  };
  constexpr std::integral_constant<Contiguous, Contiguous::kK> kK;
  constexpr std::integral_constant<Contiguous, Contiguous::kMN> kMN;
  const bool a_along_k = A.row_stride != 1 || A.col_stride == 1, b_along_k = B.col_stride != 1 && B.row_stride == 1;
  if (a_along_k && b_along_k) launch(kK, kK);
  if (a_along_k && !b_along_k) launch(kK, kMN);
  if (!a_along_k && b_along_k) launch(kMN, kK);
  if (!a_along_k && !b_along_k) launch(kMN, kMN);
}

using Inputs = gemm::TypeList<float, __half, __nv_bfloat16>;
/// What the step ships, the best one first.
using Tiles = gemm::TypeList<Tile<128, 128, 8, 8, 8>, Tile<64, 64, 8, 4, 4>, Tile<32, 32, 32, 1, 1>>;
using MoreTiles = gemm::TypeList<>;

}  // namespace step_02_tiled

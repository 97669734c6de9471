#include "common/device/device.cuh"
#include "common/device/element.cuh"
#include "common/harness/problem/reference.h"
#include "common/harness/program/tile.h"

namespace harness {
namespace {

constexpr int kTile = 16;

// Tiles in shared memory, one element per thread: simple enough to trust, and fast enough to wait for.
template <class In>
__global__ __launch_bounds__(kTile* kTile) void reference_kernel(gemm::Matrix<const In> A, gemm::Matrix<const In> B, double* sum,
                                                                 double* magnitude) {
  __shared__ double sA[kTile][kTile + 1], sB[kTile][kTile + 1];  // + 1: no bank conflicts, whichever way a copy runs
  const int64_t tiles_n = gemm::ceil_div<int64_t>(B.cols, kTile);
  const int r = threadIdx.x / kTile, c = threadIdx.x % kTile;
  const int64_t row = blockIdx.x / tiles_n * kTile + r, col = blockIdx.x % tiles_n * kTile + c;
  double s = 0, m = 0;
  for (int64_t k_0 = 0; k_0 < A.cols; k_0 += kTile) {
    sA[r][c] = row < A.rows && k_0 + c < A.cols ? device::to_float(*A.at(row, k_0 + c)) : 0;
    sB[r][c] = k_0 + r < B.rows && col < B.cols ? device::to_float(*B.at(k_0 + r, col)) : 0;
    __syncthreads();  // the tiles are complete before anybody reads them
    for (int k = 0; k < kTile && k_0 + k < A.cols; ++k) {
      const double product = sA[r][k] * sB[k][c];  // exact: a double holds the product of two floats
      s += product;
      m += fabs(product);
    }
    __syncthreads();  // everybody has read the tiles before they are overwritten
  }
  if (row < A.rows && col < B.cols) sum[row * B.cols + col] = s, magnitude[row * B.cols + col] = m;
}

template <class In>
void launch_typed(const AnyMatrix& A, const AnyMatrix& B, double* sum, double* magnitude) {
  const int64_t tiles = gemm::ceil_div<int64_t>(A.rows, kTile) * gemm::ceil_div<int64_t>(B.cols, kTile);
  if (tiles == 0) return;
  device::launch(reference_kernel<In>, gemm::grid_size(tiles), kTile * kTile, 0, typed<const In>(A), typed<const In>(B), sum,
                 magnitude);
}

}  // namespace

void launch_reference(DType type, const AnyMatrix& A, const AnyMatrix& B, double* sum, double* magnitude) {
  switch (type) {
    case DType::kF32: return launch_typed<float>(A, B, sum, magnitude);
    case DType::kF16: return launch_typed<__half>(A, B, sum, magnitude);
    case DType::kBF16: return launch_typed<__nv_bfloat16>(A, B, sum, magnitude);
  }
}

}  // namespace harness

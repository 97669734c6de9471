// The kernels around the products: sums of what ranks have sent, and the data.
#include "steps/tensor_parallel/problem.h"

namespace tensor_parallel {
namespace {

// `count` is a multiple of kVector, and addresses are aligned for as many.
template <class T, int kVector>
__global__ void add_parts_kernel(T* y, const T* own, const T* parts, int rank, int ranks, int64_t count) {
  struct alignas(kVector * sizeof(T)) Vector {
    T values[kVector];
  };
  const int64_t step = int64_t{gridDim.x} * blockDim.x * kVector;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kVector; i < count; i += step) {
    float sums[kVector] = {};
    for (int q = 0; q < ranks; ++q) {
      const Vector v = *reinterpret_cast<const Vector*>((q == rank ? own : parts + q * count) + i);
#pragma unroll
      for (int j = 0; j < kVector; ++j) sums[j] += static_cast<float>(v.values[j]);
    }
    Vector rounded;
#pragma unroll
    for (int j = 0; j < kVector; ++j) rounded.values[j] = static_cast<T>(sums[j]);
    *reinterpret_cast<Vector*>(y + i) = rounded;
  }
}

template <class T>
__global__ void fill_kernel(Numbers numbers, Matrix<T> m, int64_t first_row, int64_t first_col) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < m.rows * m.cols; i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t row = i / m.cols, col = i % m.cols;
    *m.at(row, col) = static_cast<T>(numbers(first_row + row, first_col + col));
  }
}

}  // namespace

template <class T>
void add_parts(T* y, const T* own, const T* parts, int rank, int ranks, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  constexpr int kThreads = 256, kVector = 16 / sizeof(T);
  const bool in_vectors = count % kVector == 0 && (reinterpret_cast<std::uintptr_t>(y) | reinterpret_cast<std::uintptr_t>(own) |
                                                   reinterpret_cast<std::uintptr_t>(parts)) %
                                                          16 ==
                                                      0;
  const std::int64_t needed = ceil_div(count, std::int64_t{kThreads} * (in_vectors ? kVector : 1));
  const dim3 blocks(static_cast<unsigned>(std::min<std::int64_t>(needed, 8 * device::multiprocessors())));
  const device::StreamScope on(stream);
  device::launch(in_vectors ? add_parts_kernel<T, kVector> : add_parts_kernel<T, 1>, blocks, dim3(kThreads), 0, y, own, parts, rank,
                 ranks, count);
}

template <class T>
void fill(const Numbers& numbers, const Matrix<T>& m, std::int64_t first_row, std::int64_t first_col, cudaStream_t stream) {
  if (m.rows * m.cols == 0) return;
  constexpr int kThreads = 256;
  const auto blocks = std::min<std::int64_t>(ceil_div<std::int64_t>(m.rows * m.cols, kThreads), 1 << 16);
  const device::StreamScope on(stream);
  device::launch(fill_kernel<T>, dim3(static_cast<unsigned>(blocks)), dim3(kThreads), 0, numbers, m, first_row, first_col);
}

template void fill(const Numbers&, const Matrix<__half>&, std::int64_t, std::int64_t, cudaStream_t);
template void fill(const Numbers&, const Matrix<__nv_bfloat16>&, std::int64_t, std::int64_t, cudaStream_t);
template void add_parts(__half*, const __half*, const __half*, int, int, std::int64_t, cudaStream_t);
template void add_parts(__nv_bfloat16*, const __nv_bfloat16*, const __nv_bfloat16*, int, int, std::int64_t, cudaStream_t);

}  // namespace tensor_parallel

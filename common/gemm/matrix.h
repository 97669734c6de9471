/// @file
/// A matrix as every step sees it: a pointer and two strides.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
/// An inline function of the contract: callable from kernels too.
#define GEMM_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define GEMM_HOST_DEVICE inline
#endif

namespace gemm {

/// A view of rows x cols elements of type T; element (r, c) stands at data[r * row_stride + c * col_stride].
///
/// Strides count elements and are 64 bits wide, as offsets pass 2^31 elements. Row-major is {cols, 1}, column-major (the transposed
/// of a row-major matrix) {1, rows}; larger strides are padding or a part of a larger matrix; zero repeats a row or a column,
/// negative runs backwards.
template <class T>
struct Matrix {
  T* data = nullptr;
  std::int64_t rows = 0, cols = 0;
  std::int64_t row_stride = 0, col_stride = 0;

  /// Address of element (r, c).
  GEMM_HOST_DEVICE T* at(std::int64_t r, std::int64_t c) const { return data + (r * row_stride + c * col_stride); }

  /// A view of the same data, rows and columns exchanged.
  GEMM_HOST_DEVICE Matrix transposed() const { return {data, cols, rows, col_stride, row_stride}; }
};

/// Without padding: element (r, c) stands at data[r * cols + c].
template <class T>
Matrix<T> row_major(T* data, std::int64_t rows, std::int64_t cols) {
  return {data, rows, cols, cols, 1};
}
/// Without padding: element (r, c) stands at data[c * rows + r].
template <class T>
Matrix<T> column_major(T* data, std::int64_t rows, std::int64_t cols) {
  return {data, rows, cols, 1, rows};
}

/// ceil(a / b) for a >= 0, b > 0.
template <class T>
GEMM_HOST_DEVICE constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

}  // namespace gemm

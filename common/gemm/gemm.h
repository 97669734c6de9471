/// @file
/// The contract between a step and everything around it.
///
///     C = epilogue(A · B)        A is m x k, B is k x n, C is m x n
///
/// - Any m, n, k >= 0. k = 0 gives epilogue(0).
/// - Any strides of A and B (see Matrix). C must not overlap itself, A or B; bytes between C's elements stay as they are.
/// - A and B hold float, __half or __nv_bfloat16; C holds the same type or float. Products are summed in float, the epilogue
///   gets the float sum, and its result is rounded once, to nearest even.
/// - The data are in device memory; launches go to device::stream().
///
/// A step is a namespace with
///
///     template <class Tile, class In, class Out, class Epilogue>
///     void gemm(Matrix<const In> A, Matrix<const In> B, Matrix<Out> C, Epilogue epilogue);
///
/// with `Inputs`, the list of element types that it takes, `Tiles`, the list of tiles that it ships, and `MoreTiles`, those that
/// only its lesson compares, built for the first of the types. Its gemm() starts with check(), so that a bad call throws Refused
/// before anything is launched. There is no alpha, no beta and no batch: they would be in every kernel and teach nothing new.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "common/gemm/divisor.h"
#include "common/gemm/matrix.h"

namespace gemm {

/// The epilogue that changes nothing. Any functor from float to float that is callable on host and device can stand in its place.
struct Identity {
  static constexpr char kName[] = "identity";                     ///< on command lines and in results
  GEMM_HOST_DEVICE float operator()(float x) const { return x; }  ///< x is a sum over k, before it is rounded to C's type
};

/// A list of types.
template <class... Types>
struct TypeList {};

/// A call that the contract does not allow. The message says which rule it breaks and what to do.
class Refused : public std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

namespace detail {
/// A matrix without its type.
struct Extent {
  const void* data;
  std::int64_t rows, cols, row_stride, col_stride;
  std::int64_t element_bytes;
};
template <class T>
Extent extent(const Matrix<T>& m) {
  return {m.data, m.rows, m.cols, m.row_stride, m.col_stride, static_cast<std::int64_t>(sizeof(T))};
}
/// Whether two elements of `m` share bytes.
bool overlaps_itself(const Extent& m);
/// Whether an element of `a` shares bytes with one of `b`.
bool overlap(const Extent& a, const Extent& b);
void check(const Extent& a, const Extent& b, const Extent& c);
}  // namespace detail

/// @throws Refused when shapes do not fit, a dimension is negative, addresses overflow, a pointer is null or misaligned, or C
/// overlaps itself, A or B.
template <class In, class Out>
void check(const Matrix<const In>& A, const Matrix<const In>& B, const Matrix<Out>& C) {
  detail::check(detail::extent(A), detail::extent(B), detail::extent(C));
}

/// Blocks of a grid that covers `tiles` tiles. Grids are one-dimensional: x is the only dimension that may pass 65535 blocks.
/// @throws Refused for more than 2^31 - 1.
unsigned grid_size(std::int64_t tiles);

}  // namespace gemm

/// @file
/// nvcuda::wmma on the interpreter. CUDA does not say which lane holds which element of a fragment; here it is as in mma.sync, of
/// which one or two do what a wmma::mma_sync does. How often warps ask for memory is not what a GPU's load_matrix_sync asks for.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#include "common/interpreter/instructions/tensor.h"

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}
namespace experimental {
namespace precision {
struct u4;
struct s4;
struct b1;
}  // namespace precision
enum bmmaBitOp { bmmaBitOpXOR = 1, bmmaBitOpAND = 2 };
enum bmmaAccumulateOp { bmmaAccumulateOpPOPC = 1 };
}  // namespace experimental

namespace detail {

using interpreter::MmaForm, interpreter::Number;

template <class T>
struct Stored {
  using type = T;
};
template <>
struct Stored<precision::tf32> {
  using type = float;
};
template <>
struct Stored<experimental::precision::u4> {
  using type = unsigned;
};
template <>
struct Stored<experimental::precision::s4> {
  using type = int;
};
template <>
struct Stored<experimental::precision::b1> {
  using type = unsigned;
};

/// Not defined: a program whose code needs it is refused when it is linked. Headers may have functions for it that nobody calls.
void wmma_of_this_shape_and_type();

template <class T, class... Types>
constexpr bool is_one_of = (std::is_same_v<T, Types> || ...);
template <class T>
constexpr bool is_byte = is_one_of<T, signed char, unsigned char, char>;

/// Whether products of A's are added up in D's.
template <class A, class D>
constexpr bool has_sums = (is_one_of<A, half> && is_one_of<D, float, half>) ||
                          (is_one_of<A, __nv_bfloat16, precision::tf32> && is_one_of<D, float>) ||
                          (is_byte<A> && is_one_of<D, int>) || (is_one_of<A, double> && is_one_of<D, double>);

template <class T>
constexpr Number number() {
  if constexpr (is_one_of<T, half>) return Number::kF16;
  if constexpr (is_one_of<T, __nv_bfloat16>) return Number::kBf16;
  if constexpr (is_one_of<T, precision::tf32>) return Number::kTf32;
  if constexpr (is_one_of<T, unsigned char>) return Number::kU8;
  if constexpr (is_byte<T>) return Number::kS8;
  if constexpr (is_one_of<T, double>) return Number::kF64;
  if constexpr (is_one_of<T, int>) return Number::kS32;
  return Number::kF32;
}

template <class Use, int m, int n, int k, class T>
constexpr bool is_form() {
  constexpr bool kIsWide = (m == 16 && n == 16) || (m == 32 && n == 8) || (m == 8 && n == 32),
                 kIsSums = is_one_of<Use, accumulator>;
  if (is_one_of<T, double>) return m == 8 && n == 8 && k == 4;
  if (is_one_of<T, precision::tf32> || (kIsSums && is_one_of<T, float> && k == 8)) return m == 16 && n == 16 && k == 8;
  const bool is_number = kIsSums ? is_one_of<T, float, half, int> : is_one_of<T, half, __nv_bfloat16> || is_byte<T>;
  return is_number && kIsWide && k == 16;
}

struct Place {
  int row, col;
};
// Of the instruction's left operand, m x k: registers of 4 bytes, two rows eight apart, then four registers further along k.
constexpr Place in_left(int element, int lane, int a_register) {
  const int r = element / a_register, row = lane / 4 + r % 2 * 8, word = lane % 4 + r / 2 * 4;
  return {row, word * a_register + element % a_register};
}
constexpr Place in_right(int element, int lane, int a_register) {
  return {(lane % 4 + element / a_register * 4) * a_register + element % a_register, lane / 4};
}
constexpr Place in_sums(int element, int lane) { return {lane / 4 + element / 2 * 8, lane % 4 * 2 + element % 2}; }

}  // namespace detail

/// @tparam Use matrix_a, m x k; matrix_b, k x n; or accumulator, m x n
template <class Use, int m, int n, int k, class T, class Layout = void>
class fragment {
  static constexpr int kRows = std::is_same_v<Use, matrix_b> ? k : m, kCols = std::is_same_v<Use, matrix_a> ? k : n;
  static constexpr bool kTurned = m == 8 && n == 32;  // C's columns are the rows of mma.sync

 public:
  static constexpr bool kIsHere = detail::is_form<Use, m, n, k, T>();
  using element_type = T;
  using storage_element_type = typename detail::Stored<T>::type;
  static constexpr int num_storage_elements = kIsHere ? kRows * kCols / 32 : 1;
  static constexpr int num_elements = num_storage_elements;
  storage_element_type x[num_elements];

  /// Where in the matrix the lane's element i lies.
  static constexpr detail::Place place(int i, int lane) {
    constexpr int kARegister = sizeof(storage_element_type) > 4 ? 1 : 4 / sizeof(storage_element_type);
    if constexpr (std::is_same_v<Use, accumulator>) {
      const int block = i / 4;
      const detail::Place p = detail::in_sums(i % 4, lane);
      if (kTurned) return {p.col, p.row + block * 16};
      return m == 32 ? detail::Place{p.row + block * 16, p.col} : detail::Place{p.row, p.col + block * 8};
    } else if constexpr (m == 8 && n == 8) {
      return std::is_same_v<Use, matrix_a> ? detail::Place{lane / 4, lane % 4} : detail::Place{lane % 4, lane / 4};
    } else if constexpr (std::is_same_v<Use, matrix_a> != kTurned) {  // the left operand
      constexpr int kOfABlock = 16 * k / 32;
      const detail::Place p = detail::in_left(i % kOfABlock, lane, kARegister);
      const int row = p.row + i / kOfABlock * 16;
      return kTurned ? detail::Place{p.col, row} : detail::Place{row, p.col};
    } else {
      constexpr int kOfABlock = 8 * k / 32;
      const detail::Place p = detail::in_right(i % kOfABlock, lane, kARegister);
      const int col = p.col + i / kOfABlock * 8;
      return kTurned ? detail::Place{col, p.row} : detail::Place{p.row, col};
    }
  }
};

namespace detail {

template <class Fragment>
int offset(int i, unsigned ldm, bool is_row_major) {
  const Place p = Fragment::place(i, static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32));
  const int stride = static_cast<int>(ldm);
  return is_row_major ? p.row * stride + p.col : p.col * stride + p.row;
}

}  // namespace detail

template <class Use, int m, int n, int k, class T, class Layout, class V>
__device__ inline void fill_fragment(fragment<Use, m, n, k, T, Layout>& f, const V& value) {
  for (auto& x : f.x) x = value;
}

template <class Use, int m, int n, int k, class T, class Layout, class U>
__device__ inline void load_matrix_sync(fragment<Use, m, n, k, T, Layout>& f, const U* from, unsigned ldm) {
  static_assert(!std::is_void_v<Layout>, "an accumulator's load_matrix_sync needs the layout, mem_row_major or mem_col_major");
  if constexpr (!f.kIsHere)
    detail::wmma_of_this_shape_and_type();
  else
    for (int i = 0; i < f.num_elements; ++i)
      f.x[i] = from[detail::offset<fragment<Use, m, n, k, T, Layout>>(i, ldm, std::is_same_v<Layout, row_major>)];
  __syncwarp();
}
template <int m, int n, int k, class T, class U>
__device__ inline void load_matrix_sync(fragment<accumulator, m, n, k, T>& f, const U* from, unsigned ldm, layout_t layout) {
  for (int i = 0; i < f.num_elements; ++i)
    f.x[i] = from[detail::offset<fragment<accumulator, m, n, k, T>>(i, ldm, layout == mem_row_major)];
  __syncwarp();
}
template <int m, int n, int k, class T, class U>
__device__ inline void store_matrix_sync(U* to, const fragment<accumulator, m, n, k, T>& f, unsigned ldm, layout_t layout) {
  for (int i = 0; i < f.num_elements; ++i)
    to[detail::offset<fragment<accumulator, m, n, k, T>>(i, ldm, layout == mem_row_major)] = f.x[i];
  __syncwarp();
}

namespace detail {

template <int m, int n, int k, class A, class D>
__device__ inline void multiply(D& d, const auto& left, const auto& right, const auto& c, bool saturates) {
  constexpr bool kTurned = m == 8 && n == 32, kIsDouble = std::is_same_v<A, double>, kIsTf32 = std::is_same_v<A, precision::tf32>;
  constexpr int kBlocks = kIsDouble ? 1 : 2, kLeftBlocks = !kIsDouble && (m == 32 || kTurned) ? 2 : 1,
                kRightBlocks = kBlocks / kLeftBlocks;
  const MmaForm form{number<A>(), number<A>(), number<typename D::element_type>(), saturates};
  constexpr int kSums = D::num_elements / kBlocks;
  for (int block = 0; block < kBlocks; ++block) {
    typename D::element_type sums[kSums];
    for (int i = 0; i < kSums; ++i) sums[i] = c.x[block * kSums + i];
    const auto* of_left = left.x + (kLeftBlocks == 2 ? block * (left.num_elements / 2) : 0);
    const auto* of_right = right.x + (kRightBlocks == 2 ? block * (right.num_elements / 2) : 0);
    if constexpr (kIsTf32) {
      for (int half = 0; half < 2; ++half) interpreter::mma(form, 16, 4, sums, of_left + 2 * half, of_right + half);
    } else {
      interpreter::mma(form, kIsDouble ? 8 : 16, k, sums, of_left, of_right);
    }
    for (int i = 0; i < kSums; ++i) d.x[block * kSums + i] = sums[i];
  }
}

}  // namespace detail

template <int m, int n, int k, class A, class LayoutA, class LayoutB, class D, class C>
__device__ inline void mma_sync(fragment<accumulator, m, n, k, D>& d, const fragment<matrix_a, m, n, k, A, LayoutA>& a,
                                const fragment<matrix_b, m, n, k, A, LayoutB>& b, const fragment<accumulator, m, n, k, C>& c,
                                bool saturates = false) {
  if constexpr (!std::is_same_v<C, D> || !detail::has_sums<A, D> || !a.kIsHere || !d.kIsHere)
    detail::wmma_of_this_shape_and_type();
  else if constexpr (m == 8 && n == 32)
    detail::multiply<m, n, k, A>(d, b, a, c, saturates);
  else
    detail::multiply<m, n, k, A>(d, a, b, c, saturates);
}

/// Of bits: not here.
template <class D, class A, class B, class C>
__device__ void bmma_sync(D&, const A&, const B&, const C&, experimental::bmmaBitOp = experimental::bmmaBitOpXOR,
                          experimental::bmmaAccumulateOp = experimental::bmmaAccumulateOpPOPC) {
  detail::wmma_of_this_shape_and_type();
}

/// The nearest tf32, ties away from zero.
__device__ inline float __float_to_tf32(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const bool is_finite = (bits & 0x7f800000u) != 0x7f800000u;
  return is_finite ? std::bit_cast<float>((bits + 0x1000u) & ~0x1fffu) : x;
}

}  // namespace nvcuda::wmma

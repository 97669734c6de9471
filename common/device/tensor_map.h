/// @file
/// What the copy engine knows of a tensor: made on the host, given to a kernel as a `const __grid_constant__ TensorMap` parameter.
#pragma once

#include "common/device/device.cuh"

#ifdef DEVICE_IS_GPU
#include <cuda.h>
#endif

namespace device {

/// The map: 128 bytes that make_tensor_map() fills and the copy engine reads.
#ifdef DEVICE_IS_GPU
using TensorMap = CUtensorMap;
#else
using TensorMap = interpreter::TensorMap;
#endif

/// Width in bytes of the pattern in which the 16-byte pieces of a box's rows change places, so that a column of them lies in all
/// banks. Of rows as wide as the pattern, piece p of row r is at place p ^ (r * width / 128), modulo the number of pieces of a
/// row: at k128 that is 8, at k64 pairs of rows have the same places, at k32 fours of rows. Narrower rows lie as far apart as if
/// they were as wide as the pattern; the copy engine leaves alone what is between them.
enum class Swizzle { kNone = 0, k32 = 32, k64 = 64, k128 = 128 };

/// What L2 fetches at once of what it does not have, in bytes. More is less to ask for, if the same block wants the neighbours too.
enum class L2Promotion { k128 = 128, k256 = 256 };

/// A matrix in global memory, of which the copy engine copies boxes.
struct TensorLayout {
  const void* data;             ///< aligned to 16 bytes
  std::uint64_t rows, columns;  ///< of the matrix
  std::uint64_t row_stride;     ///< in elements; a multiple of 16 bytes
  unsigned box_rows,
      box_columns;  ///< up to 256 each; a row of a box is a multiple of 16 bytes, and no wider than the swizzle
  Swizzle swizzle = Swizzle::kNone;
  L2Promotion promotion = L2Promotion::k256;
};

namespace detail {

/// What is wrong with the layout; null if nothing is.
inline const char* refusal_of(const TensorLayout& layout, std::size_t element_bytes) {
  const std::size_t row_bytes = layout.box_columns * element_bytes;
  if (reinterpret_cast<std::uintptr_t>(layout.data) % 16) return "the matrix is not aligned to 16 bytes";
  if (layout.row_stride * element_bytes % 16) return "the row stride is no multiple of 16 bytes";
  if (layout.row_stride * element_bytes >> 40) return "the row stride is 2^40 bytes or more";
  if (layout.rows == 0 || layout.columns == 0) return "the matrix is empty";
  if (layout.rows >> 32 || layout.columns >> 32) return "a dimension is larger than 2^32 - 1";
  if (layout.box_rows == 0 || layout.box_rows > 256) return "a box has between 1 and 256 rows";
  if (layout.box_columns == 0 || layout.box_columns > 256) return "a box has between 1 and 256 columns";
  if (row_bytes % 16) return "a row of the box is no multiple of 16 bytes";
  if (layout.swizzle != Swizzle::kNone && row_bytes > static_cast<std::size_t>(layout.swizzle))
    return "a row of the box is wider than the swizzle";
  return nullptr;
}

#ifdef DEVICE_IS_GPU
template <class T>
constexpr CUtensorMapDataType kTensorMapType = sizeof(T) == 2   ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                                               : sizeof(T) == 4 ? CU_TENSOR_MAP_DATA_TYPE_UINT32
                                                                : CU_TENSOR_MAP_DATA_TYPE_UINT8;

/// The driver's own function, found at run time: nothing is linked with the driver.
inline decltype(&cuTensorMapEncodeTiled) tensor_map_encoder() {
  static const auto found = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result{};
    DEVICE_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result));
    if (result != cudaDriverEntryPointSuccess)
      throw Error("the driver has no cuTensorMapEncodeTiled: a driver for CUDA 12.0 or later is needed");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  return found;
}
#endif

}  // namespace detail

/// The map of a matrix of T, 1, 2 or 4 bytes. What is outside of the matrix is read as zeros.
/// @throws Error with the reason when the copy engine cannot do it (CUDA Driver API, "Tensor Map Object Management").
template <class T>
TensorMap make_tensor_map(const TensorLayout& layout) {
  static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4, "elements have 1, 2 or 4 bytes");
  if (const char* const refusal = detail::refusal_of(layout, sizeof(T))) throw Error(std::string("no tensor map: ") + refusal);
  TensorMap map{};
#ifdef DEVICE_IS_GPU
  const cuuint64_t sizes[] = {layout.columns, layout.rows};
  const cuuint64_t strides[] = {layout.row_stride * sizeof(T)};
  const cuuint32_t box[] = {layout.box_columns, layout.box_rows}, element_strides[] = {1, 1};
  const CUtensorMapSwizzle swizzle = layout.swizzle == Swizzle::k128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                     : layout.swizzle == Swizzle::k64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                     : layout.swizzle == Swizzle::k32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                                      : CU_TENSOR_MAP_SWIZZLE_NONE;
  const CUtensorMapL2promotion promotion =
      layout.promotion == L2Promotion::k256 ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
  const auto encode = [&] {
    return detail::tensor_map_encoder()(&map, detail::kTensorMapType<T>, 2, const_cast<void*>(layout.data), sizes, strides, box,
                                        element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion,
                                        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  CUresult result = encode();
  if (result == CUDA_ERROR_INVALID_CONTEXT) {  // the first that this thread wants of the driver: cudaSetDevice gives it a context
    int gpu = 0;
    DEVICE_CHECK(cudaGetDevice(&gpu));
    DEVICE_CHECK(cudaSetDevice(gpu));
    result = encode();
  }
  if (result != CUDA_SUCCESS) throw Error("cuTensorMapEncodeTiled failed: CUDA driver error " + std::to_string(result));
#else
  map.magic = TensorMap::kMagic;
  map.dimensions = 2, map.element_bytes = sizeof(T), map.swizzle_bytes = static_cast<std::uint8_t>(layout.swizzle);
  map.tensor = layout.data;
  map.size[0] = static_cast<std::uint32_t>(layout.columns), map.size[1] = static_cast<std::uint32_t>(layout.rows);
  map.stride[0] = sizeof(T), map.stride[1] = layout.row_stride * sizeof(T);
  map.box[0] = layout.box_columns, map.box[1] = layout.box_rows;
#endif
  return map;
}

}  // namespace device

// The one function of the driver that kernels for Hopper need.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "common/interpreter/instructions/bulk_copies.h"
#include "common/interpreter/report/diagnosis.h"

namespace interpreter::cuda_runtime {
namespace {

unsigned bytes_of(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8: return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ: return 4;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64: return 8;
    default: return 0;
  }
}

// 0 to 128; -1: one that is not here.
int bytes_of(CUtensorMapSwizzle swizzle) {
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_NONE: return 0;
    case CU_TENSOR_MAP_SWIZZLE_32B: return 32;
    case CU_TENSOR_MAP_SWIZZLE_64B: return 64;
    case CU_TENSOR_MAP_SWIZZLE_128B: return 128;
    default: return -1;
  }
}

// A dimension's number stands in front of what is wrong with it.
std::string in_dimension(unsigned d, const std::string& what) { return "dimension " + std::to_string(d) + ": " + what; }

}  // namespace
}  // namespace interpreter::cuda_runtime

using interpreter::TensorMap, interpreter::Location, interpreter::host_line, interpreter::at;
using namespace interpreter::cuda_runtime;

// CUDA Driver API, "Tensor Map Object Management".
extern "C" CUresult CUDAAPI cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* tensor,
                                                   const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                                   const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                                   CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                                   CUtensorMapFloatOOBfill fill) {
  static_assert(sizeof(CUtensorMap) == sizeof(TensorMap));
  const auto refuse = [](const std::string& why, CUresult error = CUDA_ERROR_INVALID_VALUE) {
    const Location where = host_line();
    std::fprintf(stderr, "interpreter: cuTensorMapEncodeTiled: %s%s%s\n", why.c_str(), where.line ? ", at " : "",
                 where.line ? at(where).c_str() : "");
    return error;
  };
  const auto not_here = [&](const char* what) {
    return refuse(std::string(what) + ": the interpreter does not have it", CUDA_ERROR_NOT_SUPPORTED);
  };
  const unsigned bytes = bytes_of(type);
  const int swizzle_bytes = bytes_of(swizzle);
  if (bytes == 0) return not_here("elements of 4 or 6 bits");
  if (swizzle_bytes < 0) return not_here("a swizzle whose pieces have more than 16 bytes");
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return not_here("an interleaved layout");
  if (fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) return not_here("NaN outside of the tensor");
  if (!map || reinterpret_cast<std::uintptr_t>(map) % 64) return refuse("the map is not aligned to 64 bytes");
  if (rank < 1 || rank > TensorMap::kMostDimensions) return refuse("a tensor has between 1 and 5 dimensions");
  if (!tensor || reinterpret_cast<std::uintptr_t>(tensor) % 16) return refuse("the tensor is not aligned to 16 bytes");
  TensorMap made;
  made.magic = TensorMap::kMagic;
  made.dimensions = static_cast<std::uint8_t>(rank), made.element_bytes = static_cast<std::uint8_t>(bytes);
  made.swizzle_bytes = static_cast<std::uint8_t>(swizzle_bytes), made.tensor = tensor;
  for (unsigned d = 0; d < rank; ++d) {
    if (sizes[d] == 0 || sizes[d] >> 32) return refuse(in_dimension(d, "its size is not between 1 and 2^32"));
    if (box[d] == 0 || box[d] > 256) return refuse(in_dimension(d, "a box has between 1 and 256 elements there"));
    if (element_strides[d] != 1) return not_here("element strides other than 1");
    made.size[d] = static_cast<std::uint32_t>(sizes[d]), made.box[d] = box[d];
    made.stride[d] = d ? strides[d - 1] : bytes;
    if (d && (made.stride[d] % 16 || made.stride[d] >> 40))
      return refuse(in_dimension(d, "its stride is no multiple of 16 bytes below 2^40"));
  }
  if (box[0] * bytes % 16) return refuse("a row of the box is no multiple of 16 bytes");
  if (swizzle_bytes && box[0] * bytes > static_cast<unsigned>(swizzle_bytes))
    return refuse("a row of the box is wider than the swizzle");
  std::memcpy(map, &made, sizeof made);
  return CUDA_SUCCESS;
}

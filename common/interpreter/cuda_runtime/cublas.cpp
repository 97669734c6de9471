// cuBLAS's gemm on the host, for programs that compare with it. The matrices come and go by cudaMemcpy2D, which checks where they
// lie.
#include "common/interpreter/include/cublasLt.h"
#include "common/interpreter/include/cublas_v2.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "common/interpreter/cuda_runtime/graph.h"

using interpreter::cuda_runtime::captured;
using interpreter::cuda_runtime::copy_bytes;
using interpreter::cuda_runtime::is_captured;

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
};

struct cublasLtMatmulDesc {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t op_a = CUBLAS_OP_N, op_b = CUBLAS_OP_N;
  cublasLtPointerMode_t pointers = CUBLASLT_POINTER_MODE_HOST;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct cublasLtMatrixLayout {
  cudaDataType_t type;
  std::uint64_t rows, columns;
  std::int64_t ld;
  std::int32_t count = 1;
  std::int64_t stride = 0;  // in elements
};
struct cublasLtMatmulPreference {};

namespace {

struct Status {
  cublasStatus_t status;
  const char *name, *text;
};
#define COURSE_STATUS(name, text) \
  { name, #name, text }
constexpr Status kStatuses[] = {COURSE_STATUS(CUBLAS_STATUS_SUCCESS, "success"),
                                COURSE_STATUS(CUBLAS_STATUS_NOT_INITIALIZED, "the library was not initialized"),
                                COURSE_STATUS(CUBLAS_STATUS_ALLOC_FAILED, "the resource allocation failed"),
                                COURSE_STATUS(CUBLAS_STATUS_INVALID_VALUE, "an unsupported value or parameter"),
                                COURSE_STATUS(CUBLAS_STATUS_ARCH_MISMATCH, "the architecture lacks the feature"),
                                COURSE_STATUS(CUBLAS_STATUS_MAPPING_ERROR, "an access to GPU memory failed"),
                                COURSE_STATUS(CUBLAS_STATUS_EXECUTION_FAILED, "the function failed on the GPU"),
                                COURSE_STATUS(CUBLAS_STATUS_INTERNAL_ERROR, "an internal operation failed"),
                                COURSE_STATUS(CUBLAS_STATUS_NOT_SUPPORTED, "the function is not supported"),
                                COURSE_STATUS(CUBLAS_STATUS_LICENSE_ERROR, "an error of the license")};

const Status& find(cublasStatus_t status) {
  static constexpr Status kUnknown = {CUBLAS_STATUS_SUCCESS, "unknown", "unknown"};
  const auto found = std::find_if(std::begin(kStatuses), std::end(kStatuses), [&](const Status& s) { return s.status == status; });
  return found == std::end(kStatuses) ? kUnknown : *found;
}

cublasStatus_t failed(cublasStatus_t status, const std::string& why) {
  std::fflush(stdout);
  std::fprintf(stderr, "interpreter: cublasGemm gives %s: %s\n", find(status).name, why.c_str());
  return status;
}

int bytes_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_64F: return 8;
    case CUDA_R_32F:
    case CUDA_R_32I: return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    case CUDA_R_8I: return 1;
    default: return 0;
  }
}

double read(const char* at, cudaDataType type) {
  switch (type) {
    case CUDA_R_64F: return *reinterpret_cast<const double*>(at);
    case CUDA_R_32F: return *reinterpret_cast<const float*>(at);
    case CUDA_R_32I: return *reinterpret_cast<const std::int32_t*>(at);
    case CUDA_R_16F: return __half2float(*reinterpret_cast<const __half*>(at));
    case CUDA_R_16BF: return __bfloat162float(*reinterpret_cast<const __nv_bfloat16*>(at));
    default: return *reinterpret_cast<const std::int8_t*>(at);
  }
}

void write(char* at, cudaDataType type, double value) {
  switch (type) {
    case CUDA_R_64F: *reinterpret_cast<double*>(at) = value; break;
    case CUDA_R_32F: *reinterpret_cast<float*>(at) = static_cast<float>(value); break;
    case CUDA_R_32I: *reinterpret_cast<std::int32_t*>(at) = static_cast<std::int32_t>(value); break;
    case CUDA_R_16F: *reinterpret_cast<__half*>(at) = __double2half(value); break;
    default: *reinterpret_cast<__nv_bfloat16*>(at) = __double2bfloat16(value); break;
  }
}

// The type of alpha and beta.
cudaDataType scale_type(cublasComputeType_t compute) {
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC: return CUDA_R_16F;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC: return CUDA_R_64F;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC: return CUDA_R_32I;
    default: return CUDA_R_32F;
  }
}

// A matrix of the device, column-major.
struct Matrix {
  const void* data;
  cudaDataType type;
  std::size_t ld;  // in elements, between columns
  std::size_t rows, columns;
  std::size_t bytes() const { return static_cast<std::size_t>(bytes_of(type)); }
};

bool fetch(const Matrix& from, std::vector<char>& to) {
  to.resize(from.rows * from.columns * from.bytes());
  return cudaMemcpy2D(to.data(), from.rows * from.bytes(), from.data, from.ld * from.bytes(), from.rows * from.bytes(),
                      from.columns, cudaMemcpyDeviceToHost) == cudaSuccess;
}

// op(A) or op(B) as doubles, column-major.
bool fetch(const Matrix& from, bool transposed, std::vector<double>& to) {
  std::vector<char> raw;
  if (!fetch(from, raw)) return false;
  to.resize(from.rows * from.columns);
  for (std::size_t c = 0; c < from.columns; ++c)
    for (std::size_t r = 0; r < from.rows; ++r)
      to[transposed ? c + r * from.columns : r + c * from.rows] = read(&raw[(r + c * from.rows) * from.bytes()], from.type);
  return true;
}

// What becomes of an element of C, in its row, before it is rounded.
using Finish = std::function<double(std::size_t row, double value)>;

cublasStatus_t multiply(const Matrix& A, bool transposed_a, const Matrix& B, bool transposed_b, const Matrix& C, double alpha,
                        double beta, const Finish& finish = {}) {
  const std::size_t m = C.rows, n = C.columns, k = transposed_a ? A.rows : A.columns;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  std::vector<double> a, b, sums(m);
  std::vector<char> c(m * n * C.bytes());
  if (k && alpha != 0 && !(fetch(A, transposed_a, a) && fetch(B, transposed_b, b))) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (beta != 0 && !fetch(C, c)) return CUBLAS_STATUS_EXECUTION_FAILED;
  for (std::size_t column = 0; column < n; ++column) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t i = 0; i < k && alpha != 0; ++i) {
      const double factor = b[i + column * k], *const of_a = &a[i * m];
      for (std::size_t row = 0; row < m; ++row) sums[row] += of_a[row] * factor;
    }
    for (std::size_t row = 0; row < m; ++row) {
      char* const to = &c[(row + column * m) * C.bytes()];
      const double value = alpha * sums[row] + (beta == 0 ? 0 : beta * read(to, C.type));
      write(to, C.type, finish ? finish(row, value) : value);
    }
  }
  return cudaMemcpy2D(const_cast<void*>(C.data), C.ld * C.bytes(), c.data(), m * C.bytes(), m * C.bytes(), n,
                      cudaMemcpyHostToDevice) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  *version = CUDART_VERSION / 1000 * 10000;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  handle->pointers = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  *mode = handle->pointers;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  handle->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  *mode = handle->math;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }
const char* cublasGetStatusName(cublasStatus_t status) { return find(status).name; }
const char* cublasGetStatusString(cublasStatus_t status) { return find(status).text; }

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                                          int k, const void* alpha, const void* A, cudaDataType type_a, int lda, long long stride_a,
                                          const void* B, cudaDataType type_b, int ldb, long long stride_b, const void* beta,
                                          void* C, cudaDataType type_c, int ldc, long long stride_c, int count,
                                          cublasComputeType_t compute, cublasGemmAlgo_t) {
  if (!handle) return failed(CUBLAS_STATUS_NOT_INITIALIZED, "the handle is null: cublasCreate makes one");
  const bool t_a = op_a != CUBLAS_OP_N, t_b = op_b != CUBLAS_OP_N;
  const int rows_a = t_a ? k : m, rows_b = t_b ? n : k;
  if (m < 0 || n < 0 || k < 0 || count < 0) return failed(CUBLAS_STATUS_INVALID_VALUE, "m, n and k are 0 or more");
  const auto too_small = [](const char* name, int ld, int rows) {
    return failed(CUBLAS_STATUS_INVALID_VALUE, std::string(name) + " is " + std::to_string(ld) + ", but a column has " +
                                                   std::to_string(rows) + " elements; matrices are column-major");
  };
  if (lda < std::max(1, rows_a)) return too_small("lda", lda, rows_a);
  if (ldb < std::max(1, rows_b)) return too_small("ldb", ldb, rows_b);
  if (ldc < std::max(1, m)) return too_small("ldc", ldc, m);
  if (!alpha || !beta) return failed(CUBLAS_STATUS_INVALID_VALUE, "alpha or beta is null: they are pointers");
  if (!bytes_of(type_a) || !bytes_of(type_b) || !bytes_of(type_c) || type_c == CUDA_R_8I)
    return failed(CUBLAS_STATUS_NOT_SUPPORTED, "the interpreter multiplies float, double, half, bfloat16 and int8");
  if (handle->pointers == CUBLAS_POINTER_MODE_DEVICE && is_captured(handle->stream))
    return failed(CUBLAS_STATUS_NOT_SUPPORTED, "of a stream that is captured, alpha and beta are the host's here");
  double scale[2];
  for (int i = 0; i < 2; ++i) {
    char value[8];
    const cudaDataType type = scale_type(compute);
    const void* const from = i ? beta : alpha;
    if (copy_bytes("cublas", value, from, static_cast<std::size_t>(bytes_of(type)), cudaMemcpyDefault) != cudaSuccess)
      return CUBLAS_STATUS_EXECUTION_FAILED;
    scale[i] = read(value, type);
  }
  const auto matrix = [](const void* data, cudaDataType type, int ld, int rows, int columns, long long stride, int i) {
    return Matrix{static_cast<const char*>(data) + stride * i * bytes_of(type), type, static_cast<std::size_t>(ld),
                  static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)};
  };
  const auto multiply_all = [=] {
    for (int i = 0; i < count; ++i) {
      const cublasStatus_t status = multiply(matrix(A, type_a, lda, rows_a, t_a ? m : k, stride_a, i), t_a,
                                             matrix(B, type_b, ldb, rows_b, t_b ? k : n, stride_b, i), t_b,
                                             matrix(C, type_c, ldc, m, n, stride_c, i), scale[0], scale[1]);
      if (status != CUBLAS_STATUS_SUCCESS) return status;
    }
    return CUBLAS_STATUS_SUCCESS;
  };
  const auto as_node = [multiply_all](cudaStream_t) {
    return multiply_all() == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorLaunchFailure;
  };
  if (captured(handle->stream, cudaGraphNodeTypeKernel, as_node)) return CUBLAS_STATUS_SUCCESS;
  return multiply_all();
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                            const void* alpha, const void* A, cudaDataType type_a, int lda, const void* B, cudaDataType type_b,
                            int ldb, const void* beta, void* C, cudaDataType type_c, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, A, type_a, lda, 0, B, type_b, ldb, 0, beta, C, type_c, ldc,
                                    0, 1, compute, algorithm);
}

// ------------------------------------------------------------------------------------------------------------ cuBLASLt
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return cublasCreate_v2(reinterpret_cast<cublasHandle_t*>(handle)); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return cublasDestroy_v2(reinterpret_cast<cublasHandle_t>(handle)); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType_t scale) {
  *desc = new cublasLtMatmulDesc{compute, scale};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  const auto set = [&](auto& to) {
    if (bytes != sizeof to) return failed(CUBLAS_STATUS_INVALID_VALUE, "an attribute's size is " + std::to_string(sizeof to));
    std::memcpy(&to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(desc->op_a);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(desc->op_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(desc->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(desc->bias);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE: return set(desc->pointers);
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE: return set(desc->compute);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE: return set(desc->scale);
    default: return failed(CUBLAS_STATUS_NOT_SUPPORTED, "the interpreter does not know this attribute of a product");
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows, uint64_t columns,
                                          int64_t ld) {
  *layout = new cublasLtMatrixLayout{type, rows, columns, ld};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t) {
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
    layout->count = *static_cast<const std::int32_t*>(value);
  else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
    layout->stride = *static_cast<const std::int64_t*>(value);
  else
    return failed(CUBLAS_STATUS_NOT_SUPPORTED, "the interpreter does not know this attribute of a matrix");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void*,
                                                    size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int wanted, cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  if (wanted < 1) return failed(CUBLAS_STATUS_INVALID_VALUE, "no algorithm is asked for");
  results[0] = {};
  results[0].wavesCount = 1;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* A,
                              cublasLtMatrixLayout_t of_a, const void* B, cublasLtMatrixLayout_t of_b, const void* beta,
                              const void* C, cublasLtMatrixLayout_t of_c, void* D, cublasLtMatrixLayout_t of_d,
                              const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t stream) {
  if (!handle) return failed(CUBLAS_STATUS_NOT_INITIALIZED, "the handle is null: cublasLtCreate makes one");
  for (const auto* const layout : {of_a, of_b, of_c, of_d}) {
    if (!bytes_of(layout->type))
      return failed(CUBLAS_STATUS_NOT_SUPPORTED, "the interpreter multiplies float, double, half, bfloat16 and int8");
    if (layout->ld < static_cast<std::int64_t>(std::max<std::uint64_t>(1, layout->rows)) || layout->count != of_d->count)
      return failed(CUBLAS_STATUS_INVALID_VALUE,
                    "a column is longer than its matrix's leading dimension, or batches have other sizes");
  }
  const bool t_a = desc->op_a != CUBLAS_OP_N, t_b = desc->op_b != CUBLAS_OP_N;
  const auto m = t_a ? of_a->columns : of_a->rows, k = t_a ? of_a->rows : of_a->columns;
  const auto n = t_b ? of_b->rows : of_b->columns, k_b = t_b ? of_b->columns : of_b->rows;
  if (m != of_d->rows || n != of_d->columns || k != k_b || of_c->rows != m || of_c->columns != n)
    return failed(CUBLAS_STATUS_INVALID_VALUE, "the matrices' shapes do not fit together");
  const int epilogue = desc->epilogue, kinds = CUBLASLT_EPILOGUE_RELU | CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_GELU;
  if ((epilogue & ~kinds & ~CUBLASLT_EPILOGUE_DEFAULT) || of_d->type == CUDA_R_8I || of_c->type != of_d->type)
    return failed(CUBLAS_STATUS_NOT_SUPPORTED,
                  "the interpreter has bias, relu and gelu, and sums of float, double, half and bfloat16");
  if ((epilogue & CUBLASLT_EPILOGUE_BIAS) && !desc->bias) return failed(CUBLAS_STATUS_INVALID_VALUE, "the bias is null");
  if (desc->pointers != CUBLASLT_POINTER_MODE_HOST)
    return failed(CUBLAS_STATUS_NOT_SUPPORTED, "alpha and beta are the host's here");
  const double scale[] = {read(static_cast<const char*>(alpha), desc->scale), read(static_cast<const char*>(beta), desc->scale)};
  const auto multiply_all = [=, a = *of_a, b = *of_b, c = *of_c, d = *of_d, bias = desc->bias] {
    const auto matrix = [](const void* data, const cublasLtMatrixLayout& layout, int i) {
      return Matrix{static_cast<const char*>(data) + layout.stride * i * bytes_of(layout.type), layout.type,
                    static_cast<std::size_t>(layout.ld), layout.rows, layout.columns};
    };
    std::vector<double> added(m);
    if (epilogue & CUBLASLT_EPILOGUE_BIAS)
      if (!fetch({bias, d.type, m, m, 1}, false, added)) return CUBLAS_STATUS_EXECUTION_FAILED;
    const Finish finish = [&](std::size_t row, double value) {
      value += added[row];
      if (epilogue & CUBLASLT_EPILOGUE_RELU) return std::max(value, 0.0);
      if (!(epilogue & (CUBLASLT_EPILOGUE_GELU & ~CUBLASLT_EPILOGUE_BIAS))) return value;
      return value / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (value + 0.044715 * value * value * value)));
    };
    for (int i = 0; i < d.count; ++i) {
      const Matrix to = matrix(D, d, i), from = matrix(C, c, i);
      if (C != D && scale[1] != 0)
        if (cudaMemcpy2D(const_cast<void*>(to.data), to.ld * to.bytes(), from.data, from.ld * from.bytes(), m * to.bytes(), n,
                         cudaMemcpyDeviceToDevice) != cudaSuccess)
          return CUBLAS_STATUS_EXECUTION_FAILED;
      const cublasStatus_t status = multiply(matrix(A, a, i), t_a, matrix(B, b, i), t_b, to, scale[0], scale[1], finish);
      if (status != CUBLAS_STATUS_SUCCESS) return status;
    }
    return CUBLAS_STATUS_SUCCESS;
  };
  const auto as_node = [multiply_all](cudaStream_t) {
    return multiply_all() == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorLaunchFailure;
  };
  return captured(stream, cudaGraphNodeTypeKernel, as_node) ? CUBLAS_STATUS_SUCCESS : multiply_all();
}

}  // extern "C"

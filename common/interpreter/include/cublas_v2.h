/// @file
/// In the place of cuBLAS's header: what a program needs that compares its matrix multiplication with cuBLAS's. The host computes.
///
/// Declared are the handle's functions and those of gemm. A sum is formed in double and rounded once, to the type of C.
#pragma once

#define CUBLAS_API_H_  // programs ask by cuBLAS's own words whether it is there
#define CUBLAS_V2_H_

#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <driver_types.h>
#include <library_types.h>

#include <cstddef>

typedef enum {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
  CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
} cublasMath_t;
typedef enum {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_16F_PEDANTIC = 65,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_64F_PEDANTIC = 71,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32I_PEDANTIC = 73,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
/// Hints: here all mean the same.
typedef enum {
  CUBLAS_GEMM_DFALT = -1,
  CUBLAS_GEMM_DEFAULT = -1,
  CUBLAS_GEMM_ALGO0 = 0,
  CUBLAS_GEMM_ALGO1,
  CUBLAS_GEMM_ALGO2,
  CUBLAS_GEMM_ALGO3,
  CUBLAS_GEMM_ALGO4,
  CUBLAS_GEMM_ALGO5,
  CUBLAS_GEMM_ALGO6,
  CUBLAS_GEMM_ALGO7,
  CUBLAS_GEMM_ALGO8,
  CUBLAS_GEMM_ALGO9,
  CUBLAS_GEMM_ALGO10,
  CUBLAS_GEMM_ALGO11,
  CUBLAS_GEMM_ALGO12,
  CUBLAS_GEMM_ALGO13,
  CUBLAS_GEMM_ALGO14,
  CUBLAS_GEMM_ALGO15,
  CUBLAS_GEMM_ALGO16,
  CUBLAS_GEMM_ALGO17,
  CUBLAS_GEMM_ALGO18,
  CUBLAS_GEMM_ALGO19,
  CUBLAS_GEMM_ALGO20,
  CUBLAS_GEMM_ALGO21,
  CUBLAS_GEMM_ALGO22,
  CUBLAS_GEMM_ALGO23,
  CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
  CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
  CUBLAS_GEMM_ALGO0_TENSOR_OP = 100,
  CUBLAS_GEMM_ALGO1_TENSOR_OP,
  CUBLAS_GEMM_ALGO2_TENSOR_OP,
  CUBLAS_GEMM_ALGO3_TENSOR_OP,
  CUBLAS_GEMM_ALGO4_TENSOR_OP,
  CUBLAS_GEMM_ALGO5_TENSOR_OP,
  CUBLAS_GEMM_ALGO6_TENSOR_OP,
  CUBLAS_GEMM_ALGO7_TENSOR_OP,
  CUBLAS_GEMM_ALGO8_TENSOR_OP,
  CUBLAS_GEMM_ALGO9_TENSOR_OP,
  CUBLAS_GEMM_ALGO10_TENSOR_OP,
  CUBLAS_GEMM_ALGO11_TENSOR_OP,
  CUBLAS_GEMM_ALGO12_TENSOR_OP,
  CUBLAS_GEMM_ALGO13_TENSOR_OP,
  CUBLAS_GEMM_ALGO14_TENSOR_OP,
  CUBLAS_GEMM_ALGO15_TENSOR_OP
} cublasGemmAlgo_t;

typedef struct cublasContext* cublasHandle_t;

extern "C" {
cublasStatus_t cublasCreate_v2(cublasHandle_t* handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int* version);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream);
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes);
const char* cublasGetStatusName(cublasStatus_t status);
const char* cublasGetStatusString(cublasStatus_t status);

/// C = alpha * op(A) * op(B) + beta * C, column-major: the element (row, column) of C is C[row + column * ldc].
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                            const void* alpha, const void* A, cudaDataType type_a, int lda, const void* B, cudaDataType type_b,
                            int ldb, const void* beta, void* C, cudaDataType type_c, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm);
/// The same of matrices that follow each other at a distance of so many elements.
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                                          int k, const void* alpha, const void* A, cudaDataType type_a, int lda, long long stride_a,
                                          const void* B, cudaDataType type_b, int ldb, long long stride_b, const void* beta,
                                          void* C, cudaDataType type_c, int ldc, long long stride_c, int count,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
}

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasGetVersion cublasGetVersion_v2
#define cublasSetStream cublasSetStream_v2
#define cublasGetStream cublasGetStream_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasGetPointerMode cublasGetPointerMode_v2
#define cublasSetWorkspace cublasSetWorkspace_v2

/// Older programs name the type of the sums by that of their elements.
inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                                   const void* alpha, const void* A, cudaDataType type_a, int lda, const void* B,
                                   cudaDataType type_b, int ldb, const void* beta, void* C, cudaDataType type_c, int ldc,
                                   cudaDataType compute, cublasGemmAlgo_t algorithm) {
  const cublasComputeType_t sums = compute == CUDA_R_16F   ? CUBLAS_COMPUTE_16F
                                   : compute == CUDA_R_64F ? CUBLAS_COMPUTE_64F
                                   : compute == CUDA_R_32I ? CUBLAS_COMPUTE_32I
                                                           : CUBLAS_COMPUTE_32F;
  return cublasGemmEx(handle, op_a, op_b, m, n, k, alpha, A, type_a, lda, B, type_b, ldb, beta, C, type_c, ldc, sums, algorithm);
}

/// cublasSgemm and its like, by the letter, the type of the elements and the type of the sums.
#define COURSE_GEMM(letter, Type, data, sums)                                                                                      \
  inline cublasStatus_t cublas##letter##gemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,  \
                                             int k, const Type* alpha, const Type* A, int lda, const Type* B, int ldb,             \
                                             const Type* beta, Type* C, int ldc) {                                                 \
    return cublasGemmEx(handle, op_a, op_b, m, n, k, alpha, A, data, lda, B, data, ldb, beta, C, data, ldc, sums,                  \
                        CUBLAS_GEMM_DEFAULT);                                                                                      \
  }                                                                                                                                \
  inline cublasStatus_t cublas##letter##gemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,  \
                                                           int m, int n, int k, const Type* alpha, const Type* A, int lda,         \
                                                           long long stride_a, const Type* B, int ldb, long long stride_b,         \
                                                           const Type* beta, Type* C, int ldc, long long stride_c, int count) {    \
    return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, A, data, lda, stride_a, B, data, ldb, stride_b, beta, C, \
                                      data, ldc, stride_c, count, sums, CUBLAS_GEMM_DEFAULT);                                      \
  }
COURSE_GEMM(S, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
COURSE_GEMM(D, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
COURSE_GEMM(H, __half, CUDA_R_16F, CUBLAS_COMPUTE_16F)
#undef COURSE_GEMM

/// cublasSgemv and its like: y is the product's only row, x that of its left factor, so that their elements may stand apart.
#define COURSE_GEMV(letter, Type, data, sums)                                                                                    \
  inline cublasStatus_t cublas##letter##gemv(cublasHandle_t handle, cublasOperation_t op, int m, int n, const Type* alpha,       \
                                             const Type* A, int lda, const Type* x, int incx, const Type* beta, Type* y,         \
                                             int incy) {                                                                         \
    const bool is_plain = op == CUBLAS_OP_N;                                                                                     \
    return cublasGemmEx(handle, CUBLAS_OP_N, is_plain ? CUBLAS_OP_T : CUBLAS_OP_N, 1, is_plain ? m : n, is_plain ? n : m, alpha, \
                        x, data, incx, A, data, lda, beta, y, data, incy, sums, CUBLAS_GEMM_DEFAULT);                            \
  }
COURSE_GEMV(S, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
COURSE_GEMV(D, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
#undef COURSE_GEMV

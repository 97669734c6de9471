/// @file
/// gemm::run() for other languages than C++: plain C, status codes in place of exceptions.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// gemm::Matrix without its type: strides in elements, data in device memory.
struct CourseGemmMatrix {
  void* data;
  int64_t rows, cols, row_stride, col_stride;
};

/// Of elements.
enum CourseGemmType { COURSE_GEMM_F32 = 0, COURSE_GEMM_F16 = 1, COURSE_GEMM_BF16 = 2 };

/// What a call returns.
enum CourseGemmStatus {
  COURSE_GEMM_OK = 0,
  COURSE_GEMM_REFUSED = 1,  ///< the contract does not allow the call: gemm::Refused
  COURSE_GEMM_FAILED = 2    ///< anything else: gemm::Error
};

/// C = x >= 0 ? x : slope · x of the elements x of A · B; a slope of 1 gives A · B.
/// @param in of A and B  @param out of C: as `in`, or COURSE_GEMM_F32  @param stream a cudaStream_t
int course_gemm_run(const struct CourseGemmMatrix* A, const struct CourseGemmMatrix* B, const struct CourseGemmMatrix* C, int in,
                    int out, float slope, void* stream);

/// gemm::tune() of the same.
int course_gemm_tune(const struct CourseGemmMatrix* A, const struct CourseGemmMatrix* B, const struct CourseGemmMatrix* C, int in,
                     int out, float slope, void* stream);

/// gemm::choice() of the same, as text that ends with 0: the kernel and how it was chosen. Cut off after `bytes` bytes.
int course_gemm_choice(const struct CourseGemmMatrix* A, const struct CourseGemmMatrix* B, const struct CourseGemmMatrix* C, int in,
                       int out, char* text, size_t bytes);

/// Why this thread's last call did not return COURSE_GEMM_OK. Valid until the thread's next call.
const char* course_gemm_error(void);

#ifdef __cplusplus
}
#endif

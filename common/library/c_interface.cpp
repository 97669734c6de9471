#include "common/library/c_interface.h"

#include <cstdio>
#include <exception>
#include <string>

#include "common/library/course_gemm.h"

namespace {

using gemm::library::Call, harness::DType;

thread_local std::string error;

template <class Body>
int status_of(const Body& body) {
  try {
    body();
    error.clear();
    return COURSE_GEMM_OK;
  } catch (const gemm::Refused& refused) {
    error = refused.what();
    return COURSE_GEMM_REFUSED;
  } catch (const std::exception& failed) {
    error = failed.what();
    return COURSE_GEMM_FAILED;
  }
}

DType type_of(int type) {
  switch (type) {
    case COURSE_GEMM_F32: return DType::kF32;
    case COURSE_GEMM_F16: return DType::kF16;
    case COURSE_GEMM_BF16: return DType::kBF16;
    default: throw gemm::Refused("gemm: type " + std::to_string(type) + " is none of CourseGemmType");
  }
}

harness::AnyMatrix matrix_of(const CourseGemmMatrix* m) {
  if (!m) throw gemm::Refused("gemm: a matrix is a null pointer; pass the address of a CourseGemmMatrix");
  return {m->data, m->rows, m->cols, m->row_stride, m->col_stride};
}

Call call_of(const CourseGemmMatrix* A, const CourseGemmMatrix* B, const CourseGemmMatrix* C, int in, int out, float slope) {
  const Call call{matrix_of(A), matrix_of(B), matrix_of(C), type_of(in), type_of(out), slope};
  if (call.out != call.in && call.out != DType::kF32) throw gemm::Refused("gemm: C has the type of A and B, or f32");
  return call;
}

std::string to_text(const gemm::Choice& choice) {
  if (choice.kernel.empty() || choice.is_fallback) return choice.kernel;
  char time[64];
  std::snprintf(time, sizeof time, ", %s %.1f us", choice.is_timed ? "timed" : "by model", 1e6 * choice.seconds);
  return choice.kernel + (choice.lays_out ? ", operands laid out anew" : "") + time;
}

}  // namespace

int course_gemm_run(const CourseGemmMatrix* A, const CourseGemmMatrix* B, const CourseGemmMatrix* C, int in, int out, float slope,
                    void* stream) {
  return status_of([&] { gemm::library::run(call_of(A, B, C, in, out, slope), static_cast<cudaStream_t>(stream)); });
}

int course_gemm_tune(const CourseGemmMatrix* A, const CourseGemmMatrix* B, const CourseGemmMatrix* C, int in, int out, float slope,
                     void* stream) {
  return status_of([&] { gemm::library::tune(call_of(A, B, C, in, out, slope), static_cast<cudaStream_t>(stream)); });
}

int course_gemm_choice(const CourseGemmMatrix* A, const CourseGemmMatrix* B, const CourseGemmMatrix* C, int in, int out, char* text,
                       size_t bytes) {
  return status_of([&] {
    const std::string choice = to_text(gemm::library::choice(call_of(A, B, C, in, out, 1)));
    if (bytes > 0) std::snprintf(text, bytes, "%s", choice.c_str());
  });
}

const char* course_gemm_error() { return error.c_str(); }

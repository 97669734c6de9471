#include "common/library/c_interface.h"

#include <cstdio>
#include <exception>
#include <string>

#include "common/library/course_gemm.h"

namespace {

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

gemm::library::Arguments arguments(const CourseGemmMatrix* A, const CourseGemmMatrix* B, const CourseGemmMatrix* C, int in, int out,
                                   float slope) {
  if (!A || !B || !C) throw gemm::Refused("gemm: a matrix is a null pointer; pass the address of a CourseGemmMatrix");
  return {*A, *B, *C, in, out, slope};
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
  return status_of([&] { gemm::library::run(arguments(A, B, C, in, out, slope), static_cast<cudaStream_t>(stream)); });
}

int course_gemm_tune(const CourseGemmMatrix* A, const CourseGemmMatrix* B, const CourseGemmMatrix* C, int in, int out, float slope,
                     void* stream) {
  return status_of([&] { gemm::library::tune(arguments(A, B, C, in, out, slope), static_cast<cudaStream_t>(stream)); });
}

int course_gemm_choice(const CourseGemmMatrix* A, const CourseGemmMatrix* B, const CourseGemmMatrix* C, int in, int out, char* text,
                       size_t bytes) {
  return status_of([&] {
    const std::string choice = to_text(gemm::library::choice(arguments(A, B, C, in, out, 1)));
    if (bytes > 0) std::snprintf(text, bytes, "%s", choice.c_str());
  });
}

const char* course_gemm_error() { return error.c_str(); }

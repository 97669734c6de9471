/// @file
/// The course as a library: one call, which chooses among the steps.
///
///     gemm::run(A, B, C);                              // C = A · B
///     gemm::run(A, B, C, gemm::LeakyRelu{}, stream);   // C = leaky_relu(A · B), on a stream
///
/// The contract is that of a step, common/gemm/gemm.h. Any number of threads may call these functions at the same time. Users
/// include <course_gemm.h>, which is this header and those of the course that it needs, in one; docs/library.md says how to link.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>
#include <type_traits>

#include "common/gemm/activation.h"
#include "common/library/c_interface.h"

namespace gemm {

/// What CUDA refused, or what no step can do on this GPU; the message says what to do. A call that breaks the contract is Refused.
class Error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What run() launches for a call.
struct Choice {
  std::string kernel;  ///< "14_dependent_launch 64x256x64 s4 g8 ping-pong", step and tile; "fallback"; empty: nothing to launch
  bool is_fallback = false;  ///< strides or addresses that no step's tile takes: the kernel for odd strides runs
  bool is_timed = false;     ///< by tune(), now or at an earlier time; otherwise the model chose
  double seconds = 0;        ///< timed, or what the model expects; 0 where there is nothing to launch
  bool lays_out = false;     ///< first a kernel lays A, B or both out anew, in memory that is given back behind the call
};

namespace library {

/// Of a call, without its types.
struct Arguments {
  CourseGemmMatrix A, B, C;
  int in, out;  ///< CourseGemmType of A and B, and of C
  float slope;  ///< of LeakyRelu; 1 changes nothing
};

/// gemm::run() below.
void run(const Arguments& of_call, cudaStream_t stream);
/// gemm::choice() below.
Choice choice(const Arguments& of_call);
/// gemm::tune() below.
Choice tune(const Arguments& of_call, cudaStream_t stream);

/// `m` without its type.
template <class T>
CourseGemmMatrix any(const Matrix<T>& m) {
  return {const_cast<std::remove_const_t<T>*>(m.data), m.rows, m.cols, m.row_stride, m.col_stride};
}

/// Whether there are kernels for matrices of T.
template <class T>
constexpr bool kIsElement = std::is_same_v<T, float> || std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

/// Of a T.
template <class T>
constexpr CourseGemmType kType = std::is_same_v<T, float>    ? COURSE_GEMM_F32
                                 : std::is_same_v<T, __half> ? COURSE_GEMM_F16
                                                             : COURSE_GEMM_BF16;

/// The call without its types, if there are kernels for them.
template <class A, class B, class C, class Epilogue>
Arguments arguments(const Matrix<A>& a, const Matrix<B>& b, const Matrix<C>& c, const Epilogue& epilogue) {
  using In = std::remove_const_t<A>;
  static_assert(std::is_same_v<In, std::remove_const_t<B>>, "A and B have the same type");
  static_assert(kIsElement<In>, "A and B hold float, __half or __nv_bfloat16");
  static_assert(std::is_same_v<C, In> || std::is_same_v<C, float>, "C holds the type of A and B, or float");
  constexpr bool kIsLeaky = std::is_same_v<Epilogue, LeakyRelu>;
  static_assert(kIsLeaky || std::is_same_v<Epilogue, Identity>,
                "the library is compiled for Identity and LeakyRelu; with any other epilogue call a step's gemm<Tile>()");
  float slope = 1;
  if constexpr (kIsLeaky) slope = epilogue.slope;
  return {any(a), any(b), any(c), kType<In>, kType<C>, slope};
}

}  // namespace library

/// C = epilogue(A · B), started on `stream`. Never waits for the GPU, and can be captured in a CUDA graph. The matrices are on the
/// current device.
///
/// The first call for a shape, its types, layouts and device looks for what tune() found on disk, and asks the model if that is
/// nothing; that takes about a tenth of a millisecond. Later calls find the choice in a table.
/// @throws Refused for a call that breaks the contract, before anything is started
/// @throws Error when CUDA refuses the launch, or no step runs on this GPU
template <class A, class B, class C, class Epilogue = Identity>
void run(const Matrix<A>& a, const Matrix<B>& b, const Matrix<C>& c, const Epilogue& epilogue = {}, cudaStream_t stream = nullptr) {
  library::run(library::arguments(a, b, c, epilogue), stream);
}

/// What run() would launch for the same matrices.
/// @throws as run()
template <class A, class B, class C, class Epilogue = Identity>
Choice choice(const Matrix<A>& a, const Matrix<B>& b, const Matrix<C>& c, const Epilogue& epilogue = {}) {
  return library::choice(library::arguments(a, b, c, epilogue));
}

/// Times the tiles that could be best for a shape, on these matrices, and keeps the times on disk, where step 06 keeps its own:
/// from now on run() takes the fastest, in this process and in later ones. Waits for `stream`, then takes about a second; C holds
/// the result. On the interpreter there is nothing to time with, so the model's choice stays.
/// @throws as run(); Error while `stream` is being captured
template <class A, class B, class C, class Epilogue = Identity>
Choice tune(const Matrix<A>& a, const Matrix<B>& b, const Matrix<C>& c, const Epilogue& epilogue = {},
            cudaStream_t stream = nullptr) {
  return library::tune(library::arguments(a, b, c, epilogue), stream);
}

}  // namespace gemm

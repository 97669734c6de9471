#include "common/harness/problem/activation_kernel.h"

#include "common/device/chunk_access.cuh"
#include "common/device/element.cuh"
#include "common/harness/program/tile.h"

namespace harness {
namespace {

using device::kChunk;

constexpr int kThreads = 256;

// The count elements from p on, and zeros for the rest of the chunk.
template <class T>
__device__ __forceinline__ void load_chunk(T (&x)[kChunk<T>], const T* p, int64_t stride, int64_t count, bool chunks) {
  if (chunks && count >= kChunk<T>)
    *reinterpret_cast<uint4*>(x) = *reinterpret_cast<const uint4*>(p);
  else
    for (int i = 0; i < kChunk<T>; ++i) x[i] = i < count ? p[i * stride] : T(0.0f);
}

template <class T, class Activation>
__global__ __launch_bounds__(kThreads) void activation_kernel(gemm::Matrix<T> C, const T* bias, unsigned row_chunks, bool chunks,
                                                              bool bias_chunks, Activation activation) {
  const unsigned chunk = blockIdx.x * kThreads + threadIdx.x;  // 32 bits, because a division of 64 takes longer than the copy
  const int64_t row = chunk / row_chunks, col = static_cast<int64_t>(chunk % row_chunks) * kChunk<T>;
  if (row >= C.rows) return;
  T* const p = C.at(row, col);
  const int64_t count = C.cols - col;
  alignas(16) T x[kChunk<T>], b[kChunk<T>];
  load_chunk(x, p, C.col_stride, count, chunks);
  if (bias) load_chunk(b, bias + col, 1, count, bias_chunks);
#pragma unroll
  for (int i = 0; i < kChunk<T>; ++i) {
    const float sum = device::to_float(x[i]);
    x[i] = device::from_float<T>(activation(bias ? sum + device::to_float(b[i]) : sum));
  }
  device::store_chunk(p, C.col_stride, count, chunks, *reinterpret_cast<const uint4*>(x));
}

template <class T, class Activation>
void launch(const gemm::Matrix<T>& C, const T* bias, const Activation& activation) {
  const int64_t row_chunks = gemm::ceil_div<int64_t>(C.cols, kChunk<T>), all = C.rows * row_chunks;
  if (all == 0) return;
  if (all > 0xffffffff - kThreads) throw gemm::Refused("activation: C has more than 2^32 chunks of 16 bytes; use a smaller one");
  device::launch(activation_kernel<T, Activation>, gemm::grid_size(gemm::ceil_div<int64_t>(all, kThreads)), kThreads, 0, C, bias,
                 static_cast<unsigned>(row_chunks), device::chunks_aligned(C.data, C.col_stride, C.row_stride),
                 device::chunks_aligned(bias, 1, 0), activation);
}

// A launch that is none of a step's: what the step's launcher chose last stays known.
class AsideScope {
#ifdef COURSE_ON_GPU
 public:
  ~AsideScope() { device::last_launch() = of_the_step_; }

 private:
  const device::LaunchConfiguration of_the_step_ = device::last_launch();
#endif
};

template <class T>
void launch_typed(const AnyMatrix& C, const Epilogue& e, const void* any_bias) {
  const T* const bias = e.bias ? static_cast<const T*>(any_bias) : nullptr;
  with_functor(e.activation, [&](auto functor) { launch(typed<T>(C), bias, functor); });
}

}  // namespace

void launch_activation(DType type, const AnyMatrix& C, const Epilogue& epilogue, const void* bias) {
  [[maybe_unused]] const AsideScope aside;
  switch (type) {
    case DType::kF32: return launch_typed<float>(C, epilogue, bias);
    case DType::kF16: return launch_typed<__half>(C, epilogue, bias);
    case DType::kBF16: return launch_typed<__nv_bfloat16>(C, epilogue, bias);
  }
}

}  // namespace harness

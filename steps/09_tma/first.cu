// The copy engine brings a box, then another. No GPU: tools/course interpret steps/09_tma/first.cu
// With an H100 or H200: nvcc -gencode arch=compute_90a,code=sm_90a steps/09_tma/first.cu -lcuda -o first && ./first
#include <cuda.h>

#include <cstdint>
#include <cstdio>

constexpr int kRows = 16, kCols = 32, kBox = 8;  // a box of 8 x 8 floats of a matrix of 16 x 32

__device__ uint32_t shared(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void wait(uint64_t* barrier, int parity) {  // until the phase with that parity is over
  asm volatile("{\n.reg .pred over;\nagain: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n@!over bra again;\n}\n" ::"r"(
                   shared(barrier)),
               "r"(parity)
               : "memory");
}

__global__ void copy(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) float box[kBox][kBox];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&full)) : "memory");  // one arrival ends a phase
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");                       // the engine knows of it
  }
  __syncthreads();
  for (int phase = 0; phase < 2; ++phase) {
    if (threadIdx.x == 0) {
      // The one arrival, and how many bytes this phase waits for besides. Then the copy, which counts them off.
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(&full)), "r"(int(sizeof(box))) : "memory");
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                       shared(box)),
                   "l"(&map), "r"(phase * 28), "r"(phase * 4), "r"(shared(&full))
                   : "memory");
    }
    wait(&full, phase % 2);  // without it: the bulk copy
    if (threadIdx.x == 0) {
      printf("phase %d: box[0][0] is %g, box[7][3] %g, box[7][7] %g\n", phase, box[0][0], box[7][3], box[7][7]);
    }
    __syncthreads();  // all have read before the next box comes
  }
}

int main() {
  float* matrix;
  cudaMallocManaged(&matrix, kRows * kCols * sizeof(float));
  for (int i = 0; i < kRows * kCols; ++i) matrix[i] = i / kCols * 100 + i % kCols;  // 100 * row + column
  CUtensorMap map;
  const cuuint64_t size[] = {kCols, kRows}, stride[] = {kCols * sizeof(float)};
  const cuuint32_t box[] = {kBox, kBox}, step[] = {1, 1};
  const CUresult made = cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, matrix, size, stride, box, step,
                                               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                               CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  copy<<<1, 32>>>(map);
  return made != CUDA_SUCCESS || cudaDeviceSynchronize() != cudaSuccess;
}

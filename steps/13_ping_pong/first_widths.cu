// 20 columns, by boxes of two widths. No GPU: tools/course interpret steps/13_ping_pong/first_widths.cu
// With an H100 or H200: nvcc -gencode arch=compute_90a,code=sm_90a steps/13_ping_pong/first_widths.cu -lcuda -o first && ./first
#include <cuda.h>

#include <cstdint>
#include <cstdio>

constexpr int kRows = 4, kCols = 60, kTile = 20, kWide = 16, kNarrow = kTile - kWide;  // a tile is a box of 16 columns and one of 4

__device__ uint32_t shared(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void copy(void* to, const CUtensorMap* map, int x, uint64_t* full) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, 0}], [%3];" ::"r"(shared(to)),
      "l"(map), "r"(x), "r"(shared(full))
      : "memory");
}

// A map has one box. So a tile whose width is no multiple of a box has two maps; both boxes count at one barrier.
__global__ void add(const __grid_constant__ CUtensorMap wide, const __grid_constant__ CUtensorMap narrow, float* sums) {
  __shared__ alignas(128) float left[kRows][kWide], right[kRows][kNarrow];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&full)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    const int bytes = sizeof(left) + sizeof(right), x = blockIdx.x * kTile;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(&full)), "r"(bytes) : "memory");
    copy(left, &wide, x, &full);
    copy(right, &narrow, x + kWide, &full);  // without it: deadlock
  }
  __syncthreads();
  asm volatile("{\n.reg .pred over;\nagain: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], 0;\n@!over bra again;\n}\n" ::"r"(
                   shared(&full))
               : "memory");
  const int col = threadIdx.x;
  float sum = 0;
  for (int row = 0; row < kRows; ++row) sum += col < kWide ? left[row][col] : right[row][col - kWide];
  sums[blockIdx.x * kTile + col] = sum;
}

int main() {
  float *matrix, *sums;
  cudaMallocManaged(&matrix, kRows * kCols * sizeof(float));
  cudaMallocManaged(&sums, kCols * sizeof(float));
  for (int i = 0; i < kRows * kCols; ++i) matrix[i] = i % kCols;
  CUtensorMap maps[2];
  const cuuint64_t size[] = {kCols, kRows}, stride[] = {kCols * sizeof(float)};
  for (int i = 0; i < 2; ++i) {
    const cuuint32_t box[] = {cuuint32_t(i == 0 ? kWide : kNarrow), kRows}, step[] = {1, 1};
    if (cuTensorMapEncodeTiled(&maps[i], CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, matrix, size, stride, box, step,
                               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
      return 1;
  }
  add<<<kCols / kTile, kTile>>>(maps[0], maps[1], sums);
  int wrong = cudaDeviceSynchronize() != cudaSuccess;
  for (int col = 0; col < kCols; ++col) wrong += sums[col] != kRows * col;
  std::printf("3 tiles of 20 columns, %d of %d sums wrong\n", wrong, kCols);
  return wrong != 0;
}

// The copy engine stores two panels in turn. No GPU: tools/course interpret steps/12_persistent/first_store.cu
// With an H100 or H200: nvcc -gencode arch=compute_90a,code=sm_90a steps/12_persistent/first_store.cu -lcuda -o first && ./first
#include <cuda.h>

#include <cstdint>
#include <cstdio>

constexpr int kRows = 8, kCols = 28, kPanel = 8;  // four panels of 8 x 8, of which the last one reaches beyond C

__global__ void store(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) float panel[2][kPanel][kPanel];
  const int row = threadIdx.x / kPanel, col = threadIdx.x % kPanel;
  for (int x = 0; x < kCols; x += kPanel) {
    float(&mine)[kPanel][kPanel] = panel[x / kPanel % 2];
    if (threadIdx.x == 0) {  // who has asked for the stores waits until at most one of them is still to be read
      asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");  // without it: race on panel
    }
    __syncthreads();
    mine[row][col] = row * 100 + x + col;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // without it: no fence.proxy.async between
    __syncthreads();
    if (threadIdx.x == 0) {
      const uint32_t from = static_cast<uint32_t>(__cvta_generic_to_shared(mine));
      asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x), "r"(0),
                   "r"(from)
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
  }
  if (threadIdx.x == 0) {  // a block's shared memory must live until the engine has read it
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // without it: ends
  }
}

int main() {
  float* C;
  cudaMallocManaged(&C, kRows * kCols * sizeof(float));
  CUtensorMap map;
  const cuuint64_t size[] = {kCols, kRows}, stride[] = {kCols * sizeof(float)};
  const cuuint32_t box[] = {kPanel, kPanel}, step[] = {1, 1};
  if (cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, C, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                             CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
    return 1;
  store<<<1, kPanel * kPanel>>>(map);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  for (int i = 0; i < kRows * kCols; ++i) wrong += C[i] != i / kCols * 100 + i % kCols;
  std::printf("4 panels through 2 places, %d of %d elements wrong\n", wrong, kRows * kCols);
  return wrong != 0;
}

// The second launch begins before the first one has ended. No GPU: tools/course interpret steps/14_dependent_launch/first.cu
// With an H100 or H200: nvcc -gencode arch=compute_90a,code=sm_90a steps/14_dependent_launch/first.cu -o first && ./first
#include <cstdio>

constexpr int kN = 256;

__global__ void first(int* values) {
  asm volatile("griddepcontrol.launch_dependents;");  // the next launch may begin; it does not see what is written here
  values[blockIdx.x * blockDim.x + threadIdx.x] = 7;
}

__global__ void second(const int* values, int* sums) {
  __shared__ int weights[32];
  weights[threadIdx.x] = threadIdx.x;  // what needs nothing of the first launch is done while that still runs
  __syncwarp();
  asm volatile("griddepcontrol.wait;" ::: "memory");  // without it: griddepcontrol.wait
  int sum = 0;
  for (int i = threadIdx.x; i < kN; i += 32) {
    sum += values[i] * weights[31 - threadIdx.x];
  }
  sums[threadIdx.x] = sum;
}

int main() {
  int *values, *sums;
  cudaMallocManaged(&values, kN * sizeof(int));
  cudaMallocManaged(&sums, 32 * sizeof(int));
  first<<<kN / 64, 64>>>(values);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = 32;
  config.attrs = &early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, second, static_cast<const int*>(values), sums);
  if (cudaDeviceSynchronize() != cudaSuccess) {
    return 1;
  }
  int wrong = 0;
  for (int t = 0; t < 32; ++t) {
    wrong += sums[t] != 7 * (kN / 32) * (31 - t);
  }
  std::printf("2 launches, %d of 32 sums wrong\n", wrong);
  return wrong != 0;
}

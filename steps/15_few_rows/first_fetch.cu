// L2 fetches for a launch that may not read yet. No GPU: tools/course interpret steps/15_few_rows/first_fetch.cu
// With an H100 or H200: nvcc -gencode arch=compute_90a,code=sm_90a steps/15_few_rows/first_fetch.cu -o first && ./first
#include <cstdio>

constexpr int kN = 4096, kLine = 128 / sizeof(float);  // a line of L2

__global__ void first(float* x) {
  asm volatile("griddepcontrol.launch_dependents;");  // the next launch may begin
  x[blockIdx.x * blockDim.x + threadIdx.x] = 2;
}

// A fetch brings nothing into the block: L2 alone knows of it. What the launch before still writes goes to L2 too, so it is never
// stale, and no check minds. A read would be a race.
__global__ void second(const float* weights, const float* x, float* sums) {
  for (int i = threadIdx.x * kLine; i < kN; i += blockDim.x * kLine) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(weights + i));
  }
  asm volatile("griddepcontrol.wait;" ::: "memory");  // without it: griddepcontrol.wait
  float sum = 0;
  for (int i = threadIdx.x; i < kN; i += blockDim.x) sum += weights[i] * x[i];
  sums[threadIdx.x] = sum;
}

int main() {
  float *weights, *x, *sums;
  cudaMallocManaged(&weights, kN * sizeof(float));
  cudaMallocManaged(&x, kN * sizeof(float));
  cudaMallocManaged(&sums, 32 * sizeof(float));
  for (int i = 0; i < kN; ++i) weights[i] = i % 32;
  first<<<kN / 128, 128>>>(x);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = 1, config.blockDim = 32, config.attrs = &early, config.numAttrs = 1;
  cudaLaunchKernelEx(&config, second, static_cast<const float*>(weights), static_cast<const float*>(x), sums);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  for (int t = 0; t < 32; ++t) wrong += sums[t] != 2.f * t * (kN / 32);
  std::printf("%d lines fetched ahead, %d of 32 sums wrong\n", kN / kLine, wrong);
  return wrong != 0;
}

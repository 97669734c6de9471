// Sums each run of 256 numbers: a kernel that is not part of the course, under all checks, and what ncu would count of it.
#include <cstdio>

#include "common/device/device.cuh"

__global__ void block_sum(const float* in, float* out) {
  __shared__ float sums[256];
  const int t = threadIdx.x;
  sums[t] = in[blockIdx.x * 256 + t];
  for (int stride = 128; stride > 0; stride /= 2) {
#ifndef PLANTED_BUG
    __syncthreads();  // the sums of the round before are complete
#endif
    if (t < stride) sums[t] += sums[t + stride];
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}

int main() {
  const device::Buffer<float> in(std::vector<float>(4 * 256, 0.5f), "in"), out(4, "out");
  device::launch(block_sum, 4, 256, 0, in.data(), out.data());
  for (const float sum : out.download())
    if (sum != 128) return 2;
#ifndef __CUDACC__  // only the interpreter counts
  std::printf("%s", to_text(interpreter::profiles().back()).c_str());
#endif
}

// Two warps take turns. No GPU: tools/course interpret steps/13_ping_pong/first.cu
// With one: nvcc steps/13_ping_pong/first.cu -o first && ./first
#include <cstdio>

constexpr int kRounds = 3;

// A named barrier lets 64 threads go on: 32 that wait there, and 32 that only arrive.
__device__ void wait(int barrier) { asm volatile("barrier.cta.sync %0, 64;" ::"r"(barrier) : "memory"); }
__device__ void arrive(int barrier) { asm volatile("barrier.cta.arrive %0, 64;" ::"r"(barrier) : "memory"); }

__global__ void take_turns(int* log) {
  __shared__ int next;
  const int warp = threadIdx.x / 32, my_turn = 1 + warp, your_turn = 2 - warp;  // barrier 0 is __syncthreads()
  if (threadIdx.x == 0) {
    next = 0;
  }
  __syncthreads();
  if (warp == 1) {
    arrive(your_turn);  // warp 0 begins
  }
  for (int round = 0; round < kRounds; ++round) {
    wait(my_turn);  // without it: race on next
    if (threadIdx.x % 32 == 0) {
      log[next++] = warp;  // only one warp is here: the tensor cores are its own
    }
    __syncwarp();
    if (warp == 0 || round + 1 < kRounds) {
      arrive(your_turn);  // without it: deadlock
    }
    // What a warp does here, such as to store its tile, it does during the other one's turn.
  }
}

int main() {
  int* log;
  cudaMallocManaged(&log, 2 * kRounds * sizeof(int));
  take_turns<<<1, 64>>>(log);
  if (cudaDeviceSynchronize() != cudaSuccess) {
    return 1;
  }
  std::printf("turns of warp:");
  for (int i = 0; i < 2 * kRounds; ++i) {
    std::printf(" %d", log[i]);
  }
  std::printf("\n");
}

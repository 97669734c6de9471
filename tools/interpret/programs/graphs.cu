// CUDA graphs by capture and by nodes, and copies of boxes. nvcc compiles it too.
#include <cstdio>
#define CHECK(x)                                                   \
  do {                                                             \
    cudaError_t e = (x);                                           \
    if (e != cudaSuccess) {                                        \
      std::printf("line %d: %s\n", __LINE__, cudaGetErrorName(e)); \
      return 1;                                                    \
    }                                                              \
  } while (0)
#define EXPECT(x)                                \
  do {                                           \
    if (!(x)) {                                  \
      std::printf("line %d: wrong\n", __LINE__); \
      return 1;                                  \
    }                                            \
  } while (0)
#define EXPECT_ERROR(error, x)                                     \
  do {                                                             \
    const cudaError_t e = (x);                                     \
    if (e != (error)) {                                            \
      std::printf("line %d: %s\n", __LINE__, cudaGetErrorName(e)); \
      return 1;                                                    \
    }                                                              \
  } while (0)
__global__ void add(int* to, const int* from, int n) {
  if (threadIdx.x < n) to[threadIdx.x] += from[threadIdx.x];
}
template <class T>
__global__ void scale(T* x, T by) {
  x[threadIdx.x] *= by;
}
int runs = 0;
void count(void* p) { ++*static_cast<int*>(p); }

int by_capture() {
  int host[32], *a, *b;
  for (int i = 0; i < 32; ++i) host[i] = i;
  CHECK(cudaMalloc(&a, sizeof host));
  CHECK(cudaMalloc(&b, sizeof host));
  cudaStream_t stream, other;
  cudaEvent_t fork, join;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamCreate(&other));
  CHECK(cudaEventCreate(&fork));
  CHECK(cudaEventCreate(&join));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaStreamIsCapturing(stream, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  CHECK(cudaEventRecord(fork, stream));
  CHECK(cudaStreamWaitEvent(other, fork, 0));
  CHECK(cudaMemcpyAsync(a, host, sizeof host, cudaMemcpyHostToDevice, stream));
  CHECK(cudaMemsetAsync(b, 0, sizeof host, other));
  CHECK(cudaEventRecord(join, other));
  CHECK(cudaStreamWaitEvent(stream, join, 0));
  for (int n = 8; n <= 32; n *= 2) add<<<1, 32, 0, stream>>>(b, a, n);
  scale<<<1, 32, 0, stream>>>(b, 3);
  CHECK(cudaMemcpyAsync(host, b, sizeof host, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaLaunchHostFunc(stream, count, &runs));
  CHECK(cudaStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT(nodes == 8);
  EXPECT(host[31] == 31 && runs == 0);  // nothing has been done yet
  CHECK(cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(host[1] == 9 && host[31] == 93 && host[9] == 54 && runs == 1);
  CHECK(cudaGraphLaunch(exec, other));
  CHECK(cudaStreamSynchronize(other));
  EXPECT(host[1] == 81 && host[31] == 31 * 9 && runs == 2);
  CHECK(cudaGraphExecDestroy(exec));
  return 0;
}

int by_nodes() {
  int *a, *b;
  int host[32];
  CHECK(cudaMalloc(&a, sizeof host));
  CHECK(cudaMalloc(&b, sizeof host));
  cudaGraph_t graph, copy;
  cudaGraphExec_t exec;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t last, first, middle, set;
  // Made in another order than that of their dependencies.
  int n = 32;
  void* arguments[] = {&b, &a, &n};
  cudaKernelNodeParams kernel{};
  kernel.func = (void*)add, kernel.gridDim = dim3(1), kernel.blockDim = dim3(32), kernel.kernelParams = arguments;
  CHECK(cudaGraphAddMemcpyNode1D(&last, graph, nullptr, 0, host, b, sizeof host, cudaMemcpyDeviceToHost));
  CHECK(cudaGraphAddKernelNode(&middle, graph, nullptr, 0, &kernel));
  n = 0;  // the node has its own copy
  cudaMemsetParams fill{};
  fill.dst = a, fill.value = 7, fill.elementSize = 4, fill.width = 32, fill.height = 1;
  CHECK(cudaGraphAddMemsetNode(&first, graph, nullptr, 0, &fill));
  fill.dst = b, fill.value = 100;
  CHECK(cudaGraphAddMemsetNode(&set, graph, &first, 1, &fill));
  cudaGraphNode_t from[] = {first, set, middle}, to[] = {middle, middle, last};
  CHECK(cudaGraphAddDependencies(graph, from, to, nullptr, 3));
  CHECK(cudaGraphClone(&copy, graph));
  CHECK(cudaGraphInstantiate(&exec, copy, 0));
  CHECK(cudaGraphLaunch(exec, 0));
  CHECK(cudaDeviceSynchronize());
  EXPECT(host[0] == 107 && host[31] == 107);
  n = 4;
  // Of the clone it was made of; an H200 refuses the original's node too.
  EXPECT_ERROR(cudaErrorInvalidValue, cudaGraphExecKernelNodeSetParams(exec, middle, &kernel));
  cudaGraphNode_t in_copy;
  CHECK(cudaGraphNodeFindInClone(&in_copy, middle, copy));
  CHECK(cudaGraphExecKernelNodeSetParams(exec, in_copy, &kernel));
  CHECK(cudaGraphLaunch(exec, 0));
  CHECK(cudaDeviceSynchronize());
  EXPECT(host[3] == 107 && host[4] == 100);
  CHECK(cudaGraphAddDependencies(graph, &last, &first, nullptr, 1));
  cudaGraphExec_t none;
  EXPECT_ERROR(cudaErrorInvalidValue, cudaGraphInstantiate(&none, graph, 0));
  return 0;
}

int what_is_not_allowed() {
  int* a;
  cudaGraph_t graph;
  cudaStream_t stream, other;
  cudaEvent_t event;
  CHECK(cudaMalloc(&a, 128));
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamCreate(&other));
  CHECK(cudaEventCreate(&event));
  EXPECT_ERROR(cudaErrorStreamCaptureUnsupported, cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_ERROR(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
  EXPECT_ERROR(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
  EXPECT(!graph);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_ERROR(cudaErrorStreamCaptureImplicit, cudaMemset(a, 0, 128));
  EXPECT_ERROR(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  CHECK(cudaEventRecord(event, stream));
  CHECK(cudaStreamWaitEvent(other, event, 0));
  CHECK(cudaMemsetAsync(a, 0, 128, other));
  EXPECT_ERROR(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(stream, &graph));
  CHECK(cudaMemsetAsync(a, 0, 128, stream));
  CHECK(cudaStreamSynchronize(stream));
  cudaGetLastError();
  return 0;
}

int boxes() {
  cudaPitchedPtr p;
  const cudaExtent extent = make_cudaExtent(12, 3, 2);
  CHECK(cudaMalloc3D(&p, extent));
  CHECK(cudaMemset3D(p, 1, extent));
  char host[2][3][12] = {};
  for (int i = 0; i < 72; ++i) (&host[0][0][0])[i] = i;
  cudaMemcpy3DParms c{};
  c.srcPtr = make_cudaPitchedPtr(host, 12, 12, 3), c.dstPtr = p, c.kind = cudaMemcpyHostToDevice;
  c.srcPos = make_cudaPos(4, 1, 1), c.dstPos = make_cudaPos(0, 2, 0), c.extent = make_cudaExtent(8, 1, 1);
  CHECK(cudaMemcpy3D(&c));
  c = {}, c.srcPtr = p, c.dstPtr = make_cudaPitchedPtr(host, 12, 12, 3), c.extent = extent, c.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3D(&c));
  EXPECT(host[0][2][0] == 36 + 12 + 4 && host[0][2][7] == 59 && host[0][2][8] == 1 && host[1][2][11] == 1 && host[0][0][0] == 1);
  return 0;
}

int main() {
  if (by_capture() || by_nodes() || what_is_not_allowed() || boxes()) return 1;
  std::puts("right");
}

// C = A · B in the way of Hopper, by inline PTX and the driver's tensor maps: one warpgroup copies, the other multiplies. A is
// m x k, B is k x n and column-major, C is row-major, of tiles of 64 x 64 x 64. nvcc compiles it too, for sm_90a. -D BUG=n plants
// an error.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_bf16.h>

#include <cstdint>
#include <cstdio>

#ifndef BUG
#define BUG 0
#endif

constexpr int kTile = 64, kStages = 2, kTileBytes = kTile * kTile * 2;

__device__ __forceinline__ uint32_t in_shared(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred P1;\n"
      "LAB_WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
      "@P1 bra DONE;\n"
      "bra LAB_WAIT;\n"
      "DONE:\n"
      "}" ::"r"(in_shared(barrier)),
      "r"(parity)
      : "memory");
}

__device__ void load_box(void* to, const CUtensorMap* map, int x, int y, uint64_t* barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
                   in_shared(to)),
               "l"(reinterpret_cast<uint64_t>(map)), "r"(in_shared(barrier)), "r"(x), "r"(y)
               : "memory");
}

__device__ void prefetch_box(const CUtensorMap* map, int x, int y) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(reinterpret_cast<uint64_t>(map)), "r"(x),
               "r"(y)
               : "memory");
}

// K-major, rows of 128 bytes, swizzled.
__device__ uint64_t descriptor(const void* p) {
  uint64_t d = (in_shared(p) & 0x3ffff) >> 4;
  d |= uint64_t{1} << 16;
  d |= uint64_t{(BUG == 1 ? 512 : 1024) >> 4} << 32;
  return d | uint64_t{1} << 62;
}

template <int scale_a = 1, int scale_b = 1>
__device__ void multiply(float (&d)[4][8], uint64_t a, uint64_t b, int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0,   %1,   %2,   %3,   %4,   %5,   %6,   %7,   "
      " %8,   %9,   %10,  %11,  %12,  %13,  %14,  %15,  "
      " %16,  %17,  %18,  %19,  %20,  %21,  %22,  %23,  "
      " %24,  %25,  %26,  %27,  %28,  %29,  %30,  %31},"
      " %32, %33, p, %35, %36, 0, 0;\n"
      "}\n"
      : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[0][4]), "+f"(d[0][5]), "+f"(d[0][6]), "+f"(d[0][7]),
        "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[1][4]), "+f"(d[1][5]), "+f"(d[1][6]), "+f"(d[1][7]),
        "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[2][4]), "+f"(d[2][5]), "+f"(d[2][6]), "+f"(d[2][7]),
        "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[3][4]), "+f"(d[3][5]), "+f"(d[3][6]), "+f"(d[3][7])
      : "l"(a), "l"(b), "r"(accumulate), "n"(scale_a), "n"(scale_b));
}

__global__ void __launch_bounds__(256, 1)
    gemm(const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, float* C, int n, int k) {
  extern __shared__ __align__(1024) unsigned char smem[];
  __shared__ uint64_t full[kStages], empty[kStages];
  unsigned char* const a = smem;
  unsigned char* const b = smem + kStages * kTileBytes;
  if (threadIdx.x == 0) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&A) : "memory");
    for (int i = 0; i < kStages; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(in_shared(full + i)), "r"(1));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(in_shared(empty + i)), "r"(128));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int m_0 = blockIdx.y * kTile, n_0 = blockIdx.x * kTile, tiles = k / kTile;
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(40));
    if (threadIdx.x == 0)
      for (int i = 0; i < tiles; ++i) {
        const int stage = i % kStages;
        if (BUG != 2) mbarrier_wait(empty + stage, i / kStages % 2 ^ 1);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(in_shared(full + stage)),
                     "r"((BUG == 3 ? 1 : 2) * kTileBytes)
                     : "memory");
        prefetch_box(&A, (i + 1) * kTile, m_0);  // behind the last tile there is nothing
        load_box(a + stage * kTileBytes, &A, i * kTile, m_0, full + stage);
        load_box(b + stage * kTileBytes, &B, i * kTile, n_0, full + stage);
      }
    return;
  }
  float d[4][8] = {};
  for (int i = 0; i < tiles; ++i) {
    const int stage = i % kStages;
    mbarrier_wait(full + stage, i / kStages % 2 ^ (BUG == 4));
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int slice = 0; slice < kTile / 16; ++slice)
      multiply(d, descriptor(a + stage * kTileBytes + slice * 32), descriptor(b + stage * kTileBytes + slice * 32), i + slice > 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    if (BUG != 5) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(in_shared(empty + stage)) : "memory");
  }
  if (BUG == 5) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  const int t = threadIdx.x - 128, row = m_0 + t / 32 * 16 + t % 32 / 4, column = n_0 + t % 4 * 2;
  for (int j = 0; j < 8; ++j)
    for (int half = 0; half < 2; ++half)
      asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(C + (row + 8 * half) * n + column + 8 * j),
                   "f"(d[j / 2][j % 2 * 4 + 2 * half]), "f"(d[j / 2][j % 2 * 4 + 2 * half + 1])
                   : "memory");
}

int main() {
  const int m = 128, n = 192, k = 320;
  PFN_cuTensorMapEncodeTiled_v12000 encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", reinterpret_cast<void**>(&encode), 12000, cudaEnableDefault,
                                       &found) != cudaSuccess ||
      found != cudaDriverEntryPointSuccess)
    return puts("no cuTensorMapEncodeTiled"), 1;
  __nv_bfloat16 *A, *B;
  float* C;
  cudaMallocManaged(&A, m * k * sizeof *A);
  cudaMallocManaged(&B, n * k * sizeof *B);
  cudaMallocManaged(&C, m * n * sizeof *C);
  for (int i = 0; i < m * k; ++i) A[i] = __float2bfloat16(i * 7 % 13 - 6);
  for (int i = 0; i < n * k; ++i) B[i] = __float2bfloat16(i * 5 % 11 - 5);
  const auto map_of = [&](void* matrix, int rows) {
    CUtensorMap map;
    const cuuint64_t sizes[] = {static_cast<cuuint64_t>(k), static_cast<cuuint64_t>(rows)}, strides[] = {k * sizeof(__nv_bfloat16)};
    const cuuint32_t box[] = {kTile, kTile}, steps[] = {1, 1};
    const CUresult result =
        encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, matrix, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
               CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) printf("cuTensorMapEncodeTiled: %d\n", result);
    return map;
  };
  const int bytes = 2 * kStages * kTileBytes;
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  gemm<<<dim3(n / kTile, m / kTile), 256, bytes>>>(map_of(A, m), map_of(B, n), C, n, k);
  if (cudaDeviceSynchronize() != cudaSuccess) return puts("the kernel failed"), 1;
  int wrong = 0;
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      for (int i = 0; i < k; ++i) sum += __bfloat162float(A[row * k + i]) * __bfloat162float(B[column * k + i]);
      wrong += sum != C[row * n + column];
    }
  puts(wrong ? "WRONG" : "right");
  return wrong != 0;
}

// 0 ok : 3-D tensor, boxes over the ragged edges, whole box's bytes expected
// 1 bug racecheck|mbarrier|deadlock box|bar : expects only the bytes inside the tensor
// 2 bug memcheck|config - : a 2-D copy with a 3-D tensor map
// 3 ok : 1-D tensor, the last box is filled with zeros
// 4 bug config - : a box of 257 rows
// 5 bug config - : the tensor begins 4 bytes behind a multiple of 16
// 6 bug config - : a box whose rows have 12 bytes
// 7 ok : 2-D store, the box is clipped at the edges
// 8 bug racecheck|proxy box : 2-D store without fence.proxy.async
// 9 bug config - : swizzle of 128 bytes with a box row of 256
// 10 ok : swizzle of 128 bytes, the reader applies it
// 11 ok : a box that lies wholly outside of the tensor is zeros
// 12 bug memcheck|misaligned box : the destination is aligned to 64 bytes only
// 13 bug racecheck box : the second box is loaded over the first while others still read
// 14 ok : the descriptor is prefetched, the box comes in two halves with one barrier
// 15 bug deadlock|racecheck|mbarrier bar|box : two halves, bytes of one expected
// 16 bug memcheck box : the array has room for half of the box
// 17 bug racecheck out : the block reads what its store writes, behind wait_group.read
// 18 ok : two stores in one group, the second box lies wholly outside
// 19 bug racecheck box : box is written again before the store has read it
// 20 bug racecheck|deadlock bar|box : one barrier, second round waits for parity 0 again
#include "case.h"
#include <cuda.h>
template <int D> CUtensorMap map_of(void* p, std::vector<unsigned long long> sizes, std::vector<unsigned> box, CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE) {
  CUtensorMap map{};
  cuuint64_t size[D], stride[D];
  cuuint32_t b[D], one[D];
  unsigned long long bytes = 4;
  for (int i = 0; i < D; ++i) size[i] = sizes[i], b[i] = box[i], one[i] = 1, bytes *= sizes[i], stride[i] = bytes;
  const CUresult r = cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, D, p, size, stride, b, one, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);  // @4 @5 @6 @9
  if (r != CUDA_SUCCESS) { std::printf("CUDA error: tensor map %d\n", int(r)); std::exit(3); }
  return map;
}
__device__ void load2(void* to, const CUtensorMap* map, int x, int y, const void* b) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(smem(to)), "l"(map), "r"(x), "r"(y), "r"(smem(b)) : "memory");
}
__device__ void store2(const CUtensorMap* map, int x, int y, const void* from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x), "r"(y), "r"(smem(from)) : "memory");
}
template <int V> __global__ void cube(const __grid_constant__ CUtensorMap map, int* out) {  // boxes of 8 x 4 x 2
  __shared__ alignas(128) int box[64];
  __shared__ alignas(8) unsigned long long bar;
  const int t = threadIdx.x, x = blockIdx.x * 8, y = blockIdx.y * 4, z = blockIdx.z * 2;
  if (t == 0) {
    init(&bar, 1);
    fence_init();
    const int inside = min(8, 20 - x) * min(4, 6 - y) * min(2, 3 - z) * 4;
    expect(&bar, V == 1 ? inside : 256);  // @1
    if (V == 2) load2(box, &map, x, y, &bar);  // @2
    else asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(smem(box)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(smem(&bar)) : "memory");  // @1
  }
  __syncthreads();
  wait(&bar, 0);  // @1
  const int cx = x + t % 8, cy = y + t / 8 % 4, cz = z + t / 32;
  if (cx < 20 && cy < 6 && cz < 3) out[(cz * 6 + cy) * 20 + cx] = box[t];  // @1
}
template <int V> __global__ void line(const __grid_constant__ CUtensorMap map, int* out) {  // boxes of 64
  __shared__ alignas(128) int box[64];
  __shared__ alignas(8) unsigned long long bar;
  const int t = threadIdx.x;
  if (t == 0) {
    init(&bar, 1);
    fence_init();
    expect(&bar, 256);
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(smem(box)), "l"(&map), "r"(blockIdx.x * 64 + (V == 11 ? 1000 : 0)), "r"(smem(&bar)) : "memory");
  }
  __syncthreads();
  wait(&bar, 0);
  out[blockIdx.x * 64 + t] = box[t];
}
template <int V> __global__ void tile(const __grid_constant__ CUtensorMap map, const __grid_constant__ CUtensorMap to, int* out) {  // 64 x 16 ints, boxes of 32 x 8
  __shared__ alignas(1024) int memory[V == 16 ? 128 : 256 + 32];
  __shared__ alignas(8) unsigned long long bar;
  int* box = V == 12 ? memory + 16 : memory;
  const int t = threadIdx.x;
  if (t == 0) {
    init(&bar, 1);
    fence_init();
  }
  __syncthreads();
  for (int r = 0; r < (V == 13 || V == 20 ? 2 : 1); ++r) {
    if (t == 0) {
      if (V == 14) asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
      expect(&bar, V == 15 ? 512 : 1024);  // @15
      if (V == 14 || V == 15) {
        load2(box, &map, 32, 0, &bar);
        load2(box + 128, &map, 32, 4, &bar);  // @15
      } else {
        load2(box, &map, 32, 8 * r, &bar);  // @12 @13 @16 @20
      }
    }
    wait(&bar, V == 20 ? 0 : r);  // @15 @20
    for (int i = t; i < 256; i += 64) {
      const int row = i / 32, column = i % 32;
      out[r * 256 + i] = V == 10 ? box[row * 32 + ((column / 4 ^ row) * 4 + column % 4)] : box[i];  // @13 @15 @20
    }
    if (V == 20) __syncthreads();
  }
}
template <int V> __global__ void put(const __grid_constant__ CUtensorMap to, int* out) {  // a tensor of 20 x 6, boxes of 8 x 4
  __shared__ alignas(128) int box[2][32];
  const int t = threadIdx.x, x = blockIdx.x * 8, y = blockIdx.y * 4;
  for (int r = 0; r < (V == 18 || V == 19 ? 2 : 1); ++r) {
    box[V == 19 ? 0 : r][t] = (y + t / 8) * 20 + x + t % 8;  // @8 @19
    if (V != 8) fence_async();
    __syncthreads();
    if (t == 0) store2(&to, x, y + 6 * r, box[V == 19 ? 0 : r]);  // @8 @19
    if (V == 19 && t == 0) bulk_commit();
  }
  if (t == 0) {
    bulk_commit();
    if (V == 17) bulk_wait_read<0>();
    else bulk_wait<0>();
    if (V == 17) out[y * 20 + x] = -out[y * 20 + x];  // @17
  }
}
template <int V> int test() {
  if constexpr (V <= 2) {
    const std::vector<int> host = values(360);
    int *in = upload(host), *out = zeros<int>(360);
    cube<V><<<dim3(3, 2, 2), 64>>>(map_of<3>(in, {20, 6, 3}, {8, 4, 2}), out);
    launched();
    return verdict(download(out, 360), host);
  } else if constexpr (V == 3 || V == 11) {
    std::vector<int> host = values(200);
    int *in = upload(host), *out = zeros<int>(256);
    line<V><<<4, 64>>>(map_of<1>(in, {200}, {64}), out);
    launched();
    host.resize(256);
    if (V == 11) host.assign(256, 0);
    return verdict(download(out, 256), host);
  } else if constexpr (V == 4 || V == 5 || V == 6 || V == 9) {
    int* in = zeros<int>(100000);
    map_of<2>(V == 5 ? in + 1 : in, {64, 512}, {V == 6 ? 3u : V == 9 ? 64u : 32u, V == 4 ? 257u : 8u}, V == 9 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE);  // @4 @5 @6 @9
    return 0;
  } else if constexpr (V == 7 || V == 8 || V == 17 || V == 18 || V == 19) {
    int* out = zeros<int>(120);
    put<V><<<dim3(3, 2), 32>>>(map_of<2>(out, {20, 6}, {8, 4}), out);
    launched();
    std::vector<int> want(120);
    for (int i = 0; i < 120; ++i) want[i] = i;
    return verdict(download(out, 120), want);
  } else {
    const std::vector<int> host = values(64 * 16);
    int *in = upload(host), *out = zeros<int>(512);
    const CUtensorMap map = map_of<2>(in, {64, 16}, {32, V == 14 || V == 15 ? 4u : 8u}, V == 10 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE);
    tile<V><<<1, 64>>>(map, map, out);
    launched();
    std::vector<int> want(256);
    for (int i = 0; i < 256; ++i) want[i] = host[i / 32 * 64 + 32 + i % 32];
    return verdict(download(out, 256), want);
  }
}
MAIN(21)

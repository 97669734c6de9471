#include "common/interpreter/tests/patterns.h"

#include "common/device/ptx.cuh"
#include "common/interpreter/tests/matrices.h"

namespace patterns {
namespace {

constexpr int kElements = 2048;  // of the memory that a pattern may touch

struct Index {
  int div, mod, stride, low, low_stride, offset;
  unsigned mask;
  bool half;
  __device__ int operator()(int thread) const {
    const int lane = thread % 32;
    if (half && lane < 16) return offset;
    return (lane / div % mod) * stride + lane % low * low_stride + offset + thread / 32 * 32;
  }
  __device__ bool active(int thread) const { return mask >> thread % 32 & 1; }
};

template <class T>
__global__ void shared_load(const Index index, T* out) {
  T* s = device::dynamic_smem<T>();
  for (int i = threadIdx.x; i < kElements; i += blockDim.x) s[i] = out[0];
  __syncthreads();
  if (index.active(threadIdx.x)) out[threadIdx.x] = s[index(threadIdx.x)];
}

template <class T>
__global__ void shared_store(const Index index, T* out) {
  T* s = device::dynamic_smem<T>();
  for (int i = threadIdx.x; i < kElements; i += blockDim.x) {
    const T value = s[i];  // read, so that the pattern's stores are the only ones
    if (index.mask == 0) out[i] = value;
  }
  __syncthreads();
  const T value = out[0];
  if (index.active(threadIdx.x)) s[index(threadIdx.x)] = value;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

template <class T>
__global__ void global_load(const Index index, const T* in, int* out) {
  if (!index.active(threadIdx.x)) return;
  const T value = in[index(threadIdx.x)];
  unsigned char sum = 0;
  for (unsigned i = 0; i < sizeof(T); ++i) sum ^= reinterpret_cast<const unsigned char*>(&value)[i];
  out[threadIdx.x] = sum;
}

template <class T>
__global__ void global_store(const Index index, T* out, const T value) {
  if (index.active(threadIdx.x)) out[index(threadIdx.x)] = value;
}

template <class T>
void launch(const Pattern& p) {
  const Index index{p.div, p.mod, p.stride, p.low, p.low_stride, p.offset, p.mask, p.half};
  device::Buffer<T> memory(kElements, "memory");
  memory.fill(0);
  device::Buffer<int> out(kElements, "out");
  const std::size_t shared_bytes = kElements * sizeof(T);
  if (p.space == 's' && p.operation == 'l') device::launch(shared_load<T>, 1, p.threads, shared_bytes, index, memory.data());
  if (p.space == 's' && p.operation == 's') device::launch(shared_store<T>, 1, p.threads, shared_bytes, index, memory.data());
  if (p.space == 'g' && p.operation == 'l') device::launch(global_load<T>, 1, p.threads, 0, index, memory.data(), out.data());
  if (p.space == 'g' && p.operation == 's') device::launch(global_store<T>, 1, p.threads, 0, index, memory.data(), T{});
  device::synchronize();
}

}  // namespace

const std::vector<Pattern>& all() {
  static const std::vector<Pattern> patterns = [] {
    std::vector<Pattern> list;
    constexpr int kOne = 1 << 20;  // a divisor or modulus that changes nothing
    struct Shape {
      const char* what;
      int div, mod, stride, low, low_stride;
    };
    const Shape shapes[] = {
        {"contiguous", 1, kOne, 1, 1, 0},
        {"broadcast of one", 1, 1, 0, 1, 0},
        {"two, by half warps", 16, 2, 1, 1, 0},
        {"two, by parity", 1, 2, 1, 1, 0},
        {"two, far apart", 16, 2, 32, 1, 0},
        {"four, by quarter warps", 8, 4, 1, 1, 0},
        {"four, by lane % 4", 1, 4, 1, 1, 0},
        {"eight, by lane % 8", 1, 8, 1, 1, 0},
        {"eight, by lane / 4", 4, 8, 1, 1, 0},
        {"sixteen, by lane % 16", 1, 16, 1, 1, 0},
        {"sixteen, by lane / 2", 2, 16, 1, 1, 0},
        {"stride 2", 1, kOne, 2, 1, 0},
        {"stride 3", 1, kOne, 3, 1, 0},
        {"stride 4", 1, kOne, 4, 1, 0},
        {"stride 8", 1, kOne, 8, 1, 0},
        {"stride 16", 1, kOne, 16, 1, 0},
        {"stride 32", 1, kOne, 32, 1, 0},
        {"stride 33", 1, kOne, 33, 1, 0},
        {"pairs, stride 32", 2, kOne, 32, 1, 0},
        {"eight rows of four, row stride 32", 4, 8, 32, 4, 1},
        {"eight rows of four, row stride 36", 4, 8, 36, 4, 1},
        {"four rows of eight, row stride 32", 8, 4, 32, 8, 1},
        {"sixteen rows of two, row stride 33", 2, 16, 33, 2, 1},
    };
    for (const char operation : {'l', 's'})
      for (const int size : {4, 8, 16})
        for (const Shape& s : shapes) {
          // Several lanes that store to one address would be a race.
          const bool collides = s.mod != kOne && s.low == 1;
          const bool pairs = s.div == 2 && s.mod == kOne;
          if (operation == 's' && (collides || pairs)) continue;
          list.push_back({s.what, 's', operation, size, s.div, s.mod, s.stride, s.low, s.low_stride, 0});
        }
    for (const int size : {4, 8, 16})
      for (const unsigned mask : {0x000000ffu, 0x0000ffffu, 0x55555555u, 0xff0000ffu, 0x00ff00ffu, 0x00000001u})
        list.push_back({"some lanes, contiguous", 's', 'l', size, 1, kOne, 1, 1, 0, 0, mask});
    for (const int size : {4, 8, 16}) {
      list.push_back({"half a broadcast, half contiguous", 's', 'l', size, 1, kOne, 1, 1, 0, 0, 0xffffffffu, 32, true});
      list.push_back({"half a broadcast, half stride 2", 's', 'l', size, 1, kOne, 2, 1, 0, 0, 0xffffffffu, 32, true});
      list.push_back({"half a broadcast, half pairs", 's', 'l', size, 2, kOne, 3, 1, 0, 0, 0xffffffffu, 32, true});
    }
    for (const int size : {1, 2}) {
      list.push_back({"contiguous", 's', 'l', size, 1, kOne, 1, 1, 0, 0});
      list.push_back({"stride 3", 's', 'l', size, 1, kOne, 3, 1, 0, 0});
      list.push_back({"stride 32", 's', 'l', size, 1, kOne, 32, 1, 0, 0});
      list.push_back({"contiguous", 's', 's', size, 1, kOne, 1, 1, 0, 0});
      list.push_back({"stride 33", 's', 's', size, 1, kOne, 33, 1, 0, 0});
    }
    for (const char operation : {'l', 's'})
      for (const int size : {1, 2, 4, 8, 16}) {
        for (const Shape& s : shapes) {
          if (operation == 's' && ((s.mod != kOne && s.low == 1) || (s.div == 2 && s.mod == kOne))) continue;
          list.push_back({s.what, 'g', operation, size, s.div, s.mod, s.stride, s.low, s.low_stride, 0});
        }
        list.push_back({"contiguous, one element off", 'g', operation, size, 1, kOne, 1, 1, 0, 1});
        list.push_back({"contiguous, three elements off", 'g', operation, size, 1, kOne, 1, 1, 0, 3});
        list.push_back({"stride 8, five elements off", 'g', operation, size, 1, kOne, 8, 1, 0, 5});
        list.push_back({"every second lane", 'g', operation, size, 1, kOne, 1, 1, 0, 0, 0x55555555u});
        list.push_back({"partial last warp", 'g', operation, size, 1, kOne, 1, 1, 0, 0, 0xffffffffu, 52});
      }
    return list;
  }();
  return patterns;
}

void launch_all() {
  for (const Pattern& p : all()) switch (p.size) {
      case 1: launch<unsigned char>(p); break;
      case 2: launch<unsigned short>(p); break;
      case 4: launch<float>(p); break;
      case 8: launch<float2>(p); break;
      case 16: launch<float4>(p); break;
    }
}

// --------------------------------------------------------------------------------------------------------- PTX wrappers
namespace {

constexpr int kRows = 1024;  // elements of up to 16 bytes

struct PtxIndex {
  Index index;
  bool swizzle;
  __device__ int operator()(int thread) const {
    const int i = index(thread);
    return swizzle ? i ^ i / 8 % 8 : i;
  }
};

template <int kSize>
__device__ void copy(void* to, const void* from, int source_bytes) {
  if constexpr (kSize == 16)
    device::cp_async_cg_16(to, from, source_bytes);
  else if constexpr (kSize == 8)
    device::cp_async_ca_8(to, from, source_bytes);
  else
    device::cp_async_ca_4(to, from, source_bytes);
}

template <int kSize>
__global__ void copy_pattern(const PtxIndex index, char operation, bool all_copy, int source_bytes, const unsigned char* in,
                             unsigned* out) {
  unsigned char* s = device::dynamic_smem<unsigned char>();
  const int i = index(threadIdx.x), plain = threadIdx.x;
  const bool active = index.index.active(threadIdx.x);
  if (active || all_copy)
    copy<kSize>(s + (operation == 'g' ? plain : i) * kSize, in + (operation == 's' ? plain : i) * kSize, active ? source_bytes : 0);
  device::cp_async_wait_all();
  __syncthreads();
  out[threadIdx.x] = s[0];
}

template <int kCount, bool kTransposed>
__global__ void ldmatrix_pattern(const PtxIndex index, unsigned* out) {
  uint4* s = device::dynamic_smem<uint4>();
  for (int i = threadIdx.x; i < kRows; i += blockDim.x) s[i] = make_uint4(0, 0, 0, 0);
  __syncthreads();
  const uint4* row = s + index(threadIdx.x);
  uint32_t r[kCount];
  matrices::load<kCount, kTransposed>(r, row);
  uint32_t sum = 0;
  for (int i = 0; i < kCount; ++i) sum ^= r[i];
  out[threadIdx.x] = sum;
}

template <class T, int kInstructions>
__global__ void mma_pattern(float* out) {
  float d[4] = {out[threadIdx.x], 0, 0, 0};
  const uint32_t a[4] = {threadIdx.x, 1, 2, 3}, b[2] = {threadIdx.x, 5};
#pragma unroll
  for (int i = 0; i < kInstructions; ++i) device::mma_m16n8k16<T>(d, a, b);
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}

}  // namespace

const std::vector<PtxPattern>& ptx() {
  static const std::vector<PtxPattern> patterns = [] {
    std::vector<PtxPattern> list;
    constexpr int kOne = 1 << 20;
    struct Shape {
      const char* what;
      int div, mod, stride, low, low_stride;
      bool swizzle = false;
    };
    const Shape spread[] = {
        {"contiguous", 1, kOne, 1, 1, 0},
        {"stride 2", 1, kOne, 2, 1, 0},
        {"stride 3", 1, kOne, 3, 1, 0},
        {"stride 4", 1, kOne, 4, 1, 0},
        {"stride 8", 1, kOne, 8, 1, 0},
        {"stride 8, swizzled", 1, kOne, 8, 1, 0, true},
        {"stride 16", 1, kOne, 16, 1, 0},
        {"eight rows of four, row stride 8", 4, 8, 8, 4, 1},
        {"eight rows of four, row stride 8, swizzled", 4, 8, 8, 4, 1, true},
        {"four rows of eight, row stride 8, swizzled", 8, 4, 8, 8, 1, true},
        {"four rows of eight, row stride 16", 8, 4, 16, 8, 1},
        {"four rows of eight, row stride 32", 8, 4, 32, 8, 1},
    };
    for (const char operation : {'g', 's'})
      for (const int size : {4, 8, 16})
        for (const Shape& s : spread)
          list.push_back({s.what, operation, size, false, s.div, s.mod, s.stride, s.low, s.low_stride, 0, s.swizzle});
    for (const int size : {4, 8, 16}) {
      const auto contiguous = [&](const char* what, int offset, unsigned mask, int threads, int source_bytes) {
        list.push_back({what, 'g', size, false, 1, kOne, 1, 1, 0, offset, false, mask, threads, source_bytes});
      };
      list.push_back({"one source for all", 'g', size, false, 1, 1, 0, 1, 0, 0});
      contiguous("one element off", 1, 0xffffffffu, 32, -1);
      contiguous("half of the lanes", 0, 0x0000ffffu, 32, -1);
      contiguous("every second lane", 0, 0x55555555u, 32, -1);
      contiguous("one lane", 0, 0x00000010u, 32, -1);
      contiguous("partial last warp", 0, 0xffffffffu, 52, -1);
      contiguous("no bytes of the source", 0, 0xffffffffu, 32, 0);
      contiguous("one byte of the source", 0, 0xffffffffu, 32, 1);
      contiguous("half of the source's bytes", 0, 0xffffffffu, 32, size / 2);
      list.push_back({"eight lanes", 's', size, false, 1, kOne, 8, 1, 0, 0, false, 0x00ff0000u});
      list.push_back({"every second lane", 's', size, false, 1, kOne, 4, 1, 0, 0, false, 0x55555555u});
    }
    for (const int size : {4, 8, 16}) {
      for (const Shape& s : spread)
        list.push_back({s.what, 'b', size, false, s.div, s.mod, s.stride, s.low, s.low_stride, 0, s.swizzle});
      for (const unsigned mask : {0x0000ffffu, 0x55555555u, 0x0ff00ff0u, 0x00000001u})
        for (const int stride : {1, 8})
          for (const char operation : {'g', 's'})
            list.push_back(
                {"some lanes' sources, the others' zeros", operation, size, true, 1, kOne, stride, 1, 0, 0, false, mask});
    }
    const Shape rows[] = {
        {"rows of 16 bytes", 1, kOne, 1, 1, 0},
        {"rows of 32 bytes", 1, kOne, 2, 1, 0},
        {"rows of 48 bytes", 1, kOne, 3, 1, 0},
        {"rows of 64 bytes", 1, kOne, 4, 1, 0},
        {"rows of 80 bytes", 1, kOne, 5, 1, 0},
        {"rows of 128 bytes", 1, kOne, 8, 1, 0},
        {"rows of 128 bytes, swizzled", 1, kOne, 8, 1, 0, true},
        {"rows of 144 bytes", 1, kOne, 9, 1, 0},
        {"rows of 256 bytes", 1, kOne, 16, 1, 0},
        {"one row for all", 1, 1, 0, 1, 0},
        {"one row for each matrix", 8, 4, 1, 1, 0},
        {"two rows, by parity", 1, 2, 8, 1, 0},
        {"four rows of two, row stride 128 bytes", 2, 16, 8, 2, 1},
        {"matrices side by side, rows of 64 bytes", 8, 4, 1, 8, 4},
        {"matrices side by side, rows of 128 bytes", 8, 4, 1, 8, 8},
        {"matrices side by side, rows of 128 bytes, swizzled", 8, 4, 1, 8, 8, true},
    };
    for (const int count : {1, 2, 4})
      for (const bool transposed : {false, true})
        for (const Shape& s : rows)
          list.push_back({s.what, 'm', count, transposed, s.div, s.mod, s.stride, s.low, s.low_stride, 0, s.swizzle});
    for (const int instructions : {1, 8})
      for (const bool half : {true, false})
        for (const int threads : {32, 128})
          list.push_back({"mma", 't', instructions, half, 1, kOne, 1, 1, 0, 0, false, 0xffffffffu, threads});
    return list;
  }();
  return patterns;
}

namespace {

template <int kCount>
void launch_ldmatrix(const PtxPattern& p, const PtxIndex& index, unsigned* out) {
  device::launch(p.variant ? ldmatrix_pattern<kCount, true> : ldmatrix_pattern<kCount, false>, 1, p.threads, kRows * 16, index,
                 out);
}
template <class T>
void launch_mma(const PtxPattern& p, float* out) {
  device::launch(p.size == 1 ? mma_pattern<T, 1> : mma_pattern<T, 8>, 1, p.threads, 0, out);
}

}  // namespace

void launch_ptx() {
  device::Buffer<unsigned char> in(kRows * 16, "in");
  device::Buffer<unsigned> out(kRows, "out");
  device::Buffer<float> sums(kRows, "sums");
  in.fill(0), sums.fill(0);
  for (const PtxPattern& p : ptx()) {
    const PtxIndex index{{p.div, p.mod, p.stride, p.low, p.low_stride, p.offset, p.mask, false}, p.swizzle};
    const auto copy = [&](auto kernel) {
      device::launch(kernel, 1, p.threads, kRows * 16, index, p.operation, p.variant, p.source_bytes < 0 ? p.size : p.source_bytes,
                     in.data(), out.data());
    };
    switch (p.operation) {
      case 'g':
      case 's':
      case 'b': copy(p.size == 16 ? copy_pattern<16> : p.size == 8 ? copy_pattern<8> : copy_pattern<4>); break;
      case 'm':
        if (p.size == 1) launch_ldmatrix<1>(p, index, out.data());
        if (p.size == 2) launch_ldmatrix<2>(p, index, out.data());
        if (p.size == 4) launch_ldmatrix<4>(p, index, out.data());
        break;
      case 't':
        if (p.variant)
          launch_mma<__half>(p, sums.data());
        else
          launch_mma<__nv_bfloat16>(p, sums.data());
        break;
    }
    device::synchronize();
  }
}

}  // namespace patterns

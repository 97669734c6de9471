#include "common/interpreter/tests/patterns.h"

#include "common/device/device.cuh"

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

}  // namespace patterns

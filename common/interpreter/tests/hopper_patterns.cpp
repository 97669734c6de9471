#include "common/interpreter/tests/hopper_patterns.h"

#include <memory>

#include "common/device/bulk_copy.cuh"
#include "common/device/wgmma.cuh"
#include "common/interpreter/tests/matrices.h"

namespace hopper_patterns {
namespace {

using device::Buffer;
using device::launch;
using device::Major;
using device::Mbarrier;
using device::Swizzle;
using device::TensorMap;

// ---------------------------------------------------------------------------------------------------------- bulk copies
// In all kernels: an mbarrier that one thread initialises, and __syncthreads.
__device__ void begin(Mbarrier* full) {
  if (threadIdx.x == 0) {
    device::mbarrier_init(full, 1);
    device::fence_mbarrier_init();
  }
  __syncthreads();
}

// What a pattern's kernel has besides its copies.
__global__ void nothing() {
  __shared__ Mbarrier full;
  begin(&full);
  if (threadIdx.x == 0) device::mbarrier_arrive_expect_tx(&full, 0);
  device::mbarrier_wait_parity(&full, 0);
}

template <int kTimes>
__global__ void bulk_load(const unsigned char* in, unsigned bytes, unsigned shared_offset) {
  unsigned char* const shared = device::dynamic_smem() + shared_offset;
  __shared__ Mbarrier full;
  begin(&full);
  if (threadIdx.x == 0) {
    device::mbarrier_arrive_expect_tx(&full, kTimes * bytes);
#pragma unroll
    for (int i = 0; i < kTimes; ++i) device::cp_async_bulk(shared + i * bytes, in + i * bytes, bytes, &full);
  }
  device::mbarrier_wait_parity(&full, 0);
}
template <int kTimes>
__global__ void bulk_store(unsigned char* out, unsigned bytes) {
  const unsigned char* const shared = device::dynamic_smem();
  if (threadIdx.x == 0) {
#pragma unroll
    for (int i = 0; i < kTimes; ++i) device::cp_async_bulk_store(out + i * bytes, shared + i * bytes, bytes);
    device::cp_async_bulk_commit_group();
    device::cp_async_bulk_wait_group<0>();
  }
}
template <int kTimes>
__global__ void box_load(const __grid_constant__ TensorMap map, unsigned bytes, int x, int y) {
  unsigned char* const shared = device::dynamic_smem();
  __shared__ Mbarrier full;
  begin(&full);
  if (threadIdx.x == 0) {
    device::mbarrier_arrive_expect_tx(&full, kTimes * bytes);
#pragma unroll
    for (int i = 0; i < kTimes; ++i) device::cp_async_bulk_tensor_2d(shared + i * bytes, &map, x, y, &full);
  }
  device::mbarrier_wait_parity(&full, 0);
}
template <int kTimes>
__global__ void box_store(const __grid_constant__ TensorMap map, unsigned bytes, int x, int y) {
  const unsigned char* const shared = device::dynamic_smem();
  if (threadIdx.x == 0) {
#pragma unroll
    for (int i = 0; i < kTimes; ++i) device::cp_async_bulk_tensor_2d_store(&map, x + 64 * i, y, shared + i * bytes);
    device::cp_async_bulk_commit_group();
    device::cp_async_bulk_wait_group<0>();
  }
}

// ------------------------------------------------------------------------------------------------- mbarriers and fences
enum class Simple { kInit, kArrive, kArriveExpectTx, kExpectTx, kTryWait, kTestWait, kInitFence, kProxyFence, kNamedBarrier };
constexpr const char* kSimpleNames[] = {"mbarrier.init",       "mbarrier.arrive",   "mbarrier.arrive.expect_tx",
                                        "mbarrier.expect_tx",  "mbarrier.try_wait", "mbarrier.test_wait",
                                        "fence.mbarrier_init", "fence.proxy.async", "barrier.sync"};

// Executed by the first `active` of the block's threads.
template <Simple kWhat, int kTimes>
__global__ void simple(unsigned active, unsigned* out) {
  __shared__ Mbarrier barriers[4 * 128];
  begin(&barriers[0]);
  Mbarrier* const mine = &barriers[1 + threadIdx.x % 64];
  unsigned over = 0;
  if (kWhat == Simple::kExpectTx || kWhat == Simple::kArrive || kWhat == Simple::kArriveExpectTx) {
    if (threadIdx.x == 0) {
      device::mbarrier_init(&barriers[1], 1000);
      device::fence_mbarrier_init();
    }
    __syncthreads();
  }
  if (threadIdx.x < active) {
#pragma unroll
    for (int i = 0; i < kTimes; ++i) {
      if (kWhat == Simple::kInit) device::mbarrier_init(mine + 128 * i, 1);
      if (kWhat == Simple::kArrive) device::mbarrier_arrive(&barriers[1]);
      if (kWhat == Simple::kArriveExpectTx) device::mbarrier_arrive_expect_tx(&barriers[1], 16);
      if (kWhat == Simple::kExpectTx) device::mbarrier_expect_tx(&barriers[1], 16);
      if (kWhat == Simple::kTryWait) over += device::mbarrier_try_wait_parity(&barriers[0], 1);
      if (kWhat == Simple::kTestWait) over += device::mbarrier_test_wait_parity(&barriers[0], 1);
      if (kWhat == Simple::kInitFence) device::fence_mbarrier_init();
      if (kWhat == Simple::kProxyFence) device::fence_proxy_async();
      if (kWhat == Simple::kNamedBarrier) device::barrier_sync(1, active);
    }
  }
  if (kWhat == Simple::kTryWait || kWhat == Simple::kTestWait) out[threadIdx.x] = over;
}

__global__ void prefetch(const __grid_constant__ TensorMap map) {
  if (threadIdx.x == 0) device::prefetch_tensormap(&map);
}

// ---------------------------------------------------------------------------------------------------------------- wgmma
// Where the matrices lie is not what is asked, so all products have the same; what they hold neither.
template <class T, int kN, Swizzle kSwizzle, Major kMajorA, Major kMajorB, int kTimes>
__global__ void __launch_bounds__(256) multiply(float* out) {
  unsigned char* const shared = device::dynamic_smem();
  float d[kN / 2] = {};
  const bool patterns = kSwizzle != Swizzle::kNone;
  const uint64_t a = device::wgmma_descriptor(shared, kSwizzle, patterns ? 8192 : 128, patterns ? 8 * unsigned(kSwizzle) : 256);
  const uint64_t b =
      device::wgmma_descriptor(shared + 16384, kSwizzle, patterns ? 8192 : 128, patterns ? 8 * unsigned(kSwizzle) : 256);
  device::wgmma_fence();
#pragma unroll
  for (int i = 0; i < kTimes; ++i) device::wgmma_m64k16<T, kN, kMajorA, kMajorB>(d, a, b, true);
  device::wgmma_commit_group();
  device::wgmma_wait_group<0>();
  float sum = 0;
  for (int i = 0; i < kN / 2; ++i) sum += d[i];
  out[threadIdx.x] = sum;
}

// ------------------------------------------------------------------------------------------------------------- stmatrix
// Rows of matrices `pitch` bytes apart.
template <int kCount, bool kTransposed, int kTimes>
__global__ void matrix_store(int pitch) {
  unsigned char* const row = device::dynamic_smem() + threadIdx.x % 32 * pitch;
  uint32_t r[kCount];
  for (int i = 0; i < kCount; ++i) r[i] = threadIdx.x + i;
#pragma unroll
  for (int i = 0; i < kTimes; ++i) matrices::store<kCount, kTransposed>(row, r);
}

// ------------------------------------------------------------------------------------------------------------ the table
constexpr int kRows = 512, kColumns = 512;  // of the matrix that boxes are taken of

struct Memory {
  Buffer<unsigned char> bytes{kRows * kColumns * 2, "bytes"};
  Buffer<unsigned> numbers{256, "numbers"};
  Buffer<float> sums{256, "sums"};
  Memory() { bytes.fill(0); }
};

class Table {
 public:
  std::vector<Pattern> take() { return std::move(patterns_); }
  void add(const std::string& what, std::function<void(const Memory&)> launch) {
    patterns_.push_back({what, [launch = std::move(launch)] {
                           const Memory memory;
                           launch(memory);
                           device::synchronize();
                         }});
  }

  void add_bytes() {
    for (const unsigned bytes : {16u, 32u, 128u, 1024u, 4096u, 16384u}) {
      const auto add_load = [&](auto kernel, int times) {
        add("bulk load of " + std::to_string(bytes) + " bytes, " + std::to_string(times) + " times",
            [=](const Memory& memory) { launch(kernel, 1, 128, times * bytes, memory.bytes.data(), bytes, 0u); });
      };
      const auto add_store = [&](auto kernel, int times) {
        add("bulk store of " + std::to_string(bytes) + " bytes, " + std::to_string(times) + " times",
            [=](const Memory& memory) { launch(kernel, 1, 128, times * bytes, memory.bytes.data(), bytes); });
      };
      add_load(bulk_load<1>, 1);
      add_load(bulk_load<4>, 4);
      add_store(bulk_store<1>, 1);
      add_store(bulk_store<4>, 4);
    }
    // Ranges that begin in the middle of a sector or a line, on one side or on both.
    for (const unsigned bytes : {16u, 128u, 1024u})
      for (const int offset : {16, 32, 64}) {
        const std::string behind = std::to_string(offset) + " bytes behind a line's begin, 1 time";
        const std::string of = " of " + std::to_string(bytes) + " bytes, ";
        const auto add_load = [&](const std::string& what, int from, unsigned to) {
          add(what, [=](const Memory& memory) { launch(bulk_load<1>, 1, 128, bytes + 64, memory.bytes.data() + from, bytes, to); });
        };
        add_load("bulk load" + of + behind, offset, 0);
        add_load("bulk load" + of + "to " + behind, 0, static_cast<unsigned>(offset));
        add_load("bulk load" + of + "from and to " + behind, offset, static_cast<unsigned>(offset));
        add("bulk store" + of + "to " + behind,
            [=](const Memory& memory) { launch(bulk_store<1>, 1, 128, bytes, memory.bytes.data() + offset, bytes); });
      }
  }

  enum Direction { kLoad = 1, kStore = 2, kBoth = 3 };
  void add_box(const char* where, unsigned rows, Swizzle swizzle, unsigned columns, int x, int y, Direction directions = kBoth) {
    const std::string box = std::to_string(columns) + "x" + std::to_string(rows) + " swizzle " +
                            std::to_string(static_cast<int>(swizzle)) + where + ", ";
    const auto add_copy = [&](const char* name, auto kernel, int times) {
      add(name + box + std::to_string(times) + " times", [=](const Memory& memory) {
        const TensorMap map = device::make_tensor_map<std::uint16_t>({.data = memory.bytes.data(),
                                                                      .rows = kRows,
                                                                      .columns = kColumns,
                                                                      .row_stride = kColumns,
                                                                      .box_rows = rows,
                                                                      .box_columns = columns,
                                                                      .swizzle = swizzle});
        const unsigned bytes = rows * columns * 2;
        launch(kernel, 1, 128, times * bytes, map, bytes, x, y);
      });
    };
    if (directions & kLoad) add_copy("box load of ", box_load<1>, 1);
    if (directions & kLoad) add_copy("box load of ", box_load<2>, 2);
    if (directions & kStore) add_copy("box store of ", box_store<1>, 1);
    if (directions & kStore) add_copy("box store of ", box_store<2>, 2);
  }
  void add_boxes() {
    for (const unsigned rows : {1u, 8u, 64u, 128u, 256u}) add_box("", rows, Swizzle::k128, 64, 0, 0);
    add_box("", 64, Swizzle::k64, 32, 0, 0);
    add_box("", 64, Swizzle::k32, 16, 0, 0);
    add_box("", 64, Swizzle::kNone, 64, 0, 0);
    add_box("", 64, Swizzle::kNone, 8, 0, 0);
    add_box("", 64, Swizzle::kNone, 24, 0, 0);
    add_box("", 64, Swizzle::kNone, 128, 0, 0, kLoad);  // two stores would overlap
    add_box(" 8 columns in", 64, Swizzle::kNone, 128, 8, 0, kLoad);
    add_box(" 24 columns in", 64, Swizzle::k32, 16, 24, 0);
    add_box(" 8 columns in", 64, Swizzle::k128, 64, 8, 0);
    add_box(" 16 columns in", 64, Swizzle::k128, 64, 16, 0);
    add_box(" 32 columns in", 64, Swizzle::k128, 64, 32, 0);
    add_box(" half of the columns outside", 64, Swizzle::k128, 64, kColumns - 32, 0);
    add_box(" half of the rows outside", 64, Swizzle::k128, 64, 0, kRows - 32);
    add_box(" outside", 64, Swizzle::k128, 64, 0, kRows);
    add_box(" half of the rows below 0", 64, Swizzle::k128, 64, 0, -32, kLoad);
    add_box(" half of the columns below 0", 64, Swizzle::k128, 64, -32, 0, kLoad);
  }

  template <Simple kWhat>
  void add_simple(const std::vector<unsigned>& actives) {
    for (const unsigned active : actives) {
      const auto add_times = [&](auto kernel, int times) {
        add(std::string(kSimpleNames[static_cast<int>(kWhat)]) + " by " + std::to_string(active) + " threads, " +
                std::to_string(times) + " times",
            [=](const Memory& memory) { launch(kernel, 1, 128, 0, active, memory.numbers.data()); });
      };
      add_times(simple<kWhat, 1>, 1);
      add_times(simple<kWhat, 4>, 4);
    }
  }

  template <class T, int kN, Swizzle kSwizzle, Major kMajorA, Major kMajorB>
  void add_multiply(unsigned threads = 128) {
    const auto name = [](Major major) { return major == Major::kK ? " K" : " MN"; };
    const auto add_times = [&](auto kernel, int times) {
      add(std::string("wgmma ") + (std::is_same_v<T, __half> ? "f16" : "bf16") + " n" + std::to_string(kN) + name(kMajorA) +
              name(kMajorB) + " swizzle " + std::to_string(static_cast<int>(kSwizzle)) + " by " + std::to_string(threads) +
              " threads, " + std::to_string(times) + " times",
          [=](const Memory& memory) { launch(kernel, 1, threads, 64 * 1024, memory.sums.data()); });
    };
    add_times(multiply<T, kN, kSwizzle, kMajorA, kMajorB, 1>, 1);
    // Of four equal products of 64 columns, ptxas 13.0 makes two.
    if constexpr (kN != 64) add_times(multiply<T, kN, kSwizzle, kMajorA, kMajorB, 4>, 4);
  }
  template <int kCount, bool kTransposed>
  void add_matrices() {
    for (const int pitch : {16, 32, 128, 144}) {
      const auto add_times = [&](auto kernel, int times) {
        add("stmatrix x" + std::to_string(kCount) + (kTransposed ? " trans" : "") + ", rows " + std::to_string(pitch) +
                " bytes apart, " + std::to_string(times) + " times",
            [=](const Memory&) { launch(kernel, 1, 32, 32 * 144, pitch); });
      };
      add_times(matrix_store<kCount, kTransposed, 1>, 1);
      add_times(matrix_store<kCount, kTransposed, 4>, 4);
    }
  }
  template <int kN>
  void add_width() {
    add_multiply<__half, kN, Swizzle::k128, Major::kK, Major::kK>();
    add_multiply<__half, kN, Swizzle::k128, Major::kK, Major::kMN>();
    add_multiply<__half, kN, Swizzle::k128, Major::kMN, Major::kMN>();
  }

 private:
  std::vector<Pattern> patterns_;
};

}  // namespace

const std::vector<Pattern>& all() {
  static const std::vector<Pattern> patterns = [] {
    Table table;
    table.add("nothing", [](const Memory&) { launch(nothing, 1, 128, 0); });
    table.add_bytes();
    table.add_boxes();
    table.add("prefetch.tensormap", [](const Memory& memory) {
      launch(prefetch, 1, 128, 0,
             device::make_tensor_map<std::uint16_t>({.data = memory.bytes.data(),
                                                     .rows = kRows,
                                                     .columns = kColumns,
                                                     .row_stride = kColumns,
                                                     .box_rows = 64,
                                                     .box_columns = 64,
                                                     .swizzle = Swizzle::k128}));
    });
    table.add_simple<Simple::kInit>({1, 32});
    table.add_simple<Simple::kArrive>({1, 32, 128});
    table.add_simple<Simple::kArriveExpectTx>({1, 32});
    table.add_simple<Simple::kExpectTx>({1});
    table.add_simple<Simple::kTryWait>({1, 32, 128});
    table.add_simple<Simple::kTestWait>({1, 32, 128});
    table.add_simple<Simple::kInitFence>({1});
    table.add_simple<Simple::kProxyFence>({1, 32, 128});
    table.add_simple<Simple::kNamedBarrier>({64, 128});
    table.add_width<64>();
    table.add_width<128>();
    table.add_width<192>();
    table.add_width<256>();
    table.add_multiply<__nv_bfloat16, 128, Swizzle::k128, Major::kK, Major::kK>();
    table.add_multiply<__half, 128, Swizzle::k64, Major::kK, Major::kK>();
    table.add_multiply<__half, 128, Swizzle::k32, Major::kK, Major::kK>();
    table.add_multiply<__half, 128, Swizzle::kNone, Major::kK, Major::kK>();
    table.add_multiply<__half, 128, Swizzle::k128, Major::kK, Major::kK>(256);
    table.add_matrices<1, true>();
    table.add_matrices<2, false>();
    table.add_matrices<2, true>();
    table.add_matrices<4, true>();
    return table.take();
  }();
  return patterns;
}

}  // namespace hopper_patterns

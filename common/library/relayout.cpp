#include "common/library/relayout.h"

#include <cstdlib>
#include <limits>
#include <new>

#include "common/device/device.cuh"
#include "common/gemm/gemm.h"

namespace gemm::library {
namespace {

using harness::AnyMatrix, harness::DType;

constexpr std::int64_t kLine = 128;                   // bytes of L2's lines
constexpr int kThreads = 256, kChunk = 8, kRows = 4;  // elements of a chunk; chunks of a thread, in rows below each other
constexpr int kMostLogAcross = 5;                     // a warp writes no more than 512 bytes of a row: four lines

using Element = std::uint16_t;  // its bits, whatever they mean

// Rows that are copied, and the blocks that do it: `blocks_across` side by side, in each 2^log_across threads side by side.
struct Rows {
  const Element* from;
  std::int64_t row_stride, col_stride;  // of `from`
  Element* to;
  std::int64_t pitch, rows, cols;
  unsigned blocks_across, blocks;
  int log_across;
};

// The chunk that begins `shift` elements behind the first of two that lie side by side.
__device__ __forceinline__ ulonglong2 shifted(const ulonglong2& first, const ulonglong2& second, unsigned shift) {
  const bool by_half = shift >= kChunk / 2;
  const unsigned bits = shift % (kChunk / 2) * 16;
  const unsigned long long a = by_half ? first.y : first.x, b = by_half ? second.x : first.y, c = by_half ? second.y : second.x;
  return {a >> bits | b << 1 << (63 - bits), b >> bits | c << 1 << (63 - bits)};
}

// The first `count` elements from p on, and zeros for the rest of the chunk.
__device__ __forceinline__ ulonglong2 gathered(const Element* p, std::int64_t stride, std::int64_t count) {
  alignas(16) Element x[kChunk];
#pragma unroll
  for (int i = 0; i < kChunk; ++i) x[i] = i < count ? p[i * stride] : Element{0};
  return *reinterpret_cast<const ulonglong2*>(x);
}

// One block's part. Where neighbours lie side by side, a chunk lies in two aligned ones, or is one; what lies outside of the row is
// nobody's, and may be beyond the end of memory: so there elements are loaded one by one.
__device__ __forceinline__ void copy_rows(const Rows& r, unsigned block) {
  const int across = 1 << r.log_across, step = kThreads >> r.log_across;
  const std::int64_t row_0 = std::int64_t{block / r.blocks_across} * step * kRows + (threadIdx.x >> r.log_across);
  const std::int64_t col = (std::int64_t{block % r.blocks_across} * across + (threadIdx.x & (across - 1))) * kChunk;
  if (col >= r.cols) return;
  const auto source = [&](int i) { return r.from + ((row_0 + i * step) * r.row_stride + col * r.col_stride); };
  const auto shift_of = [](const Element* p) { return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(p) % 16 / 2); };
  ulonglong2 first[kRows], second[kRows];
  bool whole[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {  // a store waits for its loads: so first all loads, then all stores
    const Element* const p = source(i);
    const unsigned shift = shift_of(p);
    whole[i] =
        r.col_stride == 1 && row_0 + i * step < r.rows && col >= shift && col - shift + (shift ? 2 * kChunk : kChunk) <= r.cols;
    if (whole[i]) {
      const ulonglong2* const chunks = reinterpret_cast<const ulonglong2*>(p - shift);
      first[i] = chunks[0];
      second[i] = chunks[shift ? 1 : 0];
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const std::int64_t row = row_0 + i * step;
    if (row >= r.rows) return;
    const Element* const p = source(i);
    *reinterpret_cast<ulonglong2*>(r.to + row * r.pitch + col) =
        whole[i] ? shifted(first[i], second[i], shift_of(p)) : gathered(p, r.col_stride, r.cols - col);
  }
}

__global__ __launch_bounds__(kThreads) void relayout_kernel(Rows a, Rows b) {
  if (blockIdx.x < a.blocks)
    copy_rows(a, blockIdx.x);
  else
    copy_rows(b, blockIdx.x - a.blocks);
}

std::int64_t pitch_in_lines(const AnyMatrix& m, DType type) {  // in elements
  const std::int64_t line = kLine / static_cast<std::int64_t>(bytes(type));
  return ceil_div(lies_by_columns(m) ? m.rows : m.cols, line) * line;
}

Rows rows_of(const Copy& copy) {
  const bool turned = lies_by_columns(copy.from);
  const AnyMatrix &from = copy.from, &to = copy.to;
  Rows r{};
  r.from = static_cast<const Element*>(from.data);
  r.to = static_cast<Element*>(to.data);
  r.rows = turned ? from.cols : from.rows, r.cols = turned ? from.rows : from.cols;
  r.row_stride = turned ? from.col_stride : from.row_stride, r.col_stride = turned ? from.row_stride : from.col_stride;
  r.pitch = turned ? to.col_stride : to.row_stride;
  const std::int64_t chunks = ceil_div<std::int64_t>(r.cols, kChunk);
  while (r.log_across < kMostLogAcross && std::int64_t{1} << r.log_across < chunks) ++r.log_across;
  const std::int64_t across = ceil_div<std::int64_t>(chunks, std::int64_t{1} << r.log_across);
  const std::int64_t down = ceil_div<std::int64_t>(r.rows, std::int64_t{kThreads >> r.log_across} * kRows);
  r.blocks_across = grid_size(across);
  r.blocks = grid_size(across * down);
  return r;
}

}  // namespace

bool lies_by_columns(const AnyMatrix& m) {
  const auto distance = [](std::int64_t stride) { return stride ? std::abs(stride) : std::numeric_limits<std::int64_t>::max(); };
  return m.rows > 1 && (m.cols == 1 || distance(m.row_stride) < distance(m.col_stride));
}

AnyMatrix in_lines(const AnyMatrix& m, DType type, void* data) {
  const std::int64_t pitch = pitch_in_lines(m, type);
  return lies_by_columns(m) ? AnyMatrix{data, m.rows, m.cols, 1, pitch} : AnyMatrix{data, m.rows, m.cols, pitch, 1};
}

std::size_t bytes_in_lines(const AnyMatrix& m, DType type) {
  return static_cast<std::size_t>(pitch_in_lines(m, type)) * static_cast<std::size_t>(lies_by_columns(m) ? m.cols : m.rows) *
         bytes(type);
}

std::size_t& StreamMemory::most() {
  static std::size_t most = std::numeric_limits<std::size_t>::max();
  return most;
}

#ifdef COURSE_ON_GPU
StreamMemory::StreamMemory(std::size_t bytes) : stream_(device::stream()) {
  if (bytes > most()) return;
  const cudaError_t status = cudaMallocAsync(&data_, bytes, stream_);
  if (status == cudaErrorMemoryAllocation || status == cudaErrorNotSupported) {
    data_ = nullptr;
    cudaGetLastError();  // what failed is over: later calls shall not report it
  } else {
    DEVICE_CHECK(status);
  }
}
StreamMemory::~StreamMemory() {
  if (data_) cudaFreeAsync(data_, stream_);  // destructors do not throw; a sticky error shows elsewhere
}
#else
StreamMemory::StreamMemory(std::size_t bytes) {
  try {
    if (bytes <= most()) data_ = device::detail::allocate(bytes, "operands laid out anew");
  } catch (const std::bad_alloc&) {
  }
}
StreamMemory::~StreamMemory() {
  if (data_) device::detail::release(data_);
}
#endif

void lay_out(const std::vector<Copy>& copies) {
  const Rows a = rows_of(copies.front()), b = copies.size() > 1 ? rows_of(copies.back()) : Rows{};
  device::launch(relayout_kernel, grid_size(std::int64_t{a.blocks} + b.blocks), kThreads, 0, a, b);
}

}  // namespace gemm::library

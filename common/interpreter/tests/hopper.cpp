/// @file
/// mbarriers, bulk copies, named barriers; stmatrix.
#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "common/device/bulk_copy.cuh"
#include "common/interpreter/tests/matrices.h"
#include "common/interpreter/tests/orders.h"

using device::Buffer;
using device::launch;
using device::Mbarrier;
using device::TensorMap;

namespace {

__global__ void copy_box(const __grid_constant__ TensorMap map, int* out, int x, int y) {
  __shared__ __align__(1024) int box[8 * 32];
  __shared__ Mbarrier full;
  if (threadIdx.x == 0) {
    device::mbarrier_init(&full, 1);
    device::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    device::mbarrier_arrive_expect_tx(&full, sizeof box);
    device::cp_async_bulk_tensor_2d(box, &map, x, y, &full);
  }
  device::mbarrier_wait_parity(&full, 0);
  for (unsigned i = threadIdx.x; i < 8 * 32; i += blockDim.x) out[i] = box[i];
}

}  // namespace

TEST_CASE("a box comes in, with zeros where the tensor ends") {
  std::vector<int> host(20 * 64);
  std::iota(host.begin(), host.end(), 1);
  in_all_orders([&] {
    const Buffer<int> tensor(host, "tensor"), out(8 * 32, "out");
    for (const auto& [x, y] : {std::pair(0, 0), {32, 8}, {44, 15}, {-4, -2}, {1000, 0}}) {
      const TensorMap map = device::make_tensor_map<int>(
          {.data = tensor.data(), .rows = 20, .columns = 60, .row_stride = 64, .box_rows = 8, .box_columns = 32});
      launch(copy_box, 1, 64, 0, map, out.data(), x, y);
      const std::vector<int> got = out.download();
      for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 32; ++j) {
          const bool inside = x + j >= 0 && x + j < 60 && y + i >= 0 && y + i < 20;
          REQUIRE(got[i * 32 + j] == (inside ? host[(y + i) * 64 + x + j] : 0));
        }
    }
  });
}

namespace {

// Whether there is no map of numbers of T laid out like this, and the reason that is given.
template <class T>
std::string refusal(const device::TensorLayout& layout) {
  try {
    device::make_tensor_map<T>(layout);
  } catch (const device::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a map that the copy engine cannot take is refused, and the reason given") {
  const Buffer<std::uint16_t> tensor(64 * 64, "tensor");
  using Layout = device::TensorLayout;
  const Layout right = {.data = tensor.data(),
                        .rows = 64,
                        .columns = 61,
                        .row_stride = 64,
                        .box_rows = 8,
                        .box_columns = 64,
                        .swizzle = device::Swizzle::k128};
  CHECK(refusal<std::uint16_t>(right).empty());
  const auto refused = [&](const std::function<void(Layout&)>& change) {
    Layout layout = right;
    change(layout);
    return refusal<std::uint16_t>(layout);
  };
  const std::string no_map = "no tensor map: ";
  CHECK(refused([&](Layout& l) { l.data = tensor.data() + 4; }) == no_map + "the matrix is not aligned to 16 bytes");
  CHECK(refused([](Layout& l) { l.row_stride = 61; }) == no_map + "the row stride is no multiple of 16 bytes");
  CHECK(refused([](Layout& l) { l.row_stride = std::uint64_t(1) << 39; }) == no_map + "the row stride is 2^40 bytes or more");
  CHECK(refused([](Layout& l) { l.rows = 0; }) == no_map + "the matrix is empty");
  CHECK(refused([](Layout& l) { l.columns = 0; }) == no_map + "the matrix is empty");
  CHECK(refused([](Layout& l) { l.rows = std::uint64_t(1) << 32; }) == no_map + "a dimension is larger than 2^32 - 1");
  CHECK(refused([](Layout& l) { l.columns = std::uint64_t(1) << 32; }) == no_map + "a dimension is larger than 2^32 - 1");
  CHECK(refused([](Layout& l) { l.box_rows = 0; }) == no_map + "a box has between 1 and 256 rows");
  CHECK(refused([](Layout& l) { l.box_rows = 257; }) == no_map + "a box has between 1 and 256 rows");
  CHECK(refused([](Layout& l) { l.box_columns = 0; }) == no_map + "a box has between 1 and 256 columns");
  CHECK(refused([](Layout& l) { l.box_columns = 264; }) == no_map + "a box has between 1 and 256 columns");
  CHECK(refused([](Layout& l) { l.box_columns = 12; }) == no_map + "a row of the box is no multiple of 16 bytes");
  CHECK(refused([](Layout& l) { l.box_columns = 72; }) == no_map + "a row of the box is wider than the swizzle");
  CHECK(refused([](Layout& l) { l.swizzle = device::Swizzle::k64; }) == no_map + "a row of the box is wider than the swizzle");
  CHECK(refused([](Layout& l) { l.box_columns = 24; }).empty());
  // What is refused of 2-byte numbers is right for others, and the other way round.
  CHECK(refusal<float>({tensor.data(), 8, 12, 12, 8, 12}).empty());
  CHECK(refusal<std::uint8_t>({tensor.data(), 8, 12, 12, 8, 12}) == no_map + "the row stride is no multiple of 16 bytes");
  CHECK(refusal<std::uint8_t>({tensor.data(), 256, 256, 256, 256, 256}).empty());
}

namespace {

// Row r of matrix m is row 8 m + r of `out`, two rows apart; what lies between stays.
template <int kCount, bool kTransposed>
__global__ void store_matrices(uint32_t* out) {
  __shared__ __align__(16) uint32_t rows[64 * 4];
  for (unsigned i = threadIdx.x; i < 64 * 4; i += 32) rows[i] = ~0u;
  __syncwarp();
  uint32_t r[kCount];
  for (int m = 0; m < kCount; ++m) r[m] = (1000 * m + 2 * threadIdx.x + 1) << 16 | (1000 * m + 2 * threadIdx.x);
  void* const row = threadIdx.x < 8 * kCount ? rows + threadIdx.x * 8 : nullptr;  // others name none
  matrices::store<kCount, kTransposed>(row, r);
  __syncwarp();
  for (unsigned i = threadIdx.x; i < 64 * 4; i += 32) out[i] = rows[i];
}

template <int kCount, bool kTransposed>
void check_matrices() {
  INFO("x" << kCount << (kTransposed ? " trans" : ""));
  const Buffer<uint32_t> out(64 * 4, "out");
  launch(store_matrices<kCount, kTransposed>, 1, 32, 0, out.data());
  const std::vector<uint32_t> got = out.download();
  for (unsigned row = 0; row < 64; ++row)
    for (unsigned j = 0; j < 8; ++j) {
      const bool written = row % 2 == 0 && row / 2 < 8 * kCount;
      const unsigned i = row / 2 % 8, m = row / 16, of_matrix = kTransposed ? 8 * j + i : 8 * i + j;
      REQUIRE((got[row * 4 + j / 2] >> j % 2 * 16 & 0xffff) == (written ? 1000 * m + of_matrix : 0xffff));
    }
}

}  // namespace

TEST_CASE("stmatrix: 1, 2 and 4 matrices, as rows and transposed; lanes that name no row") {
  in_all_orders([] {
    check_matrices<1, false>();
    check_matrices<1, true>();
    check_matrices<2, false>();
    check_matrices<2, true>();
    check_matrices<4, false>();
    check_matrices<4, true>();
  });
}

/// @file
/// mbarriers, bulk copies, named barriers.
#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "common/device/bulk_copy.cuh"
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

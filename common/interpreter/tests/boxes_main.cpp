// Where the copy engine puts the 16-byte pieces of a box whose rows are narrower than the swizzle, which make_tensor_map() refuses:
// prints a table, one row per box. For the GPU alone.
//
// Completed: those of the tried numbers of expected bytes with which the mbarrier's phase was over. Places: what lies in shared
// memory, piece by piece from the box's address on: the number of the source's piece, counted along the rows of the box; - where
// nothing was written; ? where the 16 bytes are no piece of the source.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "common/device/bulk_copy.cuh"

namespace {

using device::Mbarrier, device::TensorMap;

constexpr int kRows = 24, kPieceElements = 8;
constexpr int kPlaces = kRows * 8 + 64;  // 16-byte pieces that are looked at
constexpr std::uint16_t kUntouched = 0xffff;

__global__ void copy(const __grid_constant__ TensorMap map, std::uint16_t* out, int* over, int first_byte, unsigned expected) {
  unsigned char* const box = device::dynamic_smem() + first_byte;
  __shared__ Mbarrier full;
  for (int i = threadIdx.x; i < kPlaces * kPieceElements; i += 32) reinterpret_cast<std::uint16_t*>(box)[i] = kUntouched;
  device::fence_proxy_async();
  if (threadIdx.x == 0) {
    device::mbarrier_init(&full, 1);
    device::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    device::mbarrier_arrive_expect_tx(&full, expected);
    device::cp_async_bulk_tensor_2d(box, &map, 0, 0, &full);
    const long long start = clock64();
    while (clock64() - start < 200000) {  // it has landed by then, whatever the mbarrier says
    }
    *over = device::mbarrier_test_wait_parity(&full, 0);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kPlaces * kPieceElements; i += 32) out[i] = reinterpret_cast<const std::uint16_t*>(box)[i];
}

struct Box {
  int swizzle_bytes, row_bytes, first_byte;
};

std::string row_of(const Box& box) {
  const int columns = box.row_bytes / 2, stride = 64;
  std::vector<std::uint16_t> host(kRows * stride, 0xeeee);
  for (int row = 0; row < kRows; ++row)
    for (int i = 0; i < columns; ++i) host[row * stride + i] = static_cast<std::uint16_t>(row * columns + i);
  const device::Buffer<std::uint16_t> tensor(host);
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), kRows}, strides[] = {stride * 2};
  const cuuint32_t extent[] = {static_cast<cuuint32_t>(columns), kRows}, element_strides[] = {1, 1};
  const CUtensorMapSwizzle swizzle = box.swizzle_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                     : box.swizzle_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                     : box.swizzle_bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                               : CU_TENSOR_MAP_SWIZZLE_NONE;
  TensorMap map{};
  const CUresult refused = device::detail::tensor_map_encoder()(
      &map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, tensor.data(), sizes, strides, extent, element_strides,
      CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  std::string row = std::to_string(box.swizzle_bytes) + "," + std::to_string(box.row_bytes) + "," + std::to_string(kRows) + "," +
                    std::to_string(box.first_byte) + ",";
  if (refused) return row + "refused: " + std::to_string(refused) + ",";

  const device::Buffer<std::uint16_t> out(kPlaces * kPieceElements);
  const device::Buffer<int> over(1);
  std::string completed;
  for (const int bytes_of_row : {box.row_bytes, box.swizzle_bytes, 128}) {
    const unsigned expected = static_cast<unsigned>(bytes_of_row * kRows);
    device::launch(copy, 1, 32, 2048 + kPlaces * 16, map, out.data(), over.data(), box.first_byte, expected);
    if (over.download()[0]) completed += (completed.empty() ? "" : " ") + std::to_string(expected);
  }
  row += completed + ",";
  const std::vector<std::uint16_t> got = out.download();
  int places = kPlaces;
  const auto untouched = [&](int place) {
    for (int i = 0; i < kPieceElements; ++i)
      if (got[place * kPieceElements + i] != kUntouched) return false;
    return true;
  };
  while (places > 0 && untouched(places - 1)) --places;
  for (int place = 0; place < places; ++place) {
    const std::uint16_t* const piece = &got[place * kPieceElements];
    bool whole = piece[0] % kPieceElements == 0;
    for (int i = 0; i < kPieceElements; ++i) whole &= piece[i] == piece[0] + i;
    row += (place ? " " : "") + (untouched(place) ? "-" : whole ? std::to_string(piece[0] / kPieceElements) : "?");
  }
  return row;
}

}  // namespace

int main() {
  try {
    std::puts("swizzle,row bytes,rows,first byte,completed,places");
    for (const int swizzle_bytes : {0, 32, 64, 128})
      for (const int row_bytes : {16, 32, 48, 64, 96, 128})
        for (const int first_byte : {0, 128, 512})
          if (swizzle_bytes || first_byte == 0) std::puts(row_of({swizzle_bytes, row_bytes, first_byte}).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "box_layouts: %s\n", error.what());
    return EXIT_FAILURE;
  }
}

#include "common/interpreter/tests/boxes.h"

#include "common/device/bulk_copy.cuh"

namespace boxes {
namespace {

using device::Mbarrier, device::TensorMap;

constexpr int kPieceElements = 8, kStride = 64;  // 16-bit elements
constexpr int kPlaces = kRows * 8 + 64;          // 16-byte pieces that are looked at
constexpr std::uint16_t kUntouched = 0x5a5a;

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
#ifdef __CUDACC__
    const long long start = clock64();
    while (clock64() - start < 200000) {  // it has landed by then, whatever the mbarrier says
    }
#else
    device::mbarrier_wait_parity(&full, 0);
#endif
    *over = device::mbarrier_test_wait_parity(&full, 0);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kPlaces * kPieceElements; i += 32) out[i] = reinterpret_cast<const std::uint16_t*>(box)[i];
}

// @return the driver's error; on the interpreter, 1 for what make_tensor_map() refuses
int encode(TensorMap& map, const device::Buffer<std::uint16_t>& tensor, const Box& box) {
#ifdef __CUDACC__  // the driver itself is asked
  const auto columns = static_cast<unsigned>(box.row_bytes / 2);
  const cuuint64_t sizes[] = {columns, kRows}, strides[] = {kStride * 2};
  const cuuint32_t extent[] = {columns, kRows}, element_strides[] = {1, 1};
  const CUtensorMapSwizzle swizzle = box.swizzle_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                     : box.swizzle_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                     : box.swizzle_bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                               : CU_TENSOR_MAP_SWIZZLE_NONE;
  return device::detail::tensor_map_encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, tensor.data(), sizes, strides, extent,
                                              element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                              CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
#else
  const auto columns = static_cast<unsigned>(box.row_bytes / 2);
  try {
    map = device::make_tensor_map<std::uint16_t>({.data = tensor.data(),
                                                  .rows = kRows,
                                                  .columns = columns,
                                                  .row_stride = kStride,
                                                  .box_rows = kRows,
                                                  .box_columns = columns,
                                                  .swizzle = static_cast<device::Swizzle>(box.swizzle_bytes)});
    return 0;
  } catch (const device::Error&) {
    return 1;
  }
#endif
}

}  // namespace

std::vector<Box> all() {
  std::vector<Box> boxes;
  for (const int swizzle_bytes : {0, 32, 64, 128})
    for (const int row_bytes : {16, 32, 48, 64, 96, 128})
      for (const int first_byte : {0, 128, 512})
        if (swizzle_bytes || first_byte == 0) boxes.push_back({swizzle_bytes, row_bytes, first_byte});
  return boxes;
}

std::vector<int> tried_bytes(const Box& box) { return {box.row_bytes * kRows, box.swizzle_bytes * kRows, 128 * kRows}; }

std::string row_of(const Box& box) {
  const int columns = box.row_bytes / 2;
  std::vector<std::uint16_t> host(kRows * kStride, 0xeeee);
  for (int row = 0; row < kRows; ++row)
    for (int i = 0; i < columns; ++i)
      host[static_cast<std::size_t>(row * kStride + i)] = static_cast<std::uint16_t>(row * columns + i);
  const device::Buffer<std::uint16_t> tensor(host, "tensor");
  std::string row = std::to_string(box.swizzle_bytes) + "," + std::to_string(box.row_bytes) + "," + std::to_string(kRows) + "," +
                    std::to_string(box.first_byte) + ",";
  TensorMap map{};
  if (const int refused = encode(map, tensor, box)) return row + "refused: " + std::to_string(refused) + ",";

  const device::Buffer<std::uint16_t> out(kPlaces * kPieceElements, "out");
  const device::Buffer<int> over(1, "over");
  std::string completed;
  std::vector<int> tried = tried_bytes(box);
#ifndef __CUDACC__
  tried.resize(1);
#endif
  for (const int bytes : tried) {
    device::launch(copy, 1, 32, 2048 + kPlaces * 16, map, out.data(), over.data(), box.first_byte, static_cast<unsigned>(bytes));
    if (over.download()[0]) completed += (completed.empty() ? "" : " ") + std::to_string(bytes);
  }
  row += completed + ",";
  const std::vector<std::uint16_t> got = out.download();
  const auto piece = [&](int place) { return &got[static_cast<std::size_t>(place * kPieceElements)]; };
  const auto untouched = [&](int place) {
    for (int i = 0; i < kPieceElements; ++i)
      if (piece(place)[i] != kUntouched) return false;
    return true;
  };
  int places = kPlaces;
  while (places > 0 && untouched(places - 1)) --places;
  for (int place = 0; place < places; ++place) {
    const int first = piece(place)[0];
    bool whole = first % kPieceElements == 0;
    for (int i = 0; i < kPieceElements; ++i) whole &= piece(place)[i] == first + i;
    row += (place ? " " : "") + (untouched(place) ? "-" : whole ? std::to_string(first / kPieceElements) : "?");
  }
  return row;
}

}  // namespace boxes

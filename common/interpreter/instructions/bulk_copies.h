/// @file
/// Bulk copies, for common/device/bulk_copy.cuh. Not inline, so that the return address names the place in the kernel.
#pragma once

#include <cstdint>

namespace interpreter {

/// What the copy engine knows of a tensor in global memory. Dimension 0 is the one whose elements lie side by side.
struct alignas(64) TensorMap {
  static constexpr unsigned kMostDimensions = 5;
  static constexpr std::uint32_t kMagic = 0x7e2502da;

  std::uint32_t magic = 0;
  std::uint8_t dimensions = 0, element_bytes = 0;
  std::uint8_t swizzle_bytes = 0;  ///< 0, 32, 64, 128: the width of the pattern that box rows are swizzled by
  const void* tensor = nullptr;
  std::uint32_t size[kMostDimensions] = {};    ///< in elements
  std::uint64_t stride[kMostDimensions] = {};  ///< in bytes; that of dimension 0 is element_bytes
  std::uint32_t box[kMostDimensions] = {};     ///< in elements

  unsigned box_bytes() const {
    unsigned bytes = element_bytes;
    for (unsigned d = 0; d < dimensions; ++d) bytes *= box[d];
    return bytes;
  }
};
static_assert(sizeof(TensorMap) == 128);

/// Where the copy engine, and wgmma, put the byte that would lie at `address`: the 16-byte pieces of 8 rows change places.
constexpr std::uintptr_t swizzled(std::uintptr_t address, unsigned swizzle_bytes) {
  const std::uintptr_t pieces = swizzle_bytes / 16;
  return pieces > 1 ? address ^ (address >> 7 & (pieces - 1)) << 4 : address;
}

/// @param coordinates of the box's first element, one for each dimension
void cp_async_bulk_tensor_load(void* shared, const TensorMap* map, const int* coordinates, std::uint64_t* barrier);
/// @param mask a bit for each block of the cluster that gets the box
void cp_async_bulk_tensor_load_multicast(void* shared, const TensorMap* map, const int* coordinates, std::uint64_t* barrier,
                                         unsigned mask);
/// Into L2 alone.
void cp_async_bulk_prefetch_tensor(const TensorMap* map, const int* coordinates);
void cp_async_bulk_tensor_store(const TensorMap* map, const int* coordinates, const void* shared);
void cp_async_bulk_load(void* shared, const void* global, unsigned bytes, std::uint64_t* barrier);
void cp_async_bulk_store(void* global, const void* shared, unsigned bytes);
void cp_async_bulk_commit_group();
/// @param read only the sources have been read
void cp_async_bulk_wait_group(unsigned groups, bool read);

}  // namespace interpreter

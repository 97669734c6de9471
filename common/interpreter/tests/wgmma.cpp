/// @file
/// wgmma: layouts of matrices in shared memory, its order, and what goes wrong.
#include "common/device/wgmma.cuh"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "common/device/bulk_copy.cuh"
#include "common/interpreter/tests/orders.h"
#include "common/interpreter/tests/planted.h"

using device::Buffer;
using device::launch;
using device::Major;
using device::Mbarrier;
using device::Swizzle;
using device::TensorMap;

namespace {

// -------------------------------------------------------------------------------------------------------------- layouts
constexpr int kM = 64, kK = 64;

// Where element (row, k) of a matrix of `rows` rows and kK columns lies, in elements; row is m or n. As
// wgmma_descriptor() says it, in words of its own: patterns of 8 rows, those along k side by side.
template <Swizzle kSwizzle, Major kMajor>
__device__ int place(int row, int k, int rows) {
  constexpr int kWidth = kSwizzle == Swizzle::kNone ? 8 : static_cast<int>(kSwizzle) / 2;
  const int outer = kMajor == Major::kK ? row : k, inner = kMajor == Major::kK ? k : row;  // rows of the pattern, and along them
  const int outers = kMajor == Major::kK ? rows : kK;
  const int pattern = inner / kWidth * (outers / 8) + outer / 8;  // number of the pattern
  const int line = pattern * 8 + outer % 8;
  int piece = inner % kWidth / 8;
  constexpr int kPieces = kWidth / 8;
  // A pattern's rows are narrower than a line of 128 bytes where the swizzle is: the lines' numbers count.
  if (kPieces > 1) piece ^= line * kWidth / 64 % kPieces;
  return line * kWidth + piece * 8 + inner % 8;
}

template <Swizzle kSwizzle, Major kMajor>
__device__ uint64_t descriptor(const __half* matrix, int rows, int k) {
  constexpr int kWidth = kSwizzle == Swizzle::kNone ? 8 : static_cast<int>(kSwizzle) / 2;
  const uint32_t pattern = 8 * kWidth * 2;  // bytes
  const uint32_t next_inner = pattern * (kMajor == Major::kK ? rows : kK) / 8;
  const __half* const first = matrix + place<kSwizzle, kMajor>(0, k, rows) * (kMajor == Major::kMN || kSwizzle == Swizzle::kNone) +
                              (kMajor == Major::kK && kSwizzle != Swizzle::kNone
                                   ? k / kWidth * (next_inner / 2) + k % kWidth
                                   : 0);
  const bool swapped = kMajor == Major::kMN && kSwizzle == Swizzle::kNone;
  return device::wgmma_descriptor(first, kSwizzle, swapped ? pattern : next_inner, swapped ? next_inner : pattern);
}

template <Swizzle kSwizzle, Major kMajorA, Major kMajorB, int kN>
__global__ void multiply(const __half* a, const __half* b, float* c) {
  __half* const tile_a = device::dynamic_smem<__half>();
  __half* const tile_b = tile_a + kM * kK;
  for (unsigned i = threadIdx.x; i < kM * kK; i += blockDim.x)
    tile_a[place<kSwizzle, kMajorA>(static_cast<int>(i) / kK, static_cast<int>(i) % kK, kM)] = a[i];
  for (unsigned i = threadIdx.x; i < kN * kK; i += blockDim.x)
    tile_b[place<kSwizzle, kMajorB>(static_cast<int>(i) / kK, static_cast<int>(i) % kK, kN)] = b[i];
  device::fence_proxy_async();
  __syncthreads();
  float d[kN / 2];
  device::wgmma_fence();
  for (int k = 0; k < kK; k += 16)
    device::wgmma_m64k16<__half, kN, kMajorA, kMajorB>(d, descriptor<kSwizzle, kMajorA>(tile_a, kM, k),
                                                       descriptor<kSwizzle, kMajorB>(tile_b, kN, k), k > 0);
  device::wgmma_commit_group();
  device::wgmma_wait_group<0>();
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (unsigned j = 0; j < kN / 8; ++j)
    for (unsigned i = 0; i < 4; ++i)
      c[(warp * 16 + lane / 4 + i / 2 * 8) * kN + j * 8 + lane % 4 * 2 + i % 2] = d[4 * j + i];
}

// Small integers: every sum is exact.
std::vector<__half> random_matrix(int rows, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<__half> matrix(static_cast<std::size_t>(rows) * kK);
  for (__half& x : matrix) x = __half(static_cast<float>(random() % 9) - 4);
  return matrix;
}

template <Swizzle kSwizzle, Major kMajorA, Major kMajorB, int kN>
void check_layout() {
  CAPTURE(static_cast<int>(kSwizzle));
  CAPTURE(static_cast<int>(kMajorA));
  CAPTURE(static_cast<int>(kMajorB));
  CAPTURE(kN);
  const std::vector<__half> a = random_matrix(kM, 1), b = random_matrix(kN, 2);
  const Buffer<__half> a_there(a, "a"), b_there(b, "b");
  const Buffer<float> c(kM * kN, "c");
  launch(multiply<kSwizzle, kMajorA, kMajorB, kN>, 1, 128, (kM + kN) * kK * sizeof(__half), a_there.data(), b_there.data(), c.data());
  const std::vector<float> got = c.download();
  for (int i = 0; i < kM; ++i)
    for (int j = 0; j < kN; ++j) {
      float expected = 0;
      for (int k = 0; k < kK; ++k) expected += static_cast<float>(a[i * kK + k]) * static_cast<float>(b[j * kK + k]);
      REQUIRE(got[i * kN + j] == expected);
    }
}

template <Swizzle kSwizzle, int kN>
void check_majors() {
  check_layout<kSwizzle, Major::kK, Major::kK, kN>();
  check_layout<kSwizzle, Major::kK, Major::kMN, kN>();
  check_layout<kSwizzle, Major::kMN, Major::kK, kN>();
  check_layout<kSwizzle, Major::kMN, Major::kMN, kN>();
}

}  // namespace

TEST_CASE("matrices of all layouts are multiplied") {
  check_majors<Swizzle::k128, 64>();
  check_majors<Swizzle::k64, 128>();
  check_majors<Swizzle::k32, 64>();
  check_majors<Swizzle::kNone, 64>();
  in_all_orders([] { check_layout<Swizzle::k128, Major::kK, Major::kMN, 256>(); });
}

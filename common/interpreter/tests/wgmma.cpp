/// @file
/// wgmma: layouts of matrices in shared memory, its order, and what goes wrong.
#include "common/device/wgmma.cuh"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "common/device/bulk_copy.cuh"
#include "common/interpreter/tests/orders.h"
#include "common/interpreter/tests/wgmma_layouts.h"
#ifndef __CUDACC__
#include "common/interpreter/count/teamwork.h"
#include "common/interpreter/count/under_way.h"
#include "common/interpreter/tests/labelled.h"
#endif

using device::Buffer;
using device::launch;
using device::Major;
using device::Mbarrier;
using device::Swizzle;
using device::TensorMap;
using wgmma_layouts::descriptor, wgmma_layouts::place;
using wgmma_layouts::kM, wgmma_layouts::kK;

namespace {

// -------------------------------------------------------------------------------------------------------------- layouts
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
    for (unsigned i = 0; i < 4; ++i) c[(warp * 16 + lane / 4 + i / 2 * 8) * kN + j * 8 + lane % 4 * 2 + i % 2] = d[4 * j + i];
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
  launch(multiply<kSwizzle, kMajorA, kMajorB, kN>, 1, 128, (kM + kN) * kK * sizeof(__half), a_there.data(), b_there.data(),
         c.data());
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

// --------------------------------------------------------------------------------------------------------------- its order
namespace {

enum Plant {
  kRight,
  kNoProxyFence,
  kMbarrierFence,
  kNoFence,
  kTouchedSinceFence,
  kReadsEarly,
  kZeroesEarly,
  kCopiesEarly,
  kNoCommit,
  kWaitsForAllButOne,
  kExitsUnderWay,
  kOverwritesMatrix,
  kThreeWarps,
  kWrongStride,
  kFirstRowIsOne,
  kOtherDescriptor,
  kWarpsOwnRows,
  kNotAllWritten,
};

constexpr int kN = 64;

// Two products of two accumulators each, in two groups: the first pair is stored while the second one is multiplied.
__global__ void two_groups(const __half* a, const __half* b, float* c, Plant plant) {
  __half* const tile_a = device::dynamic_smem<__half>();
  __half* const tile_b = tile_a + (kM + 8) * kK;
  const int rows = plant == kNotAllWritten ? kM - 1 : kM;
  for (int i = static_cast<int>(threadIdx.x); i < rows * kK; i += static_cast<int>(blockDim.x))
    tile_a[place<Swizzle::k128, Major::kK>(i / kK, i % kK, kM)] = a[i];  // <- write
  for (int i = static_cast<int>(threadIdx.x); i < kN * kK; i += static_cast<int>(blockDim.x))
    tile_b[place<Swizzle::k128, Major::kK>(i / kK, i % kK, kN)] = b[i];
  if (plant == kMbarrierFence)
    device::fence_mbarrier_init();
  else if (plant != kNoProxyFence)
    device::fence_proxy_async();
  __syncthreads();
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto store = [&](const float(&d)[kN / 2], int which) {
    for (unsigned i = 0; i < kN / 2; ++i)
      c[which * kM * kN + (warp * 16 + lane / 4 + i / 2 % 2 * 8) * kN + i / 4 * 8 + lane % 4 * 2 + i % 2] = d[i];  // <- store
  };
  const uint64_t descriptor_a =
      device::wgmma_descriptor(tile_a + (plant == kFirstRowIsOne ? kK : 0), Swizzle::k128, 0, plant == kWrongStride ? 512 : 1024);
  const uint64_t own_rows = plant == kWarpsOwnRows && warp == 2 ? 8 * kK * 2 / 16 : 0;
  const uint64_t descriptor_b = device::wgmma_descriptor(tile_b, Swizzle::k128, 0, 1024);
  const uint64_t next = plant == kOtherDescriptor && threadIdx.x % 32 == 5 ? 4 : 2;  // 32 bytes, in units of 16
  float d[kN / 2], e[kN / 2];
  if (plant != kNoFence) device::wgmma_fence();
  if (plant == kThreeWarps && warp == 3) return;
  for (unsigned i = 0; i < 4; ++i)
    device::wgmma_m64k16<__half, kN>(d, descriptor_a + own_rows + i * next, descriptor_b + i * 2, i > 0);  // <- d
  if (plant != kNoCommit) device::wgmma_commit_group();
  for (unsigned i = 0; i < 4; ++i) device::wgmma_m64k16<__half, kN>(e, descriptor_b + i * 2, descriptor_a + i * 2, i > 0);  // <- e
  device::wgmma_commit_group();
  const bool early = plant == kReadsEarly || plant == kWaitsForAllButOne;
  if (early) store(e, 1);
  if (plant == kZeroesEarly) std::memset(e, 0, sizeof e);  // <- zero
  if (plant == kCopiesEarly) std::memcpy(d, e, sizeof e);  // <- copy
  device::wgmma_wait_group<1>();
  store(d, 0);
  if (plant == kOverwritesMatrix) tile_a[threadIdx.x] = __half(0.0f);  // <- overwrite
  if (plant == kExitsUnderWay) return;
  if (plant != kNoCommit) device::wgmma_wait_group<0>();
  if (!early) store(e, 1);
  if (plant == kTouchedSinceFence) device::wgmma_m64k16<__half, kN>(e, descriptor_b, descriptor_a, true);  // <- again
}

std::vector<float> run_two_groups(Plant plant) {
  const Buffer<__half> a(random_matrix(kM, 1), "a"), b(random_matrix(kN, 2), "b");
  const Buffer<float> c(2 * kM * kN, "c");
  launch(two_groups, 1, 128, (kM + 8 + kN) * kK * sizeof(__half), a.data(), b.data(), c.data(), plant);
  return c.download();
}

}  // namespace

TEST_CASE("a group is stored while the next one is multiplied") {
  in_all_orders([] {
    const std::vector<float> c = run_two_groups(kRight);
    const std::vector<__half> a = random_matrix(kM, 1), b = random_matrix(kN, 2);
    for (int i = 0; i < kM; ++i)
      for (int j = 0; j < kN; ++j) {
        float expected = 0;
        for (int k = 0; k < kK; ++k) expected += static_cast<float>(a[i * kK + k]) * static_cast<float>(b[j * kK + k]);
        REQUIRE(c[i * kN + j] == expected);
        REQUIRE(c[kM * kN + j * kN + i] == expected);  // the transposed product
      }
  });
}

#ifndef __CUDACC__
// clang gives a thread's own variables no hooks: there, who touches accumulators too early sees NaN, or leaves them under way.
#ifdef __clang__
constexpr bool kSeesAccumulators = false;
#else
constexpr bool kSeesAccumulators = true;
#endif

TEST_CASE("what goes wrong around wgmma is reported") {
  using enum interpreter::Check;
  const std::string shared = "dynamic shared memory";
  const auto caught = [](Plant plant, interpreter::Check check, const std::string& variable, const std::string& says,
                         const std::vector<std::string>& at) {
    CAPTURE(plant);
    labelled::must_be_caught(
        {.kernel = "two_groups", .check = check, .variable = variable, .says = {says}, .at = at},
        [&] { return !run_two_groups(plant).empty(); }, __FILE__);
  };
  caught(kNoProxyFence, kRacecheck, shared, "no fence.proxy.async between", {"d"});
  caught(kMbarrierFence, kRacecheck, shared, "a fence.mbarrier_init orders mbarrier.init alone", {"d"});
  caught(kNoFence, kRacecheck, "", "without a wgmma.fence", {"d"});
  caught(kExitsUnderWay, kRacecheck, "", "the thread ends while its wgmma is under way", {"e"});
  caught(kOverwritesMatrix, kRacecheck, shared, "wgmma.wait_group", {"d", "e", "overwrite"});
  caught(kThreeWarps, kSynccheck, "", "warp 3 0", {"e"});
  caught(kFirstRowIsOne, kMemcheck, "", "first row is row 1", {"d"});
  caught(kOtherDescriptor, kSynccheck, "", "other descriptors", {"d"});
  caught(kWarpsOwnRows, kSynccheck, "", "of the warpgroup has given", {"d"});
  caught(kNotAllWritten, kInitcheck, shared, "not all 16 bytes have been written", {"d", "e"});
  if (kSeesAccumulators) {
    caught(kTouchedSinceFence, kRacecheck, "", "without a wgmma.fence", {"again"});
    caught(kReadsEarly, kRacecheck, "", "is touched while that is under way", {"store"});
    caught(kZeroesEarly, kRacecheck, "", "accumulator 0 of the wgmma", {"zero"});
    caught(kCopiesEarly, kRacecheck, "", "accumulator 0 of the wgmma", {"copy"});
    caught(kNoCommit, kRacecheck, "", "under way", {"store"});
    caught(kWaitsForAllButOne, kRacecheck, "", "under way", {"store"});
    return;
  }
  caught(kTouchedSinceFence, kRacecheck, "", "the thread ends while its wgmma is under way", {"again"});
  caught(kNoCommit, kRacecheck, "", "the thread ends while its wgmma is under way", {"d", "e"});
  for (const Plant plant : {kReadsEarly, kWaitsForAllButOne})
    in_all_orders([&] {
      const std::vector<float> c = run_two_groups(plant);
      CHECK(std::any_of(c.begin(), c.end(), [](float x) { return std::isnan(x); }));
    });
}
#endif

#ifndef __CUDACC__
namespace {

// One product of a matrix in dynamic shared memory and one in a variable, of which `beyond` begins 8 rows too late.
__global__ void reads_beyond(bool dynamic_is_a, char beyond) {
  constexpr int kEnd = 8;                                                      // elements
  alignas(1024) __shared__ __half one[kM * kK + kEnd], other[kM * kK + kEnd];  // behind the one that comes first is nothing
  __half* const variable = &one[0] < &other[0] ? one : other;
  __half* const dynamic = device::dynamic_smem<__half>();
  for (int i = static_cast<int>(threadIdx.x); i < kM * kK + kEnd; i += static_cast<int>(blockDim.x)) {
    variable[i] = dynamic[i] = __half(1.0f);
  }
  device::fence_proxy_async();
  __syncthreads();
  const auto skipped = [&](char operand) { return operand == beyond ? 8 * kK : 0; };
  const uint64_t in_dynamic = device::wgmma_descriptor(dynamic + skipped(dynamic_is_a ? 'A' : 'B'), Swizzle::k128, 0, 1024);
  const uint64_t in_variable = device::wgmma_descriptor(variable + skipped(dynamic_is_a ? 'B' : 'A'), Swizzle::k128, 0, 1024);
  float d[kN / 2] = {};
  device::wgmma_fence();
  device::wgmma_m64k16<__half, kN>(d, dynamic_is_a ? in_dynamic : in_variable, dynamic_is_a ? in_variable : in_dynamic, false);
  device::wgmma_commit_group();
  device::wgmma_wait_group<0>();
}

}  // namespace

TEST_CASE("a wgmma that reads out of bounds is told as a read, with the operand") {
  for (const bool dynamic_is_a : {false, true})
    for (const char beyond : {'A', 'B'}) {
      CAPTURE(dynamic_is_a);
      CAPTURE(beyond);
      in_all_orders([&] {
        std::string said = "nothing";
        try {
          launch(reads_beyond, 1, 128, (kM * kK + 8) * sizeof(__half), dynamic_is_a, beyond);
        } catch (const interpreter::KernelError& error) {
          said = error.diagnosis.what;
          CHECK(error.diagnosis.check == interpreter::Check::kMemcheck);
        }
        CAPTURE(said);
        CHECK(said.starts_with(std::string("wgmma reads its operand ") + beyond + " out of bounds: "));
        CHECK((said.find("dynamic shared memory") != std::string::npos) == (dynamic_is_a == (beyond == 'A')));
      });
    }
}
#endif

TEST_CASE("a wrong stride shows in the result") {
  in_all_orders([] { CHECK(run_two_groups(kWrongStride) != run_two_groups(kRight)); });
}

// ----------------------------------------------------------------------------------------- with the copy engine's matrices
namespace {

enum Fault {
  kNone,
  kOneArrives,
  kMultipliersMeet,
  kRolesMeet,
  kOneGetsNone,
  kOtherSwizzle,
  kFullNotWaitedFor,
  kEmptyTooEarly,
  kOneArrivesTooEarly,
  kTooManyRegisters,
  kIncBelow
};

constexpr int kRows = 2 * kM;

// C = A Bᵀ, 128 x 64, k in slices of 64: one thread copies, two warpgroups multiply.
__launch_bounds__(384) __global__ void ring(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                                            float* c, int slices, Fault fault) {
  constexpr int kStages = 2;
  __half* const tiles = device::dynamic_smem<__half>();
  __shared__ Mbarrier full[kStages], empty[kStages];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool one_of_four = fault == kOneArrives || fault == kOneArrivesTooEarly,
             too_early = fault == kEmptyTooEarly || fault == kOneArrivesTooEarly;
  const bool arrives = lane == 7 && (!one_of_four || warp % 4 == 2);
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      device::mbarrier_init(&full[s], 1);
      device::mbarrier_init(&empty[s], one_of_four ? 2 : 8);
    }
    device::fence_mbarrier_init();
  }
  __syncthreads();
  const auto tile_a = [&](int stage) { return tiles + stage * (kRows + kN) * kK; };
  const auto tile_b = [&](int stage) { return tile_a(stage) + kRows * kK; };
  if (warp >= 8) {
    device::setmaxnreg_dec<40>();
    for (int slice = 0; threadIdx.x == 256 && slice < slices; ++slice) {
      const int stage = slice % kStages;
      device::mbarrier_wait_parity(&empty[stage], slice / kStages % 2 ^ 1);
      device::mbarrier_arrive_expect_tx(&full[stage], (kRows + kN) * kK * sizeof(__half));
      device::cp_async_bulk_tensor_2d(tile_a(stage), &map_a, slice * kK, 0, &full[stage]);  // <- copy
      device::cp_async_bulk_tensor_2d(tile_b(stage), &map_b, slice * kK, 0, &full[stage]);
    }
    __syncwarp();
    if (fault == kRolesMeet && warp == 8) device::barrier_arrive(3, 160);
    return;
  }
  if (fault == kTooManyRegisters)
    device::setmaxnreg_inc<240>();  // <- more
  else if (fault != kOneGetsNone || warp < 4)
    device::setmaxnreg_inc<232>();
  float d[kN / 2];
  for (int slice = 0; slice < slices; ++slice) {
    const int stage = slice % kStages;
    if (fault != kFullNotWaitedFor) device::mbarrier_wait_parity(&full[stage], slice / kStages % 2);  // <- wait
    const uint64_t a = device::wgmma_descriptor(tile_a(stage) + warp / 4 * kM * kK, Swizzle::k128, 0, 1024);
    const uint64_t b = device::wgmma_descriptor(tile_b(stage), Swizzle::k128, 0, 1024);
    device::wgmma_fence();
    for (unsigned i = 0; i < 4; ++i) device::wgmma_m64k16<__half, kN>(d, a + i * 2, b + i * 2, slice + i > 0);  // <- multiply
    device::wgmma_commit_group();
    if (too_early && arrives) device::mbarrier_arrive(&empty[stage]);
    device::wgmma_wait_group<0>();  // <- wait for products
    if (!too_early && arrives) device::mbarrier_arrive(&empty[stage]);
  }
  if (fault == kMultipliersMeet) device::barrier_sync(3, 256);
  if (fault == kRolesMeet && warp < 4) device::barrier_sync(3, 160);
  if (fault == kIncBelow) device::setmaxnreg_inc<128>();  // <- fewer
  for (unsigned i = 0; i < kN / 2; ++i) c[(warp * 16 + lane / 4 + i / 2 % 2 * 8) * kN + i / 4 * 8 + lane % 4 * 2 + i % 2] = d[i];
}

std::vector<__half> random_integers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<__half> values(count);
  for (__half& x : values) x = __half(static_cast<float>(random() % 9) - 4);
  return values;
}

struct Problem {
  explicit Problem(int slices)
      : slices(slices), k(static_cast<unsigned>(slices * kK)), a(random_integers(kRows * k, 1)), b(random_integers(kN * k, 2)) {}
  int slices;
  unsigned k;
  std::vector<__half> a, b;
};

std::vector<float> expected_of(const Problem& problem) {
  std::vector<float> c(kRows * kN);
  for (unsigned i = 0; i < kRows; ++i)
    for (unsigned j = 0; j < kN; ++j)
      for (unsigned x = 0; x < problem.k; ++x)
        c[i * kN + j] += static_cast<float>(problem.a[i * problem.k + x]) * static_cast<float>(problem.b[j * problem.k + x]);
  return c;
}

std::vector<float> run_ring(const Problem& problem, Fault fault) {
  const Buffer<__half> a(problem.a, "a"), b(problem.b, "b");
  const Buffer<float> c(kRows * kN, "c");
  const auto map = [&](const Buffer<__half>& matrix, unsigned rows, Swizzle swizzle) {
    return device::make_tensor_map<__half>({.data = matrix.data(),
                                            .rows = rows,
                                            .columns = problem.k,
                                            .row_stride = problem.k,
                                            .box_rows = rows,
                                            .box_columns = kK,
                                            .swizzle = swizzle});
  };
  const TensorMap map_a = map(a, kRows, fault == kOtherSwizzle ? Swizzle::kNone : Swizzle::k128);
  launch(ring, 1, 384, 2 * (kRows + kN) * kK * sizeof(__half), map_a, map(b, kN, Swizzle::k128), c.data(), problem.slices, fault);
  return c.download();
}

}  // namespace

TEST_CASE("a thread copies, two warpgroups multiply, in a ring") {
  for (const int slices : {1, 2, 3, 7}) {
    const Problem problem(slices);
    const std::vector<float> expected = expected_of(problem);
    in_all_orders([&] { CHECK(run_ring(problem, kNone) == expected); });
#ifndef __CUDACC__
    // Two stages, two boxes each; of the stage that somebody waits for, boxes land at once. A group waits for the next one.
    interpreter::MostUnderWay& most = interpreter::most_under_way();
    most.forget();
    in_all_orders([&] { run_ring(problem, kNone); });
    CHECK(most.copies >= (slices > 1 ? 2 : 1));
    CHECK(most.copies <= static_cast<unsigned>(2 * std::min(slices, 2)));
    CHECK(most.groups == 1);
    CHECK(most.mbarriers == 4);
    // The same in every order: a stage's boxes begin when those of the other one may be under way. Each slice is waited for.
    interpreter::EachUnderWay& each = interpreter::each_under_way();
    in_all_orders([&] {
      each.forget();
      run_ring(problem, kNone);
      CHECK(each.fewest_copies == (slices > 2 ? 3 : interpreter::EachUnderWay::kNever));
      CHECK(each.lonely_products == static_cast<unsigned>(8 * slices));
      CHECK(each.fewest_registers == 232);
      each.forget();
      CHECK(run_ring(problem, kOneGetsNone) == expected);
      CHECK(each.fewest_registers == 0);
    });
    interpreter::Teamwork& team = interpreter::teamwork();
    for (const Fault fault : {kMultipliersMeet, kRolesMeet})
      in_all_orders([&] {
        team.forget();
        CHECK(run_ring(problem, fault) == expected);
        CHECK(team.named == 1);
        CHECK(team.named_of_roles == (fault == kRolesMeet ? 1 : 0));
      });
#endif
    // A wgmma is one operation of four warps: one of them may give the stage back for all.
    in_all_orders([&] { CHECK(run_ring(problem, kOneArrives) == expected); });
  }
}

#ifndef __CUDACC__
TEST_CASE("what goes wrong in a ring of copies and wgmma is reported") {
  using enum interpreter::Check;
  const std::string shared = "dynamic shared memory";
  const auto caught = [problem = Problem(5)](Fault fault, const labelled::Bug& bug) {
    CAPTURE(fault);
    labelled::must_be_caught(
        bug, [&] { return !run_ring(problem, fault).empty(); }, __FILE__);
  };
  // The copy is under way, or has not begun.
  caught(kFullNotWaitedFor, {.kernel = "ring",
                             .check = kRacecheck,
                             .variable = shared,
                             .at = {"multiply"},
                             .or_check = kInitcheck,
                             .or_at = {"multiply"}});
  caught(kOtherSwizzle, {.kernel = "ring",
                         .check = kMemcheck,
                         .variable = shared,
                         .says = {"with a swizzle of 128 bytes, but the copy at"},
                         .at = {"multiply"}});
  for (const Fault fault : {kEmptyTooEarly, kOneArrivesTooEarly})
    caught(fault,
           {.kernel = "ring",
            .check = kRacecheck,
            .variable = shared,
            .says = {"read by thread (", ", by a wgmma that may still be under way, then written by the cp.async.bulk.tensor",
                     "when a wgmma.wait_group has waited for the product"},
            .at = {"copy"}});
  caught(kTooManyRegisters, {.kernel = "ring",
                             .check = kSynccheck,
                             .says = {"for 240 registers a thread: it has 168", "by setmaxnreg.dec"},
                             .at = {"more", "wait", "wait for products"}});
  caught(kIncBelow, {.kernel = "ring",
                     .check = kSynccheck,
                     .says = {"setmaxnreg.inc to 128 registers, where the thread has 232"},
                     .at = {"fewer"}});
}
#endif

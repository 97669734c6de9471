#include "common/interpreter/tests/wgmma_cases.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "common/device/wgmma.cuh"
#include "common/interpreter/instructions/mma_model.h"
#include "common/interpreter/tests/wgmma_layouts.h"

namespace wgmma_cases {
namespace {

using device::Major, device::Swizzle;
using ptx_cases::MmaOperands;
using wgmma_layouts::descriptor, wgmma_layouts::kM, wgmma_layouts::kK, wgmma_layouts::place;

// A block's products, one after the other into the same accumulators: their operands, slice of k behind slice.
using Chain = std::vector<MmaOperands>;

// One block per chain of up to kK / 16 products.
template <class T, Swizzle kSwizzle, Major kMajorA, Major kMajorB, int kN>
__global__ void multiply(const std::uint16_t* a, const std::uint16_t* b, const float* c, float* d, int slices, bool accumulates) {
  std::uint16_t* const tile_a = device::dynamic_smem<std::uint16_t>();
  std::uint16_t* const tile_b = tile_a + kM * kK;
  a += blockIdx.x * slices * kM * 16, b += blockIdx.x * slices * kN * 16, c += blockIdx.x * kM * kN, d += blockIdx.x * kM * kN;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  for (int i = thread; i < slices * kM * 16; i += 128)
    tile_a[place<kSwizzle, kMajorA>(i / 16 % kM, i / 16 / kM * 16 + i % 16, kM)] = a[i];
  for (int i = thread; i < slices * kN * 16; i += 128)
    tile_b[place<kSwizzle, kMajorB>(i / 16 % kN, i / 16 / kN * 16 + i % 16, kN)] = b[i];
  device::fence_proxy_async();
  __syncthreads();
  float sum[kN / 2];
  for (int i = 0; i < kN / 2; ++i) sum[i] = c[(warp * 16 + lane / 4 + i / 2 % 2 * 8) * kN + i / 4 * 8 + lane % 4 * 2 + i % 2];
  device::wgmma_fence();
  for (int slice = 0; slice < slices; ++slice)
    device::wgmma_m64k16<T, kN, kMajorA, kMajorB>(sum, descriptor<kSwizzle, kMajorA>(tile_a, kM, slice * 16),
                                                  descriptor<kSwizzle, kMajorB>(tile_b, kN, slice * 16), slice > 0 || accumulates);
  device::wgmma_commit_group();
  device::wgmma_wait_group<0>();
  for (int i = 0; i < kN / 2; ++i) d[(warp * 16 + lane / 4 + i / 2 % 2 * 8) * kN + i / 4 * 8 + lane % 4 * 2 + i % 2] = sum[i];
}

void append_model(std::vector<std::uint32_t>& words, const Chain& chain, int n, bool half, bool accumulates) {
  std::vector<float> d = chain[0].c;
  if (!accumulates) d.assign(d.size(), 0.0f);
  for (const MmaOperands& product : chain)
    for (int row = 0; row < kM; row += 16)
      for (int column = 0; column < n; column += 8) {
        float part[16][8];
        std::uint16_t a[16][16], b[8][16];
        std::memcpy(a, &product.a[static_cast<std::size_t>(row) * 16], sizeof a);
        std::memcpy(b, &product.b[static_cast<std::size_t>(column) * 16], sizeof b);
        for (int i = 0; i < 16; ++i) std::memcpy(part[i], &d[static_cast<std::size_t>((row + i) * n + column)], sizeof part[i]);
        interpreter::multiply_16x8x16(part, a, b, half);
        for (int i = 0; i < 16; ++i) std::memcpy(&d[static_cast<std::size_t>((row + i) * n + column)], part[i], sizeof part[i]);
      }
  for (const float x : d) words.push_back(std::bit_cast<std::uint32_t>(x));
}

class Cases {
 public:
  explicit Cases(bool with_model) : with_model_(with_model) {}
  std::vector<Case> take() { return std::move(cases_); }

  template <class T, int kN, Swizzle kSwizzle = Swizzle::k128, Major kMajorA = Major::kK, Major kMajorB = Major::kK>
  void add(const std::string& what, const std::vector<Chain>& chains, bool accumulates = true) {
    constexpr bool kHalf = std::is_same_v<T, __half>;
    std::vector<std::uint16_t> a, b;
    std::vector<float> c;
    Case one{{std::string("wgmma ") + (kHalf ? "f16" : "bf16") + " n" + std::to_string(kN) + " " + what, {}, 64}, {}};
    for (const Chain& chain : chains) {
      for (const MmaOperands& product : chain) {
        a.insert(a.end(), product.a.begin(), product.a.end());
        b.insert(b.end(), product.b.begin(), product.b.end());
      }
      c.insert(c.end(), chain[0].c.begin(), chain[0].c.end());
      if (with_model_) append_model(one.model, chain, kN, kHalf, accumulates);
    }
    const device::Buffer<std::uint16_t> device_a(a, "a"), device_b(b, "b");
    const device::Buffer<float> device_c(c, "c"), device_d(c.size(), "d");
    device::launch(multiply<T, kSwizzle, kMajorA, kMajorB, kN>, static_cast<unsigned>(chains.size()), 128,
                   (kM + (kN + 63) / 64 * 64) * kK * sizeof(T), device_a.data(), device_b.data(), device_c.data(), device_d.data(),
                   static_cast<int>(chains[0].size()), accumulates);
    device::synchronize();
    for (const float x : device_d.download()) one.result.words.push_back(std::bit_cast<std::uint32_t>(x));
    cases_.push_back(std::move(one));
  }

 private:
  bool with_model_;
  std::vector<Case> cases_;
};

// ------------------------------------------------------------------------------------------------------------- families
std::vector<Chain> chains_of(bool half, int family, int n, int chains, int products) {
  std::vector<Chain> all(static_cast<std::size_t>(chains));
  for (int i = 0; i < chains; ++i)
    for (int k = 0; k < products; ++k)
      all[static_cast<std::size_t>(i)].push_back(ptx_cases::mma_operands(half, family, 1000 + i * products + k, kM, n));
  return all;
}

template <class T>
void add_families(Cases& cases) {
  constexpr bool kHalf = std::is_same_v<T, __half>;
  for (int family = 0; family < ptx_cases::kMmaFamilies; ++family) {
    const std::string name = ptx_cases::mma_family_name(family);
    cases.add<T, 64>(name, chains_of(kHalf, family, 64, 8, 1));
    cases.add<T, 64>(name + " from 0", chains_of(kHalf, family, 64, 2, 1), false);
    cases.add<T, 64>(name + " four times", chains_of(kHalf, family, 64, 2, 4));
  }
}

// -------------------------------------------------------------------------------------------------------------- layouts
constexpr int kAnyExponent = 1;  // the family

template <class T, int kN, Swizzle kSwizzle, Major kMajorA, Major kMajorB>
void add_layout(Cases& cases) {
  const auto name = [](Major major) { return major == Major::kK ? "K" : "MN"; };
  const auto chains = chains_of(std::is_same_v<T, __half>, kAnyExponent, kN, 1, kK / 16);
  cases.add<T, kN, kSwizzle, kMajorA, kMajorB>(
      std::string(name(kMajorA)) + " " + name(kMajorB) + " swizzle " + std::to_string(static_cast<int>(kSwizzle)), chains);
}
template <class T, int kN, Swizzle kSwizzle>
void add_majors(Cases& cases) {
  add_layout<T, kN, kSwizzle, Major::kK, Major::kK>(cases);
  add_layout<T, kN, kSwizzle, Major::kMN, Major::kMN>(cases);
}
template <Swizzle kSwizzle>
void add_swizzle(Cases& cases) {
  add_majors<__half, 64, kSwizzle>(cases);
  add_layout<__half, 64, kSwizzle, Major::kK, Major::kMN>(cases);
  add_layout<__half, 64, kSwizzle, Major::kMN, Major::kK>(cases);
  add_layout<__nv_bfloat16, 64, kSwizzle, Major::kMN, Major::kMN>(cases);
}
template <int kN>
void add_width(Cases& cases) {
  add_majors<__half, kN, Swizzle::k128>(cases);
  add_majors<__nv_bfloat16, kN, Swizzle::k128>(cases);
}

// --------------------------------------------------------------------------------------------------------------- probes
// What a sum keeps: two terms of magnitude 1, and one or more far below them. The two cancel, or they do not. Which terms are
// summed at once shows in whether small ones survive; how many bits are kept, in how small these may be; the rounding in the last
// bit. Column j has small terms of the magnitude small_of(j), rows have the large ones at different k.
struct Signs {
  float first, second, small;
  const char* name;
};
constexpr Signs kSigns[] = {
    {1, -1, 1, "+1 -1 +s"}, {1, -1, -1, "+1 -1 -s"}, {1, 1, 1, "+1 +1 +s"}, {-1, -1, -1, "-1 -1 -s"}, {-1, -1, 1, "-1 -1 +s"}};
enum class Probe { kProducts, kAccumulatorIsLarge, kAccumulatorIsSmall, kManySmall };

constexpr int kMagnitudes = 22;
constexpr float kSmallFactor = 0x1p-8f;  // so that neither factor is too small for __half
// 2^0 to 2^-21, then 1.5 and 1.75 times as much; times kSmallFactor.
float small_of(int column) {
  constexpr float kSignificands[] = {1, 1.5f, 1.75f};
  return std::ldexp(kSignificands[column / kMagnitudes], -(column % kMagnitudes));
}

template <class T>
std::uint16_t bits_of(float x) {
  const T number(x);
  std::uint16_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

// One tile of 64 x 64 sums. Row i has the large terms at k = i / 4 and some places behind; the small one is at `at`.
template <class T>
MmaOperands probe(Probe kind, const Signs& signs, int at) {
  constexpr int kDistances[] = {1, 2, 4, 8}, kN = 64;
  MmaOperands tile;
  tile.a.assign(kM * 16, 0), tile.b.assign(kN * 16, bits_of<T>(1)), tile.c.assign(kM * kN, 0);
  const bool many = kind == Probe::kManySmall;
  for (int i = 0; i < kM; ++i) {
    const auto a = [&](int k) -> std::uint16_t& { return tile.a[static_cast<std::size_t>(i * 16 + k % 16)]; };
    const int first = many ? at : i / 4, second = many ? at + 5 : i / 4 + kDistances[i % 4];
    if (many)  // 0 to 14 small ones, at the places behind the first
      for (int k = 1, count = 0; k < 16 && count < i % 15; ++k)
        if (k != 5) a(first + k) = bits_of<T>(signs.small * kSmallFactor), ++count;
    if (kind == Probe::kProducts || kind == Probe::kAccumulatorIsLarge) a(at) = bits_of<T>(signs.small * kSmallFactor);
    // Where a large one takes the small one's place it is as small: b decides.
    if (kind != Probe::kAccumulatorIsLarge) a(first) = bits_of<T>(signs.first);
    a(second) = bits_of<T>(signs.second);
  }
  for (int j = 0; j < kN; ++j) {
    for (int k = 0; k < 16; ++k) {
      const bool small = many ? k != at % 16 && k != (at + 5) % 16 : kind != Probe::kAccumulatorIsSmall && k == at;
      if (small) tile.b[static_cast<std::size_t>(j * 16 + k)] = bits_of<T>(small_of(j));
    }
    for (int i = 0; i < kM; ++i) {
      float& c = tile.c[static_cast<std::size_t>(i * kN + j)];
      if (kind == Probe::kAccumulatorIsLarge) c = signs.first;
      if (kind == Probe::kAccumulatorIsSmall) c = signs.small * kSmallFactor * small_of(j);
    }
  }
  return tile;
}

template <class T>
void add_probes(Cases& cases) {
  for (const Signs& signs : kSigns) {
    const auto add = [&](const char* name, Probe kind, const std::vector<int>& places) {
      std::vector<Chain> chains;
      for (const int at : places) chains.push_back({probe<T>(kind, signs, at)});
      cases.add<T, 64>(std::string(name) + " " + signs.name, chains);
    };
    const std::vector<int> places = {0, 3, 6, 9, 12, 15};
    add("two large products and a small one", Probe::kProducts, places);
    add("a large accumulator, a large product and a small one", Probe::kAccumulatorIsLarge, places);
    add("two large products and a small accumulator", Probe::kAccumulatorIsSmall, {0});
    add("two large products and many small ones", Probe::kManySmall, places);
  }
}

}  // namespace

std::vector<Case> run(bool with_model) {
  Cases cases(with_model);
  add_families<__half>(cases);
  add_families<__nv_bfloat16>(cases);
  add_swizzle<Swizzle::kNone>(cases);
  add_swizzle<Swizzle::k32>(cases);
  add_swizzle<Swizzle::k64>(cases);
  add_swizzle<Swizzle::k128>(cases);
  add_width<8>(cases);
  add_width<16>(cases);
  add_width<32>(cases);
  add_width<72>(cases);
  add_width<96>(cases);
  add_width<128>(cases);
  add_width<144>(cases);
  add_width<160>(cases);
  add_width<192>(cases);
  add_width<200>(cases);
  add_width<224>(cases);
  add_width<256>(cases);
  add_probes<__half>(cases);
  add_probes<__nv_bfloat16>(cases);
  return cases.take();
}

}  // namespace wgmma_cases

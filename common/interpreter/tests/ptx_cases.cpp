#include "common/interpreter/tests/ptx_cases.h"

#include <bit>
#include <cstdio>
#include <cstring>

#include "common/device/ptx.cuh"
#include "common/interpreter/tests/matrices.h"
#include "common/interpreter/tests/random.h"

namespace ptx_cases {
namespace {

constexpr int kMmaCases = 256;  // of each family

// The layout of an element type.
struct Format {
  int exponent_bits, mantissa_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int top() const { return (1 << exponent_bits) - 1; }  // exponent field of infinity and NaN
  // Random sign and mantissa, the given exponent field.
  std::uint32_t number(Random& random, int field) const {
    const auto sign = static_cast<std::uint32_t>(random.below(2)), mantissa = static_cast<std::uint32_t>(random.bits());
    return (sign << exponent_bits | static_cast<std::uint32_t>(field)) << mantissa_bits | (mantissa & ((1u << mantissa_bits) - 1));
  }
  std::uint32_t zero(Random& random) const {
    return static_cast<std::uint32_t>(random.below(2)) << (exponent_bits + mantissa_bits);
  }
  std::uint32_t infinity(Random& random) const { return zero(random) | static_cast<std::uint32_t>(top()) << mantissa_bits; }
  std::uint32_t integer(Random& random, int limit) const {
    const int value = random.between(-limit, limit);
    if (value == 0) return zero(random);
    const unsigned magnitude = static_cast<unsigned>(std::abs(value));
    const int exponent = std::bit_width(magnitude) - 1;
    const std::uint32_t mantissa = (magnitude << mantissa_bits >> exponent) & ((1u << mantissa_bits) - 1);
    return (value < 0 ? 1u << (exponent_bits + mantissa_bits) : 0u) |
           static_cast<std::uint32_t>(exponent + bias()) << mantissa_bits | mantissa;
  }
};
constexpr Format kHalf{5, 10}, kBfloat16{8, 7}, kFloat{8, 23};

enum Family {
  kAboutOne,
  kAnyExponent,
  kSpecials,
  kDenormals,
  kZeros,
  kIntegers,
  kCancellation,
  kOverflow,
  kWideAccumulator,
  kOneProduct,
  kTwoProducts,
  kSmallResults,
};
const char* const kFamilyNames[kMmaFamilies] = {
    "about one",    "any exponent", "NaN and infinity", "denormals",        "signed zeros",
    "integers",     "cancellation", "overflow",         "wide accumulator", "accumulator and one product",
    "two products", "small results"};

std::uint32_t element(Random& random, const Format& format, int family, int k, int only, int also) {
  const bool half = format.exponent_bits == 5;
  switch (family) {
    case kAboutOne:
    case kWideAccumulator: return format.number(random, format.bias() - random.below(4));
    case kAnyExponent: return format.number(random, random.below(format.top()));
    case kSpecials:
      if (random.one_in(24)) return random.one_in(2) ? format.infinity(random) : format.number(random, format.top());
      return random.one_in(8) ? format.zero(random) : format.number(random, random.below(format.top()));
    case kDenormals: return random.one_in(4) ? format.number(random, random.between(1, 3)) : format.number(random, 0);
    case kZeros: return random.one_in(24) ? format.integer(random, 3) : format.zero(random);
    case kIntegers: return format.integer(random, 16);
    case kCancellation: return format.number(random, format.bias() + random.between(-8, 8));
    case kOverflow:
      return half ? format.number(random, format.top() - random.between(1, 2))
                  : format.number(random, format.bias() + random.between(60, 66));
    case kOneProduct: return k == only ? format.number(random, format.bias() + random.between(-9, 9)) : format.zero(random);
    case kTwoProducts:
      return k == only || k == also ? format.number(random, format.bias() + random.between(-9, 9)) : format.zero(random);
    case kSmallResults:
      return half ? format.number(random, random.below(6)) : format.number(random, format.bias() - random.between(55, 72));
  }
  return 0;
}

std::uint32_t accumulator(Random& random, const Format& format, int family) {
  const bool half = format.exponent_bits == 5;
  switch (family) {
    case kAboutOne: return kFloat.number(random, 127 + random.between(-3, 3));
    case kAnyExponent: return kFloat.number(random, half ? 127 + random.between(-60, 40) : random.below(255));
    case kSpecials:
      if (random.one_in(8)) return random.one_in(2) ? kFloat.infinity(random) : kFloat.number(random, 255);
      return kFloat.number(random, 127 + random.between(-30, 30));
    case kDenormals: return kFloat.number(random, half ? 127 - random.between(20, 60) : random.below(3));
    case kZeros: return kFloat.zero(random);
    case kIntegers: return kFloat.integer(random, 1000);
    case kCancellation: return kFloat.number(random, 127 + random.between(-20, 20));
    case kOverflow: return kFloat.number(random, random.between(240, 254));
    case kWideAccumulator: return kFloat.number(random, 127 + random.between(-40, 40));
    case kOneProduct: return kFloat.number(random, 127 + random.between(-30, 30));
    case kTwoProducts: return random.one_in(2) ? kFloat.zero(random) : kFloat.number(random, 127 + random.between(-30, 30));
    case kSmallResults: return half ? kFloat.number(random, 127 - random.between(20, 60)) : kFloat.number(random, random.below(30));
  }
  return 0;
}

// ----------------------------------------------------------------------------------------------------------------- mma
// One warp per case, which gathers its fragments element by element as the manual's tables say.
template <class T>
__global__ void multiply(const std::uint16_t* a, const std::uint16_t* b, const float* c, float* d) {
  const int lane = threadIdx.x, group = lane / 4, pair = lane % 4 * 2;
  a += blockIdx.x * 256, b += blockIdx.x * 128, c += blockIdx.x * 128, d += blockIdx.x * 128;
  std::uint32_t fragment_a[4], fragment_b[2];
  for (int i = 0; i < 4; ++i) {
    const std::uint16_t* p = a + (group + i % 2 * 8) * 16 + pair + i / 2 * 8;
    fragment_a[i] = p[0] | static_cast<std::uint32_t>(p[1]) << 16;
  }
  for (int i = 0; i < 2; ++i) {
    const std::uint16_t* p = b + group * 16 + pair + i * 8;
    fragment_b[i] = p[0] | static_cast<std::uint32_t>(p[1]) << 16;
  }
  float sum[4];
  for (int i = 0; i < 4; ++i) sum[i] = c[(group + i / 2 * 8) * 8 + pair + i % 2];
  device::mma_m16n8k16<T>(sum, fragment_a, fragment_b);
  for (int i = 0; i < 4; ++i) d[(group + i / 2 * 8) * 8 + pair + i % 2] = sum[i];
}

template <class T>
Result multiply_all(bool half, int family) {
  std::vector<std::uint16_t> a, b;
  std::vector<float> c;
  for (int number = 0; number < kMmaCases; ++number) {
    const MmaOperands operands = mma_operands(half, family, number);
    a.insert(a.end(), operands.a.begin(), operands.a.end());
    b.insert(b.end(), operands.b.begin(), operands.b.end());
    c.insert(c.end(), operands.c.begin(), operands.c.end());
  }
  const device::Buffer<std::uint16_t> device_a(a, "a"), device_b(b, "b");
  const device::Buffer<float> device_c(c, "c"), device_d(c.size(), "d");
  device::launch(multiply<T>, kMmaCases, 32, 0, device_a.data(), device_b.data(), device_c.data(), device_d.data());
  device::synchronize();
  Result result{std::string("mma ") + (half ? "f16 " : "bf16 ") + mma_family_name(family), {}, 256};
  for (const float x : device_d.download()) result.words.push_back(std::bit_cast<std::uint32_t>(x));
  return result;
}

// ------------------------------------------------------------------------------------------------------------- ldmatrix
template <int kCount, bool kTransposed>
__global__ void load_matrices(const std::uint32_t* bytes, const int* rows, std::uint32_t* out) {
  std::uint32_t* shared = device::dynamic_smem<std::uint32_t>();
  for (int i = threadIdx.x; i < 1024; i += 32) shared[i] = bytes[i];
  __syncthreads();
  const std::uint32_t* row = shared + rows[threadIdx.x] * 4;
  std::uint32_t registers[kCount];
  matrices::load<kCount, kTransposed>(registers, row);
  for (int i = 0; i < kCount; ++i) out[threadIdx.x * kCount + i] = registers[i];
}

template <int kCount, bool kTransposed>
Result load_matrices_anywhere(int number) {
  Random random(1000 + static_cast<std::uint64_t>(number));
  std::vector<std::uint32_t> bytes(1024);
  for (std::uint32_t& word : bytes) word = static_cast<std::uint32_t>(random.bits());
  std::vector<int> rows(32);
  for (int& row : rows) row = random.below(256);
  const device::Buffer<std::uint32_t> device_bytes(bytes, "bytes"), out(32 * kCount, "out");
  const device::Buffer<int> device_rows(rows, "rows");
  device::launch(load_matrices<kCount, kTransposed>, 1, 32, 4096, device_bytes.data(), device_rows.data(), out.data());
  device::synchronize();
  return {"ldmatrix x" + std::to_string(kCount) + (kTransposed ? " trans" : ""), out.download(), 128};
}

// ------------------------------------------------------------------------------------------------------------- cp.async
// Each thread copies once; what lies around the destination must stay.
template <int kSize>
__global__ void copy(const unsigned char* in, unsigned char* out, int source_bytes) {
  unsigned char* shared = device::dynamic_smem<unsigned char>();
  for (int i = threadIdx.x; i < 64 * kSize; i += 32) shared[i] = 0xa5;
  __syncthreads();
  const int element = (threadIdx.x * 7 % 32) * 2;
  if constexpr (kSize == 16)
    device::cp_async_cg_16(shared + element * kSize, in + threadIdx.x * kSize, source_bytes);
  else if constexpr (kSize == 8)
    device::cp_async_ca_8(shared + element * kSize, in + threadIdx.x * kSize, source_bytes);
  else
    device::cp_async_ca_4(shared + element * kSize, in + threadIdx.x * kSize, source_bytes);
  device::cp_async_commit_group();
  device::cp_async_wait_group<0>();
  __syncthreads();
  for (int i = threadIdx.x; i < 64 * kSize; i += 32) out[i] = shared[i];
}

template <int kSize>
Result copy_and_fill(int source_bytes) {
  Random random(2000 + kSize);
  std::vector<unsigned char> in(32 * kSize);
  for (unsigned char& byte : in) byte = static_cast<unsigned char>(random.bits());
  const device::Buffer<unsigned char> device_in(in, "in"), out(64 * kSize, "out");
  device::launch(copy<kSize>, 1, 32, 64 * kSize, device_in.data(), out.data(), source_bytes);
  device::synchronize();
  const std::vector<unsigned char> bytes = out.download();
  Result result{"cp.async " + std::to_string(kSize) + " of " + std::to_string(source_bytes), {}, 16};
  result.words.resize(bytes.size() / 4);
  std::memcpy(result.words.data(), bytes.data(), bytes.size());
  return result;
}

}  // namespace

const char* mma_family_name(int family) { return kFamilyNames[family]; }

MmaOperands mma_operands(bool half, int family, int number, int rows, int columns) {
  const Format& format = half ? kHalf : kBfloat16;
  Random random(static_cast<std::uint64_t>((half ? 1 : 0) + 2 * (family + kMmaFamilies * number)));
  const int only = random.below(16), also = random.below(16);
  const auto factors = [&](int count) {
    std::vector<std::uint16_t> all;
    for (int i = 0; i < count * 16; ++i)
      all.push_back(static_cast<std::uint16_t>(element(random, format, family, i % 16, only, also)));
    return all;
  };
  MmaOperands operands;
  operands.a = factors(rows), operands.b = factors(columns);
  std::vector<std::uint16_t>&a = operands.a, &b = operands.b;
  if (family == kCancellation)  // products in pairs that all but cancel
    for (int k = 0; k < 16; k += 2) {
      for (std::size_t i = k; i < a.size(); i += 16) a[i + 1] = static_cast<std::uint16_t>(a[i] ^ (random.one_in(3) ? 1 : 0));
      for (std::size_t i = k; i < b.size(); i += 16) b[i + 1] = static_cast<std::uint16_t>(b[i] ^ 0x8000);
    }
  for (int i = 0; i < rows * columns; ++i) operands.c.push_back(std::bit_cast<float>(accumulator(random, format, family)));
  return operands;
}

std::string to_row(const Result& result) {
  std::uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a over the words' bytes
  for (const std::uint32_t word : result.words)
    for (int i = 0; i < 4; ++i) hash = (hash ^ (word >> 8 * i & 0xff)) * 0x100000001b3ull;
  char text[64];
  std::snprintf(text, sizeof text, ",%zu,%016llx,", result.words.size(), static_cast<unsigned long long>(hash));
  std::string row = result.name + text;
  for (std::size_t i = 0; i < result.words.size() && i < result.shown; ++i) {
    std::snprintf(text, sizeof text, i ? " %x" : "%x", static_cast<unsigned>(result.words[i]));
    row += text;
  }
  return row;
}

std::vector<Result> run() {
  std::vector<Result> results;
  for (int family = 0; family < kMmaFamilies; ++family) {
    results.push_back(multiply_all<__half>(true, family));
    results.push_back(multiply_all<__nv_bfloat16>(false, family));
  }
  for (int number = 0; number < 2; ++number) {
    results.push_back(load_matrices_anywhere<1, false>(number));
    results.push_back(load_matrices_anywhere<1, true>(number));
    results.push_back(load_matrices_anywhere<2, false>(number));
    results.push_back(load_matrices_anywhere<2, true>(number));
    results.push_back(load_matrices_anywhere<4, false>(number));
    results.push_back(load_matrices_anywhere<4, true>(number));
  }
  for (int bytes = 0; bytes <= 16; ++bytes) results.push_back(copy_and_fill<16>(bytes));
  for (int bytes = 0; bytes <= 8; ++bytes) results.push_back(copy_and_fill<8>(bytes));
  for (int bytes = 0; bytes <= 4; ++bytes) results.push_back(copy_and_fill<4>(bytes));
  return results;
}

}  // namespace ptx_cases

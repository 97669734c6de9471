/// @file
/// What CUDA C++ gives a kernel, feature by feature, against plain loops on the CPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "common/device/device.cuh"
#include "common/interpreter/tests/orders.h"

using device::Buffer;
using device::launch;

// Not an anonymous namespace: doctest opens one for each templated test, and nvcc stumbles over two that are nested.
namespace language_test {

constexpr unsigned kAll = 0xffffffffu;

template <class T>
Buffer<T> zeros(std::size_t n, const char* name) {
  return Buffer<T>(std::vector<T>(n, T(0)), name);
}

// A few numbers without a pattern, the same on every machine.
std::vector<unsigned> numbers(std::size_t n, unsigned seed = 1) {
  std::vector<unsigned> v(n);
  for (unsigned& x : v) x = seed = seed * 1664525u + 1013904223u, x ^= x >> 15;
  return v;
}

// ------------------------------------------------------------------------------------------------- built-in variables
__global__ void builtins(unsigned* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] = blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z + 1000 * threadIdx.x + 10000 * threadIdx.y +
                                  100000 * threadIdx.z + 1000000 * static_cast<unsigned>(warpSize);
}
TEST_CASE("threadIdx, blockIdx, blockDim, gridDim, warpSize") {
  in_all_orders([] {
    Buffer<unsigned> out(3 * 2 * 4 * 5 * 7 * 2, "out");
    launch(builtins, dim3(3, 2, 4), dim3(5, 7, 2), 0, out.data());
    const auto result = out.download();
    std::size_t i = 0;
    bool right = true;
    for (unsigned bz = 0; bz < 4; ++bz)
      for (unsigned by = 0; by < 2; ++by)
        for (unsigned bx = 0; bx < 3; ++bx)
          for (unsigned tz = 0; tz < 2; ++tz)
            for (unsigned ty = 0; ty < 7; ++ty)
              for (unsigned tx = 0; tx < 5; ++tx)
                right &= result[i++] == bx + 10 * by + 100 * bz + 1000 * tx + 10000 * ty + 100000 * tz + 32000000;
    CHECK(right);
  });
}

// ------------------------------------------------------------------------------------------------------------ barriers
__global__ void barriers(const int* in, int* out) {
  __shared__ int tile[96];
  const unsigned i = threadIdx.x;
  const int value = in[i];
  tile[i] = value;
  __syncthreads();
  const int other = tile[95 - i];
  int* const row = out + 8 * i;
  row[0] = other;
  row[1] = __syncthreads_count(value > 50);
  row[2] = __syncthreads_count(0);
  row[3] = __syncthreads_and(value >= 0);
  row[4] = __syncthreads_and(value != 17);
  row[5] = __syncthreads_or(value == 17);
  row[6] = __syncthreads_or(value < 0);
  __syncwarp();
  row[7] = __syncthreads_count(-5);  // any value but 0 is true
}
TEST_CASE("barriers") {
  in_all_orders([] {
    std::vector<int> host(96);
    std::iota(host.begin(), host.end(), 0);
    Buffer<int> in(host, "in"), out(96 * 8, "out");
    launch(barriers, 1, 96, 0, in.data(), out.data());
    const auto result = out.download();
    for (std::size_t i = 0; i < 96; ++i)
      CHECK(std::vector<int>(&result[8 * i], &result[8 * i] + 8) ==
            std::vector<int>{95 - static_cast<int>(i), 45, 0, 1, 0, 1, 0, 96});
  });
}

// ------------------------------------------------------------------------------------------------------------ shuffles
enum class Shuffle { kIndex, kUp, kDown, kXor };
template <class T>
__global__ void shuffle(const T* in, T* out, Shuffle kind, unsigned mask, unsigned defined, int argument, int width) {
  const unsigned lane = threadIdx.x;
  if (!(mask >> lane & 1)) return;
  T value = in[lane];
  switch (kind) {
    case Shuffle::kIndex: value = __shfl_sync(mask, value, argument, width); break;
    case Shuffle::kUp: value = __shfl_up_sync(mask, value, static_cast<unsigned>(argument), width); break;
    case Shuffle::kDown: value = __shfl_down_sync(mask, value, static_cast<unsigned>(argument), width); break;
    case Shuffle::kXor: value = __shfl_xor_sync(mask, value, argument, width); break;
  }
  if (defined >> lane & 1) out[lane] = value;
}

// PTX ISA, shfl.sync.
int source_lane(Shuffle kind, int lane, int argument, int width) {
  const int first = lane / width * width;
  switch (kind) {
    case Shuffle::kIndex: return first + argument % width;
    case Shuffle::kUp: return lane - argument >= first ? lane - argument : lane;
    case Shuffle::kDown: return lane + argument < first + width ? lane + argument : lane;
    case Shuffle::kXor: return (lane ^ argument) < first + width ? lane ^ argument : lane;
  }
  return lane;
}

template <class T>
std::uint64_t bits(T value) {
  std::uint64_t result = 0;
  std::copy_n(reinterpret_cast<const unsigned char*>(&value), sizeof value, reinterpret_cast<unsigned char*>(&result));
  return result;
}

TEST_CASE_TEMPLATE("shuffles", T, int, unsigned, float, double, long long, unsigned long long, __half, __nv_bfloat16) {
  struct Case {
    Shuffle kind;
    unsigned mask;
    int argument, width;
  };
  std::vector<Case> cases;
  for (const Shuffle kind : {Shuffle::kIndex, Shuffle::kUp, Shuffle::kDown, Shuffle::kXor})
    for (const int width : {32, 16, 8, 2})
      for (const int argument : {0, 1, 3, 8, 31}) cases.push_back({kind, kAll, argument, width});
  for (const unsigned mask : {0xffffu, 0x55555555u, 0x80000001u, 0x00000010u})
    for (const Shuffle kind : {Shuffle::kIndex, Shuffle::kUp, Shuffle::kDown, Shuffle::kXor}) cases.push_back({kind, mask, 4, 32});

  std::vector<T> host(32);
  const auto raw = numbers(32);
  for (std::size_t i = 0; i < 32; ++i) host[i] = static_cast<T>(static_cast<float>(raw[i] % 2000));
  Buffer<T> in(host, "in"), out(32, "out");
  in_all_orders([&] {
    for (const Case& c : cases) {
      unsigned defined = 0;
      for (int lane = 0; lane < 32; ++lane) {
        const int source = source_lane(c.kind, lane, c.argument, c.width);
        defined |= (c.mask >> lane & c.mask >> source & 1) << lane;
      }
      launch(shuffle<T>, 1, 32, 0, in.data(), out.data(), c.kind, c.mask, defined, c.argument, c.width);
      const auto result = out.download();
      bool right = true;
      for (int lane = 0; lane < 32; ++lane) {
        const int source = source_lane(c.kind, lane, c.argument, c.width);
        if (!(defined >> lane & 1)) continue;
        right &= bits(result[static_cast<std::size_t>(lane)]) == bits(host[static_cast<std::size_t>(source)]);
      }
      CHECK_MESSAGE(right, "kind ", static_cast<int>(c.kind), ", mask ", c.mask, ", argument ", c.argument, ", width ", c.width);
    }
  });
}

__global__ void two_groups(const int* in, int* out) {
  const unsigned lane = threadIdx.x;
  int value = in[lane];
  if (lane % 2 == 0) {
    for (int step = 16; step > 1; step /= 2) value += __shfl_xor_sync(0x55555555u, value, step);
  } else {
    for (int step = 16; step > 1; step /= 2) value = max(value, __shfl_xor_sync(0xaaaaaaaau, value, step));
  }
  out[lane] = value;
}
TEST_CASE("two groups of a warp in different shuffles") {
  in_all_orders([] {
    std::vector<int> host(32);
    std::iota(host.begin(), host.end(), 0);
    Buffer<int> in(host, "in"), out(32, "out");
    launch(two_groups, 1, 32, 0, in.data(), out.data());
    const auto result = out.download();
    for (std::size_t i = 0; i < 32; ++i) CHECK(result[i] == (i % 2 ? 31 : 240));
  });
}

// ----------------------------------------------------------------------------------------------- votes, match, reduce
struct Votes {
  unsigned ballot, match_any, match_all;
  int any, all, all_matched;
  unsigned add, least, most, conjunction, disjunction, exclusive;
  int add_signed, least_signed, most_signed;
  bool operator==(const Votes&) const = default;
};
__global__ void votes(const unsigned* in, Votes* out, unsigned mask) {
  const unsigned lane = threadIdx.x;
  if (!(mask >> lane & 1)) return;
  const unsigned value = in[lane];
  const int with_sign = static_cast<int>(value);
  Votes v;
  v.ballot = __ballot_sync(mask, value % 2 == 0);
  v.any = __any_sync(mask, value == 8) != 0;
  v.all = __all_sync(mask, value < 100) != 0;
  v.match_any = __match_any_sync(mask, value);
  v.match_all = __match_all_sync(mask, value / 1000, &v.all_matched);
  v.all_matched = v.all_matched != 0;
  v.add = __reduce_add_sync(mask, value);
  v.least = __reduce_min_sync(mask, value);
  v.most = __reduce_max_sync(mask, value);
  v.conjunction = __reduce_and_sync(mask, value);
  v.disjunction = __reduce_or_sync(mask, value);
  v.exclusive = __reduce_xor_sync(mask, value);
  v.add_signed = __reduce_add_sync(mask, with_sign);
  v.least_signed = __reduce_min_sync(mask, with_sign);
  v.most_signed = __reduce_max_sync(mask, with_sign);
  out[lane] = v;
}
TEST_CASE("votes, match, reduce") {
  struct Case {
    unsigned mask, modulus, offset;
  };
  const Case cases[] = {{kAll, 10, 0},        {kAll, 1, 7},        {kAll, 3000, 0},        {0x0000ff00u, 10, 0},
                        {0x80000000u, 10, 3}, {0x12345678u, 5, 0}, {kAll, 10, 0xfffffff0u}};
  in_all_orders([&] {
    for (const Case& c : cases) {
      auto host = numbers(32);
      for (unsigned& x : host) x = x % c.modulus + c.offset;
      Buffer<unsigned> in(host, "in");
      Buffer<Votes> out(32, "out");
      launch(votes, 1, 32, 0, in.data(), out.data(), c.mask);
      const auto result = out.download();

      Votes common{};
      common.all = common.all_matched = 1;
      common.least = common.conjunction = kAll;
      common.least_signed = std::numeric_limits<int>::max(), common.most_signed = std::numeric_limits<int>::min();
      const unsigned first = host[static_cast<std::size_t>(std::countr_zero(c.mask))];
      for (std::size_t i = 0; i < 32; ++i) {
        if (!(c.mask >> i & 1)) continue;
        const unsigned x = host[i];
        common.ballot |= unsigned(x % 2 == 0) << i;
        common.any |= x == 8, common.all &= x < 100, common.all_matched &= x / 1000 == first / 1000;
        common.add += x, common.conjunction &= x, common.disjunction |= x, common.exclusive ^= x;
        common.least = std::min(common.least, x), common.most = std::max(common.most, x);
        common.least_signed = std::min(common.least_signed, static_cast<int>(x));
        common.most_signed = std::max(common.most_signed, static_cast<int>(x));
      }
      common.add_signed = static_cast<int>(common.add);
      common.match_all = common.all_matched ? c.mask : 0;
      for (std::size_t i = 0; i < 32; ++i) {
        if (!(c.mask >> i & 1)) continue;
        Votes expected = common;
        for (std::size_t j = 0; j < 32; ++j) expected.match_any |= unsigned((c.mask >> j & 1) && host[i] == host[j]) << j;
        CHECK(result[i] == expected);
      }
    }
  });
}

__global__ void active_mask(unsigned* out) {
  if (threadIdx.x % 3 != 0) return;
  const unsigned mask = __activemask();
  out[threadIdx.x] = (mask >> threadIdx.x & 1) && !(mask & ~0x49249249u);  // itself, and nobody who has left
}
TEST_CASE("__activemask") {
  in_all_orders([] {
    auto out = zeros<unsigned>(32, "out");
    launch(active_mask, 1, 32, 0, out.data());
    const auto result = out.download();
    for (std::size_t i = 0; i < 32; ++i) CHECK(result[i] == (i % 3 == 0));
  });
}

// ------------------------------------------------------------------------------------------------------------- atomics
enum class Atomic { kAdd, kSub, kExch, kMin, kMax, kAnd, kOr, kXor, kInc, kDec, kCas };
const std::string kAtomicNames[] = {"Add", "Sub", "Exch", "Min", "Max", "And", "Or", "Xor", "Inc", "Dec", "CAS"};

// The operations that CUDA has for T.
template <class T>
constexpr bool has_atomic(Atomic op) {
  constexpr bool kWord = std::is_same_v<T, int> || std::is_same_v<T, unsigned>, kLong = std::is_same_v<T, unsigned long long>,
                 kFloat = std::is_same_v<T, float>;
  switch (op) {
    case Atomic::kAdd: return true;
    case Atomic::kSub: return kWord;
    case Atomic::kExch: return kWord || kLong || kFloat;
    case Atomic::kMin:
    case Atomic::kMax:
    case Atomic::kAnd:
    case Atomic::kOr:
    case Atomic::kXor:
    case Atomic::kCas: return kWord || kLong;
    case Atomic::kInc:
    case Atomic::kDec: return std::is_same_v<T, unsigned>;
  }
  return false;
}

// What one atomic does to the memory.
template <class T>
T after(Atomic op, T old, T x) {
  switch (op) {
    case Atomic::kAdd: return static_cast<T>(old + x);
    case Atomic::kSub: return static_cast<T>(old - x);
    case Atomic::kExch: return x;
    case Atomic::kMin: return x < old ? x : old;
    case Atomic::kMax: return old < x ? x : old;
    case Atomic::kInc: return old >= x ? T(0) : static_cast<T>(old + 1);
    case Atomic::kDec: return old == 0 || old > x ? x : static_cast<T>(old - 1);
    case Atomic::kCas: return old == 5 ? x : old;
    default: break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == Atomic::kAnd) return old & x;
    if (op == Atomic::kOr) return old | x;
    if (op == Atomic::kXor) return old ^ x;
  }
  return old;
}

enum class Where { kGlobal, kShared, kBlockScope, kSystemScope };
template <class T>
__global__ void atomics(Atomic op, Where where, T* cell, const T* operands, T* olds) {
  __shared__ T shared;
  T* const target = where == Where::kShared ? &shared : cell;
  const T x = operands[threadIdx.x];
  if (threadIdx.x == 0) shared = *cell;
  __syncthreads();
  T old = 0;
  switch (op) {
#define CASE(name)                                  \
  case Atomic::k##name:                             \
    if constexpr (has_atomic<T>(Atomic::k##name)) { \
      if (where == Where::kBlockScope)              \
        old = atomic##name##_block(target, x);      \
      else if (where == Where::kSystemScope)        \
        old = atomic##name##_system(cell, x);       \
      else                                          \
        old = atomic##name(target, x);              \
    }                                               \
    break;
    CASE(Add)
    CASE(Sub)
    CASE(Exch)
    CASE(Min)
    CASE(Max)
    CASE(And)
    CASE(Or)
    CASE(Xor)
    CASE(Inc)
    CASE(Dec)
#undef CASE
    case Atomic::kCas:
      if constexpr (has_atomic<T>(Atomic::kCas))
        old = where == Where::kBlockScope ? atomicCAS_block(target, T(5), x) : atomicCAS(target, T(5), x);
      break;
  }
  olds[threadIdx.x] = old;
  __syncthreads();
  if (where == Where::kShared && threadIdx.x == 0) *cell = shared;
}

// The atomics of 40 threads happened one after the other, in some order: from each value, exactly one of them leads on.
template <class T>
bool is_some_order(Atomic op, T start, const std::vector<T>& operands, const std::vector<T>& olds, T end) {
  std::vector<std::size_t> left(operands.size());
  std::iota(left.begin(), left.end(), std::size_t(0));
  T now = start;
  while (!left.empty()) {
    // Those that change nothing can go first.
    const auto changes_nothing = [&](std::size_t i) { return olds[i] == now && after(op, now, operands[i]) == now; };
    auto next = std::find_if(left.begin(), left.end(), changes_nothing);
    if (next == left.end()) next = std::find_if(left.begin(), left.end(), [&](std::size_t i) { return olds[i] == now; });
    if (next == left.end()) return false;
    now = after(op, now, operands[*next]);
    left.erase(next);
  }
  return now == end;
}

template <class T>
void check_atomic(Atomic op, Where where) {
  std::vector<T> operands(40);
  for (std::size_t i = 0; i < operands.size(); ++i) switch (op) {
      case Atomic::kInc:
      case Atomic::kDec: operands[i] = T(6); break;
      case Atomic::kAdd:
      case Atomic::kSub: operands[i] = static_cast<T>(1 + i % 3); break;
      case Atomic::kXor: operands[i] = static_cast<T>(i % 2 ? 0 : 1ull << i / 2); break;
      default: operands[i] = static_cast<T>(1 + i);  // all different: see is_some_order
    }
  T start = T(5);
  if (op == Atomic::kAnd) start = T(127);
  if (op == Atomic::kMin) start = T(30);
  if (op == Atomic::kSub || op == Atomic::kExch) start = T(100);
  Buffer<T> cell(std::vector<T>{start}, "cell"), in(operands, "operands"), olds(operands.size(), "olds");
  launch(atomics<T>, 1, 40, 0, op, where, cell.data(), in.data(), olds.data());
  CHECK_MESSAGE(is_some_order(op, start, operands, olds.download(), cell.download()[0]), "atomic",
                kAtomicNames[static_cast<int>(op)], " where ", static_cast<int>(where));
}
TEST_CASE_TEMPLATE("atomics and what they return", T, int, unsigned, unsigned long long, float, double) {
  in_all_orders([] {
    for (int op = 0; op <= static_cast<int>(Atomic::kCas); ++op)
      if (has_atomic<T>(static_cast<Atomic>(op)))
        for (const Where where : {Where::kGlobal, Where::kShared, Where::kBlockScope, Where::kSystemScope})
          check_atomic<T>(static_cast<Atomic>(op), where);
  });
}

__global__ void half_atomics(__half* half, __nv_bfloat16* brain, __half2* pair, unsigned short* word, float* olds) {
  olds[threadIdx.x] = __half2float(atomicAdd(half, __float2half(1.0f)));
  atomicAdd(brain, __float2bfloat16(2.0f));
  atomicAdd(pair, __floats2half2_rn(1.0f, -1.0f));
  atomicCAS(word, static_cast<unsigned short>(0), static_cast<unsigned short>(threadIdx.x + 1));  // the first one wins
}
TEST_CASE("atomics on 16-bit numbers") {
  in_all_orders([] {
    Buffer<__half> half(std::vector<__half>(2, __float2half(0.0f)), "half");
    Buffer<__nv_bfloat16> brain(std::vector<__nv_bfloat16>(2, __float2bfloat16(0.0f)), "brain");
    Buffer<__half2> pair(std::vector<__half2>(1, __floats2half2_rn(0.0f, 0.0f)), "pair");
    auto word = zeros<unsigned short>(2, "word");
    Buffer<float> olds(40, "olds");
    launch(half_atomics, 1, 40, 0, half.data() + 1, brain.data() + 1, pair.data(), word.data() + 1, olds.data());
    CHECK(__half2float(half.download()[1]) == 40.0f);
    CHECK(__half2float(half.download()[0]) == 0.0f);
    CHECK(__bfloat162float(brain.download()[1]) == 80.0f);
    CHECK(__low2float(pair.download()[0]) == 40.0f);
    CHECK(__high2float(pair.download()[0]) == -40.0f);
    CHECK(word.download()[1] >= 1);
    CHECK(word.download()[1] <= 40);
    auto seen = olds.download();
    std::sort(seen.begin(), seen.end());
    for (std::size_t i = 0; i < 40; ++i) CHECK(seen[i] == static_cast<float>(i));
  });
}

__global__ void float_maximum(const float* in, float* out) {
  // The usual way to an atomic that CUDA does not have. The first guess need not be right.
  unsigned* const word = reinterpret_cast<unsigned*>(out);
  unsigned seen = __float_as_uint(0.0f);
  while (__uint_as_float(seen) < in[threadIdx.x]) {
    const unsigned before = atomicCAS(word, seen, __float_as_uint(in[threadIdx.x]));
    if (before == seen) break;
    seen = before;
  }
}
TEST_CASE("an atomic maximum of floats made of atomicCAS") {
  in_all_orders([] {
    std::vector<float> host(64);
    const auto raw = numbers(64);
    for (std::size_t i = 0; i < 64; ++i) host[i] = 0.125f * static_cast<float>(raw[i] % 1000 + 1);
    Buffer<float> in(host, "in");
    Buffer<float> result(std::vector<float>(1, 0.0f), "result");
    launch(float_maximum, 1, 64, 0, in.data(), result.data());
    CHECK(result.download()[0] == *std::max_element(host.begin(), host.end()));
  });
}

// ------------------------------------------------------------------------------------------------- integer intrinsics
const std::string kIntegerNames[] = {"__popc",          "__popcll",        "__clz",       "__clzll",         "__ffs",
                                     "__ffsll",         "__brev",          "__mulhi",     "__umulhi",        "__mul24",
                                     "__funnelshift_l", "__funnelshift_r", "__byte_perm", "__float_as_uint", "__uint_as_float",
                                     "__float_as_int",  "__int_as_float",  "__ldg"};
constexpr int kIntegerCount = std::size(kIntegerNames);
__global__ void integers(const unsigned* a, const unsigned* b, unsigned* out) {
  const unsigned x = a[threadIdx.x], y = b[threadIdx.x];
  const int ix = static_cast<int>(x), iy = static_cast<int>(y);
  const unsigned long long both = static_cast<unsigned long long>(x) << 32 | y;
  unsigned* row = out + kIntegerCount * threadIdx.x;
  *row++ = static_cast<unsigned>(__popc(x));
  *row++ = static_cast<unsigned>(__popcll(both));
  *row++ = static_cast<unsigned>(__clz(ix));
  *row++ = static_cast<unsigned>(__clzll(static_cast<long long>(both)));
  *row++ = static_cast<unsigned>(__ffs(ix));
  *row++ = static_cast<unsigned>(__ffsll(static_cast<long long>(both)));
  *row++ = __brev(x);
  *row++ = static_cast<unsigned>(__mulhi(ix, iy));
  *row++ = __umulhi(x, y);
  *row++ = static_cast<unsigned>(__mul24(ix >> 20, iy >> 20));
  *row++ = __funnelshift_l(x, y, x % 40);
  *row++ = __funnelshift_r(x, y, y % 40);
  *row++ = __byte_perm(x, y, x ^ y);
  *row++ = __float_as_uint(static_cast<float>(x));
  *row++ = __float_as_uint(__uint_as_float(x & 0x7f7fffffu));
  *row++ = static_cast<unsigned>(__float_as_int(static_cast<float>(iy)));
  *row++ = __float_as_uint(__int_as_float(iy & 0x7f7fffff));
  *row++ = __ldg(a + threadIdx.x);
}
std::vector<unsigned> expected_integers(unsigned x, unsigned y) {
  const std::uint64_t both = std::uint64_t(x) << 32 | y, other = std::uint64_t(y) << 32 | x;
  const auto count = [](std::uint64_t v) {
    unsigned n = 0;
    for (; v; v &= v - 1) ++n;
    return n;
  };
  const auto leading = [](std::uint64_t v, int bits_of) {
    unsigned n = 0;
    for (int i = bits_of - 1; i >= 0 && !(v >> i & 1); --i) ++n;
    return n;
  };
  const auto first = [](std::uint64_t v) {
    for (unsigned i = 0; i < 64; ++i)
      if (v >> i & 1) return i + 1;
    return 0u;
  };
  unsigned reversed = 0, permuted = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1) << (31 - i);
  for (int i = 0; i < 4; ++i) {
    const unsigned selector = (x ^ y) >> 4 * i & 7;  // of each four bits, three count
    permuted |= (static_cast<unsigned>(other >> 8 * selector) & 0xff) << 8 * i;
  }
  const auto signed_product = std::int64_t(static_cast<int>(x)) * static_cast<int>(y);
  const unsigned left = x % 40 % 32, right = y % 40 % 32;
  return {count(x),
          count(both),
          leading(x, 32),
          leading(both, 64),
          first(x),
          first(both),
          reversed,
          static_cast<unsigned>(static_cast<std::uint64_t>(signed_product) >> 32),
          static_cast<unsigned>(std::uint64_t(x) * y >> 32),
          static_cast<unsigned>((static_cast<int>(x) >> 20) * (static_cast<int>(y) >> 20)),
          left ? y << left | x >> (32 - left) : y,
          right ? x >> right | y << (32 - right) : x,
          permuted,
          std::bit_cast<unsigned>(static_cast<float>(x)),
          x & 0x7f7fffffu,
          std::bit_cast<unsigned>(static_cast<float>(static_cast<int>(y))),
          y & 0x7f7fffffu,
          x};
}
TEST_CASE("integer intrinsics") {
  auto a = numbers(64, 3), b = numbers(64, 5);
  a[0] = b[0] = 0, a[1] = 0x80000000u, b[1] = 1, a[2] = 0, b[2] = 0x80000000u, a[3] = b[3] = kAll;
  Buffer<unsigned> in_a(a, "a"), in_b(b, "b"), out(64 * kIntegerCount, "out");
  launch(integers, 1, 64, 0, in_a.data(), in_b.data(), out.data());
  const auto result = out.download();
  for (std::size_t i = 0; i < 64; ++i) {
    const auto expected = expected_integers(a[i], b[i]);
    for (std::size_t k = 0; k < kIntegerCount; ++k)
      CHECK_MESSAGE(result[i * kIntegerCount + k] == expected[k], kIntegerNames[k], " of ", a[i], " and ", b[i]);
  }
}

// --------------------------------------------------------------------------------------------------- real intrinsics
const std::string kRealNames[] = {"__fdividef",     "__fadd_rn",      "__fmul_rn",      "__fmaf_rn", "__expf",    "__logf",
                                  "__sinf",         "__cosf",         "__tanhf",        "__powf",    "__frcp_rn", "__fsqrt_rn",
                                  "__saturatef",    "rsqrtf",         "fmaf",           "fminf",     "fmaxf",     "fabsf",
                                  "__float2int_rn", "__float2int_rz", "__int2float_rn", "rsqrt"};
constexpr int kRealCount = std::size(kRealNames);
__global__ void reals(const float* a, const float* b, float* out) {
  const float x = a[threadIdx.x], y = b[threadIdx.x];  // both > 0
  float* row = out + kRealCount * threadIdx.x;
  *row++ = __fdividef(x, y);
  *row++ = __fadd_rn(x, y);
  *row++ = __fmul_rn(x, y);
  *row++ = __fmaf_rn(x, y, -x);
  *row++ = __expf(x);
  *row++ = __logf(x + 2);
  *row++ = __sinf(x);
  *row++ = __cosf(x);
  *row++ = __tanhf(x);
  *row++ = __powf(x, y);
  *row++ = __frcp_rn(x);
  *row++ = __fsqrt_rn(x);
  *row++ = __saturatef(x - 1);
  *row++ = rsqrtf(x);
  *row++ = fmaf(x, y, 1.0f);
  *row++ = fminf(x, y);
  *row++ = fmaxf(x, y);
  *row++ = fabsf(-x);
  *row++ = static_cast<float>(__float2int_rn(10 * x - 5));
  *row++ = static_cast<float>(__float2int_rz(10 * x - 5));
  *row++ = __int2float_rn(static_cast<int>(100 * x));
  *row++ = static_cast<float>(rsqrt(static_cast<double>(x)));
}
TEST_CASE("real intrinsics") {
  std::vector<float> a(64), b(64);
  const auto raw = numbers(128);
  for (std::size_t i = 0; i < 64; ++i) {
    a[i] = static_cast<float>(raw[i] % 1000 + 1) / 400.0f;
    b[i] = static_cast<float>(raw[64 + i] % 1000 + 1) / 400.0f;
  }
  a[0] = 0.75f;  // 10 x - 5 = 2.5: to even
  Buffer<float> in_a(a, "a"), in_b(b, "b"), out(64 * kRealCount, "out");
  launch(reals, 1, 64, 0, in_a.data(), in_b.data(), out.data());
  const auto result = out.download();
  for (std::size_t i = 0; i < 64; ++i) {
    const double x = a[i], y = b[i];
    const double t = static_cast<double>(10 * a[i] - 5);
    const double expected[kRealCount] = {x / y,
                                         x + y,
                                         x * y,
                                         x * y - x,
                                         std::exp(x),
                                         std::log(x + 2),
                                         std::sin(x),
                                         std::cos(x),
                                         std::tanh(x),
                                         std::pow(x, y),
                                         1 / x,
                                         std::sqrt(x),
                                         std::clamp(x - 1, 0.0, 1.0),
                                         1 / std::sqrt(x),
                                         x * y + 1,
                                         std::min(x, y),
                                         std::max(x, y),
                                         x,
                                         std::nearbyint(t),
                                         std::trunc(t),
                                         std::trunc(static_cast<double>(100 * a[i])),
                                         1 / std::sqrt(x)};
    for (std::size_t k = 0; k < kRealCount; ++k) {
      const double got = result[i * kRealCount + k];
      // The approximations are good to a few units in the last place, tanh and pow to about 1e-5 (Programming Guide, "Intrinsic
      // Functions").
      CHECK_MESSAGE(std::abs(got - expected[k]) <= 2e-5 * std::max(1.0, std::abs(expected[k])), kRealNames[k], " of ", a[i],
                    " and ", b[i], ": ", got, " instead of ", expected[k]);
    }
  }
}

// CUDA has min and max for mixed integers and reals; of a number and a NaN they choose the number.
__global__ void minima(int i, unsigned u, long long l, unsigned long long ul, float f, double d, float nan, double* out) {
  static_assert(std::is_same_v<decltype(min(i, u)), unsigned> && std::is_same_v<decltype(max(l, ul)), unsigned long long>);
  static_assert(std::is_same_v<decltype(min(f, d)), double> && std::is_same_v<decltype(max(f, f)), float>);
  *out++ = min(i, 3);
  *out++ = max(i, 3);
  *out++ = min(u, 3u);
  *out++ = max(i, u);  // as unsigned: -5 is large
  *out++ = static_cast<double>(min(l, 3ll));
  *out++ = static_cast<double>(max(ul, 3ull));
  *out++ = min(f, 0.0f);
  *out++ = max(f, 0.0f);
  *out++ = min(d, f);
  *out++ = max(f, d);
  *out++ = min(nan, 1.0f);
  *out++ = max(1.0f, nan);
  *out++ = max(nan, 0.0f);
  *out++ = min(0.5, static_cast<double>(nan));
  *out++ = __saturatef(nan);
}
TEST_CASE("min and max") {
  Buffer<double> out(15, "out");
  launch(minima, 1, 1, 0, -5, 9u, -7ll, 8ull, 1.5f, 2.5, std::numeric_limits<float>::quiet_NaN(), out.data());
  CHECK(out.download() == std::vector<double>{-5, 3, 3, 4294967291.0, -7, 8, 0, 1.5, 1.5, 2.5, 1, 1, 0, 0.5, 0});
}

// ---------------------------------------------------------------------------------------------------- half and bfloat16
template <class T>
struct Narrow;
template <>
struct Narrow<__half> {
  static __host__ __device__ float widen(__half x) { return __half2float(x); }
  static __host__ __device__ __half narrow(float x) { return __float2half_rn(x); }
};
template <>
struct Narrow<__nv_bfloat16> {
  static __host__ __device__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
  static __host__ __device__ __nv_bfloat16 narrow(float x) { return __float2bfloat16_rn(x); }
};
constexpr int kHalfCount = 14;
template <class T>
__global__ void half_arithmetic(const T* a, const T* b, T* out) {
  const T x = a[threadIdx.x], y = b[threadIdx.x];
  T* row = out + kHalfCount * threadIdx.x;
  *row++ = __hadd(x, y);
  *row++ = __hsub(x, y);
  *row++ = __hmul(x, y);
  *row++ = __hfma(x, y, x);
  *row++ = __hneg(x);
  *row++ = __habs(x);
  *row++ = __hmax(x, y);
  *row++ = __hmin(x, y);
  *row++ = __hdiv(x, y);
  *row++ = x + y;
  *row++ = x * y;
  *row++ = Narrow<T>::narrow(__hlt(x, y) ? 1.0f : 0.0f);
  *row++ = Narrow<T>::narrow(x < y || x == x ? 1.0f : 0.0f);
  *row++ = Narrow<T>::narrow(Narrow<T>::widen(x) / 3);
}
TEST_CASE_TEMPLATE("half and bfloat16 arithmetic", T, __half, __nv_bfloat16) {
  using N = Narrow<T>;
  std::vector<T> a(64), b(64);
  const auto raw = numbers(128);
  for (std::size_t i = 0; i < 64; ++i) {
    a[i] = N::narrow(static_cast<float>(raw[i] % 1000) / 64 - 7);
    b[i] = N::narrow(static_cast<float>(raw[64 + i] % 1000 + 1) / 32);
  }
  Buffer<T> in_a(a, "a"), in_b(b, "b"), out(64 * kHalfCount, "out");
  launch(half_arithmetic<T>, 1, 64, 0, in_a.data(), in_b.data(), out.data());
  const auto result = out.download();
  for (std::size_t i = 0; i < 64; ++i) {
    const float x = N::widen(a[i]), y = N::widen(b[i]);
    // One rounding each: fp32 holds the sum and the product of two such numbers exactly enough for that.
    const float expected[kHalfCount] = {x + y, x - y,       x * y,          static_cast<float>(double(x) * y + x),
                                        -x,    std::abs(x), std::max(x, y), std::min(x, y),
                                        x / y, x + y,       x * y,          x < y ? 1.0f : 0.0f,
                                        1.0f,  x / 3};
    for (std::size_t k = 0; k < kHalfCount; ++k)
      CHECK_MESSAGE(N::widen(result[i * kHalfCount + k]) == N::widen(N::narrow(expected[k])), "operation ", k, " of ", x, " and ",
                    y);
  }
}

__global__ void packed_halves(const __half2* a, const __nv_bfloat162* b, float2* out) {
  const __half2 h = __hfma2(a[threadIdx.x], a[31 - threadIdx.x], __float2half2_rn(1.0f));
  const __nv_bfloat162 c = __hmul2(b[threadIdx.x], b[threadIdx.x]);
  const float2 wide_h = __half22float2(h), wide_c = __bfloat1622float2(c);
  out[threadIdx.x] = make_float2(wide_h.x + wide_c.x, wide_h.y + wide_c.y);
}
TEST_CASE("packed halves") {
  std::vector<__half2> a(32);
  std::vector<__nv_bfloat162> b(32);
  for (int i = 0; i < 32; ++i) {
    a[static_cast<std::size_t>(i)] = __floats2half2_rn(static_cast<float>(i), static_cast<float>(-i));
    b[static_cast<std::size_t>(i)] = __floats2bfloat162_rn(static_cast<float>(i % 8), 0.5f);
  }
  Buffer<__half2> in_a(a, "a");
  Buffer<__nv_bfloat162> in_b(b, "b");
  Buffer<float2> out(32, "out");
  launch(packed_halves, 1, 32, 0, in_a.data(), in_b.data(), out.data());
  const auto result = out.download();
  for (int i = 0; i < 32; ++i) {
    const float product = static_cast<float>(i * (31 - i) + 1), square = static_cast<float>(i % 8 * (i % 8));
    CHECK(result[static_cast<std::size_t>(i)].x == product + square);
    CHECK(result[static_cast<std::size_t>(i)].y == product + 0.25f);
  }
}

// -------------------------------------------------------------------------------------------------------- vector types
template <class V>
__global__ void copy_vectors(const V* in, V* out) {
  __shared__ V tile[32];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}
TEST_CASE_TEMPLATE("vector types", V, char4, uchar2, short4, int2, int4, uint3, uint4, float2, float3, float4, double2, longlong2) {
  in_all_orders([] {
    std::vector<V> host(32);
    std::vector<unsigned char> bytes(sizeof(V) * 32);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 7 + 1);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<unsigned char*>(host.data()));
    Buffer<V> in(host, "in"), out(32, "out");
    launch(copy_vectors<V>, 1, 32, 0, in.data(), out.data());
    const auto result = out.download();
    bool right = true;
    for (std::size_t i = 0; i < 32; ++i)
      right &=
          std::equal(reinterpret_cast<const unsigned char*>(&result[i]), reinterpret_cast<const unsigned char*>(&result[i] + 1),
                     bytes.begin() + static_cast<std::ptrdiff_t>((31 - i) * sizeof(V)));
    CHECK(right);
  });
}

__global__ void make_vectors(float4* out) {
  const float2 two = make_float2(1, 2);
  const int4 four = make_int4(3, 4, 5, 6);
  const uint3 three = make_uint3(7, 8, 9);
  const dim3 d(10, 11);
  out[0] = make_float4(two.x + static_cast<float>(four.w), two.y, static_cast<float>(three.z), static_cast<float>(d.x + d.y + d.z));
}
TEST_CASE("make_float4 and its like") {
  Buffer<float4> out(1, "out");
  launch(make_vectors, 1, 1, 0, out.data());
  const float4 v = out.download()[0];
  CHECK(v.x == 7);
  CHECK(v.y == 2);
  CHECK(v.z == 9);
  CHECK(v.w == 22);
}

__global__ void cache_hints(const float4* in, float4* out) {
  const float4 a = __ldg(in + threadIdx.x), b = __ldcg(in + threadIdx.x), c = __ldcs(in + threadIdx.x),
               d = __ldca(in + threadIdx.x);
  __stcs(out + threadIdx.x, make_float4(a.x, b.y, c.z, d.w));
  float* const tail = reinterpret_cast<float*>(out + 32);
  __stcg(tail + threadIdx.x, a.x);
  __stwb(tail + 32 + threadIdx.x, b.y);
  __stwt(tail + 64 + threadIdx.x, c.z);
}
TEST_CASE("loads and stores with cache hints") {
  Buffer<float4> in(std::vector<float4>(32, make_float4(1, 2, 3, 4)), "in"), out(32 + 24, "out");
  launch(cache_hints, 1, 32, 0, in.data(), out.data());
  const auto result = out.download();
  CHECK(result[31].w == 4);
  CHECK(result[0].x == 1);
  CHECK(result[32].x == 1);
  CHECK(result[40].x == 2);
  CHECK(result[55].w == 3);
}

// ------------------------------------------------------------------------------------ parameters, templates, functions
struct Parameters {
  int weights[40];
  float scale;
  const int* in;
};
__global__ void by_value(const __grid_constant__ Parameters p, int* out) {
  int total = 0;
  for (int i = 0; i < 40; ++i) total += p.weights[i] * p.in[i];
  out[threadIdx.x] = static_cast<int>(p.scale * static_cast<float>(total)) + static_cast<int>(threadIdx.x);
}
TEST_CASE("parameters by value") {
  in_all_orders([] {
    Parameters p{};
    std::vector<int> host(40, 2);
    const Buffer<int> in(host, "in");
    std::iota(p.weights, p.weights + 40, 0);
    p.scale = 0.5f, p.in = in.data();
    Buffer<int> out(32, "out");
    launch(by_value, 1, 32, 0, p, out.data());
    std::vector<int> expected(32);
    std::iota(expected.begin(), expected.end(), 780);
    CHECK(out.download() == expected);
  });
}

template <class... Ts>
__global__ void many_parameters(double* out, Ts... values) {
  *out = (static_cast<double>(values) + ...);
}
TEST_CASE("parameters of several types") {
  Buffer<double> out(1, "out");
  launch(many_parameters<char, short, int, long long, float, double, bool>, 1, 1, 0, out.data(), 1, 2, 3, 4, 5.5, 6.25, true);
  CHECK(out.download()[0] == 22.75);
}

template <int kFactor, bool kSigned>
__device__ __forceinline__ int scaled(int x) {
  if constexpr (kSigned)
    return -kFactor * x;
  else
    return kFactor * x;
}
struct Affine {
  int slope, offset;
  __host__ __device__ int operator()(int x) const { return slope * x + offset; }
};
template <class F>
__device__ int twice(F f, int x) {
  return f(f(x));
}
template <class F, int kFactor>
__global__ __launch_bounds__(64) void templates(const int* __restrict__ in, int* __restrict__ out, F f) {
  const auto local = [&](int x) { return scaled<kFactor, true>(x) + in[0]; };
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) sum += twice(f, in[threadIdx.x] + i) + local(i);
  out[threadIdx.x] = sum;
}
TEST_CASE("templates, functors, lambdas") {
  in_all_orders([] {
    std::vector<int> host(64);
    std::iota(host.begin(), host.end(), 100);
    Buffer<int> in(host, "in"), out(64, "out");
    const Affine f{3, 5};
    launch(templates<Affine, 7>, 1, 64, 0, in.data(), out.data(), f);
    const auto result = out.download();
    for (std::size_t t = 0; t < 64; ++t) {
      int expected = 0;
      for (int i = 0; i < 4; ++i) expected += f(f(host[t] + i)) - 7 * i + 100;
      CHECK(result[t] == expected);
    }
  });
}

struct Table {
  float weights[8];
  int count;
};
__constant__ Table table;
__constant__ int scalar;
__device__ Table seen;
__global__ void reads_constants(float* out) {
  float total = 0;
  for (int i = 0; i < table.count; ++i) total += table.weights[i];
  if (threadIdx.x == 0) seen = table;
  out[threadIdx.x] = total * static_cast<float>(scalar);
}
TEST_CASE("copy_to_symbol and copy_from_symbol") {
  in_all_orders([] {
    for (const int count : {3, 8}) {
      Table host{{1, 2, 3, 4, 5, 6, 7, 8}, count};
      device::copy_to_symbol(table, host);
      device::copy_to_symbol(scalar, 10);
      Buffer<float> out(32, "out");
      launch(reads_constants, 1, 32, 0, out.data());
      CHECK(out.download() == std::vector<float>(32, count == 3 ? 60.0f : 360.0f));
      Table back{};
      device::copy_from_symbol(back, seen);
      CHECK(back.count == count);
      CHECK(back.weights[7] == 8);
    }
  });
}

// --------------------------------------------------------------------------------------------------------- shared memory
__global__ void shared_memory(unsigned* out) {
  alignas(16) __shared__ unsigned char raw[48];
  __shared__ double numbers_of_the_block[4];
  unsigned char* const dynamic = device::dynamic_smem();
  float4* const vectors = reinterpret_cast<float4*>(raw);
  if (threadIdx.x < 3) vectors[threadIdx.x] = make_float4(1, 2, 3, static_cast<float>(threadIdx.x));
  if (threadIdx.x < 4) numbers_of_the_block[threadIdx.x] = blockIdx.x;
  dynamic[threadIdx.x] = static_cast<unsigned char>(threadIdx.x);
  __syncthreads();
  const auto address = reinterpret_cast<std::uintptr_t>(dynamic);
  const std::size_t offset = __cvta_generic_to_shared(dynamic + 8) - __cvta_generic_to_shared(dynamic);
  out[blockIdx.x * 32 + threadIdx.x] = static_cast<unsigned>(vectors[2].w) + static_cast<unsigned>(numbers_of_the_block[3]) * 10 +
                                       (address % 1024 == 0) * 1000 + (offset == 8) * 10000 + dynamic[31 - threadIdx.x] * 100000;
}
TEST_CASE("static and dynamic shared memory belong to a block") {
  in_all_orders([] {
    Buffer<unsigned> out(7 * 32, "out");
    launch(shared_memory, 7, 32, 32, out.data());
    const auto result = out.download();
    for (unsigned i = 0; i < 7 * 32; ++i) CHECK(result[i] == 2 + i / 32 * 10 + 11000 + (31 - i % 32) * 100000);
  });
}

__global__ void largest_dynamic_memory(int* out, int words) {
  int* const all = device::dynamic_smem<int>();
  for (int i = static_cast<int>(threadIdx.x); i < words; i += static_cast<int>(blockDim.x)) all[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) *out = all[0] + all[words / 2] + all[words - 1];
}
TEST_CASE("as much dynamic shared memory as a block may have") {
  Buffer<int> out(1, "out");
  constexpr int kWords = 96 * 1024 / 4;  // every modelled GPU has this much
  launch(largest_dynamic_memory, 1, 256, std::size_t(kWords) * 4, out.data(), kWords);
  CHECK(out.download()[0] == kWords / 2 + kWords - 1);
}

// ------------------------------------------------------------------------------------------------------ time and fences
__global__ void clocks(long long* out) {
  const long long begin = clock64();
  __threadfence_block();
  __threadfence();
  __threadfence_system();
  __nanosleep(100);
  const long long end = clock64();
  out[threadIdx.x] = end - begin;
}
TEST_CASE("clock64, __nanosleep, fences") {
  in_all_orders([] {
    Buffer<long long> out(40, "out");
    launch(clocks, 1, 40, 0, out.data());
    for (const long long elapsed : out.download()) CHECK(elapsed > 0);
  });
}

}  // namespace language_test

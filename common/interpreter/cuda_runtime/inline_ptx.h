/// @file
/// What tools/interpret/inline_ptx.py makes of inline PTX needs: registers, which are bits that each instruction reads as its type,
/// and instructions that CUDA C++ has no name for. Inlined, so that reports name the asm statement's line.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "common/interpreter/count/gpus.h"
#include "common/interpreter/instructions/mbarrier_order.h"
#include "common/interpreter/interpreter.h"
#include "common/interpreter/language/language.h"

namespace interpreter {

/// bar.sync and bar.arrive with a number: a warp's threads execute it together.
void named_barrier_of_warps(unsigned number, unsigned threads, bool waits);
/// cp_async_bulk_load() to each block of the cluster that the mask has a bit for, as of a box.
void cp_async_bulk_load_multicast(void* shared, const void* global, unsigned bytes, std::uint64_t* barrier, unsigned mask);
struct TensorMap;
/// Fails unless the map's tensor has as many dimensions as the instruction names. @return the map
const TensorMap* require_dimensions(const TensorMap* map, unsigned dimensions);
/// The launch's note on an asm statement without volatile, the caller, that reads what other threads change.
void note_not_volatile();
/// Where a number stands for a place in shared memory because it is the low half of a pointer to it; null if it is none.
void* shared_at_low_half(std::uint32_t low_half);

}  // namespace interpreter

namespace interpreter::ptx {

/// @name Registers
/// @{

/// The same bits. CUDA's halves are no types for std::bit_cast.
template <class T, class From>
[[gnu::always_inline]] inline T same_bits(const From& from) {
  static_assert(sizeof(T) == sizeof(From));
  return reinterpret_cast<const T&>(from);
}
/// What a register holds, as T: the same bits, or the low ones, or as many more as the sign or zeros.
template <class T, class From>
[[gnu::always_inline]] constexpr T as(From from) {
  if constexpr (std::is_same_v<T, From>)
    return from;
  else if constexpr (std::is_same_v<T, bool>)
    return from != From();
  else if constexpr (std::is_integral_v<T> && (std::is_integral_v<From> || std::is_enum_v<From>))
    return static_cast<T>(from);
  else if constexpr (sizeof(T) == sizeof(From))
    return same_bits<T>(from);
  else if constexpr (std::is_integral_v<From> && sizeof(T) < sizeof(From))
    return same_bits<T>(static_cast<std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>>(from));
  else
    return static_cast<T>(from);
}
/// The value of an operand of the asm statement, as the register that its constraint names. By value: in a template, g++ cannot
/// bind &a[i] to a reference where a is __restrict__.
template <class Register, class T>
[[gnu::always_inline]] inline Register value(T operand) {
  if constexpr (std::is_pointer_v<T>)
    return static_cast<Register>(reinterpret_cast<std::uintptr_t>(static_cast<const volatile void*>(operand)));
  else
    return as<Register>(operand);
}
/// Writes a register, or a variable that the asm statement gives its register's value to.
template <class To, class T>
[[gnu::always_inline]] inline void put(To& to, T value) {
  if constexpr (std::is_pointer_v<To>)
    to = reinterpret_cast<To>(as<std::uint64_t>(value));
  else if constexpr (std::is_same_v<T, bool> || std::is_integral_v<T> || sizeof(To) == sizeof(T))
    to = as<std::remove_volatile_t<To>>(value);
  else
    to = as<std::remove_volatile_t<To>>(same_bits<std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>>(value));
}
/// @}

/// @name Addresses of shared memory, of 32 bits: in the upper 8 which block of the cluster, or 0 for this one
/// @{
[[gnu::always_inline]] inline void* shared_at(std::uint32_t address) {
  void* const here = interpreter::shared_at(address & 0xffffff);
  const std::uint32_t rank = address >> 24;
  if (!rank) return here;
  if (void* const of_pointer = shared_at_low_half(address)) return of_pointer;
  return mapa(here, rank - 1);
}
[[gnu::always_inline]] inline std::uint32_t shared_in(std::uint32_t address, std::uint32_t rank) {
  return (address & 0xffffff) | (rank + 1) << 24;
}
/// What the own block has at a place that may be another one's.
[[gnu::always_inline]] inline std::uint64_t* mbarrier_at(std::uint32_t address) {
  return static_cast<std::uint64_t*>(interpreter::shared_at(address & 0xffffff));
}
/// mbarrier.arrive, and mbarrier.expect_tx, at an address that may be another block's.
[[gnu::always_inline]] inline void arrive_in_cluster(std::uint32_t address, Arrival how) {
  how.block = address >> 24;
  mbarrier_arrive_as(mbarrier_at(address), how);
}
[[gnu::always_inline]] inline void expect_in_cluster(std::uint32_t address, std::uint32_t bytes) {
  if (address >> 24)
    mbarrier_expect_tx_cluster(mbarrier_at(address), (address >> 24) - 1, bytes);
  else
    mbarrier_expect_tx(mbarrier_at(address), bytes);
}
/// @}

/// @name Loads and stores: one access, as nvcc's is
/// @{
/// kOfBlock: relaxed, with a scope that ends with the block
enum class Access { kWeak, kReadOnly, kRelaxed, kOfBlock };
template <class T, int kCount>
struct Values {
  T at[kCount];
};
/// The largest is a vector: of a struct, and of a volatile __int128, compilers make several accesses.
using FourWords [[gnu::vector_size(16)]] = std::uint32_t;
template <std::size_t kBytes>
using Word = std::conditional_t<
    kBytes == 1, std::uint8_t,
    std::conditional_t<kBytes == 2, std::uint16_t,
                       std::conditional_t<kBytes == 4, std::uint32_t, std::conditional_t<kBytes == 8, std::uint64_t, FourWords>>>>;
template <class T, int kCount, Access kAccess>
[[gnu::always_inline]] inline Values<T, kCount> load(const char* address) {
  static_assert(sizeof(T) * kCount <= 16);
  using Whole = Word<sizeof(T) * kCount>;
  if constexpr (kAccess == Access::kReadOnly) read_only_load(address, sizeof(Whole));
  // A conditional expression would be volatile for both.
  if constexpr (kAccess == Access::kOfBlock && sizeof(Whole) <= 8)
    return same_bits<Values<T, kCount>>(atomic_update(
        reinterpret_cast<Whole*>(const_cast<char*>(address)), [](Whole&) { return false; }, Scope::kBlock));
  else if constexpr (kAccess == Access::kRelaxed)
    return same_bits<Values<T, kCount>>(static_cast<Whole>(*reinterpret_cast<const volatile Whole*>(address)));
  else
    return same_bits<Values<T, kCount>>(*reinterpret_cast<const Whole*>(address));
}
template <class T, int kCount, Access kAccess>
[[gnu::always_inline]] inline void store(char* address, Values<T, kCount> values) {
  using Whole = Word<sizeof(T) * kCount>;
  if constexpr (kAccess == Access::kOfBlock && sizeof(Whole) <= 8)
    atomic_update(
        reinterpret_cast<Whole*>(address), [&](Whole& value) { return value = same_bits<Whole>(values), true; }, Scope::kBlock,
        AtomicKind::kReplace);
  else if constexpr (kAccess == Access::kRelaxed)
    *reinterpret_cast<volatile Whole*>(address) = same_bits<Whole>(values);
  else
    *reinterpret_cast<Whole*>(address) = same_bits<Whole>(values);
}
/// @}

/// @name Arithmetic
/// @{
template <class T>
[[gnu::always_inline]] inline T minimum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fmin(a, b);
  else if constexpr (std::is_integral_v<T>)
    return b < a ? b : a;
  else
    return ::__hmin2(a, b);
}
template <class T>
[[gnu::always_inline]] inline T maximum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fmax(a, b);
  else if constexpr (std::is_integral_v<T>)
    return a < b ? b : a;
  else
    return ::__hmax2(a, b);
}
template <class T>
[[gnu::always_inline]] inline T multiply_add(T a, T b, T c) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fma(a, b, c);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b) + static_cast<std::uint64_t>(c));
  else if constexpr (sizeof(T) == 2)
    return ::__hfma(a, b, c);
  else
    return ::__hfma2(a, b, c);
}
template <class T>
[[gnu::always_inline]] inline T absolute(T a) {
  return a < T() ? -a : a;
}
/// As many places as there are, or none: more are as good as all.
template <class T>
[[gnu::always_inline]] inline T shl(T a, std::uint32_t places) {
  return places < sizeof(T) * 8 ? static_cast<T>(static_cast<std::uint64_t>(a) << places) : T(0);
}
template <class T>
[[gnu::always_inline]] inline T shr(T a, std::uint32_t places) {
  return static_cast<T>(places < sizeof(T) * 8 ? a >> places : a < T(0) ? -1 : 0);
}
[[gnu::always_inline]] inline std::uint32_t lop3(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t table) {
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 8; ++i)
    if (table >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return result;
}
[[gnu::always_inline]] inline std::uint32_t prmt(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t byte = ((std::uint64_t{b} << 32 | a) >> 8 * (selector >> 4 * i & 7)) & 0xff;
    result |= (selector >> 4 * i & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << 8 * i;
  }
  return result;
}
[[gnu::always_inline]] inline std::uint32_t bfe_u32(std::uint32_t a, std::uint32_t first, std::uint32_t count) {
  first &= 0xff, count &= 0xff;
  return first > 31 ? 0 : a >> first & (count > 31 ? ~0u : (1u << count) - 1);
}
/// Beyond its last bit, `a` goes on with its sign.
[[gnu::always_inline]] inline std::int32_t bfe_s32(std::uint32_t a, std::uint32_t first, std::uint32_t count) {
  first &= 0xff, count &= 0xff;
  const std::int32_t field = static_cast<std::int32_t>(a) >> (first > 31 ? 31 : first);
  if (count == 0) return 0;
  const std::uint32_t above = count > 31 ? 0 : 32 - count;
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(field) << above) >> above;
}
[[gnu::always_inline]] inline std::uint32_t bfi(std::uint32_t a, std::uint32_t b, std::uint32_t first, std::uint32_t count) {
  first &= 0xff, count &= 0xff;
  if (first > 31) return b;
  const std::uint32_t field = (count > 31 ? ~0u : (1u << count) - 1) << first;
  return (a << first & field) | (b & ~field);
}
template <class T>
[[gnu::always_inline]] inline std::uint32_t sad(T a, T b) {
  return a < b ? static_cast<std::uint32_t>(b) - static_cast<std::uint32_t>(a)
               : static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b);
}
template <class Byte>
[[gnu::always_inline]] inline std::uint32_t dp4a(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  for (int i = 0; i < 32; i += 8) c += static_cast<std::uint32_t>(static_cast<Byte>(a >> i) * static_cast<Byte>(b >> i));
  return c;
}
/// To the 10 bits of a tf32's fraction; halfway, away from zero.
[[gnu::always_inline]] inline std::uint32_t to_tf32(float a) {
  const auto bits = std::bit_cast<std::uint32_t>(a);
  return (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & ~0x1fffu;
}

enum class Rounding { kNearest, kZero, kDown, kUp };
/// From a number of one type to one of another; integers of floats are the nearest that there are.
template <class To, class From>
[[gnu::always_inline]] inline To convert(From from, Rounding rounding) {
  if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
    const auto x = static_cast<double>(from);
    const double whole = rounding == Rounding::kNearest ? std::nearbyint(x)
                         : rounding == Rounding::kDown  ? std::floor(x)
                         : rounding == Rounding::kUp    ? std::ceil(x)
                                                        : std::trunc(x);
    using Limits = std::numeric_limits<To>;
    return whole != whole                                ? To(0)
           : whole <= static_cast<double>(Limits::min()) ? Limits::min()
           : whole >= static_cast<double>(Limits::max()) ? Limits::max()
                                                         : static_cast<To>(whole);
  } else if constexpr (std::is_arithmetic_v<To>) {
    return static_cast<To>(from);
  } else {
    return To(static_cast<float>(from));
  }
}
/// @}

/// @name Of the threads
/// @{
[[gnu::always_inline]] inline std::uint32_t thread_number() {
  const dim3 block = block_dimensions();
  return threadIdx.x + block.x * (threadIdx.y + block.y * threadIdx.z);
}
/// As if blocks went to the SMs in turn.
[[gnu::always_inline]] inline std::uint32_t sm_number() {
  const std::uint64_t block = blockIdx.x + std::uint64_t{gridDim.x} * (blockIdx.y + std::uint64_t{gridDim.y} * blockIdx.z);
  return static_cast<std::uint32_t>(block % static_cast<std::uint64_t>(find_gpu(options().gpu).multiprocessors));
}
enum class Shuffle { kIdx, kUp, kDown, kBfly };
/// @param ends clamp in bits 0 to 4, segments in bits 8 to 12  @param inside whether the lane asked is in the segment
[[gnu::always_inline]] inline std::uint32_t shuffle(Shuffle how, std::uint32_t mask, std::uint32_t value, std::uint32_t b,
                                                    std::uint32_t ends, bool& inside, Site site = Site::here()) {
  const int lane = static_cast<int>(lane_index()), segments = static_cast<int>(ends >> 8 & 31), clamp = static_cast<int>(ends & 31);
  const int last = (lane & segments) | (clamp & ~segments), by = static_cast<int>(b & 31);
  const int other = how == Shuffle::kIdx    ? ((lane & segments) | (by & ~segments))
                    : how == Shuffle::kUp   ? lane - by
                    : how == Shuffle::kDown ? lane + by
                                            : lane ^ by;
  inside = how == Shuffle::kUp ? other >= last : other <= last;
  return ::__shfl_sync(mask, value, inside ? other : lane, 32, site);
}
/// The transpose of a matrix of 8 x 8 numbers of 16 bits, of which lane l holds two of row l / 4.
[[gnu::always_inline]] inline std::uint32_t movmatrix(std::uint32_t value, Site site = Site::here()) {
  const unsigned lane = lane_index(), row = lane % 4 * 2, column = lane / 4;  // of the first that this lane gets
  const unsigned from = row * 4 + column / 2;
  const std::uint32_t first = interpreter::shuffle("movmatrix", ~0u, value, from, site);
  const std::uint32_t second = interpreter::shuffle("movmatrix", ~0u, value, from + 4, site);
  return prmt(first, second, column % 2 ? 0x7632 : 0x5410);
}
/// Accumulators as wgmma's function wants them: registers of 32 bits, of any type.
template <class... T>
[[gnu::always_inline]] inline std::uint32_t* in_a_row(Site site, T&... sums) {
  static_assert(((sizeof(T) == 4) && ...));
  std::uint32_t* const all[] = {reinterpret_cast<std::uint32_t*>(&sums)...};
  for (std::size_t i = 1; i < sizeof...(T); ++i)
    if (all[i] != all[0] + i)
      lacks("wgmma whose accumulators are not the elements of one array, in its order", "an array, of which each is named", site);
  return all[0];
}
/// @}

}  // namespace interpreter::ptx

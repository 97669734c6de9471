/// @file
/// CUDA C++ for a host compiler: what nvcc knows by itself, for kernels that g++ or clang compiles for the interpreter.
///
/// CUDA's own headers give the vector types, `dim3`, `__half` and `__nv_bfloat16`; this file gives the keywords, the built-in
/// variables, barriers, shuffles, votes, atomics and the usual intrinsics. Every function has CUDA's name and meaning:
/// CUDA C++ Programming Guide, "C++ Language Extensions".
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

// ---------------------------------------------------------------------------------------------------------- keywords
// g++ puts as many no-operations in front of the kernel as it may have threads, and a section says where they begin: a launch looks
// there. clang takes no number that depends on a template parameter.
#undef __launch_bounds__
#if defined(__GNUC__) && !defined(__clang__)
#define __launch_bounds__(...) \
  __attribute__((patchable_function_entry(::interpreter::first_of(__VA_ARGS__), ::interpreter::first_of(__VA_ARGS__))))
#else
#define __launch_bounds__(...)
#endif
#undef __maxnreg__
#define __maxnreg__(...)
#undef __cluster_dims__
#define __cluster_dims__(...)
// Everything that a kernel calls becomes a part of it. Otherwise g++ hides accesses: it shows us no store of what a call returns in
// registers (`C[i] = __float2half(x)`) and no load of what a call takes by value.
#undef __global__
// Not inlined into a host function that calls it, noted in a list of all kernels (of which g++ 12 loses some), and begun with five
// instructions that do nothing: so wrong calls and launches can be told.
#ifdef __clang__
#define __global__ __attribute__((flatten, noinline, patchable_function_entry(5, 0)))
#else
#define __global__ __attribute__((flatten, noipa, patchable_function_entry(5, 0)))
#endif
// No attribute that both variables and functions may have tells the variables apart, so their alignment does: one that has another
// is the host's. clang takes no attribute here in front of a lambda's parameters.
#define INTERPRETER_DEVICE_ALIGNMENT 1024
#ifndef __clang__
#undef __device__
#define __device__ __attribute__((aligned(INTERPRETER_DEVICE_ALIGNMENT)))
#undef __managed__
#ifndef COURSE_DEVICE_VIEW
#define __managed__ __attribute__((aligned(2 * INTERPRETER_DEVICE_ALIGNMENT)))  // the host's too
#else  // of a program that tools/interpret compiles for host and device apart: the host's view has the variable
#define __managed__ __attribute__((aligned(2 * INTERPRETER_DEVICE_ALIGNMENT), weak, section("gpu_managed")))
#endif
#else
#undef __managed__
#define __managed__
#endif
// At block scope thread_local implies static, and each resident block has an OS thread of its own: one copy per block. The
// alignment leaves a gap behind a variable, unless its size is a multiple of it: a pointer that leaves the variable finds nobody
// else there.
#undef __shared__
// used: g++ would drop a variable that is only written.
#define __shared__ __attribute__((aligned(4096), used)) thread_local
// A section of its own tells constants (never counted, never writable) from __device__ variables. Compilers leave templates out of
// it: by their alignment they are at least no variables of the host.
#undef __constant__
#define __constant__ __attribute__((section("gpu_constant"), aligned(INTERPRETER_DEVICE_ALIGNMENT)))
#undef __grid_constant__
#define __grid_constant__
// For the same reason functions that ask not to be inlined are. The word is an attribute too, which becomes one that does nothing.
#ifndef __clang__
#undef __noinline__
#define __noinline__
#define noinline unused
#endif
#undef __restrict__
#define __restrict__ __restrict

namespace interpreter {

template <class... Others>
constexpr int first_of(int first, Others...) {
  return first;
}

/// Where a kernel called something: filled in at the call by default arguments.
struct Site {
  const char* file = nullptr;
  int line = 0;
  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

// A fiber never changes its thread, so the compiler may call these once per function.
[[gnu::const]] uint3 thread_index();
[[gnu::const]] uint3 block_index();
[[gnu::const]] dim3 block_dimensions();
[[gnu::const]] dim3 grid_dimensions();
[[gnu::const]] unsigned lane_index();

/// Start of the block's dynamic shared memory, 1024-byte aligned.
[[gnu::const]] void* dynamic_shared();

/// Runs `combine` once for all lanes of `mask`, when the last of them has arrived, over the lanes' arguments.
using Combine = void (*)(void* const* lane_arguments, unsigned mask);
void warp_collective(const char* name, unsigned mask, void* argument, Combine combine, Site site);
void warp_barrier(unsigned mask, Site site);
enum class Reduction { kNone, kCount, kAnd, kOr };
// clang makes one call of the last ones of two branches; whose barriers they were would not show any more.
#ifdef __clang__
[[clang::nomerge]]
#endif
int block_barrier(Reduction reduction, bool predicate, Site site);
void fence(bool whole_gpu);
[[noreturn]] void trap(const char* what, Site site);
/// What a kernel asks for and only a GPU has. @param instead what both have
[[noreturn]] void lacks(const char* what, const char* instead, Site site);

void sleep_hint();
/// A load of data that nobody writes during the launch is about to come.
void read_only_load(const void* address, std::size_t bytes);
long long clock_ticks();

enum class Scope { kBlock, kGpu };
/// What an atomic does with the old value, besides returning it.
enum class AtomicKind {
  kModify,
  kReplace,  ///< nothing
  kCompare,  ///< leaves it, unless it is what was expected
};
/// One atomic read-modify-write. `update` turns the old value into the new one, or returns false to leave the memory as it was.
void atomic(void* address, unsigned size, void* old_value, bool (*update)(void* value, const void* context), const void* context,
            Scope scope, AtomicKind kind);
/// Reports a shuffle whose `width` CUDA does not know.
void illegal_width(const char* name, int width, Site site);

template <class T, class Update>
[[gnu::always_inline]] inline T atomic_update(T* address, Update update, Scope scope = Scope::kGpu,
                                              AtomicKind kind = AtomicKind::kModify) {
  T old;
  atomic(
      address, sizeof(T), &old,
      [](void* value, const void* context) { return (*static_cast<const Update*>(context))(*static_cast<T*>(value)); }, &update,
      scope, kind);
  return old;
}

/// Segments of a shuffle have a power of two of lanes (CUDA C++ Programming Guide, "Warp Shuffle Functions").
inline void check_width(const char* name, int width, Site site) {
  if (width < 1 || width > 32 || (width & (width - 1))) illegal_width(name, width, site);
}

/// Whether a lane of the block has received a value that no lane gave.
bool undefined_values_about();
/// Whether what runs is tried out with another undefined value; see checks/two_worlds.cpp.
bool in_other_world();
/// Tells which lane each of the lanes of `mask` reads. Called while undefined values are about, and where one comes into being.
void shuffled(const char* name, const std::uint8_t* sources, unsigned mask, Site site);

/// What a lane receives from one that gives nothing (CUDA: undefined): very large or very small, so that sums, maxima and minima
/// show it, and without one of the bits of what the lane has itself, so that an "and" does. In the other world the opposite.
template <class T>
T undefined_value(T mine, unsigned lane) {
  const bool other = in_other_world();
  if constexpr (std::is_floating_point_v<T>)
    return T(((lane % 2 == 1) != other ? -1e30 : 1e30) * (1 + lane / 64.0));  // so that they do not cancel out
  if constexpr (std::is_integral_v<T> && sizeof(T) >= 4) {
    using U = std::make_unsigned_t<T>;
    const U bits = U(mine) & (U(mine) - 1), high = U(1) << (8 * sizeof(T) - 2);
    const U small = std::is_signed_v<T> ? bits | U(1) << (8 * sizeof(T) - 1) : bits;
    const U value = lane % 2 ? small : (bits & (high - 1)) | high;
    return T(other ? ~value : value);
  }
  std::memset(static_cast<void*>(&mine), other ? 0 : 0xff, sizeof(T));
  return mine;
}

template <class T>
struct ShuffleArgument {
  T value, result;
  unsigned source;
  const char* name;
  Site site;
};

/// Every lane receives the value of lane `source`; from a lane outside `mask`, or one that has exited, undefined_value().
template <class T>
T shuffle(const char* name, unsigned mask, T value, unsigned source, Site site) {
  ShuffleArgument<T> argument{value, value, source, name, site};
  warp_collective(
      name, mask, &argument,
      [](void* const* lanes, unsigned m) {
        bool all_given = true;
        for (unsigned rest = m; rest; rest &= rest - 1) {
          auto& mine = *static_cast<ShuffleArgument<T>*>(lanes[std::countr_zero(rest)]);
          const bool given = m >> mine.source & 1;
          all_given &= given;
          mine.result = given ? static_cast<ShuffleArgument<T>*>(lanes[mine.source])->value
                              : undefined_value(mine.value, static_cast<unsigned>(std::countr_zero(rest)));
        }
        if (!all_given || undefined_values_about()) {
          std::uint8_t sources[32] = {};
          for (unsigned rest = m; rest; rest &= rest - 1) {
            const int lane = std::countr_zero(rest);
            sources[lane] = static_cast<std::uint8_t>(static_cast<ShuffleArgument<T>*>(lanes[lane])->source);
          }
          const auto& first = *static_cast<ShuffleArgument<T>*>(lanes[std::countr_zero(m)]);
          shuffled(first.name, sources, m, first.site);
        }
      },
      site);
  return argument.result;
}

/// One value of every lane goes in, the same reduced value comes out in all.
template <class T, class Fold>
T reduce(const char* name, unsigned mask, T value, Fold, Site site) {
  struct Argument {
    T value;
  } argument{value};
  warp_collective(
      name, mask, &argument,
      [](void* const* lanes, unsigned m) {
        T sum = static_cast<Argument*>(lanes[std::countr_zero(m)])->value;
        for (unsigned rest = m & (m - 1); rest; rest &= rest - 1)
          sum = Fold{}(sum, static_cast<Argument*>(lanes[std::countr_zero(rest)])->value);
        for (unsigned rest = m; rest; rest &= rest - 1) static_cast<Argument*>(lanes[std::countr_zero(rest)])->value = sum;
      },
      site);
  return argument.value;
}

/// The lanes of `mask` whose value equals this lane's, as a mask.
template <class T>
unsigned match(const char* name, unsigned mask, T value, Site site) {
  struct Argument {
    T value;
    unsigned equal;
  } argument{value, 0};
  warp_collective(
      name, mask, &argument,
      [](void* const* lanes, unsigned m) {
        for (unsigned i = m; i; i &= i - 1)
          for (unsigned j = m; j; j &= j - 1) {
            auto &a = *static_cast<Argument*>(lanes[std::countr_zero(i)]), &b = *static_cast<Argument*>(lanes[std::countr_zero(j)]);
            if (std::memcmp(&a.value, &b.value, sizeof(T)) == 0) a.equal |= 1u << std::countr_zero(j);
          }
      },
      site);
  return argument.equal;
}

}  // namespace interpreter

// ------------------------------------------------------------------------------------------------ built-in variables
#define threadIdx (::interpreter::thread_index())
#define blockIdx (::interpreter::block_index())
#define blockDim (::interpreter::block_dimensions())
#define gridDim (::interpreter::grid_dimensions())
constexpr int warpSize = 32;

// ------------------------------------------------------------------------------------------------- barriers, fences
inline void __syncthreads(interpreter::Site site = interpreter::Site::here()) {
  interpreter::block_barrier(interpreter::Reduction::kNone, false, site);
}
inline int __syncthreads_count(int predicate, interpreter::Site site = interpreter::Site::here()) {
  return interpreter::block_barrier(interpreter::Reduction::kCount, predicate, site);
}
inline int __syncthreads_and(int predicate, interpreter::Site site = interpreter::Site::here()) {
  return interpreter::block_barrier(interpreter::Reduction::kAnd, predicate, site);
}
inline int __syncthreads_or(int predicate, interpreter::Site site = interpreter::Site::here()) {
  return interpreter::block_barrier(interpreter::Reduction::kOr, predicate, site);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, interpreter::Site site = interpreter::Site::here()) {
  interpreter::warp_barrier(mask, site);
}
inline void __threadfence_block() { interpreter::fence(false); }
inline void __threadfence() { interpreter::fence(true); }
inline void __threadfence_system() { interpreter::fence(true); }

// --------------------------------------------------------------------------------------------------- shuffles, votes
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, interpreter::Site site = interpreter::Site::here()) {
  interpreter::check_width("__shfl_sync", width, site);
  const unsigned lane = interpreter::lane_index(), segment = ~unsigned(width - 1);
  return interpreter::shuffle("__shfl_sync", mask, value, (lane & segment) | (unsigned(source) & ~segment), site);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, interpreter::Site site = interpreter::Site::here()) {
  interpreter::check_width("__shfl_xor_sync", width, site);
  const unsigned lane = interpreter::lane_index(), source = lane ^ unsigned(lane_mask), segment = ~unsigned(width - 1);
  return interpreter::shuffle("__shfl_xor_sync", mask, value, (source & segment) > (lane & segment) ? lane : source & 31, site);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, interpreter::Site site = interpreter::Site::here()) {
  interpreter::check_width("__shfl_down_sync", width, site);
  const unsigned lane = interpreter::lane_index();
  const bool inside = (lane & unsigned(width - 1)) + delta < unsigned(width);
  return interpreter::shuffle("__shfl_down_sync", mask, value, inside ? lane + delta : lane, site);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, interpreter::Site site = interpreter::Site::here()) {
  interpreter::check_width("__shfl_up_sync", width, site);
  const unsigned lane = interpreter::lane_index();
  const bool inside = (lane & unsigned(width - 1)) >= delta;
  return interpreter::shuffle("__shfl_up_sync", mask, value, inside ? lane - delta : lane, site);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, interpreter::Site site = interpreter::Site::here()) {
  const unsigned bit = predicate ? 1u << interpreter::lane_index() : 0u;
  return interpreter::reduce(
      "__ballot_sync", mask, bit, [](unsigned a, unsigned b) { return a | b; }, site);
}
inline int __any_sync(unsigned mask, int predicate, interpreter::Site site = interpreter::Site::here()) {
  return interpreter::reduce(
      "__any_sync", mask, int(predicate != 0), [](int a, int b) { return a | b; }, site);
}
inline int __all_sync(unsigned mask, int predicate, interpreter::Site site = interpreter::Site::here()) {
  return interpreter::reduce(
      "__all_sync", mask, int(predicate != 0), [](int a, int b) { return a & b; }, site);
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value, interpreter::Site site = interpreter::Site::here()) {
  return interpreter::match("__match_any_sync", mask, value, site);
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* all_equal, interpreter::Site site = interpreter::Site::here()) {
  *all_equal = interpreter::match("__match_all_sync", mask, value, site) == mask;
  return *all_equal ? mask : 0;
}
template <class T>
T __reduce_add_sync(unsigned mask, T value, interpreter::Site site = interpreter::Site::here()) {
  return interpreter::reduce(
      "__reduce_add_sync", mask, value, [](T a, T b) { return T(a + b); }, site);
}
template <class T>
T __reduce_min_sync(unsigned mask, T value, interpreter::Site site = interpreter::Site::here()) {
  return interpreter::reduce(
      "__reduce_min_sync", mask, value, [](T a, T b) { return b < a ? b : a; }, site);
}
template <class T>
T __reduce_max_sync(unsigned mask, T value, interpreter::Site site = interpreter::Site::here()) {
  return interpreter::reduce(
      "__reduce_max_sync", mask, value, [](T a, T b) { return a < b ? b : a; }, site);
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value, interpreter::Site site = interpreter::Site::here()) {
  return interpreter::reduce(
      "__reduce_and_sync", mask, value, [](unsigned a, unsigned b) { return a & b; }, site);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value, interpreter::Site site = interpreter::Site::here()) {
  return interpreter::reduce(
      "__reduce_or_sync", mask, value, [](unsigned a, unsigned b) { return a | b; }, site);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, interpreter::Site site = interpreter::Site::here()) {
  return interpreter::reduce(
      "__reduce_xor_sync", mask, value, [](unsigned a, unsigned b) { return a ^ b; }, site);
}
/// CUDA promises no more than that the calling lane is in the result, and no more is given here: code that relies on
/// neighbours having converged by themselves shows its bug.
inline unsigned __activemask() { return 1u << interpreter::lane_index(); }

// ----------------------------------------------------------------------------------------------------------- atomics
// Each as a function of the GPU's scope and, with _block, of the block's. The second type parameter lets `atomicAdd(&u, 1)` work.
#define INTERPRETER_ATOMIC(name, expression, kind)                                                                                 \
  template <class T>                                                                                                               \
  [[gnu::always_inline]] inline T name(T* address, std::type_identity_t<T> operand) {                                              \
    return interpreter::atomic_update(                                                                                             \
        address, [=](T& value) { return value = (expression), true; }, interpreter::Scope::kGpu, interpreter::AtomicKind::kind);   \
  }                                                                                                                                \
  template <class T>                                                                                                               \
  [[gnu::always_inline]] inline T name##_block(T* address, std::type_identity_t<T> operand) {                                      \
    return interpreter::atomic_update(                                                                                             \
        address, [=](T& value) { return value = (expression), true; }, interpreter::Scope::kBlock, interpreter::AtomicKind::kind); \
  }                                                                                                                                \
  template <class T>                                                                                                               \
  [[gnu::always_inline]] inline T name##_system(T* address, std::type_identity_t<T> operand) {                                     \
    return name(address, operand);                                                                                                 \
  }
INTERPRETER_ATOMIC(atomicAdd, value + operand, kModify)
INTERPRETER_ATOMIC(atomicSub, value - operand, kModify)
INTERPRETER_ATOMIC(atomicExch, operand, kReplace)
INTERPRETER_ATOMIC(atomicMin, operand < value ? operand : value, kModify)
INTERPRETER_ATOMIC(atomicMax, value < operand ? operand : value, kModify)
INTERPRETER_ATOMIC(atomicAnd, value& operand, kModify)
INTERPRETER_ATOMIC(atomicOr, value | operand, kModify)
INTERPRETER_ATOMIC(atomicXor, value ^ operand, kModify)
INTERPRETER_ATOMIC(atomicInc, value >= operand ? T(0) : T(value + 1), kModify)
INTERPRETER_ATOMIC(atomicDec, value == 0 || value > operand ? operand : T(value - 1), kModify)
#undef INTERPRETER_ATOMIC
template <class T>
[[gnu::always_inline]] inline T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> desired,
                                          interpreter::Scope scope = interpreter::Scope::kGpu) {
  return interpreter::atomic_update(
      address,
      [=](T& value) {
        if (std::memcmp(&value, &expected, sizeof(T)) != 0) return false;
        value = desired;
        return true;
      },
      scope, interpreter::AtomicKind::kCompare);
}
template <class T>
[[gnu::always_inline]] inline T atomicCAS_block(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
  return atomicCAS(address, expected, desired, interpreter::Scope::kBlock);
}

template <class T>
[[gnu::always_inline]] inline T atomicCAS_system(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
  return atomicCAS(address, expected, desired);
}

// --------------------------------------------------------------------------------------------- loads and stores, misc
#define INTERPRETER_LOAD(name)                             \
  template <class T>                                       \
  [[gnu::always_inline]] inline T name(const T* address) { \
    return *address;                                       \
  }
INTERPRETER_LOAD(__ldca)
INTERPRETER_LOAD(__ldcg)
INTERPRETER_LOAD(__ldcs)
INTERPRETER_LOAD(__ldlu)
INTERPRETER_LOAD(__ldcv)
#undef INTERPRETER_LOAD
/// Reads through a cache that does not see what the kernel itself has written.
template <class T>
[[gnu::always_inline]] inline T __ldg(const T* address) {
  interpreter::read_only_load(address, sizeof(T));
  return *address;
}
#define INTERPRETER_STORE(name)                                                        \
  template <class T>                                                                   \
  [[gnu::always_inline]] inline void name(T* address, std::type_identity_t<T> value) { \
    *address = value;                                                                  \
  }
INTERPRETER_STORE(__stwb)
INTERPRETER_STORE(__stcg)
INTERPRETER_STORE(__stcs)
INTERPRETER_STORE(__stwt)
#undef INTERPRETER_STORE

inline void __nanosleep(unsigned) { interpreter::sleep_hint(); }
inline long long clock64() { return interpreter::clock_ticks(); }
[[noreturn]] inline void __trap(interpreter::Site site = interpreter::Site::here()) { interpreter::trap("__trap()", site); }
inline void __brkpt() {}
inline void __prof_trigger(int) {}
#include "common/interpreter/include/assert.h"

// ------------------------------------------------------------------------------------------- arithmetic intrinsics
using std::max;
using std::min;
// Of a number and a NaN, CUDA's min and max choose the number.
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }
// And they mix signed, unsigned and floating types.
template <class A, class B>
requires(!std::is_same_v<A, B> && std::is_arithmetic_v<A> && std::is_arithmetic_v<B>) constexpr std::common_type_t<A, B> min(A a,
                                                                                                                             B b) {
  using C = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<C>) return std::fmin(C(a), C(b));
  return C(b) < C(a) ? C(b) : C(a);
}
template <class A, class B>
requires(!std::is_same_v<A, B> && std::is_arithmetic_v<A> && std::is_arithmetic_v<B>) constexpr std::common_type_t<A, B> max(A a,
                                                                                                                             B b) {
  using C = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<C>) return std::fmax(C(a), C(b));
  return C(a) < C(b) ? C(b) : C(a);
}
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanhf(float x) { return std::tanh(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __saturatef(float x) { return x > 1 ? 1.0f : x > 0 ? x : 0.0f; }  // NaN gives 0, as on the GPU
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return x ? std::countr_zero(static_cast<unsigned>(x)) + 1 : 0; }
inline int __ffsll(long long x) { return x ? std::countr_zero(static_cast<unsigned long long>(x)) + 1 : 0; }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1u) << (31 - i);
  return reversed;
}
inline int __mul24(int a, int b) { return a * b; }
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32); }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned pick = selector >> 4 * i & 7;  // PTX's prmt has a fourth bit, this function has not
    result |= (static_cast<unsigned>(bytes >> 8 * pick) & 0xff) << 8 * i;
  }
  return result;
}
// ------------------------------------------------------------------------------------------------------ further rooms
#include "common/interpreter/instructions/bulk_copies.h"
#include "common/interpreter/instructions/cluster.h"
#include "common/interpreter/instructions/cp_async.h"
#include "common/interpreter/instructions/griddepcontrol.h"
#include "common/interpreter/instructions/mbarriers.h"
#include "common/interpreter/instructions/named_barriers.h"
#include "common/interpreter/instructions/tensor.h"
#include "common/interpreter/instructions/wgmma.h"
#include "common/interpreter/language/barriers.h"
#include "common/interpreter/language/half.h"
#include "common/interpreter/language/integer.h"
#include "common/interpreter/language/math.h"
#include "common/interpreter/language/memory.h"
#include "common/interpreter/language/rounding.h"

inline size_t __cvta_generic_to_shared(const void* pointer) { return interpreter::shared_address(pointer); }
inline void* __cvta_shared_to_generic(size_t address) { return interpreter::shared_at(static_cast<std::uint32_t>(address)); }

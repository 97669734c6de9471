/// @file
/// wgmma: a warpgroup, four warps, multiplies matrices that lie in shared memory, in the background; compute capability 9.0a. One
/// function for each PTX instruction, named as the instruction. On the interpreter each does what the PTX ISA manual says, under
/// its checks.
#pragma once

#include "common/device/mbarrier.cuh"
#include "common/device/tensor_map.h"

namespace device {

/// @name Matrices in shared memory (PTX ISA, "wgmma", "Matrix Descriptor Format")
/// A matrix is told by a descriptor, 64 bits. It is K-major if the elements along k lie side by side, as in a row of A or a column
/// of B that is stored column by column; else MN-major. With a swizzle of w bytes it is made of patterns of 8 rows of w bytes, a
/// pattern aligned to its own size, 8 w bytes, and swizzled as the copy engine does it:
/// - K-major: a row is w bytes along k, the 8 rows are neighbours along m or n; `stride_bytes` from one pattern to the next along m
///   or n. The instruction takes 32 bytes of each row; the next ones follow at the address of the first + 32.
/// - MN-major: a row is w bytes along m or n, the 8 rows are neighbours along k; `leading_bytes` from one pattern to the next along
///   m or n, `stride_bytes` along k.
/// Without a swizzle the pattern is 8 rows of 16 bytes; K-major, `leading_bytes` leads to the next along k and `stride_bytes` along
/// m or n; MN-major the other way round.
/// @{

/// What a matrix's elements that lie side by side differ in: k, or m and n.
enum class Major { kK = 0, kMN = 1 };

/// @param matrix its first element, aligned to 16 bytes  @param leading_bytes, stride_bytes multiples of 16
__device__ __forceinline__ uint64_t wgmma_descriptor(const void* matrix, Swizzle swizzle, uint32_t leading_bytes,
                                                     uint32_t stride_bytes) {
#ifdef __CUDACC__
  const uint64_t address = detail::shared_address(matrix);
#else
  const uint64_t address = interpreter::shared_address(matrix);
#endif
  const uint64_t mode = swizzle == Swizzle::k128 ? 1 : swizzle == Swizzle::k64 ? 2 : swizzle == Swizzle::k32 ? 3 : 0;
  return (address >> 4 & 0x3fff) | uint64_t(leading_bytes >> 4 & 0x3fff) << 16 | uint64_t(stride_bytes >> 4 & 0x3fff) << 32 |
         mode << 62;
}
/// @}

/// @name Order (PTX ISA, "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group")
/// All threads of a warp execute these together.
/// @{

/// Before the first multiplication, and whenever a thread has touched its accumulators since the last one.
__device__ __forceinline__ void wgmma_fence() {
#ifdef __CUDACC__
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#else
  interpreter::wgmma_fence();
#endif
}
/// Makes a group of the warp's multiplications since the last one.
__device__ __forceinline__ void wgmma_commit_group() {
#ifdef __CUDACC__
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  interpreter::wgmma_commit_group();
#endif
}
/// Waits until at most the warp's last `kGroups` groups are still under way. Until then nobody touches their accumulators or writes
/// their matrices.
template <int kGroups>
__device__ __forceinline__ void wgmma_wait_group() {
#ifdef __CUDACC__
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
#else
  interpreter::wgmma_wait_group(kGroups);
#endif
}
/// @}

#ifdef __CUDACC__
/// @cond
namespace detail {

// The operands of 4, 8, 16 and 32 accumulators.
#define COURSE_WGMMA_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define COURSE_WGMMA_8(i) COURSE_WGMMA_4(i), COURSE_WGMMA_4(i + 4)
#define COURSE_WGMMA_16(i) COURSE_WGMMA_8(i), COURSE_WGMMA_8(i + 8)
#define COURSE_WGMMA_32(i) COURSE_WGMMA_16(i), COURSE_WGMMA_16(i + 16)
// Their names in the instruction's text.
#define COURSE_WGMMA_NAMES_0 \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define COURSE_WGMMA_NAMES_0_4 "%0,%1,%2,%3"
#define COURSE_WGMMA_NAMES_0_8 "%0,%1,%2,%3,%4,%5,%6,%7"
#define COURSE_WGMMA_NAMES_0_16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define COURSE_WGMMA_NAMES_32_4 ",%32,%33,%34,%35"
#define COURSE_WGMMA_NAMES_64_8 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define COURSE_WGMMA_NAMES_96_4 ",%96,%97,%98,%99"
#define COURSE_WGMMA_NAMES_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define COURSE_WGMMA_NAMES_48 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define COURSE_WGMMA_NAMES_64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define COURSE_WGMMA_NAMES_80 ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define COURSE_WGMMA_NAMES_96 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111"
#define COURSE_WGMMA_NAMES_112 ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
// The instruction; a, b, accumulate and the two transpositions are the operands behind the accumulators, by their numbers.
#define COURSE_WGMMA(n, type, names, a, b, accumulate, transpose_a, transpose_b, ...)                                     \
  asm volatile(                                                                                                           \
      "{\n"                                                                                                               \
      ".reg .pred accumulate;\n"                                                                                          \
      "setp.ne.u32 accumulate, %" accumulate                                                                              \
      ", 0;\n"                                                                                                            \
      "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type "." type " {" names "}, %" a ", %" b                          \
      ", accumulate, 1, 1, %" transpose_a ", %" transpose_b                                                               \
      ";\n"                                                                                                               \
      "}"                                                                                                                 \
      : __VA_ARGS__                                                                                                       \
      : "l"(descriptor_a), "l"(descriptor_b), "r"(static_cast<uint32_t>(accumulates)), "n"(kTransposeA), "n"(kTransposeB) \
      : "memory")
#define COURSE_WGMMA_OF(n, names, a, b, accumulate, transpose_a, transpose_b, ...)          \
  if constexpr (std::is_same_v<T, __half>)                                                  \
    COURSE_WGMMA(n, "f16", names, a, b, accumulate, transpose_a, transpose_b, __VA_ARGS__); \
  else                                                                                      \
    COURSE_WGMMA(n, "bf16", names, a, b, accumulate, transpose_a, transpose_b, __VA_ARGS__)

template <class T, int kTransposeA, int kTransposeB, int kN>
__device__ __forceinline__ void wgmma(float (&d)[kN / 2], uint64_t descriptor_a, uint64_t descriptor_b, bool accumulates) {
  if constexpr (kN == 8) {
    COURSE_WGMMA_OF("8", COURSE_WGMMA_NAMES_0_4, "4", "5", "6", "7", "8", COURSE_WGMMA_4(0));
  } else if constexpr (kN == 16) {
    COURSE_WGMMA_OF("16", COURSE_WGMMA_NAMES_0_8, "8", "9", "10", "11", "12", COURSE_WGMMA_8(0));
  } else if constexpr (kN == 32) {
    COURSE_WGMMA_OF("32", COURSE_WGMMA_NAMES_0_16, "16", "17", "18", "19", "20", COURSE_WGMMA_16(0));
  } else if constexpr (kN == 64) {
    COURSE_WGMMA_OF("64", COURSE_WGMMA_NAMES_0, "32", "33", "34", "35", "36", COURSE_WGMMA_32(0));
  } else if constexpr (kN == 72) {
    COURSE_WGMMA_OF("72", COURSE_WGMMA_NAMES_0 COURSE_WGMMA_NAMES_32_4, "36", "37", "38", "39", "40", COURSE_WGMMA_32(0),
                    COURSE_WGMMA_4(32));
  } else if constexpr (kN == 96) {
    COURSE_WGMMA_OF("96", COURSE_WGMMA_NAMES_0 COURSE_WGMMA_NAMES_32, "48", "49", "50", "51", "52", COURSE_WGMMA_32(0),
                    COURSE_WGMMA_16(32));
  } else if constexpr (kN == 128) {
    COURSE_WGMMA_OF("128", COURSE_WGMMA_NAMES_0 COURSE_WGMMA_NAMES_32 COURSE_WGMMA_NAMES_48, "64", "65", "66", "67", "68",
                    COURSE_WGMMA_32(0), COURSE_WGMMA_32(32));
  } else if constexpr (kN == 144) {
    COURSE_WGMMA_OF("144", COURSE_WGMMA_NAMES_0 COURSE_WGMMA_NAMES_32 COURSE_WGMMA_NAMES_48 COURSE_WGMMA_NAMES_64_8, "72", "73",
                    "74", "75", "76", COURSE_WGMMA_32(0), COURSE_WGMMA_32(32), COURSE_WGMMA_8(64));
  } else if constexpr (kN == 160) {
    COURSE_WGMMA_OF("160", COURSE_WGMMA_NAMES_0 COURSE_WGMMA_NAMES_32 COURSE_WGMMA_NAMES_48 COURSE_WGMMA_NAMES_64, "80", "81", "82",
                    "83", "84", COURSE_WGMMA_32(0), COURSE_WGMMA_32(32), COURSE_WGMMA_16(64));
  } else if constexpr (kN == 192) {
    COURSE_WGMMA_OF("192",
                    COURSE_WGMMA_NAMES_0 COURSE_WGMMA_NAMES_32 COURSE_WGMMA_NAMES_48 COURSE_WGMMA_NAMES_64 COURSE_WGMMA_NAMES_80,
                    "96", "97", "98", "99", "100", COURSE_WGMMA_32(0), COURSE_WGMMA_32(32), COURSE_WGMMA_32(64));
  } else if constexpr (kN == 200) {
    COURSE_WGMMA_OF("200",
                    COURSE_WGMMA_NAMES_0 COURSE_WGMMA_NAMES_32 COURSE_WGMMA_NAMES_48 COURSE_WGMMA_NAMES_64 COURSE_WGMMA_NAMES_80
                        COURSE_WGMMA_NAMES_96_4,
                    "100", "101", "102", "103", "104", COURSE_WGMMA_32(0), COURSE_WGMMA_32(32), COURSE_WGMMA_32(64),
                    COURSE_WGMMA_4(96));
  } else if constexpr (kN == 224) {
    COURSE_WGMMA_OF("224",
                    COURSE_WGMMA_NAMES_0 COURSE_WGMMA_NAMES_32 COURSE_WGMMA_NAMES_48 COURSE_WGMMA_NAMES_64 COURSE_WGMMA_NAMES_80
                        COURSE_WGMMA_NAMES_96,
                    "112", "113", "114", "115", "116", COURSE_WGMMA_32(0), COURSE_WGMMA_32(32), COURSE_WGMMA_32(64),
                    COURSE_WGMMA_16(96));
  } else {
    COURSE_WGMMA_OF("256",
                    COURSE_WGMMA_NAMES_0 COURSE_WGMMA_NAMES_32 COURSE_WGMMA_NAMES_48 COURSE_WGMMA_NAMES_64 COURSE_WGMMA_NAMES_80
                        COURSE_WGMMA_NAMES_96 COURSE_WGMMA_NAMES_112,
                    "128", "129", "130", "131", "132", COURSE_WGMMA_32(0), COURSE_WGMMA_32(32), COURSE_WGMMA_32(64),
                    COURSE_WGMMA_32(96));
  }
}

#undef COURSE_WGMMA_OF
#undef COURSE_WGMMA
#undef COURSE_WGMMA_NAMES_112
#undef COURSE_WGMMA_NAMES_96
#undef COURSE_WGMMA_NAMES_80
#undef COURSE_WGMMA_NAMES_64
#undef COURSE_WGMMA_NAMES_48
#undef COURSE_WGMMA_NAMES_32
#undef COURSE_WGMMA_NAMES_96_4
#undef COURSE_WGMMA_NAMES_64_8
#undef COURSE_WGMMA_NAMES_32_4
#undef COURSE_WGMMA_NAMES_0_16
#undef COURSE_WGMMA_NAMES_0_8
#undef COURSE_WGMMA_NAMES_0_4
#undef COURSE_WGMMA_NAMES_0
#undef COURSE_WGMMA_32
#undef COURSE_WGMMA_16
#undef COURSE_WGMMA_8
#undef COURSE_WGMMA_4

}  // namespace detail
/// @endcond
#endif

/// d = a · b, or d += a · b if `accumulates`, for a warpgroup: a is 64 x 16, b is 16 x kN, both of T, __half or __nv_bfloat16, in
/// shared memory; d is 64 x kN in float (PTX ISA, "wgmma.mma_async", m64nNk16). With w the warp's number in the warpgroup,
/// g = lane / 4 and t = lane % 4 a lane holds, for each 8 columns j:
/// - d[4 j], d[4 j + 1]: elements (16 w + g, 8 j + 2 t) and its right neighbour;
/// - d[4 j + 2], d[4 j + 3]: the same, 8 rows below.
/// The four warps of the warpgroup, of which the first one's number is a multiple of 4, execute it together.
template <class T, int kN, Major kMajorA = Major::kK, Major kMajorB = Major::kK>
__device__ __forceinline__ void wgmma_m64k16(float (&d)[kN / 2], uint64_t descriptor_a, uint64_t descriptor_b, bool accumulates) {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>, "wgmma_m64k16 takes __half or __nv_bfloat16");
  static_assert(kN == 8 || kN == 16 || kN == 32 || kN == 64 || kN == 72 || kN == 96 || kN == 128 || kN == 144 || kN == 160 ||
                    kN == 192 || kN == 200 || kN == 224 || kN == 256,
                "kN is 8, 16, 32, 64, 72, 96, 128, 144, 160, 192, 200, 224 or 256");
#ifdef __CUDACC__
  detail::wgmma<T, static_cast<int>(kMajorA), static_cast<int>(kMajorB), kN>(d, descriptor_a, descriptor_b, accumulates);
#else
  interpreter::wgmma_m64k16(d, kN, descriptor_a, descriptor_b, accumulates, std::is_same_v<T, __half>, kMajorA == Major::kMN,
                            kMajorB == Major::kMN);
#endif
}

/// @name Registers (PTX ISA, "setmaxnreg")
/// The threads of a warpgroup have `kRegisters` each from here on, a multiple of 8 from 24 to 256. All of its warps execute it.
/// @{

/// As many as they have or more, for which they wait until others have given them back.
template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_inc() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256);
#ifdef __CUDACC__
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
#else
  interpreter::setmaxnreg(kRegisters, true);
#endif
}
/// As many as they have or fewer.
template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_dec() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256);
#ifdef __CUDACC__
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
#else
  interpreter::setmaxnreg(kRegisters, false);
#endif
}
/// @}

}  // namespace device

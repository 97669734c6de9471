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
  uint64_t mode = 0;
  if (swizzle == Swizzle::k128) mode = 1;
  if (swizzle == Swizzle::k64) mode = 2;
  if (swizzle == Swizzle::k32) mode = 3;
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

// Each 8 columns add four accumulators: operands, and their names in the instruction's text.
#define COURSE_WGMMA_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define COURSE_WGMMA_SUMS_8 COURSE_WGMMA_4(0)
#define COURSE_WGMMA_SUMS_16 COURSE_WGMMA_SUMS_8, COURSE_WGMMA_4(4)
#define COURSE_WGMMA_SUMS_24 COURSE_WGMMA_SUMS_16, COURSE_WGMMA_4(8)
#define COURSE_WGMMA_SUMS_32 COURSE_WGMMA_SUMS_24, COURSE_WGMMA_4(12)
#define COURSE_WGMMA_SUMS_40 COURSE_WGMMA_SUMS_32, COURSE_WGMMA_4(16)
#define COURSE_WGMMA_SUMS_48 COURSE_WGMMA_SUMS_40, COURSE_WGMMA_4(20)
#define COURSE_WGMMA_SUMS_56 COURSE_WGMMA_SUMS_48, COURSE_WGMMA_4(24)
#define COURSE_WGMMA_SUMS_64 COURSE_WGMMA_SUMS_56, COURSE_WGMMA_4(28)
#define COURSE_WGMMA_SUMS_72 COURSE_WGMMA_SUMS_64, COURSE_WGMMA_4(32)
#define COURSE_WGMMA_SUMS_80 COURSE_WGMMA_SUMS_72, COURSE_WGMMA_4(36)
#define COURSE_WGMMA_SUMS_88 COURSE_WGMMA_SUMS_80, COURSE_WGMMA_4(40)
#define COURSE_WGMMA_SUMS_96 COURSE_WGMMA_SUMS_88, COURSE_WGMMA_4(44)
#define COURSE_WGMMA_SUMS_104 COURSE_WGMMA_SUMS_96, COURSE_WGMMA_4(48)
#define COURSE_WGMMA_SUMS_112 COURSE_WGMMA_SUMS_104, COURSE_WGMMA_4(52)
#define COURSE_WGMMA_SUMS_120 COURSE_WGMMA_SUMS_112, COURSE_WGMMA_4(56)
#define COURSE_WGMMA_SUMS_128 COURSE_WGMMA_SUMS_120, COURSE_WGMMA_4(60)
#define COURSE_WGMMA_SUMS_136 COURSE_WGMMA_SUMS_128, COURSE_WGMMA_4(64)
#define COURSE_WGMMA_SUMS_144 COURSE_WGMMA_SUMS_136, COURSE_WGMMA_4(68)
#define COURSE_WGMMA_SUMS_152 COURSE_WGMMA_SUMS_144, COURSE_WGMMA_4(72)
#define COURSE_WGMMA_SUMS_160 COURSE_WGMMA_SUMS_152, COURSE_WGMMA_4(76)
#define COURSE_WGMMA_SUMS_168 COURSE_WGMMA_SUMS_160, COURSE_WGMMA_4(80)
#define COURSE_WGMMA_SUMS_176 COURSE_WGMMA_SUMS_168, COURSE_WGMMA_4(84)
#define COURSE_WGMMA_SUMS_184 COURSE_WGMMA_SUMS_176, COURSE_WGMMA_4(88)
#define COURSE_WGMMA_SUMS_192 COURSE_WGMMA_SUMS_184, COURSE_WGMMA_4(92)
#define COURSE_WGMMA_SUMS_200 COURSE_WGMMA_SUMS_192, COURSE_WGMMA_4(96)
#define COURSE_WGMMA_SUMS_208 COURSE_WGMMA_SUMS_200, COURSE_WGMMA_4(100)
#define COURSE_WGMMA_SUMS_216 COURSE_WGMMA_SUMS_208, COURSE_WGMMA_4(104)
#define COURSE_WGMMA_SUMS_224 COURSE_WGMMA_SUMS_216, COURSE_WGMMA_4(108)
#define COURSE_WGMMA_SUMS_232 COURSE_WGMMA_SUMS_224, COURSE_WGMMA_4(112)
#define COURSE_WGMMA_SUMS_240 COURSE_WGMMA_SUMS_232, COURSE_WGMMA_4(116)
#define COURSE_WGMMA_SUMS_248 COURSE_WGMMA_SUMS_240, COURSE_WGMMA_4(120)
#define COURSE_WGMMA_SUMS_256 COURSE_WGMMA_SUMS_248, COURSE_WGMMA_4(124)
#define COURSE_WGMMA_NAMES_8 "%0,%1,%2,%3"
#define COURSE_WGMMA_NAMES_16 COURSE_WGMMA_NAMES_8 ",%4,%5,%6,%7"
#define COURSE_WGMMA_NAMES_24 COURSE_WGMMA_NAMES_16 ",%8,%9,%10,%11"
#define COURSE_WGMMA_NAMES_32 COURSE_WGMMA_NAMES_24 ",%12,%13,%14,%15"
#define COURSE_WGMMA_NAMES_40 COURSE_WGMMA_NAMES_32 ",%16,%17,%18,%19"
#define COURSE_WGMMA_NAMES_48 COURSE_WGMMA_NAMES_40 ",%20,%21,%22,%23"
#define COURSE_WGMMA_NAMES_56 COURSE_WGMMA_NAMES_48 ",%24,%25,%26,%27"
#define COURSE_WGMMA_NAMES_64 COURSE_WGMMA_NAMES_56 ",%28,%29,%30,%31"
#define COURSE_WGMMA_NAMES_72 COURSE_WGMMA_NAMES_64 ",%32,%33,%34,%35"
#define COURSE_WGMMA_NAMES_80 COURSE_WGMMA_NAMES_72 ",%36,%37,%38,%39"
#define COURSE_WGMMA_NAMES_88 COURSE_WGMMA_NAMES_80 ",%40,%41,%42,%43"
#define COURSE_WGMMA_NAMES_96 COURSE_WGMMA_NAMES_88 ",%44,%45,%46,%47"
#define COURSE_WGMMA_NAMES_104 COURSE_WGMMA_NAMES_96 ",%48,%49,%50,%51"
#define COURSE_WGMMA_NAMES_112 COURSE_WGMMA_NAMES_104 ",%52,%53,%54,%55"
#define COURSE_WGMMA_NAMES_120 COURSE_WGMMA_NAMES_112 ",%56,%57,%58,%59"
#define COURSE_WGMMA_NAMES_128 COURSE_WGMMA_NAMES_120 ",%60,%61,%62,%63"
#define COURSE_WGMMA_NAMES_136 COURSE_WGMMA_NAMES_128 ",%64,%65,%66,%67"
#define COURSE_WGMMA_NAMES_144 COURSE_WGMMA_NAMES_136 ",%68,%69,%70,%71"
#define COURSE_WGMMA_NAMES_152 COURSE_WGMMA_NAMES_144 ",%72,%73,%74,%75"
#define COURSE_WGMMA_NAMES_160 COURSE_WGMMA_NAMES_152 ",%76,%77,%78,%79"
#define COURSE_WGMMA_NAMES_168 COURSE_WGMMA_NAMES_160 ",%80,%81,%82,%83"
#define COURSE_WGMMA_NAMES_176 COURSE_WGMMA_NAMES_168 ",%84,%85,%86,%87"
#define COURSE_WGMMA_NAMES_184 COURSE_WGMMA_NAMES_176 ",%88,%89,%90,%91"
#define COURSE_WGMMA_NAMES_192 COURSE_WGMMA_NAMES_184 ",%92,%93,%94,%95"
#define COURSE_WGMMA_NAMES_200 COURSE_WGMMA_NAMES_192 ",%96,%97,%98,%99"
#define COURSE_WGMMA_NAMES_208 COURSE_WGMMA_NAMES_200 ",%100,%101,%102,%103"
#define COURSE_WGMMA_NAMES_216 COURSE_WGMMA_NAMES_208 ",%104,%105,%106,%107"
#define COURSE_WGMMA_NAMES_224 COURSE_WGMMA_NAMES_216 ",%108,%109,%110,%111"
#define COURSE_WGMMA_NAMES_232 COURSE_WGMMA_NAMES_224 ",%112,%113,%114,%115"
#define COURSE_WGMMA_NAMES_240 COURSE_WGMMA_NAMES_232 ",%116,%117,%118,%119"
#define COURSE_WGMMA_NAMES_248 COURSE_WGMMA_NAMES_240 ",%120,%121,%122,%123"
#define COURSE_WGMMA_NAMES_256 COURSE_WGMMA_NAMES_248 ",%124,%125,%126,%127"
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
#define COURSE_WGMMA_OF(n, a, b, accumulate, transpose_a, transpose_b)                                                  \
  if constexpr (std::is_same_v<T, __half>)                                                                              \
    COURSE_WGMMA(#n, "f16", COURSE_WGMMA_NAMES_##n, a, b, accumulate, transpose_a, transpose_b, COURSE_WGMMA_SUMS_##n); \
  else                                                                                                                  \
    COURSE_WGMMA(#n, "bf16", COURSE_WGMMA_NAMES_##n, a, b, accumulate, transpose_a, transpose_b, COURSE_WGMMA_SUMS_##n)

template <class T, int kTransposeA, int kTransposeB, int kN>
__device__ __forceinline__ void wgmma(float (&d)[kN / 2], uint64_t descriptor_a, uint64_t descriptor_b, bool accumulates) {
  if constexpr (kN == 8) COURSE_WGMMA_OF(8, "4", "5", "6", "7", "8");
  if constexpr (kN == 16) COURSE_WGMMA_OF(16, "8", "9", "10", "11", "12");
  if constexpr (kN == 24) COURSE_WGMMA_OF(24, "12", "13", "14", "15", "16");
  if constexpr (kN == 32) COURSE_WGMMA_OF(32, "16", "17", "18", "19", "20");
  if constexpr (kN == 40) COURSE_WGMMA_OF(40, "20", "21", "22", "23", "24");
  if constexpr (kN == 48) COURSE_WGMMA_OF(48, "24", "25", "26", "27", "28");
  if constexpr (kN == 56) COURSE_WGMMA_OF(56, "28", "29", "30", "31", "32");
  if constexpr (kN == 64) COURSE_WGMMA_OF(64, "32", "33", "34", "35", "36");
  if constexpr (kN == 72) COURSE_WGMMA_OF(72, "36", "37", "38", "39", "40");
  if constexpr (kN == 80) COURSE_WGMMA_OF(80, "40", "41", "42", "43", "44");
  if constexpr (kN == 88) COURSE_WGMMA_OF(88, "44", "45", "46", "47", "48");
  if constexpr (kN == 96) COURSE_WGMMA_OF(96, "48", "49", "50", "51", "52");
  if constexpr (kN == 104) COURSE_WGMMA_OF(104, "52", "53", "54", "55", "56");
  if constexpr (kN == 112) COURSE_WGMMA_OF(112, "56", "57", "58", "59", "60");
  if constexpr (kN == 120) COURSE_WGMMA_OF(120, "60", "61", "62", "63", "64");
  if constexpr (kN == 128) COURSE_WGMMA_OF(128, "64", "65", "66", "67", "68");
  if constexpr (kN == 136) COURSE_WGMMA_OF(136, "68", "69", "70", "71", "72");
  if constexpr (kN == 144) COURSE_WGMMA_OF(144, "72", "73", "74", "75", "76");
  if constexpr (kN == 152) COURSE_WGMMA_OF(152, "76", "77", "78", "79", "80");
  if constexpr (kN == 160) COURSE_WGMMA_OF(160, "80", "81", "82", "83", "84");
  if constexpr (kN == 168) COURSE_WGMMA_OF(168, "84", "85", "86", "87", "88");
  if constexpr (kN == 176) COURSE_WGMMA_OF(176, "88", "89", "90", "91", "92");
  if constexpr (kN == 184) COURSE_WGMMA_OF(184, "92", "93", "94", "95", "96");
  if constexpr (kN == 192) COURSE_WGMMA_OF(192, "96", "97", "98", "99", "100");
  if constexpr (kN == 200) COURSE_WGMMA_OF(200, "100", "101", "102", "103", "104");
  if constexpr (kN == 208) COURSE_WGMMA_OF(208, "104", "105", "106", "107", "108");
  if constexpr (kN == 216) COURSE_WGMMA_OF(216, "108", "109", "110", "111", "112");
  if constexpr (kN == 224) COURSE_WGMMA_OF(224, "112", "113", "114", "115", "116");
  if constexpr (kN == 232) COURSE_WGMMA_OF(232, "116", "117", "118", "119", "120");
  if constexpr (kN == 240) COURSE_WGMMA_OF(240, "120", "121", "122", "123", "124");
  if constexpr (kN == 248) COURSE_WGMMA_OF(248, "124", "125", "126", "127", "128");
  if constexpr (kN == 256) COURSE_WGMMA_OF(256, "128", "129", "130", "131", "132");
}

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
  static_assert(kN >= 8 && kN <= 256 && kN % 8 == 0, "kN is a multiple of 8 from 8 to 256");
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

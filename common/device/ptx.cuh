/// @file
/// PTX instructions that CUDA C++ has no name for, one function each, named as the instruction. On the GPU each is inline PTX; on
/// the interpreter it does what the PTX ISA manual says, under the interpreter's checks.
#pragma once

#include "common/device/device.cuh"

namespace device {

#ifdef __CUDACC__
namespace detail {
/// Address of shared memory as PTX wants it.
__device__ __forceinline__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
}  // namespace detail
#endif

/// @name Which lane (PTX ISA, "elect.sync"; compute capability 9.0)
/// @{

/// True for one lane of the warp, which PTX does not name; always the same one. All lanes execute it together. Who asks this way
/// tells nvcc that one lane goes on: an instruction for one thread then needs no loop over lanes.
__device__ __forceinline__ bool elect_sync() {
#ifdef __CUDACC__
  uint32_t elected;
  asm volatile(
      "{\n"
      ".reg .pred elected;\n"
      "elect.sync _|elected, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, elected;\n"
      "}"
      : "=r"(elected));
  return elected;
#else
  return interpreter::elect_sync();
#endif
}
/// @}

/// @name Copies from global to shared memory in the background (PTX ISA, "cp.async"; compute capability 8.0)
/// The copy may happen any time until the group it belongs to has been waited for; then the thread that issued it sees the data,
/// and the others after a barrier. @param source_bytes how many bytes are read; the rest is filled with zeros. With 0 nothing is
/// read, so the source may lie outside of its allocation. Both addresses are aligned to the size of the copy, whatever is read.
/// @{

/// 16 bytes, past the L1 cache.
__device__ __forceinline__ void cp_async_cg_16(void* shared, const void* global) {
#ifdef __CUDACC__
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(detail::shared_address(shared)), "l"(global) : "memory");
#else
  interpreter::cp_async(shared, global, 16);
#endif
}
/// The same if `exists`, else zeros ("ignore-src"): nothing is read then, as with 0 `source_bytes`. The predicate costs nothing.
__device__ __forceinline__ void cp_async_cg_16_if(bool exists, void* shared, const void* global) {
#ifdef __CUDACC__
  asm volatile(
      "{\n"
      ".reg .pred ignore;\n"
      "setp.eq.u32 ignore, %2, 0;\n"
      "cp.async.cg.shared.global [%0], [%1], 16, ignore;\n"
      "}" ::"r"(detail::shared_address(shared)),
      "l"(global), "r"(static_cast<uint32_t>(exists))
      : "memory");
#else
  interpreter::cp_async_if(exists, shared, global, 16);
#endif
}
/// The same with `source_bytes`, by another machine instruction.
__device__ __forceinline__ void cp_async_cg_16(void* shared, const void* global, int source_bytes) {
#ifdef __CUDACC__
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(detail::shared_address(shared)), "l"(global), "r"(source_bytes)
               : "memory");
#else
  interpreter::cp_async(shared, global, 16, source_bytes);
#endif
}
/// 8 bytes, through the L1 cache.
__device__ __forceinline__ void cp_async_ca_8(void* shared, const void* global) {
#ifdef __CUDACC__
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(detail::shared_address(shared)), "l"(global) : "memory");
#else
  interpreter::cp_async(shared, global, 8);
#endif
}
/// The same with `source_bytes`, by another machine instruction.
__device__ __forceinline__ void cp_async_ca_8(void* shared, const void* global, int source_bytes) {
#ifdef __CUDACC__
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(detail::shared_address(shared)), "l"(global), "r"(source_bytes)
               : "memory");
#else
  interpreter::cp_async(shared, global, 8, source_bytes);
#endif
}
/// 4 bytes, through the L1 cache.
__device__ __forceinline__ void cp_async_ca_4(void* shared, const void* global) {
#ifdef __CUDACC__
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(detail::shared_address(shared)), "l"(global) : "memory");
#else
  interpreter::cp_async(shared, global, 4);
#endif
}
/// The same with `source_bytes`, by another machine instruction.
__device__ __forceinline__ void cp_async_ca_4(void* shared, const void* global, int source_bytes) {
#ifdef __CUDACC__
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(detail::shared_address(shared)), "l"(global), "r"(source_bytes)
               : "memory");
#else
  interpreter::cp_async(shared, global, 4, source_bytes);
#endif
}
/// Makes a group of the thread's copies since the last one; an empty group is one too.
__device__ __forceinline__ void cp_async_commit_group() {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  interpreter::cp_async_commit_group();
#endif
}
/// Waits until at most the thread's last `kGroups` groups are still under way.
template <int kGroups>
__device__ __forceinline__ void cp_async_wait_group() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#else
  interpreter::cp_async_wait_group(kGroups);
#endif
}
/// Waits for all of the thread's copies, committed or not.
__device__ __forceinline__ void cp_async_wait_all() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_all;" ::: "memory");
#else
  interpreter::cp_async_wait_all();
#endif
}
/// @}

/// @name Matrices of 8 x 8 16-bit elements from shared memory (PTX ISA, "ldmatrix"; compute capability 7.5)
/// The whole warp takes part. Lane 8 i + r gives the address of row r of matrix i: 16 bytes, aligned to 16. Of each matrix, lane l
/// gets elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4, the first in the lower half of a register; with _trans, of column l / 4.
/// x1 uses the addresses of lanes 0 to 7 only, x2 those of 0 to 15.
/// @{

/// Rows and columns of the square that four matrices make: a fragment of A, or two of B side by side.
inline constexpr int kFragment = 16;

/// Four matrices.
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void* row) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(detail::shared_address(row))
               : "memory");
#else
  interpreter::ldmatrix(r, row, 4, false);
#endif
}
/// Four matrices, transposed.
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], const void* row) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(detail::shared_address(row))
               : "memory");
#else
  interpreter::ldmatrix(r, row, 4, true);
#endif
}
/// Two matrices.
__device__ __forceinline__ void ldmatrix_x2(uint32_t (&r)[2], const void* row) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(detail::shared_address(row))
               : "memory");
#else
  interpreter::ldmatrix(r, row, 2, false);
#endif
}
/// Two matrices, transposed.
__device__ __forceinline__ void ldmatrix_x2_trans(uint32_t (&r)[2], const void* row) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(detail::shared_address(row))
               : "memory");
#else
  interpreter::ldmatrix(r, row, 2, true);
#endif
}
/// One matrix.
__device__ __forceinline__ void ldmatrix_x1(uint32_t (&r)[1], const void* row) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(detail::shared_address(row)) : "memory");
#else
  interpreter::ldmatrix(r, row, 1, false);
#endif
}
/// One matrix, transposed.
__device__ __forceinline__ void ldmatrix_x1_trans(uint32_t (&r)[1], const void* row) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(detail::shared_address(row))
               : "memory");
#else
  interpreter::ldmatrix(r, row, 1, true);
#endif
}
/// @}

/// @name Matrices of 8 x 8 16-bit elements to shared memory (PTX ISA, "stmatrix"; compute capability 9.0)
/// The way back: lanes give the addresses that ldmatrix would want, and the elements that it would have given them.
/// @{

/// Four matrices.
__device__ __forceinline__ void stmatrix_x4(void* row, const uint32_t (&r)[4]) {
#ifdef __CUDACC__
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(detail::shared_address(row)), "r"(r[0]),
               "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
#else
  interpreter::stmatrix(row, r, 4, false);
#endif
}
/// Four matrices, transposed.
__device__ __forceinline__ void stmatrix_x4_trans(void* row, const uint32_t (&r)[4]) {
#ifdef __CUDACC__
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(detail::shared_address(row)),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
#else
  interpreter::stmatrix(row, r, 4, true);
#endif
}
/// Two matrices.
__device__ __forceinline__ void stmatrix_x2(void* row, const uint32_t (&r)[2]) {
#ifdef __CUDACC__
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(detail::shared_address(row)), "r"(r[0]), "r"(r[1])
               : "memory");
#else
  interpreter::stmatrix(row, r, 2, false);
#endif
}
/// Two matrices, transposed.
__device__ __forceinline__ void stmatrix_x2_trans(void* row, const uint32_t (&r)[2]) {
#ifdef __CUDACC__
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(detail::shared_address(row)), "r"(r[0]),
               "r"(r[1])
               : "memory");
#else
  interpreter::stmatrix(row, r, 2, true);
#endif
}
/// One matrix.
__device__ __forceinline__ void stmatrix_x1(void* row, const uint32_t (&r)[1]) {
#ifdef __CUDACC__
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(detail::shared_address(row)), "r"(r[0]) : "memory");
#else
  interpreter::stmatrix(row, r, 1, false);
#endif
}
/// One matrix, transposed.
__device__ __forceinline__ void stmatrix_x1_trans(void* row, const uint32_t (&r)[1]) {
#ifdef __CUDACC__
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(detail::shared_address(row)), "r"(r[0])
               : "memory");
#else
  interpreter::stmatrix(row, r, 1, true);
#endif
}
/// @}

/// d += a · b for a warp: a is 16 x 16 (row by row), b is 16 x 8 (column by column), both of T, __half or __nv_bfloat16; d is 16 x
/// 8 in float (PTX ISA, "mma.sync", m16n8k16; compute capability 8.0). With g = lane / 4 and t = lane % 4 a lane holds
/// - a[0..3]: elements (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8), each with its right neighbour in the upper half;
/// - b[0..1]: elements (2t, g), (2t + 8, g), each with the one below it in the upper half;
/// - d[0..3]: elements (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
template <class T>
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>, "mma_m16n8k16 takes __half or __nv_bfloat16");
#ifdef __CUDACC__
  if constexpr (std::is_same_v<T, __half>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  interpreter::mma_m16n8k16(d, a, b, std::is_same_v<T, __half>);
#endif
}

}  // namespace device

/// @file
/// Element types by name, for everything that chooses them at run time.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace harness {

/// Of A, B and C; sums are always float.
enum class DType { kF32, kF16, kBF16 };

/// The DType of the C++ type T.
template <class T>
inline constexpr DType kDType = DType::kF32;
template <>
inline constexpr DType kDType<__half> = DType::kF16;
template <>
inline constexpr DType kDType<__nv_bfloat16> = DType::kBF16;

/// "f32", "f16", "bf16".
constexpr std::string_view name(DType t) { return t == DType::kF32 ? "f32" : t == DType::kF16 ? "f16" : "bf16"; }
/// The type of that name.
std::optional<DType> dtype_named(std::string_view text);
/// Of one element.
constexpr std::size_t bytes(DType t) { return t == DType::kF32 ? 4 : 2; }
/// Half the distance from 1 to the next number: the largest relative error of one rounding.
constexpr double unit_roundoff(DType t) { return t == DType::kF32 ? 0x1p-24 : t == DType::kF16 ? 0x1p-11 : 0x1p-8; }
/// Half the distance between numbers around zero: the largest absolute error there.
constexpr double underflow_unit(DType t) { return t == DType::kF32 ? 0x1p-150 : t == DType::kF16 ? 0x1p-25 : 0x1p-134; }
/// The largest finite number.
constexpr double largest(DType t) { return t == DType::kF32 ? 0x1.fffffep127 : t == DType::kF16 ? 65504.0 : 0x1.fep127; }

/// The number that the element at `p` holds, exactly.
double load(DType t, const void* p);
/// Rounds x to nearest even.
void store(DType t, void* p, double x);

}  // namespace harness

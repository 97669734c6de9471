#include "common/harness/problem/dtype.h"

#include <cstring>

namespace harness {
namespace {

template <class T>
T read(const void* p) {
  T x;
  std::memcpy(static_cast<void*>(&x), p, sizeof x);
  return x;
}
template <class T>
void write(void* p, T x) {
  std::memcpy(p, static_cast<const void*>(&x), sizeof x);
}

}  // namespace

std::optional<DType> dtype_named(std::string_view text) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kBF16})
    if (name(t) == text) return t;
  return std::nullopt;
}

double load(DType t, const void* p) {
  switch (t) {
    case DType::kF32: return read<float>(p);
    case DType::kF16: return __half2float(read<__half>(p));
    case DType::kBF16: return __bfloat162float(read<__nv_bfloat16>(p));
  }
  return 0;
}

void store(DType t, void* p, double x) {
  switch (t) {
    case DType::kF32: return write(p, static_cast<float>(x));
    case DType::kF16: return write(p, __double2half(x));
    case DType::kBF16: return write(p, __double2bfloat16(x));
  }
}

}  // namespace harness

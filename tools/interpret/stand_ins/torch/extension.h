/// @file
/// A stand-in for PyTorch's header, for files of strangers that give functions on matrices to Python: functions of a, b and c, and
/// of those and a number of stages, whether blocks are swizzled, and by how many columns. Its main calls each, and compares with
/// the host. Names say the type (s: float, h: half) and whether b is transposed (_tn).
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace torch {

enum ScalarType { kFloat32, kHalf };
struct TensorOptions {
  ScalarType type;
  ScalarType dtype() const { return type; }
};
inline std::ostream& operator<<(std::ostream& out, const TensorOptions& options) { return out << options.type; }

/// A matrix in device memory.
struct Tensor {
  void* data;
  std::int64_t rows, columns;
  TensorOptions of;
  TensorOptions options() const { return of; }
  std::int64_t size(int i) const { return i ? columns : rows; }
  void* data_ptr() const { return data; }
};

}  // namespace torch

namespace stand_in {

using torch::Tensor;
constexpr int kSize = 256;

struct Module {
  using Call = std::function<void(Tensor, Tensor, Tensor)>;
  std::vector<std::pair<std::string, Call>> functions;
  void def(const char* name, void (*f)(Tensor, Tensor, Tensor), const char*) { functions.emplace_back(name, f); }
  void def(const char* name, void (*f)(Tensor, Tensor, Tensor, int, bool, int), const char*) {
    for (const int stages : {2, 3, 4})
      for (const bool swizzle : {false, true})
        functions.emplace_back(name + (" " + std::to_string(stages)) + (swizzle ? " swizzled" : ""),
                               [=](Tensor a, Tensor b, Tensor c) { f(a, b, c, stages, swizzle, kSize); });
  }
};

/// Halves, tf32 and their sums are exact.
inline float value(int i, int j, int seed) { return static_cast<float>((i * 7 + j * 13 + i * j * seed) % 5 - 2) / 2; }

template <class T>
bool is_right(const std::string& name, const Module::Call& call, torch::ScalarType type) {
  const bool is_transposed = name.find("_tn") != std::string::npos;
  std::vector<T> matrices[3];
  for (auto& matrix : matrices) matrix.resize(kSize * kSize);
  auto& [a, b, c] = matrices;
  std::vector<float> expected(kSize * kSize);
  for (int i = 0; i < kSize; ++i)
    for (int j = 0; j < kSize; ++j) {
      a[i * kSize + j] = value(i, j, 3);
      b[is_transposed ? j * kSize + i : i * kSize + j] = value(i, j, 5);
      for (int k = 0; k < kSize; ++k) expected[i * kSize + j] += value(i, k, 3) * value(k, j, 5);
    }
  Tensor there[3];
  for (int i = 0; i < 3; ++i) {
    there[i] = {nullptr, kSize, kSize, {type}};
    cudaMalloc(&there[i].data, kSize * kSize * sizeof(T));
    if (i < 2) cudaMemcpy(there[i].data, matrices[i].data(), kSize * kSize * sizeof(T), cudaMemcpyHostToDevice);
  }
  call(there[0], there[1], there[2]);
  cudaMemcpy(c.data(), there[2].data, kSize * kSize * sizeof(T), cudaMemcpyDeviceToHost);
  for (const Tensor& each : there) cudaFree(each.data);
  int wrong = 0;
  for (int i = 0; i < kSize * kSize; ++i) wrong += !(std::fabs(static_cast<float>(c[i]) - expected[i]) < 0.01f);
  std::printf("%s: %d wrong\n", name.c_str(), wrong);
  std::fflush(stdout);
  return wrong == 0;
}

inline int run(const Module& module) {
  bool right = !module.functions.empty();
  for (const auto& [name, call] : module.functions)
    right &= name[0] == 's' ? is_right<float>(name, call, torch::kFloat32) : is_right<__half>(name, call, torch::kHalf);
  std::printf("%s\n", right ? "all right" : "not all right");
  return right ? 0 : 3;
}

}  // namespace stand_in

#define TORCH_EXTENSION_NAME functions
#define PYBIND11_MODULE(name, m)  \
  void name(stand_in::Module& m); \
  int main() {                    \
    stand_in::Module module;      \
    name(module);                 \
    return stand_in::run(module); \
  }                               \
  void name(stand_in::Module& m)

// C = leaky_relu(A · B) by the course's library: docs/library.md. B is stored column by column, so nothing is transposed.
#include <cstdio>
#include <vector>

#include <course_gemm.h>

int main() {
  const int m = 300, n = 200, k = 100;
  const std::vector<float> host_a(m * k, 0.5f), host_b(k * n, -2.0f);
  std::vector<float> host_c(m * n);
  float *a = nullptr, *b = nullptr, *c = nullptr;
  cudaMalloc(&a, host_a.size() * sizeof(float));
  cudaMalloc(&b, host_b.size() * sizeof(float));
  cudaMalloc(&c, host_c.size() * sizeof(float));
  cudaMemcpy(a, host_a.data(), host_a.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(b, host_b.data(), host_b.size() * sizeof(float), cudaMemcpyHostToDevice);

  const auto A = gemm::row_major(a, m, k), B = gemm::column_major(b, k, n), C = gemm::row_major(c, m, n);
  int wrong = 0;
  try {
    gemm::run(A, B, C, gemm::LeakyRelu{0.25f});
    std::printf("%s\n", gemm::choice(A, B, C).kernel.c_str());
    cudaMemcpy(host_c.data(), c, host_c.size() * sizeof(float), cudaMemcpyDeviceToHost);
    for (const float value : host_c) wrong += value != 0.25f * -100;
    std::printf("%d of %zu elements are wrong\n", wrong, host_c.size());
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    wrong = 1;
  }
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
  return wrong != 0;
}

#include "common/harness/problem.h"

#include <cmath>
#include <numbers>
#include <random>

namespace harness {
namespace {

constexpr unsigned kSeed = 0;

// Box and Muller's method, because std::normal_distribution gives other numbers with other libraries.
std::function<double()> normal_numbers() {
  return [engine = std::mt19937_64(kSeed), second = 0.0, has_second = false]() mutable {
    if (has_second) {
      has_second = false;
      return second;
    }
    const double u = static_cast<double>((engine() >> 11) + 1) * 0x1p-53, v = static_cast<double>(engine() >> 11) * 0x1p-53;
    const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
    second = radius * std::sin(angle), has_second = true;
    return radius * std::cos(angle);
  };
}

Placement placement(std::int64_t rows, std::int64_t cols, bool transposed) {
  return transposed ? column_major(rows, cols) : row_major(rows, cols);
}

TestMatrix filled(const char* name, DType type, const Placement& placement, const std::function<double()>& random) {
  TestMatrix matrix(name, type, placement);
  matrix.fill([&](std::int64_t, std::int64_t) { return random(); });
  return matrix;
}

}  // namespace

Problem::Problem(const Spec& spec) : Problem(spec, normal_numbers()) {}

Problem::Problem(const Spec& s, const std::function<double()>& random)
    : spec(s),
      A(filled("A", s.in, placement(s.m, s.k, s.transpose_a), random)),
      B(filled("B", s.in, placement(s.k, s.n, s.transpose_b), random)),
      C("C", s.out, row_major(s.m, s.n)),
      reference(A, B) {
  C.poison();
}

std::string Problem::verify() {
  if (std::string wrong = C.fetch(); !wrong.empty()) return wrong;
  if (std::string wrong = reference.compare(C, Reference::Sums::kFloat); !wrong.empty()) return wrong;
  if (std::string wrong = A.changed(); !wrong.empty()) return wrong;
  return B.changed();
}

}  // namespace harness
